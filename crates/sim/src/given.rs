//! What small villages give to a machine, and what it wants: one door for all roles.

use crate::node::Machine;
use std::convert::Infallible;
use thorp_model::{Action, Event, Now, Outbox, StateMachine};
use thorp_protocol::{HomeAction, HomeCommand, MemberAction, MemberCommand};

/// What a node is given.
#[derive(Debug)]
pub(crate) enum Given {
    /// What any node may be given.
    Event(Event<Infallible>),
    /// By a home's disk.
    Home(HomeCommand),
    /// By a member's program, or by the disk of its log.
    Member(MemberCommand),
}

/// What only nodes of one role want.
pub(crate) enum Wanted {
    /// A home.
    Home(HomeAction),
    /// A member.
    Member(MemberAction),
}

impl Given {
    /// Hands it to a machine. A machine of another role takes no notice.
    pub(crate) fn to(self, machine: &mut Machine, now: Now) -> Vec<Action<Wanted>> {
        match (machine, self) {
            (Machine::Home(home), Given::Event(event)) => {
                run(&mut **home, now, event.for_role(), Wanted::Home)
            }
            (Machine::Home(home), Given::Home(command)) => {
                run(&mut **home, now, Event::Command(command), Wanted::Home)
            }
            (Machine::Site(site), Given::Event(event)) => {
                run(&mut **site, now, event, |never| match never {})
            }
            (Machine::Member(member), Given::Event(event)) => {
                run(&mut **member, now, event.for_role(), Wanted::Member)
            }
            (Machine::Member(member), Given::Member(command)) => {
                run(&mut **member, now, Event::Command(command), Wanted::Member)
            }
            _ => Vec::new(),
        }
    }
}

fn run<M: StateMachine>(
    machine: &mut M,
    now: Now,
    event: Event<M::Command>,
    wrap: impl Fn(M::Action) -> Wanted,
) -> Vec<Action<Wanted>> {
    let mut outbox = Outbox::new();
    machine.handle(now, event, &mut outbox);
    let actions = outbox.actions.into_iter();
    actions.map(|action| action.map(&wrap)).collect()
}
