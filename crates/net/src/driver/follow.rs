//! Taking a new certificate while a node runs.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tracing::{info, warn};

use super::arrivals::Arrival;
use crate::{Identity, IdentityError};

/// Looks for a new certificate or other authorities in the directory of an identity, and takes them. No edge ends for
/// that. The loop looks at its edges when what is accepted has changed. Ends with the driver.
pub(super) async fn follow(identity: Identity, arrivals: mpsc::Sender<Arrival>) {
    let mut changes = identity.changes();
    let mut seen = identity.stamp();
    let mut said = Said::default();
    let mut renewal = Renewal::default();
    loop {
        if identity.is_aging() && renewal.is_due(&identity) {
            match crate::join::renew(&identity).await {
                Ok(()) => {}
                Err(error) => said.about_authority(&error),
            }
        }
        said.about_age(&identity);
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            // Its sending end is in the identity.
            _ = changes.changed() => {
                if arrivals.send(Arrival::TrustChanged).await.is_err() {
                    return;
                }
            }
        }
        let now = identity.stamp();
        if now == seen {
            continue;
        }
        match identity.reload() {
            Ok(true) => info!(
                "there is a new certificate, or another authority: taken without ending an edge"
            ),
            Ok(false) => {}
            // Half of the files may be there: it is tried again when the next one changes.
            Err(error) => warn!("the new certificate is not taken: {error}"),
        }
        seen = now;
    }
}

/// When the authority was asked for a new certificate.
#[derive(Default)]
struct Renewal {
    at: Option<Instant>,
}

impl Renewal {
    /// It is asked some ten times in the last third of a certificate's life.
    fn is_due(&mut self, identity: &Identity) -> bool {
        let every = identity.validity().life() / ASKED_PART;
        let is_due = self
            .at
            .is_none_or(|at| at.elapsed() >= every.min(ASK_EVERY_MAX));
        if is_due {
            self.at = Some(Instant::now());
        }
        is_due
    }
}

/// What was said about the certificate's age.
#[derive(Default)]
struct Said {
    at: Option<Instant>,
    about: String,
}

impl Said {
    /// Says once what the authority answers.
    fn about_authority(&mut self, error: &IdentityError) {
        let words = error.to_string();
        if words != self.about {
            warn!("the certificate is not renewed, asking on: {words}");
            self.about = words;
        }
    }

    /// Warns once a day in the last third of the certificate's life.
    fn about_age(&mut self, identity: &Identity) {
        let is_long_ago = |at: Instant| at.elapsed() >= WARN_EVERY;
        if identity.is_aging() && self.at.is_none_or(is_long_ago) {
            self.at = Some(Instant::now());
            warn!("{}", identity.age());
        }
    }
}

/// A third of the life is ten of these parts.
const ASKED_PART: u32 = 30;
const ASK_EVERY_MAX: Duration = Duration::from_secs(60 * 60);
const LOOK_EVERY: Duration = Duration::from_secs(2);
const WARN_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
