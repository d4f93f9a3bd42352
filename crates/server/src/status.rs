//! How a node is: what `/status` tells, and what `/metrics` and `/health` are made of.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use thorp_model::codec::PROTOCOL_VERSION;
use thorp_model::{
    Direction, EdgeId, HomeId, Lack, MemberId, NodeKind, Note, Position, SpaceBound, StateMachine,
};
use thorp_net::Traffic;
use thorp_net::driver::{EdgeStatus, Handle, ParentState, ParentStatus, now};
use thorp_protocol::Doubts;

use crate::privileges::PrivilegesStatus;

/// How a node is.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// `home` or `site`.
    pub role: &'static str,
    /// Its name.
    pub name: String,
    /// This process start, in hexadecimal digits. For operators only.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// Its village.
    pub village: String,
    /// The program's version.
    pub version: &'static str,
    /// The version of what it speaks on edges.
    pub protocol_version: u16,
    /// How long it runs, in seconds.
    pub uptime_s: u64,
    /// Whether it does all that it is there for.
    pub health: Health,
    /// The homes it knows; a home knows itself.
    pub homes: Vec<HomeStatus>,
    /// Whom it dials.
    pub parents: Vec<ParentLine>,
    /// Who is connected below.
    pub children: Vec<ChildStatus>,
    /// Where pages came from.
    pub pages: HitCounts,
    /// How often each branch of a rule was taken, by its name in snake case.
    pub notes: BTreeMap<String, u64>,
    /// The sizes of the state machine's tables.
    pub sizes: BTreeMap<&'static str, u64>,
    /// Bytes and frames to and from parents since the start.
    pub up: TrafficLine,
    /// Bytes and frames to and from children since the start.
    pub down: TrafficLine,
    /// A home's storage.
    pub storage: Option<StorageStatus>,
    /// Whether a home continues its history (rule R9).
    pub history: Option<HistoryStatus>,
    /// What a home shares with others (rule 10).
    pub agreement: Option<AgreementStatus>,
    /// What was granted to those below, and who waits because of that (rules C1 to C5).
    pub privileges: PrivilegesStatus,
}

/// Transactions over several homes, at one of them (rule 10).
#[derive(Clone, Debug, Default, Serialize)]
pub struct AgreementStatus {
    /// Votes whose outcome is not known here. What they read and wrote is locked.
    pub in_doubt: u64,
    /// How long the oldest of them has been so, in seconds; since the start, if it is from before.
    pub oldest_s: f64,
    /// The homes that can tell, if they have been so for long enough to be asked about.
    pub waits_for: Vec<WaitsFor>,
    /// Questions sent to other homes.
    pub asked: u64,
    /// Votes whose outcome the member told.
    pub resolved_by_member: u64,
    /// Votes whose outcome another home told.
    pub resolved_by_homes: u64,
    /// Votes that an operator ended (rule R7).
    pub resolved_by_operators: u64,
    /// News that a transaction ended otherwise at another home, or that its member decided otherwise (rule R7).
    pub ended_otherwise: u64,
    /// It is in doubt, and its configuration names no other home that it could ask.
    pub nobody_to_ask: bool,
}

/// What is wrong at a home that has voted with homes that it does not know any more.
const NOBODY_TO_ASK: &str = "it is in doubt about transactions over several homes and knows none of the others: what they touched stays locked; name them with --other-home, or as [[other_home]]";

/// A home that can tell how a transaction ended.
#[derive(Clone, Debug, Serialize)]
pub struct WaitsFor {
    /// Its id; its name is not known before it is reached.
    pub home: u32,
    /// Whether there is a way to it now.
    pub reached: bool,
}

/// Whether a node does all that it is there for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Health {
    /// It does.
    pub ok: bool,
    /// Why not.
    pub reasons: Vec<String>,
}

/// One home, as this node knows it.
#[derive(Clone, Debug, Serialize)]
pub struct HomeStatus {
    /// Its id.
    pub home: u32,
    /// Its name.
    pub name: String,
    /// How far its stream was applied here; at the home itself, how far its log is durable.
    pub position: u64,
    /// Whether its stream comes in.
    pub connected: bool,
}

/// One parent.
#[derive(Clone, Debug, Serialize)]
pub struct ParentLine {
    /// The name it must have, or has.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// Whether it is reached.
    pub connected: bool,
    /// Whether it should be. Another home is dialed only while there is something to ask it.
    pub wanted: bool,
    /// Where, as the system knows the address.
    pub reached_at: Option<String>,
    /// The round trip to it when it was reached, over TCP.
    pub round_trip_ms: Option<f64>,
    /// Since when it is not reached, in seconds.
    pub lost_for_s: Option<u64>,
    /// What went wrong last.
    pub why: Option<String>,
    /// Bytes and frames on the present connection.
    pub traffic: Option<TrafficLine>,
}

/// One child.
#[derive(Clone, Debug, Serialize)]
pub struct ChildStatus {
    /// Its edge.
    pub edge: u64,
    /// The name it tells.
    pub name: String,
    /// The role and the name in its certificate: `thorp:member/anna`.
    pub certificate: String,
    /// `site` or `member`.
    pub kind: &'static str,
    /// Its process start. For operators only.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// Where it is.
    pub address: String,
    /// How far it has acknowledged each home's stream.
    pub homes: Vec<AtHome>,
    /// Bytes that wait to be written to it.
    pub queued_bytes: usize,
    /// Frames that wait to be written to it.
    pub queued_frames: usize,
    /// Bytes and frames, both ways.
    pub traffic: TrafficLine,
    /// How long it is connected, in seconds.
    pub connected_s: u64,
    /// It lags behind and has acknowledged nothing for five seconds.
    pub stuck: bool,
}

/// How far a child has come in one home's stream.
#[derive(Clone, Debug, Serialize)]
pub struct AtHome {
    /// Which home.
    pub home: u32,
    /// It has applied everything up to here.
    pub acknowledged: u64,
    /// Positions that this node is ahead of it.
    pub lag: u64,
}

/// Where pages came from, as counts of requests.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HitCounts {
    /// This node's memory.
    pub from_memory: u64,
    /// A member that was asked to help.
    pub redirected: u64,
    /// Joined with a request in flight.
    pub joined: u64,
    /// Asked of the parent.
    pub from_parent: u64,
    /// Of what was invalidated, asked of the parent before anybody below asked for it (rule 8).
    pub refetched: u64,
    /// Of these, asked for below since.
    pub refetches_used: u64,
    /// Of these, changed again or gone before anybody did.
    pub refetches_wasted: u64,
    /// Asked of the parent before anybody below asked for it, because it often comes next (rule 9).
    pub fetched_ahead: u64,
    /// Of these, asked for below since.
    pub ahead_used: u64,
    /// Of these, gone before anybody did, or never asked for while many others were.
    pub ahead_wasted: u64,
    /// Loaded from the home's disk.
    pub from_disk: u64,
    /// The part of a site's requests that cost nothing upward; none before the first.
    pub served_near: Option<f64>,
}

/// Bytes and frames.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct TrafficLine {
    /// Bytes sent, with length prefixes.
    pub bytes_sent: u64,
    /// Frames sent.
    pub frames_sent: u64,
    /// Bytes received, with length prefixes.
    pub bytes_received: u64,
    /// Frames received.
    pub frames_received: u64,
}

/// A home's storage.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StorageStatus {
    /// What it holds, in bytes of keys, values and checksums.
    pub bytes: u64,
    /// The most it may hold.
    pub limit_bytes: Option<u64>,
    /// Whether commits are taken.
    pub room: bool,
    /// What it lacks to take commits.
    pub lack: Option<LackStatus>,
    /// How often the home was opened in this process, and why last.
    pub opened: Opened,
    /// What each table holds.
    pub tables: BTreeMap<&'static str, TableLine>,
    /// Batches made durable.
    pub batches: u64,
    /// Syncs that made them so.
    pub groups: u64,
    /// Bytes of keys and values in them.
    pub batch_bytes: u64,
    /// Seconds spent in them.
    pub commit_s: f64,
}

/// What a full store lacks.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LackStatus {
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Bytes that would have to be free.
    pub needed_bytes: u64,
    /// Of what: `limit` or `volume`.
    pub of: &'static str,
}

impl LackStatus {
    /// As a store says it.
    pub fn of(lack: Lack) -> Self {
        LackStatus {
            free_bytes: lack.free,
            needed_bytes: lack.needed,
            of: match lack.of {
                SpaceBound::Limit => "limit",
                SpaceBound::Volume => "volume",
            },
        }
    }
}

/// The history of a home.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HistoryStatus {
    /// How often an operator has opened it as closed.
    pub incarnation: u16,
    /// The lives of its history that it knows.
    pub lives: usize,
    /// Why it lets in operators only; none if it is open.
    pub closed: Option<String>,
    /// The claim that proved another history, if that is why.
    pub met: Option<MetStatus>,
}

/// A claim that proved another history to a home.
#[derive(Clone, Debug, Serialize)]
pub struct MetStatus {
    /// The name of the node that brought it.
    pub by: String,
    /// The incarnation of that history.
    pub incarnation: u16,
    /// The counter of the life that it names.
    pub life: u32,
    /// How far that life was.
    pub position: u64,
}

/// How often a home was opened.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Opened {
    /// So often.
    pub times: u64,
    /// Why it was opened again the last time.
    pub why: Option<String>,
}

/// What one table of a store holds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct TableLine {
    /// Records.
    pub records: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A vote that is in doubt for so long needs a person.
pub(crate) const DOUBT_LONG: Duration = Duration::from_secs(30);
/// A child that lags behind and acknowledges nothing for so long is called stuck.
pub(crate) const STUCK_AFTER: Duration = Duration::from_secs(5);
/// A loop that does not answer for so long is called stuck.
pub(crate) const LOOK_TIME_MAX: Duration = Duration::from_secs(2);

/// A node that can be looked at, from the thread that serves HTTP.
pub(crate) trait Watched: Send + Sync + 'static {
    /// How it is now.
    fn look(&self) -> impl Future<Output = Status> + Send;
}

/// What a node is from its start on.
#[derive(Clone, Debug)]
pub(crate) struct Nameplate {
    pub(crate) role: &'static str,
    pub(crate) name: String,
    pub(crate) node: MemberId,
    pub(crate) village: String,
    pub(crate) since: Instant,
}

/// How far each child has acknowledged, by home.
pub(crate) type Acknowledged = HashMap<EdgeId, Vec<(HomeId, Position)>>;

impl Nameplate {
    /// Everything that a driver's handle knows.
    pub(crate) fn status<C: StateMachine>(&self, handle: &Handle<C>) -> Status {
        let totals = handle.totals();
        let notes = handle.notes();
        Status {
            role: self.role,
            name: self.name.clone(),
            node: self.node.to_string(),
            village: self.village.clone(),
            version: env!("CARGO_PKG_VERSION"),
            protocol_version: PROTOCOL_VERSION,
            uptime_s: self.since.elapsed().as_secs(),
            health: Health::default(),
            homes: Vec::new(),
            parents: parents(handle),
            children: Vec::new(),
            pages: HitCounts::of(handle),
            notes: notes
                .all()
                .map(|(n, c)| (snake_case(n.name()), c))
                .collect(),
            sizes: BTreeMap::new(),
            up: totals.up.into(),
            down: totals.down.into(),
            storage: None,
            history: None,
            agreement: None,
            privileges: PrivilegesStatus::default(),
        }
    }
}

impl AgreementStatus {
    pub(crate) fn of<C: StateMachine>(doubts: &Doubts, handle: &Handle<C>) -> Self {
        let notes = handle.notes();
        let homes = doubts.homes.iter();
        let waits_for = homes.map(|(home, reached)| WaitsFor {
            home: home.0,
            reached: *reached,
        });
        Self {
            in_doubt: doubts.votes as u64,
            oldest_s: doubts.oldest_ms as f64 / 1000.0,
            waits_for: waits_for.collect(),
            asked: notes.get(Note::InDoubtAsked),
            resolved_by_member: notes.get(Note::DecidedByMember),
            resolved_by_homes: notes.get(Note::InDoubtResolved),
            resolved_by_operators: notes.get(Note::DoubtSettled),
            ended_otherwise: notes.get(Note::EndedOtherwise),
            // Each of them is dialed on demand: a parent of the driver.
            nobody_to_ask: doubts.votes > 0 && handle.parents().is_empty(),
        }
    }

    /// What a person should look into.
    pub(crate) fn trouble(&self) -> Vec<String> {
        let unknown = self.nobody_to_ask.then(|| NOBODY_TO_ASK.to_owned());
        unknown.into_iter().chain(self.long_doubt()).collect()
    }

    fn long_doubt(&self) -> Option<String> {
        if self.oldest_s < DOUBT_LONG.as_secs_f64() {
            return None;
        }
        let unreached = self.waits_for.iter().filter(|home| !home.reached);
        let unreached: Vec<String> = unreached.map(|home| home.home.to_string()).collect();
        let why = match unreached.is_empty() {
            true => "the other homes do not know it either".to_owned(),
            false => format!("not reached: home id {}", unreached.join(", ")),
        };
        Some(format!(
            "{} transactions in doubt, the oldest for {:.0} s: what they touched is locked; {why}; `thorp doubt list` shows them",
            self.in_doubt, self.oldest_s
        ))
    }
}

impl Status {
    /// Sets the sizes of the state machine's tables.
    pub(crate) fn set_sizes(&mut self, sizes: &[(&'static str, usize)]) {
        let sizes = sizes.iter();
        self.sizes = sizes.map(|(name, size)| (*name, *size as u64)).collect();
    }

    /// Sets the children.
    pub(crate) fn set_children(
        &mut self,
        edges: &[EdgeStatus],
        acked: &Acknowledged,
        patience: &Patience,
    ) {
        let positions = self.homes.iter();
        let positions: HashMap<u32, u64> = positions.map(|h| (h.home, h.position)).collect();
        let below = |edge: &&EdgeStatus| edge.direction == Direction::Down;
        let children = edges.iter().filter(below);
        self.children = children
            .map(|edge| child(edge, acked.get(&edge.edge), &positions))
            .collect();
        patience.judge(&mut self.children);
    }

    /// Leaves out the process ids, which are for operators.
    pub(crate) fn hide_process_ids(&mut self) {
        let children = self.children.iter_mut().map(|child| &mut child.node);
        children
            .chain([&mut self.node])
            .for_each(|node| *node = String::new());
    }

    /// Sets the health from what is wrong.
    pub(crate) fn set_health(&mut self, reasons: Vec<String>) {
        let ok = reasons.is_empty();
        self.health = Health { ok, reasons };
    }
}

/// Remembers since when a child has not come further.
#[derive(Default)]
pub(crate) struct Patience(Mutex<HashMap<u64, Lagging>>);

/// How far a child had come when it began to lag there.
#[derive(Clone, Copy)]
struct Lagging {
    acknowledged: u64,
    since: Instant,
}

impl Patience {
    fn judge(&self, children: &mut [ChildStatus]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *known);
        let now = Instant::now();
        for child in children {
            let lag: u64 = child.homes.iter().map(|at| at.lag).sum();
            if lag == 0 {
                continue;
            }
            let acknowledged = child.homes.iter().map(|at| at.acknowledged).sum();
            let since = match before.get(&child.edge) {
                Some(lagging) if lagging.acknowledged == acknowledged => lagging.since,
                _ => now,
            };
            child.stuck = now - since >= STUCK_AFTER;
            let lagging = Lagging {
                acknowledged,
                since,
            };
            known.insert(child.edge, lagging);
        }
    }
}

/// `AcceptedOnPageGrounds` as `accepted_on_page_grounds`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

impl HitCounts {
    fn of<C: StateMachine>(handle: &Handle<C>) -> Self {
        let notes = handle.notes();
        let from_memory = notes.get(Note::ServedFromMemory);
        let redirected = notes.get(Note::Redirected);
        let joined = notes.get(Note::FetchJoined);
        let refetched = notes.get(Note::Refetched);
        let fetched_ahead = notes.get(Note::FetchedAhead);
        let unasked = refetched + fetched_ahead;
        let from_parent = notes.get(Note::FetchSent).saturating_sub(unasked);
        let near = from_memory + redirected + joined;
        let all = near + from_parent;
        Self {
            from_memory,
            redirected,
            joined,
            from_parent,
            refetched,
            refetches_used: notes.get(Note::RefetchUsed),
            refetches_wasted: notes.get(Note::RefetchWasted),
            fetched_ahead,
            ahead_used: notes.get(Note::AheadUsed),
            ahead_wasted: notes.get(Note::AheadWasted),
            from_disk: notes.get(Note::PageLoaded),
            served_near: (all > 0).then(|| near as f64 / all as f64),
        }
    }
}

impl From<Traffic> for TrafficLine {
    fn from(traffic: Traffic) -> Self {
        Self {
            bytes_sent: traffic.bytes_sent,
            frames_sent: traffic.frames_sent,
            bytes_received: traffic.bytes_received,
            frames_received: traffic.frames_received,
        }
    }
}

fn parents<C: StateMachine>(handle: &Handle<C>) -> Vec<ParentLine> {
    let edges = handle.edges();
    let parents = handle.parents();
    parents.into_iter().map(|p| parent(p, &edges)).collect()
}

fn parent(parent: ParentStatus, edges: &[EdgeStatus]) -> ParentLine {
    let mut line = ParentLine {
        name: parent.name,
        addresses: parent.addresses,
        connected: false,
        wanted: parent.state != ParentState::Unwanted,
        reached_at: None,
        round_trip_ms: None,
        lost_for_s: None,
        why: None,
        traffic: None,
    };
    match parent.state {
        ParentState::Dialing | ParentState::Unwanted => {}
        ParentState::Lost { since, why, .. } => {
            line.lost_for_s = Some(now().mono.since(since) / 1000);
            line.why = Some(why);
        }
        ParentState::Connected(edge) => {
            line.connected = true;
            if let Some(edge) = edges.iter().find(|seen| seen.edge == edge) {
                line.name.clone_from(&edge.peer.name);
                line.reached_at = Some(edge.address.clone());
                line.round_trip_ms = edge.round_trip.map(|time| time.as_secs_f64() * 1e3);
                line.traffic = Some(edge.traffic.into());
            }
        }
    }
    line
}

fn child(
    edge: &EdgeStatus,
    acked: Option<&Vec<(HomeId, Position)>>,
    positions: &HashMap<u32, u64>,
) -> ChildStatus {
    let homes = acked.into_iter().flatten().map(|(home, acknowledged)| {
        let position = positions.get(&home.0).copied().unwrap_or_default();
        AtHome {
            home: home.0,
            acknowledged: acknowledged.0,
            lag: position.saturating_sub(acknowledged.0),
        }
    });
    ChildStatus {
        edge: edge.edge.0,
        name: edge.peer.name.clone(),
        certificate: edge.certified.to_uri(),
        kind: match edge.peer.kind {
            NodeKind::Home => "home",
            NodeKind::Redirector => "site",
            NodeKind::Member => "member",
        },
        node: edge.peer.node.to_string(),
        address: edge.address.clone(),
        homes: homes.collect(),
        queued_bytes: edge.queued.bytes,
        queued_frames: edge.queued.frames,
        traffic: edge.traffic.into(),
        connected_s: now().mono.since(edge.since) / 1000,
        stuck: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_stuck_when_it_lags_and_does_not_move() {
        let patience = Patience::default();
        let at = |acknowledged, lag| AtHome {
            home: 1,
            acknowledged,
            lag,
        };
        let long_ago = Instant::now().checked_sub(STUCK_AFTER).unwrap();
        let stuck = |acknowledged, lag| {
            let mut children = [ChildStatus {
                edge: 3,
                name: String::new(),
                certificate: String::new(),
                kind: "member",
                node: String::new(),
                address: String::new(),
                homes: vec![at(acknowledged, lag)],
                queued_bytes: 0,
                queued_frames: 0,
                traffic: TrafficLine::default(),
                connected_s: 0,
                stuck: false,
            }];
            patience.judge(&mut children);
            children[0].stuck
        };
        let age = || {
            for lagging in patience.0.lock().unwrap().values_mut() {
                lagging.since = long_ago;
            }
        };
        assert!(!stuck(5, 2));
        age();
        assert!(!stuck(6, 2), "it moves");
        age();
        assert!(stuck(6, 3));
        assert!(!stuck(9, 0), "it has caught up");
        age();
        assert!(!stuck(9, 1), "it has only just fallen behind");
    }
}
