//! What can be wrong with a node's identity.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::{CertifiedName, OutOfTime};

/// What is wrong with a node's identity on disk. Nothing is overwritten when one of these is returned.
#[derive(Debug)]
#[non_exhaustive]
pub enum IdentityError {
    /// A file or directory could not be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what it should be.
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A key does not belong to the certificate next to it.
    KeyMismatch {
        /// The key.
        key: PathBuf,
        /// The certificate.
        certificate: PathBuf,
    },
    /// A node's certificate is not signed by the authority next to it.
    OtherVillage {
        /// The node's certificate.
        certificate: PathBuf,
        /// The authority's certificate.
        authority: PathBuf,
    },
    /// The authority has revoked a certificate.
    Revoked {
        /// The certificate.
        certificate: PathBuf,
    },
    /// A certificate is not good now, or this machine's clock is wrong.
    OutOfTime {
        /// The certificate.
        certificate: PathBuf,
        /// When it is good, and the time.
        times: OutOfTime,
    },
    /// A certificate does not name one role and one node.
    NoRole {
        /// The certificate.
        certificate: PathBuf,
    },
    /// A home's certificate does not name the home's id.
    NoHomeId {
        /// The certificate.
        certificate: PathBuf,
    },
    /// The id belongs to a home of another name.
    HomeIdTaken {
        /// Who has the id.
        held: CertifiedName,
    },
    /// The directory holds the identity of a node of another name or role.
    OtherNode {
        /// The directory.
        dir: PathBuf,
        /// The node asked for.
        wanted: CertifiedName,
        /// The node in the certificate.
        found: CertifiedName,
    },
    /// A token is to be used in a directory that has an identity without it.
    HoldsOther {
        /// The directory.
        dir: PathBuf,
        /// Whose identity it has.
        held: CertifiedName,
    },
    /// The authority has issued this name to another role.
    NameTaken {
        /// Who has the name.
        held: CertifiedName,
        /// The node asked for.
        wanted: CertifiedName,
    },
    /// Another node has a certificate of this name that is good.
    NameHeld {
        /// The node that has it.
        held: CertifiedName,
    },
    /// The name is that of a home of the village, which has another key.
    OwnHome {
        /// The name.
        name: String,
    },
    /// Not a name a node can have.
    BadName {
        /// The name.
        name: String,
    },
    /// A token, or a request, that the authority does not take.
    Token {
        /// Why not.
        why: &'static str,
    },
    /// The authority's process was not reached, or what it sent is not good.
    Authority {
        /// What went wrong.
        why: String,
    },
    /// A key or certificate could not be made.
    Crypto {
        /// What the library said.
        why: String,
    },
}

impl IdentityError {
    pub(crate) fn file(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::File {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn crypto(error: impl fmt::Display) -> Self {
        Self::Crypto {
            why: error.to_string(),
        }
    }

    pub(crate) fn from_verification(
        certificate: &Path,
        authority: &Path,
        error: rustls::Error,
    ) -> Self {
        use rustls::CertificateError as C;
        match error {
            rustls::Error::InvalidCertificate(C::UnknownIssuer | C::BadSignature) => {
                Self::OtherVillage {
                    certificate: certificate.to_owned(),
                    authority: authority.to_owned(),
                }
            }
            other => Self::Malformed {
                path: certificate.to_owned(),
                why: other.to_string(),
            },
        }
    }

    pub(crate) fn from_key(key: &Path, certificate: &Path, error: rustls::Error) -> Self {
        match error {
            rustls::Error::InconsistentKeys(_) => Self::KeyMismatch {
                key: key.to_owned(),
                certificate: certificate.to_owned(),
            },
            other => Self::Malformed {
                path: key.to_owned(),
                why: other.to_string(),
            },
        }
    }
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Malformed { path, why } => write!(f, "{}: {why}", path.display()),
            Self::KeyMismatch { key, certificate } => {
                write!(
                    f,
                    "the key {} does not belong to {}",
                    key.display(),
                    certificate.display()
                )
            }
            Self::OtherVillage {
                certificate,
                authority,
            } => write!(
                f,
                "{} is not signed by {}: it belongs to another village",
                certificate.display(),
                authority.display()
            ),
            Self::Revoked { certificate } => write!(
                f,
                "{} is revoked: a node that is let in again gets a new key, in another directory",
                certificate.display()
            ),
            Self::OutOfTime { certificate, times } => write!(
                f,
                "{} {times}: {RENEWED}, or set the clock of this machine",
                certificate.display()
            ),
            Self::NoRole { certificate } => write!(
                f,
                "{} names no role: it is from an earlier version of Thorp. Where the authority's key lies beside it, remove it, \
                 and the home makes a new one; for any other node {NEW_CERTIFICATE}",
                certificate.display()
            ),
            Self::NoHomeId { certificate } => write!(
                f,
                "{} names no id of the home: it is from an earlier version of Thorp; {WITH_HOME_ID}",
                certificate.display()
            ),
            Self::HomeIdTaken { held } => write!(
                f,
                "the id of this home belongs to {held}: it is a copy, or the store of that one"
            ),
            Self::OtherNode { dir, wanted, found } => {
                write!(
                    f,
                    "{} holds the identity of {found}, not of {wanted}",
                    dir.display()
                )
            }
            Self::HoldsOther { dir, held } => write!(
                f,
                "{} holds the identity of {held} already: the token was not used",
                dir.display()
            ),
            Self::NameTaken { held, wanted } => write!(
                f,
                "the name {} belongs to {held}: a name has one role, so it cannot be {wanted}, too",
                held.name()
            ),
            Self::NameHeld { held } => write!(
                f,
                "the name {} is taken: {held} has a certificate that is good, for another key",
                held.name()
            ),
            Self::OwnHome { name } => {
                write!(
                    f,
                    "{name} is a home of this village: its name belongs to the key that it has"
                )
            }
            Self::BadName { name } => write!(
                f,
                "{name:?} is not a name: write labels of a-z, 0-9 and inner hyphens, at most 63 each, 200 in all, with dots between"
            ),
            Self::Token { why } => f.write_str(why),
            Self::Authority { why } => write!(f, "the authority has sent no certificate: {why}"),
            Self::Crypto { why } => write!(f, "could not make a key or certificate: {why}"),
        }
    }
}

impl std::error::Error for IdentityError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// What to do about a certificate without a role.
pub(crate) const NEW_CERTIFICATE: &str =
    "issue a new one with `thorp invite NAME --role ROLE --out DIR`";
/// What to do about a certificate that is not good any more.
pub(crate) const RENEWED: &str = "renew it with the same `thorp invite NAME --role ROLE --out DIR` as at first, where the \
     authority is, and bring node.pem from there";
/// What to do about a home's certificate without the home's id.
pub(crate) const WITH_HOME_ID: &str = "stop the home, and where the authority is, issue one with `thorp ca init DIR --from HOMEDIR` \
     for the home that made the village, or else `thorp ca issue --role home --store HOMEDIR --out IDENTITYDIR`";
