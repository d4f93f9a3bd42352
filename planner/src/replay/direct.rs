use super::pool::Spread;
use super::{Place, Policy, Traffic, Village};
use crate::evict::{self, Evictor};

/// Direct client cooperation: the memory servers give each client the same part of their memory, for nobody else, and it keeps
/// there what has to go from its own. What one client keeps is of no use to another.
pub(super) struct Direct {
    locals: Vec<Box<dyn Evictor>>,
    lent: Vec<Box<dyn Evictor>>,
    home: Box<dyn Evictor>,
    spread: Spread,
    traffic: Traffic,
}

impl Direct {
    pub(super) fn new(village: &Village) -> Self {
        let pages: usize = village.servers.iter().map(|server| server.pages).sum();
        let part = |client| (pages + client) / village.clients;
        let lent = |client| evict::Kind::Lru.memory(part(client), village.footprint);
        let clients = vec![0; village.clients];
        let servers = village.servers.iter().map(|server| server.pages);
        Direct {
            locals: village.locals(village.client_pages),
            lent: (0..village.clients).map(lent).collect(),
            home: village.home(),
            spread: Spread::new(clients.into_iter().chain(servers), village.seed),
            traffic: village.traffic(),
        }
    }

    fn fetch(&mut self, client: usize, page: u32) -> Place {
        if self.lent[client].remove(page)
            && let Some(server) = self.spread.node(page)
        {
            self.traffic.loads[server] += 1;
            return Place::Remote(server);
        }
        self.traffic.home_asked += 1;
        match self.home.request(page) {
            true => Place::Home,
            false => Place::Disk,
        }
    }

    fn put(&mut self, client: usize, page: u32) {
        if let Some(server) = self.spread.node(page)
            && self.lent[client].admit(page) != Some(page)
        {
            self.traffic.forwarded += 1;
            self.traffic.loads[server] += 1;
        }
    }
}

impl Policy for Direct {
    fn request(&mut self, client: usize, page: u32) -> Place {
        if self.locals[client].touch(page) {
            return Place::Local;
        }
        let place = self.fetch(client, page);
        if let Some(gone) = self.locals[client].admit(page) {
            self.put(client, gone);
        }
        place
    }

    fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    fn held(&self) -> Vec<usize> {
        let lent = self.lent.iter().map(|lent| lent.len()).sum();
        let locals = self.locals.iter().map(|local| local.len());
        locals.chain([lent]).collect()
    }
}
