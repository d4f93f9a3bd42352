//! A redirector beside a member, in the member's process.

use super::SiteOfMembers;
use super::config::Plan;
use super::redirector::EmbeddedRedirector;
use crate::limits::EMBEDDED_SITE_CACHE_BYTES;
use crate::runtime::{Worker, random_bits};
use crate::status::SiteStatus;
use crate::{JoinError, OutOfReach};
use std::time::Duration;
use thorp_model::{Direction, NodeKind, Note, Outbox};
use thorp_net::driver::{Driver, DriverConfig, Handle, NoWorld, ParentConfig, net_config};
use thorp_net::{Address, Identity, Limits, LinkDelay, Listener};
use thorp_protocol::{AliveLimits, ParentNames, RedirectorConfig};
use tokio::sync::oneshot;

/// How the edges of a member, and of the redirector beside it, behave.
#[derive(Clone)]
pub(crate) struct Edges {
    pub(crate) delay: LinkDelay,
    pub(crate) alive: AliveLimits,
    pub(crate) limits: Limits,
}

/// It runs until it is stopped or dropped; then its children turn to the next in rank.
pub(crate) struct EmbeddedSite {
    handle: Handle<EmbeddedRedirector>,
    before: Vec<Address>,
    /// The listener for its own member, which no network can cut.
    loopback: Address,
    heal_every: Duration,
    worker: Worker,
}

impl EmbeddedSite {
    /// Listens, and rests until a child comes.
    pub(crate) async fn start(
        site: &SiteOfMembers,
        identity: Identity,
        edges: Edges,
    ) -> Result<Self, JoinError> {
        let plan = site.plan()?;
        let before = plan.before.clone();
        let (sender, opened) = oneshot::channel();
        let worker = Worker::start(move |stopped| async move {
            // Sockets belong to the runtime of this thread.
            let result = open(plan, identity, edges).await;
            let (mut driver, mut redirector, handle, loopback) = match result {
                Ok(opened) => opened,
                Err(error) => {
                    // The member that joins waits for it.
                    let _ = sender.send(Err(error));
                    return;
                }
            };
            let _ = sender.send(Ok((handle, loopback)));
            driver
                .run(&mut redirector, &mut NoWorld, Outbox::new(), stopped)
                .await;
        });
        let worker = worker.map_err(JoinError::System)?;
        let ended = |_| JoinError::System(std::io::Error::other("its thread has ended"));
        let (handle, loopback) = opened.await.map_err(ended)??;
        Ok(EmbeddedSite {
            handle,
            before,
            loopback,
            heal_every: site.heal_every,
            worker,
        })
    }

    /// The parents of its member: the dedicated sites, then the neighbours before it, then this redirector.
    pub(crate) fn parent(&self, mut sites: Vec<Address>) -> ParentConfig {
        sites.extend(self.before.iter().cloned());
        sites.push(self.loopback.clone());
        ParentConfig::new(sites).healing(self.heal_every)
    }

    pub(crate) fn fill(&self, status: &mut SiteStatus) {
        status.is_own = self.is_loopback(status.address.as_deref());
        let edges = self.handle.edges();
        let below = edges
            .iter()
            .filter(|edge| edge.direction == Direction::Down);
        status.carried = below.count();
        status.asked_homes = self.handle.notes().get(Note::FetchSent);
        if status.carried > 0 {
            status.out_of_reach.extend(self.out_of_reach());
        }
    }

    /// Whether its own member came in here.
    pub(crate) fn is_loopback(&self, address: Option<&str>) -> bool {
        address == Some(&self.loopback.to_string())
    }

    /// The homes that it does not reach.
    pub(crate) fn out_of_reach(&self) -> Vec<OutOfReach> {
        OutOfReach::of(self.handle.parents())
    }

    /// Ends it. Its own member has to be gone.
    pub(crate) fn stop(&self) {
        self.worker.stop();
    }
}

async fn open(
    plan: Plan,
    identity: Identity,
    edges: Edges,
) -> Result<
    (
        Driver<EmbeddedRedirector>,
        EmbeddedRedirector,
        Handle<EmbeddedRedirector>,
        Address,
    ),
    JoinError,
> {
    let hello = identity.greeting(random_bits());
    let (node, name) = (hello.node, hello.name.clone());
    let listener = listen(&plan.listen, &identity, &edges).await?;
    let local = Address::Tcp {
        host: "127.0.0.1".to_owned(),
        port: 0,
    };
    let loopback = listen(&local, &identity, &edges).await?;
    let address = loopback.address().clone();
    let mut config = DriverConfig::new(identity, hello);
    config.listeners = vec![listener, loopback];
    let homes = plan.homes.into_iter().map(|home| ParentConfig {
        delay: edges.delay,
        ..home
    });
    config.parents = homes.collect();
    config.net_limits = edges.limits;
    let homes = config.parents.len();
    let names = config
        .parents
        .iter()
        .filter_map(|parent| parent.expect_name.clone());
    let names: Vec<String> = names.collect();
    let (driver, handle) = Driver::new(config);
    let mut config = RedirectorConfig::new(node, name);
    config.cache_bytes = EMBEDDED_SITE_CACHE_BYTES;
    config.alive = Some(edges.alive);
    config.images_beside = true;
    config.parents = Some(ParentNames {
        others: homes - names.len(),
        homes: names,
    });
    let wanting = handle.clone();
    let redirector = EmbeddedRedirector::new(config, homes, move || wanting.want_parents());
    Ok((driver, redirector, handle, address))
}

async fn listen(
    address: &Address,
    identity: &Identity,
    edges: &Edges,
) -> Result<Listener, JoinError> {
    let mut config = net_config(NodeKind::Redirector);
    config.limits = edges.limits.clone();
    let listening = Listener::bind(address, identity, config);
    listening.await.map_err(|error| JoinError::Listen {
        address: address.to_string(),
        error,
    })
}
