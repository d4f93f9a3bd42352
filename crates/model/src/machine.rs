//! The one door of every state machine: events come in, an outbox goes out.

use crate::{Claim, Down, EdgeId, HomeId, HomeNames, Message, Millis, Note, Now, Peer, Up};
use alloc::vec::Vec;
use core::convert::Infallible;

/// A state machine: home, redirector or member. Nothing happens in it but in
/// [`StateMachine::handle`], and what happens depends on the events alone.
pub trait StateMachine {
    /// What only this role's driver hands in.
    type Command: Command;
    /// What only this role asks of its driver.
    type Action;

    /// Takes an event and puts what follows from it into the outbox, in order.
    fn handle(&mut self, now: Now, event: Event<Self::Command>, outbox: &mut Outbox<Self::Action>);

    /// When [`Event::Tick`] is wanted next, on the monotone clock.
    fn deadline(&self) -> Option<Millis>;
}

/// What a driver needs to know of a role's commands.
pub trait Command {
    /// Whether a program may cause it at will, so that the driver bounds how
    /// many of them wait (rule 15). All others echo an action of the machine.
    fn is_bounded(&self) -> bool {
        false
    }
}

/// A role without commands.
impl Command for Infallible {}

/// Which end of an edge a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The peer is the parent.
    Up,
    /// The peer is a child.
    Down,
}

/// What happens to a state machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event<C> {
    /// An edge is there. Edge ids are never used twice.
    Connected {
        /// The id that the driver gave to the edge.
        edge: EdgeId,
        /// Which end the peer is.
        direction: Direction,
        /// Who the peer is.
        peer: Peer,
    },
    /// An edge is gone; nothing more comes from it.
    Disconnected {
        /// The edge that is gone.
        edge: EdgeId,
    },
    /// An edge brought a message.
    Received {
        /// The edge that brought it.
        edge: EdgeId,
        /// What the peer sent.
        message: Message,
    },
    /// The deadline has come.
    Tick,
    /// What only this role can be told.
    Command(C),
}

impl Event<Infallible> {
    /// The event, for a machine of any role.
    pub fn for_role<C>(self) -> Event<C> {
        match self {
            Event::Connected {
                edge,
                direction,
                peer,
            } => Event::Connected {
                edge,
                direction,
                peer,
            },
            Event::Disconnected { edge } => Event::Disconnected { edge },
            Event::Received { edge, message } => Event::Received { edge, message },
            Event::Tick => Event::Tick,
            Event::Command(never) => match never {},
        }
    }
}

/// What a state machine wants done. Drivers do it in the order of the outbox.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action<A> {
    /// Send a message on an edge; if the edge is gone, forget it.
    Send(EdgeId, Message),
    /// Close an edge; [`Event::Disconnected`] follows.
    Close(EdgeId, &'static str),
    /// Count or log something.
    Note(Note),
    /// What only this role wants.
    Role(A),
}

impl<A> Action<A> {
    /// The action, with what only this role wants as something else.
    pub fn map<B>(self, map: impl FnOnce(A) -> B) -> Action<B> {
        match self {
            Action::Send(edge, message) => Action::Send(edge, message),
            Action::Close(edge, why) => Action::Close(edge, why),
            Action::Note(note) => Action::Note(note),
            Action::Role(action) => Action::Role(map(action)),
        }
    }
}

/// What a state machine wants done, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outbox<A> {
    /// The actions, in order.
    pub actions: Vec<Action<A>>,
}

impl<A> Outbox<A> {
    /// An outbox without actions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends to a child.
    pub fn down(&mut self, edge: EdgeId, message: Down) {
        self.actions
            .push(Action::Send(edge, Message::Down(message)));
    }

    /// Sends to a parent.
    pub fn up(&mut self, edge: EdgeId, message: Up) {
        self.actions.push(Action::Send(edge, Message::Up(message)));
    }

    /// Claims what this node holds of homes, to a parent (rule R9).
    pub fn claim(&mut self, edge: EdgeId, claims: Vec<(HomeId, Claim)>) {
        self.actions
            .push(Action::Send(edge, Message::Claims(claims)));
    }

    /// Tells a child which homes this node is to reach (rule 1).
    pub fn tell_homes(&mut self, edge: EdgeId, homes: HomeNames) {
        self.actions.push(Action::Send(edge, Message::Homes(homes)));
    }

    /// Shows a neighbour that this node is there.
    pub fn alive(&mut self, edge: EdgeId) {
        self.actions.push(Action::Send(edge, Message::Alive));
    }

    /// Closes an edge, and says why.
    pub fn close(&mut self, edge: EdgeId, why: &'static str) {
        self.actions.push(Action::Close(edge, why));
    }

    /// Notes something.
    pub fn note(&mut self, note: Note) {
        self.actions.push(Action::Note(note));
    }

    /// Wants an action of this role.
    pub fn act(&mut self, action: A) {
        self.actions.push(Action::Role(action));
    }
}

// Derived, it would ask the same of `A`.
impl<A> Default for Outbox<A> {
    fn default() -> Self {
        Outbox {
            actions: Vec::new(),
        }
    }
}
