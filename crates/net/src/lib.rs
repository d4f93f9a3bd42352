//! Frames, TLS and the loop that drives any machine.
//!
//! This is the transport half: it carries opaque frames between two nodes of one village and knows nothing of what is in
//! them. A connection is TLS 1.3 with certificates on both ends, over TCP or over a Unix-domain socket (the same TLS
//! there: one way of knowing who the peer is, whatever the road).
//!
//! The ways in:
//!
//! - [`Identity`]: a node's certificate and key, and the authority of its village. The certificate names one role and
//!   one node ([`CertifiedName`], rule R1).
//! - [`Listener::bind`], then [`Listener::accept`] gives an [`Incoming`] caller to accept or to reject.
//! - [`dial`] gives a [`Connection`]; [`Backoff`] says how long to wait before trying again.
//! - [`Connection::split`] gives a [`FrameSender`] (never waits, never grows) and a [`FrameReceiver`].
//!
//! On the wire, after TLS: each side's greeting (magic, role, version, hello bytes), then frames, each a length (u32,
//! little-endian) and that many bytes.
//!
//! Everything here must be called inside a tokio runtime with its I/O and time drivers; a current-thread runtime is
//! enough.

mod abort;
mod address;
mod announce;
mod authority_server;
mod backoff;
mod clock;
mod config;
mod congestion;
mod connection;
mod crypto;
mod dialer;
mod doorway;
pub mod driver;
mod error;
mod frame;
mod handshake;
mod identity;
mod intake;
mod join;
mod lanes;
mod listener;
mod local;
mod places;
mod proof;
mod queue;
mod receiver;
mod shares;
mod socket;
mod status_port;
mod tls;
mod traffic;
mod utc;
mod writer;

pub use address::{Address, AddressError};
pub use announce::{NotAnnounced, announce_revoked};
pub use authority_server::AuthorityServer;
pub use backoff::Backoff;
pub use config::{
    ADDRESSES_MAX, ATTEMPTS_MAX, BACKOFF_MAX, BACKOFF_MIN, CLOSE_LINGER_MAX, CONNECT_TIMEOUT,
    Config, FIRST_BYTE_TIME_MAX, FRAME_BYTES_MAX, FRAME_PROGRESS_TIME_MAX, FRAME_SIGN_BYTES_MIN,
    FRAME_SIGNS_MAX, HANDSHAKE_TIMEOUT, HANDSHAKES_KNOWN_MAX, HANDSHAKES_MAX, HELLO_BYTES_MAX,
    LANES, LANES_MAX, Limits, LinkDelay, PROTOCOL_VERSION, QUEUE_BYTES_MAX, QUEUE_FRAMES_MAX, Role,
    SILENT_CALLERS_MAX, STATUS_CALLERS_KNOWN_MAX, STATUS_CALLERS_MAX,
};
pub use congestion::Congestion;
pub use connection::{Connection, FrameSender, Peer, Queued, SendError};
pub use dialer::{DialError, dial};
pub use error::{Error, ErrorKind, Side};
pub use frame::Frame;
pub use identity::{
    CertificateAuthority, CertifiedName, Grant, HomeIdOf, Identity, IdentityError,
    IssuedCertificate, JoinToken, NodeRole, NotAToken, OutOfTime, Papers, Rotation, Validity,
    issue, issue_with_site, may_hold_identity, site_dir,
};
pub use join::join;
pub use listener::{AcceptError, Incoming, Listener};
pub use receiver::FrameReceiver;
pub use status_port::{
    Duplex, StatusCaller, StatusPlace, StatusPort, StatusStream, call_status_port,
};
pub use traffic::Traffic;
pub use utc::Utc;
