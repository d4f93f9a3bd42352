//! What each batch is for. A full store refuses batches by that.

use crate::home::HomeCommand;
use crate::home::tests::decisions::{self, ask_with, asked_for};
use crate::home::tests::world::{HOME, OTHER, World, create, inline, on, page, register};
use alloc::vec;
use alloc::vec::Vec;
use thorp_model::limits::{INLINE_VALUE_BYTES_MAX, STAGED_SILENT_MS_MAX};
use thorp_model::{
    Blob, CallId, CallRequest, CommitId, Event, Mark, MemberId, NameId, Op, Purpose, Refusal,
    SegmentId, SpaceBound, Table, Up, message,
};

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

/// A vote may be as large as a commit, and nobody was told of it before it is durable.
#[test]
fn a_vote_is_new_data() {
    let mut world = decisions::world();
    let writes = vec![on(page(1), vec![create(1, inline(8))])];
    let id = ask_with(&mut world, OTHER, writes);
    let of_votes = purposes(
        &mut world,
        |op| matches!(op, Op::Put { key, .. } if key.starts_with(b"vote/")),
    );
    assert_eq!(of_votes, [Purpose::NewData]);
    assert!(world.vote(id).is_some());
}

/// It is refused before, if it does not fit.
#[test]
fn a_vote_that_does_not_fit_beside_what_it_brings_is_refused() {
    for (free, fits) in [(5_000, true), (2_500, false)] {
        let mut world = decisions::world();
        world.handle(Event::Command(HomeCommand::Space {
            free,
            room: free,
            of: SpaceBound::Volume,
            installs: true,
            as_of: Mark(u64::MAX),
        }));
        let id = asked_for(
            &mut world,
            vec![on(page(1), vec![create(1, inline(1_500))])],
        );
        world.sync();
        assert_eq!(world.vote(id).is_some(), fits, "{free} bytes");
        let is_full =
            matches!(world.outcome(id), Some(Err(Refusal::Full(lack))) if lack.needed > free);
        assert_eq!(is_full, !fits, "{:?}", world.outcome(id));
    }
}

/// They are so small that a store takes them while there is any room.
#[test]
fn extents_registrations_and_refusals_are_little_housekeeping() {
    let all = |world: &mut World| {
        let mut all = Vec::new();
        while let Some(batch) = world.next_batch() {
            assert!(batch.bytes() < 4 << 10, "{batch:?}");
            all.push(batch.purpose);
            world.sync_one();
        }
        all
    };
    let mut world = World::new(|_| {});
    world.call(CallRequest::Reserve {
        segment: SEGMENT,
        pages: 1,
    });
    assert_eq!(all(&mut world), [Purpose::Housekeeping]);
    let member = MemberId::new(NameId(7), 1);
    world.receive(Up::Call(message::Call {
        call: CallId { member, number: 1 },
        home: HOME,
        request: register(member, 1),
    }));
    assert_eq!(all(&mut world), [Purpose::Housekeeping]);
    let too_large = create(1, inline(INLINE_VALUE_BYTES_MAX + 1));
    let id = world.commit(vec![], vec![on(page(1), vec![too_large])]);
    assert_eq!(all(&mut world), [Purpose::Housekeeping]);
    assert!(matches!(
        world.outcome(id),
        Some(Err(Refusal::Invalid { .. }))
    ));
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
