//! Everything that can be set, and every limit of this crate, in one place.

use std::fmt;
use std::time::Duration;

use crate::Congestion;

/// What one end of a connection is and how it behaves. Built with [`Config::new`], then changed field by field.
#[derive(Debug, Clone)]
pub struct Config {
    /// What this node is; told to the peer in the handshake.
    pub role: Role,
    /// The protocol version this node speaks; both ends must speak the same.
    pub version: u16,
    /// Delay put on everything this end sends.
    pub delay: LinkDelay,
    /// Limits of every queue, frame and wait.
    pub limits: Limits,
}

/// What a node is, as one byte on the wire. This crate gives it no meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Role(pub u8);

/// A delay in user space, so that a wide-area link can be played on one machine without privileges.
///
/// A frame is written no earlier than `one_way` after it was submitted. Order is kept, and frames travel behind each other
/// like on a real link: the delay costs no throughput. Each end delays what it sends, so a round trip takes the
/// sum of both. The handshake is not delayed. Frames under way count against the sender's queue limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkDelay {
    /// From submitting a frame to writing it. Zero (the default) switches the delay off.
    pub one_way: Duration,
}

/// Limits of one connection or listener. The defaults are the constants of the same names.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Longest frame, without its length prefix, in bytes; for both directions.
    pub frame_bytes_max: usize,
    /// Longest time in which a frame that is arriving gives no sign of life ([`FRAME_SIGNS_MAX`]): then the connection ends.
    pub frame_progress_time_max: Duration,
    /// Most bytes (with length prefixes) that wait to be written to one peer.
    pub queue_bytes_max: usize,
    /// Most frames that wait to be written to one peer.
    pub queue_frames_max: usize,
    /// Longest time to connect to one address.
    pub connect_timeout: Duration,
    /// Longest time for TLS and greetings together.
    pub handshake_timeout: Duration,
    /// Longest time until the first byte of a caller, and after TLS until the first byte of its greeting.
    pub first_byte_time_max: Duration,
    /// Most callers of one listener that have sent nothing yet, or wait for a place in handshake. No address has more of
    /// them than it leaves free. Above that a newer caller takes the place of the oldest silent one; until it may, it waits
    /// in the system's backlog.
    pub silent_callers_max: usize,
    /// Most callers of one listener that are in handshake or not yet accepted. The same holds for these: a newer one takes
    /// the place of the oldest one whose greeting has not come.
    pub handshakes_max: usize,
    /// So many more are kept for addresses of which a caller has completed its greeting before.
    pub handshakes_known_max: usize,
    /// Longest time a closed sender goes on writing what is queued (the link delay comes on top).
    pub close_linger_max: Duration,
    /// Most sockets of one connection, for frames that may overtake others ([`Connection::widen`](crate::Connection::widen)).
    pub lanes: usize,
    /// How fast TCP sends.
    pub congestion: Congestion,
}

impl Config {
    /// The defaults for a node of this role.
    pub fn new(role: Role) -> Self {
        Self {
            role,
            version: PROTOCOL_VERSION,
            delay: LinkDelay::default(),
            limits: Limits::default(),
        }
    }
}

impl Role {
    /// A home.
    pub const HOME: Self = Self(1);
    /// A site's redirector.
    pub const SITE: Self = Self(2);
    /// A member.
    pub const MEMBER: Self = Self(3);
    /// No node, but a further socket of a connection: its hello tells of which.
    pub(crate) const LANE: Self = Self(4);
    /// No node, but an end of a connection that has a new certificate: its hello tells of which.
    pub(crate) const PROOF: Self = Self(5);
    /// The authority, which announces something in its hello.
    pub(crate) const AUTHORITY: Self = Self(6);
    /// No node yet, and it asks the authority for its first certificate.
    pub(crate) const JOIN: Self = Self(7);
    /// A node that asks the authority for a new certificate.
    pub(crate) const RENEW: Self = Self(8);
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::HOME => f.write_str("home"),
            Self::SITE => f.write_str("site"),
            Self::MEMBER => f.write_str("member"),
            Self::LANE => f.write_str("lane"),
            Self::PROOF => f.write_str("proof"),
            Self::AUTHORITY => f.write_str("authority"),
            Self::JOIN => f.write_str("node that joins"),
            Self::RENEW => f.write_str("node that renews its certificate"),
            Self(other) => write!(f, "node of role {other}"),
        }
    }
}

impl LinkDelay {
    /// A delay of `one_way` on what this end sends.
    pub fn new(one_way: Duration) -> Self {
        Self { one_way }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes_max: FRAME_BYTES_MAX,
            frame_progress_time_max: FRAME_PROGRESS_TIME_MAX,
            queue_bytes_max: QUEUE_BYTES_MAX,
            queue_frames_max: QUEUE_FRAMES_MAX,
            connect_timeout: CONNECT_TIMEOUT,
            handshake_timeout: HANDSHAKE_TIMEOUT,
            first_byte_time_max: FIRST_BYTE_TIME_MAX,
            silent_callers_max: SILENT_CALLERS_MAX,
            handshakes_max: HANDSHAKES_MAX,
            handshakes_known_max: HANDSHAKES_KNOWN_MAX,
            close_linger_max: CLOSE_LINGER_MAX,
            lanes: LANES,
            congestion: Congestion::default(),
        }
    }
}

/// The protocol version of this program.
pub const PROTOCOL_VERSION: u16 = thorp_model::codec::PROTOCOL_VERSION;
/// Longest frame, without its length prefix.
pub const FRAME_BYTES_MAX: usize = 16 << 20;
/// Most bytes waiting for one peer: a few of the longest frames.
pub const QUEUE_BYTES_MAX: usize = 64 << 20;
/// Of a frame that is not complete, fewer bytes than these say nothing about whether the peer is alive: a page of a long
/// frame, and a shorter frame as a whole, have to arrive within the silence that rule 13 allows. A link of 64 kB/s
/// brings that in an eighth of a second.
pub const FRAME_SIGN_BYTES_MIN: usize = 8 << 10;
/// Most signs of life that one frame gives while it arrives: each of them is an equal part of it. So no frame takes longer than
/// this many times the silence that rule 13 allows, and 16 MiB need 64 KiB in each.
pub const FRAME_SIGNS_MAX: usize = 256;
/// Longest time between two signs of life of a frame that is arriving, on any socket of a connection. It is twice the silence
/// that rule 13 allows, which a node counts for the first socket only: so half a frame holds its space for no longer.
pub const FRAME_PROGRESS_TIME_MAX: Duration = Duration::from_secs(30);
/// Most frames waiting for one peer: bounds what tiny frames cost beyond their bytes.
pub const QUEUE_FRAMES_MAX: usize = 256 << 10;
/// Longest hello, and longest reason of a rejection.
pub const HELLO_BYTES_MAX: usize = 4 << 10;
/// Longest time to connect to one address.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time for TLS and greetings together.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time until a caller's first byte: it has no reason to wait before it sends one.
pub const FIRST_BYTE_TIME_MAX: Duration = Duration::from_secs(2);
/// Most callers of one listener that have sent nothing. Each costs a descriptor, and little memory.
pub const SILENT_CALLERS_MAX: usize = 512;
/// Most callers of one listener in handshake. One address alone has half: by [`HANDSHAKE_TIME_MIN`] that is more than
/// five hundred callers a second.
pub const HANDSHAKES_MAX: usize = 256;
/// Places more for addresses that are known.
pub const HANDSHAKES_KNOWN_MAX: usize = 32;
/// Longest time a closed sender goes on writing.
pub const CLOSE_LINGER_MAX: Duration = Duration::from_secs(5);
/// Most sockets of one connection: with one packet in a hundred lost at 40 ms, and thirty pages under way, the median page
/// waits 1.75 times as long as without loss behind one socket, 1.4 behind two, 1.2 behind four, and 1.1 behind eight.
pub const LANES: usize = 4;
/// More sockets than these bring little, and each costs memory in both systems.
pub const LANES_MAX: usize = 16;
/// Most addresses of one parent: also those of other sites that take its place, or of the members that may. Whoever reads a
/// configuration refuses more.
pub const ADDRESSES_MAX: usize = 32;
/// Most addresses tried by one dial, after names are resolved.
pub const ATTEMPTS_MAX: usize = 16;
/// First wait of a [`Backoff`](crate::Backoff).
pub const BACKOFF_MIN: Duration = Duration::from_millis(50);
/// Longest wait of a [`Backoff`](crate::Backoff).
pub const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// Nobody loses its place to a newer caller within this time: a handshake takes one round trip
/// from the moment in which the system has connected the caller.
pub(crate) const HANDSHAKE_TIME_MIN: Duration = Duration::from_millis(250);
/// Callers of a status port at one time; of each of them that has asked nothing yet, a newer one may take the place.
pub const STATUS_CALLERS_MAX: usize = 256;
/// So many more for addresses of which a caller has asked something before.
pub const STATUS_CALLERS_KNOWN_MAX: usize = 32;
/// Addresses of complete callers that a listener remembers.
pub(crate) const KNOWN_ORIGINS_MAX: usize = 1024;
/// A peer whose machine is gone is noticed after this long without an answer to what was sent. A peer whose machine
/// answers but whose program reads nothing for as long is taken for gone too.
pub(crate) const UNANSWERED_MAX: Duration = Duration::from_secs(30);
/// On an idle connection the system asks after this long whether the peer is still there.
pub(crate) const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
/// And then asks this often.
pub(crate) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// And gives up after so many questions.
pub(crate) const KEEPALIVE_PROBES: u32 = 3;
/// Frames are gathered into writes of about this many bytes: four full TLS records.
pub(crate) const BATCH_BYTES_MAX: usize = 64 << 10;
/// A frame longer than this is not copied into the batch but written from where it lies.
pub(crate) const COPY_BYTES_MAX: usize = 16 << 10;
/// The room of a frame up to this length is kept for the next one: a page and what stands before it.
pub(crate) const REUSED_BYTES_MAX: usize = 12 << 10;
/// What one read from the system may bring: the largest TLS record and then some.
pub(crate) const READ_BYTES: usize = 32 << 10;
/// After a failed handshake, how long and how much is still read, so that the peer gets to see why.
pub(crate) const FAREWELL_TIME_MAX: Duration = Duration::from_secs(1);
/// See [`FAREWELL_TIME_MAX`].
pub(crate) const FAREWELL_BYTES_MAX: usize = 64 << 10;
/// Pause after the system refused to accept (out of descriptors, say), so that the loop does not spin.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
