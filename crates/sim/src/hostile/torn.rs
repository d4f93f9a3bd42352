//! Bytes that are torn or altered. The simulator has no frames: what the codec takes of such bytes is sent, and for what it
//! turns away the edge ends, as a driver does it.

use super::attack::{Attack, Target, ToParent};
use super::eyes::Eyes;
use thorp_model::{
    Action, Attempt, EntryNo, Message, PageId, Position, Up, Xoshiro256, codec, message,
};

/// Sends messages with a few wrong bits, or without their end.
#[derive(Default)]
pub(crate) struct Torn;

/// Messages of one strike.
const MESSAGES: u64 = 8;

impl Attack for Torn {
    fn name(&self) -> &'static str {
        "attack: torn bytes"
    }

    fn strike(&mut self, at: Target, eyes: &Eyes, prng: &mut Xoshiro256, outbox: &mut ToParent) {
        for _ in 0..MESSAGES {
            let message = Message::Up(whole(at, eyes, prng));
            let Ok(mut bytes) = codec::encode(&message) else {
                continue;
            };
            if prng.percent(30) {
                bytes.truncate(prng.index(bytes.len() + 1));
            }
            if let Some(byte) = pick_byte(&mut bytes, prng) {
                *byte ^= 1 << prng.below(8);
            }
            match codec::decode(&bytes) {
                Ok(message) => outbox.actions.push(Action::Send(at.edge, message)),
                Err(_) => return outbox.close(at.edge, "its bytes are no message"),
            }
        }
    }
}

fn pick_byte<'a>(bytes: &'a mut [u8], prng: &mut Xoshiro256) -> Option<&'a mut u8> {
    let index = prng.index(bytes.len().max(1));
    bytes.get_mut(index)
}

/// Messages that can do no harm to anybody else, whole or torn.
fn whole(at: Target, eyes: &Eyes, prng: &mut Xoshiro256) -> Up {
    let (home, epoch) = (at.home, at.epoch);
    let page = PageId::new(1, prng.below(6) as u32);
    match prng.below(3) {
        0 => Up::Fetch(message::Fetch {
            home,
            epoch,
            page,
            attempt: Attempt(prng.bits()),
            peers: true,
            ahead: false,
            updates: 3,
        }),
        1 => Up::Evict(message::Evict {
            home,
            epoch,
            page,
            entry: EntryNo(prng.below(9) as u32),
        }),
        _ => Up::Ack(message::Ack {
            home,
            epoch,
            position: Position(eyes.position(home).0 / 2),
        }),
    }
}
