//! Global longest forward distance as a replacement policy, and the theorem about it (section 4.2.3).
//!
//! The theorem counts what references cost, each on demand: nothing is prefetched, nothing overlaps. Nodes hold pages for each
//! other, so that a node that is referencing nothing is a memory server. A page is in one place at a time: a node that refers to a
//! page of another's memory takes it from there.
//!
//! GLFD is as its definition says: a page that comes from another node is exchanged for one that goes there, also while there is
//! room, and a page that was sent is held for another until the node that holds it refers to it itself. The definition speaks of
//! full memories; here a free frame is the page in the cluster that is needed last, one of the node's own before others'.

use crate::Invalid;
use serde::Serialize;
use std::collections::BTreeMap;

/// Nodes with memory, and what references cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nodes {
    /// Pages that fit into the memory of each.
    pub frames: Vec<u32>,
    /// A reference to local memory (*F_L*). All costs are in the same unit, whichever.
    pub local_cost: f64,
    /// What one to another node's memory costs more (*F_G*).
    pub global_cost: f64,
    /// What one to disk costs more (*F_D*).
    pub disk_cost: f64,
}

/// One reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reference {
    /// By which node.
    pub node: usize,
    /// To which page.
    pub page: usize,
}

/// References by where their page was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Served {
    /// In the node's own memory.
    pub local: u64,
    /// In another node's (*O_G*).
    pub global: u64,
    /// On disk (*O_D*).
    pub disk: u64,
}

impl Nodes {
    /// The total memory access cost: *|R| F_L + O_G F_G + O_D F_D*.
    pub fn cost(&self, served: &Served) -> f64 {
        let references = served.local + served.global + served.disk;
        references as f64 * self.local_cost
            + served.global as f64 * self.global_cost
            + served.disk as f64 * self.disk_cost
    }

    /// The theorem's factor: *1 + 3 F_G/F_D*.
    pub fn factor(&self) -> f64 {
        1.0 + 3.0 * self.global_cost / self.disk_cost
    }

    /// What GLFD makes of references, from empty memories.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if a parameter cannot be.
    pub fn glfd(&self, references: &[Reference]) -> Result<Served, Invalid> {
        self.check(references)?;
        let mut run = Glfd::new(self, references);
        (0..references.len()).for_each(|position| run.refer(position));
        Ok(run.served)
    }

    /// What the offline optimum makes of them: the least cost over all choices of what is replaced, where each fault moves the
    /// faulted page in, and may move one page from that node to another or to disk, and one from there to disk, whether there is
    /// need of room by now or not. So a page can be sent ahead to the node that will want it. It tries all of them: for a handful
    /// of pages. Dropping more than what has to make room is not tried, for whatever can be done without a page can be done with it.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if a parameter cannot be, or is too large for trying everything.
    pub fn optimum(&self, references: &[Reference]) -> Result<Served, Invalid> {
        self.check(references)?;
        let pages = page_count(references);
        if (self.frames.len() as f64 + 1.0).powi(pages as i32) > 1e6 {
            let why = "must be few for the exhaustive optimum";
            return Err(Invalid::new("pages", why));
        }
        let mut reached = BTreeMap::from([(vec![DISK; pages], Served::default())]);
        for &reference in references {
            let mut next = BTreeMap::new();
            for (places, served) in reached {
                self.try_all(&places, served, reference, &mut next);
            }
            reached = next;
        }
        let cheapest = reached
            .into_values()
            .min_by(|a, b| self.cost(a).total_cmp(&self.cost(b)));
        Ok(cheapest.unwrap_or_default())
    }

    fn check(&self, references: &[Reference]) -> Result<(), Invalid> {
        crate::at_least("local_cost", self.local_cost, 0.0)?;
        crate::at_least("global_cost", self.global_cost, self.local_cost)?;
        crate::at_least("disk_cost", self.disk_cost, self.global_cost)?;
        crate::positive("disk_cost", self.disk_cost)?;
        let has_memory = |reference: &Reference| {
            self.frames
                .get(reference.node)
                .is_some_and(|&frames| frames > 0)
        };
        if !references.iter().all(has_memory) {
            let why = "must be above 0 for each node that references";
            return Err(Invalid::new("frames", why));
        }
        Ok(())
    }

    fn has_room(&self, places: &[usize], node: usize) -> bool {
        let held = places.iter().filter(|&&place| place == node).count();
        held < self.frames[node] as usize
    }

    fn try_all(&self, places: &[usize], served: Served, reference: Reference, next: &mut Reached) {
        let Reference { node, page } = reference;
        let from = places[page];
        let mut served = served;
        match from {
            _ if from == node => served.local += 1,
            DISK => served.disk += 1,
            _ => served.global += 1,
        }
        let mut add = |places: Vec<usize>| {
            let known = next.entry(places).or_insert(served);
            if self.cost(&served) < self.cost(known) {
                *known = served;
            }
        };
        let mut moved = places.to_vec();
        moved[page] = node;
        if from == node || self.has_room(places, node) {
            add(moved.clone());
        }
        if from == node {
            return;
        }
        let held_by = |place| (0..places.len()).filter(move |&held| places[held] == place);
        for sent in held_by(node) {
            let to = |place: usize| {
                let mut places = moved.clone();
                places[sent] = place;
                places
            };
            add(to(DISK));
            for other in (0..self.frames.len()).filter(|&other| other != node) {
                if other == from || self.has_room(places, other) {
                    add(to(other));
                    continue;
                }
                for dropped in held_by(other) {
                    let mut places = to(other);
                    places[dropped] = DISK;
                    add(places);
                }
            }
        }
    }
}

type Reached = BTreeMap<Vec<usize>, Served>;

const DISK: usize = usize::MAX;

fn page_count(references: &[Reference]) -> usize {
    references
        .iter()
        .map(|reference| reference.page + 1)
        .max()
        .unwrap_or(0)
}

/// A run of GLFD. It looks at every page for each decision: for the small instances on which the theorem is checked.
struct Glfd<'a> {
    nodes: &'a Nodes,
    references: &'a [Reference],
    places: Vec<usize>,
    /// Whether its node holds a page on behalf of another.
    is_global: Vec<bool>,
    served: Served,
}

impl<'a> Glfd<'a> {
    fn new(nodes: &'a Nodes, references: &'a [Reference]) -> Self {
        let pages = page_count(references);
        Glfd {
            nodes,
            references,
            places: vec![DISK; pages],
            is_global: vec![false; pages],
            served: Served::default(),
        }
    }

    fn refer(&mut self, position: usize) {
        let Reference { node, page } = self.references[position];
        let from = self.places[page];
        self.is_global[page] = false;
        if from == node {
            self.served.local += 1;
            return;
        }
        let is_into_room = from == DISK && self.nodes.has_room(&self.places, node);
        let sent = match is_into_room {
            true => None,
            false => self.spared(position, node),
        };
        self.places[page] = node;
        match from {
            DISK => self.served.disk += 1,
            _ => self.served.global += 1,
        }
        let Some(sent) = sent else {
            return;
        };
        let to = match from {
            DISK => self.make_room(position),
            _ => from,
        };
        // A page that was to go from a node to itself stays what it is.
        if self.places[sent] == node && to != node {
            self.places[sent] = to;
            self.is_global[sent] = to != DISK;
        }
    }

    /// The page that a node sends away: one that it holds for another; else its own that it needs last.
    fn spared(&self, position: usize, node: usize) -> Option<usize> {
        let held = || (0..self.places.len()).filter(|&page| self.places[page] == node);
        let for_others = held().filter(|&page| self.is_global[page]);
        let global = for_others.max_by_key(|&page| self.next(position, page, None));
        global.or_else(|| held().max_by_key(|&page| self.next(position, page, Some(node))))
    }

    /// The node with a frame for a page that is sent away: a free one; else that of the page in the cluster that is needed last.
    fn make_room(&mut self, position: usize) -> usize {
        let free =
            (0..self.nodes.frames.len()).find(|&node| self.nodes.has_room(&self.places, node));
        if let Some(node) = free {
            return node;
        }
        let faulted = self.references[position].page;
        let held =
            (0..self.places.len()).filter(|&page| self.places[page] != DISK && page != faulted);
        let last = held.max_by_key(|&page| self.next(position, page, None));
        last.map_or(DISK, |page| std::mem::replace(&mut self.places[page], DISK))
    }

    /// The next reference to a page after a position, by one node or by any.
    fn next(&self, position: usize, page: usize, by: Option<usize>) -> usize {
        let is_it = |reference: &Reference| {
            reference.page == page && by.is_none_or(|node| reference.node == node)
        };
        let after = self.references.iter().skip(position + 1).position(is_it);
        after.unwrap_or(usize::MAX)
    }
}
