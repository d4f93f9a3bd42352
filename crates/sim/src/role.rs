//! The roles of nodes: each machine has commands and actions of its own, and the
//! village does what only that role wants.

use crate::checks;
use crate::digest::Digested;
use crate::failure::{Checked, demand};
use crate::going_back;
use crate::hostile::Rogue;
use crate::node::Machine;
use crate::time::{Local, NodeNo};
use crate::world::World;
use std::convert::Infallible;
use thorp_model::{Event, StateMachine};
use thorp_protocol::{Home, HomeAction, Member, MemberAction, Redirector, Response};

/// A role that a node can have.
pub trait Role: StateMachine<Command: Digested, Action: Digested> {
    /// Its machine, if the node has this role.
    fn of(machine: &mut Machine) -> Option<&mut Self>;

    /// Does what only this role wants.
    fn act(world: &mut World, no: NodeNo, action: Self::Action) -> Checked;
}

impl Role for Home {
    fn of(machine: &mut Machine) -> Option<&mut Self> {
        match machine {
            Machine::Home(home) => Some(home),
            _ => None,
        }
    }

    fn act(world: &mut World, no: NodeNo, action: HomeAction) -> Checked {
        match action {
            HomeAction::Append(batch) => world.append(no, batch),
            HomeAction::Load(page) => {
                let at = world.now.plus_us(world.prng.below(5_000));
                world.plan_local(no, at, Local::Read(page));
                Ok(())
            }
            HomeAction::Close(met) => going_back::closed(world, no, &met),
            HomeAction::Reopen(reopen) => going_back::opened(world, no, &reopen),
        }
    }
}

impl Role for Redirector {
    fn of(machine: &mut Machine) -> Option<&mut Self> {
        match machine {
            Machine::Site(site) => Some(site),
            _ => None,
        }
    }

    fn act(_: &mut World, _: NodeNo, action: Infallible) -> Checked {
        match action {}
    }
}

impl Role for Member {
    fn of(machine: &mut Machine) -> Option<&mut Self> {
        match machine {
            Machine::Member(member) => Some(member),
            _ => None,
        }
    }

    fn act(world: &mut World, no: NodeNo, action: MemberAction) -> Checked {
        match action {
            MemberAction::Publish(publish) => checks::cache::publish(world, no, &publish),
            MemberAction::Respond(id, response) => {
                checks::told::answered(world, no, &response)?;
                if let Some(resident) = &mut world.node(no).resident {
                    if let Response::Unwatched { home, segment } = response {
                        resident.watches.end(home, segment);
                    }
                    checks::chains::answered(resident, &response)?;
                    resident.answers.insert(id, response);
                }
                world.plan_local(no, world.now, Local::Answered { ticket: id });
                Ok(())
            }
            MemberAction::Hint(likely) => {
                for place in likely {
                    world.plan_local(no, world.now, Local::Hinted { place });
                }
                Ok(())
            }
            // What a program asks for instead comes like what it asks for when it is told what is likely.
            MemberAction::Joined(_) => Ok(()),
            // The program learns these from its answers, and from what the cache shows.
            MemberAction::Named(..)
            | MemberAction::Showing(_)
            | MemberAction::Arrived(..)
            | MemberAction::Evicted
            | MemberAction::StreamBegan { .. }
            | MemberAction::HomesTold { .. }
            | MemberAction::StreamEnded(_) => Ok(()),
            // Its member has no log.
            MemberAction::Keep(_)
            | MemberAction::Rejected(..)
            | MemberAction::Locked { .. }
            | MemberAction::LockLost { .. } => Ok(()),
            MemberAction::WentBack(home) => going_back::forgotten(world, no, home),
        }
    }
}

impl Role for Rogue {
    fn of(machine: &mut Machine) -> Option<&mut Self> {
        match machine {
            Machine::Byzantine(rogue) => Some(rogue),
            _ => None,
        }
    }

    fn act(_: &mut World, _: NodeNo, action: Infallible) -> Checked {
        match action {}
    }
}

impl World {
    /// Hands an event that any role may get to a node's machine.
    pub fn event(&mut self, no: NodeNo, event: Event<Infallible>) -> Checked {
        match &self.nodes[no.0].machine {
            Some(Machine::Home(_)) => self.handle::<Home>(no, event.for_role()),
            Some(Machine::Member(_)) => self.handle::<Member>(no, event.for_role()),
            Some(Machine::Byzantine(_)) => self.handle::<Rogue>(no, event),
            Some(Machine::Site(_)) | None => self.handle::<Redirector>(no, event),
        }
    }

    /// Hands a command to a node's machine, which has this role, or is dead.
    pub fn command<R: Role>(&mut self, no: NodeNo, command: R::Command) -> Checked {
        let node = self.node(no);
        let has_role = node.machine.as_mut().is_none_or(|m| R::of(m).is_some());
        demand!(has_role, "driver", "{} has another role", node.name);
        self.handle::<R>(no, Event::Command(command))
    }
}
