//! Calling a parent, and turning from one to another (rule 13).
//!
//! A parent has several addresses, tried in turn; or there are several parents in an order of preference
//! ([`ParentConfig::heals_every`]), of which the first that answers is the parent. What answers late is not waited for alone,
//! and what comes before the present one is tried again now and then: so a site that was split is one again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thorp_model::{NodeKind, Peer};
use tokio::task::JoinSet;
use tokio::time::error::Elapsed;

use super::config::{ParentConfig, TURN_STAGGER, net_config};
use super::greeting;
use super::home_ids::HomeIds;
use crate::backoff::Jitter;
use crate::proof::Proof;
use crate::{Address, Config, Connection, DialError, ErrorKind, Identity, Limits, dial};

/// Whoever dials one parent.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) identity: Identity,
    /// Encoded.
    pub(super) hello: Arc<[u8]>,
    pub(super) kind: NodeKind,
    pub(super) config: Config,
    pub(super) expect_name: Option<String>,
    pub(super) called_within: Duration,
    home_ids: HomeIds,
}

/// How long a call is waited for alone: the first ones [`TURN_STAGGER`], then ever less, so that all together are waited for
/// no longer than was allowed, however many they are.
struct Stagger {
    left: Duration,
}

/// A parent that has answered.
pub(super) struct Answered {
    pub(super) connection: Connection,
    pub(super) peer: Peer,
    /// Which of the addresses, where their order says which is preferred.
    pub(super) place: usize,
}

/// None has answered.
pub(super) struct Refused {
    pub(super) words: String,
    pub(super) kind: Option<ErrorKind>,
}

/// How long a node stays where it is before it tries again what it would rather have: less often, if what it turned to did
/// not stand.
pub(super) struct Patience {
    every: Duration,
    doublings: u32,
    jitter: Jitter,
}

impl Caller {
    pub(super) fn new(
        parent: &ParentConfig,
        identity: Identity,
        (kind, hello): (NodeKind, &[u8]),
        limits: Limits,
    ) -> Self {
        let config = Config {
            delay: parent.delay,
            limits,
            ..net_config(kind)
        };
        Self {
            identity,
            hello: hello.into(),
            kind,
            config,
            expect_name: parent.expect_name.clone(),
            called_within: parent.called_within,
            home_ids: HomeIds::default(),
        }
    }

    /// Tries the addresses in turn.
    pub(super) async fn call(&self, addresses: &[Address]) -> Result<Answered, Refused> {
        let expect_name = self.expect_name.as_deref();
        let dialing = dial(
            addresses,
            &self.identity,
            expect_name,
            &self.hello,
            &self.config,
        );
        let connection = dialing.await.map_err(|error| Refused::from(&error))?;
        if let Err(other) = self.home_ids.check(connection.peer()) {
            return Err(Refused {
                words: other.to_string(),
                kind: Some(ErrorKind::Misconfigured),
            });
        }
        match greeting::read_parent(connection.peer()) {
            Ok(peer) => {
                self.widen(&connection, &peer);
                Ok(Answered {
                    connection,
                    peer,
                    place: 0,
                })
            }
            Err(wrong) => Err(Refused {
                words: format!("{}: {wrong}", connection.peer().address),
                kind: Some(ErrorKind::PeerMisbehaved),
            }),
        }
    }

    /// Proves anew who both ends are, when one of them has another certificate: so the edge outlives the ones with which it
    /// began. Does not end.
    pub(super) async fn keep_proving(&self, proof: Option<&Proof>) {
        match proof {
            Some(proof) => proof.keep(&self.identity, &self.config).await,
            None => std::future::pending().await,
        }
    }

    /// A home's images may overtake its stream (rule 9): over a wide area, by sockets of their own.
    fn widen(&self, connection: &Connection, peer: &Peer) {
        let is_far = |remote: SocketAddr| !remote.ip().is_loopback();
        if peer.kind == NodeKind::Home
            && self.kind != NodeKind::Home
            && connection.remote().is_some_and(is_far)
        {
            connection.widen(&self.identity, &self.config);
        }
    }

    /// The first that answers, in their order; who has not answered within a while ([`Stagger`]) is not waited for alone.
    pub(super) async fn first(&self, addresses: &[Address]) -> Result<Answered, Refused> {
        let mut waiting = addresses.iter().cloned().enumerate();
        let mut refused = Vec::new();
        // Given up with this future.
        let mut calls = JoinSet::new();
        let mut stagger = Stagger {
            left: self.called_within,
        };
        loop {
            if let Some((place, address)) = waiting.next() {
                let caller = self.clone();
                calls.spawn(async move {
                    let answered = caller.call(&[address]).await;
                    answered.map(|answered| Answered { place, ..answered })
                });
            }
            let ended = match waiting.len() {
                0 => Ok(calls.join_next().await),
                _ => stagger.wait_for(calls.join_next()).await,
            };
            match ended {
                Ok(Some(Ok(Ok(answered)))) => return Ok(answered),
                Ok(Some(Ok(Err(one)))) => refused.push(one),
                // A call neither panics nor is given up while it is waited for.
                Ok(Some(Err(_))) => {}
                Ok(None) if waiting.len() == 0 => return Err(Refused::all(refused)),
                Ok(None) | Err(_) => {}
            }
        }
    }
}

impl Stagger {
    async fn wait_for<T>(&mut self, ended: impl Future<Output = T>) -> Result<T, Elapsed> {
        let wait = self.wait();
        let ended = tokio::time::timeout(wait, ended).await;
        if ended.is_err() {
            self.left -= wait;
        }
        ended
    }

    fn wait(&self) -> Duration {
        TURN_STAGGER.min(self.left / SHARE)
    }
}

impl Refused {
    fn all(refused: Vec<Refused>) -> Self {
        let kind = common(refused.iter().map(|one| one.kind));
        let words: Vec<String> = refused.into_iter().map(|one| one.words).collect();
        let words = match words.is_empty() {
            true => "no address to call".to_owned(),
            false => words.join("; "),
        };
        Self { words, kind }
    }
}

/// What several failures ask of the caller: another try, if it may help at one of the addresses.
fn common(kinds: impl Iterator<Item = Option<ErrorKind>> + Clone) -> Option<ErrorKind> {
    let is_hopeful = |kind| matches!(kind, None | Some(ErrorKind::Retry));
    let hopeful = kinds.clone().find(|kind| is_hopeful(*kind));
    hopeful.or_else(|| kinds.last()).flatten()
}

impl From<&DialError> for Refused {
    fn from(error: &DialError) -> Self {
        Self {
            words: error.to_string(),
            kind: common(error.attempts.iter().map(|(_, error)| Some(error.kind()))),
        }
    }
}

impl Patience {
    pub(super) fn new(every: Duration) -> Self {
        Self {
            every,
            doublings: 0,
            jitter: Jitter::new(),
        }
    }

    /// The time until the next try, cut by up to half at random: the members of a site do not all turn in one instant.
    pub(super) fn wait(&mut self) -> Duration {
        self.jitter.cut(self.step())
    }

    /// What was turned to is lost. If it did not stand for long, it is tried less often.
    pub(super) fn lost(&mut self, stood: Duration) {
        match stood < self.every.saturating_mul(TRUSTED_AFTER) {
            true => self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX),
            false => self.doublings = 0,
        }
    }

    fn step(&self) -> Duration {
        self.every.saturating_mul(1 << self.doublings)
    }
}

/// Of the time that is left for all, the part for which one is waited for alone.
const SHARE: u32 = 3;
/// What was turned to and stood for so many times as long as one waits for it, is worth turning to again.
const TRUSTED_AFTER: u32 = 3;
/// From ten seconds, the usual, to five minutes.
const DOUBLINGS_MAX: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ADDRESSES_MAX;
    use crate::driver::CALLED_WITHIN;

    #[test]
    fn the_first_are_waited_for_and_all_are_called_in_time() {
        let mut stagger = Stagger {
            left: CALLED_WITHIN,
        };
        let waits = (1..2 * ADDRESSES_MAX).map(|_| {
            let wait = stagger.wait();
            stagger.left -= wait;
            wait
        });
        let waits: Vec<Duration> = waits.collect();
        assert_eq!(waits[..3], [TURN_STAGGER; 3]);
        assert!(waits.is_sorted_by(|one, next| one >= next));
        assert!(waits.iter().sum::<Duration>() <= CALLED_WITHIN);
    }

    #[test]
    fn what_does_not_stand_is_tried_ever_more_rarely() {
        let every = Duration::from_secs(10);
        let mut patience = Patience::new(every);
        let is_cut = |wait: Duration, step: Duration| wait >= step / 2 && wait <= step;
        assert!(is_cut(patience.wait(), every));
        for _ in 0..100 {
            patience.lost(every);
        }
        let longest = every * (1 << DOUBLINGS_MAX);
        assert!(is_cut(patience.wait(), longest));
        patience.lost(every * TRUSTED_AFTER);
        assert!(is_cut(patience.wait(), every));
    }
}
