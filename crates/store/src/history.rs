//! What a store knows of its own history, and whether a start continues it (rule R9).

use crate::engine::{self, Opened};
use crate::origin::Origin;
use crate::record;
use crate::usage::KEYSPACE;
use serde::{Deserialize, Serialize};
use thorp_model::limits::OPENINGS_KEPT_MAX;
use thorp_model::{
    Closed, HomeOpened, HowOpened, Incarnation, LifeEnd, LifeId, Lives, Operator, ReceiptKey,
};

/// The history of a store: one record beside its usage.
///
/// Once closed it stays closed, over restarts, until an operator says how it goes on ([`Opening`]).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct History {
    pub(crate) incarnation: Incarnation,
    pub(crate) closed: Option<Closed>,
    pub(crate) lives: Lives,
    pub(crate) key: ReceiptKey,
    /// Where the store was when it was open last.
    pub(crate) origin: Option<Origin>,
    /// The last openings, at most [`OPENINGS_KEPT_MAX`], the latest last.
    pub(crate) openings: Vec<HomeOpened>,
}

/// How a store is opened: what its operator states about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Opening {
    /// Nothing. Without proof that it continues the newest history the store closes.
    #[default]
    Prove,
    /// Its directory was moved, and the old place is gone.
    Moved,
    /// It goes on from an older state. It gets the next incarnation.
    Restored {
        /// It is a copy for a test: with a key of its own, so that nothing of it proves anything to the original.
        apart: bool,
    },
    /// The same, while its home does not run. A store that would start open is left as it is.
    Confirmed {
        /// It is a copy for a test.
        apart: bool,
    },
}

/// An operator opens a store as what it is: a new incarnation begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reopening {
    /// It is a copy for a test.
    pub apart: bool,
    /// Who says so over the network. None: somebody at the home's machine.
    pub by: Option<Operator>,
}

/// What a directory shows of its past at a start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    pub(crate) has_note: bool,
    /// None if its file is missing, or is not to be looked at.
    pub(crate) origin: Option<Origin>,
    /// Whether the origin counts.
    pub(crate) origin_counts: bool,
}

impl History {
    /// The history of a store that has none yet: a new one, or one of an earlier build.
    pub(crate) fn new(key: ReceiptKey) -> History {
        History {
            incarnation: Incarnation::default(),
            closed: None,
            lives: Lives::default(),
            key,
            origin: None,
            openings: Vec::new(),
        }
    }

    /// How often an operator has opened it as closed.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Why it is closed; none if it is open.
    pub fn closed(&self) -> Option<Closed> {
        self.closed.clone()
    }

    /// The lives of its home.
    pub fn lives(&self) -> &Lives {
        &self.lives
    }

    /// The key of its home's receipts.
    pub fn key(&self) -> &ReceiptKey {
        &self.key
    }

    /// Its last openings, the latest last.
    pub fn openings(&self) -> &[HomeOpened] {
        &self.openings
    }

    /// It closes, unless it is.
    pub(crate) fn close(&mut self, why: Closed) {
        self.closed.get_or_insert(why);
    }

    /// The highest clock of a history that was met, as in [`thorp_model::Stamp::clock`].
    pub(crate) fn met_clock(&self) -> u64 {
        match &self.closed {
            Some(Closed::OtherHistory(met)) => met.point.clock,
            _ => 0,
        }
    }

    pub(crate) fn begin_life(&mut self, life: LifeId, end_of_last: LifeEnd) {
        self.lives.begin(life, end_of_last);
    }

    /// Closes it if nothing proves that the directory continues it.
    pub(crate) fn prove(&mut self, evidence: &Evidence) {
        if self.closed.is_none() {
            self.closed = self.unproven(evidence);
        }
    }

    /// What keeps it from going on here; none if it is proven.
    pub(crate) fn unproven(&self, evidence: &Evidence) -> Option<Closed> {
        if !evidence.has_note {
            return Some(Closed::NoNote);
        }
        // A store of an earlier build has recorded none.
        let known = self.origin.filter(|_| evidence.origin_counts)?;
        let is_there = evidence.origin.is_some_and(|found| found.is_same(known));
        (!is_there).then_some(Closed::OtherOrigin)
    }

    /// An operator states that the directory was moved. Nothing else is forgiven.
    pub(crate) fn moved(&mut self, evidence: &Evidence) {
        let forgiven = self.closed.take_if(|why| *why == Closed::OtherOrigin);
        let forgiven = forgiven.or_else(|| self.unproven(evidence));
        self.origin = None;
        self.prove(evidence);
        if self.closed.is_none() && forgiven == Some(Closed::OtherOrigin) {
            self.note_opened(HowOpened::Moved, None);
        }
    }

    /// An operator opens it as what it is. False if there are no more incarnations.
    #[must_use]
    pub(crate) fn reopen(
        &mut self,
        apart: Option<ReceiptKey>,
        (how, by): (HowOpened, Option<Operator>),
    ) -> bool {
        let Some(next) = self.incarnation.after(self.closed.as_ref()) else {
            return false;
        };
        self.incarnation = next;
        self.closed = None;
        self.origin = None;
        let how = match apart {
            Some(key) => {
                self.key = key;
                HowOpened::Apart
            }
            None => how,
        };
        self.note_opened(how, by);
        true
    }

    fn note_opened(&mut self, how: HowOpened, by: Option<Operator>) {
        let number = self.openings.last().map_or(1, |last| last.number + 1);
        if self.openings.len() >= OPENINGS_KEPT_MAX {
            self.openings.remove(0);
        }
        self.openings.push(HomeOpened {
            number,
            how,
            by,
            incarnation: self.incarnation,
            life: self.lives.last().map_or(0, |life| life.counter),
        });
    }

    /// The stored form, sealed.
    pub(crate) fn encode(&self) -> Vec<u8> {
        // Encoding into memory fails for no value of this type.
        let value = postcard::to_allocvec(&(FORM, self)).unwrap_or_default();
        record::seal(KEYSPACE, KEY, &value)
    }

    /// The history in a stored form, or what is wrong with it.
    pub(crate) fn decode(stored: &[u8]) -> Result<History, String> {
        let value = record::open(KEYSPACE, KEY, stored)?;
        match value.split_first() {
            Some((&FORM, history)) => {
                postcard::from_bytes(history).map_err(|error| error.to_string())
            }
            // Form 1 has no list of openings at its end.
            Some((&FORM_WITHOUT_OPENINGS, history)) => {
                postcard::from_bytes(&[history, &[0]].concat()).map_err(|error| error.to_string())
            }
            Some((form, _)) => Err(format!("its form is {form}, this program knows {FORM}")),
            None => Err("it is empty".to_owned()),
        }
    }
}

/// The history of an open store; none in one of an earlier build.
pub(crate) fn read(opened: &Opened) -> Result<Option<History>, String> {
    let stored = engine::unpanicked(|| opened.own.get(KEY))?;
    let stored = stored.map_err(|error| error.to_string())?;
    let decoded = stored.map(|stored| History::decode(&stored)).transpose();
    decoded.map_err(|detail| format!("the history record: {detail}"))
}

/// The key of the record.
pub(crate) const KEY: &[u8] = b"history";

/// The form of the record.
const FORM: u8 = 2;

/// The form of builds that kept no openings.
const FORM_WITHOUT_OPENINGS: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{Mark, NameId, Position};

    const CONFIRMED: (HowOpened, Option<Operator>) = (HowOpened::Confirmed, None);

    fn key(byte: u8) -> ReceiptKey {
        ReceiptKey::new([byte; 32])
    }

    fn origin() -> Option<Origin> {
        let dir = tempfile::tempdir().unwrap();
        Origin::of_or_made(dir.path()).unwrap()
    }

    fn history() -> History {
        let mut history = History::new(key(1));
        history.origin = origin();
        history
    }

    fn here(history: &History) -> Evidence {
        Evidence {
            has_note: true,
            origin: history.origin,
            origin_counts: true,
        }
    }

    #[test]
    fn without_note_or_at_another_place_it_closes_and_stays_so() {
        let mut history = history();
        history.prove(&here(&history));
        assert_eq!(history.closed(), None);
        let good = here(&history);
        let no_file = Evidence {
            origin: None,
            ..good
        };
        for (evidence, why) in [
            (
                Evidence {
                    has_note: false,
                    ..good
                },
                Closed::NoNote,
            ),
            (no_file, Closed::OtherOrigin),
        ] {
            let mut history = history.clone();
            history.prove(&evidence);
            assert_eq!(history.closed(), Some(why.clone()));
            history.prove(&good);
            assert_eq!(history.closed(), Some(why), "it stays closed");
        }
        history.prove(&Evidence {
            origin_counts: false,
            ..no_file
        });
        assert_eq!(history.closed(), None, "it was told not to look");
    }

    #[test]
    fn a_move_forgives_another_place_and_nothing_else() {
        let mut history = history();
        let elsewhere = Evidence {
            origin: None,
            ..here(&history)
        };
        history.prove(&elsewhere);
        history.moved(&elsewhere);
        assert_eq!(history.closed(), None);
        history.moved(&Evidence {
            has_note: false,
            ..elsewhere
        });
        assert_eq!(history.closed(), Some(Closed::NoNote));
        history.moved(&elsewhere);
        assert_eq!(history.closed(), Some(Closed::NoNote), "it stays closed");
    }

    #[test]
    fn an_operator_opens_it_with_the_next_incarnation() {
        let mut history = history();
        history.closed = Some(Closed::Salvaged);
        assert!(history.reopen(None, CONFIRMED));
        assert_eq!((history.incarnation().get(), history.closed()), (1, None));
        assert_eq!(history.key(), &key(1));
        assert!(history.reopen(Some(key(2)), CONFIRMED));
        assert_eq!(history.key(), &key(2), "a copy for a test proves nothing");
        while history.incarnation().next().is_some() {
            assert!(history.reopen(None, CONFIRMED));
        }
        history.closed = Some(Closed::NoNote);
        assert!(!history.reopen(None, CONFIRMED));
        assert_eq!(history.closed(), Some(Closed::NoNote), "nothing is changed");
    }

    #[test]
    fn each_opening_is_kept_until_there_are_too_many() {
        let mut history = history();
        let operator = Operator {
            id: NameId::of("olga"),
            name: "olga".to_owned(),
        };
        assert!(history.reopen(None, (HowOpened::Confirmed, Some(operator.clone()))));
        assert!(history.reopen(Some(key(2)), CONFIRMED));
        history.moved(&here(&history));
        let elsewhere = Evidence {
            origin: None,
            ..here(&self::history())
        };
        history.origin = origin();
        history.moved(&elsewhere);
        let kept: Vec<_> = history.openings().iter().collect();
        let how: Vec<HowOpened> = kept.iter().map(|opened| opened.how).collect();
        let moved = HowOpened::Moved;
        assert_eq!(how, [HowOpened::Confirmed, HowOpened::Apart, moved]);
        assert_eq!(kept[0].by, Some(operator));
        let numbers: Vec<u64> = kept.iter().map(|opened| opened.number).collect();
        assert_eq!(numbers, [1, 2, 3], "what needed no word is no opening");
        for _ in 0..OPENINGS_KEPT_MAX {
            assert!(history.reopen(None, CONFIRMED));
        }
        assert_eq!(history.openings().len(), OPENINGS_KEPT_MAX);
        assert_eq!(history.openings()[0].number, 4);
    }

    #[test]
    fn a_history_round_trips_and_damage_is_found() {
        let mut history = history();
        history.begin_life(
            LifeId {
                counter: 3,
                random: 4,
            },
            LifeEnd {
                mark: Mark(1),
                position: Position(2),
                ceiling: 3,
            },
        );
        history.closed = Some(Closed::OtherOrigin);
        let stored = history.encode();
        assert_eq!(History::decode(&stored), Ok(history.clone()));
        let mut old = postcard::to_allocvec(&(FORM_WITHOUT_OPENINGS, &history)).unwrap();
        assert_eq!(old.pop(), Some(0), "the list of openings is empty");
        let old = record::seal(KEYSPACE, KEY, &old);
        assert_eq!(History::decode(&old), Ok(history));
        let unknown = record::seal(KEYSPACE, KEY, &[3, 0]);
        let error = History::decode(&unknown).unwrap_err();
        assert!(error.contains("its form is 3"), "{error}");
        for at in 0..stored.len() {
            let mut wrong = stored.clone();
            wrong[at] ^= 1;
            assert!(History::decode(&wrong).is_err(), "byte {at}");
        }
    }
}
