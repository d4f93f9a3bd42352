use super::copies::{Copies, Copy};
use super::{Place, Policy, Traffic, Village};
use crate::evict::Evictor;
use fastrand::Rng;

/// Greedy forwarding: the home knows who has what, and sends a request that it cannot answer on to a client that can. Each
/// client keeps what it likes; memory servers, which ask for nothing, stay empty.
pub(super) struct Greedy {
    locals: Vec<Box<dyn Evictor>>,
    home: Box<dyn Evictor>,
    copies: Copies,
    random: Rng,
    traffic: Traffic,
}

impl Greedy {
    pub(super) fn new(village: &Village) -> Self {
        Greedy {
            locals: village.locals(village.client_pages),
            home: village.home(),
            copies: Copies::new(village.footprint),
            random: Rng::with_seed(village.seed),
            traffic: village.traffic(),
        }
    }

    fn fetch(&mut self, page: u32) -> Place {
        self.traffic.home_asked += 1;
        if self.home.touch(page) {
            return Place::Home;
        }
        if let Some(holder) = self.copies.any_holder(page, &mut self.random) {
            self.traffic.loads[holder] += 1;
            return Place::Remote(holder);
        }
        self.home.admit(page);
        Place::Disk
    }
}

impl Policy for Greedy {
    fn request(&mut self, client: usize, page: u32) -> Place {
        if self.locals[client].touch(page) {
            return Place::Local;
        }
        let place = self.fetch(page);
        self.copies.add(
            page,
            Copy {
                node: client as u16,
                used: 0,
                mark: 0,
            },
        );
        if let Some(gone) = self.locals[client].admit(page) {
            self.copies.remove(gone, client);
        }
        place
    }

    fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    fn held(&self) -> Vec<usize> {
        self.locals.iter().map(|local| local.len()).collect()
    }
}
