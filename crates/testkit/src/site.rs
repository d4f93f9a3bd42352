//! A site's redirector in the test's process.

use std::future::pending;

use thorp_model::Outbox;
use thorp_net::driver::{Driver, DriverConfig, Handle, NoWorld, ParentConfig, net_config};
use thorp_net::{Address, Listener, NodeRole};
use thorp_protocol::{Redirector, RedirectorConfig};

use crate::running::Thread;
use crate::village::Village;

/// The name of every site.
const NAME: &str = "valley";

/// A redirector that runs in the test's process, until it is dropped.
pub struct SiteNode {
    address: Address,
    handle: Handle<Redirector>,
    thread: Option<Thread>,
    /// Its socket is in the village's directory.
    _village: Village,
}

impl SiteNode {
    /// Starts a site called `valley` on a thread of its own. It is at an address, below some homes or sites, and has so
    /// much memory. As a real site it has an id and an identity of its own.
    pub fn start(
        village: &Village,
        address: &Address,
        parents: Vec<ParentConfig>,
        cache_bytes: usize,
    ) -> Self {
        let (village, address) = (village.clone(), address.clone());
        let (mut node, thread) =
            Thread::start(move || Self::open(village, address, parents, cache_bytes));
        node.thread = Some(thread);
        node
    }

    /// As [`SiteNode::start`], in the runtime of the test.
    pub async fn start_here(
        village: &Village,
        address: &Address,
        parents: Vec<ParentConfig>,
        cache_bytes: usize,
    ) -> Self {
        let opened = Self::open(village.clone(), address.clone(), parents, cache_bytes);
        let (node, work) = opened.await;
        tokio::spawn(work);
        node
    }

    async fn open(
        village: Village,
        address: Address,
        parents: Vec<ParentConfig>,
        cache_bytes: usize,
    ) -> (Self, impl Future<Output = ()> + use<>) {
        let identity = village.identity_of(NodeRole::Site, NAME);
        let hello = identity.greeting(village.fresh_id());
        let node = hello.node;
        let listener = Listener::bind(&address, &identity, net_config(hello.kind)).await;
        let listener = listener.unwrap();
        let address = listener.address().clone();
        let mut config = DriverConfig::new(identity, hello);
        config.listeners.push(listener);
        config.parents = parents;
        let (mut driver, handle) = Driver::new(config);
        let mut config = RedirectorConfig::new(node, NAME.to_owned());
        config.cache_bytes = cache_bytes;
        let mut site = Redirector::new(config);
        let work = async move {
            let first = Outbox::new();
            driver.run(&mut site, &mut NoWorld, first, pending()).await;
        };
        let node = Self {
            address,
            handle,
            thread: None,
            _village: village,
        };
        (node, work)
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
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
