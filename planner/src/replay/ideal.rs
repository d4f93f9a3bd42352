use super::{Place, Policy, Traffic, Village};
use crate::evict::{Evictor, Order};

/// What cannot be had, to compare with what goes by age, though no bound, for another order than LRU may keep more: all memory together is one LRU that holds nothing twice, and yet each client
/// finds in its own what it would alone.
pub(super) struct Ideal {
    locals: Vec<Box<dyn Evictor>>,
    all: Order,
    capacity: usize,
    traffic: Traffic,
}

impl Ideal {
    pub(super) fn new(village: &Village) -> Self {
        Ideal {
            locals: village.locals(village.client_pages),
            all: Order::new(village.footprint),
            capacity: village.pages_by_node().iter().sum::<usize>() + village.home_pages,
            traffic: village.traffic(),
        }
    }

    fn is_somewhere(&mut self, page: u32) -> bool {
        if self.all.holds(page) {
            self.all.renew(page);
            return true;
        }
        if self.all.len() >= self.capacity {
            self.all.pop_oldest();
        }
        self.all.push(page);
        false
    }
}

impl Policy for Ideal {
    fn request(&mut self, client: usize, page: u32) -> Place {
        let is_local = self.locals[client].request(page);
        match self.is_somewhere(page) {
            _ if is_local => Place::Local,
            // It is not said where.
            true => Place::Remote(self.locals.len()),
            false => Place::Disk,
        }
    }

    fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    fn held(&self) -> Vec<usize> {
        vec![self.all.len()]
    }
}
