//! Moving an authority into a directory of its own.

use std::path::Path;

use super::files::{self, AUTHORITY_CERTIFICATE, AUTHORITY_KEY, NEXT_KEY, REGISTER};
use super::register::Register;
use super::{IdentityError, village_at};

/// Moves certificate, key and register of an authority. The certificate stays at the old place, too, where it may serve a
/// node's identity.
///
/// Order: first everything is durable at the new place, and only then the key goes from the old one. The old register is
/// locked meanwhile: nobody issues anything that the new one would not have.
pub(super) fn move_authority(from: &Path, to: &Path) -> Result<(), IdentityError> {
    let key = from.join(AUTHORITY_KEY);
    let place = |dir: &Path| dir.canonicalize().ok();
    if place(from).is_some_and(|from| Some(from) == place(to)) {
        return Ok(());
    }
    if !files::exists(&key)? && files::exists(&to.join(AUTHORITY_KEY))? {
        // It was moved before.
        return Ok(());
    }
    let (bytes, village) = (
        files::read(&key)?,
        village_at(&from.join(AUTHORITY_CERTIFICATE))?,
    );
    let issued = Register::open(from)?;
    files::make_dir(to)?;
    let certificate = to.join(AUTHORITY_CERTIFICATE);
    let pem = files::read(&from.join(AUTHORITY_CERTIFICATE))?;
    files::publish_or_keep(&certificate, &pem, files::PUBLIC)?;
    if village_at(&certificate)? != village {
        return Err(IdentityError::OtherVillage {
            certificate: from.join(AUTHORITY_CERTIFICATE),
            authority: certificate,
        });
    }
    Register::open(to)?.merge(&issued)?;
    let (next, moved) = (from.join(NEXT_KEY), to.join(NEXT_KEY));
    if files::exists(&next)? {
        files::publish_or_keep(&moved, &files::read(&next)?, files::SECRET)?;
    }
    files::publish_or_keep(&to.join(AUTHORITY_KEY), &bytes, files::SECRET)?;
    // Only now: what is at the new place has to be the authority.
    super::certificates::Authority::load(to)?;
    files::remove(&next)?;
    files::remove(&key)?;
    files::remove(&from.join(REGISTER))
}
