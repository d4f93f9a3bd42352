//! Measures one connection on this machine: round trips of 64 bytes up and 8 KiB down, against bare TCP in the same run; how
//! late a delayed link is; and bulk throughput. Both ends run in one thread each.
//!
//! `cargo run --release -p thorp-net --example link`

use std::error::Error;
use std::time::{Duration, Instant};

use thorp_model::HomeId;
use thorp_net::{
    Address, Config, Connection, FrameReceiver, FrameSender, Identity, LinkDelay, Listener,
    NodeRole, Role, dial, issue,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: usize = 20_000;
const DELAYED_ROUNDS: usize = 200;
const UP_BYTES: usize = 64;
const DOWN_BYTES: usize = 8 << 10;
const BULK_FRAMES: usize = 40_000;

fn main() -> Outcome<()> {
    let dir = std::env::temp_dir().join(format!("thorp-net-link-{}", std::process::id()));
    let home =
        Identity::open_or_create(dir.join("home"), dir.join("authority"), ("home", HomeId(1)))?;
    let member = issue(
        dir.join("authority"),
        dir.join("member"),
        NodeRole::Member,
        "member",
    )?;
    let runtime = runtime()?;
    let tcp: Address = "127.0.0.1:0".parse()?;
    let unix = Address::Unix(dir.join("home.sock"));
    for pass in ["first", "second"] {
        report(&format!("bare TCP, {pass} pass"), runtime.block_on(bare())?);
        for address in [&tcp, &unix] {
            let end = Server::start(address.clone(), home.clone(), LinkDelay::default())?;
            let times =
                runtime.block_on(rounds(&end.address, &member, LinkDelay::default(), ROUNDS))?;
            report(
                &format!(
                    "frames over {}, {pass} pass",
                    if address == &tcp { "TCP" } else { "Unix" }
                ),
                times,
            );
        }
    }
    report("a thread that sleeps 2500 us is late by", sleeps());
    for one_way_us in [500, 2_500, 25_000] {
        let delay = LinkDelay::new(Duration::from_micros(one_way_us));
        let end = Server::start(tcp.clone(), home.clone(), delay)?;
        let mut times = runtime.block_on(rounds(&end.address, &member, delay, DELAYED_ROUNDS))?;
        times
            .iter_mut()
            .for_each(|time| *time = time.saturating_sub(2 * delay.one_way));
        report(&format!("beyond two delays of {one_way_us} us"), times);
    }
    let delay = LinkDelay::new(Duration::from_millis(10));
    for (text, delay) in [("no delay", LinkDelay::default()), ("10 ms one way", delay)] {
        let end = Server::start(tcp.clone(), home.clone(), LinkDelay::default())?;
        let rate = runtime.block_on(bulk(&end.address, &member, delay))?;
        println!(
            "{:42} {rate:8.0} MB/s of 8 KiB frames up",
            format!("bulk, {text}")
        );
    }
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 1000];
    println!(
        "{what:42} p50 {:8.1?}  p99 {:8.1?}  p999 {:8.1?}",
        at(500),
        at(990),
        at(999)
    );
}

/// What this machine can do at best: the lateness of plain sleeps.
fn sleeps() -> Vec<Duration> {
    let pause = Duration::from_micros(2_500);
    let sleep = |_| {
        let start = Instant::now();
        std::thread::sleep(pause);
        start.elapsed().saturating_sub(pause)
    };
    (0..DELAYED_ROUNDS).map(sleep).collect()
}

/// A home in a thread of its own: answers every 64-byte frame with a page, swallows others, and answers an empty one empty.
struct Server {
    address: Address,
    _stop: oneshot::Sender<()>,
}

impl Server {
    fn start(address: Address, identity: Identity, delay: LinkDelay) -> Outcome<Self> {
        let (tell, told) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        std::thread::spawn(move || -> Outcome<()> {
            runtime()?.block_on(async move {
                let config = Config {
                    delay,
                    ..Config::new(Role::HOME)
                };
                let mut listener = Listener::bind(&address, &identity, config).await?;
                tell.send(listener.address().clone())?;
                let connection = listener.accept().await?.accept(b"")?;
                tokio::select! { served = serve(connection) => served, _ = stopped => Ok(()) }
            })
        });
        Ok(Self {
            address: told.recv()?,
            _stop: stop,
        })
    }
}

async fn serve(connection: Connection) -> Outcome<()> {
    let (sender, mut receiver) = connection.split();
    while let Some(frame) = receiver.recv().await? {
        match frame.len() {
            UP_BYTES => sender.try_send(vec![1; DOWN_BYTES])?,
            0 => sender.try_send(vec![])?,
            _ => {}
        }
    }
    Ok(())
}

async fn connect(
    address: &Address,
    identity: &Identity,
    delay: LinkDelay,
) -> Outcome<(FrameSender, FrameReceiver)> {
    let config = Config {
        delay,
        ..Config::new(Role::MEMBER)
    };
    Ok(dial(
        std::slice::from_ref(address),
        identity,
        Some("home"),
        b"",
        &config,
    )
    .await?
    .split())
}

async fn rounds(
    address: &Address,
    identity: &Identity,
    delay: LinkDelay,
    count: usize,
) -> Outcome<Vec<Duration>> {
    let (sender, mut receiver) = connect(address, identity, delay).await?;
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        sender.try_send(vec![2; UP_BYTES])?;
        receiver.recv().await?.ok_or("the home closed")?;
        times.push(start.elapsed());
    }
    Ok(times)
}

async fn bulk(address: &Address, identity: &Identity, delay: LinkDelay) -> Outcome<f64> {
    let (sender, mut receiver) = connect(address, identity, delay).await?;
    let start = Instant::now();
    for _ in 0..BULK_FRAMES {
        while sender.try_send(vec![3; DOWN_BYTES]).is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    while sender.try_send(vec![]).is_err() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    receiver.recv().await?.ok_or("the home closed")?;
    Ok((BULK_FRAMES * DOWN_BYTES) as f64 / 1e6 / start.elapsed().as_secs_f64())
}

async fn bare() -> Outcome<Vec<Duration>> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let end = std::thread::spawn(move || -> Outcome<()> {
        runtime()?.block_on(async move {
            let (mut stream, _) = TcpListener::from_std(listener)?.accept().await?;
            stream.set_nodelay(true)?;
            let (mut up, down) = ([0; UP_BYTES], [1; DOWN_BYTES]);
            while stream.read_exact(&mut up).await.is_ok() {
                stream.write_all(&down).await?;
            }
            Ok(())
        })
    });
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (up, mut down) = ([2; UP_BYTES], [0; DOWN_BYTES]);
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        stream.write_all(&up).await?;
        stream.read_exact(&mut down).await?;
        times.push(start.elapsed());
    }
    drop(stream);
    end.join().map_err(|_| "the bare end panicked")??;
    Ok(times)
}
