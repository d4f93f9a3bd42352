//! The tasks that bring connections: one for each listener, one for each parent.

use std::sync::Arc;
use std::time::Instant;

use thorp_model::{Peer, TurnedAway, WhyTurnedAway};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{debug, error, info, warn};

use super::config::{ParentConfig, STOOD_MIN};
use super::edges::{End, ParentState, Shared};
use super::greeting;
use super::lines::Lines;
use super::parent_choice::{Answered, Caller, Patience, Refused};
use super::routes::Routes;
use super::time::now;
use crate::proof::Proof;
use crate::{Backoff, Connection, ErrorKind, Incoming, Listener};

/// A connection that the loop has not taken yet.
pub(super) enum Arrival {
    /// What this node accepts of a certificate is no longer the same.
    TrustChanged,
    /// A caller does not get in. It is for the audit.
    TurnedAway(TurnedAway),
    /// Somebody calls.
    Child(Box<Incoming>, Peer),
    /// A parent answered.
    Parent {
        index: usize,
        connection: Box<Connection>,
        peer: Peer,
        /// Is told how the edge ended: then the parent is dialed again.
        held: oneshot::Sender<End>,
    },
}

/// Hears callers of one listener, for ever.
pub(super) async fn hear(mut listener: Listener, arrivals: mpsc::Sender<Arrival>) {
    // Anybody can call, and fail, as often as it likes. Records have a count of their own: who fails without a certificate
    // first does not hide what follows.
    let (mut lines, mut records) = (Lines::new(), Lines::new());
    loop {
        let incoming = match listener.accept().await {
            Ok(incoming) => incoming,
            Err(failed) => {
                if let Some(left_out) = lines.write(Instant::now(), failed.origin) {
                    warn!(
                        address = failed.address,
                        "a caller did not get in: {}{left_out}", failed.error
                    );
                }
                if let Some(away) = failed.away
                    && records.write(Instant::now(), failed.origin).is_some()
                {
                    tell(&arrivals, *away);
                }
                continue;
            }
        };
        match greeting::read(incoming.peer()) {
            Ok(peer) => {
                if arrivals
                    .send(Arrival::Child(Box::new(incoming), peer))
                    .await
                    .is_err()
                {
                    return;
                }
            }
            Err(wrong) => {
                let words = wrong.to_string();
                let origin = Some(incoming.origin());
                if records.write(Instant::now(), origin).is_some() {
                    tell(&arrivals, bad_greeting(&incoming));
                }
                if let Some(left_out) = lines.write(Instant::now(), origin) {
                    warn!(
                        address = incoming.peer().address,
                        "a caller is turned away: {words}{left_out}"
                    );
                }
                incoming.reject(&words);
            }
        }
    }
}

/// Nobody waits for a record: where the loop is behind, it is left out.
fn tell(arrivals: &mpsc::Sender<Arrival>, away: TurnedAway) {
    let _ = arrivals.try_send(Arrival::TurnedAway(away));
}

fn bad_greeting(incoming: &Incoming) -> TurnedAway {
    TurnedAway {
        why: WhyTurnedAway::Greeting,
        from: incoming.origin().network(),
        name: Some(incoming.peer().certified.name().to_owned()),
    }
}

/// Dials one parent (or one of several, in an order of preference), and again whenever it is lost, for ever.
///
/// The waits between grow ([`Backoff`]) until an edge was good: the parent had begun a home's stream down it, and it was not
/// this node that ended it; or it stood for [`STOOD_MIN`], as one to a site does whose home is out of reach. So a parent that
/// is restarted is back at once, and one that hangs up on us, or that we turn away, is not dialed in a tight loop. Other
/// addresses than the one that was lost are dialed without a wait, until every one of them was in vain: after as many edges in a
/// row that did not stand as there are addresses, it waits before it goes round again ([`Routes::lost`]). Where there is an order of
/// preference, a parent that was of use and is lost is followed by the first that answers of all, after the shortest wait.
pub(super) struct Dialer {
    pub(super) index: usize,
    pub(super) parent: ParentConfig,
    pub(super) caller: Caller,
    pub(super) arrivals: mpsc::Sender<Arrival>,
    pub(super) wanted: watch::Receiver<u64>,
    /// So often it has been wanted, and dialed for that, or was there.
    pub(super) heeded: u64,
    pub(super) shared: Arc<Shared>,
}

/// A connection to a parent, from giving it to the loop to the end of its edge.
struct Held {
    /// Dropped unsent by a loop that is gone.
    ended: oneshot::Receiver<End>,
    proof: Option<Proof>,
    place: usize,
    since: Instant,
    /// Another parent was left for this one.
    turned: bool,
}

impl Dialer {
    pub(super) async fn run(mut self) {
        let mut backoff = Backoff::new();
        let mut patience = self.parent.heals_every.map(Patience::new);
        let mut routes = Routes::new(self.parent.addresses.clone());
        // Of several parents, the preferred ones are asked again first; not where an edge was of no use.
        let heals = self.parent.heals_every.is_some();
        let mut in_order = heals;
        let mut said = String::new();
        loop {
            self.be_wanted().await;
            let dialed = match in_order {
                true => self.caller.first(&self.parent.addresses).await,
                false => routes.dial(&self.caller).await,
            };
            match dialed {
                Ok(answered) => {
                    said.clear();
                    let Some(held) = self.give(answered, false).await else {
                        return;
                    };
                    let Some((end, since, place)) = self.hold(held, patience.as_mut()).await else {
                        return;
                    };
                    let (good, stood) = (end.good, since.elapsed() >= STOOD_MIN);
                    self.ended(end);
                    if good || stood {
                        backoff.succeeded();
                    }
                    // Also who begins a stream and hangs up again at once is of no use, the second time.
                    let at_once = routes.lost(place, stood);
                    in_order = heals && (good || stood) && routes.in_vain() <= 1;
                    if at_once && !in_order {
                        continue;
                    }
                }
                Err(Refused { words, kind }) => {
                    self.say(&words, kind, &mut said);
                    let is_final = matches!(kind, Some(ErrorKind::Refused | ErrorKind::Elsewhere));
                    self.lost(&words, is_final);
                }
            }
            tokio::time::sleep(backoff.failed()).await;
        }
    }

    /// Waits until the parent is to be dialed.
    async fn be_wanted(&mut self) {
        if self.parent.on_demand {
            // The sending end is in what this dialer shares with the driver.
            let heeded = self.heeded;
            if let Ok(wanted) = self.wanted.wait_for(|wanted| *wanted > heeded).await {
                self.heeded = *wanted;
            }
        }
    }

    /// Gives a connection to the loop. `None` if the driver is gone.
    async fn give(&self, answered: Answered, turned: bool) -> Option<Held> {
        let Answered {
            connection,
            peer,
            place,
        } = answered;
        info!(
            parent = peer.name,
            address = connection.peer().address,
            "reached"
        );
        let proof = Proof::of(&connection);
        let (held, ended) = oneshot::channel();
        let arrival = Arrival::Parent {
            index: self.index,
            connection: Box::new(connection),
            peer,
            held,
        };
        self.arrivals.send(arrival).await.ok()?;
        Some(Held {
            ended,
            proof,
            place,
            since: Instant::now(),
            turned,
        })
    }

    /// Waits until the edge has ended; tells how, since when it stood, and its place. A parent that is preferred
    /// takes its place as soon as it answers. `None` if the driver is gone.
    async fn hold(
        &self,
        mut held: Held,
        mut patience: Option<&mut Patience>,
    ) -> Option<(End, Instant, usize)> {
        loop {
            let better = self.better(held.place, patience.as_deref_mut());
            tokio::select! {
                () = self.caller.keep_proving(held.proof.as_ref()) => {}
                ended = &mut held.ended => {
                    if let Some(patience) = patience.filter(|_| held.turned) {
                        patience.lost(held.since.elapsed());
                    }
                    return Some((ended.unwrap_or_default(), held.since, held.place));
                }
                // The loop ends the one edge when it takes the other.
                answered = better => held = self.give(answered, true).await?,
            }
        }
    }

    /// Waits until a parent that comes before a place answers: for ever, if none does.
    async fn better(&self, place: usize, patience: Option<&mut Patience>) -> Answered {
        let before = self.parent.addresses.get(..place).unwrap_or_default();
        let Some(patience) = patience.filter(|_| !before.is_empty()) else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(patience.wait()).await;
            if let Ok(answered) = self.caller.first(before).await {
                return answered;
            }
        }
    }

    fn ended(&mut self, end: End) {
        // What it was wanted for while it was there.
        self.heeded = self.heeded.max(end.wanted);
        match self.parent.on_demand {
            true => self.shared.set_parent(self.index, ParentState::Unwanted),
            false => self.lost(end.why.as_deref().unwrap_or("the connection ended"), false),
        }
    }

    fn lost(&self, why: &str, is_refused: bool) {
        // What was wrong may change; since when stays.
        let known = self.shared.parents().into_iter().nth(self.index);
        let since = match known.map(|parent| parent.state) {
            Some(ParentState::Lost { since, .. }) => since,
            _ => now().mono,
        };
        let why = why.to_owned();
        let lost = ParentState::Lost {
            since,
            why,
            is_refused,
        };
        self.shared.set_parent(self.index, lost);
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
            Some(ErrorKind::Misconfigured | ErrorKind::Elsewhere | ErrorKind::PeerMisbehaved) => {
                error!(parent = name, "not reached: {words}");
            }
            _ => warn!(parent = name, "not reached, dialing on: {words}"),
        }
    }
}
