use super::copies::{Copy, Filed, Shelves};
use super::{Place, Policy, Times, Traffic, Village};
use fastrand::Rng;
use std::collections::BTreeSet;

/// Weighted LRU: the copy goes whose loss costs least, for how long it was not used. The loss of a copy of which there are others
/// costs a way to them, that of the last one the disk; and who did not use a copy for a time is taken to need it after as long
/// again. The last copy of a page that has to go is sent to where something of less value goes for it, if there is such a thing:
/// the policy knows all memories at any time, so that it cannot be built; but it is no bound.
pub(super) struct Weighted {
    times: Times,
    filed: Filed<Nodes>,
    home: usize,
    now: u32,
    random: Rng,
    traffic: Traffic,
}

/// What a client or server holds, each kind from what was not used for longest: when it was used, and which page.
struct Node {
    room: usize,
    kinds: [BTreeSet<(u32, u32)>; 3],
}

/// Of a page that others have, too.
const DUPLICATE: usize = 0;
/// The last copy, where it was used.
const OWN: usize = 1;
/// The last copy, where it was sent to.
const LENT: usize = 2;

impl Weighted {
    pub(super) fn new(village: &Village) -> Self {
        let node = |room| Node {
            room,
            kinds: Default::default(),
        };
        let nodes = village.pages_with_home().into_iter().map(node).collect();
        Weighted {
            times: village.times,
            filed: Filed::new(village.footprint, Nodes(nodes)),
            home: village.nodes(),
            now: 0,
            random: Rng::with_seed(village.seed),
            traffic: village.traffic(),
        }
    }

    fn fetch(&mut self, page: u32) -> Place {
        match self.filed.copies.any_holder(page, &mut self.random) {
            Some(node) => {
                self.count(node);
                if node == self.home {
                    Place::Home
                } else {
                    Place::Remote(node)
                }
            }
            None => {
                self.traffic.home_asked += 1;
                Place::Disk
            }
        }
    }

    fn count(&mut self, node: usize) {
        match self.traffic.loads.get_mut(node) {
            Some(load) => *load += 1,
            None => self.traffic.home_asked += 1,
        }
    }

    /// Lets go of what a node can best do without, and keeps it elsewhere if that is better.
    fn make_room(&mut self, node: usize) {
        let Some((_, page)) = self.least(node) else {
            return;
        };
        let is_last = self.filed.copies.of(page).len() == 1;
        let Some(copy) = self.filed.remove(page, node) else {
            return;
        };
        if !is_last {
            return;
        }
        let others = (0..self.filed.shelves.0.len())
            .filter(|&other| other != node && self.filed.shelves.0[other].room > 0);
        let values = others.map(|other| (self.least_value(other), other));
        let Some((value, best)) = values.min_by(|a, b| a.0.total_cmp(&b.0)) else {
            return;
        };
        if value < self.value(LENT, copy.used) {
            self.put(page, copy, best);
        }
    }

    fn put(&mut self, page: u32, copy: Copy, node: usize) {
        if self.filed.shelves.0[node].len() >= self.filed.shelves.0[node].room
            && let Some((_, gone)) = self.least(node)
        {
            self.filed.remove(gone, node);
        }
        self.filed.add(
            page,
            Copy {
                node: node as u16,
                mark: LENT as u8,
                ..copy
            },
        );
        self.traffic.forwarded += 1;
        self.count(node);
    }

    /// What would go from a node if it had to take in another page, by value.
    fn least_value(&self, node: usize) -> f64 {
        match self.least(node) {
            Some((value, _))
                if self.filed.shelves.0[node].len() >= self.filed.shelves.0[node].room =>
            {
                value
            }
            _ => 0.0,
        }
    }

    fn least(&self, node: usize) -> Option<(f64, u32)> {
        let kinds = self.filed.shelves.0[node].kinds.iter().enumerate();
        let oldest = kinds.filter_map(|(kind, pages)| {
            let &(used, page) = pages.first()?;
            Some((self.value(kind, used), page))
        });
        oldest.min_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// What the loss of a copy costs, for each request until it is thought to be needed.
    fn value(&self, kind: usize, used: u32) -> f64 {
        let Times {
            local_ms,
            remote_ms,
            disk_ms,
            ..
        } = self.times;
        let cost = match kind {
            DUPLICATE => remote_ms - local_ms,
            OWN => disk_ms - local_ms,
            _ => disk_ms - remote_ms,
        };
        cost / f64::from(self.now - used).max(1.0)
    }
}

struct Nodes(Vec<Node>);

impl Shelves for Nodes {
    fn put(&mut self, page: u32, copy: Copy, is_last: bool) {
        self.shelf(copy, is_last).insert((copy.used, page));
    }

    fn take(&mut self, page: u32, copy: Copy, is_last: bool) {
        self.shelf(copy, is_last).remove(&(copy.used, page));
    }
}

impl Nodes {
    fn shelf(&mut self, copy: Copy, is_last: bool) -> &mut BTreeSet<(u32, u32)> {
        let kind = if is_last {
            usize::from(copy.mark)
        } else {
            DUPLICATE
        };
        &mut self.0[usize::from(copy.node)].kinds[kind]
    }
}

impl Node {
    fn len(&self) -> usize {
        self.kinds.iter().map(BTreeSet::len).sum()
    }
}

impl Policy for Weighted {
    fn request(&mut self, client: usize, page: u32) -> Place {
        self.now += 1;
        let copy = Copy {
            node: client as u16,
            used: self.now,
            mark: OWN as u8,
        };
        if self.filed.renew(page, copy) {
            return Place::Local;
        }
        let place = self.fetch(page);
        if self.filed.shelves.0[client].len() >= self.filed.shelves.0[client].room {
            self.make_room(client);
        }
        self.filed.add(page, copy);
        place
    }

    fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    fn held(&self) -> Vec<usize> {
        self.filed.shelves.0.iter().map(Node::len).collect()
    }
}
