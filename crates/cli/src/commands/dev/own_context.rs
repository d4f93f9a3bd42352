//! The context of a village that `thorp dev` runs.

use super::Running;
use super::temporary::remove_left_over;
use crate::commands::context::make_current;
use crate::failure::{Code, Failure};
use crate::text::pasted;
use std::fs;
use std::path::{Path, PathBuf};
use thorp_client::{Context, Contexts, Identity};
use thorp_net::{CertificateAuthority, Grant, NodeRole};

/// A context that belongs to the village in one directory.
#[derive(Clone)]
pub(super) struct OwnContext {
    contexts: Contexts,
    name: String,
    /// Of the village.
    dir: PathBuf,
}

impl OwnContext {
    pub(super) fn of(contexts: Contexts, name: &str, dir: &Path) -> Self {
        OwnContext {
            contexts,
            name: name.to_owned(),
            dir: dir.to_owned(),
        }
    }

    /// A context of another village is left alone, unless that village is gone.
    pub(super) fn check_free(&self) -> Result<(), Failure> {
        let dir = self.contexts.dir_of(&self.name)?;
        if !dir.exists() {
            return Ok(());
        }
        let authority = match self.contexts.get(&self.name) {
            Ok(context) => context.authority,
            // Somebody began to make it.
            Err(thorp_client::ContextError::NotThere { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let other = match authority {
            Some(authority) if authority.starts_with(&self.dir) || !authority.exists() => {
                return Ok(());
            }
            Some(authority) if authority.parent().is_some_and(remove_left_over) => return Ok(()),
            Some(authority) => Some(village_of(&authority)),
            None => None,
        };
        let name = &self.name;
        let todo =
            format!("take another --name, or remove the context with `thorp context rm {name}`");
        let failure = match other {
            None => Failure::new(format!("there is a context {name} already"), todo),
            Some(other) => {
                let what = format!(
                    "there is a context {name} of the village in {} already",
                    other.display()
                );
                let there = format!("to run that village: `thorp dev --dir {}`", pasted(&other));
                Failure::new(what, todo).or(there)
            }
        };
        Err(failure.with(Code::Usage))
    }

    /// Writes it, with an identity of this village. Whether it is the current one.
    pub(super) fn write(&self, authority_dir: &Path, running: &Running) -> Result<bool, Failure> {
        let failed = |error: thorp_net::IdentityError| {
            let todo = format!("remove the context with `thorp context rm {}`", self.name);
            Failure::new(error.to_string(), todo)
        };
        let authority = CertificateAuthority::open(authority_dir).map_err(failed)?;
        let dir = self.contexts.identity_of(&self.name)?;
        let is_of_here = |held: Identity| held.village() == authority.village();
        // That of a village that is gone.
        if dir.exists() && !Identity::load(&dir).is_ok_and(is_of_here) {
            fs::remove_dir_all(&dir).map_err(|error| Failure::file(&dir, &error))?;
        }
        let grant = Grant::new(NodeRole::Member, MEMBER);
        let identity = authority.issue(&grant, &dir).map_err(failed)?;
        self.contexts.put(&Context {
            name: self.name.clone(),
            join: vec![running.site.clone()],
            village: identity.village().to_owned(),
            identity: dir,
            authority: Some(crate::text::absolute(authority_dir)),
            status: running.status.clone(),
        })?;
        make_current(&self.contexts, &self.name)
    }

    /// Removes it, if it is still that of this village.
    pub(super) fn remove(&self) {
        let own = self.contexts.get(&self.name);
        let authority = own.ok().and_then(|context| context.authority);
        if authority.is_some_and(|authority| authority.starts_with(&self.dir)) {
            // What stays names a directory that is gone: the next `thorp dev` replaces it.
            let _ = self.contexts.remove(&self.name);
        }
    }
}

/// The directory of a village, by that of its authority.
fn village_of(authority: &Path) -> PathBuf {
    let parent = authority
        .parent()
        .filter(|_| authority.ends_with("authority"));
    parent.unwrap_or(authority).to_owned()
}

/// Who the user is in the village.
pub(super) const MEMBER: &str = "me";
