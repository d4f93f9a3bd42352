//! What policies take in memory, so that none is tried that cannot be had.

use super::copies::{Copies, Copy};
use super::{Kind, Village};
use crate::{Invalid, evict};

/// What a policy takes when all memories are full, at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bytes {
    pub(super) each_client: u64,
    pub(super) servers: u64,
    pub(super) rest: u64,
}

impl Bytes {
    /// Where members of central and hashed caching have so many pages for all.
    pub(super) fn of(kind: Kind, village: &Village, shared: usize) -> Self {
        let own = village.client_pages;
        let shared = shared.min(own);
        let parts = Parts(village);
        let home = parts.lru(village.home_pages);
        let lent: usize = village.servers.iter().map(|server| server.pages).sum();
        let by_age = |local: u64| Bytes {
            each_client: local + parts.ranked(own),
            servers: parts.of_servers(|pages| parts.ranked(pages)),
            rest: parts.copies() + parts.ranked(village.home_pages),
        };
        match kind {
            Kind::Alone => Bytes {
                each_client: parts.local(own),
                servers: 0,
                rest: home,
            },
            Kind::Direct => Bytes {
                each_client: parts.local(own) + parts.lru(lent.div_ceil(village.clients.max(1))),
                servers: 0,
                rest: home,
            },
            Kind::Greedy => Bytes {
                each_client: parts.local(own) + parts.held(own, COPY_BYTES),
                servers: 0,
                rest: home + parts.copies(),
            },
            Kind::Central => Bytes {
                each_client: parts.local(own - shared),
                servers: 0,
                rest: home + parts.pool(lent.saturating_add(shared * village.clients)),
            },
            Kind::NChance => Bytes {
                each_client: parts.local(own) + parts.ranked(own),
                servers: parts.of_servers(|pages| parts.lru(pages) + parts.ranked(pages)),
                rest: home + parts.copies(),
            },
            Kind::Hashed => Bytes {
                each_client: parts.local(own - shared) + parts.lru(shared),
                servers: parts.of_servers(|pages| parts.lru(pages)),
                rest: home,
            },
            Kind::Weighted => by_age(0),
            Kind::Gms | Kind::Balanced => by_age(parts.local(own)),
            Kind::GlobalLru => by_age(parts.lru(own)),
            Kind::Ideal => Bytes {
                each_client: parts.local(own),
                servers: 0,
                rest: parts.lru(village.pages_with_home().iter().sum()),
            },
        }
    }

    fn of_clients(&self, clients: usize) -> u64 {
        self.each_client.saturating_mul(clients as u64)
    }

    /// All of it.
    pub(super) fn all(&self, clients: usize) -> u64 {
        self.of_clients(clients)
            .saturating_add(self.servers)
            .saturating_add(self.rest)
    }

    /// Refuses what is more than anybody should have to give for a replay.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with whoever takes most of it.
    pub(super) fn check(&self, kind: Kind, village: &Village) -> Result<(), Invalid> {
        let (clients, servers) = (village.clients, village.servers.len());
        let all = self.all(clients);
        if all <= BYTES_MOST {
            return Ok(());
        }
        let takes = format!(
            "{kind} takes {:.1} GiB with {} pages asked for and {} for what members let go of, and {} GiB are the most",
            all as f64 / GIB as f64,
            village.footprint,
            village.local,
            BYTES_MOST / GIB
        );
        let (parameter, told, others, each) = match self.servers > self.of_clients(clients) {
            true => (
                "servers",
                servers,
                self.of_clients(clients),
                self.servers / servers.max(1) as u64,
            ),
            false => ("clients", clients, self.servers, self.each_client),
        };
        let left = BYTES_MOST.saturating_sub(others.saturating_add(self.rest));
        Err(Invalid::new(
            parameter,
            match left / each.max(1) {
                0 => format!("cannot have so much memory: {takes}"),
                most => format!("must be at most {most} here, not {told}: {takes}"),
            },
        ))
    }
}

/// What is in a village, and its size.
struct Parts<'a>(&'a Village);

impl Parts<'_> {
    fn local(&self, pages: usize) -> u64 {
        self.0.local.bytes(pages, self.0.footprint)
    }

    fn lru(&self, pages: usize) -> u64 {
        evict::Kind::Lru.bytes(pages, self.0.footprint)
    }

    /// All memory that one LRU manages, with who has which page.
    fn pool(&self, pages: usize) -> u64 {
        self.lru(pages) + (self.0.footprint * size_of::<u16>()) as u64
    }

    fn held(&self, pages: usize, each_bytes: usize) -> u64 {
        (pages.min(self.0.footprint) * each_bytes) as u64
    }

    /// Pages of one node in an order, of which each is a copy.
    fn ranked(&self, pages: usize) -> u64 {
        self.held(pages, COPY_BYTES + RANKED_BYTES)
    }

    fn copies(&self) -> u64 {
        (self.0.footprint * Copies::PAGE_BYTES) as u64
    }

    fn of_servers(&self, bytes: impl Fn(usize) -> u64) -> u64 {
        let servers = self.0.servers.iter().map(|server| bytes(server.pages));
        servers.fold(0, u64::saturating_add)
    }
}

/// A copy in the list of its page: lists grow by doubling.
const COPY_BYTES: usize = 2 * size_of::<Copy>();

/// A time and a page in a tree whose nodes are half full, with the nodes above.
const RANKED_BYTES: usize = 3 * size_of::<(u32, u32)>();

const GIB: u64 = 1 << 30;
/// More is refused.
const BYTES_MOST: u64 = 8 * GIB;
