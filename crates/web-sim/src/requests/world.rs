//! The world: its clock, its queue of events, and who is in it.

use super::keeper_process::KeeperProcess;
use super::plan::Plan;
use super::proxy_process::ProxyProcess;
use crate::cells::{Memory, Who};
use crate::checker::Checker;
use crate::digest::Digest;
use crate::time::At;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use thorp_model::Xoshiro256;
use thorp_web::{Page as Book, ToProxy};

/// What the clocks say when the world begins.
const BEGINS_MS: u64 = 100_000;

type Act = Box<dyn FnOnce(&mut World)>;

struct Event {
    at: At,
    number: u64,
    who: Who,
    act: Act,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// The earliest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// A connection between a proxy and a keeper, each in one life.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) proxy: usize,
    pub(super) proxy_life: u64,
    pub(super) keeper_life: u64,
    /// Nothing more is sent. What is on its way arrives.
    pub(super) is_closed: bool,
}

/// To which end of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Side {
    Keeper,
    Proxy,
}

/// What happens at other actors, if something happens at one.
#[derive(Clone, Copy)]
pub(super) struct Hooks {
    /// The application has answered an update of a proxy in one of its lives; None: it has closed the connection.
    pub(super) answered: fn(&mut World, (usize, u64), u64, Option<u16>),
    /// A message of the keeper arrives on a link.
    pub(super) to_proxy: fn(&mut World, u64, ToProxy),
    /// A link has ended at its proxy.
    pub(super) lost: fn(&mut World, u64),
    /// Something has become of a writer's request.
    pub(super) write_again: fn(&mut World, Option<usize>),
}

pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) hooks: Hooks,
    now: At,
    numbers: u64,
    queue: BinaryHeap<Event>,
    /// Until when a process does nothing.
    paused: BTreeMap<Who, At>,
    /// What waits for it, in the order in which it came.
    parked: BTreeMap<Who, Vec<Act>>,
    random: Xoshiro256,
    digest: Digest,
    pub(super) checker: Checker,
    pub(super) is_over: bool,
    pub(super) rows: Vec<u64>,
    pub(super) last_value: u64,
    pub(super) keeper: Option<KeeperProcess>,
    /// The table that the file names. It is that of the last keeper.
    pub(super) named: Option<Rc<Memory>>,
    /// What the file beside the table says of proxies.
    pub(super) book: Book,
    pub(super) proxies: Vec<Option<ProxyProcess<World>>>,
    links: BTreeMap<u64, Link>,
    arrives: BTreeMap<(u64, Side), At>,
}

impl World {
    pub(super) fn new(seed: u64, plan: Plan, hooks: Hooks, keeps_lines: bool) -> World {
        let rows = plan.common.rows;
        World {
            now: At::default(),
            numbers: 0,
            queue: BinaryHeap::new(),
            paused: BTreeMap::new(),
            parked: BTreeMap::new(),
            random: Xoshiro256::new(seed ^ 0x6e6f_7465_6421),
            digest: Digest::new(keeps_lines),
            checker: Checker::new(rows),
            is_over: false,
            rows: vec![0; rows],
            last_value: 0,
            keeper: None,
            named: None,
            book: Book::default(),
            proxies: (0..plan.proxies).map(|_| None).collect(),
            links: BTreeMap::new(),
            arrives: BTreeMap::new(),
            hooks,
            plan,
        }
    }

    // --- Time ---

    pub(super) fn now(&self) -> At {
        self.now
    }

    pub(super) fn now_ms(&self) -> u64 {
        BEGINS_MS + self.now.ms()
    }

    /// Does this after a while, in a process that may hang meanwhile.
    pub(super) fn after(&mut self, us: u64, who: Who, act: impl FnOnce(&mut World) + 'static) {
        self.push(self.now.plus_us(us), who, Box::new(act));
    }

    fn push(&mut self, at: At, who: Who, act: Act) {
        let number = self.number();
        self.queue.push(Event {
            at,
            number,
            who,
            act,
        });
    }

    /// The next number: no other thing has it.
    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// A process does nothing for so long, or for longer if it hangs already: what waits for it stays in order.
    pub(super) fn pause(&mut self, who: Who, us: u64) {
        let until = self.now.plus_us(us);
        let paused = self.paused.entry(who).or_default();
        *paused = until.max(*paused);
        self.push(
            until,
            Who::Nobody,
            Box::new(move |world| {
                let is_over = |until: &At| *until <= world.now;
                if world.paused.get(&who).is_some_and(is_over) {
                    world.wake(who);
                }
            }),
        );
    }

    /// It goes on with what waits for it, or it is dead, and that finds nobody.
    pub(super) fn wake(&mut self, who: Who) {
        self.paused.remove(&who);
        for act in self.parked.remove(&who).unwrap_or_default() {
            let now = self.now;
            self.push(now, who, act);
        }
    }

    pub(super) fn run_until(&mut self, end: At) {
        while self.queue.peek().is_some_and(|event| event.at <= end) {
            let Some(event) = self.queue.pop() else {
                break;
            };
            self.now = event.at;
            match self.paused.contains_key(&event.who) {
                true => self.parked.entry(event.who).or_default().push(event.act),
                false => (event.act)(self),
            }
        }
        self.now = end;
    }

    // --- Links ---

    pub(super) fn open_link(&mut self, link: Link) -> u64 {
        let number = self.number();
        self.links.insert(number, link);
        number
    }

    pub(super) fn link(&self, number: u64) -> Option<Link> {
        self.links.get(&number).copied()
    }

    /// The links that are open.
    pub(super) fn open_links(&self) -> Vec<(u64, Link)> {
        let links = self.links.iter().filter(|(_, link)| !link.is_closed);
        links.map(|(number, link)| (*number, *link)).collect()
    }

    /// No side sends anything more.
    pub(super) fn close_link(&mut self, number: u64) {
        if let Some(link) = self.links.get_mut(&number) {
            link.is_closed = true;
        }
    }

    /// Something arrives at one end, behind all that was sent there before.
    pub(super) fn send(&mut self, number: u64, to: Side, act: impl FnOnce(&mut World) + 'static) {
        let Some(link) = self.link(number) else {
            return;
        };
        let us = match self.percent(2) {
            true => self.range(5_000, 800_000),
            false => self.range(20, 400),
        };
        let last = self.arrives.get(&(number, to)).copied().unwrap_or_default();
        let at = self.now.plus_us(us).max(last.plus_us(1));
        self.arrives.insert((number, to), at);
        let who = match to {
            Side::Keeper => Who::Keeper,
            Side::Proxy => Who::Proxy(link.proxy),
        };
        self.push(at, who, Box::new(act));
    }

    // --- Chance ---

    pub(super) fn range(&mut self, from: u64, to: u64) -> u64 {
        self.random.range(from, to)
    }

    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.random.percent(percent)
    }

    /// Something goes wrong, as long as things go wrong.
    pub(super) fn fails(&mut self, percent: u64) -> bool {
        self.random.percent(percent) && !self.is_over
    }

    pub(super) fn index(&mut self, length: usize) -> usize {
        self.random.below(length as u64) as usize
    }

    /// A message to a process nearby, in microseconds.
    pub(super) fn nearby(&mut self) -> u64 {
        self.random.range(20, 300)
    }

    // --- What happened ---

    pub(super) fn note(&mut self, what: &str, numbers: &[u64]) {
        self.digest.note(self.now, what, numbers);
    }

    pub(super) fn digest(&self) -> (u64, Vec<String>) {
        (self.digest.hash(), self.digest.lines())
    }
}
