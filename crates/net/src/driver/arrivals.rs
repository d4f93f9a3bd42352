//! The tasks that bring connections: one for each listener, one for each parent.

use std::sync::Arc;
use std::time::Instant;

use thorp_core::ids::Peer;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{debug, error, info, warn};

use super::config::{ParentConfig, STOOD_MIN, net_config};
use super::edges::{ParentState, Shared};
use super::time::now;
use crate::{Backoff, Config, Connection, DialError, ErrorKind, Identity, Incoming, Limits};
use crate::{Listener, dial};

/// A connection that the loop has not taken yet.
pub(super) enum Arrival {
    /// Somebody calls.
    Child(Box<Incoming>, Peer),
    /// A parent answered.
    Parent {
        index: usize,
        connection: Connection,
        peer: Peer,
        /// To be dropped when the edge ends: then the parent is dialed again. Sent before, if the edge was good.
        held: oneshot::Sender<()>,
    },
}

/// Hears callers of one listener, for ever.
pub(super) async fn hear(mut listener: Listener, arrivals: mpsc::Sender<Arrival>) {
    loop {
        let incoming = match listener.accept().await {
            Ok(incoming) => incoming,
            Err(failed) => {
                warn!(
                    address = failed.address,
                    "a caller did not get in: {}", failed.error
                );
                continue;
            }
        };
        match decode_hello(&incoming.peer().hello) {
            Some(peer) => {
                if arrivals
                    .send(Arrival::Child(Box::new(incoming), peer))
                    .await
                    .is_err()
                {
                    return;
                }
            }
            None => {
                warn!(
                    address = incoming.peer().address,
                    "a caller's hello says nothing"
                );
                incoming.reject("the hello does not say who calls");
            }
        }
    }
}

/// Dials one parent, and again whenever it is lost, for ever.
///
/// The waits between grow ([`Backoff`]) until an edge was good: the parent had begun a home's stream down it, and it was not
/// this node that ended it; or it stood for [`STOOD_MIN`], as one to a site does whose home is out of reach. So a parent that
/// is restarted is back at once, and one that hangs up on us, or that we turn away, is not dialed in a tight loop.
pub(super) struct Dialer {
    pub(super) index: usize,
    pub(super) parent: ParentConfig,
    pub(super) identity: Identity,
    pub(super) hello: Peer,
    pub(super) limits: Limits,
    pub(super) arrivals: mpsc::Sender<Arrival>,
    pub(super) wanted: watch::Receiver<u64>,
    pub(super) shared: Arc<Shared>,
}

impl Dialer {
    pub(super) async fn run(mut self) {
        let mut backoff = Backoff::new();
        let mut said = String::new();
        let hello = encode_hello(&self.hello);
        loop {
            self.be_wanted().await;
            match self.dial(&hello).await {
                Ok((connection, peer)) => {
                    let since = Instant::now();
                    said.clear();
                    let Some(good) = self.hold(connection, peer).await else {
                        return;
                    };
                    self.ended();
                    if good || since.elapsed() >= STOOD_MIN {
                        backoff.succeeded();
                    }
                }
                Err((words, kind)) => {
                    self.say(&words, kind, &mut said);
                    self.lost(&words);
                }
            }
            tokio::time::sleep(backoff.failed()).await;
        }
    }

    /// Waits until the parent is to be dialed.
    async fn be_wanted(&mut self) {
        if self.parent.on_demand {
            // The sending end is in what this dialer shares with the driver.
            let _ = self.wanted.changed().await;
        }
    }

    async fn dial(&self, hello: &[u8]) -> Result<(Connection, Peer), (String, Option<ErrorKind>)> {
        let config = Config {
            delay: self.parent.delay,
            limits: self.limits.clone(),
            ..net_config(self.hello.kind)
        };
        let expect_name = self.parent.expect_name.as_deref();
        let addresses = &self.parent.addresses;
        let connection = dial(addresses, &self.identity, expect_name, hello, &config).await;
        let connection = connection.map_err(|error| (error.to_string(), kind_of(&error)))?;
        match decode_hello(&connection.peer().hello) {
            Some(peer) => Ok((connection, peer)),
            None => {
                let words = "its hello does not say who answers".to_owned();
                Err((words, Some(ErrorKind::PeerMisbehaved)))
            }
        }
    }

    /// Gives the connection to the loop and waits until its edge has ended; tells whether the edge was good. `None` if the
    /// driver is gone.
    async fn hold(&self, connection: Connection, peer: Peer) -> Option<bool> {
        info!(
            parent = peer.name,
            address = connection.peer().address,
            "reached"
        );
        let (held, ended) = oneshot::channel();
        let arrival = Arrival::Parent {
            index: self.index,
            connection,
            peer,
            held,
        };
        self.arrivals.send(arrival).await.ok()?;
        Some(ended.await.is_ok())
    }

    fn ended(&mut self) {
        // It was wanted while it was there.
        self.wanted.mark_unchanged();
        match self.parent.on_demand {
            true => self.shared.set_parent(self.index, ParentState::Unwanted),
            false => self.lost("the connection ended"),
        }
    }

    fn lost(&self, why: &str) {
        // What was wrong may change; since when stays.
        let known = self.shared.parents().into_iter().nth(self.index);
        let since = match known.map(|parent| parent.state) {
            Some(ParentState::Lost { since, .. }) => since,
            _ => now().mono,
        };
        let why = why.to_owned();
        self.shared
            .set_parent(self.index, ParentState::Lost { since, why });
    }

    /// Says what went wrong once, not at every try.
    fn say(&self, words: &str, kind: Option<ErrorKind>, said: &mut String) {
        let name = self.parent.expect_name.as_deref().unwrap_or("any");
        if words == said {
            debug!(parent = name, "still not reached: {words}");
            return;
        }
        said.clear();
        said.push_str(words);
        match kind {
            // Trying again will not help before a person does something.
            Some(ErrorKind::Misconfigured | ErrorKind::PeerMisbehaved) => {
                error!(parent = name, "not reached: {words}");
            }
            _ => warn!(parent = name, "not reached, dialing on: {words}"),
        }
    }
}

pub(super) fn encode_hello(hello: &Peer) -> Vec<u8> {
    // Encoding into memory fails for no value of this type.
    postcard::to_allocvec(hello).unwrap_or_default()
}

fn decode_hello(hello: &[u8]) -> Option<Peer> {
    match postcard::take_from_bytes::<Peer>(hello) {
        Ok((mut peer, [])) => {
            peer.name = printable(&peer.name);
            Some(peer)
        }
        _ => None,
    }
}

/// A name comes from another machine and ends on somebody's terminal.
fn printable(name: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    name.chars().map(shown).collect()
}

fn kind_of(error: &DialError) -> Option<ErrorKind> {
    error.attempts.last().map(|(_, error)| error.kind())
}
