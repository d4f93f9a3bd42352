//! One event after the other: through the machine, and its outbox out into the world.

use std::collections::VecDeque;
use std::mem;
use std::time::Instant;

use thorp_model::codec::Encoded;
use thorp_model::{
    Action, Direction, Down, EdgeId, Event, Message, Millis, NameId, Note, Outbox, Peer,
    StateMachine, codec,
};
use tracing::{debug, info, warn};

use super::World;
use super::arrivals::Arrival;
use super::config::DriverConfig;
use super::edges::{Edges, End, Opening, ParentState, Shared};
use super::lines::Lines;
use super::reader::{Gone, Inbox, Payer, ReaderEvent, What};
use crate::{Connection, Frame, LinkDelay, SendError};

/// The machine, its world and its edges, while a driver runs.
pub(super) struct Turn<'a, C: StateMachine, W> {
    pub(super) machine: &'a mut C,
    pub(super) world: &'a mut W,
    pub(super) edges: &'a mut Edges,
    pub(super) shared: &'a Shared,
    pub(super) config: &'a DriverConfig,
    pub(super) hello: &'a [u8],
    pub(super) inbox: &'a Inbox,
    pub(super) outbox: Outbox<C::Action>,
    /// Edges that ended while an outbox was carried out. The machine gets an [`Event::Disconnected`] for each, in this order.
    ended: VecDeque<EdgeId>,
    /// Log lines about names that are turned away.
    turned_away: Lines<String>,
    /// The same at the closed gate: each hears the same, until somebody opens it.
    at_gate: Lines<String>,
}

impl<'a, C: StateMachine, W: World<C::Action>> Turn<'a, C, W> {
    pub(super) fn new(
        (machine, world): (&'a mut C, &'a mut W),
        edges: &'a mut Edges,
        (shared, config): (&'a Shared, &'a DriverConfig),
        (hello, inbox): (&'a [u8], &'a Inbox),
        first: Outbox<C::Action>,
    ) -> Self {
        Self {
            machine,
            world,
            edges,
            shared,
            config,
            hello,
            inbox,
            outbox: first,
            ended: VecDeque::new(),
            turned_away: Lines::new(),
            at_gate: Lines::of(1),
        }
    }

    /// Gives the machine an event and does what follows.
    pub(super) fn handle(&mut self, event: Event<C::Command>) {
        self.machine
            .handle(self.world.now(), event, &mut self.outbox);
        self.carry_out();
    }

    /// When the loop has to look, although nothing comes.
    pub(super) fn deadline(&self) -> Option<Millis> {
        let (machine, look) = (self.machine.deadline(), self.edges.look_at());
        machine.into_iter().chain(look).min()
    }

    /// Ends the edges of peers that have no good certificate any more.
    pub(super) fn end_lapsed(&mut self) {
        for (edge, why) in self.edges.lapsed(self.world.now(), &self.config.identity) {
            self.refuse(edge, why);
        }
    }

    /// Gives the machine a tick if it is time.
    pub(super) fn tick(&mut self) {
        let now = self.world.now();
        if self.machine.deadline().is_some_and(|due| due <= now.mono) {
            self.hear_long_frames();
            self.handle(Event::Tick);
        }
    }

    /// A frame may take longer than a neighbour may be silent, and while it arrives nothing else can: its bytes are a sign of
    /// life, too, if they are enough ([`FRAME_SIGNS_MAX`](crate::FRAME_SIGNS_MAX), rule 13). Told only where a frame is on its way,
    /// and before the machine counts silence.
    fn hear_long_frames(&mut self) {
        for edge in self.edges.arriving() {
            let message = Message::Alive;
            self.handle(Event::Received { edge, message });
        }
    }

    /// Does what the outbox says, and what follows from that.
    pub(super) fn carry_out(&mut self) {
        loop {
            let mut actions = mem::take(&mut self.outbox.actions);
            for action in actions.drain(..) {
                self.act(action);
            }
            // The outbox keeps its capacity.
            self.outbox.actions = actions;
            let Some(edge) = self.ended.pop_front() else {
                return;
            };
            let event = Event::Disconnected { edge };
            self.machine
                .handle(self.world.now(), event, &mut self.outbox);
        }
    }

    fn act(&mut self, action: Action<C::Action>) {
        match action {
            Action::Send(edge, message) => self.send(edge, &message),
            Action::Close(edge, why) => self.close(edge, why),
            Action::Note(note) => self.note(note),
            Action::Role(action) => self.world.act(action),
        }
    }

    fn note(&mut self, note: Note) {
        self.shared.notes.add(note);
        self.world.note(note);
    }

    fn send(&mut self, id: EdgeId, message: &Message) {
        let Some(edge) = self.edges.get(id) else {
            return;
        };
        let frame = match codec::encode_sharing(message) {
            Ok(Encoded { head, tail }) => Frame::sharing(head, tail),
            Err(error) => {
                // Our own mistake; a stream with a hole in it would be worse.
                warn!(
                    peer = edge.name,
                    "cut off, a message cannot be sent: {error}"
                );
                return self.cut_off(id);
            }
        };
        let sent = match message {
            // What it is labelled with says where it belongs (rule 9).
            Message::Down(Down::Peer(_)) => edge.sender().try_send_unordered(frame),
            _ => edge.sender().try_send(frame),
        };
        match sent {
            Ok(()) => {}
            // The reader tells why.
            Err(SendError::Closed) => {}
            Err(error @ (SendError::Full(_) | SendError::TooLong { .. })) => {
                warn!(peer = edge.name, "cut off: {error}");
                self.cut_off(id);
            }
        }
    }

    /// Nobody makes a parent grow (rule 15).
    fn cut_off(&mut self, id: EdgeId) {
        if self.edges.abort(id).is_some() {
            self.note(Note::ChildCutOff);
            self.ended.push_back(id);
        }
    }

    fn close(&mut self, id: EdgeId, why: &'static str) {
        if let Some(edge) = self.edges.close(id) {
            info!(peer = edge.name, "closed: {why}");
            self.ended.push_back(id);
        }
    }

    /// Takes what an edge brings. What comes from an edge that has ended is dropped.
    pub(super) fn event(&mut self, event: ReaderEvent) {
        let ReaderEvent { edge, what, .. } = event;
        let Some(from) = self.edges.get(edge) else {
            return;
        };
        match what {
            What::Message(message, _held) => {
                if let Some(why) = from.objection(&message) {
                    return self.refuse(edge, why);
                }
                if let Message::Down(Down::Begin(_)) = message {
                    self.edges.begun(edge);
                }
                self.handle(Event::Received { edge, message });
            }
            What::Gone(gone) => self.gone(edge, &gone),
        }
    }

    /// Cuts a peer off that does what its certificate does not allow, or has none any more.
    fn refuse(&mut self, id: EdgeId, why: String) {
        let Some(edge) = self.edges.abort(id) else {
            return;
        };
        if let Some(left_out) = self.turned_away.write(Instant::now(), edge.name.clone()) {
            warn!(peer = edge.name, "cut off: {why}{left_out}");
        }
        edge.ended_for(why);
        self.note(Note::ChildCutOff);
        self.handle(Event::Disconnected { edge: id });
    }

    fn gone(&mut self, id: EdgeId, gone: &Gone) {
        let Some(edge) = self.edges.close(id) else {
            return;
        };
        match gone {
            Gone::Goodbye => debug!(peer = edge.name, "gone: {gone}"),
            Gone::Failed(_) => info!(peer = edge.name, "gone: {gone}"),
            Gone::NoMessage(_) => {
                warn!(peer = edge.name, "cut off: {gone}");
                self.note(Note::ChildCutOff);
            }
        }
        if !matches!(gone, Gone::NoMessage(_)) {
            edge.ended_by_peer();
        }
        self.handle(Event::Disconnected { edge: id });
    }

    /// Takes a new connection.
    pub(super) fn arrival(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::TrustChanged => self.edges.look_now(self.world.now()),
            Arrival::TurnedAway(away) => self.world.turned_away(away),
            Arrival::Child(incoming, peer) => {
                let certified = &incoming.peer().certified;
                let owner = certified.name();
                let closed = self.config.gate.refusal(certified);
                let lines = match closed {
                    Some(_) => &mut self.at_gate,
                    None => &mut self.turned_away,
                };
                if let Some(words) = closed.or_else(|| self.edges.refusal(owner)) {
                    if let Some(left_out) = lines.write(Instant::now(), owner.to_owned()) {
                        warn!(peer = peer.name, "turned away: {words}{left_out}");
                    }
                    return incoming.reject(&words);
                }
                let quota = self.inbox.intake.quota(owner);
                match incoming.accept_in(self.hello, Some(quota)) {
                    Ok(connection) => {
                        let delay = self.config.child_delays.get(&peer.name).copied();
                        self.open(connection, peer, Direction::Down, delay, None);
                    }
                    Err(error) => warn!(peer = peer.name, "not accepted: {error}"),
                }
            }
            Arrival::Parent {
                index,
                connection,
                peer,
                held,
            } => {
                self.leave(index);
                let owner = connection.peer().certified.name();
                connection.count_in(self.inbox.intake.quota(owner));
                let edge = self.open(*connection, peer, Direction::Up, None, Some(held));
                self.shared.set_parent(index, ParentState::Connected(edge));
            }
        }
        self.carry_out();
    }

    /// Another parent takes the place of one that is still there: that edge ends first, so the machine has one at a time.
    fn leave(&mut self, index: usize) {
        let present = self.shared.parents().into_iter().nth(index);
        if let Some(ParentState::Connected(edge)) = present.map(|parent| parent.state)
            && self.edges.get(edge).is_some()
        {
            self.close(edge, "a parent that is preferred has answered");
            self.carry_out();
        }
    }

    fn open(
        &mut self,
        connection: Connection,
        peer: Peer,
        direction: Direction,
        delay: Option<LinkDelay>,
        held: Option<tokio::sync::oneshot::Sender<End>>,
    ) -> EdgeId {
        let id = self.edges.fresh();
        let (certified, address) = (
            connection.peer().certified.clone(),
            connection.peer().address.clone(),
        );
        let round_trip = connection.peer().round_trip;
        let (sender, receiver) = connection.split();
        if let Some(delay) = delay {
            sender.set_delay(delay);
        }
        debug!(
            edge = id.0,
            peer = peer.name,
            address,
            ?direction,
            "connected"
        );
        let payer = Payer {
            name: NameId::of(certified.name()),
            is_parent: direction == Direction::Up,
        };
        let reader = self.inbox.clone().read(id, payer, receiver);
        let reader = tokio::spawn(reader).abort_handle();
        let opening = Opening {
            sender,
            reader,
            held,
            peer: peer.clone(),
            certified,
            address,
            direction,
            round_trip,
            since: self.world.now().mono,
        };
        self.edges.insert(self.world.now(), id, opening);
        let event = Event::Connected {
            edge: id,
            direction,
            peer,
        };
        self.machine
            .handle(self.world.now(), event, &mut self.outbox);
        id
    }
}
