//! Many datagrams in one direction: which of them arrive.

use super::go_first;
use super::sockets::{self, GLANCE, was_silence};
use crate::Outcome;
use crate::net::Namespace;
use crate::quantity::Rate;
use crate::stop::Stop;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

const CONTENT: usize = 200;
const ON_WIRE: u64 = CONTENT as u64 + 28;
/// Far below what fills any queue of ours or the receiver's.
const A_SECOND_MAX: u64 = 5000;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// From zero, without gaps.
    pub sequence: u32,
    /// Whether it did.
    pub arrived: bool,
}

/// Sends so many, or fewer if it is stopped, at less than half of the rate.
pub(super) fn send(
    from: &Namespace,
    to: &Namespace,
    count: u32,
    rate: Option<Rate>,
    settle: Duration,
    stop: &Stop,
) -> Outcome<Vec<Datagram>> {
    let (near, far) = sockets::udp(from, to)?;
    far.set_read_timeout(Some(GLANCE))?;
    let a_second = rate.map_or(A_SECOND_MAX, |rate| rate.bits() * 2 / 5 / (ON_WIRE * 8));
    let pace = Duration::from_secs(1) / a_second.clamp(1, A_SECOND_MAX) as u32;
    let (done, mut arrived) = (Stop::default(), vec![false; count as usize]);
    let sent = thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&far, &mut arrived, settle, &done));
        let sent = emit(&near, count, pace, stop);
        done.set();
        receiver
            .join()
            .map_err(|_| "what receives has panicked")??;
        sent
    })?;
    arrived.truncate(sent as usize);
    let numbered = (0..).zip(arrived);
    Ok(numbered
        .map(|(sequence, arrived)| Datagram { sequence, arrived })
        .collect())
}

fn emit(socket: &UdpSocket, count: u32, pace: Duration, stop: &Stop) -> Outcome<u32> {
    let (mut message, start) = ([0; CONTENT], Instant::now());
    for sequence in 0..count {
        if stop.is_set() {
            return Ok(sequence);
        }
        message[..4].copy_from_slice(&sequence.to_be_bytes());
        socket.send(&message)?;
        let early = (pace * (sequence + 1)).saturating_sub(start.elapsed());
        // The kernel's sleep is not finer; what is late is caught up with in small bursts.
        if early > Duration::from_millis(1) {
            thread::sleep(early);
        }
    }
    Ok(count)
}

/// Until all has been sent, and what may still be on its way has had its time.
fn receive(socket: &UdpSocket, arrived: &mut [bool], settle: Duration, done: &Stop) -> Outcome<()> {
    go_first();
    let (mut message, mut silent_since) = ([0; CONTENT], Instant::now());
    while !done.is_set() || silent_since.elapsed() < settle {
        match socket.recv(&mut message) {
            Ok(length) => {
                silent_since = Instant::now();
                let sequence = message[..length]
                    .first_chunk()
                    .map(|bytes| u32::from_be_bytes(*bytes));
                if let Some(slot) = sequence.and_then(|sequence| arrived.get_mut(sequence as usize))
                {
                    *slot = true;
                }
            }
            Err(why) if was_silence(&why) => {}
            Err(why) => return Err(why.into()),
        }
    }
    Ok(())
}
