//! How a commit ended is durable before its home tells it, whichever way it ended (rule 11), and a
//! program that is told of its commit finds what it wrote (rules 3 and 13).

use crate::failure::{Checked, demand};
use crate::time::NodeNo;
use crate::world::World;
use std::collections::BTreeSet;
use thorp_cache::Cache;
use thorp_model::{
    CallRequest, CallResponse, CommitId, Down, HomeId, Image, Outcome, PageChange, PageSlots,
    PageWrites, Part, Place, Position, Refusal, Stamp, Up, change, message,
};
use thorp_protocol::Response;

/// Notes whose outcome a call asks for: the answer names only the call.
pub fn asked(world: &mut World, message: &Up) {
    if let Up::Call(message::Call {
        call,
        request: CallRequest::Outcome { commit, .. },
        ..
    }) = message
    {
        let of_call = world.history.outcome_calls.entry(*call).or_default();
        of_call.insert(*commit);
    }
}

/// Looks at what a home tells of commits: to members, sites and other homes.
pub fn sent(world: &World, from: NodeNo, message: &Down) -> Checked {
    let Some((home, _)) = &world.nodes[from.0].home else {
        return Ok(());
    };
    let Some((ids, outcome)) = told_by(world, message) else {
        return Ok(());
    };
    demand!(
        ids.iter().any(|id| is_durable(world, *home, *id, &outcome)),
        "told",
        "home {home} tells that {ids:?} ended as {outcome:?}, which is not durable there"
    );
    Ok(())
}

/// The outcome in a message, and whose it is. A process that keeps no rules may have asked for
/// several by one call: then it is that of one of them.
fn told_by(world: &World, message: &Down) -> Option<(BTreeSet<CommitId>, Outcome)> {
    let (id, outcome) = match message {
        Down::Step(step) => (step.commit?, committed(step.position, step.stamp)),
        Down::Committed(message::Committed {
            commit,
            position,
            stamp,
            ..
        }) => (*commit, committed(*position, *stamp)),
        Down::Refused(message::Refused {
            commit, refusal, ..
        }) => (*commit, Outcome::Refused(refusal.clone())),
        Down::CallResult(message::CallResult {
            call,
            result: Ok(CallResponse::Outcome(outcome)),
            ..
        }) => {
            let asked = world.history.outcome_calls.get(call);
            return Some((asked.cloned().unwrap_or_default(), outcome.clone()));
        }
        _ => return None,
    };
    Some((BTreeSet::from([id]), outcome))
}

fn committed(position: Position, stamp: Stamp) -> Outcome {
    Outcome::Committed { position, stamp }
}

/// Whether a home that starts again now would say the same.
fn is_durable(world: &World, home: HomeId, id: CommitId, outcome: &Outcome) -> bool {
    let oracle = &world.oracles[&home];
    match outcome {
        Outcome::Committed { position, stamp } => {
            let logged = oracle.commits.get(&id);
            let is_written = || leaves_a_trace(world, home, id);
            logged.map_or_else(|| !is_written(), |logged| *logged == (*position, *stamp))
        }
        // It ends nothing, or nothing is known any more.
        Outcome::Refused(refusal) => {
            refusal.leaves_id_usable()
                || *refusal == Refusal::Forgotten
                || oracle.refused.get(&id) == Some(refusal)
        }
    }
}

/// Whether a commit is in the log of a home, once it is committed: what only reads at one home is
/// judged, and then nothing is left of it. Whoever keeps no rules gives one id to a commit that is
/// logged and to one that is not.
fn leaves_a_trace(world: &World, home: HomeId, id: CommitId) -> bool {
    let Some(asked) = world.history.sent.get(&id) else {
        return false;
    };
    let mut here = asked.parts.iter().filter(|part| part.home == home);
    asked.parts.len() > 1 || here.any(|part| !part.writes.is_empty())
}

/// Looks at what a program is told of its commit. All that was published before is in its cache,
/// where it reads on: at one home as of the commit, and at several what it wrote is shown.
pub fn answered(world: &World, no: NodeNo, answer: &Response) -> Checked {
    let Response::Outcome(id, Outcome::Committed { position, .. }, _) = answer else {
        return Ok(());
    };
    let resident = world.nodes[no.0].resident.as_ref();
    let (Some(resident), Some(asked)) = (resident, world.history.sent.get(id)) else {
        return Ok(());
    };
    let is_alone = asked.parts.len() == 1;
    for part in &asked.parts {
        let logged = world.oracles[&part.home].commits.get(id);
        let at = match is_alone {
            true => Some(*position),
            false => logged.map(|(at, _)| *at),
        };
        let stands = resident.cache.position(part.home);
        let is_there = at.is_some_and(|at| at <= stands);
        demand!(
            is_there || (!is_alone && is_shown(world, &resident.cache, part)),
            "told",
            "a program at {} hears that {id:?} is committed, at {at:?} of home {}; it reads as of {stands}",
            world.nodes[no.0].name,
            part.home
        );
    }
    Ok(())
}

/// Whether no page shows what was there before a part that is not delivered yet.
fn is_shown(world: &World, cache: &Cache, part: &Part) -> bool {
    let (home, oracle) = (part.home, &world.oracles[&part.home]);
    part.writes.iter().all(|writes| {
        let page = writes.page;
        let shown = cache.image(Place { home, page });
        shown.is_none_or(|shown| {
            let before = oracle.image(page, cache.position(home));
            !shows_old(&shown, &before, writes)
        })
    })
}

/// Whether a slot is as it was before, and would be something else after the writes.
fn shows_old(shown: &Image, before: &Image, writes: &PageWrites) -> bool {
    let slots = writes.slots.iter();
    let slots = slots.map(|(slot, op)| (*slot, op.effect())).collect();
    let change = PageChange {
        page: writes.page,
        slots: PageSlots::Some(slots),
    };
    let after = change::apply(before, &change, before.version(), before.stamp());
    after.is_some_and(|after| {
        let mut slots = writes.slots.iter().map(|(slot, _)| *slot);
        slots.any(|slot| {
            let was = before.slot(slot);
            shown.slot(slot) == was && after.slot(slot) != was
        })
    })
}
