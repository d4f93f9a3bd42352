//! A home in the test's process.

use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use thorp_model::limits::{LEASE_MS, REGISTRATIONS_MAX};
use thorp_model::records::{self, CLOCK_KEY};
use thorp_model::{Batch, HomeId, Lack, Mark, Millis, NodeKind, Outbox, Purpose, Stamp, Table};
use thorp_net::driver::{Driver, DriverConfig, Handle, ParentConfig, net_config, now};
use thorp_net::{Address, Identity, LinkDelay, Listener};
use thorp_protocol::{Home, HomeCommand, HomeConfig};
use tokio::sync::mpsc;

use crate::authority::{Authority, HOME, HOME_NAME};
use crate::disk::{Disk, HomeWorld};
use crate::link::Link;
use crate::patience::eventually;
use crate::running::Thread;
use crate::site::SiteNode;

/// How a home is.
#[derive(Clone, Debug)]
pub struct HomeOptions {
    /// The home's name.
    pub name: String,
    /// The home's id.
    pub id: HomeId,
    /// Where it listens; none: at the socket of its name in the village's directory.
    pub address: Option<Address>,
    /// How long what goes down takes. Members delay what goes up.
    pub one_way: Duration,
    /// How many members it remembers.
    pub registrations_max: usize,
    /// How long a lease or a lock lasts, in milliseconds (rule C4).
    pub lease_ms: u32,
    /// A directory for its store; none: its records are in memory.
    pub store: Option<PathBuf>,
    /// Other homes of its village, by name, with which it shares transactions (rule 10).
    pub others: Vec<ParentConfig>,
}

impl HomeOptions {
    /// A home with its records in memory, which knows no other.
    pub fn new(name: impl Into<String>, id: HomeId) -> Self {
        Self {
            name: name.into(),
            id,
            address: None,
            one_way: Duration::ZERO,
            registrations_max: REGISTRATIONS_MAX,
            lease_ms: LEASE_MS,
            store: None,
            others: Vec::new(),
        }
    }
}

impl Default for HomeOptions {
    /// A home called `alps`.
    fn default() -> Self {
        Self::new(HOME_NAME, HOME)
    }
}

/// A home that runs in the test's process, until it is dropped.
pub struct HomeNode {
    village: Authority,
    options: HomeOptions,
    address: Address,
    handle: Handle<Home>,
    disk: Arc<Disk>,
    lives: Arc<Lives>,
    /// A message for each life but the first; closed at the end.
    start: Option<mpsc::UnboundedSender<()>>,
    thread: Option<Thread>,
}

impl Default for HomeNode {
    fn default() -> Self {
        Self::new()
    }
}

impl HomeNode {
    /// The home `alps` of a village of its own, with its records in memory.
    pub fn new() -> Self {
        Self::start(&Authority::new(), HomeOptions::default())
    }

    /// As [`HomeNode::new`], so far away: the node itself holds back what it sends down, and members have to hold back
    /// what they send up (`JoinConfig::link_delay`). A [link](HomeNode::link) delays both, without their help.
    pub fn with_delay(one_way: Duration) -> Self {
        let options = HomeOptions {
            one_way,
            ..HomeOptions::default()
        };
        Self::start(&Authority::new(), options)
    }

    /// As [`HomeNode::new`], remembering so many members.
    pub fn remembering(members: usize) -> Self {
        let options = HomeOptions {
            registrations_max: members,
            ..HomeOptions::default()
        };
        Self::start(&Authority::new(), options)
    }

    /// As [`HomeNode::new`], with leases and locks of so many milliseconds.
    pub fn leasing_for(lease_ms: u32) -> Self {
        let options = HomeOptions {
            lease_ms,
            ..HomeOptions::default()
        };
        Self::start(&Authority::new(), options)
    }

    /// As [`HomeNode::new`], sharing transactions with homes of these names: those that are started
    /// [beside](HomeNode::beside) it.
    pub fn sharing_with(names: &[&str]) -> Self {
        let village = Authority::new();
        let other = |name: &&str| ParentConfig::new(vec![village.socket(name)]).named(*name);
        let options = HomeOptions {
            others: names.iter().map(other).collect(),
            ..HomeOptions::default()
        };
        Self::start(&village, options)
    }

    /// Starts a home on a thread of its own.
    pub fn start(village: &Authority, options: HomeOptions) -> Self {
        let village = village.clone();
        let (mut node, thread) = Thread::start(|| Self::open(village, options));
        node.thread = Some(thread);
        node
    }

    /// Starts a home in the runtime of the test. [`HomeNode::stop`] and the like block, so they need another thread.
    pub async fn start_here(village: &Authority, options: HomeOptions) -> Self {
        let (node, work) = Self::open(village.clone(), options).await;
        tokio::spawn(work);
        node
    }

    /// One more home of the same village, which shares transactions with this one (rule 10). This one
    /// has to [share](HomeNode::sharing_with) them with it, too.
    pub fn beside(&self, name: &str, id: HomeId) -> Self {
        let options = HomeOptions {
            others: vec![self.as_parent()],
            ..HomeOptions::new(name, id)
        };
        Self::start(&self.village, options)
    }

    async fn open(
        village: Authority,
        options: HomeOptions,
    ) -> (Self, impl Future<Output = ()> + use<>) {
        let identity = village.home_identity(&options.name, options.id);
        let hello = identity.greeting(u64::from(options.id.0));
        let node = hello.node;
        let mut net = net_config(NodeKind::Home);
        net.delay = LinkDelay::new(options.one_way);
        let own = options.address.clone();
        let address = own.unwrap_or_else(|| village.socket(&options.name));
        let listener = Listener::bind(&address, &identity, net).await.unwrap();
        let address = listener.address().clone();
        let verifier = identity.verifier();
        let mut config = DriverConfig::new(identity, hello);
        config.listeners.push(listener);
        let others = options.others.iter().cloned();
        config.parents = others.map(ParentConfig::on_demand).collect();
        let (driver, handle) = Driver::new(config);
        let disk = match &options.store {
            Some(dir) => Disk::in_directory(dir),
            None => Disk::in_memory(),
        };
        let (disk, lives) = (Arc::new(disk), Arc::<Lives>::default());
        let (start, starts) = mpsc::unbounded_channel();
        let mut config = HomeConfig::new(options.id, options.name.clone(), node);
        config.registrations_max = options.registrations_max;
        config.lease_ms = options.lease_ms;
        config.verifier = verifier;
        let others = options.others.iter();
        config.other_homes = others
            .filter_map(|other| other.expect_name.clone())
            .collect();
        let keeper = Keeper {
            driver,
            handle: handle.clone(),
            config,
            disk: Arc::clone(&disk),
            lives: Arc::clone(&lives),
            starts,
        };
        let node = Self {
            village,
            options,
            address,
            handle,
            disk,
            lives,
            start: Some(start),
            thread: None,
        };
        (node, keeper.keep())
    }

    /// The authority of its village.
    pub fn village(&self) -> &Authority {
        &self.village
    }

    /// The identity of the member `anna`, with which any program may join.
    pub fn identity(&self) -> Identity {
        self.village.member_identity()
    }

    /// A path in the village's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.village.path(name)
    }

    /// The home's name.
    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// The home's id.
    pub fn id(&self) -> HomeId {
        self.options.id
    }

    /// Where it listens: sites and members join there.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// How a site below it dials it: a node with another certificate is not taken for it.
    pub fn as_parent(&self) -> ParentConfig {
        ParentConfig::new(vec![self.address.clone()]).named(&*self.options.name)
    }

    /// A played link to it, for sites or for members. What is sent takes so long in each direction.
    ///
    /// # Panics
    ///
    /// As [`Link::set_delay`].
    pub fn link(&self, one_way: Duration) -> Link {
        Link::of(&self.village, self.as_parent(), one_way)
    }

    /// The way into its loop, for its counts and for what this type does not offer.
    pub fn handle(&self) -> &Handle<Home> {
        &self.handle
    }

    /// A site below it, called `valley`, with so much memory. It listens at the socket `site`.
    pub fn site(&self, cache_bytes: usize) -> SiteNode {
        self.site_below(&[], cache_bytes)
    }

    /// A site below it and other homes of its village.
    pub fn site_below(&self, others: &[&HomeNode], cache_bytes: usize) -> SiteNode {
        let others = others.iter().map(|other| other.as_parent());
        let parents = std::iter::once(self.as_parent()).chain(others);
        let address = self.village.socket("site");
        SiteNode::start(&self.village, &address, parents.collect(), cache_bytes)
    }

    /// The home is gone, with all connections, until [`HomeNode::restart`]. It has written all that it
    /// appended, unless its disk is lost.
    pub fn stop(&self) {
        self.handle.halt();
        eventually("the home stops", || self.lives.are_over());
    }

    /// A home that has stopped comes back with what was durable.
    pub fn restart(&self) {
        let begun = self.lives.begun();
        let start = self.start.as_ref().expect("it is open until the drop");
        start.send(()).unwrap();
        eventually("the home starts", || self.lives.begun() > begun);
    }

    /// The home's loop stands still for so long.
    pub fn stall(&self, time: Duration) {
        drop(self.handle.inspect(move |_: &Home| thread::sleep(time)));
    }

    /// In its next life the home's clock is this far ahead: it starts at what it has reserved.
    ///
    /// # Panics
    ///
    /// The home has not stopped. A running home could reserve less again.
    pub fn put_clock_ahead(&self, time: Duration) {
        assert!(self.lives.are_over(), "stop the home first");
        let wall = Millis(now().wall.0 + u64::try_from(time.as_millis()).unwrap());
        let old = self.disk.engine().get(Table::Meta, CLOCK_KEY).unwrap();
        assert!(old.is_some(), "the home reserves its clock under this key");
        let ceiling = Stamp::clock_of(wall);
        let batch = Batch {
            mark: Mark::default(),
            purpose: Purpose::Housekeeping,
            ops: vec![records::put(Table::Meta, CLOCK_KEY.to_vec(), &ceiling)],
        };
        self.disk.engine().commit(&[batch]).unwrap();
    }

    /// The home does not hear what becomes durable from now on, until [`HomeNode::release_disk`] or its next life.
    pub fn hold_disk(&self) {
        self.disk.hold();
    }

    /// As [`HomeNode::hold_disk`], and nothing is written any more: what the home appends is lost when it stops.
    pub fn lose_disk(&self) {
        self.disk.lose();
    }

    /// The home hears of all that became durable meanwhile.
    pub fn release_disk(&self) {
        self.disk.release(&self.handle);
    }

    /// Whether the disk is held and the home has appended something since.
    pub fn has_waiting(&self) -> bool {
        self.disk.has_waiting()
    }

    /// How many records of a kind the home has stored.
    pub fn records(&self, table: Table) -> usize {
        self.disk.records(table)
    }

    /// How many bytes of keys and values the home has written to its store so far.
    pub fn written_bytes(&self) -> u64 {
        self.disk.written_bytes()
    }

    /// The home's store has space from now on, or none.
    pub fn set_space(&self, has_space: bool) {
        self.handle
            .command(HomeCommand::Lacks((!has_space).then_some(Lack::OF_ALL)))
            .unwrap();
    }

    /// A size of one of the home's tables.
    pub fn size(&self, name: &'static str) -> usize {
        let sizes = self.handle.inspect(|home: &Home| home.sizes()).wait();
        let found = sizes.unwrap().into_iter().find(|(of, _)| *of == name);
        found.expect("the home has such a table").1
    }

    /// Waits until the home has no commit under way.
    pub fn eventually_quiet(&self) {
        eventually("the home is quiet", || self.size("pending") == 0);
    }
}

impl Drop for HomeNode {
    fn drop(&mut self) {
        self.start = None;
        self.handle.halt();
        if let Some(thread) = &mut self.thread {
            thread.join();
        }
    }
}

/// How many lives of a home have begun, and how many are over. At most one goes on.
#[derive(Default)]
struct Lives {
    begun: AtomicU32,
    over: AtomicU32,
}

impl Lives {
    fn begun(&self) -> u32 {
        self.begun.load(Ordering::SeqCst)
    }

    /// Whether the home has lived and does so no more.
    fn are_over(&self) -> bool {
        // A life counts as over before the next one begins.
        let over = self.over.load(Ordering::SeqCst);
        over > 0 && over == self.begun()
    }

    fn begin(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
    }

    fn end(&self) {
        self.over.fetch_add(1, Ordering::SeqCst);
    }
}

/// Runs the home's lives, one after the other.
struct Keeper {
    driver: Driver<Home>,
    handle: Handle<Home>,
    config: HomeConfig,
    disk: Arc<Disk>,
    lives: Arc<Lives>,
    starts: mpsc::UnboundedReceiver<()>,
}

impl Keeper {
    async fn keep(mut self) {
        loop {
            let mut first = Outbox::new();
            let opened = Home::open(self.config.clone(), self.disk.engine(), now(), &mut first);
            let mut home = opened.unwrap();
            let (begun, end_of_last) = home.life();
            self.config.history.lives.begin(begun, end_of_last);
            let mut world = HomeWorld::new(Arc::clone(&self.disk), self.handle.clone());
            self.lives.begin();
            let life = self.driver.run(&mut home, &mut world, first, pending());
            life.await;
            // What it wrote gets to the disk before the next life reads it.
            drop(world);
            self.config.history.mark = self.disk.written();
            self.config.history.random += 1;
            self.disk.forget();
            self.lives.end();
            if self.starts.recv().await.is_none() {
                return;
            }
            self.driver.forget_inputs();
        }
    }
}
