//! What can go wrong between two nodes, and what to do about it.

use std::fmt;
use std::io;
use std::time::Duration;

use thorp_model::WhyTurnedAway;

use crate::Role;
use crate::identity::{NEW_CERTIFICATE, OutOfTime, RENEWED, WITH_HOME_ID};

/// What went wrong on a connection or while making one. [`Error::kind`] says what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system reported an error.
    Io {
        /// What was being done.
        during: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Something took longer than its limit.
    Timeout {
        /// What was being done.
        during: &'static str,
        /// The limit.
        after: Duration,
    },
    /// The peer went away without saying goodbye, between two frames.
    Lost,
    /// The connection ended in the middle of a frame or a greeting.
    Truncated {
        /// Bytes that had arrived.
        bytes: usize,
        /// Bytes that were due.
        bytes_due: usize,
    },
    /// The peer announced a frame above the limit.
    FrameTooLong {
        /// Announced, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        bytes_max: usize,
    },
    /// This side cut the connection off ([`FrameSender::abort`](crate::FrameSender::abort)).
    CutOff,
    /// This side hung up on a caller whose greeting had not come: newer callers needed its place.
    Displaced,
    /// The peer speaks TLS but not this protocol.
    NotThorp {
        /// The first bytes it sent.
        found: [u8; 5],
    },
    /// The peer speaks another version of the protocol.
    Version {
        /// What this program speaks.
        ours: u16,
        /// What the peer speaks.
        theirs: u16,
        /// What the peer is.
        role: Role,
    },
    /// The peer would not have this node, and says why.
    Rejected {
        /// Its reason, fit for printing.
        reason: String,
    },
    /// A hello above the limit: this side's, when dialing or accepting; else the peer's.
    HelloTooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The limit, in bytes.
        bytes_max: usize,
    },
    /// The peer's answer to the greeting has a form that does not exist.
    BadAnswer {
        /// The byte that should have said accepted or rejected.
        verdict: u8,
    },
    /// What answered does not speak TLS.
    NotTls,
    /// What answered speaks HTTP: it is the port of a node's status, or something else.
    SpeaksHttp,
    /// A certificate was signed by the authority of another village.
    OtherVillage {
        /// Whose certificate was not accepted.
        whose: Side,
        /// This node's village and the other one, if this side knows both. Nobody vouches for the other one's name.
        villages: Option<(String, String)>,
    },
    /// A certificate is no longer good (or a clock is wrong).
    Expired {
        /// Whose certificate was not accepted.
        whose: Side,
        /// When it was good, and the time; the peer does not tell.
        times: Option<OutOfTime>,
    },
    /// A certificate is not good yet: a clock is wrong.
    NotYetValid {
        /// Whose certificate was not accepted.
        whose: Side,
        /// When it is good, and the time.
        times: OutOfTime,
    },
    /// A certificate was needed and not shown.
    NoCertificate {
        /// Who did not show one.
        whose: Side,
    },
    /// The authority has revoked the peer's certificate.
    Revoked,
    /// The peer is of this village but not the node that was wanted.
    WrongName {
        /// The node that was wanted.
        expected: String,
        /// The name in the peer's certificate.
        found: String,
    },
    /// The peer's certificate does not name one role and one node.
    NoRole,
    /// The peer's certificate is that of a home, and does not name its id.
    NoHomeId,
    /// Anything else that TLS refuses.
    Tls(rustls::Error),
}

/// The village that a certificate claims which no authority of this node's village has signed.
#[derive(Debug)]
pub(crate) struct VillageShown {
    pub(crate) ours: String,
    pub(crate) theirs: String,
}

impl fmt::Display for VillageShown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is wanted, and {} is shown", self.ours, self.theirs)
    }
}

impl std::error::Error for VillageShown {}

/// One of the two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// This node.
    Ours,
    /// The node at the other end.
    Theirs,
}

/// What an error asks of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The network or the peer failed for now: try again after a while.
    Retry,
    /// The peer said no: what to do depends on its reason.
    Refused,
    /// Certificates, names, addresses or versions do not fit: a person has to mend it.
    Misconfigured,
    /// What answers is no node of this village: only another address helps.
    Elsewhere,
    /// The peer broke the protocol: drop it, and suspect it.
    PeerMisbehaved,
    /// This side asked for it.
    Ours,
}

impl Error {
    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { .. }
            | Self::Timeout { .. }
            | Self::Lost
            | Self::Truncated { .. }
            | Self::Displaced => ErrorKind::Retry,
            Self::Rejected { .. } => ErrorKind::Refused,
            Self::OtherVillage { .. } | Self::SpeaksHttp => ErrorKind::Elsewhere,
            Self::Version { .. }
            | Self::Expired { .. }
            | Self::NotYetValid { .. }
            | Self::Revoked
            | Self::NoCertificate { .. }
            | Self::WrongName { .. }
            | Self::NoRole
            | Self::NoHomeId
            | Self::NotThorp { .. }
            | Self::NotTls => ErrorKind::Misconfigured,
            Self::FrameTooLong { .. }
            | Self::HelloTooLong { .. }
            | Self::BadAnswer { .. }
            | Self::Tls(_) => ErrorKind::PeerMisbehaved,
            Self::CutOff => ErrorKind::Ours,
        }
    }

    pub(crate) fn io(during: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { during, source }
    }

    /// Finds what TLS said inside an I/O error of the TLS stream; whatever else it is happened during `during`.
    pub(crate) fn from_tls(during: &'static str, error: io::Error) -> Self {
        match error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<rustls::Error>())
        {
            Some(inner) => Self::from_rustls(inner.clone()),
            None if error.kind() == io::ErrorKind::UnexpectedEof => Self::Lost,
            None => Self::Io {
                during,
                source: error,
            },
        }
    }

    pub(crate) fn from_rustls(error: rustls::Error) -> Self {
        use rustls::Error as E;
        match error {
            E::InvalidMessage(_) => Error::NotTls,
            E::NoCertificatesPresented => Error::NoCertificate {
                whose: Side::Theirs,
            },
            E::InvalidCertificate(why) => from_certificate_error(why),
            E::AlertReceived(alert) => from_alert(alert),
            other => Error::Tls(other),
        }
    }

    /// Why a caller is turned away, if it is for its certificate.
    pub(crate) fn turns_away(&self) -> Option<WhyTurnedAway> {
        let whose = Side::Theirs;
        match self {
            Self::OtherVillage { whose: of, .. } if *of == whose => {
                Some(WhyTurnedAway::OtherVillage)
            }
            Self::Expired { whose: of, .. } if *of == whose => Some(WhyTurnedAway::Expired),
            Self::NotYetValid { whose: of, .. } if *of == whose => Some(WhyTurnedAway::NotYetValid),
            Self::NoCertificate { whose: of } if *of == whose => Some(WhyTurnedAway::NoCertificate),
            Self::Tls(rustls::Error::InvalidCertificate(_)) => Some(WhyTurnedAway::NoCertificate),
            Self::Revoked => Some(WhyTurnedAway::Revoked),
            Self::NoRole | Self::NoHomeId => Some(WhyTurnedAway::NoRole),
            _ => None,
        }
    }

    /// What a peer hears whose certificate is not accepted, if TLS has not said it: it says what to do.
    pub(crate) fn words_for_peer(&self) -> Option<String> {
        match self {
            Self::NoRole => Some(format!("its certificate names no role: {NEW_CERTIFICATE}")),
            Self::NoHomeId => Some(format!(
                "its certificate names no id of the home: {WITH_HOME_ID}"
            )),
            Self::Expired {
                times: Some(times), ..
            } => Some(format!(
                "its certificate {times}: {RENEWED}, or set the clock that is wrong"
            )),
            Self::Revoked => Some(format!("its certificate is revoked: {ASK}")),
            Self::NotYetValid { times, .. } => Some(format!(
                "its certificate {times}: set the clock that is wrong"
            )),
            _ => None,
        }
    }
}

fn from_certificate_error(why: rustls::CertificateError) -> Error {
    use rustls::CertificateError as C;
    let whose = Side::Theirs;
    match why {
        C::UnknownIssuer | C::BadSignature => Error::OtherVillage {
            whose,
            villages: None,
        },
        C::Other(other) if other.0.is::<VillageShown>() => {
            let shown = other.0.downcast_ref::<VillageShown>();
            let villages = shown.map(|shown| (shown.ours.clone(), shown.theirs.clone()));
            Error::OtherVillage { whose, villages }
        }
        other => Error::Tls(rustls::Error::InvalidCertificate(other)),
    }
}

/// The peer tells in an alert what it thinks of this side's certificate.
fn from_alert(alert: rustls::AlertDescription) -> Error {
    use rustls::AlertDescription as A;
    match alert {
        // What this node's own verifier says, so.
        A::UnknownCA | A::CertificateUnknown => Error::OtherVillage {
            whose: Side::Ours,
            villages: None,
        },
        A::CertificateExpired => Error::Expired {
            whose: Side::Ours,
            times: None,
        },
        A::CertificateRequired => Error::NoCertificate { whose: Side::Ours },
        other => Error::Tls(rustls::Error::AlertReceived(other)),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { during, source } => write!(f, "{during}: {source}"),
            Self::Timeout { during, after } => write!(f, "{during}: not done within {after:?}"),
            Self::Lost => f.write_str("the peer went away without a goodbye"),
            Self::Truncated { bytes, bytes_due } => {
                write!(
                    f,
                    "the connection ended in the middle: {bytes} of {bytes_due} bytes had arrived"
                )
            }
            Self::FrameTooLong { bytes, bytes_max } => {
                write!(
                    f,
                    "the peer announced a frame of {bytes} bytes; the limit is {bytes_max}"
                )
            }
            Self::CutOff => f.write_str("the connection was cut off by this side"),
            Self::Displaced => f.write_str(
                "it had not greeted when its place was needed for newer callers: see [link] handshakes_max",
            ),
            Self::NotThorp { found } => {
                write!(
                    f,
                    "the peer does not speak Thorp's protocol: it began with \"{}\"",
                    found.escape_ascii()
                )
            }
            Self::Version { ours, theirs, role } => version_text(f, *ours, *theirs, *role),
            Self::Rejected { reason } => write!(f, "the peer refused this node: {reason}"),
            Self::HelloTooLong { bytes, bytes_max } => {
                write!(f, "a hello of {bytes} bytes; the limit is {bytes_max}")
            }
            Self::BadAnswer { verdict } => write!(
                f,
                "the peer answered the greeting with {verdict}, which means nothing"
            ),
            Self::NotTls => f.write_str("the peer does not speak TLS"),
            Self::SpeaksHttp => f.write_str(
                "this port speaks HTTP: nodes join at the other one, which the home or the site prints as the one that it listens on",
            ),
            Self::OtherVillage { whose, villages } => {
                write!(
                    f,
                    "the certificate of {} is signed by the authority of another village",
                    whose.noun()
                )?;
                match villages {
                    Some((ours, theirs)) => {
                        write!(f, ": this node is of village {ours}, the peer of village {theirs}")
                    }
                    None => Ok(()),
                }
            }
            Self::Expired { whose, times } => {
                write!(f, "the certificate of {} ", whose.noun())?;
                match times {
                    Some(times) => write!(f, "{times}: it has to be renewed, or a clock is wrong"),
                    None => f.write_str("is no longer good (or a clock is wrong)"),
                }
            }
            Self::NotYetValid { whose, times } => write!(
                f,
                "the certificate of {} {times}: a clock is wrong",
                whose.noun()
            ),
            Self::Revoked => write!(f, "the certificate of the peer is revoked: {ASK}"),
            Self::NoCertificate { whose } => write!(f, "{} showed no certificate", whose.noun()),
            Self::WrongName { expected, found } => {
                write!(
                    f,
                    "wanted the node {expected}, but what answered is {found}"
                )
            }
            Self::NoRole => write!(
                f,
                "the certificate of the peer names no role: {NEW_CERTIFICATE}"
            ),
            Self::NoHomeId => write!(
                f,
                "the certificate of the peer names no id of the home: {WITH_HOME_ID}"
            ),
            Self::Tls(error) => write!(f, "TLS: {error}"),
        }
    }
}

/// What somebody does whose certificate is revoked.
const ASK: &str = "if that is a mistake, ask whoever has the authority to let it in again with `thorp invite`, into a new directory";

/// The side with the smaller number is the one to upgrade.
fn version_text(f: &mut fmt::Formatter<'_>, ours: u16, theirs: u16, role: Role) -> fmt::Result {
    let whom = if ours < theirs {
        "this program"
    } else {
        "the peer"
    };
    write!(
        f,
        "the {role} speaks protocol {theirs}, this program speaks {ours}: upgrade {whom}"
    )
}

impl Side {
    fn noun(self) -> &'static str {
        match self {
            Self::Ours => "this node",
            Self::Theirs => "the peer",
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Tls(error) => Some(error),
            _ => None,
        }
    }
}
