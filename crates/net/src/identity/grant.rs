//! What an authority is asked to issue, and what it has issued.

use std::time::{Duration, SystemTime};

use thorp_model::HomeId;

use super::{CertifiedName, NodeRole};

/// What is to be certified.
#[derive(Debug, Clone)]
pub struct Grant {
    /// What the node may be.
    pub role: NodeRole,
    /// Its name.
    pub name: String,
    /// A member that carries its site's redirector gets a second certificate, of role site (rule R4).
    pub with_site: bool,
    /// How long the certificate is good; if nobody says, as long as is usual for the role.
    pub life: Option<Duration>,
    /// Of a home: which id its name is bound to (rule R1).
    pub home_id: HomeIdOf,
}

/// Which id a home's certificate carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HomeIdOf {
    /// That of the name's earlier certificates; of a new name, one that no home has.
    Name,
    /// That of a store. The name is bound to it from now on.
    Store(HomeId),
    /// One that no home has had, for a home that begins with an empty store again.
    Nobody,
}

/// A certificate that an authority has issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedCertificate {
    /// Whose it is.
    pub subject: CertifiedName,
    /// Its serial number, in hexadecimal digits.
    pub serial: String,
    /// Until when it is good.
    pub not_after: SystemTime,
    /// The life that was asked for, if the register has it.
    pub days: Option<u32>,
    /// When it was revoked, if it was.
    pub revoked: Option<SystemTime>,
}

impl Grant {
    /// With a life of the usual length, and of a home with the id of its name.
    pub fn new(role: NodeRole, name: impl Into<String>) -> Self {
        Self {
            role,
            name: name.into(),
            with_site: false,
            life: None,
            home_id: HomeIdOf::Name,
        }
    }
}
