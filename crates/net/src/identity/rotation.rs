//! A new key for an authority, while nodes trust the old one and the new one.

use std::path::Path;

use super::IdentityError;
use super::certificates::{self, Authority};
use super::files::{self, AUTHORITY_CERTIFICATE, AUTHORITY_KEY, NEXT_KEY};
use super::register::Register;

/// A step of a rotation. The village keeps its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    /// Makes the new key. Both authorities are to be trusted from now on; the old one signs.
    Begin,
    /// The new one signs. Every node has to trust both by now.
    Switch,
    /// The old one is trusted no longer. Every node has to have a certificate of the new one by now.
    Finish,
}

/// Does one step, under the register's lock. A crash leaves the step undone or done.
pub(super) fn rotate(
    dir: &Path,
    step: Rotation,
    register: &mut Register,
) -> Result<(), IdentityError> {
    let (path, next) = (dir.join(AUTHORITY_CERTIFICATE), dir.join(NEXT_KEY));
    let authority = Authority::load(dir)?;
    let all = certificates::blocks_of(authority.pem());
    let refused = |why| Err(IdentityError::Token { why });
    match step {
        Rotation::Begin if all.len() > 1 => {
            refused("a rotation has begun: go on with --switch, and then with --finish")
        }
        Rotation::Begin => {
            let key = files::open_or_create_key(&next)?;
            let second = certificates::sign_next_authority(&key, authority.village())?;
            let bundle = format!("{}{second}", authority.pem());
            files::replace(&path, bundle.as_bytes(), files::PUBLIC)
        }
        Rotation::Switch if !files::exists(&next)? => {
            refused("there is no new key: begin with --begin")
        }
        Rotation::Switch => {
            let key = files::read(&next)?;
            // Before the key: a line too early names nodes that need no renewal, and a missing one would hide some that do.
            register.switch()?;
            files::replace(&dir.join(AUTHORITY_KEY), &key, files::SECRET)?;
            // Whose key signs is seen by the key.
            Authority::load(dir)?;
            files::remove(&next)
        }
        Rotation::Finish if files::exists(&next)? => {
            refused("the old key still signs: go on with --switch")
        }
        Rotation::Finish if all.len() < 2 => refused("only one authority is trusted"),
        Rotation::Finish => {
            let own = authority.own_pem();
            files::replace(&path, own.as_bytes(), files::PUBLIC)
        }
    }
}
