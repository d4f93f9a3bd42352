//! The digest of a run: a hash of bytes and numbers, never of names.
//!
//! A change that only moves or renames code leaves it as it is. So two builds
//! behave alike on a seed if they have the same digest of it.

use crate::time::{At, NodeNo};
use serde::Serialize;
use thorp_model::{
    Action, Batch, CommitId, Direction, Event, Image, LoadResult, Op, OverlayUpdate, PageId,
    Publish, Response, SlotSet,
};

/// Something of the village that no state machine does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// A node starts.
    Starts,
    /// A node dies.
    Dies,
    /// A fault strikes.
    Strikes,
    /// A fault is over.
    Relieved,
    /// No more faults strike.
    Healed,
}

/// A 64-bit FNV-1a hash over what a run did, in its order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// The hash.
    pub fn hash(&self) -> u64 {
        self.0
    }

    /// A turn in the life of the village; `number` says of what.
    pub fn turn(&mut self, at: At, turn: Turn, number: usize) {
        let kind = match turn {
            Turn::Starts => 1u8,
            Turn::Dies => 2,
            Turn::Strikes => 3,
            Turn::Relieved => 4,
            Turn::Healed => 5,
        };
        self.value(&(kind, at.0, number));
    }

    /// A node's machine takes an input. What a message carries was hashed when it was sent.
    pub fn input(&mut self, at: At, no: NodeNo, input: &Event) {
        self.value(&(at.0, no.0));
        match input {
            Event::Connected {
                edge, direction, ..
            } => self.value(&(10u8, edge, *direction == Direction::Up)),
            Event::Disconnected { edge } => self.value(&(11u8, edge)),
            Event::Received { edge, .. } => self.value(&(12u8, edge)),
            Event::Tick => self.value(&13u8),
            Event::Durable(mark) => self.value(&(14u8, mark.0)),
            Event::Loaded { page, result } => {
                self.value(&(15u8, page, *result == LoadResult::Damaged));
            }
            Event::Room(room) => self.value(&(16u8, room)),
            Event::Left { free, as_of } => self.value(&(17u8, free, as_of.0)),
            Event::Asked { ticket, .. } => self.value(&(18u8, ticket)),
            Event::Evict(places) => self.value(&(19u8, places)),
        }
    }

    /// What a machine wants done.
    pub fn effect(&mut self, effect: &Action) {
        match effect {
            Action::Send(edge, message) => self.value(&(30u8, edge, message)),
            Action::Close(edge, _) => self.value(&(31u8, edge)),
            Action::Append(batch) => self.batch(batch),
            Action::Load(page) => self.value(&(33u8, page)),
            Action::Publish(publish) => self.publish(publish),
            Action::Respond(ticket, answer) => {
                self.value(&(35u8, ticket));
                self.answer(answer);
            }
            Action::Hint(likely) => self.value(&(36u8, likely)),
            Action::Joined(place) => self.value(&(37u8, place)),
            Action::Note(note) => self.value(&(38u8, *note as u32)),
        }
    }

    fn batch(&mut self, batch: &Batch) {
        self.value(&(32u8, batch.mark.0, batch.ops.len()));
        for op in &batch.ops {
            match op {
                Op::Put { table, key, value } => self.value(&(1u8, *table as u8, key, value)),
                Op::Delete { table, key } => self.value(&(2u8, *table as u8, key)),
            }
        }
    }

    fn publish(&mut self, publish: &Publish) {
        let Publish {
            home,
            overlay,
            touched,
            evicted,
            images,
            position,
            watermark,
            heard,
            missed,
        } = publish;
        self.value(&(34u8, home, position, watermark, heard));
        self.overlay(overlay);
        self.slots(touched);
        self.value(&(evicted, missed));
        for (page, image) in images {
            self.value(&(page, image.as_ref().map(Image::bytes)));
        }
    }

    fn overlay(&mut self, overlay: &OverlayUpdate) {
        self.slots(&overlay.shown);
        self.slots(&overlay.delivered);
        let values = overlay.values.iter().map(|(p, s, id)| (*p, s.words(), *id));
        self.value(&values.collect::<Vec<(PageId, [u64; 4], CommitId)>>());
    }

    fn slots(&mut self, slots: &[(PageId, SlotSet)]) {
        let words = slots.iter().map(|(page, slots)| (*page, slots.words()));
        self.value(&words.collect::<Vec<(PageId, [u64; 4])>>());
    }

    fn answer(&mut self, answer: &Response) {
        match answer {
            Response::Fetched => self.value(&1u8),
            Response::NotFetched(refusal) => self.value(&(2u8, refusal)),
            Response::Outcome(id, outcome, home) => self.value(&(3u8, id, outcome, home)),
            Response::Shown(id) => self.value(&(4u8, id)),
            Response::Called(result) => self.value(&(5u8, result)),
            Response::Busy => self.value(&6u8),
            Response::Unwatched { home, segment } => self.value(&(7u8, home, segment)),
        }
    }

    /// Adds a value's bytes as `postcard` encodes them: no name of a type or field is in them.
    fn value(&mut self, value: &impl Serialize) {
        let bytes = postcard::to_allocvec(value).expect("memory takes what serialises");
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_has_another_hash() {
        let input = |input: Event| {
            let mut digest = Digest::default();
            digest.input(At(7), NodeNo(1), &input);
            digest.hash()
        };
        let tick = input(Event::Tick);
        assert_eq!(tick, input(Event::Tick));
        assert_ne!(tick, input(Event::Room(true)));
        assert_ne!(input(Event::Room(false)), input(Event::Room(true)));
        assert_ne!(tick, Digest::default().hash());
    }
}
