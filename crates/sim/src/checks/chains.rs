//! Commits that are not answered, and what is built on them (rule 14).

use crate::failure::{Checked, demand};
use crate::history::Asked;
use crate::node::Resident;
use crate::program::Transaction;
use crate::truth::{Object, Truth};
use crate::world::World;
use std::collections::BTreeMap;
use std::rc::Rc;
use thorp_core::door::{Answer, Publish};
use thorp_core::home::records::LogRecord;
use thorp_core::ids::{CommitId, HomeId, ObjectId, Place, Position};
use thorp_core::message::Outcome;

/// Notes whose values are shown.
pub fn published(resident: &mut Resident, publish: &Publish) {
    for (page, image) in &publish.images {
        let place = Place {
            home: publish.home,
            page: *page,
        };
        let own = publish.own.values.iter().filter(|(of, ..)| of == page);
        let own = own.map(|(_, _, commit)| *commit).collect();
        match image {
            Some(_) => resident.own.insert(place, own),
            None => resident.own.remove(&place),
        };
    }
}

/// Nothing is shown any more of a commit that its program is told to be refused: it could read it, and believe that it stands.
pub fn answered(resident: &Resident, answer: &Answer) -> Checked {
    let Answer::Outcome(id, Outcome::Refused(refusal), _) = answer else {
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
    let (Some(id), Some(truth)) = (record.commit, world.truths.get(&home)) else {
        return Ok(());
    };
    for named in world.history.names(id, home) {
        let at = truth.commits.get(named).map(|(position, _)| *position);
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

/// All that a transaction saw which has read own values before their place stands together at one position, with these
/// over it.
pub fn opacity(world: &World, truth: &Truth, transaction: &Transaction) -> Checked {
    let home = transaction.home;
    let own = transaction.reads.built_on().iter().map(|(_, id)| *id);
    let chain = world.history.chain(own);
    // What else it saw stood together before the first of these was in the log, or later.
    let stands = |position: Position| {
        let mut seen = transaction.seen.iter();
        seen.all(|((_, object), seen)| {
            let is = over(truth, &chain, (home, *object), position);
            is.is_none_or(|is| is == *seen)
        })
    };
    let mut positions = (0..=truth.end.0).rev().map(Position);
    demand!(
        positions.any(stands),
        "opacity",
        "a transaction that builds on {:?} saw {:?}: at no position all that stands together",
        chain.keys(),
        transaction.seen
    );
    Ok(())
}

/// An object as of a position and after the commits of a chain that are not in the log there; none if that is not known.
fn over(
    truth: &Truth,
    chain: &BTreeMap<CommitId, Rc<Asked>>,
    key: (HomeId, ObjectId),
    position: Position,
) -> Option<Object> {
    let is_open = |id: &CommitId| {
        let at = truth.commits.get(id).map(|(at, _)| *at);
        at.is_none_or(|at| at > position)
    };
    let open = chain.iter().rev().filter(|(id, _)| is_open(id));
    let mut written = open.filter_map(|(_, asked)| asked.writes.get(&key));
    match written.next() {
        Some(after) => after.clone(),
        None => Some(truth.object(key.1, position)),
    }
}
