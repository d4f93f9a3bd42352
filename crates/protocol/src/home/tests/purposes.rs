//! What each batch is for. A full store refuses batches by that.

use crate::home::tests::world::{World, create, inline, on, page};
use alloc::vec;
use alloc::vec::Vec;
use thorp_model::limits::STAGED_SILENT_MS_MAX;
use thorp_model::{Blob, CallRequest, CommitId, Op, Purpose, SegmentId, Table};

const SEGMENT: SegmentId = SegmentId(1);
const TOKEN: u64 = 1;

fn is_put(op: &Op, wanted: Table) -> bool {
    matches!(op, Op::Put { table, .. } if *table == wanted)
}

fn is_delete(op: &Op, wanted: Table) -> bool {
    matches!(op, Op::Delete { table, .. } if *table == wanted)
}

/// Everything becomes durable. The purposes of the batches with an operation like this, in order.
fn purposes(world: &mut World, is_like: impl Fn(&Op) -> bool) -> Vec<Purpose> {
    let mut purposes = Vec::new();
    while let Some(batch) = world.next_batch() {
        if batch.ops.iter().any(&is_like) {
            purposes.push(batch.purpose);
        }
        world.sync_one();
    }
    purposes
}

fn commit_one(world: &mut World) -> CommitId {
    world.commit(vec![], vec![on(page(1), vec![create(1, inline(8))])])
}

fn stage(world: &mut World) {
    world.call(CallRequest::Stage {
        segment: SEGMENT,
        registration: world.registration,
        token: TOKEN,
        bytes: 100,
        index: 0,
        chunks: vec![Blob::from(vec![b's'; 100])],
    });
}

#[test]
fn commits_and_staged_values_are_new_data() {
    let mut world = World::new(|_| {});
    let id = commit_one(&mut world);
    let of_log = purposes(&mut world, |op| is_put(op, Table::Log));
    assert_eq!(of_log, [Purpose::NewData]);
    assert_eq!(world.outcome(id), Some(Ok(())));
    stage(&mut world);
    let of_staged = purposes(&mut world, |op| is_put(op, Table::Staged));
    assert_eq!(of_staged, [Purpose::NewData]);
}

/// The removal of a segment has to be possible in a full store: it frees space.
#[test]
fn the_removal_of_a_segment_is_no_new_data() {
    let mut world = World::new(|_| {});
    commit_one(&mut world);
    world.sync();
    world.call(CallRequest::Remove { segment: SEGMENT });
    let of_log = purposes(&mut world, |op| is_put(op, Table::Log));
    assert_eq!(of_log, [Purpose::Housekeeping]);
}

#[test]
fn a_value_that_is_unstaged_or_expires_is_a_removal() {
    let mut world = World::new(|_| {});
    stage(&mut world);
    world.sync();
    world.call(CallRequest::Unstage {
        registration: world.registration,
        token: TOKEN,
    });
    let of_staged = purposes(&mut world, |op| is_delete(op, Table::Staged));
    assert_eq!(of_staged, [Purpose::Removal]);

    let mut world = World::new(|_| {});
    stage(&mut world);
    world.sync();
    world.wait(2 * STAGED_SILENT_MS_MAX);
    let of_staged = purposes(&mut world, |op| is_delete(op, Table::Staged));
    assert_eq!(of_staged, [Purpose::Removal]);
    assert_eq!(world.size("staged"), 0);
}
