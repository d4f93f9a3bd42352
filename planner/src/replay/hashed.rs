use super::pool::Spread;
use super::{Place, Policy, Traffic, Village};
use crate::evict::{self, Evictor};

/// Hash-distributed caching: as centrally coordinated, but each node manages the part of the pages that their numbers give to
/// it. Clients ask there first, so that the home is asked only for what nobody has.
pub(super) struct Hashed {
    locals: Vec<Box<dyn Evictor>>,
    home: Box<dyn Evictor>,
    parts: Vec<Box<dyn Evictor>>,
    spread: Spread,
    traffic: Traffic,
}

impl Hashed {
    /// `shared` pages of each client's memory are for all.
    pub(super) fn new(village: &Village, shared: usize) -> Self {
        let shared = shared.min(village.client_pages);
        let mut lent = village.pages_by_node();
        lent[..village.clients].fill(shared);
        let part = |&pages: &usize| evict::Kind::Lru.memory(pages, village.footprint);
        Hashed {
            locals: village.locals(village.client_pages - shared),
            home: village.home(),
            parts: lent.iter().map(part).collect(),
            spread: Spread::new(lent, village.seed),
            traffic: village.traffic(),
        }
    }

    fn fetch(&mut self, page: u32) -> Place {
        if let Some(node) = self.spread.node(page)
            && self.parts[node].touch(page)
        {
            self.traffic.loads[node] += 1;
            return Place::Remote(node);
        }
        self.traffic.home_asked += 1;
        if self.home.touch(page) {
            return Place::Home;
        }
        if let Some(gone) = self.home.admit(page)
            && let Some(node) = self.spread.node(gone)
        {
            self.parts[node].admit(gone);
            self.traffic.forwarded += 1;
            self.traffic.loads[node] += 1;
        }
        Place::Disk
    }
}

impl Policy for Hashed {
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
        let parts = self.parts.iter().map(|part| part.len());
        let locals = self.locals.iter().map(|local| local.len());
        let both = locals.chain(std::iter::repeat(0));
        parts.zip(both).map(|(part, local)| part + local).collect()
    }
}
