//! What a peer says of itself is compared with its certificate, before the first frame (rule R1).

use std::fmt;

use thorp_model::{NameId, Peer};

use super::config::net_config;
use crate::{CertifiedName, NodeRole, Role};

/// A greeting that a peer may not give under its certificate. Its words say what the peer should do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadGreeting {
    /// It is not the encoding of a [`Peer`].
    Unreadable,
    /// It claims another role: in its first bytes, or in its hello.
    Role {
        claimed: Role,
        certified: CertifiedName,
    },
    Name {
        claimed: String,
        certified: CertifiedName,
    },
    ProcessId {
        certified: CertifiedName,
    },
    Operator {
        claimed: bool,
        certified: CertifiedName,
    },
    /// It answers as a parent, and may not be one.
    NotAParent {
        certified: CertifiedName,
    },
}

/// How this node greets.
pub(super) fn encode(hello: &Peer) -> Vec<u8> {
    // Encoding into memory fails for no value of this type.
    postcard::to_allocvec(hello).unwrap_or_default()
}

/// Who a peer is, by its greeting and its certificate. Only the certificate says whether a member carries a site: the
/// process may have drawn up its greeting under an earlier one.
pub(super) fn read(peer: &crate::Peer) -> Result<Peer, BadGreeting> {
    let Ok((hello, [])) = postcard::take_from_bytes::<Peer>(&peer.hello) else {
        return Err(BadGreeting::Unreadable);
    };
    let certified = peer.certified.clone();
    let role = net_config(certified.role().kind()).role;
    let mut claimed = [peer.role, net_config(hello.kind).role].into_iter();
    if let Some(claimed) = claimed.find(|claimed| *claimed != role) {
        return Err(BadGreeting::Role { claimed, certified });
    }
    if hello.name != certified.name() {
        let claimed = printable(&hello.name);
        return Err(BadGreeting::Name { claimed, certified });
    }
    if hello.node.name() != NameId::of(certified.name()) {
        return Err(BadGreeting::ProcessId { certified });
    }
    if hello.is_operator != (certified.role() == NodeRole::Operator) {
        let claimed = hello.is_operator;
        return Err(BadGreeting::Operator { claimed, certified });
    }
    Ok(Peer {
        is_carried: certified.is_carried(),
        ..hello
    })
}

/// Who a parent is. Only homes and sites are parents.
pub(super) fn read_parent(peer: &crate::Peer) -> Result<Peer, BadGreeting> {
    let hello = read(peer)?;
    match peer.certified.role().is_parent() {
        true => Ok(hello),
        false => Err(BadGreeting::NotAParent {
            certified: peer.certified.clone(),
        }),
    }
}

impl fmt::Display for BadGreeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable => f.write_str(
                "the hello does not say who calls: use a program of the same version of Thorp",
            ),
            Self::Role { claimed, certified } => write!(
                f,
                "the greeting is that of a {claimed}, the certificate that of {certified}: greet as the certificate says, or issue one of \
                 the other role with `thorp invite NAME --role ROLE --out DIR`"
            ),
            Self::Name { claimed, certified } => write!(
                f,
                "the greeting names {claimed:?}, the certificate is that of {certified}: greet with the name in the certificate"
            ),
            Self::ProcessId { certified } => write!(
                f,
                "the process id is of another name than that of {certified}: begin it with the first 64 bits of BLAKE3 of the \
                 name in the certificate"
            ),
            Self::Operator {
                claimed: true,
                certified,
            } => write!(
                f,
                "the greeting is that of an operator, the certificate that of {certified}: an operator's is issued with \
                 `thorp invite NAME --role operator --out DIR`"
            ),
            Self::Operator {
                claimed: false,
                certified,
            } => write!(
                f,
                "the certificate is that of {certified}, and the greeting does not say so: greet as an operator"
            ),
            Self::NotAParent { certified } => write!(
                f,
                "what answers is {certified}, and only homes and sites are parents: give the address of one, or issue that node \
                 a certificate with `thorp invite NAME --role site --out DIR`"
            ),
        }
    }
}

/// A name comes from another machine and ends on somebody's terminal.
fn printable(name: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    name.chars().map(shown).collect()
}
