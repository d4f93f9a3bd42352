//! As much as goes in one direction.

use super::sockets::{self, GLANCE, was_silence};
use super::{Protocol, go_first};
use crate::Outcome;
use crate::net::Namespace;
use crate::quantity::Rate;
use crate::stop::Stop;
use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

const BLOCK: usize = 64 << 10;
const DATAGRAM: usize = 1400;
const DATAGRAM_ON_WIRE: u64 = DATAGRAM as u64 + 28;
const SAMPLE: Duration = Duration::from_millis(100);
/// A sender of datagrams at up to this rate sleeps most of the time.
const EASY_RATE_MAX: u64 = 250_000_000;

/// What arrived in a tenth of a second.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// With it.
    pub protocol: Protocol,
    /// When it ended, since the first byte was sent.
    pub at: Duration,
    /// How long it was.
    pub length: Duration,
    /// Of TCP the content; of UDP what the wire carries, headers included.
    pub bytes: u64,
}

/// One connection, for so long.
pub(super) fn tcp(
    from: &Namespace,
    to: &Namespace,
    time: Duration,
    stop: &Stop,
) -> Outcome<Vec<Interval>> {
    let (near, far) = sockets::tcp(from, to)?;
    near.set_write_timeout(Some(GLANCE))?;
    far.set_read_timeout(Some(GLANCE))?;
    let mut block = vec![0; BLOCK];
    flow(
        Protocol::Tcp,
        time,
        stop,
        |done| push(&near, done),
        || (&far).read(&mut block).map(|length| length as u64),
    )
}

/// A fifth more than this rate, for so long: what arrives is what the network lets through.
pub(super) fn udp(
    from: &Namespace,
    to: &Namespace,
    rate: Rate,
    time: Duration,
    stop: &Stop,
) -> Outcome<Vec<Interval>> {
    let (near, far) = sockets::udp(from, to)?;
    far.set_read_timeout(Some(GLANCE))?;
    let mut datagram = [0; DATAGRAM];
    let receive = || far.recv(&mut datagram).map(|_| DATAGRAM_ON_WIRE);
    flow(
        Protocol::Udp,
        time,
        stop,
        |done| flood(&near, rate, done),
        receive,
    )
}

/// Receives beside what sends, and adds up.
fn flow(
    protocol: Protocol,
    time: Duration,
    stop: &Stop,
    send: impl FnOnce(&Stop) + Send,
    mut receive: impl FnMut() -> io::Result<u64>,
) -> Outcome<Vec<Interval>> {
    let done = Stop::default();
    thread::scope(|scope| {
        let start = Instant::now();
        scope.spawn(|| send(&done));
        let (mut samples, mut bytes, mut since) = (Vec::new(), 0, start);
        while start.elapsed() < time && !stop.is_set() {
            match receive() {
                Ok(received) => bytes += received,
                Err(why) if was_silence(&why) => {}
                Err(why) => {
                    done.set();
                    return Err(why.into());
                }
            }
            let now = Instant::now();
            if now - since >= SAMPLE {
                samples.push(Interval {
                    protocol,
                    at: now - start,
                    length: now - since,
                    bytes,
                });
                (bytes, since) = (0, now);
            }
        }
        done.set();
        Ok(samples)
    })
}

fn push(mut stream: &TcpStream, done: &Stop) {
    let block = vec![0; BLOCK];
    while !done.is_set() {
        match stream.write(&block) {
            Err(why) if !was_silence(&why) => return,
            _ => {}
        }
    }
}

fn flood(socket: &UdpSocket, rate: Rate, done: &Stop) {
    let (datagram, start, mut sent) = ([0; DATAGRAM], Instant::now(), 0);
    if rate.bits() <= EASY_RATE_MAX {
        go_first();
    }
    let faster = Rate::bits_per_second(rate.bits() / 5 * 6);
    while !done.is_set() {
        // A full queue of the device is a drop like any other.
        let _ = socket.send(&datagram);
        sent += DATAGRAM_ON_WIRE;
        let early = faster.time_for(sent).saturating_sub(start.elapsed());
        if early > Duration::from_millis(1) {
            thread::sleep(early);
        }
    }
}
