//! A home: its state machine, a disk under it, edges above it, and what happens when the disk is full or its engine breaks.
//!
//! One *life* is one state machine over one open store. A life ends when a batch could not be made durable: what it has
//! accepted is then ahead of what is stored, and only opening it again from the store brings the two together. All edges
//! end with it; the children come back, ask for the outcomes of what they had under way, and are told what is really in
//! the log (rule 11).

mod disk;
mod first_start;
mod history;
mod identity;
mod life;
mod room;
#[cfg(test)]
mod tests;
mod view;
mod volume;
mod web_table;
mod world;

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use thorp_model::{HomeId, StorageError};
use thorp_net::driver::{Driver, Ended, Handle, ParentConfig};
use thorp_net::{Address, Backoff, Identity};
use thorp_protocol::Home;
use thorp_store::{Opening, Store};
use tokio::sync::oneshot;
use tracing::{error, info, warn};

use crate::beside::{serve_beside, until};
use crate::config::{HomeConfigFile, OtherHome};
use crate::error::ServerError;
use crate::http::Http;
use crate::node::{Plan, can_listen, fresh_greeting, listed, one_way};
use crate::status::{Nameplate, Status, Watched};
use disk::Disk;
use first_start::FirstStart;
pub use identity::home_in_store;
use life::{EndedLife, Life, Who};
use view::{Shared, View};
pub use volume::HOME_VOLUME_MIN;

/// A home that has its store open, listens, and is ready to [run](HomeServer::run).
pub struct HomeServer {
    config: Arc<HomeConfigFile>,
    who: Who,
    driver: Driver<Home>,
    life: Life,
    ways: Ways,
    control: HomeControl,
    addresses: Vec<Address>,
    http: Option<Http>,
}

/// The way into a running home from elsewhere. Cheap to clone.
#[derive(Clone)]
pub struct HomeControl {
    handle: Handle<Home>,
    shared: Arc<Shared>,
    view: Arc<View>,
}

/// Between tries to open a store again.
const REOPEN_PAUSE: Duration = Duration::from_secs(1);

/// A life that lasted so long did not end because of how it began: the next one may begin at once.
const STEADY_LIFE: Duration = Duration::from_secs(30);

impl HomeServer {
    /// Opens everything: store, identity, sockets, HTTP. The first time it makes them, and chooses the home's id. Must be
    /// called inside of a runtime.
    ///
    /// # Errors
    ///
    /// [`ServerError`]; among others if another process has the store, or it is another home's.
    pub async fn start(config: HomeConfigFile) -> Result<Self, ServerError> {
        config.check()?;
        let config = Arc::new(config);
        let first = FirstStart::of(&config)?;
        if first.is_some() {
            identity::check(&config, true)?;
            identity::check_had_no_store(&config)?;
            can_listen(&config.listen, config.http).await?;
        }
        volume::check(&config, first.is_some())?;
        // First of all: whoever has the store is the home.
        let disk = Arc::new(Disk::open(&config, config.opening)?);
        let started = Self::start_with(config, Arc::clone(&disk)).await;
        if let (Err(_), Some(first)) = (&started, first) {
            first.undo(&disk);
        }
        started
    }

    async fn start_with(config: Arc<HomeConfigFile>, disk: Arc<Disk>) -> Result<Self, ServerError> {
        let name = config.name()?;
        let known = identity::known(&config, disk.store())?;
        // One that did not come far the first time is new as well.
        identity::check(&config, known.is_none())?;
        let fresh = known.map_or_else(identity::fresh, Ok)?;
        let identity = Identity::open_or_create(
            config.identity_dir()?,
            config.authority_dir()?,
            (name, fresh),
        )?;
        let home = identity::settle(&config, &identity, known)?;
        identity::note_store(&config, disk.store())?;
        identity::let_in_local_member(&config)?;
        identity::advise_about_authority(&config)?;
        let hello = fresh_greeting(&identity)?;
        let node = hello.node;
        let who = Who {
            home,
            node,
            verifier: identity.verifier(),
            table: None,
        };
        let plate = Nameplate {
            role: "home",
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
        let mut ways = Ways::new(&config);
        driver_config.parents = ways.wanted(disk.store());
        let gate = driver_config.gate.clone();
        let (driver, handle) = Driver::new(driver_config);
        let shared = Arc::new(Shared::new((name, gate), config.store.limit));
        let table = web_table::make(&config).await?;
        let who = Who { table, ..who };
        let life = Life::open(&config, &who, disk, &handle, &shared)?;
        let view = Arc::new(View::new(plate, home, handle.clone(), Arc::clone(&shared)));
        let http = config
            .http
            .map(|address| Http::start((address, config.http_for), &own, Arc::clone(&view)));
        Ok(Self {
            who,
            driver,
            life,
            ways,
            control: HomeControl {
                handle,
                shared,
                view,
            },
            addresses,
            http: http.transpose()?,
            config,
        })
    }

    /// The home's id, fixed when its store was made.
    pub fn home(&self) -> HomeId {
        self.who.home
    }

    /// Where it listens, with the ports that the system chose.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Segments that it found without a rights list: they are from before there were rights, and each member may write
    /// there (rule R3).
    pub fn segments_without_rights(&self) -> usize {
        self.life.segments_without_rights()
    }

    /// Why it lets in operators only; none if it is open (rule R9).
    pub fn why_closed(&self) -> Option<String> {
        self.control.shared.why_closed()
    }

    /// Where HTTP is served, with the port that the system chose.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(Http::address)
    }

    /// The way into it while it runs.
    pub fn control(&self) -> HomeControl {
        self.control.clone()
    }

    /// Serves until `shutdown`; then waits for what is on its way to the disk and flushes what is queued, both for a bounded
    /// time.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        serve_beside(|told| self.serve(until(told)), shutdown).await;
    }

    async fn serve(self, shutdown: impl Future<Output = ()>) {
        let Self {
            config,
            who,
            mut driver,
            life,
            mut ways,
            control,
            addresses,
            http,
        } = self;
        info!(
            listen = listed(&addresses),
            home = who.home.0,
            "the home is there"
        );
        let mut shutdown = pin!(shutdown);
        let mut next = Some(life);
        let mut backoff = Backoff::new();
        while let Some(mut life) = next {
            let (first, began) = (life.first(), Instant::now());
            let (core, world) = life.parts();
            let ended = driver.run(core, world, first, shutdown.as_mut()).await;
            if ended == Ended::Shutdown {
                end_in_time(life, Arc::clone(&config)).await;
                break;
            }
            let left = life.end();
            // What the old disk still said is not for the new core.
            driver.forget_inputs();
            let pause = match left.reopen {
                Some(_) => Duration::ZERO,
                None => pause_after(began.elapsed(), &mut backoff),
            };
            let opening = reopen(&config, &who, left, pause, &control);
            next = tokio::select! {
                biased;
                () = shutdown.as_mut() => None,
                (disk, life) = opening => {
                    driver.call(ways.wanted(disk.store()));
                    Some(life)
                }
            };
        }
        control.shared.set_doing("it has shut down");
        drop(http);
        info!("the home has shut down");
    }
}

/// The ways to other homes, for when one has to be asked (rule 10). A closed home asks nobody: what it is in doubt about
/// may be of a lost history.
struct Ways(Vec<ParentConfig>);

impl Ways {
    fn new(config: &HomeConfigFile) -> Self {
        Ways(others(config))
    }

    /// Those that are wanted from now on, and were not before.
    fn wanted(&mut self, store: &Store) -> Vec<ParentConfig> {
        match store.history().closed() {
            None => std::mem::take(&mut self.0),
            Some(_) => Vec::new(),
        }
    }
}

fn others(config: &HomeConfigFile) -> Vec<ParentConfig> {
    let others = config.other_home.iter();
    let parent = |other: &OtherHome| ParentConfig {
        delay: one_way(other.one_way_ms),
        ..ParentConfig::new(other.addresses.clone())
            .named(&other.name)
            .on_demand()
    };
    others.map(parent).collect()
}

/// Ends the last life. A disk that does not answer does not hold up the shutdown: what it was given was acknowledged to
/// nobody.
async fn end_in_time(life: Life, config: Arc<HomeConfigFile>) {
    let limit = Duration::from_millis(config.link.flush_ms_max);
    let (ended, ending) = oneshot::channel();
    let end = move || {
        let disk = life.end().disk;
        // The first start of a home writes what the note is about.
        if let Err(error) = identity::note_store(&config, disk.store()) {
            warn!("{error}");
        }
        drop(disk);
        // Nobody listens if it came too late.
        let _ = ended.send(());
    };
    let thread = thread::Builder::new().name("thorp-end".to_owned());
    if let Err(error) = thread.spawn(end) {
        warn!("the store was closed in a hurry: {error}");
        return;
    }
    if tokio::time::timeout(limit, ending).await.is_err() {
        warn!("the disk did not end within {limit:?} and is left alone");
    }
}

/// What ended one life at its beginning may well end the next one: lives that end soon follow each other more and more
/// slowly.
fn pause_after(lasted: Duration, backoff: &mut Backoff) -> Duration {
    if lasted >= STEADY_LIFE {
        backoff.succeeded();
        return Duration::ZERO;
    }
    backoff.failed()
}

/// Begins the next life after a pause, however long that takes.
async fn reopen(
    config: &HomeConfigFile,
    who: &Who,
    ended: EndedLife,
    pause: Duration,
    control: &HomeControl,
) -> (Arc<Disk>, Life) {
    let why = match (&ended.why, &ended.reopen) {
        (Some(error), _) => error.to_string(),
        (None, Some(reopen)) => format!("operator {:?} has opened it", reopen.by.name),
        (None, None) => "it was asked for".to_owned(),
    };
    let mut wanted = ended.reopen;
    warn!("the home is opened again: {why}");
    control.shared.reopening(&why);
    let broken = !matches!(ended.why, None | Some(StorageError::Full { .. }));
    let mut disk = if broken {
        drop(ended.disk);
        None
    } else {
        ended.disk.room().wants(ended.first_bytes_left);
        Some(ended.disk)
    };
    tokio::time::sleep(pause).await;
    loop {
        let opened = match disk.take() {
            Some(disk) => Ok(disk),
            None => Disk::open(config, Opening::Prove).map(Arc::new),
        };
        let opened = opened.and_then(|disk| history::reopen(disk, &mut wanted));
        let life = opened.and_then(|disk| {
            let life = Life::open(
                config,
                who,
                Arc::clone(&disk),
                &control.handle,
                &control.shared,
            )?;
            Ok((disk, life))
        });
        match life {
            Ok(life) => {
                info!("the home is open again");
                return life;
            }
            Err(failed) => {
                error!("the home cannot be opened again, trying on: {failed}");
                control.shared.set_doing(&failed.to_string());
            }
        }
        tokio::time::sleep(REOPEN_PAUSE).await;
    }
}

impl HomeControl {
    /// The way into its loop.
    pub fn handle(&self) -> &Handle<Home> {
        &self.handle
    }

    /// Changes the most that the store may hold, in bytes, from now on. Not written to the configuration.
    pub fn set_limit(&self, limit_bytes: Option<u64>) {
        self.shared.set_limit(limit_bytes);
    }

    /// How the home is now.
    pub async fn status(&self) -> Status {
        self.view.look().await
    }
}
