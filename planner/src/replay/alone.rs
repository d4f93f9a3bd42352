use super::{Place, Policy, Traffic, Village};
use crate::evict::Evictor;

/// No cooperation: each client has its own memory, and all have the home's behind it.
pub(super) struct Alone {
    locals: Vec<Box<dyn Evictor>>,
    home: Box<dyn Evictor>,
    traffic: Traffic,
}

impl Alone {
    pub(super) fn new(village: &Village) -> Self {
        Alone {
            locals: village.locals(village.client_pages),
            home: village.home(),
            traffic: village.traffic(),
        }
    }
}

impl Policy for Alone {
    fn request(&mut self, client: usize, page: u32) -> Place {
        if self.locals[client].touch(page) {
            return Place::Local;
        }
        self.locals[client].admit(page);
        self.traffic.home_asked += 1;
        match self.home.request(page) {
            true => Place::Home,
            false => Place::Disk,
        }
    }

    fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    fn held(&self) -> Vec<usize> {
        self.locals.iter().map(|local| local.len()).collect()
    }
}
