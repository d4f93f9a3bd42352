//! The history of a home: what the home proves of it, and how it judges what others rest on (rule R9).

use alloc::string::String;
use alloc::vec::Vec;
use thorp_model::limits::LIVES_MAX;
use thorp_model::planted::Bug;
use thorp_model::{
    Claim, Closed, HomeId, HomeOpened, Incarnation, LifeEnd, LifeId, Lives, Mark, Met, Operator,
    Point, Position, Receipt, ReceiptKey, planted,
};

/// What a home's store knows of its history when the home starts.
#[derive(Clone, Debug)]
pub struct HomeHistory {
    /// How often an operator has opened it as closed.
    pub incarnation: Incarnation,
    /// Its lives before this start.
    pub lives: Lives,
    /// The last mark that is stored: of the last life.
    pub mark: Mark,
    /// The key of its receipts.
    pub key: ReceiptKey,
    /// 64 random bits for the life that begins.
    pub random: u64,
    /// Why it is closed: only operators get in. None: it is open.
    pub closed: Option<Closed>,
    /// Its last openings by operators, the latest last.
    pub openings: Vec<HomeOpened>,
}

/// A receipt of this home that proves another history than the home's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherHistory {
    /// What proves it.
    pub receipt: Receipt,
    /// The name of the node that brought it.
    pub by: String,
}

/// An operator opens the home as one that goes on from an older state (rule R9).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reopen {
    /// It is a copy for a test.
    pub apart: bool,
    /// Who says so.
    pub by: Operator,
}

/// What a claim turns out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Judgement {
    /// All that it rests on is in this history.
    Known,
    /// Its receipt proves another history, which this home has not left behind by an operator's word.
    Another,
    /// Its receipt is this home's own, of a history that an operator has ended or that is older than the list.
    Left,
    /// Nothing proves it.
    Unproven,
}

/// The history of a running home.
///
/// The last receipt that was made is kept: one serves all who ask for one durable group.
#[derive(Debug)]
pub(super) struct OwnHistory {
    home: HomeId,
    incarnation: Incarnation,
    lives: Lives,
    key: ReceiptKey,
    /// The life that runs, and where the one before has ended.
    life: (LifeId, LifeEnd),
    last: Option<Receipt>,
}

impl OtherHistory {
    /// Why the home closes that has met it.
    pub fn closes(&self) -> Closed {
        Closed::OtherHistory(Met {
            by: self.by.clone(),
            incarnation: self.receipt.incarnation,
            point: self.receipt.point,
        })
    }
}

impl HomeHistory {
    /// The history of a new store.
    pub fn first(random: u64, key: ReceiptKey) -> Self {
        HomeHistory {
            incarnation: Incarnation::default(),
            lives: Lives::default(),
            mark: Mark::default(),
            key,
            random,
            closed: None,
            openings: Vec::new(),
        }
    }
}

impl OwnHistory {
    /// A life with this counter begins, where the log ends at a position and the clock at a ceiling.
    pub(super) fn new(
        home: HomeId,
        known: HomeHistory,
        counter: u32,
        (position, ceiling): (Position, u64),
    ) -> Self {
        let HomeHistory {
            incarnation,
            mut lives,
            mark,
            key,
            random,
            closed: _,
            openings: _,
        } = known;
        let life = LifeId { counter, random };
        let end_of_last = LifeEnd {
            mark,
            position,
            ceiling,
        };
        lives.begin(life, end_of_last);
        OwnHistory {
            home,
            incarnation,
            lives,
            key,
            life: (life, end_of_last),
            last: None,
        }
    }

    /// The life that runs, and where the one before has ended.
    pub(super) fn life(&self) -> (LifeId, LifeEnd) {
        let (mut life, end_of_last) = self.life;
        if planted::is(Bug::LifeNotDurable) {
            life.random = 0;
        }
        (life, end_of_last)
    }

    /// The incarnation of this home.
    pub(super) fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// How far a life has come in this history; `now` is how far this life is.
    pub(super) fn end_of(&self, life: LifeId, now: &LifeEnd) -> Option<LifeEnd> {
        self.lives.end_of(life, now)
    }

    /// The receipt of how far the home is; `now` has the highest promised clock as its ceiling.
    pub(super) fn receipt(&mut self, now: LifeEnd) -> Receipt {
        let is_same =
            |last: &Receipt| last.point.mark == now.mark && last.point.position == now.position;
        if let Some(last) = self.last.filter(is_same) {
            return last;
        }
        let point = Point {
            life: self.life.0,
            mark: now.mark,
            position: now.position,
            clock: now.ceiling,
        };
        let receipt = Receipt::new(self.home, self.incarnation, point, &self.key);
        self.last = Some(receipt);
        receipt
    }

    /// Judges a claim; `now` is how far this life is, with the reserved ceiling of its clock.
    pub(super) fn judge(&self, claim: &Claim, now: &LifeEnd) -> Judgement {
        let Claim {
            receipt,
            position,
            clock,
        } = claim;
        let is_believed = planted::is(Bug::ClaimsBelieved);
        if !receipt.is_of(self.home, &self.key) && !is_believed {
            return Judgement::Unproven;
        }
        let lives = &self.lives;
        let is_held = |point: &Point| match planted::is(Bug::MarksNotCompared) {
            true => lives.hold(
                &Point {
                    mark: now.mark.min(point.mark),
                    ..*point
                },
                now,
            ),
            false => lives.hold(point, now),
        };
        if !is_held(&receipt.point) {
            let is_left = receipt.incarnation < self.incarnation
                || lives
                    .oldest()
                    .is_some_and(|oldest| receipt.point.life.counter < oldest.counter)
                    && lives.len() >= LIVES_MAX;
            return match is_left {
                true => Judgement::Left,
                false => Judgement::Another,
            };
        }
        let own = Point {
            position: *position,
            clock: *clock,
            ..receipt.point
        };
        match is_held(&own) {
            true => Judgement::Known,
            false => Judgement::Unproven,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const HOME: HomeId = HomeId(1);

    fn at(mark: u64, position: u64, ceiling: u64) -> LifeEnd {
        LifeEnd {
            mark: Mark(mark),
            position: Position(position),
            ceiling,
        }
    }

    fn known() -> HomeHistory {
        HomeHistory::first(77, ReceiptKey::new([3; 32]))
    }

    fn first() -> OwnHistory {
        OwnHistory::new(HOME, known(), 1, (Position(0), 0))
    }

    /// A home in its second life; the first ended at mark 5, position 4 and ceiling 70.
    fn second() -> OwnHistory {
        let mut known = known();
        known.lives = first().lives;
        known.mark = Mark(5);
        OwnHistory::new(HOME, known, 2, (Position(4), 70))
    }

    fn claim_of(home: &mut OwnHistory, now: LifeEnd) -> Claim {
        let receipt = home.receipt(now);
        Claim {
            position: receipt.point.position,
            clock: receipt.point.clock,
            receipt,
        }
    }

    #[test]
    fn a_claim_of_a_life_is_known_up_to_its_end() {
        let mut first = first();
        let (home, now) = (second(), at(2, 6, 90));
        let known = claim_of(&mut first, at(5, 4, 70));
        assert_eq!(home.judge(&known, &now), Judgement::Known);
        // Traps R17 to R19: position, clock and mark each tell of what was lost.
        for lost in [at(6, 4, 70), at(5, 5, 70), at(5, 4, 71)] {
            // Another receipt is made where mark or position is another.
            first.last = None;
            let claim = claim_of(&mut first, lost);
            assert_eq!(home.judge(&claim, &now), Judgement::Another, "{lost:?}");
        }
        // Trap R39: a child's own number proves nothing.
        let above = Claim {
            position: Position(5),
            ..known
        };
        assert_eq!(home.judge(&above, &now), Judgement::Unproven);
    }

    #[test]
    fn what_an_operator_has_left_behind_closes_nobody() {
        let mut lost = second();
        let claim = claim_of(&mut lost, at(9, 9, 99));
        let mut opened = second();
        assert_eq!(opened.judge(&claim, &at(1, 1, 99)), Judgement::Another);
        opened.incarnation = opened.incarnation.next().expect("there are more");
        assert_eq!(opened.judge(&claim, &at(1, 1, 99)), Judgement::Left);
    }

    /// Trap R23.
    #[test]
    fn a_made_up_receipt_proves_nothing() {
        let forger = HomeHistory::first(77, ReceiptKey::new([9; 32]));
        let mut forger = OwnHistory::new(HOME, forger, 2, (Position(0), 0));
        let claim = claim_of(&mut forger, at(900, 900, u64::MAX));
        assert_eq!(second().judge(&claim, &at(1, 1, 99)), Judgement::Unproven);
    }

    #[test]
    fn one_receipt_serves_a_group() {
        let mut home = second();
        let first = home.receipt(at(2, 6, 90));
        assert_eq!(home.receipt(at(2, 6, 95)), first);
        assert_ne!(home.receipt(at(3, 6, 95)), first);
        assert_ne!(home.receipt(at(2, 7, 95)), first);
    }
}
