//! A site: the redirector, its edges, and nothing else.

use std::net::SocketAddr;
use std::time::Instant;

use thorp_model::{NameId, Outbox};
use thorp_net::driver::{Driver, Handle, NoWorld, ParentConfig};
use thorp_net::{Address, Identity, NodeRole, issue};
use thorp_protocol::{ParentNames, Redirector, RedirectorConfig};
use tracing::info;

use crate::beside::{serve_beside, until};
use crate::config::SiteConfigFile;
use crate::error::ServerError;
use crate::http::Http;
use crate::node::{Plan, fresh_greeting, listed, one_way};
use crate::privileges::PrivilegesStatus;
use crate::status::{
    Acknowledged, HomeStatus, LOOK_TIME_MAX, Nameplate, Patience, Status, Watched,
};

/// A site that listens and is ready to [run](SiteServer::run).
pub struct SiteServer {
    driver: Driver<Redirector>,
    core: Redirector,
    handle: Handle<Redirector>,
    addresses: Vec<Address>,
    http: Option<Http>,
}

impl SiteServer {
    /// Opens everything: identity, sockets, HTTP. Must be called inside of a runtime.
    ///
    /// # Errors
    ///
    /// [`ServerError`].
    pub async fn start(config: &SiteConfigFile) -> Result<Self, ServerError> {
        config.check()?;
        let name = config.name()?;
        let identity = identity(config)?;
        let hello = fresh_greeting(&identity)?;
        let node = hello.node;
        let plate = Nameplate {
            role: "site",
            name: name.to_owned(),
            node,
            village: identity.village().to_owned(),
            since: Instant::now(),
        };
        let own = identity.clone();
        let plan = Plan {
            identity,
            hello,
            listen: &config.listen,
            link: &config.link,
            child_delay: &config.child_delay,
        };
        let (mut driver_config, addresses) = plan.listen().await?;
        driver_config.parents = parents(config);
        let (driver, handle) = Driver::new(driver_config);
        let view = View {
            plate,
            handle: handle.clone(),
            patience: Patience::default(),
        };
        let http = config
            .http
            .map(|address| Http::start((address, config.http_for), &own, view));
        let mut core = RedirectorConfig::new(node, name.to_owned());
        core.parents = Some(parent_names(config));
        core.log_keeper = log_keeper(config)?;
        core.cache_bytes = config.limits.cache.size();
        core.alive = Some(config.link.alive());
        core.images_beside = config.link.lanes > 1;
        core.kept_bytes_max = config.limits.kept.size();
        // Commits and staged values, each: together they leave half of the queue to all else.
        core.upward_bytes_max = core.upward_bytes_max.min(config.link.queue.size() / 4);
        Ok(Self {
            driver,
            core: Redirector::new(core),
            handle,
            addresses,
            http: http.transpose()?,
        })
    }

    /// Where it listens, with the ports that the system chose.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Where HTTP is served, with the port that the system chose.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(Http::address)
    }

    /// The way into its loop.
    pub fn handle(&self) -> Handle<Redirector> {
        self.handle.clone()
    }

    /// Serves until `shutdown`; then flushes what is queued, for a bounded time.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        serve_beside(|told| self.serve(until(told)), shutdown).await;
    }

    async fn serve(mut self, shutdown: impl Future<Output = ()>) {
        info!(listen = listed(&self.addresses), "the site is there");
        let (core, world) = (&mut self.core, &mut NoWorld);
        self.driver.run(core, world, Outbox::new(), shutdown).await;
        info!("the site has shut down");
    }
}

fn parent_names(config: &SiteConfigFile) -> ParentNames {
    let names = config
        .parent
        .iter()
        .filter_map(|parent| parent.name.clone());
    let homes: Vec<String> = names.collect();
    ParentNames {
        others: config.parent.len() - homes.len(),
        homes,
    }
}

fn parents(config: &SiteConfigFile) -> Vec<ParentConfig> {
    let parents = config.parent.iter();
    parents
        .map(|parent| ParentConfig {
            expect_name: parent.name.clone(),
            delay: one_way(parent.one_way_ms),
            ..ParentConfig::new(parent.addresses.clone())
        })
        .collect()
}

/// A site never makes an authority: that would be a village of its own, which nobody else is in.
fn identity(config: &SiteConfigFile) -> Result<Identity, ServerError> {
    let (dir, name) = (config.identity_dir()?, config.name()?);
    if let Some(authority) = &config.authority_dir {
        return Ok(issue(authority, &dir, NodeRole::Site, name)?);
    }
    // Whatever else is missing there, loading says so.
    if !dir.exists() {
        let (role, name) = (NodeRole::Site, name.to_owned());
        return Err(ServerError::NoIdentity { dir, role, name });
    }
    Ok(Identity::load_of(&dir, NodeRole::Site, name)?)
}

/// The name of the member that keeps the log of the site.
fn log_keeper(config: &SiteConfigFile) -> Result<Option<NameId>, ServerError> {
    let Some(dir) = &config.log_identity_dir else {
        return Ok(None);
    };
    let keeper = Identity::load(dir)?;
    match keeper.role() {
        NodeRole::Member => Ok(Some(NameId::of(keeper.name()))),
        _ => Err(ServerError::NoIdentity {
            dir: dir.clone(),
            role: NodeRole::Member,
            name: format!("{}-log", config.name()?),
        }),
    }
}

struct View {
    plate: Nameplate,
    handle: Handle<Redirector>,
    patience: Patience,
}

/// What is looked up in the state machine.
struct Found {
    homes: Vec<HomeStatus>,
    acked: Acknowledged,
    sizes: Vec<(&'static str, usize)>,
}

fn find(core: &Redirector) -> Found {
    let mut acked = Acknowledged::new();
    let homes = core.homes().into_iter().map(|(home, name, position, up)| {
        for (edge, acknowledged) in core.children(home) {
            acked.entry(edge).or_default().push((home, acknowledged));
        }
        HomeStatus {
            home: home.0,
            name,
            position: position.0,
            connected: up,
        }
    });
    Found {
        homes: homes.collect(),
        sizes: core.sizes(),
        acked,
    }
}

impl Watched for View {
    async fn look(&self) -> Status {
        let mut status = self.plate.status(&self.handle);
        let mut wrong = Vec::new();
        let looking = tokio::time::timeout(LOOK_TIME_MAX, self.handle.inspect(find));
        match looking.await {
            Ok(Some(found)) => {
                status.set_sizes(&found.sizes);
                status.privileges = PrivilegesStatus::of_site(&found.sizes);
                status.homes = found.homes;
                status.set_children(&self.handle.edges(), &found.acked, &self.patience);
            }
            Ok(None) => wrong.push("the site is shutting down".to_owned()),
            Err(_) => wrong.push(format!("the loop did not answer within {LOOK_TIME_MAX:?}")),
        }
        for parent in &status.parents {
            if !parent.connected {
                let why = parent.why.as_deref().unwrap_or("being dialed");
                wrong.push(format!("parent {} is not reached: {why}", parent.name));
            }
        }
        status.set_health(wrong);
        status
    }
}
