//! Commits that are not answered, and what is built on them (rule 14).

use crate::failure::{Checked, demand};
use crate::history::{Asked, Seen};
use crate::node::Resident;
use crate::oracle::{Object, Oracle};
use crate::program::Transaction;
use crate::world::World;
use std::collections::BTreeMap;
use thorp_model::records::LogRecord;
use thorp_model::{CommitId, HomeId, ObjectId, Outcome, Place, Position, Publish};
use thorp_protocol::Response;

/// Notes whose values are shown.
pub fn published(resident: &mut Resident, publish: &Publish) {
    for (page, image) in &publish.images {
        let place = Place {
            home: publish.home,
            page: *page,
        };
        let own = publish.overlay.values.iter().filter(|(of, ..)| of == page);
        let own = own.map(|(_, _, commit)| *commit).collect();
        match image {
            Some(_) => resident.own.insert(place, own),
            None => resident.own.remove(&place),
        };
    }
}

/// Nothing is shown any more of a commit that its program is told to be refused: it could read it, and believe that it stands.
pub fn answered(resident: &Resident, answer: &Response) -> Checked {
    let Response::Outcome(id, Outcome::Refused(refusal), _) = answer else {
        return Ok(());
    };
    let shown = resident.own.iter().find(|(_, own)| own.contains(id));
    demand!(
        shown.is_none(),
        "chains",
        "{id:?} is refused as {refusal:?}; {shown:?} shows what it wrote"
    );
    Ok(())
}

/// What a commit names is in the log before it (trap 8), and what a program made one after the other is in that order.
pub fn in_the_log(world: &mut World, home: HomeId, record: &LogRecord) -> Checked {
    let (Some(id), Some(oracle)) = (record.commit, world.oracles.get(&home)) else {
        return Ok(());
    };
    for named in world.history.names(id, home) {
        let at = oracle.commits.get(named).map(|(position, _)| *position);
        demand!(
            at.is_some_and(|at| at < record.position),
            "chains",
            "{id:?} is at {}; it builds on {named:?}, which is at {at:?}",
            record.position
        );
    }
    let overtaken = world.history.take_place(home, id);
    demand!(
        overtaken.is_none(),
        "chains",
        "{id:?} at {} writes over {overtaken:?} what its session wrote there later",
        record.position
    );
    Ok(())
}

/// A transaction has read values of own commits at a home before these have their places there. All that it saw of the home
/// stands together at one position, with these commits over it, each of which finds there what it has seen itself.
pub fn opacity(world: &World, home: HomeId, oracle: &Oracle, transaction: &Transaction) -> Checked {
    let own = transaction
        .core
        .reads()
        .built_on()
        .iter()
        .filter(|(of, _)| *of == home)
        .map(|(_, id)| *id);
    let chain = world.history.chain(home, own);
    let stands = |position: Position| {
        let mut state = State {
            oracle,
            position,
            written: BTreeMap::new(),
        };
        let is_open = |id: &CommitId| {
            let at = oracle.commits.get(id).map(|(at, _)| *at);
            at.is_none_or(|at| at > position)
        };
        let mut open = chain.iter().filter(|(id, _)| is_open(id));
        open.all(|(_, asked)| state.take(home, asked)) && state.has(home, &transaction.seen)
    };
    let mut positions = (0..=oracle.end.0).rev().map(Position);
    demand!(
        positions.any(stands),
        "opacity",
        "a transaction that builds on {:?} saw {:?}: at no position all that stands together",
        chain.keys(),
        transaction.seen
    );
    Ok(())
}

/// A home as of a position, and after some commits that are not in its log there.
struct State<'a> {
    oracle: &'a Oracle,
    position: Position,
    /// What these made of objects; none if that is not known.
    written: BTreeMap<ObjectId, Option<Object>>,
}

impl State<'_> {
    /// Whether all that was seen of a home is so here, as far as it is known.
    fn has(&self, home: HomeId, seen: &Seen) -> bool {
        let mut seen = seen.iter().filter(|((of, _), _)| *of == home);
        seen.all(|((_, object), seen)| match self.written.get(object) {
            Some(after) => after.as_ref().is_none_or(|after| after == seen),
            None => self.oracle.object(*object, self.position) == *seen,
        })
    }

    /// A commit comes next, if it can.
    fn take(&mut self, home: HomeId, asked: &Asked) -> bool {
        let can = self.has(home, &asked.seen);
        let here = asked.writes.iter().filter(|((of, _), _)| *of == home);
        let here = here.map(|((_, object), after)| (*object, after.clone()));
        self.written.extend(here);
        can
    }
}
