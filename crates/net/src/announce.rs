//! What the authority announces to a node: certificates that are no longer accepted (rule R1).
//!
//! The authority calls a node's listener with a certificate that names no node but the authority itself. Its greeting brings
//! the serial numbers, and the node answers when it has them durably. There are no frames.

use crate::dialer::greet_as_authority;
use crate::identity::{Revocation, authority_identity};
use crate::{Address, CertificateAuthority, HELLO_BYTES_MAX, IdentityError};

/// Why a node did not take an announcement.
pub type NotAnnounced = Box<dyn std::error::Error + Send + Sync>;

/// Announces to a node all certificates that the authority has revoked and that have not expired. The node has them durably when
/// this returns; then it ends the edges that stand by them.
///
/// # Errors
///
/// The node is not reached, or refuses, or the register cannot be read.
pub async fn announce_revoked(
    authority: &CertificateAuthority,
    node: &Address,
) -> Result<(), NotAnnounced> {
    let revoked = authority.revoked()?;
    let identity = authority_identity(authority)?;
    for hello in hellos(&revoked) {
        greet_as_authority(node, &identity, &hello).await?;
    }
    Ok(())
}

/// So many announcements, each short enough for a greeting; one at least, to see whether the node is there.
fn hellos(revoked: &[Revocation]) -> Vec<Vec<u8>> {
    let mut hellos = vec![Vec::new()];
    for one in revoked {
        let line = one.line();
        match hellos.last_mut() {
            Some(last) if last.len() + line.len() <= HELLO_BYTES_MAX => last.extend(line.bytes()),
            _ => hellos.push(line.into_bytes()),
        }
    }
    hellos
}

/// What a node does with an announcement.
pub(crate) fn take(identity: &crate::Identity, hello: &[u8]) -> Result<(), IdentityError> {
    let text = String::from_utf8_lossy(hello);
    let revoked = Revocation::parse_all(&text);
    identity.revoke(revoked.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn many_revocations_take_several_greetings() {
        let one = |number: u32| Revocation {
            serial: format!("{number:032x}"),
            until: Duration::from_secs(1_800_000_000),
        };
        let all: Vec<_> = (0..1_000).map(one).collect();
        let hellos = hellos(&all);
        assert!(hellos.len() > 1 && hellos.iter().all(|hello| hello.len() <= HELLO_BYTES_MAX));
        let read = hellos.iter().flat_map(|hello| {
            let text = String::from_utf8_lossy(hello).into_owned();
            Revocation::parse_all(&text).unwrap()
        });
        assert_eq!(read.collect::<Vec<_>>(), all);
    }
}
