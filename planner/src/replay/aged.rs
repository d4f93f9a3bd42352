//! Memories whose pages are ranked by age, wherever they are: what GMS and all like it are made of.

use super::copies::{Copies, Copy};
use super::{Place, Policy, Times, Traffic, Village};
use crate::evict::Evictor;
use fastrand::Rng;
use std::collections::BTreeSet;

/// Global memory (thesis, section 2.1.3): each node's memory has pages that it uses itself (*local*) and such that it keeps for
/// others (*global*), by age. A page of global memory moves to who asks for it; one that somebody uses is copied. It pushes out the
/// oldest page of who asked; if that is the last copy, a chooser says where it is kept, and there the oldest page is lost.
///
/// Where the oldest page of a client is one that it uses itself, the client's own evictor names which of those goes: with LRU that
/// page. Ages alone say how a memory is divided between what its client uses and what it keeps for others, and what servers lose.
///
/// The GMS that was built (Feeley and others, 1995) let the two pages change places where it could; the thesis does not say so, and
/// under a policy that balances loads a server would never lose any. What that may cost is one epoch's worth of empty frames.
pub(super) struct Aged<C> {
    state: State,
    /// For each client, its local pages.
    locals: Vec<Box<dyn Evictor>>,
    home: usize,
    random: Rng,
    traffic: Traffic,
    chooser: C,
    clock: Clock,
    times: Times,
    now: u32,
}

/// What all nodes hold.
pub(super) struct State {
    pub(super) nodes: Vec<Node>,
    copies: Copies,
}

/// The pages of a node from the oldest: when each was last used, and which it is.
pub(super) struct Node {
    pub(super) room: usize,
    pub(super) pages: BTreeSet<(u32, u32)>,
}

/// Where a page that has to go is kept.
pub(super) trait Chooser {
    /// The node that is to take a page of this age; `None` to lose it.
    fn target(&mut self, from: usize, used: u32, state: &State) -> Option<usize>;

    /// Takes note of a request, after it was answered, and of what nodes have done.
    fn note(&mut self, told: &Told<'_>);
}

/// What a chooser is told after each request.
pub(super) struct Told<'a> {
    pub(super) client: usize,
    /// How often it asked or sent something to others for this: up to twice.
    pub(super) asked: u64,
    pub(super) clock: &'a Clock,
    pub(super) loads: &'a [u64],
}

/// Time as the clients see it: each has its own, since they work side by side.
pub(super) struct Clock {
    pub(super) by_client_ms: Vec<f64>,
    sum_ms: f64,
}

impl Clock {
    /// How far the clients are on average.
    pub(super) fn mean_ms(&self) -> f64 {
        self.sum_ms / self.by_client_ms.len() as f64
    }

    fn advance(&mut self, client: usize, by_ms: f64) {
        self.by_client_ms[client] += by_ms;
        self.sum_ms += by_ms;
    }
}

#[cfg(test)]
impl Clock {
    /// One client's.
    pub(super) fn example(now_ms: f64) -> Self {
        Clock {
            by_client_ms: vec![now_ms],
            sum_ms: now_ms,
        }
    }
}

impl Node {
    pub(super) fn is_full(&self) -> bool {
        self.empty_frames() == 0
    }

    pub(super) fn empty_frames(&self) -> usize {
        self.room.saturating_sub(self.pages.len())
    }
}

impl State {
    /// The oldest page of a node: when it was last used, and which it is.
    fn oldest(&self, node: usize) -> Option<(u32, u32)> {
        self.nodes[node].pages.first().copied()
    }

    fn is_local(&self, page: u32, node: usize) -> bool {
        let copy = self.copies.at(page, node);
        copy.is_some_and(|copy| copy.mark == LOCAL)
    }

    fn add(&mut self, page: u32, copy: Copy) {
        self.nodes[usize::from(copy.node)]
            .pages
            .insert((copy.used, page));
        self.copies.add(page, copy);
    }

    fn remove(&mut self, page: u32, node: usize) -> Option<Copy> {
        let copy = self.copies.remove(page, node)?;
        self.nodes[node].pages.remove(&(copy.used, page));
        Some(copy)
    }
}

#[cfg(test)]
impl State {
    /// Nodes with so much room and pages used at these times, each page at one node.
    pub(super) fn example(nodes: &[(usize, &[u32])]) -> Self {
        let node = |&(room, used): &(usize, &[u32])| Node {
            room,
            pages: used.iter().map(|&used| (used, used)).collect(),
        };
        State {
            nodes: nodes.iter().map(node).collect(),
            copies: Copies::new(0),
        }
    }
}

impl<C: Chooser> Aged<C> {
    pub(super) fn new(village: &Village, locals: Vec<Box<dyn Evictor>>, chooser: C) -> Self {
        let node = |room| Node {
            room,
            pages: BTreeSet::new(),
        };
        let nodes = village.pages_with_home().into_iter().map(node).collect();
        Aged {
            state: State {
                nodes,
                copies: Copies::new(village.footprint),
            },
            locals,
            home: village.nodes(),
            random: Rng::with_seed(village.seed),
            traffic: village.traffic(),
            chooser,
            clock: Clock {
                by_client_ms: vec![0.0; village.clients],
                sum_ms: 0.0,
            },
            times: village.times,
            now: 0,
        }
    }

    fn answer(&mut self, client: usize, page: u32, now: u32) -> Place {
        let is_used_here = self.locals[client].touch(page);
        let is_here = self.state.remove(page, client).is_some();
        let place = match is_here {
            true => Place::Local,
            false => self.fetch(page),
        };
        self.state.add(page, local(client, now));
        if self.state.nodes[client].pages.len() > self.state.nodes[client].room {
            self.evict(client);
        }
        if !is_used_here {
            // There is room for it now.
            self.locals[client].admit(page);
        }
        place
    }

    fn fetch(&mut self, page: u32) -> Place {
        let copies = self.state.copies.of(page).iter();
        let global = copies.copied().find(|copy| copy.mark == GLOBAL);
        if let Some(Copy { node, .. }) = global {
            self.state.remove(page, node.into());
            return self.sent_by(node.into());
        }
        match self.state.copies.any_holder(page, &mut self.random) {
            Some(node) => self.sent_by(node),
            None => {
                self.traffic.home_asked += 1;
                Place::Disk
            }
        }
    }

    fn sent_by(&mut self, node: usize) -> Place {
        self.count(node);
        match node == self.home {
            true => Place::Home,
            false => Place::Remote(node),
        }
    }

    fn count(&mut self, node: usize) {
        match self.traffic.loads.get_mut(node) {
            Some(load) => *load += 1,
            None => self.traffic.home_asked += 1,
        }
    }

    /// A node lets go of a page, which is kept elsewhere if it was the last copy.
    fn evict(&mut self, from: usize) {
        let Some((used, page)) = self.let_go(from) else {
            return;
        };
        if !self.state.copies.of(page).is_empty() {
            return;
        }
        let target = self.chooser.target(from, used, &self.state);
        if let Some(node) = target.filter(|&node| node != from && self.state.nodes[node].room > 0) {
            self.put(
                page,
                Copy {
                    node: node as u16,
                    used,
                    mark: GLOBAL,
                },
            );
        }
    }

    /// What a node can best do without: when it was last used, and which it is.
    fn let_go(&mut self, node: usize) -> Option<(u32, u32)> {
        let (_, oldest) = self.state.oldest(node)?;
        let named = match self.state.is_local(oldest, node) {
            true => self.locals[node].evict(),
            false => None,
        };
        let page = named.unwrap_or(oldest);
        let copy = self.state.remove(page, node)?;
        Some((copy.used, page))
    }

    fn put(&mut self, page: u32, copy: Copy) {
        let node = usize::from(copy.node);
        if self.state.nodes[node].is_full() {
            self.let_go(node);
        }
        self.state.add(page, copy);
        self.traffic.forwarded += 1;
        self.count(node);
    }
}

impl<C: Chooser> Policy for Aged<C> {
    fn request(&mut self, client: usize, page: u32) -> Place {
        self.now += 1;
        let forwarded = self.traffic.forwarded;
        let place = self.answer(client, page, self.now);
        let asked = self.traffic.forwarded - forwarded
            + u64::from(matches!(place, Place::Remote(_) | Place::Home));
        self.clock
            .advance(client, self.times.think_ms + self.times.of(place));
        let (clock, loads) = (&self.clock, &*self.traffic.loads);
        self.chooser.note(&Told {
            client,
            asked,
            clock,
            loads,
        });
        place
    }

    fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    fn held(&self) -> Vec<usize> {
        self.state
            .nodes
            .iter()
            .map(|node| node.pages.len())
            .collect()
    }
}

fn local(client: usize, now: u32) -> Copy {
    Copy {
        node: client as u16,
        used: now,
        mark: LOCAL,
    }
}

/// The mark of a copy where it is used.
const LOCAL: u8 = 0;
/// The mark of a copy that is kept for others.
const GLOBAL: u8 = 1;
