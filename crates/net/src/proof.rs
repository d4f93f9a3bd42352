//! Proving anew who is at the two ends of a connection (rule R1).
//!
//! A connection stands as long as the certificates of both ends are good. A node that gets a new one proves it to its
//! parents on a socket of its own: a handshake, and a hello that only an end of the connection can know. Both ends look at each
//! other's certificate there. The connection itself goes on, and stands from now on by the new certificates.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tracing::debug;

use crate::dialer::show_again;
use crate::identity::Standing;
use crate::lanes::{Lanes, Token};
use crate::{Address, CertifiedName, Config, Connection, Identity};

/// What the end that has called needs to prove itself on another socket.
#[derive(Debug)]
pub(crate) struct Proof {
    address: Address,
    token: Token,
    peer: CertifiedName,
    lanes: Weak<Lanes>,
    /// The certificate that this side has shown.
    shown: String,
}

impl Proof {
    /// Of a connection; none if this side has not called.
    pub(crate) fn of(connection: &Connection) -> Option<Self> {
        Some(Self {
            address: connection.peer().address.parse().ok()?,
            token: connection.token?,
            peer: connection.peer().certified.clone(),
            lanes: Arc::downgrade(connection.lanes()),
            shown: connection.shown.clone()?,
        })
    }

    /// Proves it whenever this side has another certificate than it has shown, and when that of the peer is in the last third of
    /// its life: the peer may have a new one. Does not end.
    pub(crate) async fn keep(&self, identity: &Identity, config: &Config) {
        let mut shown = self.shown.clone();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let Some(standing) = self.lanes.upgrade().map(|lanes| lanes.standing()) else {
                continue;
            };
            let own = identity.credentials().own.serial.clone();
            if own == shown && !standing.is_aging() {
                continue;
            }
            let peer = (&self.address, &self.peer);
            match show_again(peer, &self.token, identity, config).await {
                Ok(theirs) => {
                    shown = own;
                    self.stand_by(theirs);
                }
                Err(error) => debug!(peer = %self.peer, "no new proof: {error}"),
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    fn stand_by(&self, standing: Standing) {
        if let Some(lanes) = self.lanes.upgrade() {
            lanes.stand_by(standing);
        }
    }
}

const LOOK_EVERY: Duration = Duration::from_secs(1);
const AGAIN_AFTER: Duration = Duration::from_secs(5);
