//! How the transactions of two sessions at two homes become one (rule 10).

use super::session::{Phase, Session, Waiting};
use super::transaction::Transaction;
use crate::history::Asked;
use std::collections::BTreeMap;
use std::rc::Rc;
use thorp_cache::Cache;
use thorp_model::snapshot::ReadPoint;

impl Session {
    /// Its transaction becomes one with another session's at another home of the same member, if
    /// both are fit for that: tells what is asked then.
    pub fn join(&mut self, other: &mut Session, cache: &Cache) -> Option<Rc<Asked>> {
        let Phase::Committing(own) = &mut self.phase else {
            return None;
        };
        let fits = other.home != self.home && !own.asked.wrong;
        let Phase::Pairing(transaction) = &mut other.phase else {
            return None;
        };
        let part = transaction.part(cache).filter(|_| fits)?;
        let learned = transaction.learned();
        let seen = transaction.core.after().max(other.stamp_floor);
        let mut depends_on = own.asked.depends_on.clone();
        depends_on.extend(transaction.core.depends_on());
        let mut asked = Asked {
            parts: own.asked.parts.iter().cloned().chain([part]).collect(),
            seen: own.asked.seen.clone(),
            acknowledged: BTreeMap::new(),
            after: own.asked.after.max(seen),
            depends_on,
            writes: own.asked.writes.clone(),
            ..*own.asked
        };
        asked.writes.extend(transaction.written());
        asked.parts.sort_by_key(|part| part.home);
        asked.seen.extend(transaction.seen.clone());
        for (home, known) in [
            (self.home, &own.asked.acknowledged),
            (other.home, &transaction.acknowledged),
        ] {
            let known = known.get(&home).copied();
            asked.acknowledged.extend(known.map(|known| (home, known)));
        }
        let asked = Rc::new(asked);
        own.asked = asked.clone();
        other.wait += 1;
        other.phase = Phase::Committing(Box::new(Waiting {
            asked: asked.clone(),
            floor: other.floor,
            learned,
            transaction: None,
        }));
        Some(asked)
    }

    /// Its transaction that only read, if it waits for another one: with what it has read.
    pub fn reader(&mut self, cache: &Cache) -> Option<ReadPoint> {
        let home = self.home;
        let Phase::Pairing(transaction) = &mut self.phase else {
            return None;
        };
        let reads = transaction.is_read_only() && !self.strict;
        reads.then(|| transaction.core.read_point(cache, home).ok())?
    }

    /// The transaction that waits for another one.
    pub fn pairing(&self) -> Option<&Transaction> {
        match &self.phase {
            Phase::Pairing(transaction) => Some(transaction),
            _ => None,
        }
    }

    /// The transaction that waited for another one is done with it.
    pub fn paired(&mut self) -> Option<Box<Transaction>> {
        match std::mem::replace(&mut self.phase, Phase::Resting) {
            Phase::Pairing(transaction) => Some(transaction),
            other => {
                self.phase = other;
                None
            }
        }
    }
}
