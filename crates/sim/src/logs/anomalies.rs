//! Which anomalies the sessions of a mixed village have seen. What their preset excludes is a failure; the rest is counted.

use super::preset::{Anomaly, Preset, is_strong, is_tentative};
use super::record::{Read, Record, State};
use super::token::Token;
use super::world::World;
use crate::failure::{Checked, Failure};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// One that was seen.
struct Found {
    preset: Preset,
    anomaly: Anomaly,
    what: String,
}

/// What all sessions of a village did.
struct History<'a> {
    records: &'a [Record],
    /// The tokens of each object in the end, in their order.
    last: BTreeMap<u16, Vec<Token>>,
    saved: BTreeSet<Token>,
    /// Tokens that were answered, and whether by a commit.
    answered: BTreeMap<Token, bool>,
    rejected: BTreeSet<Token>,
    /// Which session wrote a token.
    writers: BTreeMap<Token, usize>,
}

/// Looks for anomalies in what sessions were told.
pub(super) fn judge(world: &mut World) -> Checked {
    if !world.plan.is_mixed {
        return Ok(());
    }
    let found = History::of(world)?.found();
    for Found {
        preset,
        anomaly,
        what,
    } in found
    {
        if preset.excludes(anomaly) {
            let what = format!("a session of {} has seen one: {what}", preset.name());
            return Err(Failure::new(anomaly.name(), what));
        }
        let name = format!("{}: {}", preset.name(), anomaly.name());
        *world.counts.answers.entry(Cow::Owned(name)).or_default() += 1;
    }
    Ok(())
}

/// Looks for one anomaly in a session, by its place among the records.
type Judge<'a> = fn(&History<'a>, usize) -> Option<String>;

impl<'a> History<'a> {
    fn of(world: &'a World) -> Checked<Self> {
        let first = world.members().next();
        let scribe = first.and_then(|no| world.nodes[no].scribe.as_ref());
        let mut last = BTreeMap::new();
        for slot in 0..world.plan.objects {
            let seen = scribe.and_then(|scribe| scribe.read(slot));
            let seen = seen.ok_or_else(|| Failure::new("end", "an object is not cached"))?;
            last.insert(slot, seen.committed);
        }
        let records = &world.ledger.records;
        let written = |(at, record): (usize, &'a Record)| {
            let tokens: Vec<Token> = record.written().collect();
            tokens.into_iter().map(move |token| (token, at))
        };
        let fates = &world.ledger.fates;
        let answered = fates
            .iter()
            .filter(|(_, fate)| fate.kept.is_some() || fate.is_committed);
        let rejected = fates.iter().filter(|(_, fate)| fate.is_rejected);
        Ok(History {
            records,
            saved: last.values().flatten().copied().collect(),
            last,
            answered: answered
                .map(|(token, fate)| (*token, fate.is_committed))
                .collect(),
            rejected: rejected.map(|(token, _)| *token).collect(),
            writers: records.iter().enumerate().flat_map(written).collect(),
        })
    }

    fn found(&self) -> Vec<Found> {
        let mut all = Vec::new();
        for (at, record) in self.records.iter().enumerate() {
            if !self.counts(record) {
                continue;
            }
            let judges: [(Anomaly, Judge<'a>); 10] = [
                (Anomaly::DirtyRead, Self::dirty_read),
                (Anomaly::LostUpdate, Self::lost_update),
                (Anomaly::WriteSkew, Self::write_skew),
                (Anomaly::StaleRead, Self::stale_read),
                (Anomaly::FracturedRead, Self::fractured_read),
                (Anomaly::CausalReversal, Self::causal_reversal),
                (Anomaly::NonMonotonicRead, Self::non_monotonic_read),
                (Anomaly::MissedOwnWrite, Self::missed_own_write),
                (Anomaly::LostAfterSaved, Self::lost_after_saved),
                (Anomaly::AppliedTwice, Self::applied_twice),
            ];
            for (anomaly, judge) in judges {
                if let Some(what) = judge(self, at) {
                    let what = format!("{what}; {record:?}");
                    all.push(Found {
                        preset: record.preset,
                        anomaly,
                        what,
                    });
                }
            }
        }
        all
    }

    /// A transaction that did not commit, or a session whose lock was lost, has told its program nothing.
    fn counts(&self, record: &Record) -> bool {
        !is_strong(&record.preset.consistency(true)) || record.state == State::Done
    }

    fn is_tentative(&self, record: &Record) -> bool {
        is_tentative(&record.preset.consistency(true))
    }

    /// What a session has taken an object for.
    fn view<'b>(&self, record: &Record, read: &'b Read) -> &'b [Token] {
        match self.is_tentative(record) {
            true => &read.shown,
            false => &read.committed,
        }
    }

    fn is_saved(&self, token: Token) -> bool {
        self.saved.contains(&token)
    }

    fn dirty_read(&self, at: usize) -> Option<String> {
        let record = &self.records[at];
        record.reads.iter().find_map(|read| {
            let never =
                |token: &&Token| !self.is_saved(**token) && self.writers.get(token) != Some(&at);
            let view = self.view(record, read);
            view.iter()
                .find(never)
                .map(|token| format!("{token:?} was never saved"))
        })
    }

    /// It wrote an object behind a token that it had not seen there.
    fn lost_update(&self, at: usize) -> Option<String> {
        let record = &self.records[at];
        record.written().find_map(|own| {
            let last = self.last.get(&own.slot())?;
            let before = last.split(|token| *token == own).next()?;
            let is_there = before.len() < last.len();
            let read = record.reads.iter().find(|read| read.slot == own.slot())?;
            let view = self.view(record, read);
            let unseen =
                |token: &&Token| !view.contains(token) && self.writers.get(token) != Some(&at);
            let unseen = before.iter().find(unseen).filter(|_| is_there)?;
            Some(format!(
                "{own:?} came behind {unseen:?}, which it had not seen"
            ))
        })
    }

    /// It and another session each wrote an object that the other one had read as of before.
    fn write_skew(&self, at: usize) -> Option<String> {
        let one = &self.records[at];
        let strong = is_strong(&one.preset.consistency(true));
        let others = self.records.iter().enumerate();
        let others = others.filter(|(other, record)| {
            let other_strong = is_strong(&record.preset.consistency(true));
            *other != at && self.counts(record) && (other_strong || !strong)
        });
        others
            .filter(|(_, other)| self.missed(one, other) && self.missed(other, one))
            .find_map(|(_, other)| {
                let wrote = |record: &Record| -> BTreeSet<u16> {
                    record
                        .written()
                        .filter(|token| self.is_saved(*token))
                        .map(Token::slot)
                        .collect()
                };
                wrote(one)
                    .is_disjoint(&wrote(other))
                    .then(|| format!("beside {other:?}"))
            })
    }

    /// Whether a session has read an object that another one wrote, as of before.
    fn missed(&self, reader: &Record, writer: &Record) -> bool {
        let mut written = writer.written().filter(|token| self.is_saved(*token));
        written.any(|token| {
            let mut reads = reader.reads.iter();
            reads.any(|read| read.slot == token.slot() && !self.view(reader, read).contains(&token))
        })
    }

    /// What was answered before it opened is missing: more of it than its bound allows, if it has one.
    fn stale_read(&self, at: usize) -> Option<String> {
        let record = &self.records[at];
        let consistency = record.preset.consistency(true);
        let missing = |read: &Read| -> Vec<Token> {
            let view = self.view(record, read);
            let is_missing =
                |token: &&Token| !view.contains(token) && !self.rejected.contains(token);
            let expected = match consistency.is_hard() {
                true => read.expected.iter().filter(is_missing).copied().collect(),
                false => Vec::new(),
            };
            match is_strong(&consistency) || !consistency.is_hard() {
                true => self.answered_before(record, read),
                false => expected,
            }
        };
        let missing: BTreeSet<Token> = record.reads.iter().flat_map(missing).collect();
        (missing.len() > record.may_miss).then(|| format!("it misses {missing:?}"))
    }

    /// Tokens that commits were answered for before a session opened, and that it does not see.
    fn answered_before(&self, record: &Record, read: &Read) -> Vec<Token> {
        let view = self.view(record, read);
        let is_missing = |token: &&Token| {
            let writer = self.writers.get(token).map(|at| &self.records[*at]);
            let ended = writer.and_then(|writer| writer.ended);
            self.answered.get(token) == Some(&true)
                && ended.is_some_and(|ended| ended < record.opened)
                && !view.contains(token)
        };
        let last = self.last.get(&read.slot);
        last.into_iter()
            .flatten()
            .filter(is_missing)
            .copied()
            .collect()
    }

    /// Of what another session gave out at once it saw a part.
    fn fractured_read(&self, at: usize) -> Option<String> {
        let record = &self.records[at];
        let others = self
            .records
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at);
        let units = others.flat_map(|(_, other)| &other.units);
        units.filter(|unit| unit.len() > 1).find_map(|unit| {
            let read_of = |token: &Token| {
                let read = record.reads.iter().find(|read| read.slot == token.slot())?;
                Some(self.view(record, read).contains(token))
            };
            let seen: Vec<bool> = unit.iter().filter_map(read_of).collect();
            let is_part = seen.contains(&true) && seen.contains(&false);
            (is_part && self.is_saved(unit[0])).then(|| format!("of {unit:?} it saw a part"))
        })
    }

    /// It saw a token, and not one that came before that for its writer.
    fn causal_reversal(&self, at: usize) -> Option<String> {
        let record = &self.records[at];
        let seen: BTreeSet<Token> = record
            .reads
            .iter()
            .flat_map(|read| self.view(record, read))
            .copied()
            .collect();
        let slots: BTreeSet<u16> = record.reads.iter().map(|read| read.slot).collect();
        seen.iter().find_map(|token| {
            let writer = self.writers.get(token).filter(|writer| **writer != at)?;
            let before = self.before(*writer, *token, self.is_tentative(record));
            let missed = before.into_iter().find(|before| {
                slots.contains(&before.slot()) && !seen.contains(before) && self.is_saved(*before)
            })?;
            Some(format!(
                "it saw {token:?}, and not {missed:?}, which came before"
            ))
        })
    }

    /// What the writer of a token had seen before, or had given out by the same way. Who reads what is committed asks for no more
    /// than what the writer had seen as committed.
    fn before(&self, writer: usize, token: Token, is_tentative: bool) -> BTreeSet<Token> {
        let record = &self.records[writer];
        let mut before: BTreeSet<Token> = BTreeSet::new();
        let way = self.answered.get(&token);
        for earlier in &self.records[..writer] {
            let is_over = earlier.ended.is_some_and(|ended| ended <= record.opened);
            if earlier.of == record.of && is_over {
                let same = |token: &Token| way.is_some() && self.answered.get(token) == way;
                before.extend(earlier.written().filter(same));
            }
        }
        for read in &record.reads {
            let seen = match is_tentative {
                true => self.view(record, read),
                false => &read.committed,
            };
            before.extend(seen);
        }
        before
    }

    /// An earlier session of its program saw more of an object.
    fn non_monotonic_read(&self, at: usize) -> Option<String> {
        let record = &self.records[at];
        let mine = self.is_tentative(record);
        let earlier = self.records[..at].iter();
        let earlier = earlier.filter(|earlier| {
            earlier.of == record.of
                && self.is_tentative(earlier) == mine
                && earlier.ended.is_some_and(|ended| ended <= record.opened)
        });
        earlier
            .flat_map(|earlier| &earlier.reads)
            .find_map(|before| {
                let now = record.reads.iter().find(|read| read.slot == before.slot)?;
                let view = self.view(record, now);
                let gone = self
                    .view(record, before)
                    .iter()
                    .find(|token| !view.contains(token))?;
                Some(format!("{gone:?} was there before"))
            })
    }

    /// What its program had written by the same way before it opened is missing.
    fn missed_own_write(&self, at: usize) -> Option<String> {
        let record = &self.records[at];
        let mine = self.is_tentative(record);
        let earlier = self.records[..at].iter();
        let mut own = earlier
            .filter(|earlier| {
                earlier.of == record.of && earlier.ended.is_some_and(|ended| ended <= record.opened)
            })
            .flat_map(Record::written)
            .filter(|token| {
                let way = self.answered.get(token);
                way.is_some_and(|is_commit| *is_commit || mine) && !self.rejected.contains(token)
            });
        own.find_map(|token| {
            let read = record.reads.iter().find(|read| read.slot == token.slot())?;
            (!self.view(record, read).contains(&token)).then(|| format!("{token:?} is its own"))
        })
    }

    fn lost_after_saved(&self, at: usize) -> Option<String> {
        let mut own = self.records[at].written();
        let lost = own.find(|token| {
            self.answered.contains_key(token)
                && !self.rejected.contains(token)
                && !self.is_saved(*token)
        })?;
        Some(format!("{lost:?} is nowhere"))
    }

    fn applied_twice(&self, at: usize) -> Option<String> {
        let record = &self.records[at];
        record.reads.iter().find_map(|read| {
            let mut once = BTreeSet::new();
            let view = self.view(record, read);
            let again = view.iter().find(|token| !once.insert(**token))?;
            Some(format!("{again:?} is there twice"))
        })
    }
}
