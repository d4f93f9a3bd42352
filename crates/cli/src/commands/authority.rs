//! Which authority a command is about, and what its village is called.

use super::home::DEFAULT_DIR;
use crate::failure::{Code, Failure};
use std::fmt;
use std::path::{Path, PathBuf};
use thorp_client::Context;
use thorp_net::{CertificateAuthority, IdentityError};

/// The authority's directory that was given, or lies in the one where a home is by default, or is that of a context.
/// `is_named`: somebody has chosen the context for this command.
pub(super) fn find(
    given: Option<&Path>,
    is_named: bool,
    context: Option<&Context>,
) -> Result<PathBuf, Failure> {
    if let Some(dir) = given {
        return Ok(CertificateAuthority::find(dir));
    }
    let here = CertificateAuthority::find(DEFAULT_DIR);
    let Some(context) = context else {
        return Ok(here);
    };
    if !is_named && CertificateAuthority::is_in(&here) {
        return Ok(here);
    }
    let name = &context.name;
    match &context.authority {
        Some(own) if CertificateAuthority::is_in(own) => Ok(own.clone()),
        Some(own) => Err(moved(name, own)),
        None => Err(elsewhere(name)),
    }
}

/// As `thorp ca init --from` leaves it.
fn moved(context: &str, was_in: &Path) -> Failure {
    let what = format!(
        "the authority of the village of context {context} is not in {} any more",
        was_in.display()
    );
    let todo =
        "it was moved or removed: give the directory where it is now, or ask whoever has moved it";
    Failure::new(what, todo).with(Code::NotThere)
}

/// The village is run elsewhere, or by somebody else.
fn elsewhere(context: &str) -> Failure {
    let what = format!("this machine has no authority of the village of context {context}");
    let todo =
        "ask whoever runs that village; if the authority is here all the same, give its directory";
    Failure::new(what, todo).with(Code::NotThere)
}

/// What a village is called.
pub(super) struct Village {
    id: String,
    /// Its first home.
    pub(super) home: Option<String>,
}

impl Village {
    pub(super) fn of(authority: &CertificateAuthority) -> Result<Self, IdentityError> {
        Ok(Village {
            id: authority.village().to_owned(),
            home: authority.first_home()?,
        })
    }
}

impl fmt::Display for Village {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.home {
            Some(home) => write!(f, "the village of {home}"),
            None => write!(f, "village {}", self.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(authority: Option<PathBuf>) -> Context {
        Context {
            name: "dev".into(),
            authority,
            ..Context::default()
        }
    }

    #[test]
    fn what_is_given_goes_before_the_context() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("own");
        CertificateAuthority::init(&own).unwrap();
        let dev = context(Some(own.clone()));
        let given = dir.path().join("given");
        assert_eq!(find(Some(&given), true, Some(&dev)).unwrap(), given);
        assert_eq!(find(None, true, Some(&dev)).unwrap(), own);
        // There is none in the directory of the tests.
        assert_eq!(find(None, false, Some(&dev)).unwrap(), own);
    }

    #[test]
    fn an_authority_that_is_not_here_is_said_to_be_elsewhere() {
        let words = |context: &Context| find(None, false, Some(context)).unwrap_err().to_string();
        let moved = words(&context(Some("/nowhere/authority".into())));
        assert!(
            moved.contains("not in /nowhere/authority any more"),
            "{moved}"
        );
        let elsewhere = words(&context(None));
        assert!(elsewhere.contains("ask whoever runs that village"));
    }
}
