//! The first objects of a home: a member makes them, and leaves.

use super::ledger::FOUNDER;
use super::plan::SEGMENT;
use super::truth;
use super::world::World;
use crate::failure::{Checked, Failure};
use crate::node::Machine;
use crate::time::NodeNo;
use std::collections::BTreeMap;
use thorp_model::limits::EXTENT_PAGES;
use thorp_model::{
    Action, CallId, CallRequest, CommitId, CommitRequest, Direction, EdgeId, Event, HomeId,
    Message, NewValue, NodeKind, Outbox, PageId, PageWrites, Part, Peer, Position, Registration,
    SegmentId, Slot, Stamp, StateMachine, Up, WriteOp, message,
};
use thorp_protocol::{HomeAction, HomeCommand};

const EDGE: EdgeId = EdgeId(u64::MAX);

/// Makes the segment and one object in each slot.
pub(super) fn found(world: &mut World, no: NodeNo, home: HomeId) -> Checked {
    sync(world, no)?;
    tell(world, no, connected())?;
    tell(
        world,
        no,
        Event::Received {
            edge: EDGE,
            message: Message::Claims(Vec::new()),
        },
    )?;
    let requests = [
        CallRequest::Register(None),
        CallRequest::Open {
            path: String::from("s"),
            create: true,
        },
        CallRequest::Reserve {
            segment: SegmentId(SEGMENT),
            pages: EXTENT_PAGES,
        },
    ];
    for (number, request) in (1..).zip(requests) {
        let call = CallId {
            member: FOUNDER,
            number,
        };
        let call = message::Call {
            call,
            home,
            request,
        };
        send(world, no, Up::Call(call))?;
    }
    let commit = commit(world, home);
    send(world, no, Up::Commit(commit))?;
    tell(world, no, Event::Disconnected { edge: EDGE })
}

fn connected() -> Event<HomeCommand> {
    Event::Connected {
        edge: EDGE,
        direction: Direction::Down,
        peer: Peer {
            kind: NodeKind::Member,
            node: FOUNDER,
            name: String::from("founder"),
            is_operator: false,
            is_carried: false,
        },
    }
}

fn commit(world: &World, home: HomeId) -> CommitRequest {
    let mut pages: BTreeMap<PageId, Vec<(Slot, WriteOp)>> = BTreeMap::new();
    for object in world.plan.objects() {
        let op = WriteOp::Create {
            generation: thorp_model::Generation(1),
            value: NewValue::Inline(Vec::from(*b"first").into()),
        };
        pages
            .entry(object.page)
            .or_default()
            .push((object.slot, op));
    }
    let writes = pages.into_iter();
    let writes = writes.map(|(page, slots)| PageWrites { page, slots });
    CommitRequest {
        id: CommitId {
            member: FOUNDER,
            sequence: 1,
        },
        registration: Registration(1),
        part: Part {
            home,
            evidence: Position(1),
            reads: Vec::new(),
            writes: writes.collect(),
            under: None,
        },
        with: Vec::new(),
        depends_on: Vec::new(),
        after: Stamp::default(),
    }
}

fn send(world: &mut World, no: NodeNo, message: Up) -> Checked {
    let event = Event::Received {
        edge: EDGE,
        message: Message::Up(message),
    };
    tell(world, no, event)
}

/// The home gets an event, and its disk is quick.
fn tell(world: &mut World, no: NodeNo, event: Event<HomeCommand>) -> Checked {
    let now = world.nodes[no.0].now(world.now);
    let node = world.node(no);
    let (Some(Machine::Home(machine)), Some(store)) = (&mut node.machine, &mut node.store) else {
        return Err(Failure::new("driver", "only a home has first objects"));
    };
    let mut outbox = Outbox::new();
    machine.handle(now, event, &mut outbox);
    for action in outbox.actions {
        if let Action::Role(HomeAction::Append(batch)) = action {
            store.disk.append(batch);
        }
    }
    sync(world, no)
}

fn sync(world: &mut World, no: NodeNo) -> Checked {
    let Some(store) = &mut world.node(no).store else {
        return Ok(());
    };
    let pending = store.disk.pending();
    let (mark, branch) = (store.disk.mark_of(pending), store.branch);
    let batches = store.disk.sync(pending);
    truth::durable(world, branch, &batches)?;
    match mark {
        Some(mark) => tell(world, no, Event::Command(HomeCommand::Durable(mark))),
        None => Ok(()),
    }
}
