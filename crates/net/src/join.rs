//! How a node gets its certificate from the authority's process: the first one with a token, and further ones in time.

use std::path::Path;

use crate::dialer::ask_authority;
use crate::identity::{JoinToken, has_used, joining, site_dir, take_first, take_renewed};
use crate::{Identity, IdentityError, Role};

/// Makes a key in `out`, joins with a token, and puts the certificate there. Doing it again with the same token and directory
/// completes what was cut short.
///
/// # Errors
///
/// [`IdentityError`]: the authority is not reached, or refuses the token, or the directory holds something else.
pub async fn join(token: &JoinToken, out: impl AsRef<Path>) -> Result<Identity, IdentityError> {
    let out = out.as_ref();
    if let Ok(identity) = Identity::load(out) {
        return match has_used(out, token)? {
            true => Ok(identity),
            false => Err(IdentityError::HoldsOther {
                dir: out.to_owned(),
                held: identity.certified().clone(),
            }),
        };
    }
    let inner = site_dir(out);
    // The carried redirector's first: the member's certificate says that all is there.
    let (first, carries_site) = ask(token, out, 0).await?;
    if carries_site {
        let (second, _) = ask(token, &inner, 1).await?;
        take_first(&inner, token, &second)?;
    }
    take_first(out, token, &first)?;
    Identity::load(out)
}

async fn ask(token: &JoinToken, dir: &Path, place: usize) -> Result<(String, bool), IdentityError> {
    let identity = joining(token, dir)?;
    let hello = format!("{} {place}", token.secret);
    let answer = ask_authority(&token.address, &identity, Role::JOIN, hello.as_bytes()).await?;
    let text = String::from_utf8_lossy(&answer);
    let (first, rest) = text.split_once('\n').unwrap_or_default();
    Ok((rest.to_owned(), first == "more"))
}

/// Asks the authority for a new certificate, and takes it. Nothing happens to edges.
pub(crate) async fn renew(identity: &Identity) -> Result<(), IdentityError> {
    let Some(address) = identity.authority_address()? else {
        return Ok(());
    };
    let answer = ask_authority(&address, identity, Role::RENEW, b"").await?;
    let text = String::from_utf8_lossy(&answer);
    let (_, rest) = text.split_once('\n').unwrap_or_default();
    take_renewed(identity, rest)?;
    identity.reload().map(drop)
}
