//! There and back, one after another.

use super::sockets::{self, GLANCE, was_silence};
use super::{Protocol, go_first};
use crate::Outcome;
use crate::net::Namespace;
use crate::stop::Stop;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// As long as a small request.
const MESSAGE: usize = 64;
/// A moment between two, so that one does not run into the wake of another.
const PAUSE: Duration = Duration::from_millis(1);
/// TCP has sent something seven times by then.
const STREAM_SILENCE_MAX: Duration = Duration::from_secs(30);

/// One that came back.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    /// With it.
    pub protocol: Protocol,
    /// When it began, since the first.
    pub at: Duration,
    /// There and back.
    pub took: Duration,
}

/// So many over TCP, or fewer if it is stopped or nothing comes any more.
pub(super) fn tcp(
    from: &Namespace,
    to: &Namespace,
    count: u32,
    stop: &Stop,
) -> Outcome<Vec<RoundTrip>> {
    let (near, far) = sockets::tcp(from, to)?;
    near.set_read_timeout(Some(GLANCE))?;
    far.set_read_timeout(Some(GLANCE))?;
    let ask = || {
        repeat(Protocol::Tcp, count, stop, |_| {
            stream_round_trip(&near, stop)
        })
    };
    beside(|done| echo_stream(&far, done), ask)
}

/// So many over UDP; what does not come back in time is not among them.
pub(super) fn udp(
    from: &Namespace,
    to: &Namespace,
    count: u32,
    patience: Duration,
    stop: &Stop,
) -> Outcome<Vec<RoundTrip>> {
    let (near, far) = sockets::udp(from, to)?;
    near.set_read_timeout(Some(patience))?;
    far.set_read_timeout(Some(GLANCE))?;
    beside(
        |done| echo_datagrams(&far, done),
        || {
            repeat(Protocol::Udp, count, stop, |turn| {
                datagram_round_trip(&near, turn)
            })
        },
    )
}

/// Runs both, the first in a thread of its own until the second has ended.
fn beside<T>(echo: impl FnOnce(&Stop) + Send, ask: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T>
where
    T: Send,
{
    let done = Stop::default();
    thread::scope(|scope| {
        let echo = scope.spawn(|| {
            go_first();
            echo(&done);
        });
        // Its thread ends with it: its going first does not stay with whoever called.
        let asked = scope.spawn(|| {
            go_first();
            ask()
        });
        let asked = asked.join().map_err(|_| "what measures has panicked");
        done.set();
        let _ = echo.join();
        asked?
    })
}

fn repeat(
    protocol: Protocol,
    count: u32,
    stop: &Stop,
    mut there_and_back: impl FnMut(u32) -> Outcome<Back>,
) -> Outcome<Vec<RoundTrip>> {
    let (mut samples, start) = (Vec::new(), Instant::now());
    for turn in 0..count {
        if stop.is_set() {
            break;
        }
        let sent = Instant::now();
        match there_and_back(turn)? {
            Back::Came => samples.push(RoundTrip {
                protocol,
                at: sent - start,
                took: sent.elapsed(),
            }),
            Back::Lost => {}
            Back::Ended => break,
        }
        thread::sleep(PAUSE);
    }
    Ok(samples)
}

/// What became of one.
enum Back {
    Came,
    Lost,
    /// And there will be no other.
    Ended,
}

/// TCP sends again what is lost, after pauses that double: an answer that is not there yet may be lost for long.
fn stream_round_trip(mut stream: &TcpStream, stop: &Stop) -> Outcome<Back> {
    let (mut message, mut filled, sent) = ([0; MESSAGE], 0, Instant::now());
    stream.write_all(&message)?;
    while filled < MESSAGE {
        match stream.read(&mut message[filled..]) {
            Ok(0) => return Ok(Back::Ended),
            Ok(length) => filled += length,
            Err(why) if !was_silence(&why) => return Err(why.into()),
            Err(_) if stop.is_set() || sent.elapsed() > STREAM_SILENCE_MAX => {
                return Ok(Back::Ended);
            }
            Err(_) => {}
        }
    }
    Ok(Back::Came)
}

/// One that comes after its time is not taken for the next.
fn datagram_round_trip(socket: &UdpSocket, turn: u32) -> Outcome<Back> {
    let mut message = [0; MESSAGE];
    message[..4].copy_from_slice(&turn.to_be_bytes());
    socket.send(&message)?;
    loop {
        match socket.recv(&mut message) {
            Ok(_) if message[..4] == turn.to_be_bytes() => return Ok(Back::Came),
            Ok(_) => {}
            Err(why) if was_silence(&why) => return Ok(Back::Lost),
            Err(why) => return Err(why.into()),
        }
    }
}

fn echo_stream(mut stream: &TcpStream, done: &Stop) {
    let mut buffer = [0; MESSAGE];
    while !done.is_set() {
        match stream.read(&mut buffer) {
            Ok(length) if length > 0 && stream.write_all(&buffer[..length]).is_ok() => {}
            Err(why) if was_silence(&why) => {}
            // Whoever asks finds out by itself.
            _ => return,
        }
    }
}

fn echo_datagrams(socket: &UdpSocket, done: &Stop) {
    let mut buffer = [0; MESSAGE];
    while !done.is_set() {
        if let Ok(length) = socket.recv(&mut buffer) {
            let _ = socket.send(&buffer[..length]);
        }
    }
}
