//! What hostile peers say, as bytes that a fuzzer changes.

use crate::village::{HOME, NODES, Village};
use thorp_model::codec::decode;
use thorp_model::{EdgeId, Epoch, Message, Up};

/// Hostile peers have the edges 1 to 4. There is no edge 0.
const EDGES: usize = 5;

/// Says all of a script. Before each message there are two bytes: who is sent it and on which edge, and how long it is.
/// What does not decode lets time go on.
pub fn play(village: &mut Village, script: &[u8]) {
    let mut rest = script;
    while let [to, length, more @ ..] = rest {
        let (message, after) = more.split_at(more.len().min(usize::from(*length)));
        rest = after;
        let to = usize::from(*to);
        let (at, edge) = (to % NODES, EdgeId((to / NODES % EDGES) as u64));
        let is_timely = !(to / NODES / EDGES).is_multiple_of(4);
        match decode(message) {
            Ok(mut message) => {
                if let Some(epoch) = village.epoch(at, edge).filter(|_| is_timely) {
                    bring_up_to_date(&mut message, epoch);
                }
                village.tell(at, edge, message);
            }
            Err(_) => village.tick(at),
        }
    }
}

/// A script of one message for one of the three and one of its edges.
pub fn script(at: usize, edge: usize, message: &[u8]) -> Option<Vec<u8>> {
    let length = u8::try_from(message.len()).ok()?;
    let to = u8::try_from(NODES * EDGES + edge * NODES + at).ok()?;
    Some([&[to, length], message].concat())
}

/// A fuzzer hardly guesses 64 bits: a child's message gets the epoch of the child's stream.
fn bring_up_to_date(message: &mut Message, now: Epoch) {
    let Message::Up(message) = message else {
        return;
    };
    match message {
        Up::Fetch(fetch) => (fetch.home, fetch.epoch) = (HOME, now),
        Up::Evict(evict) => (evict.home, evict.epoch) = (HOME, now),
        Up::Ack(ack) => (ack.home, ack.epoch) = (HOME, now),
        Up::Watch(watch) => (watch.home, watch.epoch) = (HOME, now),
        Up::Report(report) => (report.home, report.epoch) = (HOME, now),
        Up::Judge(judge) => judge.epoch = now,
        _ => {}
    }
}
