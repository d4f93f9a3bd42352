//! What is durable, held against what programs did; and what nodes hold, against what is durable.

use super::branch::BranchNo;
use super::ledger::{Asked, FOUNDER, Told};
use super::world::World;
use crate::checks::validity::check_image;
use crate::failure::{Checked, Failure, demand};
use crate::time::NodeNo;
use thorp_model::records::LogRecord;
use thorp_model::{
    Batch, CommitId, Content, HomeId, Image, Outcome, PageId, Position, Refusal, Slot,
};

/// Batches have become durable in a history.
pub(super) fn durable(world: &mut World, branch: BranchNo, batches: &[Batch]) -> Checked {
    for batch in batches {
        let brought = world.branches[branch.0].take(batch)?;
        for record in &brought.commits {
            let now = world.now;
            world
                .trace
                .line(|| format!("{now:?} durable in {branch:?}: {record:?}"));
            commit(world, branch, record)?;
        }
        for id in brought.refused {
            refused(world, branch, id)?;
        }
    }
    Ok(())
}

fn commit(world: &mut World, branch: BranchNo, record: &LogRecord) -> Checked {
    let Some(id) = record.commit.filter(|id| id.member != FOUNDER) else {
        return Ok(());
    };
    world.counts.commits += 1;
    let Some(asked) = world.ledger.asked.get(&id).cloned() else {
        return Err(Failure::new(
            "exactly once",
            format!("{id:?} is in {branch:?}, and nobody asked for it"),
        ));
    };
    let told = world.ledger.told.get(&id);
    demand!(
        !told.is_some_and(|told| is_not_sent(&told.outcome)),
        "exactly once",
        "{id:?} is in {branch:?}; its program was told {told:?}"
    );
    seen(world, branch, &asked, (id, record.position))?;
    effects(world, branch, &asked, (id, record.position))?;
    generations(world, branch, &asked, (id, record.position))
}

/// The home has gone back, and the commit was not sent.
fn is_not_sent(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused(Refusal::WentBack))
}

/// Each history is serializable: what a transaction saw was there just before it.
fn seen(world: &World, branch: BranchNo, asked: &Asked, at: (CommitId, Position)) -> Checked {
    let (id, position) = at;
    let history = world.branch(branch);
    let before = Position(position.0 - 1);
    let own = asked.content.seen.iter();
    for ((_, object), seen) in own.filter(|((home, _), _)| *home == history.home) {
        let is = history.oracle.object(*object, before);
        demand!(
            is == *seen,
            "serializability",
            "{id:?} at {position} of {branch:?} saw {object} as {seen:?}; before it, it was {is:?}"
        );
    }
    Ok(())
}

/// A commit does what it asked for.
fn effects(world: &World, branch: BranchNo, asked: &Asked, at: (CommitId, Position)) -> Checked {
    let (id, position) = at;
    let history = world.branch(branch);
    let own = asked.content.written.iter();
    for ((_, object), written) in own.filter(|((home, _), _)| *home == history.home) {
        let is = history.oracle.object(*object, position).value;
        demand!(
            is == *written,
            "effects",
            "{id:?} at {position} of {branch:?} wrote {written:?} to {object}, which is {is:?}"
        );
    }
    Ok(())
}

/// A reference to a lost object never names another one: no later incarnation gives its generation again.
fn generations(
    world: &mut World,
    branch: BranchNo,
    asked: &Asked,
    at: (CommitId, Position),
) -> Checked {
    let (id, position) = at;
    let history = &world.branches[branch.0];
    let (home, incarnation) = (history.home, history.incarnation.get());
    let created = asked.content.written.keys().filter(|(of, object)| {
        let before = history.oracle.object(*object, Position(position.0 - 1));
        *of == home && before.value.is_none()
    });
    for (home, object) in created {
        let is = history.oracle.object(*object, position);
        if is.value.is_none() {
            continue;
        }
        let key = ((*home, *object), is.generation.0);
        let (before, earlier) = *world.ledger.made.entry(key).or_insert((id, incarnation));
        demand!(
            before == id || earlier >= incarnation,
            "generations",
            "{id:?} makes {object} in {branch:?} of incarnation {incarnation} with generation {}, \
             which {before:?} gave in incarnation {earlier}",
            is.generation
        );
    }
    Ok(())
}

/// A part of a transaction over several homes is refused. Where another home has gone back, and was opened by an operator, its
/// vote may be lost: then nobody decides without it (trap R42).
fn refused(world: &World, branch: BranchNo, id: CommitId) -> Checked {
    let Some(asked) = world.ledger.asked.get(&id).filter(|a| a.homes.len() > 1) else {
        return Ok(());
    };
    let own = world.branch(branch);
    let others = asked.homes.iter().filter(|home| **home != own.home);
    for home in others {
        let nodes = world.nodes_of(*home);
        let followed: Vec<BranchNo> = nodes.iter().filter_map(|no| world.branch_of(*no)).collect();
        let is_open = followed.iter().all(|no| !world.branch(*no).knows(id));
        let incarnation = followed
            .iter()
            .map(|no| world.branch(*no).incarnation)
            .min();
        let lost = world.branches.iter().find(|history| {
            history.home == *home
                && history.oracle.commits.contains_key(&id)
                && incarnation.is_some_and(|now| history.incarnation < now)
        });
        demand!(
            !is_open || lost.is_none() || is_back(world, branch, id),
            "surviving homes",
            "{id:?} is refused in {branch:?}; home {home} had committed it, and was opened since"
        );
    }
    Ok(())
}

/// Whether another history of the same home has taken part: what this one says of it was said without knowing that.
fn is_back(world: &World, branch: BranchNo, id: CommitId) -> bool {
    world.others_of(branch).any(|other| other.knows(id))
}

/// A program is told an outcome.
pub(super) fn told(world: &mut World, no: NodeNo, id: CommitId, outcome: &Outcome) -> Checked {
    let Some(asked) = world.ledger.asked.get(&id).cloned() else {
        return Ok(());
    };
    let followed = asked.homes.iter();
    let followed = followed.filter_map(|home| Some((*home, world.streams.followed(no, *home)?)));
    let told = Told {
        outcome: outcome.clone(),
        event: world.counts.events,
        branches: followed.collect(),
    };
    if asked.content.written.is_empty() {
        validated(world, &asked, &told)?;
        world.ledger.told.insert(id, told);
        return Ok(());
    }
    let has = |history: &super::branch::Branch| history.oracle.commits.contains_key(&id);
    let mut followed = told.branches.values().map(|no| world.branch(*no));
    match outcome {
        Outcome::Committed { .. } => {
            for home in &asked.homes {
                let mut histories = world.branches.iter().filter(|h| h.home == *home);
                demand!(
                    histories.any(|history| history.knows(id)),
                    "told",
                    "{id:?} was told to be committed; home {home} has no part of it"
                );
            }
        }
        Outcome::Refused(Refusal::WentBack) => demand!(
            !world.branches.iter().any(has),
            "told",
            "{id:?} was told not to be sent, and is in a history"
        ),
        Outcome::Refused(Refusal::Lost | Refusal::Forgotten) if asked.homes.len() > 1 => {}
        Outcome::Refused(_) => demand!(
            !followed.any(has),
            "told",
            "{id:?} was told to be {outcome:?}, and is in the history"
        ),
    }
    world.ledger.told.insert(id, told);
    Ok(())
}

/// A home has validated what a transaction saw there, as of a position.
fn validated(world: &World, asked: &Asked, told: &Told) -> Checked {
    let Outcome::Committed { position, .. } = told.outcome else {
        return Ok(());
    };
    let (true, Some(branch)) = (asked.homes.len() == 1, told.branches.values().next()) else {
        return Ok(());
    };
    for ((_, object), seen) in &asked.content.seen {
        let is = world.branch(*branch).oracle.object(*object, position);
        demand!(
            is == *seen,
            "serializability",
            "{object} of {branch:?} was validated at {position} as {seen:?}; it was {is:?}"
        );
    }
    Ok(())
}

/// A node holds nothing but the history whose stream it follows, as of where it stands.
pub(super) fn holds(world: &World, no: NodeNo) -> Checked {
    let node = &world.nodes[no.0];
    let Some(machine) = &node.machine else {
        return Ok(());
    };
    for home in world.plan.home_ids() {
        let Some(branch) = world.streams.followed(no, home) else {
            continue;
        };
        let oracle = &world.branch(branch).oracle;
        let Some(position) = machine.position(home) else {
            continue;
        };
        demand!(
            position <= oracle.end,
            "validity",
            "{} stands at {position} of {branch:?}, which ends at {}",
            node.name,
            oracle.end
        );
        for (page, image) in machine.images(home) {
            check_image(oracle, &node.name, page, &image, position)?;
        }
        for (page, image) in machine.shown(home) {
            shown(
                world,
                no,
                (home, page),
                &image,
                &oracle.image(page, position),
            )?;
        }
    }
    Ok(())
}

/// Whatever else a program is shown, it has written itself: it has no answer yet, or was told before the homes had it.
fn shown(
    world: &World,
    no: NodeNo,
    (home, page): (HomeId, PageId),
    image: &Image,
    is: &Image,
) -> Checked {
    let node = &world.nodes[no.0];
    let process = (no, node.life);
    for slot in (0..image.slots()).map(Slot) {
        let held = image.slot(slot);
        if held.1 == Content::Hole || held == is.slot(slot) {
            continue;
        }
        let value = match held.1 {
            Content::Value(bytes) => Some(bytes),
            _ => None,
        };
        let at = (home, thorp_model::ObjectId { page, slot });
        let open = world.ledger.asked.iter().filter(|(id, asked)| {
            let told = world.ledger.told.get(id);
            let is_refused = told.is_some_and(|told| matches!(told.outcome, Outcome::Refused(_)));
            asked.process == process && !is_refused
        });
        let mut written = open.filter(|(_, asked)| {
            let written = asked.content.written.get(&at);
            written.is_some_and(|written| written.as_deref() == value)
        });
        demand!(
            written.any(|(_, asked)| !world.ledger.is_warned(process, home, asked.event)),
            "lost values",
            "{} shows page {page} slot {slot} as {held:?}, which is in none of its histories and \
             not its own",
            node.name
        );
    }
    Ok(())
}
