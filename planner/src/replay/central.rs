use super::pool::Pool;
use super::{Place, Policy, Traffic, Village};
use crate::evict::Evictor;

/// Centrally coordinated caching: a fixed part of each client's memory, and all of the servers', is managed by the home as one
/// LRU, into which goes what has to go from the home's own memory. All that a client does not have itself is asked of the home.
pub(super) struct Central {
    locals: Vec<Box<dyn Evictor>>,
    home: Box<dyn Evictor>,
    pool: Pool,
    traffic: Traffic,
}

impl Central {
    /// `shared` pages of each client's memory are the home's.
    pub(super) fn new(village: &Village, shared: usize) -> Self {
        let shared = shared.min(village.client_pages);
        let mut lent = village.pages_by_node();
        lent[..village.clients].fill(shared);
        Central {
            locals: village.locals(village.client_pages - shared),
            home: village.home(),
            pool: Pool::new(lent, village.footprint),
            traffic: village.traffic(),
        }
    }

    fn fetch(&mut self, page: u32) -> Place {
        self.traffic.home_asked += 1;
        if self.home.touch(page) {
            return Place::Home;
        }
        if let Some(host) = self.pool.touch(page) {
            self.traffic.loads[host] += 1;
            return Place::Remote(host);
        }
        if let Some(gone) = self.home.admit(page)
            && let Some(host) = self.pool.admit(gone)
        {
            self.traffic.forwarded += 1;
            self.traffic.loads[host] += 1;
        }
        Place::Disk
    }
}

impl Policy for Central {
    fn request(&mut self, client: usize, page: u32) -> Place {
        if self.locals[client].touch(page) {
            return Place::Local;
        }
        self.locals[client].admit(page);
        self.fetch(page)
    }

    fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    fn held(&self) -> Vec<usize> {
        let locals = self.locals.iter().map(|local| local.len());
        locals.chain([self.pool.len()]).collect()
    }
}
