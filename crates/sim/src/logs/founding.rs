//! The first objects: a founder makes them at the home, and leaves.

use super::drive;
use super::plan::{HOME, SEGMENT, place_of};
use super::world::World;
use crate::failure::{Checked, Failure};
use crate::node::Machine;
use thorp_model::{
    Action, CallId, CallRequest, CommitId, CommitRequest, Direction, EdgeId, Event, Generation,
    MemberId, Message, NewValue, NodeKind, Outbox, PageWrites, Part, Peer, Position, Registration,
    Slot, Stamp, StateMachine, Up, WriteOp, message,
};
use thorp_protocol::{HomeAction, HomeCommand};

const FOUNDER: MemberId = MemberId(u128::MAX);
const EDGE: EdgeId = EdgeId(u64::MAX);

/// Starts the home, and makes an empty object in each slot.
pub(super) fn found(world: &mut World) -> Checked {
    drive::start(world, 0)?;
    sync(world)?;
    let peer = Peer {
        kind: NodeKind::Member,
        node: FOUNDER,
        name: String::from("founder"),
        is_operator: false,
        is_carried: false,
    };
    let direction = Direction::Down;
    tell(
        world,
        Event::Connected {
            edge: EDGE,
            direction,
            peer,
        },
    )?;
    say(world, Message::Claims(Vec::new()))?;
    let requests = [
        CallRequest::Register(None),
        CallRequest::Open {
            path: String::from("s"),
            create: true,
        },
        CallRequest::Reserve {
            segment: SEGMENT,
            pages: 4,
        },
    ];
    for (number, request) in (1..).zip(requests) {
        let member = FOUNDER;
        let call = message::Call {
            call: CallId { member, number },
            home: HOME,
            request,
        };
        say(world, Message::Up(Up::Call(call)))?;
    }
    let commit = commit(world.plan.objects, world.plan.pages);
    say(world, Message::Up(Up::Commit(commit)))?;
    tell(world, Event::Disconnected { edge: EDGE })
}

fn commit(objects: u16, pages: u16) -> CommitRequest {
    let op = |slot| {
        let op = WriteOp::Create {
            generation: Generation(1),
            value: NewValue::Inline(b""[..].into()),
        };
        (Slot(slot), op)
    };
    let page = |page: u16| PageWrites {
        page: place_of(page, pages).page,
        slots: (page..objects)
            .step_by(usize::from(pages))
            .map(op)
            .collect(),
    };
    CommitRequest {
        id: CommitId {
            member: FOUNDER,
            sequence: 1,
        },
        registration: Registration(1),
        part: Part {
            home: HOME,
            evidence: Position(1),
            reads: Vec::new(),
            writes: (0..pages).map(page).collect(),
            under: None,
        },
        with: Vec::new(),
        depends_on: Vec::new(),
        after: Stamp::default(),
    }
}

fn say(world: &mut World, message: Message) -> Checked {
    tell(
        world,
        Event::Received {
            edge: EDGE,
            message,
        },
    )
}

/// The home gets an event, and its disk is quick.
fn tell(world: &mut World, event: Event<HomeCommand>) -> Checked {
    let now = world.nodes[0].now(world.now);
    let node = &mut world.nodes[0];
    let (Some(Machine::Home(machine)), Some(disk)) = (&mut node.machine, &mut node.disk) else {
        return Err(Failure::new("driver", "the home does not run"));
    };
    let mut outbox = Outbox::new();
    machine.handle(now, event, &mut outbox);
    for action in outbox.actions {
        if let Action::Role(HomeAction::Append(batch)) = action {
            disk.append(batch);
        }
    }
    sync(world)
}

fn sync(world: &mut World) -> Checked {
    let Some(disk) = &mut world.nodes[0].disk else {
        return Ok(());
    };
    let pending = disk.pending();
    let mark = disk.mark_of(pending);
    disk.sync(pending);
    match mark {
        Some(mark) => tell(world, Event::Command(HomeCommand::Durable(mark))),
        None => Ok(()),
    }
}
