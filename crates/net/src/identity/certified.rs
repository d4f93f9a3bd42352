//! What a certificate says of its node: one role and one name (rule R1).

use std::fmt;
use std::str::FromStr;

use rustls::pki_types::CertificateDer;
use thorp_model::{HomeId, MemberId, NameId, NodeKind, Peer};

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
    /// The authority itself, when it announces something. It is no node, and nobody can ask for this role.
    Authority,
}

/// The role and the name in a certificate: the URI name `thorp:ROLE/NAME`, `thorp:home/NAME?id=ID` of a home, or
/// `thorp:site/NAME?carried` of a site that the member of its name carries. It alone is the authority on all of these.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CertifiedName {
    role: NodeRole,
    name: String,
    /// Only of a home, and of each that a certificate names.
    home: Option<HomeId>,
    /// Only of a site: the member of its name carries it.
    is_carried: bool,
}

/// Why the URI names of a certificate are those of no node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NameFault {
    /// There is none, or more than one, or it is misspelt.
    NoRole,
    /// It names a home and not its id, as all did once.
    NoHomeId,
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
            Self::Authority => "authority",
        }
    }

    /// What a node of this role is in the protocol.
    pub fn kind(self) -> NodeKind {
        match self {
            Self::Home => NodeKind::Home,
            Self::Site => NodeKind::Redirector,
            Self::Member | Self::Operator | Self::Authority => NodeKind::Member,
        }
    }

    /// Whether children may join a node of this role.
    pub fn is_parent(self) -> bool {
        matches!(self, Self::Home | Self::Site)
    }
}

impl CertifiedName {
    /// The authority of a village.
    pub(crate) fn authority() -> Self {
        Self {
            role: NodeRole::Authority,
            name: AUTHORITY.to_owned(),
            home: None,
            is_carried: false,
        }
    }

    /// A node that has no certificate of the village yet. No node has its name.
    pub(crate) fn stranger() -> Self {
        Self {
            role: NodeRole::Member,
            name: String::new(),
            home: None,
            is_carried: false,
        }
    }

    /// Checks the name and puts it into lower case.
    pub(crate) fn new(role: NodeRole, name: &str) -> Result<Self, BadName> {
        let name = name.to_ascii_lowercase();
        match name.len() <= NAME_BYTES_MAX && name.split('.').all(is_label) {
            true => Ok(Self {
                role,
                name,
                home: None,
                is_carried: false,
            }),
            false => Err(BadName),
        }
    }

    /// The same home, with its id. A node of another role has none.
    pub(crate) fn with_home(mut self, home: Option<HomeId>) -> Self {
        self.home = home.filter(|_| self.role == NodeRole::Home);
        self
    }

    /// The same site, carried by the member of its name or not. A node of another role is carried by nobody.
    pub(crate) fn with_carried(mut self, is_carried: bool) -> Self {
        self.is_carried = is_carried && self.role == NodeRole::Site;
        self
    }

    /// The node that a certificate names, or why it names none.
    pub(crate) fn of(
        certificate: &CertificateDer<'_>,
    ) -> Result<Result<Self, NameFault>, rustls::Error> {
        let parsed = webpki::EndEntityCert::try_from(certificate)
            .map_err(|error| rustls::Error::General(format!("not a certificate: {error}")))?;
        let names = parsed.valid_uri_names();
        let mut claimed = names.filter(|uri| Self::is_claimed_by(uri));
        Ok(match (claimed.next(), claimed.next()) {
            (Some(uri), None) => Self::from_uri(uri),
            _ => Err(NameFault::NoRole),
        })
    }

    /// Of the URI name in a certificate. Only the one spelling that [`CertifiedName::to_uri`] writes is a name.
    pub(crate) fn from_uri(uri: &str) -> Result<Self, NameFault> {
        let read = |uri: &str| {
            let (role, rest) = uri.strip_prefix(SCHEME)?.split_once('/')?;
            let (rest, is_carried) = match rest.strip_suffix(CARRIED_MARK) {
                Some(rest) => (rest, true),
                None => (rest, false),
            };
            let (name, id) = match rest.split_once(ID_MARK) {
                Some((name, id)) => (name, Some(HomeId(u32::from_str_radix(id, 16).ok()?))),
                None => (rest, None),
            };
            let role = match role {
                AUTHORITY => NodeRole::Authority,
                role => role.parse().ok()?,
            };
            let read = Self::new(role, name).ok()?;
            Some(read.with_home(id).with_carried(is_carried))
        };
        let certified = read(uri).filter(|certified| certified.to_uri() == uri);
        match certified.ok_or(NameFault::NoRole)? {
            home if home.role == NodeRole::Home && home.home.is_none() => Err(NameFault::NoHomeId),
            certified => Ok(certified),
        }
    }

    /// The URI name that a certificate carries.
    pub fn to_uri(&self) -> String {
        let uri = format!("{SCHEME}{}/{}", self.role, self.name);
        match self.home {
            Some(HomeId(id)) => format!("{uri}{ID_MARK}{id:08x}"),
            None if self.is_carried => uri + CARRIED_MARK,
            None => uri,
        }
    }

    /// Whether a URI name in a certificate claims to be a node of a village.
    fn is_claimed_by(uri: &str) -> bool {
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

    /// The id of the home, if it is one.
    pub fn home(&self) -> Option<HomeId> {
        self.home
    }

    /// Whether it is a site that the member of its name carries. Certificates from before this was written say nothing of
    /// it, like those of dedicated sites.
    pub fn is_carried(&self) -> bool {
        self.is_carried
    }

    /// Whether both have one role and one name.
    pub(crate) fn is_same_node(&self, other: &Self) -> bool {
        (self.role, &self.name) == (other.role, &other.name)
    }

    /// How the node greets in one process start, for which it has drawn 64 random bits.
    pub fn greeting(&self, random: u64) -> Peer {
        Peer {
            kind: self.role.kind(),
            node: MemberId::new(NameId::of(&self.name), random),
            name: self.name.clone(),
            is_operator: self.role == NodeRole::Operator,
            is_carried: self.is_carried,
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

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_label(label: &str) -> bool {
    let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && label.bytes().all(allowed)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// Begins every node's name in a certificate, so that no certificate of a village is ever good for a web site.
const SCHEME: &str = "thorp:";
/// Stands between the name and the id of a home, which has eight hexadecimal digits.
const ID_MARK: &str = "?id=";
/// Ends the URI name of a site that the member of its name carries.
const CARRIED_MARK: &str = "?carried";
/// Role and name of the authority.
const AUTHORITY: &str = "authority";
const LABEL_BYTES_MAX: usize = 63;
const NAME_BYTES_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_name_has_one_spelling() {
        let office = CertifiedName::new(NodeRole::Site, "Office.north").unwrap();
        assert_eq!(office.to_uri(), "thorp:site/office.north");
        assert_eq!(CertifiedName::from_uri(&office.to_uri()), Ok(office));
        let alps = CertifiedName::new(NodeRole::Home, "alps").unwrap();
        let with_id = alps.clone().with_home(Some(HomeId(0x2a)));
        assert_eq!(with_id.to_uri(), "thorp:home/alps?id=0000002a");
        assert_eq!(CertifiedName::from_uri(&with_id.to_uri()), Ok(with_id));
        let without = CertifiedName::from_uri(&alps.to_uri());
        assert_eq!(without, Err(NameFault::NoHomeId));
        let carried = CertifiedName::new(NodeRole::Site, "anna").unwrap();
        let carried = carried.with_carried(true);
        assert_eq!(carried.to_uri(), "thorp:site/anna?carried");
        assert_eq!(CertifiedName::from_uri(&carried.to_uri()), Ok(carried));
        for other in [
            "thorp:member/anna?carried",
            "thorp:home/alps?id=0000002a?carried",
            "thorp:site/anna?carried?carried",
            "thorp:home/alps?id=2a",
            "thorp:home/alps?id=0000002A",
            "thorp:home/alps?id=",
            "thorp:site/office?id=0000002a",
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
            let read = CertifiedName::from_uri(other);
            assert_eq!(read, Err(NameFault::NoRole), "{other}");
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
        let site = name(NodeRole::Site).with_carried(true).greeting(5);
        assert_eq!((site.kind, site.is_carried), (NodeKind::Redirector, true));
        assert!(!name(NodeRole::Site).greeting(5).is_carried);
        let member = name(NodeRole::Member).with_carried(true).greeting(5);
        assert!(!member.is_carried);
    }
}
