//! An application for the race probe: counters in its memory, pages that show some of them, and requests that set one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const COUNTERS: usize = 64;

/// What a page needs behind its read of the counters, at most.
const RENDER_US_MAX: u64 = 3_000;

/// One update in so many is done after its answer, or without one (trap W31) ...
const ODD_ONE_IN: u64 = 400;

/// ... and so much later at most.
const LATE_MS_MAX: u64 = 800;

/// Numbers from a seed (xorshift64*). Their quality does not matter.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn of(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}

pub(crate) struct Application(Vec<AtomicU64>);

/// What becomes of an update.
#[derive(Clone, Copy)]
enum Deed {
    Done,
    /// A gateway says 504, and the application works on.
    Late,
    /// Nothing is answered.
    Silent,
    /// The answer is cut.
    Cut,
}

impl Application {
    /// Its address.
    pub(crate) async fn start() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let application = Arc::new(Application(
            (0..COUNTERS).map(|_| AtomicU64::new(0)).collect(),
        ));
        tokio::spawn(async move {
            for seed in 0.. {
                let (stream, _) = listener.accept().await.expect("a client");
                let application = Arc::clone(&application);
                tokio::spawn(application.serve(stream, Random::of(seed)));
            }
        });
        address
    }

    async fn serve(self: Arc<Self>, mut stream: TcpStream, mut random: Random) {
        let mut got = Vec::new();
        loop {
            while let Some(end) = got.windows(4).position(|part| part == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&got[..end]).into_owned();
                got.drain(..end + 4);
                let path = head.split(' ').nth(1).unwrap_or_default();
                let (answer, goes_on) = match head.starts_with("GET") {
                    true => (self.show(path, &mut random).await, true),
                    false => self.set(path, &mut random).await,
                };
                if stream.write_all(answer.as_bytes()).await.is_err() || !goes_on {
                    return;
                }
            }
            if !matches!(stream.read_buf(&mut got).await, Ok(1..)) {
                return;
            }
        }
    }

    async fn show(&self, path: &str, random: &mut Random) -> String {
        let shown = path
            .split('/')
            .skip(2)
            .filter_map(|part| part.parse::<usize>().ok());
        let values: Vec<String> = shown
            .filter_map(|counter| self.0.get(counter))
            .map(|value| value.load(Ordering::SeqCst).to_string())
            .collect();
        tokio::time::sleep(Duration::from_micros(random.below(RENDER_US_MAX))).await;
        answer("200 OK", &values.join(" "))
    }

    /// What is answered, and whether the connection goes on.
    async fn set(self: &Arc<Self>, path: &str, random: &mut Random) -> (String, bool) {
        let mut parts = path
            .split('/')
            .skip(2)
            .filter_map(|part| part.parse::<u64>().ok());
        let (Some(counter), Some(value)) = (parts.next(), parts.next()) else {
            return (answer("404 Not Found", ""), true);
        };
        let deed = match random.below(ODD_ONE_IN) {
            0 => Deed::Late,
            1 => Deed::Silent,
            2 => Deed::Cut,
            _ => Deed::Done,
        };
        let late = Duration::from_millis(random.below(LATE_MS_MAX));
        let application = Arc::clone(self);
        let become_so = move || application.0[counter as usize].fetch_max(value, Ordering::SeqCst);
        if !matches!(deed, Deed::Done) {
            tokio::spawn(async move {
                tokio::time::sleep(late).await;
                become_so();
            });
            return match deed {
                Deed::Late => (answer("504 Gateway Timeout", ""), true),
                Deed::Cut => {
                    let whole = answer("200 OK", "done");
                    (whole[..whole.len() - 2].to_owned(), false)
                }
                _ => (String::new(), false),
            };
        }
        tokio::time::sleep(Duration::from_micros(random.below(RENDER_US_MAX))).await;
        become_so();
        tokio::time::sleep(Duration::from_micros(random.below(RENDER_US_MAX))).await;
        (answer("200 OK", "done"), true)
    }
}

fn answer(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}")
}
