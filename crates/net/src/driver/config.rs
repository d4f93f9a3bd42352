//! What a driver is told, and its limits (rule 15).

use std::collections::BTreeMap;
use std::time::Duration;

use thorp_model::limits::{CHILDREN_MAX, OTHER_HOMES_MAX};
use thorp_model::{NodeKind, Peer, codec};

use super::gate::Gate;
use crate::{Address, Config, Identity, Limits, LinkDelay, Listener, Role};

/// What a driver is told when it is made.
#[derive(Debug)]
pub struct DriverConfig {
    /// Proves who this node is.
    pub identity: Identity,
    /// How this node greets: as its certificate says ([`Identity::greeting`]).
    pub hello: Peer,
    /// Where children come in; bound with [`net_config`] of this node's kind.
    pub listeners: Vec<Listener>,
    /// Whom to dial, and to dial again for ever when lost.
    pub parents: Vec<ParentConfig>,
    /// Delays towards children, by name; others have that of their listener. Plays wide-area links.
    pub child_delays: BTreeMap<String, LinkDelay>,
    /// Whom it lets in.
    pub gate: Gate,
    /// Limits of this driver.
    pub limits: DriverLimits,
    /// Limits of each connection to a parent.
    pub net_limits: Limits,
}

/// One parent: a home, or a redirector.
#[derive(Clone, Debug)]
pub struct ParentConfig {
    /// Its addresses, at most [`ADDRESSES_MAX`](crate::ADDRESSES_MAX), the preferred one first; of a site, also those of others that take its place. The one where an edge was
    /// lost is tried last, and an edge that stands is not given up for another address, if `heals_every` does not say so.
    pub addresses: Vec<Address>,
    /// The name it must have in its certificate; without it any node of the village will do.
    pub expect_name: Option<String>,
    /// Delay on what goes up to it. What comes down is delayed at the other end.
    pub delay: LinkDelay,
    /// It is dialed only when it is [wanted](super::Handle::want_parents), once for each time.
    pub on_demand: bool,
    /// The addresses are those of several parents, in an order of preference: the first that answers is the parent. So often
    /// those before it are tried again, and turned to when one answers (rule 13). Without it, any address is as good.
    pub heals_every: Option<Duration>,
    /// Within this time all addresses are called, although those before them neither answer nor refuse.
    pub called_within: Duration,
}

/// Limits of a driver. The defaults are the constants of the same names.
#[derive(Clone, Debug)]
pub struct DriverLimits {
    /// Edges at one time, both ways. No name in a certificate has more of them than it leaves free (rule 15).
    pub edges_max: usize,
    /// Received frames of one edge that wait for the loop.
    pub inbox_frames_max: usize,
    /// The bytes of these, and of frames that are arriving. No name in a certificate has more of them than it leaves free
    /// (rule 15).
    pub inbox_bytes_max: usize,
    /// Asks of the program that wait for the loop.
    pub asks_waiting_max: usize,
    /// Longest time that a clean shutdown goes on writing.
    pub flush_time_max: Duration,
}

impl DriverConfig {
    /// A node without listeners and parents.
    pub fn new(identity: Identity, hello: Peer) -> Self {
        Self {
            identity,
            hello,
            listeners: Vec::new(),
            parents: Vec::new(),
            child_delays: BTreeMap::new(),
            gate: Gate::default(),
            limits: DriverLimits::default(),
            net_limits: Limits::default(),
        }
    }
}

impl ParentConfig {
    /// A parent of any name, without delay.
    pub fn new(addresses: Vec<Address>) -> Self {
        Self {
            addresses,
            expect_name: None,
            delay: LinkDelay::default(),
            on_demand: false,
            heals_every: None,
            called_within: CALLED_WITHIN,
        }
    }

    /// The addresses are those of several parents, the preferred ones first.
    #[must_use]
    pub fn healing(mut self, every: Duration) -> Self {
        self.heals_every = Some(every);
        self
    }

    /// All addresses are called within this time.
    #[must_use]
    pub fn called_within(mut self, time: Duration) -> Self {
        self.called_within = time;
        self
    }

    /// It is dialed only when it is wanted.
    #[must_use]
    pub fn on_demand(mut self) -> Self {
        self.on_demand = true;
        self
    }

    /// It must have this name in its certificate.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.expect_name = Some(name.into());
        self
    }

    /// What goes up to it is delayed.
    #[must_use]
    pub fn delayed(mut self, one_way: Duration) -> Self {
        self.delay = LinkDelay::new(one_way);
        self
    }
}

impl Default for DriverLimits {
    fn default() -> Self {
        Self {
            edges_max: EDGES_MAX,
            inbox_frames_max: INBOX_FRAMES_MAX,
            inbox_bytes_max: INBOX_BYTES_MAX,
            asks_waiting_max: ASKS_WAITING_MAX,
            flush_time_max: FLUSH_TIME_MAX,
        }
    }
}

/// The transport's settings for a node of this kind, with the version of the machine's protocol.
pub fn net_config(kind: NodeKind) -> Config {
    let role = match kind {
        NodeKind::Home => Role::HOME,
        NodeKind::Redirector => Role::SITE,
        NodeKind::Member => Role::MEMBER,
    };
    Config {
        version: codec::PROTOCOL_VERSION,
        ..Config::new(role)
    }
}

/// Edges at one time: all the children a machine may have, and a few parents.
pub const EDGES_MAX: usize = CHILDREN_MAX + 64;
/// Parents of one node: as many as a home knows others. Whoever reads a configuration refuses more.
pub const PARENTS_MAX: usize = OTHER_HOMES_MAX;
/// Within this time all addresses of a parent are called: half of what a program usually waits to join.
pub const CALLED_WITHIN: Duration = Duration::from_secs(5);
/// Received frames of one edge that wait for the loop.
pub const INBOX_FRAMES_MAX: usize = 64;
/// Bytes of frames that are arriving or wait for the loop. A quarter is the most that one frame counts: the longest one.
pub const INBOX_BYTES_MAX: usize = 64 << 20;
/// Asks of the program that wait for the loop.
pub const ASKS_WAITING_MAX: usize = 16 << 10;
/// Longest time that a clean shutdown goes on writing.
pub const FLUSH_TIME_MAX: Duration = Duration::from_secs(3);

/// Inputs of one source that are handled before the others and the writers have their turn.
pub(super) const ROUND_INPUTS_MAX: usize = 64;
/// As long as that: the readers bring what others have sent.
pub(super) const ROUND_TIME_MAX: Duration = Duration::from_millis(1);
/// Connections that wait for the loop to take them.
pub(super) const ARRIVALS_MAX: usize = 16;
/// A connection to a parent that stood as long was good even if no home's stream ever began: dialing again begins without a
/// long wait.
pub(super) const STOOD_MIN: Duration = Duration::from_secs(5);
/// Of several addresses, one that has not answered for as long is not waited for alone. They are near: a second is long.
pub(super) const TURN_STAGGER: Duration = Duration::from_secs(1);
/// Edges that are closed and still write what was queued.
pub(super) const LEAVING_MAX: usize = 1024;
/// Between looks at whether everything is written, during a shutdown.
pub(super) const FLUSH_LOOK: Duration = Duration::from_millis(2);
/// The time that goodbyes get after everything is written.
pub(super) const GOODBYE_TIME: Duration = Duration::from_millis(20);
