//! What a full home takes out of the room that it keeps back (rule R7).

use crate::home::HomeCommand;
use crate::home::tests::world::{HOME, SITE, World, create, inline, on, page, register};
use alloc::vec;
use alloc::vec::Vec;
use thorp_model::limits::{HEARTBEAT_MS, MOB_FULL_TIMES};
use thorp_model::{
    Blob, CallError, CallId, CommitId, Down, Event, Generation, Lack, Mark, MemberId, Message,
    NameId, NewValue, Op, PageId, Purpose, RIGHTS_SLOT, Refusal, Slot, SpaceBound, Table, Up,
    WriteOp, message,
};

/// A late mark: the report covers everything.
const ALL: Mark = Mark(u64::MAX);

fn fill(world: &mut World, room: u64) {
    fill_where(world, room, true);
}

fn fill_where(world: &mut World, room: u64, installs: bool) {
    let space = HomeCommand::Space {
        free: 0,
        room,
        of: SpaceBound::Limit,
        installs,
        as_of: ALL,
    };
    world.handle(Event::Command(space));
    world.handle(Event::Command(HomeCommand::Lacks(Some(Lack::OF_ALL))));
}

fn delete(world: &mut World, slot: u16) -> CommitId {
    let op = WriteOp::Delete {
        generation: Generation(1),
    };
    world.commit(vec![], vec![on(page(1), vec![(Slot(slot), op)])])
}

fn set_list(world: &mut World, list: &[u8]) -> CommitId {
    let op = WriteOp::Write {
        generation: Generation(1),
        value: NewValue::Inline(Blob::from(list)),
    };
    world.commit(vec![], vec![on(PageId::new(1, 0), vec![(RIGHTS_SLOT, op)])])
}

/// Everything becomes durable: the purposes of the batches with a log record that changes something, in order.
fn logged(world: &mut World) -> Vec<Purpose> {
    let mut purposes = Vec::new();
    while let Some(batch) = world.next_batch() {
        let logs = |op: &Op| {
            matches!(
                op,
                Op::Put {
                    table: Table::Log,
                    ..
                }
            )
        };
        if batch.ops.iter().any(logs) {
            purposes.push(batch.purpose);
        }
        world.sync_one();
    }
    purposes
}

fn registers(world: &mut World, name: u64, random: u64) -> Result<(), CallError> {
    let member = MemberId::new(NameId(name), random);
    let call = CallId { member, number: 1 };
    world.receive_on(
        SITE,
        Message::Up(Up::Call(message::Call {
            call,
            home: HOME,
            request: register(member, 1),
        })),
    );
    world.sync();
    let mut answers = world.sent.iter().rev().filter_map(|down| match down {
        Down::CallResult(answer) if answer.call == call => Some(answer.result.clone()),
        _ => None,
    });
    answers.next().expect("an answer").map(|_| ())
}

#[test]
fn a_full_store_deletes_however_much_is_modified() {
    let mut world = World::new(|config| config.mob_bytes_high = 100);
    let slots = (0..3).map(|slot| create(slot, inline(500))).collect();
    world.commit(vec![], vec![on(page(1), slots)]);
    fill_where(&mut world, 9_000, false);
    world.sync();
    assert!(
        world.size("mob_bytes") > 100 * MOB_FULL_TIMES,
        "nothing is installed"
    );
    let deleted = delete(&mut world, 1);
    world.sync();
    assert_eq!(world.outcome(deleted), Some(Ok(())));
    assert!(world.size("log") > 0);
    fill(&mut world, 9_000);
    world.sync();
    assert_eq!(world.size("log"), 0, "it is installed when there is room");
}

#[test]
fn a_deletion_and_a_list_come_out_of_the_room_and_are_installed_at_once() {
    let mut world = World::new(|_| {});
    let slots = (0..3).map(|slot| create(slot, inline(500))).collect();
    world.commit(vec![], vec![on(page(1), slots)]);
    world.sync();
    assert!(world.size("log") > 0);
    fill(&mut world, 4_000);
    let refused = world.commit(vec![], vec![on(page(2), vec![create(0, inline(8))])]);
    assert_eq!(
        world.outcome(refused),
        Some(Err(Refusal::Full(Lack::OF_ALL)))
    );
    let deleted = delete(&mut world, 0);
    assert_eq!(logged(&mut world), [Purpose::Kept]);
    assert_eq!(world.outcome(deleted), Some(Ok(())));
    let listed = set_list(&mut world, b"admin #0000000000000000\n");
    let kept = logged(&mut world);
    assert_eq!(world.outcome(listed), Some(Ok(())));
    assert_eq!(kept.first(), Some(&Purpose::Kept));
    assert_eq!(world.size("log"), 0, "what was taken is given back");
    // With space again it is a commit like any other.
    world.handle(Event::Command(HomeCommand::Lacks(None)));
    let space = HomeCommand::Space {
        free: 90_000,
        room: 90_000,
        of: SpaceBound::Limit,
        installs: true,
        as_of: ALL,
    };
    world.handle(Event::Command(space));
    let deleted = delete(&mut world, 1);
    assert_eq!(logged(&mut world).first(), Some(&Purpose::NewData));
    assert_eq!(world.outcome(deleted), Some(Ok(())));
}

#[test]
fn a_room_that_is_used_up_takes_nothing() {
    let mut world = World::new(|_| {});
    world.commit(vec![], vec![on(page(1), vec![create(0, inline(500))])]);
    world.sync();
    fill(&mut world, 100);
    let refused = delete(&mut world, 0);
    assert_eq!(
        world.outcome(refused),
        Some(Err(Refusal::Full(Lack::OF_ALL)))
    );
}

#[test]
fn whoever_comes_to_a_full_store_is_registered_and_a_flood_leaves_space_for_others() {
    let mut world = World::new(|_| {});
    fill(&mut world, 40_000);
    let flood = (0..1_000).take_while(|random| registers(&mut world, 66, *random).is_ok());
    let taken = flood.count();
    assert!((10..60).contains(&taken), "{taken}");
    assert_eq!(
        registers(&mut world, 66, 5_000),
        Err(CallError::Full(Lack::OF_ALL))
    );
    assert_eq!(registers(&mut world, 1, 1), Ok(()));
}

/// Its segment is made on the full store, too. What one name is denied takes its own share, and the change of another is
/// recorded nevertheless.
#[test]
fn the_audit_of_a_full_home_goes_on() {
    let mut world = World::new(|_| {});
    world.sync();
    fill(&mut world, 6_000);
    set_list(&mut world, b"admin #0000000000000000\n");
    world.sync();
    world.wait(HEARTBEAT_MS);
    let kept = logged(&mut world);
    assert_eq!(kept, [Purpose::Kept; 2], "the segment, and a record");
    world.wait(HEARTBEAT_MS);
    assert!(logged(&mut world).is_empty(), "it is written once");
    // Without any room it waits.
    fill(&mut world, 600);
    let refused = set_list(&mut world, b"admin #0000000000000000\nread @members\n");
    assert_eq!(
        world.outcome(refused),
        Some(Err(Refusal::Full(Lack::OF_ALL)))
    );
    fill(&mut world, 60_000);
    world.wait(HEARTBEAT_MS);
    assert!(logged(&mut world).is_empty(), "nothing was changed");
}
