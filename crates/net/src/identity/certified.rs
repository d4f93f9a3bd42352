//! What a certificate says of its node: one role and one name (rule R1).

use std::fmt;
use std::str::FromStr;

use thorp_model::{MemberId, NameId, NodeKind, Peer};

/// What a node may be. Its certificate names exactly one role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeRole {
    /// Owns segments, and is a parent.
    Home,
    /// The redirector of a site, and a parent.
    Site,
    /// A program.
    Member,
    /// A program that may administer the village.
    Operator,
}

/// The role and the name in a certificate: the URI name `thorp:ROLE/NAME`. It alone is the authority on both.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CertifiedName {
    role: NodeRole,
    name: String,
}

/// A text that is no role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotARole(String);

/// A text that is not the name of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadName;

impl NodeRole {
    /// As certificates, commands and the register write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Site => "site",
            Self::Member => "member",
            Self::Operator => "operator",
        }
    }

    /// What a node of this role is in the protocol.
    pub fn kind(self) -> NodeKind {
        match self {
            Self::Home => NodeKind::Home,
            Self::Site => NodeKind::Redirector,
            Self::Member | Self::Operator => NodeKind::Member,
        }
    }

    /// Whether children may join a node of this role.
    pub fn is_parent(self) -> bool {
        matches!(self, Self::Home | Self::Site)
    }
}

impl CertifiedName {
    /// Checks the name and puts it into lower case.
    pub(crate) fn new(role: NodeRole, name: &str) -> Result<Self, BadName> {
        let name = name.to_ascii_lowercase();
        match name.len() <= NAME_BYTES_MAX && name.split('.').all(is_label) {
            true => Ok(Self { role, name }),
            false => Err(BadName),
        }
    }

    /// Of the URI name in a certificate. Only the one spelling that [`CertifiedName::to_uri`] writes is a name.
    pub(crate) fn from_uri(uri: &str) -> Option<Self> {
        let (role, name) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        let certified = Self::new(role.parse().ok()?, name).ok()?;
        (certified.name == name).then_some(certified)
    }

    /// The URI name that a certificate carries.
    pub fn to_uri(&self) -> String {
        format!("{SCHEME}{}/{}", self.role, self.name)
    }

    /// Whether a URI name in a certificate claims to be a node of a village.
    pub(crate) fn is_claimed_by(uri: &str) -> bool {
        uri.starts_with(SCHEME)
    }

    /// What the node may be.
    pub fn role(&self) -> NodeRole {
        self.role
    }

    /// The node's name, in lower case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the node greets in one process start, for which it has drawn 64 random bits.
    pub fn greeting(&self, random: u64) -> Peer {
        Peer {
            kind: self.role.kind(),
            node: MemberId::new(NameId::of(&self.name), random),
            name: self.name.clone(),
            is_operator: self.role == NodeRole::Operator,
        }
    }
}

impl FromStr for NodeRole {
    type Err = NotARole;

    fn from_str(text: &str) -> Result<Self, NotARole> {
        let all = [Self::Home, Self::Site, Self::Member, Self::Operator];
        let found = all.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| NotARole(text.to_owned()))
    }
}

impl fmt::Display for NodeRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for CertifiedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.role, self.name)
    }
}

impl fmt::Display for NotARole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no role: write home, site, member or operator",
            self.0
        )
    }
}

impl std::error::Error for NotARole {}

fn is_label(label: &str) -> bool {
    let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && label.bytes().all(allowed)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// Begins every node's name in a certificate, so that no certificate of a village is ever good for a web site.
const SCHEME: &str = "thorp:";
const LABEL_BYTES_MAX: usize = 63;
const NAME_BYTES_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_name_has_one_spelling() {
        let office = CertifiedName::new(NodeRole::Site, "Office.north").unwrap();
        assert_eq!(office.to_uri(), "thorp:site/office.north");
        assert_eq!(CertifiedName::from_uri(&office.to_uri()), Some(office));
        for other in [
            "thorp:site/Office",
            "thorp:Site/office",
            "thorp:site/",
            "thorp:site",
            "thorp:site/a/b",
            "thorp:boss/office",
            "thorp://site/office",
            "site/office",
            "",
        ] {
            assert_eq!(CertifiedName::from_uri(other), None, "{other}");
        }
    }

    #[test]
    fn a_greeting_says_what_the_certificate_does() {
        let name = |role| CertifiedName::new(role, "anna").unwrap();
        let operator = name(NodeRole::Operator).greeting(5);
        assert_eq!(
            (operator.kind, operator.is_operator),
            (NodeKind::Member, true)
        );
        assert_eq!(operator.node.name(), NameId::of("anna"));
        let member = name(NodeRole::Member).greeting(5);
        assert_eq!((member.kind, member.is_operator), (NodeKind::Member, false));
        assert_ne!(member.node, name(NodeRole::Member).greeting(6).node);
        assert_eq!(name(NodeRole::Home).greeting(5).kind, NodeKind::Home);
    }
}
