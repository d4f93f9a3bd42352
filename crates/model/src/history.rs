//! The history of a home: its incarnations, its lives, and the points of them that others rest on (rule R9).

use crate::limits::{INCARNATIONS_MAX, LIVES_MAX};
use crate::{Generation, Mark, NameId, Position};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// How often an operator has opened a closed home. Numbers that are never given twice carry it in their highest 12 bits.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Incarnation(u16);

/// One life of a home: one run on its store. Two lives may have one counter, if they are of two histories; the random bits
/// distinguish them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct LifeId {
    /// Rises with each life of one history.
    pub counter: u32,
    /// 64 random bits.
    pub random: u64,
}

/// How far a life came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LifeEnd {
    /// The last batch that is in the store.
    pub mark: Mark,
    /// The last commit.
    pub position: Position,
    /// The reserved ceiling of the clock, as in [`Stamp::clock`](crate::Stamp::clock): nothing was promised above it.
    pub ceiling: u64,
}

/// A life, and how far it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Point {
    /// The life.
    pub life: LifeId,
    /// The last durable batch.
    pub mark: Mark,
    /// The last durable commit.
    pub position: Position,
    /// The clock of the highest promised stamp.
    pub clock: u64,
}

/// The lives of one history of a home, at most [`LIVES_MAX`], the latest last.
///
/// Only the last one goes on. All others are finished, each with its end.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Lives {
    finished: Vec<(LifeId, LifeEnd)>,
    last: Option<LifeId>,
}

/// A receipt that proved another history to a home.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Met {
    /// The name of the node that brought it.
    pub by: String,
    /// The incarnation of that history.
    pub incarnation: Incarnation,
    /// How far that history was.
    pub point: Point,
}

/// Why a home is closed: it refuses everybody but operators until an operator opens it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Closed {
    /// It was started without the note of its last acknowledged group.
    NoNote,
    /// It was started in another directory than the one where it ran.
    OtherOrigin,
    /// Its store was salvaged from a damaged one.
    Salvaged,
    /// Somebody has brought a receipt of another history: this store or another one goes on from an older state.
    OtherHistory(Met),
}

/// How an operator opened a home (rule R9).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum HowOpened {
    /// By `thorp confirm`, as one that goes on from an older state.
    Confirmed,
    /// The same, by an option of its start.
    Restored,
    /// As a copy for a test, with a key of its own.
    Apart,
    /// Its directory was moved. This begins no incarnation.
    Moved,
}

/// An operator of the village, as a certificate names it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Operator {
    /// The id of its name.
    pub id: NameId,
    /// Its name; empty if the home does not know it.
    pub name: String,
}

/// An operator has opened a home (rule R9).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HomeOpened {
    /// Counts the openings of one store, from 1.
    pub number: u64,
    /// How.
    pub how: HowOpened,
    /// Who said so over the network. None: somebody at the home's machine.
    pub by: Option<Operator>,
    /// The incarnation since then.
    pub incarnation: Incarnation,
    /// The counter of the last life before; 0 if there was none.
    pub life: u32,
}

/// What a home knows of its own history, for operators (rule R9).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KnownHistory {
    /// How often an operator has opened it as closed.
    pub incarnation: Incarnation,
    /// How far it is.
    pub point: Point,
    /// Why it is closed; none if it is open.
    pub closed: Option<Closed>,
    /// How far the life of the other history that it met has come in this one. None if it met none, or this history does
    /// not have that life.
    pub shared: Option<LifeEnd>,
}

/// The key with which a home proves receipts to itself. It is made with the store and never leaves it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptKey([u8; 32]);

impl Incarnation {
    /// The incarnation of this number; none above [`INCARNATIONS_MAX`].
    pub fn new(number: u16) -> Option<Self> {
        (number <= INCARNATIONS_MAX).then_some(Self(number))
    }

    /// Its number.
    pub fn get(self) -> u16 {
        self.0
    }

    /// The next one, unless this is the last.
    pub fn next(self) -> Option<Self> {
        Self::new(self.0 + 1)
    }

    /// The one with which an operator opens a home that is closed: above every history that the home met, so that whoever
    /// comes from there only forgets, and closes it no more. None: there are no more.
    pub fn after(self, closed: Option<&Closed>) -> Option<Self> {
        let met = match closed {
            Some(Closed::OtherHistory(met)) => met.incarnation,
            _ => Incarnation::default(),
        };
        self.max(met).next()
    }

    /// All numbers of 32 bits that this incarnation gives lie above.
    pub fn floor_32(self) -> u32 {
        u32::from(self.0) << (u32::BITS - INCARNATION_BITS)
    }

    /// The generation of a new object in a slot whose last object had this one. None: the slot has had all of this
    /// incarnation, and stays empty until the next (trap R43). So a reference to a lost object never names another one.
    pub fn generation_after(self, last: Generation) -> Option<Generation> {
        let next = last.0.max(self.floor_32()).checked_add(1)?;
        let is_own = next >> (u32::BITS - INCARNATION_BITS) == u32::from(self.0);
        is_own.then_some(Generation(next))
    }

    /// All numbers of 64 bits that this incarnation gives lie above.
    pub fn floor_64(self) -> u64 {
        u64::from(self.0) << (u64::BITS - INCARNATION_BITS)
    }
}

impl Lives {
    /// A life begins; the one before has ended there.
    pub fn begin(&mut self, life: LifeId, end_of_last: LifeEnd) {
        if let Some(last) = self.last.replace(life) {
            self.finished.push((last, end_of_last));
        }
        let too_many = (self.finished.len() + 1).saturating_sub(LIVES_MAX);
        self.finished.drain(..too_many);
    }

    /// How far a life has come in this history; `now` is how far the last one is. None if this history does not have it.
    pub fn end_of(&self, life: LifeId, now: &LifeEnd) -> Option<LifeEnd> {
        if self.last == Some(life) {
            return Some(*now);
        }
        let mut finished = self.finished.iter();
        let found = finished.find(|(known, _)| *known == life);
        found.map(|(_, end)| *end)
    }

    /// The life that goes on; none in a store that no home has opened.
    pub fn last(&self) -> Option<LifeId> {
        self.last
    }

    /// The oldest life of which this list knows.
    pub fn oldest(&self) -> Option<LifeId> {
        let finished = self.finished.first();
        finished.map(|(life, _)| *life).or(self.last)
    }

    /// How many lives there are.
    pub fn len(&self) -> usize {
        self.finished.len() + usize::from(self.last.is_some())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Whether a point is in this history: its life is in the list, and none of its three numbers lies above that life's end.
    /// `now` is how far the last life is.
    pub fn hold(&self, point: &Point, now: &LifeEnd) -> bool {
        let end = self.end_of(point.life, now);
        end.is_some_and(|end| end.reaches(point))
    }
}

impl LifeEnd {
    fn reaches(&self, point: &Point) -> bool {
        self.mark >= point.mark && self.position >= point.position && self.ceiling >= point.clock
    }
}

impl ReceiptKey {
    /// A key of these random bytes.
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    /// Its bytes, for the authenticator of receipts and for nobody else.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for ReceiptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceiptKey")
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for HowOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HowOpened::Confirmed => "confirmed",
            HowOpened::Restored => "restored",
            HowOpened::Apart => "apart",
            HowOpened::Moved => "moved",
        })
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Closed::NoNote => {
                "its note (thorp-note) is missing, so nothing proves that its store has all that was acknowledged"
            }
            Closed::OtherOrigin => {
                "its directory is not the one where it ran: a copy, a restored backup, or a move to another disk"
            }
            Closed::Salvaged => "its store was salvaged from a damaged one, and lacks what was lost",
            Closed::OtherHistory(met) => return met.fmt(f),
        })
    }
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} holds this home's own receipt of another history (incarnation {}, life {}, up to position {}): this store goes on from an older state than that, or another copy of it runs",
            self.by, self.incarnation, self.point.life.counter, self.point.position
        )
    }
}

const INCARNATION_BITS: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn life(counter: u32) -> LifeId {
        LifeId {
            counter,
            random: u64::from(counter) * 7,
        }
    }

    fn end(mark: u64, position: u64, ceiling: u64) -> LifeEnd {
        LifeEnd {
            mark: Mark(mark),
            position: Position(position),
            ceiling,
        }
    }

    fn point(life: LifeId, mark: u64, position: u64, clock: u64) -> Point {
        Point {
            life,
            mark: Mark(mark),
            position: Position(position),
            clock,
        }
    }

    #[test]
    fn a_point_is_in_the_history_up_to_the_end_of_its_life() {
        let mut lives = Lives::default();
        lives.begin(life(1), end(99, 99, 99));
        lives.begin(life(2), end(5, 4, 70));
        let now = end(3, 6, 90);
        assert!(lives.hold(&point(life(1), 5, 4, 70), &now));
        for above in [
            point(life(1), 6, 4, 70),
            point(life(1), 5, 5, 70),
            point(life(1), 5, 4, 71),
        ] {
            assert!(!lives.hold(&above, &now), "{above:?}");
        }
        assert!(lives.hold(&point(life(2), 3, 6, 90), &now));
        assert!(!lives.hold(&point(life(2), 4, 6, 90), &now));
        assert!(!lives.hold(&point(life(3), 0, 0, 0), &now), "never was");
        // The same counter of another history.
        let other = LifeId {
            random: 1,
            ..life(1)
        };
        assert!(!lives.hold(&point(other, 1, 1, 1), &now));
    }

    /// Traps R26 and R43.
    #[test]
    fn a_slot_goes_on_above_all_that_was_lost_and_then_stays_empty() {
        let (first, second) = (Incarnation(0), Incarnation(1));
        assert_eq!(first.generation_after(Generation(0)), Some(Generation(1)));
        assert_eq!(first.generation_after(Generation(7)), Some(Generation(8)));
        let floor = Generation(1 << 20);
        assert_eq!(second.generation_after(Generation(7)), Some(floor.next()));
        let last = Generation(floor.0 - 1);
        assert_eq!(first.generation_after(last), None);
        assert_eq!(second.generation_after(last), Some(floor.next()));
        let end = Incarnation(INCARNATIONS_MAX);
        assert_eq!(end.generation_after(Generation(u32::MAX)), None);
    }

    #[test]
    fn the_list_is_bounded_and_forgets_the_oldest() {
        let mut lives = Lives::default();
        assert_eq!((lives.oldest(), lives.len()), (None, 0));
        for counter in 1..=LIVES_MAX as u32 + 3 {
            lives.begin(life(counter), end(1, 1, 1));
            assert!(lives.len() <= LIVES_MAX);
        }
        assert_eq!(lives.len(), LIVES_MAX);
        assert_eq!(lives.oldest(), Some(life(4)));
        assert_eq!(lives.last(), Some(life(LIVES_MAX as u32 + 3)));
        assert!(!lives.hold(&point(life(3), 1, 1, 1), &end(1, 1, 1)));
    }

    #[test]
    fn an_incarnation_gives_numbers_that_none_before_gave() {
        let mut last = Incarnation::default();
        assert_eq!((last.floor_32(), last.floor_64()), (0, 0));
        while let Some(next) = last.next() {
            assert!(next.floor_32() > last.floor_32() && next.floor_64() > last.floor_64());
            last = next;
        }
        assert_eq!(last.get(), INCARNATIONS_MAX);
        assert_eq!(last.floor_32(), 0xfff << 20);
    }
}
