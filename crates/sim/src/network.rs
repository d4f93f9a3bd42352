//! Connections of the simulated world: dialling, sending, arriving, breaking.

use crate::checks;
use crate::failure::{Checked, Failure, demand};
use crate::link::{Edge, Item, Lane};
use crate::time::{At, End, Local, NodeNo, Planned};
use crate::village::Delay;
use crate::world::World;
use std::collections::BTreeMap;
use thorp_model::{Direction, Down, EdgeId, Event, Message, NodeKind, codec};

impl World {
    /// A child tries to connect to a parent.
    pub fn dial(&mut self, child: NodeNo, parent: NodeNo) -> Checked {
        let connected =
            |edge: &Edge| edge.child == child && edge.parent == parent && !edge.down.closed;
        if self.edges.values().any(connected) {
            return Ok(());
        }
        if !self.nodes[child.0].parents.contains(&parent) {
            return Ok(()); // It has moved since.
        }
        let until = self.partitions.get(&(child, parent)).copied();
        let apart = until.is_some_and(|until| until > self.now);
        if apart || !self.nodes[parent.0].is_up() {
            self.redial(child, parent);
            return self.turn(child, parent);
        }
        self.connect(child, parent);
        Ok(())
    }

    /// A connection begins.
    pub fn connect(&mut self, child: NodeNo, parent: NodeNo) -> EdgeId {
        self.last_edge = self.last_edge.next();
        let id = self.last_edge;
        let delay = self.usual_delay(parent);
        let mut edge = Edge {
            child,
            parent,
            down: Lane::default(),
            up: Lane::default(),
            beside: BTreeMap::new(),
            beside_sent: 0,
            delay_us: delay.least_us,
            jitter_us: delay.jitter_us,
        };
        let up = edge.up.send(self.now.plus_us(delay.least_us), Item::Open);
        let down = edge
            .down
            .send(self.now.plus_us(2 * delay.least_us), Item::Open);
        self.edges.insert(id, edge);
        self.plan_arrival(id, End::Parent, up);
        self.plan_arrival(id, End::Child, down);
        id
    }

    /// How long the way to a parent is.
    pub fn usual_delay(&self, parent: NodeNo) -> Delay {
        match self.nodes[parent.0].kind {
            NodeKind::Home => self.village.far,
            _ => self.village.near,
        }
    }

    fn redial(&mut self, child: NodeNo, parent: NodeNo) {
        let at = self.now.plus_ms(self.prng.range(20, 400));
        self.plan_local(child, at, Local::Dial { parent });
    }

    fn plan_arrival(&mut self, edge: EdgeId, end: End, at: Option<At>) {
        if let Some(at) = at {
            self.agenda.plan(at, Planned::Arrive { edge, end });
        }
    }

    fn delay(&mut self, edge: EdgeId) -> u64 {
        let jitter = self.edges.get(&edge).map_or(0, |edge| edge.jitter_us);
        let least = self.edges.get(&edge).map_or(0, |edge| edge.delay_us);
        least + self.prng.below(jitter + 1)
    }

    /// A node sends a message; on an edge that is gone it is forgotten.
    pub fn send(&mut self, from: NodeNo, id: EdgeId, message: Message) -> Checked {
        let Some(edge) = self.edges.get_mut(&id) else {
            return Ok(());
        };
        let own = edge.end_of(from);
        let end = own.other();
        if edge.lane(own).closed {
            return Ok(());
        }
        self.counts.messages += 1;
        checks::promises::sent(self, from, &message)?;
        checks::helpers::sent(self, from, id, &message)?;
        let news = self.freshness_in(from, &message);
        let message = self.as_bytes(from, message)?;
        if self.village.beside && matches!(message, Message::Down(Down::Peer(_))) {
            self.send_beside(id, message);
            return Ok(());
        }
        let is_vote = matches!(message, Message::Down(Down::Voted(_)));
        let arrives = self.now.plus_us(self.delay(id));
        let queue_max = self.village.queue_max;
        let Some(edge) = self.edges.get_mut(&id) else {
            return Ok(());
        };
        let lane = edge.lane(end);
        let at = lane.send(arrives, Item::Message(message, news));
        let full = lane.len() > queue_max;
        self.plan_arrival(id, end, at);
        if is_vote && self.leave_in_doubt && self.nodes[from.0].kind == NodeKind::Home {
            self.leave_in_doubt(from);
        } else if full {
            // Rule 15: nobody makes a parent grow.
            self.counts.answered("edges cut: the queue is full");
            self.close(from, id, "its queue is full");
        }
        Ok(())
    }

    fn as_bytes(&self, from: NodeNo, message: Message) -> Checked<Message> {
        // What a rogue makes up may have no bytes, or more than one form.
        if !self.village.as_bytes || self.nodes[from.0].rogue {
            return Ok(message);
        }
        let wrong =
            |error: codec::CodecError| Failure::new("codec", format!("{error}: {message:?}"));
        let encoded = codec::encode_sharing(&message).map_err(wrong)?;
        let tail = encoded.tail.as_deref().unwrap_or_default();
        let bytes = [&encoded.head, tail].concat();
        let decoded = codec::decode(&bytes).map_err(wrong)?;
        demand!(
            decoded == message,
            "codec",
            "{message:?} comes out as {decoded:?}"
        );
        Ok(decoded)
    }

    /// An image on a connection of its own: nothing orders it.
    fn send_beside(&mut self, id: EdgeId, message: Message) {
        let delay = self.delay(id);
        let extra = if self.prng.percent(20) {
            self.prng.below(700_000)
        } else {
            self.prng.below(5_000)
        };
        let at = self.now.plus_us(delay + extra);
        let Some(edge) = self.edges.get_mut(&id) else {
            return;
        };
        edge.beside_sent += 1;
        let number = edge.beside_sent;
        edge.beside.insert(number, (at, message));
        self.agenda
            .plan(at, Planned::ArriveBeside { edge: id, number });
    }

    /// An image arrives beside the stream.
    pub fn arrive_beside(&mut self, id: EdgeId, number: u64) -> Checked {
        let Some(edge) = self.edges.get_mut(&id) else {
            return Ok(());
        };
        let Some((_, message)) = edge.beside.remove(&number) else {
            return Ok(());
        };
        let child = edge.child;
        if edge.down.closed || !edge.down.opened {
            return Ok(());
        }
        self.event(child, Event::Received { edge: id, message })
    }

    /// The next thing on its way to one end arrives, if that end reads.
    pub fn arrive(&mut self, id: EdgeId, end: End) -> Checked {
        let now = self.now;
        let Some(edge) = self.edges.get(&id) else {
            return Ok(());
        };
        let no = edge.node(end);
        let node = self.node(no);
        let ready = node.deaf_until.max(if node.slow_us > 0 {
            node.busy_until
        } else {
            At(0)
        });
        if ready > now {
            self.postpone(id, end, ready);
            return Ok(());
        }
        let busy_until = now.plus_us(node.slow_us);
        node.busy_until = busy_until;
        let Some(edge) = self.edges.get_mut(&id) else {
            return Ok(());
        };
        let lane = edge.lane(end);
        let opened = lane.opened;
        let Some(item) = lane.receive(now) else {
            return Ok(());
        };
        if lane.is_due(now) {
            self.postpone(id, end, busy_until);
        }
        match item {
            Item::Open => self.connected(id, end),
            Item::Message(message, news) => {
                self.freshness_arrive(news);
                self.event(no, Event::Received { edge: id, message })?;
                self.freshness_taken(no);
                checks::directory::check_edge(self, id)
            }
            Item::End => self.disconnected(id, end, opened),
        }
    }

    /// Something has arrived that is received later: one event for all of it.
    fn postpone(&mut self, id: EdgeId, end: End, at: At) {
        let now = self.now;
        let lane = self.edges.get_mut(&id).map(|edge| edge.lane(end));
        if let Some(lane) = lane
            && lane.waiting_until <= now
        {
            lane.waiting_until = at;
            self.plan_arrival(id, end, Some(at));
        }
    }

    fn connected(&mut self, id: EdgeId, end: End) -> Checked {
        let Some(edge) = self.edges.get(&id) else {
            return Ok(());
        };
        let (no, other) = (edge.node(end), edge.node(end.other()));
        let peer = self.nodes[other.0].peer();
        let direction = match end {
            End::Child => Direction::Up,
            End::Parent => Direction::Down,
        };
        let edge = id;
        self.event(
            no,
            Event::Connected {
                edge,
                direction,
                peer,
            },
        )
    }

    fn disconnected(&mut self, id: EdgeId, end: End, opened: bool) -> Checked {
        let Some(edge) = self.edges.get(&id) else {
            return Ok(());
        };
        let no = edge.node(end);
        let lost = edge.parent;
        if edge.is_dead() {
            self.edges.remove(&id);
        }
        if end == End::Child {
            for parent in self.nodes[no.0].parents.clone() {
                self.redial(no, parent);
            }
        }
        if opened {
            self.event(no, Event::Disconnected { edge: id })?;
        }
        if end == End::Child && self.nodes[no.0].is_up() {
            self.turn(no, lost)?;
        }
        Ok(())
    }

    /// A node closes its end of an edge.
    pub fn close(&mut self, no: NodeNo, id: EdgeId, why: &'static str) {
        let now = self.now;
        let name = &self.nodes[no.0].name;
        self.trace
            .line(|| format!("{now:?} {name} closes edge {id}: {why}"));
        let Some(edge) = self.edges.get_mut(&id) else {
            return;
        };
        let own = edge.end_of(no);
        edge.lane(own).lose_from(0);
        let at = edge.lane(own).send(now, Item::End);
        // What was sent before may arrive after; nothing after that does.
        self.plan_arrival(id, own, at);
        self.lose(id, own.other());
    }

    /// A node hears no more of an edge; what it has sent there arrives.
    pub fn hang_up(&mut self, no: NodeNo, id: EdgeId) {
        let now = self.now;
        let delay = self.delay(id);
        let Some(edge) = self.edges.get_mut(&id) else {
            return;
        };
        let own = edge.end_of(no);
        edge.lane(own).lose_from(0);
        let here = edge.lane(own).send(now, Item::End);
        let there = edge.lane(own.other()).send(now.plus_us(delay), Item::End);
        self.plan_arrival(id, own, here);
        self.plan_arrival(id, own.other(), there);
    }

    /// An edge breaks: each end hears of it in its own time.
    pub fn cut(&mut self, id: EdgeId) {
        self.lose(id, End::Child);
        self.lose(id, End::Parent);
    }

    /// An end hears of the end of an edge, after some of what was on its way.
    fn lose(&mut self, id: EdgeId, end: End) {
        let delay = self.delay(id);
        let mut at = self.now.plus_us(delay);
        let share = self.prng.bits();
        let Some(edge) = self.edges.get_mut(&id) else {
            return;
        };
        if end == End::Child {
            // Some of what travels beside the stream is lost, some arrives before the end does.
            edge.beside
                .retain(|number, _| share >> (number % 64) & 1 == 1);
            at = edge.beside.values().fold(at, |at, (then, _)| at.max(*then));
        }
        let lane = edge.lane(end);
        lane.lose_from(share as usize % (lane.len() + 1));
        let at = lane.send(at, Item::End);
        self.plan_arrival(id, end, at);
    }

    /// All connections of a node that has died.
    pub fn break_connections(&mut self, no: NodeNo) {
        let own = |edge: &Edge| edge.child == no || edge.parent == no;
        let ids: Vec<EdgeId> = self
            .edges
            .iter()
            .filter(|(_, edge)| own(edge))
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            let Some(edge) = self.edges.get_mut(&id) else {
                continue;
            };
            let end = edge.end_of(no);
            edge.lane(end).close();
            if edge.is_dead() {
                self.edges.remove(&id);
            } else {
                self.lose(id, end.other());
            }
        }
    }
}
