use super::copies::{Copy, Filed, Shelves};
use super::{Place, Policy, Traffic, Village};
use crate::evict::{self, Evictor};
use fastrand::Rng;
use std::collections::BTreeSet;

/// N-chance forwarding: greedy forwarding, but the last copy of a page (a *singlet*) that has to go from one memory is sent to
/// another, drawn from all, so many times; if somebody uses it where it is, it is an ordinary page again.
///
/// Who takes in a page that is sent around makes room without sending anything on, so that one page never pushes a whole row of
/// them (Dahlin and others, 1994): the copy goes that was not used for longest among those of which there are others, or else
/// the one among those that are sent around which has the fewest chances left; this may be the one that just came.
pub(super) struct NChance {
    chances: u8,
    memories: Vec<Box<dyn Evictor>>,
    room: Vec<usize>,
    home: Box<dyn Evictor>,
    filed: Filed<ByNode>,
    now: u32,
    random: Rng,
    traffic: Traffic,
}

impl NChance {
    pub(super) fn new(village: &Village, chances: u8) -> Self {
        let server =
            |server: &super::Server| evict::Kind::Lru.memory(server.pages, village.footprint);
        let mut memories = village.locals(village.client_pages);
        memories.extend(village.servers.iter().map(server));
        NChance {
            chances,
            memories,
            room: village.pages_by_node(),
            home: village.home(),
            filed: Filed::new(village.footprint, ByNode::new(village.nodes())),
            now: 0,
            random: Rng::with_seed(village.seed),
            traffic: village.traffic(),
        }
    }

    fn fetch(&mut self, page: u32) -> Place {
        self.traffic.home_asked += 1;
        if self.home.touch(page) {
            return Place::Home;
        }
        if let Some(holder) = self.filed.copies.any_holder(page, &mut self.random) {
            self.traffic.loads[holder] += 1;
            return Place::Remote(holder);
        }
        self.home.admit(page);
        Place::Disk
    }

    /// A page had to go from a node.
    fn send_around(&mut self, page: u32, from: usize) {
        let Some(copy) = self.filed.remove(page, from) else {
            return;
        };
        let is_last = self.filed.copies.of(page).is_empty();
        let chances = match copy.mark {
            ORDINARY => self.chances,
            left => left - 1,
        };
        let others = self.memories.len() - 1;
        if is_last && chances > 0 && others > 0 {
            let drawn = self.random.usize(..others);
            self.receive(page, chances, if drawn < from { drawn } else { drawn + 1 });
        }
    }

    fn receive(&mut self, page: u32, chances: u8, node: usize) {
        self.traffic.forwarded += 1;
        self.traffic.loads[node] += 1;
        if self.memories[node].len() >= self.room[node] {
            let Some(gone) = self.filed.shelves.least(node, chances) else {
                return;
            };
            self.memories[node].remove(gone);
            self.filed.remove(gone, node);
        }
        let copy = self.copy(node, chances);
        self.filed.add(page, copy);
        if let Some(gone) = self.memories[node].admit(page) {
            self.filed.remove(gone, node);
        }
    }

    /// A copy at a node, used now.
    fn copy(&self, node: usize, mark: u8) -> Copy {
        Copy {
            node: node as u16,
            used: self.now,
            mark,
        }
    }
}

/// What can go to make room for what is sent around.
struct ByNode {
    /// For each node its copies of pages that others have, too: when it was used, and which page.
    duplicates: Vec<BTreeSet<(u32, u32)>>,
    /// For each node the singlets that were sent to it and not used since: chances left, when it was used, and which page.
    circling: Vec<BTreeSet<(u8, u32, u32)>>,
}

impl ByNode {
    fn new(nodes: usize) -> Self {
        ByNode {
            duplicates: vec![BTreeSet::new(); nodes],
            circling: vec![BTreeSet::new(); nodes],
        }
    }

    /// What a node can best do without; `None` if that is a page with so many chances left that just came.
    fn least(&self, node: usize, chances: u8) -> Option<u32> {
        let duplicate = self.duplicates[node].first().map(|&(_, page)| page);
        let circling = self.circling[node]
            .first()
            .filter(|(left, ..)| *left <= chances);
        duplicate.or(circling.map(|&(_, _, page)| page))
    }
}

impl Shelves for ByNode {
    fn put(&mut self, page: u32, copy: Copy, is_last: bool) {
        let node = usize::from(copy.node);
        if !is_last {
            self.duplicates[node].insert((copy.used, page));
        } else if copy.mark != ORDINARY {
            self.circling[node].insert((copy.mark, copy.used, page));
        }
    }

    fn take(&mut self, page: u32, copy: Copy, is_last: bool) {
        let node = usize::from(copy.node);
        if !is_last {
            self.duplicates[node].remove(&(copy.used, page));
        } else if copy.mark != ORDINARY {
            self.circling[node].remove(&(copy.mark, copy.used, page));
        }
    }
}

impl Policy for NChance {
    fn request(&mut self, client: usize, page: u32) -> Place {
        self.now += 1;
        if self.memories[client].touch(page) {
            let copy = self.copy(client, ORDINARY);
            self.filed.renew(page, copy);
            return Place::Local;
        }
        let place = self.fetch(page);
        let copy = self.copy(client, ORDINARY);
        self.filed.add(page, copy);
        if let Some(gone) = self.memories[client].admit(page) {
            self.send_around(gone, client);
        }
        place
    }

    fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    fn held(&self) -> Vec<usize> {
        self.memories.iter().map(|memory| memory.len()).collect()
    }
}

/// The mark of a copy that is not sent around; others have the chances that are left.
const ORDINARY: u8 = 0;
