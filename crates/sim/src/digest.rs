//! The digest of a run: a hash of bytes and numbers, never of names.
//!
//! A change that only moves or renames code leaves it as it is. So two builds
//! behave alike on a seed if they have the same digest of it.

use crate::time::{At, NodeNo};
use serde::Serialize;
use std::convert::Infallible;
use std::fmt;
use thorp_model::{
    Action, Batch, CommitId, Direction, Event, Image, Op, OverlayUpdate, PageId, Publish, SlotSet,
    TentativeChange,
};
use thorp_protocol::{HomeAction, HomeCommand, LoadResult, MemberAction, MemberCommand, Response};

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
    /// The hash of everything so far.
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

    /// A number, of something that no machine does.
    pub fn number(&mut self, number: u64) {
        self.value(&number);
    }

    /// A node's machine takes an event. What a message carries was hashed when it was sent.
    pub fn event<C: Digested>(&mut self, at: At, no: NodeNo, event: &Event<C>) {
        self.value(&(at.0, no.0));
        match event {
            Event::Connected {
                edge, direction, ..
            } => self.value(&(10u8, edge, *direction == Direction::Up)),
            Event::Disconnected { edge } => self.value(&(11u8, edge)),
            Event::Received { edge, .. } => self.value(&(12u8, edge)),
            Event::Tick => self.value(&13u8),
            Event::Command(command) => command.digest(self),
        }
    }

    /// What a machine wants done.
    pub fn action<A: Digested>(&mut self, action: &Action<A>) {
        match action {
            Action::Send(edge, message) => self.value(&(30u8, edge, message)),
            Action::Close(edge, _) => self.value(&(31u8, edge)),
            Action::Note(note) => self.value(&(38u8, *note as u32)),
            Action::Role(action) => action.digest(self),
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
            history,
            tentative,
        } = publish;
        self.value(&(34u8, home, position, watermark, heard, history));
        if *tentative != TentativeChange::default() {
            self.value(&(43u8, &tentative.shown, &tentative.settled));
        }
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

    fn response(&mut self, response: &Response) {
        match response {
            // Where it came from follows from the messages.
            Response::Fetched(_) => self.value(&1u8),
            Response::NotFetched(refusal) => self.value(&(2u8, refusal)),
            Response::Outcome(id, outcome, home) => self.value(&(3u8, id, outcome, home)),
            Response::Shown(id) => self.value(&(4u8, id)),
            Response::Called(result) => self.value(&(5u8, result)),
            Response::Busy => self.value(&6u8),
            Response::Unwatched { home, segment } => self.value(&(7u8, home, segment)),
            Response::Kept { id, is_leased } => self.value(&(8u8, id, is_leased)),
            Response::NotKept(_) => self.value(&9u8),
            Response::Following => self.value(&10u8),
            Response::Updates(list) => {
                list.iter()
                    .for_each(|info| self.value(&(11u8, &info.update, &info.rejected)));
            }
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

/// What only one role gets or wants, as numbers.
pub trait Digested: fmt::Debug {
    /// Adds it.
    fn digest(&self, digest: &mut Digest);
}

impl Digested for Infallible {
    fn digest(&self, _: &mut Digest) {
        match *self {}
    }
}

impl Digested for HomeCommand {
    fn digest(&self, digest: &mut Digest) {
        match self {
            HomeCommand::Durable(mark) => digest.value(&(14u8, mark.0)),
            HomeCommand::Loaded { page, result } => {
                digest.value(&(15u8, page, *result == LoadResult::Damaged));
            }
            HomeCommand::Lacks(lack) => digest.value(&(16u8, lack.is_none())),
            HomeCommand::Space {
                free, room, as_of, ..
            } => {
                digest.value(&(17u8, free, room, as_of.0));
            }
            HomeCommand::TurnedAway(away) => digest.value(&(18u8, away.why, away.from, &away.name)),
        }
    }
}

impl Digested for MemberCommand {
    fn digest(&self, digest: &mut Digest) {
        match self {
            MemberCommand::Request { id, .. } => digest.value(&(18u8, id)),
            MemberCommand::Evict(places) => digest.value(&(19u8, places)),
            MemberCommand::Kept(mark) => digest.value(&(20u8, mark)),
            MemberCommand::NotKept(mark, lack) => digest.value(&(21u8, mark, lack)),
        }
    }
}

impl Digested for HomeAction {
    fn digest(&self, digest: &mut Digest) {
        match self {
            HomeAction::Append(batch) => digest.batch(batch),
            HomeAction::Load(page) => digest.value(&(33u8, page)),
            HomeAction::Reopen(reopen) => digest.value(&(41u8, reopen.apart, &reopen.by)),
            HomeAction::Close(met) => digest.value(&(39u8, &met.receipt, &met.by)),
        }
    }
}

impl Digested for MemberAction {
    fn digest(&self, digest: &mut Digest) {
        match self {
            MemberAction::Publish(publish) => digest.publish(publish),
            MemberAction::Respond(id, response) => {
                digest.value(&(35u8, id));
                digest.response(response);
            }
            MemberAction::Hint(likely) => digest.value(&(36u8, likely)),
            MemberAction::Joined(place) => digest.value(&(37u8, place)),
            MemberAction::WentBack(home) => digest.value(&(40u8, home)),
            MemberAction::Keep(batch) => digest.value(&(41u8, batch.mark)),
            MemberAction::Rejected(update, refusal) => {
                digest.value(&(42u8, update, refusal));
            }
            MemberAction::Locked { home, fence, until } => {
                digest.value(&(43u8, home, fence, until));
            }
            MemberAction::LockLost { home, fence } => digest.value(&(44u8, home, fence)),
            // These only report what the other actions and messages show.
            MemberAction::Named(..)
            | MemberAction::Showing(_)
            | MemberAction::Arrived(..)
            | MemberAction::Evicted
            | MemberAction::StreamBegan { .. }
            | MemberAction::HomesTold { .. }
            | MemberAction::StreamEnded(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::Lack;

    #[test]
    fn what_differs_has_another_hash() {
        let event = |event: Event<HomeCommand>| {
            let mut digest = Digest::default();
            digest.event(At(7), NodeNo(1), &event);
            digest.hash()
        };
        let lacks = |lack| event(Event::Command(HomeCommand::Lacks(lack)));
        let lack = Some(Lack::OF_ALL);
        let tick = event(Event::Tick);
        assert_eq!(tick, event(Event::Tick));
        assert_ne!(tick, lacks(None));
        assert_ne!(lacks(lack), lacks(None));
        assert_ne!(tick, Digest::default().hash());
    }
}
