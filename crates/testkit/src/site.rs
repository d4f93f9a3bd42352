//! A site's redirector in the test's process.

use std::future::pending;
use std::time::Duration;

use thorp_model::{NameId, Outbox};
use thorp_net::driver::{Driver, DriverConfig, Handle, NoWorld, ParentConfig, net_config};
use thorp_net::{Address, Listener, NodeRole};
use thorp_protocol::{Redirector, RedirectorConfig};

use crate::authority::Authority;
use crate::link::Link;
use crate::running::Thread;

/// A site's redirector that runs in the test's process, until it is dropped.
pub struct SiteNode {
    name: String,
    address: Address,
    handle: Handle<Redirector>,
    thread: Option<Thread>,
    /// Its socket is in the village's directory.
    village: Authority,
}

impl SiteNode {
    /// Starts a site called `valley` on a thread of its own. It is at an address, below some homes or sites, and has so
    /// much memory. As a real site it has an id and an identity of its own.
    pub fn start(
        village: &Authority,
        address: &Address,
        parents: Vec<ParentConfig>,
        cache_bytes: usize,
    ) -> Self {
        Self::start_called(village, (NAME, None), address, parents, cache_bytes)
    }

    /// As [`SiteNode::start`], with another name, and perhaps with a log that the member of the second name keeps.
    pub(crate) fn start_called(
        village: &Authority,
        (name, keeper): (&str, Option<&str>),
        address: &Address,
        parents: Vec<ParentConfig>,
        cache_bytes: usize,
    ) -> Self {
        let (village, name, address) = (village.clone(), name.to_owned(), address.clone());
        let keeper = keeper.map(NameId::of);
        let (mut node, thread) = Thread::start(move || {
            Self::open(village, (name, keeper), address, parents, cache_bytes)
        });
        node.thread = Some(thread);
        node
    }

    /// As [`SiteNode::start`], in the runtime of the test.
    pub async fn start_here(
        village: &Authority,
        address: &Address,
        parents: Vec<ParentConfig>,
        cache_bytes: usize,
    ) -> Self {
        let (village, name, address) = (village.clone(), NAME.to_owned(), address.clone());
        let (node, work) = Self::open(village, (name, None), address, parents, cache_bytes).await;
        tokio::spawn(work);
        node
    }

    async fn open(
        village: Authority,
        (name, log_keeper): (String, Option<NameId>),
        address: Address,
        parents: Vec<ParentConfig>,
        cache_bytes: usize,
    ) -> (Self, impl Future<Output = ()> + use<>) {
        let identity = village.identity_of(NodeRole::Site, &name);
        let hello = identity.greeting(village.fresh_id());
        let node = hello.node;
        let listener = Listener::bind(&address, &identity, net_config(hello.kind)).await;
        let listener = listener.unwrap();
        let address = listener.address().clone();
        let mut config = DriverConfig::new(identity, hello);
        config.listeners.push(listener);
        config.parents = parents;
        let (mut driver, handle) = Driver::new(config);
        let mut config = RedirectorConfig::new(node, name.clone());
        config.cache_bytes = cache_bytes;
        config.log_keeper = log_keeper;
        let mut site = Redirector::new(config);
        let work = async move {
            let first = Outbox::new();
            driver.run(&mut site, &mut NoWorld, first, pending()).await;
        };
        let node = Self {
            name,
            address,
            handle,
            thread: None,
            village,
        };
        (node, work)
    }

    /// Where it listens: members join there.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// A played link to it, for members or for sites below it. What is sent takes so long in each direction.
    ///
    /// # Panics
    ///
    /// As [`Link::set_delay`].
    pub fn link(&self, one_way: Duration) -> Link {
        let to = ParentConfig::new(vec![self.address.clone()]).named(&*self.name);
        Link::of(&self.village, to, one_way)
    }

    /// The way into its loop, for its counts and sizes.
    pub fn handle(&self) -> &Handle<Redirector> {
        &self.handle
    }
}

impl Drop for SiteNode {
    fn drop(&mut self) {
        self.handle.halt();
        if let Some(thread) = &mut self.thread {
            thread.join();
        }
    }
}

/// The name of every site that gets no other.
const NAME: &str = "valley";
