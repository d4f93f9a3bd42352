//! A flood of registrations at a home: nobody else is forgotten (rule R2).

use crate::home::tests::world::{HOME, SITE, World, register};
use thorp_model::{
    CallId, CallRequest, Direction, EdgeId, MemberId, Message, NameId, NodeKind, Note, Up, message,
};

const MEMBER: EdgeId = EdgeId(8);
const REGISTRATIONS_MAX: usize = 16;

/// A member registers by an edge; whether it was not known.
fn registers(world: &mut World, edge: EdgeId, member: MemberId) -> bool {
    let before = registered(world);
    let call = message::Call {
        call: CallId { member, number: 1 },
        home: HOME,
        request: match edge {
            SITE => register(member, 1),
            _ => CallRequest::Register(None),
        },
    };
    world.receive_on(edge, Message::Up(Up::Call(call)));
    world.sync();
    registered(world) > before
}

fn registered(world: &World) -> usize {
    let notes = world.notes.iter();
    notes.filter(|note| **note == Note::Registered).count()
}

fn world() -> (World, MemberId) {
    let mut world = World::new(|config| config.registrations_max = REGISTRATIONS_MAX);
    let anna = MemberId::new(NameId(1), 1);
    world.connect(MEMBER, Direction::Down, NodeKind::Member, anna);
    assert!(registers(&mut world, MEMBER, anna));
    (world, anna)
}

#[test]
fn members_of_one_name_push_out_nobody_else() {
    let (mut world, anna) = world();
    for random in 0..1_000 {
        let flooding = MemberId::new(NameId(66), random);
        assert!(registers(&mut world, SITE, flooding));
    }
    assert!(world.size("registrations") < REGISTRATIONS_MAX);
    assert!(!registers(&mut world, MEMBER, anna), "it is remembered");
}

#[test]
fn names_that_a_site_makes_up_push_out_nobody_else() {
    let (mut world, anna) = world();
    for name in 1_000..2_000 {
        let made_up = MemberId::new(NameId(name), 1);
        assert!(registers(&mut world, SITE, made_up));
    }
    assert!(world.size("registrations") < REGISTRATIONS_MAX);
    assert!(!registers(&mut world, MEMBER, anna), "it is remembered");
}
