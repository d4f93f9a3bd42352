//! Taking a new certificate while a node runs.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tracing::{info, warn};

use super::arrivals::Arrival;
use crate::Identity;

/// Looks for a new certificate or other authorities in the directory of an identity, and takes them. No edge ends for
/// that. The loop looks at its edges when what is accepted has changed. Ends with the driver.
pub(super) async fn follow(identity: Identity, arrivals: mpsc::Sender<Arrival>) {
    let mut changes = identity.changes();
    let mut seen = identity.stamp();
    let mut said = Said::default();
    loop {
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

/// What was said about the certificate's age.
#[derive(Default)]
struct Said {
    at: Option<Instant>,
}

impl Said {
    /// Warns once a day in the last third of the certificate's life.
    fn about_age(&mut self, identity: &Identity) {
        let is_long_ago = |at: Instant| at.elapsed() >= WARN_EVERY;
        if identity.is_aging() && self.at.is_none_or(is_long_ago) {
            self.at = Some(Instant::now());
            warn!("{}", identity.age());
        }
    }
}

const LOOK_EVERY: Duration = Duration::from_secs(2);
const WARN_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
