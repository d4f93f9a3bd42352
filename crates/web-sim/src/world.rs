//! The world: its clock, its queue of events, and its actors.

use crate::cells::{Memory, Passes, Who};
use crate::checker::Checker;
use crate::database::{Database, Xid};
use crate::digest::Digest;
use crate::follower_host::FollowerHost;
use crate::keeper_host::KeeperHost;
use crate::pages::{Answer, Page};
use crate::plan::Plan;
use crate::proxy_host::ProxyHost;
use crate::time::At;
use crate::updates::Updates;
use crate::watchdog_host::WatchdogHost;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use std::sync::Arc;
use thorp_model::Xoshiro256;
use thorp_versions::ToFollower;

/// How deep loads may be held up inside each other.
const DEPTH_MAX: usize = 3;

type Act = Box<dyn FnOnce(&Rc<World>)>;

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

/// What happens at other actors, if something happens at one.
pub(crate) struct Hooks {
    /// There is more in the database's log.
    pub(crate) log_grew: fn(&Rc<World>),
    /// A commit is acknowledged to its client.
    pub(crate) committed: fn(&Rc<World>, Xid),
    /// The connection of a follower is lost.
    pub(crate) follower_lost: fn(&Rc<World>, usize, u64),
    /// A message comes to a follower on this connection.
    pub(crate) to_follower: fn(&Rc<World>, usize, u64, ToFollower),
}

/// Everything that one seed makes. Nothing is borrowed while a machine loads or stores: the world goes on meanwhile.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) hooks: Hooks,
    now: Cell<At>,
    numbers: Cell<u64>,
    depth: Cell<usize>,
    queue: RefCell<BinaryHeap<Event>>,
    /// Until when a process does nothing.
    paused: RefCell<BTreeMap<Who, At>>,
    /// Processes with one task that is at work, and what waits for it.
    busy: RefCell<BTreeMap<Who, Vec<Event>>>,
    /// When the last message arrives on a connection.
    links: RefCell<BTreeMap<(Who, u64), At>>,
    random: RefCell<Xoshiro256>,
    digest: RefCell<Digest>,
    /// What the application has cached for itself, if its answers are not fresh.
    pub(crate) old: RefCell<BTreeMap<Page, (At, Arc<Answer>)>>,
    /// Links to the database are slow until then.
    pub(crate) slow_until: Cell<At>,
    pub(crate) is_over: Cell<bool>,
    pub(crate) database: RefCell<Database>,
    pub(crate) keeper: KeeperHost,
    pub(crate) watchdogs: Vec<WatchdogHost>,
    pub(crate) followers: Vec<FollowerHost>,
    pub(crate) proxies: Vec<ProxyHost<World>>,
    pub(crate) updates: Updates,
    pub(crate) checker: RefCell<Checker>,
}

impl World {
    pub(crate) fn new(seed: u64, plan: Plan, hooks: Hooks, keeps_lines: bool) -> Rc<World> {
        let database = Database::new(plan.rows, plan.first_number);
        Rc::new(World {
            now: Cell::default(),
            numbers: Cell::new(0),
            depth: Cell::new(0),
            queue: RefCell::default(),
            paused: RefCell::default(),
            busy: RefCell::default(),
            links: RefCell::default(),
            random: RefCell::new(Xoshiro256::new(seed ^ 0x7765_6273_696d)),
            digest: RefCell::new(Digest::new(keeps_lines)),
            old: RefCell::default(),
            slow_until: Cell::default(),
            is_over: Cell::new(false),
            database: RefCell::new(database),
            keeper: KeeperHost::new(),
            watchdogs: (0..plan.watchdogs).map(WatchdogHost::new).collect(),
            followers: (0..plan.followers).map(FollowerHost::new).collect(),
            proxies: (0..plan.proxies).map(ProxyHost::new).collect(),
            updates: Updates::default(),
            checker: RefCell::new(Checker::new(plan.rows)),
            plan,
            hooks,
        })
    }

    // --- Time ---

    pub(crate) fn now(&self) -> At {
        self.now.get()
    }

    /// Does this after a while, in a process that may hang meanwhile.
    pub(crate) fn after(&self, us: u64, who: Who, act: impl FnOnce(&Rc<World>) + 'static) {
        self.push(self.now().plus_us(us), who, Box::new(act));
    }

    /// As [`after`](World::after), behind all that was sent on this connection before.
    pub(crate) fn send(
        &self,
        link: (Who, u64),
        us: u64,
        who: Who,
        act: impl FnOnce(&Rc<World>) + 'static,
    ) {
        let mut links = self.links.borrow_mut();
        let last = links.entry(link).or_default();
        *last = self.now().plus_us(us).max(*last);
        self.push(*last, who, Box::new(act));
    }

    fn push(&self, at: At, who: Who, act: Act) {
        let number = self.numbers.get();
        self.numbers.set(number + 1);
        let event = Event {
            at,
            number,
            who,
            act,
        };
        self.queue.borrow_mut().push(event);
    }

    /// Lets the world go on up to a time.
    pub(crate) fn run_until(self: &Rc<Self>, end: At) {
        loop {
            let mut queue = self.queue.borrow_mut();
            if queue.peek().is_none_or(|event| event.at > end) {
                break;
            }
            let next = queue.pop();
            drop(queue);
            if let Some(event) = next {
                self.take(event);
            }
        }
        self.now.set(end.max(self.now()));
    }

    fn take(self: &Rc<Self>, mut event: Event) {
        self.now.set(event.at.max(self.now()));
        let until = self.paused_until(event.who);
        if until > self.now() {
            event.at = until;
            self.queue.borrow_mut().push(event);
            return;
        }
        if let Some(waiting) = self.busy.borrow_mut().get_mut(&event.who) {
            waiting.push(event);
            return;
        }
        (event.act)(self);
    }

    // --- Processes ---

    /// A process does nothing for so long. Then it goes on where it was.
    pub(crate) fn pause(&self, who: Who, us: u64) {
        let until = self.now().plus_us(us);
        let mut paused = self.paused.borrow_mut();
        let now = paused.entry(who).or_default();
        *now = until.max(*now);
    }

    /// It is started anew.
    pub(crate) fn wake(&self, who: Who) {
        self.paused.borrow_mut().remove(&who);
    }

    fn paused_until(&self, who: Who) -> At {
        self.paused.borrow().get(&who).copied().unwrap_or_default()
    }

    /// What comes for a process with one task while it does this waits.
    pub(crate) fn busy<T>(self: &Rc<Self>, who: Who, work: impl FnOnce() -> T) -> T {
        self.busy.borrow_mut().insert(who, Vec::new());
        let done = work();
        let waiting = self.busy.borrow_mut().remove(&who).unwrap_or_default();
        let now = self.now();
        for mut event in waiting {
            event.at = now;
            self.queue.borrow_mut().push(event);
        }
        done
    }

    /// Something of a process is next: the world may go on before it.
    pub(crate) fn between(self: &Rc<Self>, who: Who) {
        if self.depth.get() >= DEPTH_MAX {
            return;
        }
        let drawn = match self.is_over.get() || !self.plan.holds_loads {
            true => 0,
            false => self.drawn_pause(),
        };
        let until = self.now().plus_us(drawn).max(self.paused_until(who));
        if until > self.now() {
            self.depth.set(self.depth.get() + 1);
            self.run_until(until);
            while self.paused_until(who) > self.now() {
                self.run_until(self.paused_until(who));
            }
            self.depth.set(self.depth.get() - 1);
        }
    }

    fn drawn_pause(&self) -> u64 {
        let mut random = self.random.borrow_mut();
        match random.below(4_000) {
            0..8 => random.range(1_000_000, 7_000_000),
            8..60 => random.range(5_000, 400_000),
            60..300 => random.range(1, 5_000),
            _ => 0,
        }
    }

    // --- Places and distances ---

    /// What the clock of somebody's host says.
    pub(crate) fn clock_ms(&self, who: Who) -> u64 {
        let host = match who {
            Who::Keeper | Who::Nobody => 0,
            Who::Proxy(number) => match self.follower_of(number) {
                Some(follower) => 2 + follower.number(),
                None => 0,
            },
            Who::Watchdog(_) => 1,
            Who::Follower(number) => 2 + number,
        };
        self.plan.clock_ms(host) + self.now().ms()
    }

    /// The table that a proxy reads.
    pub(crate) fn table_of(&self, proxy: usize) -> &Rc<Memory> {
        let follower = self.follower_of(proxy);
        follower.map_or(&self.keeper.memory, |follower| &follower.memory)
    }

    /// The first proxy is on the keeper's host, the others on those of followers, as far as there are some.
    fn follower_of(&self, proxy: usize) -> Option<&FollowerHost> {
        self.followers.get(proxy.checked_sub(1)?)
    }

    /// A message between keeper and follower.
    pub(crate) fn to_follower(&self) -> u64 {
        match self.fails(2) {
            true => self.range(10_000, 3_000_000),
            false => self.range(50, 800),
        }
    }

    /// A message to a process nearby, in microseconds.
    pub(crate) fn nearby(&self) -> u64 {
        self.range(20, 300)
    }

    /// A message between keeper and database.
    pub(crate) fn to_database(&self) -> u64 {
        let slow = self.slow_until.get().0.saturating_sub(self.now().0);
        let more = if slow > 0 { self.range(0, slow) } else { 0 };
        self.range(50, 800) + more
    }

    /// How long the application works on an answer once it has read its rows.
    pub(crate) fn works(&self) -> u64 {
        match self.percent(3) && !self.is_over.get() {
            true => self.range(20_000, 3_000_000),
            false => self.range(200, 20_000),
        }
    }

    // --- Chance, and what is noted ---

    pub(crate) fn range(&self, first: u64, last: u64) -> u64 {
        self.random.borrow_mut().range(first, last)
    }

    pub(crate) fn percent(&self, chance: u64) -> bool {
        self.random.borrow_mut().percent(chance)
    }

    /// Whether something goes wrong that happens so often.
    pub(crate) fn fails(&self, chance: u64) -> bool {
        !self.is_over.get() && self.percent(chance)
    }

    pub(crate) fn index(&self, len: usize) -> usize {
        self.random.borrow_mut().index(len)
    }

    pub(crate) fn bits(&self) -> u64 {
        self.random.borrow_mut().bits()
    }

    pub(crate) fn note(&self, what: &str, numbers: &[u64]) {
        self.digest.borrow_mut().note(self.now(), what, numbers);
    }

    pub(crate) fn digest(&self) -> (u64, Vec<String>) {
        let digest = self.digest.borrow();
        (digest.hash(), digest.lines())
    }
}

impl Passes for World {
    fn pass(self: Rc<Self>, who: Who) {
        self.between(who);
    }
}
