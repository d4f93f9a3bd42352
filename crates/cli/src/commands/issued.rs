//! A certificate that was issued into a directory: what it is, and what to do with it.

use super::authority::Village;
use super::say;
use crate::failure::Failure;
use std::fs;
use std::path::Path;
use thorp_net::{CertificateAuthority, Grant, Identity, IdentityError, NodeRole, site_dir};

/// A node's certificate in a directory, as the authority has left it.
pub(super) struct Issued<'a> {
    identity: Identity,
    out: &'a Path,
    with_site: bool,
    /// Whether it is new, renewed or unchanged.
    how: &'static str,
}

impl<'a> Issued<'a> {
    pub(super) fn to(
        authority: &CertificateAuthority,
        grant: &Grant,
        out: &'a Path,
    ) -> Result<Self, IdentityError> {
        let held = || fs::read(out.join(CERTIFICATE)).ok();
        let before = held();
        let identity = authority.issue(grant, out)?;
        let how = match before {
            None => "new",
            before if before == held() => UNCHANGED,
            Some(_) => "renewed",
        };
        Ok(Issued {
            identity,
            out,
            with_site: grant.with_site,
            how,
        })
    }

    /// For a person, with what to do next.
    pub(super) fn say(&self, village: &Village) -> Result<(), Failure> {
        let how = match self.how {
            UNCHANGED => "unchanged: it is renewed in the last third of its life",
            how => how,
        };
        say(&format!("the certificate for {village} is {how}"))?;
        say_how(&self.identity, self.out, self.with_site)
    }

    /// The same for a program.
    pub(super) fn as_json(&self, village: &Village) -> serde_json::Value {
        let Issued { identity, out, .. } = self;
        serde_json::json!({
            "name": identity.name(),
            "role": identity.role().as_str(),
            "village": identity.village(),
            "home": village.home,
            "certificate": self.how,
            "identity": out.display().to_string(),
            "site_identity": self.with_site.then(|| site_dir(out).display().to_string()),
        })
    }
}

/// What to do with the directory of a new identity.
pub(super) fn say_how(identity: &Identity, out: &Path, with_site: bool) -> Result<(), Failure> {
    let flag = match identity.role() {
        NodeRole::Member | NodeRole::Operator => "name it there with THORP_IDENTITY or --identity",
        NodeRole::Site | NodeRole::Home | NodeRole::Authority => "start it there with --identity",
    };
    say(&format!(
        "{} is let into village {}: carry {} to its machine (it holds a key: keep it secret), and {flag}",
        identity.certified(),
        identity.village(),
        out.display()
    ))?;
    match with_site {
        true => say(&format!(
            "its redirector is site {}, with the identity in {}",
            identity.name(),
            site_dir(out).display()
        )),
        false => Ok(()),
    }
}

const UNCHANGED: &str = "unchanged";
/// In the directory of an identity.
const CERTIFICATE: &str = "node.pem";
