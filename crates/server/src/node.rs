//! What homes and sites have in common.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use thorp_model::Peer;
use thorp_net::driver::{DriverConfig, DriverLimits, net_config};
use thorp_net::{Address, Identity, Limits, LinkDelay, Listener};
use tokio::net::TcpListener;

use crate::config::{ChildDelay, LinkLimits};
use crate::error::ServerError;

/// How a node greets in this process start (rule R1).
pub(crate) fn fresh_greeting(identity: &Identity) -> Result<Peer, ServerError> {
    let mut bytes = [0; 8];
    random(&mut bytes)?;
    Ok(identity.greeting(u64::from_le_bytes(bytes)))
}

pub(crate) fn random(bytes: &mut [u8]) -> Result<(), ServerError> {
    getrandom::fill(bytes).map_err(|error| ServerError::System {
        wanted: "randomness",
        error: io::Error::other(error),
    })
}

/// What is needed to make a node's driver.
pub(crate) struct Plan<'a> {
    pub(crate) identity: Identity,
    pub(crate) hello: Peer,
    pub(crate) listen: &'a [Address],
    pub(crate) link: &'a LinkLimits,
    pub(crate) child_delay: &'a [ChildDelay],
}

impl Plan<'_> {
    /// Listens everywhere, and gives the driver's configuration with the addresses that the system chose.
    pub(crate) async fn listen(self) -> Result<(DriverConfig, Vec<Address>), ServerError> {
        let mut net = net_config(self.hello.kind);
        net.limits = net_limits(self.link);
        let mut config = DriverConfig::new(self.identity, self.hello);
        let mut addresses = Vec::new();
        for address in self.listen {
            let listener = Listener::bind(address, &config.identity, net.clone()).await;
            let listener = listener.map_err(|error| ServerError::Listen {
                address: address.clone(),
                error,
            })?;
            addresses.push(listener.address().clone());
            config.listeners.push(listener);
        }
        config.child_delays = delays(self.child_delay);
        config.net_limits = net.limits;
        config.limits = DriverLimits {
            edges_max: self.link.edges_max,
            inbox_bytes_max: self.link.inbox.size(),
            flush_time_max: Duration::from_millis(self.link.flush_ms_max),
            ..DriverLimits::default()
        };
        Ok((config, addresses))
    }
}

/// Tries the ports; they are free again when this returns.
pub(crate) async fn can_listen(
    addresses: &[Address],
    http: Option<SocketAddr>,
) -> Result<(), ServerError> {
    if let Some(address) = http {
        let bound = TcpListener::bind(address).await;
        bound.map_err(|error| ServerError::Http { address, error })?;
    }
    for address in addresses {
        let Address::Tcp { host, port } = address else {
            continue;
        };
        let bound = TcpListener::bind((host.as_str(), *port)).await;
        bound.map_err(|error| ServerError::Listen {
            address: address.clone(),
            error: thorp_net::Error::Io {
                during: "listening",
                source: error,
            },
        })?;
    }
    Ok(())
}

/// Addresses, for a log.
pub(crate) fn listed(addresses: &[Address]) -> String {
    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

pub(crate) fn one_way(milliseconds: u64) -> LinkDelay {
    LinkDelay::new(Duration::from_millis(milliseconds))
}

fn delays(children: &[ChildDelay]) -> BTreeMap<String, LinkDelay> {
    let delays = children.iter();
    delays
        .map(|delay| (delay.child.clone(), one_way(delay.one_way_ms)))
        .collect()
}

fn net_limits(link: &LinkLimits) -> Limits {
    Limits {
        queue_bytes_max: link.queue.size(),
        queue_frames_max: link.queue_frames_max,
        frame_progress_time_max: Duration::from_millis(link.frame_progress_ms_max),
        silent_callers_max: link.silent_callers_max,
        handshakes_max: link.handshakes_max,
        handshakes_known_max: link.handshakes_known_max,
        first_byte_time_max: Duration::from_millis(link.first_byte_ms_max),
        lanes: link.lanes,
        congestion: link.congestion.clone(),
        ..Limits::default()
    }
}
