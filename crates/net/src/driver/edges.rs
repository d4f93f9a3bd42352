//! The edges of a node, as the loop uses them and as others see them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thorp_model::{Direction, EdgeId, HomeId, Message, Millis, Now, Peer};
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

use super::config::LEAVING_MAX;
use super::counts::NoteCounts;
use super::lapses::Lapses;
use crate::shares::Shares;
use crate::{CertifiedName, FrameSender, Identity, LinkDelay, Queued, Traffic};

/// One edge, as others see it.
#[derive(Clone, Debug)]
pub struct EdgeStatus {
    /// Its name.
    pub edge: EdgeId,
    /// Who the peer is: its certificate says the same (rule R1).
    pub peer: Peer,
    /// The role and the name in the peer's certificate.
    pub certified: CertifiedName,
    /// Where the peer is.
    pub address: String,
    /// Which end the peer is.
    pub direction: Direction,
    /// A round trip to the peer when it was connected; only where this side called, over TCP.
    pub round_trip: Option<Duration>,
    /// What has crossed it, both ways.
    pub traffic: Traffic,
    /// What waits to be written to the peer.
    pub queued: Queued,
    /// When it began, on the monotone clock of [`now`](super::now).
    pub since: Millis,
}

/// A parent, as others see it.
#[derive(Clone, Debug)]
pub struct ParentStatus {
    /// The name it must have; empty if any will do.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// Whether it is reached.
    pub state: ParentState,
}

/// Whether a parent is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParentState {
    /// Not wanted so far: it is dialed on demand.
    Unwanted,
    /// Being dialed for the first time.
    Dialing,
    /// By this edge.
    Connected(EdgeId),
    /// Not since then; with what went wrong last.
    Lost {
        /// On the monotone clock of [`now`](super::now).
        since: Millis,
        /// For people.
        why: String,
        /// Whether the parent answered, and said no: it will until a person does something.
        is_refused: bool,
    },
}

/// What has crossed all edges of a direction.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Totals {
    /// To and from parents.
    pub up: Traffic,
    /// To and from children.
    pub down: Traffic,
    /// Edges that have begun.
    pub begun: u64,
}

/// What the loop and the handles share. Locked when an edge comes or goes, or somebody looks; never for a message.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) notes: NoteCounts,
    /// Counts how often parents that are dialed on demand were wanted.
    pub(super) wanted: watch::Sender<u64>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    edges: BTreeMap<EdgeId, Seen>,
    /// Closed, and perhaps still writing.
    leaving: Vec<(Arc<FrameSender>, Direction)>,
    parents: Vec<ParentStatus>,
    gone: Totals,
}

struct Seen {
    sender: Arc<FrameSender>,
    peer: Peer,
    certified: CertifiedName,
    address: String,
    direction: Direction,
    round_trip: Option<Duration>,
    since: Millis,
}

/// The edges as the loop uses them.
pub(super) struct Edges {
    shared: Arc<Shared>,
    open: HashMap<EdgeId, Edge>,
    /// Of the open ones, how many each name has.
    shares: Shares<String>,
    lapses: Lapses,
    last: EdgeId,
}

pub(super) struct Edge {
    sender: Arc<FrameSender>,
    reader: AbortHandle,
    pub(super) name: String,
    /// The name in its certificate, which the edge is counted for.
    owner: String,
    /// The home that the peer's certificate names, if the peer is one.
    home: Option<HomeId>,
    /// Whether the parent has begun a home's stream: it does what it is there for.
    begun: bool,
    /// Of an incomplete frame, the last sign of life when it was last looked.
    sign: u64,
    end: End,
    /// Hears how the edge ended: then the parent is dialed again.
    held: Option<oneshot::Sender<End>>,
}

/// How an edge to a parent ended.
#[derive(Clone, Default)]
pub(super) struct End {
    /// It was good, and it was the peer that ended it.
    pub(super) good: bool,
    /// How often parents had been wanted by then: whoever wants one because of this end wants it anew.
    pub(super) wanted: u64,
    /// Why this node ended it, where that says what to do.
    pub(super) why: Option<String>,
}

/// What is needed to open an edge.
pub(super) struct Opening {
    pub(super) sender: FrameSender,
    pub(super) reader: AbortHandle,
    pub(super) held: Option<oneshot::Sender<End>>,
    pub(super) peer: Peer,
    pub(super) certified: CertifiedName,
    pub(super) address: String,
    pub(super) direction: Direction,
    pub(super) round_trip: Option<Duration>,
    pub(super) since: Millis,
}

impl Edges {
    pub(super) fn new(shared: Arc<Shared>, edges_max: usize) -> Self {
        Self {
            shared,
            open: HashMap::new(),
            shares: Shares::new(edges_max),
            lapses: Lapses::default(),
            last: EdgeId(0),
        }
    }

    /// A parent has begun a home's stream down this edge.
    pub(super) fn begun(&mut self, id: EdgeId) {
        if let Some(edge) = self.open.get_mut(&id) {
            edge.begun = true;
        }
    }

    /// Where enough of a frame has arrived since the last look, or the frame has to wait for space here.
    pub(super) fn arriving(&mut self) -> Vec<EdgeId> {
        let moved = |edge: &mut Edge| {
            let before = std::mem::replace(&mut edge.sign, edge.sender.sign());
            // Where this side has no space for the frame, the peer cannot show that it is alive.
            (edge.sign != 0 && edge.sign != before) || edge.sender.is_waiting_for_space()
        };
        let edges = self.open.iter_mut();
        edges
            .filter_map(|(id, edge)| moved(edge).then_some(*id))
            .collect()
    }

    /// An id that was never used.
    pub(super) fn fresh(&mut self) -> EdgeId {
        self.last = self.last.next();
        self.last
    }

    /// Why a child of this name may have no further edge, in words for it. No name has more edges than it leaves free
    /// (rule 15): one certificate keeps nobody else out.
    pub(super) fn refusal(&self, name: &str) -> Option<String> {
        if self.shares.allows(name, 1) {
            return None;
        }
        Some(match self.shares.of(name) {
            0 => "too many connections, try again later".to_owned(),
            had => format!(
                "{name} has {had} connections here, and one name may have no more than it leaves free of {}: close \
                 some of them, or try again later",
                self.shares.max()
            ),
        })
    }

    pub(super) fn get(&self, edge: EdgeId) -> Option<&Edge> {
        self.open.get(&edge)
    }

    pub(super) fn ids(&self) -> Vec<EdgeId> {
        self.open.keys().copied().collect()
    }

    /// When to look for edges that have [lapsed](Edges::lapsed).
    pub(super) fn look_at(&self) -> Option<Millis> {
        self.lapses.deadline()
    }

    /// What is accepted has changed: look at all edges.
    pub(super) fn look_now(&mut self, now: Now) {
        if !self.open.is_empty() {
            self.lapses.add(now, Duration::ZERO);
        }
    }

    /// Edges whose peers have no good certificate any more, and why (rule R1). Empty when it is not time to look.
    pub(super) fn lapsed(&mut self, now: Now, identity: &Identity) -> Vec<(EdgeId, String)> {
        if !self.lapses.is_due(now) {
            return Vec::new();
        }
        let wall = Duration::from_millis(now.wall.0);
        let mut lapsed = Vec::new();
        for (id, edge) in &self.open {
            let standing = edge.sender.standing();
            match identity.objection(&standing, wall) {
                None => self.lapses.add(now, standing.validity.until),
                Some(why) => lapsed.push((*id, why)),
            }
        }
        lapsed
    }

    pub(super) fn insert(&mut self, now: Now, id: EdgeId, opening: Opening) {
        self.lapses
            .add(now, opening.sender.standing().validity.until);
        let sender = Arc::new(opening.sender);
        let edge = Edge {
            sender: Arc::clone(&sender),
            reader: opening.reader,
            name: format!("{} ({})", opening.peer.name, opening.address),
            owner: opening.certified.name().to_owned(),
            home: opening.certified.home(),
            begun: false,
            sign: 0,
            end: End::default(),
            held: opening.held,
        };
        let seen = Seen {
            sender,
            peer: opening.peer,
            certified: opening.certified,
            address: opening.address,
            direction: opening.direction,
            round_trip: opening.round_trip,
            since: opening.since,
        };
        self.shares.take(edge.owner.clone(), 1);
        self.open.insert(id, edge);
        self.shared.insert(id, seen);
    }

    /// Ends an edge: what is queued is still written, for the time that the transport allows; nothing more is read.
    pub(super) fn close(&mut self, id: EdgeId) -> Option<Edge> {
        let mut edge = self.open.remove(&id)?;
        edge.end.wanted = *self.shared.wanted.borrow();
        edge.reader.abort();
        edge.sender.close();
        self.shares.give_back(&edge.owner, 1);
        self.shared.remove(id);
        Some(edge)
    }

    /// Ends an edge at once.
    pub(super) fn abort(&mut self, id: EdgeId) -> Option<Edge> {
        self.open.get(&id)?.sender.abort();
        self.close(id)
    }
}

impl Drop for Edges {
    /// Handles outlive a driver; its edges must not.
    fn drop(&mut self) {
        for id in self.ids() {
            self.abort(id);
        }
    }
}

impl Edge {
    pub(super) fn sender(&self) -> &FrameSender {
        &self.sender
    }

    /// Why a message from this edge is not taken: a home speaks for itself alone (rule R1). Through a site comes the stream
    /// of any home.
    pub(super) fn objection(&self, message: &Message) -> Option<String> {
        let (Message::Down(down), Some(own)) = (message, self.home) else {
            return None;
        };
        let other = down.home();
        (other != own).then(|| {
            format!(
                "it speaks for the home with the id {:08x}, and its certificate is that of the home with the id {:08x}: give the \
                 address of the other one, or of a site",
                other.0, own.0
            )
        })
    }

    /// This node ends it, for a reason that says what to do.
    pub(super) fn ended_for(mut self, why: String) {
        self.end.why = Some(why);
    }

    /// It was the peer that ended it: a parent that had begun a stream is dialed again without a long wait.
    pub(super) fn ended_by_peer(mut self) {
        self.end.good = self.begun;
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            // Nobody listens when the driver goes.
            let _ = held.send(std::mem::take(&mut self.end));
        }
    }
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing panics half-way through a change of the table.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, id: EdgeId, seen: Seen) {
        let mut table = self.table();
        table.gone.begun += 1;
        table.edges.insert(id, seen);
        table.sweep();
    }

    fn remove(&self, id: EdgeId) {
        let mut table = self.table();
        if let Some(seen) = table.edges.remove(&id) {
            table.leaving.push((seen.sender, seen.direction));
        }
        table.sweep();
    }

    /// Whether closed edges still write, and open ones have something to write.
    pub(super) fn is_writing(&self) -> bool {
        let mut table = self.table();
        table.sweep();
        let open = table.edges.values();
        !table.leaving.is_empty() || open.into_iter().any(|seen| seen.sender.queued().frames > 0)
    }

    pub(super) fn edges(&self) -> Vec<EdgeStatus> {
        let table = self.table();
        table
            .edges
            .iter()
            .map(|(id, seen)| seen.status(*id))
            .collect()
    }

    pub(super) fn totals(&self) -> Totals {
        let table = self.table();
        let mut totals = table.gone;
        for seen in table.edges.values() {
            totals.add(seen.direction, seen.sender.traffic());
        }
        for (sender, direction) in &table.leaving {
            totals.add(*direction, sender.traffic());
        }
        totals
    }

    pub(super) fn set_delay(&self, edge: EdgeId, delay: LinkDelay) -> bool {
        let table = self.table();
        let seen = table.edges.get(&edge);
        seen.map(|seen| seen.sender.set_delay(delay)).is_some()
    }

    pub(super) fn parents(&self) -> Vec<ParentStatus> {
        self.table().parents.clone()
    }

    pub(super) fn add_parent(&self, parent: ParentStatus) {
        self.table().parents.push(parent);
    }

    pub(super) fn set_parent(&self, index: usize, state: ParentState) {
        if let Some(parent) = self.table().parents.get_mut(index) {
            parent.state = state;
        }
    }
}

impl Table {
    /// Counts out whoever has written everything.
    fn sweep(&mut self) {
        let too_many = self.leaving.len().saturating_sub(LEAVING_MAX);
        let mut index = 0;
        let gone = &mut self.gone;
        self.leaving.retain(|(sender, direction)| {
            index += 1;
            let stays = index > too_many && sender.queued().frames > 0;
            if !stays {
                gone.add(*direction, sender.traffic());
            }
            stays
        });
    }
}

impl Seen {
    fn status(&self, edge: EdgeId) -> EdgeStatus {
        EdgeStatus {
            edge,
            peer: self.peer.clone(),
            certified: self.certified.clone(),
            address: self.address.clone(),
            direction: self.direction,
            round_trip: self.round_trip,
            traffic: self.sender.traffic(),
            queued: self.sender.queued(),
            since: self.since,
        }
    }
}

impl Totals {
    fn add(&mut self, direction: Direction, traffic: Traffic) {
        let total = match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        total.bytes_sent += traffic.bytes_sent;
        total.frames_sent += traffic.frames_sent;
        total.bytes_received += traffic.bytes_received;
        total.frames_received += traffic.frames_received;
    }
}
