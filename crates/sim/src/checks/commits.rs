//! The order of commits: each is in the log once, does what it asked for and
//! nothing else, saw what was there just before it, and is never lost.

use crate::counts::kind_of;
use crate::failure::{Checked, demand};
use crate::history::{Asked, Reader};
use crate::oracle::{Changed, Object, Oracle};
use crate::world::World;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use thorp_model::change::patch;
use thorp_model::records::LogRecord;
use thorp_model::{
    Batch, CommitId, HomeId, NewValue, ObjectId, Outcome, PageNo, Part, Position, Refusal,
    SegmentId, Slot, Stamp, WriteOp,
};

type Staged = BTreeMap<(HomeId, SegmentId, PageNo), Arc<[u8]>>;

/// Batches have become durable: their commits are part of the truth now.
pub fn durable(world: &mut World, home: HomeId, batches: &[Batch]) -> Checked {
    for batch in batches {
        let Some(oracle) = world.oracles.get_mut(&home) else {
            continue;
        };
        for (record, changed) in oracle.take(batch)? {
            let now = world.now;
            world
                .trace
                .line(|| format!("{now:?} durable at home {home}: {record:?}"));
            check_stamp(world, home, &record)?;
            if record.commit.is_some() {
                world.counts.commits += 1;
                check_commit(world, home, &record, &changed)?;
                super::chains::in_the_log(world, home, &record)?;
            }
        }
        check_removals(world, home)?;
    }
    Ok(())
}

/// Only what somebody asked to remove is removed.
fn check_removals(world: &World, home: HomeId) -> Checked {
    let removed = world
        .oracles
        .get(&home)
        .into_iter()
        .flat_map(Oracle::removed);
    let asked = &world.history.removals;
    let unasked = removed.into_iter().find(|s| !asked.contains(&(home, *s)));
    demand!(
        unasked.is_none(),
        "removals",
        "segment {unasked:?} is removed, which nobody asked for"
    );
    Ok(())
}

fn check_stamp(world: &World, home: HomeId, record: &LogRecord) -> Checked {
    let joint = record.commit.is_some_and(|id| world.history.is_joint(id));
    demand!(
        joint || !world.oracles[&home].is_behind(record.position),
        "stamps",
        "position {} has stamp {:?}, which is not above all before it",
        record.position,
        record.stamp
    );
    let promised = world.promised.get(&home).copied().unwrap_or_default();
    demand!(
        record.stamp > promised,
        "watermark",
        "position {} has stamp {:?}, after {promised:?} was promised",
        record.position,
        record.stamp
    );
    Ok(())
}

fn check_commit(world: &World, home: HomeId, record: &LogRecord, changed: &Changed) -> Checked {
    let position = record.position;
    let (Some(id), Some(oracle)) = (record.commit, world.oracles.get(&home)) else {
        return Ok(());
    };
    let Some(asked) = world.history.sent.get(&id) else {
        // All homes of a rogue's transaction may agree: it reads and writes nothing.
        demand!(
            world.history.is_joint(id) && record.changes.is_empty(),
            "exactly once",
            "commit {id:?} at {position} was never sent"
        );
        return Ok(());
    };
    demand!(
        !asked.wrong,
        "refusals",
        "commit {id:?} at {position} should have been refused"
    );
    let told = world.history.told.get(&id);
    demand!(
        !matches!(told, Some(Outcome::Refused(_))),
        "exactly once",
        "commit {id:?} is at {position}; its program was told {told:?}"
    );
    let before = Position(position.0 - 1);
    check_seen(oracle, home, asked, before, "serializability")?;
    for part in asked.parts.iter().filter(|part| part.home == home) {
        check_evidence(world, oracle, id, part, before)?;
        check_effects(oracle, &world.history.staged, part, position, changed)?;
        super::rights::committed(oracle, id, part, asked.parts.len() > 1)?;
    }
    Ok(())
}

/// Everything a transaction saw is there as of a position.
pub fn check_seen(
    oracle: &Oracle,
    home: HomeId,
    asked: &Asked,
    position: Position,
    checker: &'static str,
) -> Checked {
    for ((_, object), seen) in asked.seen.iter().filter(|((h, _), _)| *h == home) {
        let (since, is) = oracle.object_at(*object, position);
        if is != *seen {
            let detail = format!(
                "{:?} saw {object} as {seen:?}; as of {position} it is {is:?} since {since}",
                asked.member
            );
            return Err(crate::failure::Failure::new(checker, detail));
        }
    }
    Ok(())
}

/// Rule 4: what was read, also by patching, creating and deleting, has not
/// changed since the evidence.
fn check_evidence(
    world: &World,
    oracle: &Oracle,
    id: CommitId,
    part: &Part,
    before: Position,
) -> Checked {
    // What it read of these, or wrote over, before they were delivered, it names.
    let named = |since: Position| {
        let mut named = world.history.names(id, part.home).iter();
        named.any(|id| oracle.commits.get(id).is_some_and(|(at, _)| *at == since))
    };
    let read = part.reads.iter();
    let read =
        read.flat_map(|(page, slots)| slots.iter().map(|slot| (*page, slot)).collect::<Vec<_>>());
    let written = part.writes.iter().flat_map(|writes| {
        let slots = writes.slots.iter().filter(|(_, op)| op.reads());
        slots
            .map(|(slot, _)| (writes.page, *slot))
            .collect::<Vec<_>>()
    });
    for (page, slot) in read.chain(written) {
        let object = ObjectId { page, slot };
        let (since, _) = oracle.object_at(object, before);
        demand!(
            since <= part.evidence || named(since),
            "serializability",
            "commit {id:?} depends on {object} as of {}; it was changed at {since}, before the \
             commit came after {before}",
            part.evidence
        );
    }
    Ok(())
}

/// A commit does what it asked for, and nothing else.
fn check_effects(
    oracle: &Oracle,
    staged: &Staged,
    part: &Part,
    position: Position,
    changed: &Changed,
) -> Checked {
    let before = Position(position.0 - 1);
    let mut expected = BTreeMap::new();
    for writes in &part.writes {
        for (slot, op) in &writes.slots {
            let object = ObjectId {
                page: writes.page,
                slot: *slot,
            };
            let was = oracle.object(object, before);
            let after = applied(op, &was, part.home, object, staged);
            let is = oracle.object(object, position);
            demand!(
                after.as_ref() == Some(&is),
                "effects",
                "at {position} {object} becomes {is:?}; {op:?} of {was:?} should give {after:?}"
            );
            expected.insert(object, ());
        }
        let extent = oracle.extent(writes.page, position);
        demand!(
            extent > writes.page.page || writes.page.page.is_system(),
            "effects",
            "at {position} page {} is written to, beyond the extent {extent}",
            writes.page
        );
        demand!(
            extent.is_of_objects(),
            "effects",
            "at {position} the extent of {} has become {extent}: a scan would visit system pages",
            writes.page
        );
    }
    for (object, is) in changed {
        let extent = object.page.page == PageNo(0) && object.slot == Slot(0);
        demand!(
            expected.contains_key(object) || extent,
            "effects",
            "at {position} {object} becomes {is:?}, which nobody asked for"
        );
    }
    Ok(())
}

/// What an operation makes of an object; none if it should have been refused.
fn applied(
    op: &WriteOp,
    was: &Object,
    home: HomeId,
    object: ObjectId,
    staged: &Staged,
) -> Option<Object> {
    let generation = op.generation();
    let bytes = |value: &NewValue| match value {
        NewValue::Inline(blob) => Some(blob.bytes().into()),
        NewValue::Staged(overflow) => staged
            .get(&(home, object.page.segment, overflow.first))
            .cloned(),
    };
    let same = was.value.is_some() && was.generation == generation;
    let value = match op {
        WriteOp::Create { value, .. } => {
            if was.value.is_some() || generation != was.generation.next() {
                return None;
            }
            Some(bytes(value)?)
        }
        _ if !same => return None,
        WriteOp::Write { value, .. } => Some(bytes(value)?),
        WriteOp::Patch { offset, bytes, .. } => {
            let base = was.value.as_ref()?;
            Some(patch(base, *offset, bytes.bytes())?.into())
        }
        WriteOp::Delete { .. } => None,
        WriteOp::Apply { procedures, .. } => {
            let mut value = was.value.as_ref()?.to_vec();
            for procedure in procedures {
                value = procedure.run(&value).ok()?;
            }
            Some(value.into())
        }
    };
    Some(Object { generation, value })
}

/// A program is told how its commit ended.
pub fn told(world: &mut World, id: CommitId, asked: &Rc<Asked>, outcome: &Outcome) -> Checked {
    match outcome {
        Outcome::Committed { position, stamp } => {
            committed(world, id, asked, *position)?;
            if !asked.writes.is_empty() {
                world.pace.committed(id.member, world.now);
            }
            stands(world, asked, *position, *stamp);
        }
        Outcome::Refused(refusal) => {
            world.counts.refused(kind_of(refusal));
            if *refusal == Refusal::Forgotten {
                world
                    .counts
                    .answered("outcomes forgotten with their members");
                world.history.forget_outcome(id);
                return Ok(());
            }
            for oracle in world.oracles.values() {
                demand!(
                    !oracle.commits.contains_key(&id),
                    "exactly once",
                    "{id:?} was refused as {refusal:?}; it is in the log at {:?}",
                    oracle.commits.get(&id)
                );
            }
        }
    }
    let at = |home: &HomeId| {
        let known = world.oracles.get(home)?.commits.get(&id)?;
        Some(known.0)
    };
    let homes = asked.parts.iter().map(|part| part.home);
    let positions = homes.filter_map(|home| Some((home, at(&home)?))).collect();
    world.history.tell(id, asked, outcome, &positions);
    Ok(())
}

/// One that only read at one home, and was told that it stands where it wanted, is held against the
/// order of stamps like one that asked nobody (rule 5).
fn stands(world: &mut World, asked: &Asked, position: Position, stamp: Stamp) {
    let [part] = &asked.parts[..] else {
        return;
    };
    if part.writes.is_empty() && stamp == asked.after {
        let seen = asked.seen.keys();
        let seen = seen.map(|(home, object)| (*home, *object, position));
        let seen = seen.collect();
        world.history.readers.push(Reader { stamp, seen });
    }
}

fn committed(world: &mut World, id: CommitId, asked: &Rc<Asked>, position: Position) -> Checked {
    demand!(!asked.wrong, "refusals", "{id:?} should have been refused");
    let alone = asked.parts.len() == 1;
    for part in &asked.parts {
        let Some(oracle) = world.oracles.get(&part.home) else {
            continue;
        };
        let at = oracle.commits.get(&id).map(|(at, _)| *at);
        let reads_only = part.writes.is_empty() && alone;
        demand!(
            reads_only || !alone || at == Some(position),
            "nothing is lost",
            "{id:?} was told to be at {position}; in the log of home {} it is at {at:?}",
            part.home
        );
        let Some(position) = at.or(alone.then_some(position)) else {
            // It is known to be committed, and has no place here yet: looked for in the end.
            continue;
        };
        let known = asked.acknowledged.get(&part.home).copied();
        demand!(
            known.is_none_or(|known| known <= position),
            "strictness",
            "{id:?} stands at {position}; {known:?} was acknowledged before it began"
        );
        if reads_only {
            demand!(
                position <= oracle.end,
                "durable first",
                "{id:?} stands at {position}, the log is durable to {}",
                oracle.end
            );
            check_seen(oracle, part.home, asked, position, "strictness")?;
            world.counts.strict_read_only += 1;
        }
    }
    Ok(())
}
