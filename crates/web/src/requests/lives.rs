//! At the keeper: which updates of which proxies are open (rule W2, with requests as a source). It does no I/O and reads no clock.

use super::book::Page;
use super::wire::{ToKeeper, ToProxy};
use std::collections::{BTreeMap, BTreeSet};
use thorp_versions::{Event, OPEN_UPDATES_MAX, Place, UpdateId};

/// Open updates of one proxy.
pub(super) const UPDATES_OF_PROXY_MAX: usize = 16_384;

/// Proxies that are connected, or whose updates are open still. One more is not let in.
pub(super) const PROXIES_MAX: usize = 64;

/// The update of the keeper's own: proxies of before may have open updates that it does not know.
const OF_BEFORE: UpdateId = UpdateId(0);

/// A connection of a proxy. Each has a number of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Connection(pub(super) u64);

/// What is to be done, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Todo {
    /// The ledger handles this event.
    Note(Event),
    /// A proxy is told, after what comes before is stored.
    Tell(Connection, ToProxy),
    /// The connection ends: its proxy is one too many, or sends what no proxy sends.
    Close(Connection),
}

/// The proxies, and their updates.
///
/// Invariant: an update is open from its begin until its proxy ends it, or until nobody has been able to follow it for the longest life of
/// a request.
#[derive(Debug)]
pub(super) struct Lives {
    generation: u64,
    life_ms: u64,
    of: BTreeMap<u64, Proxy>,
    next: u64,
    before: Option<Before>,
}

#[derive(Debug, Default)]
struct Proxy {
    process: u32,
    connection: Option<Connection>,
    open: BTreeMap<u64, Open>,
    /// While it lists: what was open before, and is not listed yet.
    unlisted: Option<BTreeSet<u64>>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    id: UpdateId,
    /// It ends then, whatever its proxy says. None: its proxy follows it.
    until_ms: Option<u64>,
}

/// Proxies of before that have not listed their updates to this keeper. As long as one is missing, everything may be changing.
#[derive(Debug)]
struct Before {
    missing: Page,
    until_ms: u64,
}

impl Lives {
    /// A keeper begins a generation. The page is what the keeper before has left.
    pub(super) fn begin(
        generation: u64,
        life_ms: u64,
        left: Page,
        now_ms: u64,
    ) -> (Self, Vec<Todo>) {
        let mut lives = Lives {
            generation,
            life_ms,
            of: BTreeMap::new(),
            next: OF_BEFORE.0 + 1,
            before: None,
        };
        let is_known = left.are_all && left.lives.is_empty();
        let todo = match is_known {
            true => Vec::new(),
            false => lives.doubt(left, now_ms),
        };
        (lives, todo)
    }

    /// What the next keeper has to know.
    pub(super) fn page(&self) -> Page {
        let mut page = match &self.before {
            Some(before) => before.missing.clone(),
            None => Page {
                are_all: true,
                lives: BTreeMap::new(),
            },
        };
        let lives = self.of.iter();
        page.lives
            .extend(lives.map(|(life, proxy)| (*life, proxy.process)));
        page
    }

    /// For whom the keeper waits, and how many milliseconds more at most. None: for nobody.
    pub(super) fn awaits(&self, now_ms: u64) -> Option<(Vec<u32>, u64)> {
        let before = self.before.as_ref()?;
        let processes = before.missing.lives.values().copied().collect();
        Some((processes, before.until_ms.saturating_sub(now_ms)))
    }

    /// A proxy has sent something.
    pub(super) fn hear(&mut self, from: Connection, said: ToKeeper, now_ms: u64) -> Vec<Todo> {
        if let ToKeeper::Hello { life, process } = said {
            return self.hello(from, life, process);
        }
        let mut proxies = self.of.iter();
        let known = proxies.find(|(_, proxy)| proxy.connection == Some(from));
        let Some(life) = known.map(|(life, _)| *life) else {
            return vec![Todo::Close(from)];
        };
        match said {
            ToKeeper::Hello { .. } => Vec::new(),
            ToKeeper::Begin { update, keys } => self.begun((life, from), update, keys, now_ms),
            ToKeeper::End { update } => self.ended(life, update),
            ToKeeper::Linger { update } => {
                let until_ms = now_ms.saturating_add(self.life_ms);
                let open = self.of.get_mut(&life).map(|proxy| &mut proxy.open);
                if let Some(open) = open.and_then(|open| open.get_mut(&update)) {
                    open.until_ms = Some(until_ms);
                }
                Vec::new()
            }
            ToKeeper::Listed => self.listed(life, from),
        }
    }

    /// A connection has ended. Nobody follows the updates of its proxy, unless that one comes back.
    pub(super) fn lost(&mut self, connection: Connection, now_ms: u64) {
        let until_ms = now_ms.saturating_add(self.life_ms);
        for proxy in self.of.values_mut() {
            if proxy.connection != Some(connection) {
                continue;
            }
            proxy.connection = None;
            proxy.unlisted = None;
            for open in proxy.open.values_mut() {
                open.until_ms = open.until_ms.or(Some(until_ms));
            }
        }
        self.forget_gone();
    }

    /// Ends what has had its time.
    pub(super) fn pass_time(&mut self, now_ms: u64) -> Vec<Todo> {
        let mut todo = Vec::new();
        for proxy in self.of.values_mut() {
            let connection = proxy.connection;
            proxy.open.retain(|update, open| {
                let is_over = open.until_ms.is_some_and(|until_ms| now_ms >= until_ms);
                if is_over {
                    todo.push(Todo::Note(Event::End(open.id)));
                    let over = ToProxy::Over { update: *update };
                    todo.extend(connection.map(|connection| Todo::Tell(connection, over)));
                }
                !is_over
            });
        }
        self.forget_gone();
        let before = self.before.as_ref();
        if before.is_some_and(|before| now_ms >= before.until_ms) {
            self.before = None;
            todo.push(Todo::Note(Event::End(OF_BEFORE)));
        }
        todo
    }

    fn hello(&mut self, from: Connection, life: u64, process: u32) -> Vec<Todo> {
        if !self.of.contains_key(&life) && self.of.len() >= PROXIES_MAX {
            return vec![Todo::Close(from)];
        }
        let proxy = self.of.entry(life).or_default();
        let last = proxy.connection.replace(from);
        proxy.process = process;
        proxy.unlisted = Some(proxy.open.keys().copied().collect());
        last.into_iter().map(Todo::Close).collect()
    }

    fn begun(
        &mut self,
        (life, from): (u64, Connection),
        update: u64,
        keys: Option<Vec<String>>,
        now_ms: u64,
    ) -> Vec<Todo> {
        let is_full = self.open() + 1 >= OPEN_UPDATES_MAX;
        let (generation, next) = (self.generation, self.next);
        let Some(proxy) = self.of.get_mut(&life) else {
            return Vec::new();
        };
        let is_listing = proxy.unlisted.is_some();
        let is_full = is_full || proxy.open.len() >= UPDATES_OF_PROXY_MAX;
        let is_new = !proxy.open.contains_key(&update);
        if is_new && is_full {
            // What is listed may be forwarded already.
            let refused = Todo::Tell(from, ToProxy::Refused { update });
            return match is_listing {
                true => [self.doubt(Page::default(), now_ms), vec![refused]].concat(),
                false => vec![refused],
            };
        }
        if let Some(unlisted) = &mut proxy.unlisted {
            unlisted.remove(&update);
        }
        let open = proxy.open.entry(update).or_insert(Open {
            id: UpdateId(next),
            until_ms: None,
        });
        // Its proxy follows it again.
        open.until_ms = None;
        let id = open.id;
        self.next += u64::from(is_new);
        let places = keys.map(|keys| keys.iter().map(|key| Place::of(key)).collect());
        let begun = ToProxy::Begun { update, generation };
        vec![
            Todo::Note(Event::Begin(id, places)),
            Todo::Tell(from, begun),
        ]
    }

    fn ended(&mut self, life: u64, update: u64) -> Vec<Todo> {
        let proxy = self.of.get_mut(&life);
        let open = proxy.and_then(|proxy| proxy.open.remove(&update));
        open.into_iter()
            .map(|open| Todo::Note(Event::End(open.id)))
            .collect()
    }

    /// A proxy has listed all that is open: what it did not list is over.
    fn listed(&mut self, life: u64, from: Connection) -> Vec<Todo> {
        let mut todo = Vec::new();
        if let Some(proxy) = self.of.get_mut(&life) {
            for update in proxy.unlisted.take().into_iter().flatten() {
                let open = proxy.open.remove(&update);
                todo.extend(open.map(|open| Todo::Note(Event::End(open.id))));
            }
        }
        if let Some(before) = &mut self.before {
            before.missing.lives.remove(&life);
            if before.missing.are_all && before.missing.lives.is_empty() {
                self.before = None;
                todo.push(Todo::Note(Event::End(OF_BEFORE)));
            }
        }
        let life_ms = self.life_ms;
        todo.push(Todo::Tell(from, ToProxy::Welcome { life_ms }));
        todo
    }

    /// Something may be open that this keeper does not know.
    fn doubt(&mut self, missing: Page, now_ms: u64) -> Vec<Todo> {
        self.before = Some(Before {
            missing,
            until_ms: now_ms.saturating_add(self.life_ms),
        });
        vec![Todo::Note(Event::Begin(OF_BEFORE, None))]
    }

    /// A proxy that is gone and has nothing open cannot forward anything any more: it would need an acknowledgement.
    fn forget_gone(&mut self) {
        self.of
            .retain(|_, proxy| proxy.connection.is_some() || !proxy.open.is_empty());
    }

    fn open(&self) -> usize {
        self.of.values().map(|proxy| proxy.open.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_versions::{Ledger, Memory, Reader, Writer};

    const LIFE_MS: u64 = 1_000;
    const FIRST: Connection = Connection(1);
    const SECOND: Connection = Connection(2);

    /// A keeper with its table.
    struct Scene {
        lives: Lives,
        ledger: Ledger<std::sync::Arc<Memory>>,
        reader: Reader<std::sync::Arc<Memory>>,
        told: Vec<(Connection, ToProxy)>,
    }

    impl Scene {
        fn begin(left: Page) -> Scene {
            let table = std::sync::Arc::new(Memory::new());
            let mut ledger = Ledger::new(Writer::new(std::sync::Arc::clone(&table)));
            ledger.restart(7);
            ledger.handle(Event::Waits(1));
            let (lives, todo) = Lives::begin(7, LIFE_MS, left, 0);
            let mut scene = Scene {
                lives,
                ledger,
                reader: Reader::new(table),
                told: Vec::new(),
            };
            scene.does(todo);
            scene
        }

        /// The keeper before has left that there is nobody.
        fn with_nobody() -> Scene {
            Scene::begin(Page {
                are_all: true,
                lives: BTreeMap::new(),
            })
        }

        fn does(&mut self, todo: Vec<Todo>) {
            for todo in todo {
                match todo {
                    Todo::Note(event) => {
                        self.ledger.handle(event);
                    }
                    Todo::Tell(to, what) => self.told.push((to, what)),
                    Todo::Close(connection) => self.lives.lost(connection, 0),
                }
            }
        }

        fn hears(&mut self, from: Connection, said: ToKeeper, now_ms: u64) {
            let todo = self.lives.hear(from, said, now_ms);
            self.does(todo);
        }

        fn joins(&mut self, from: Connection, life: u64, open: &[(u64, &str)]) {
            self.hears(from, ToKeeper::Hello { life, process: 1 }, 0);
            for (update, key) in open {
                self.hears(from, begin(*update, key), 0);
            }
            self.hears(from, ToKeeper::Listed, 0);
        }

        /// Whether an answer that rests on a key may be stored now.
        fn is_still(&self, key: &str) -> bool {
            let evidence = self.reader.evidence();
            self.reader.check(evidence, &[Place::of(key)], 2).is_ok()
        }

        fn passes(&mut self, now_ms: u64) {
            let todo = self.lives.pass_time(now_ms);
            self.does(todo);
        }
    }

    fn begin(update: u64, key: &str) -> ToKeeper {
        let keys = Some(vec![key.to_owned()]);
        ToKeeper::Begin { update, keys }
    }

    #[test]
    fn an_update_is_open_until_its_proxy_ends_it() {
        let mut scene = Scene::with_nobody();
        scene.joins(FIRST, 5, &[]);
        scene.joins(SECOND, 6, &[]);
        scene.hears(FIRST, begin(1, "a"), 0);
        // Another proxy's update has the same number.
        scene.hears(SECOND, begin(1, "a"), 0);
        let begun = ToProxy::Begun {
            update: 1,
            generation: 7,
        };
        assert!(
            scene.told.contains(&(FIRST, begun.clone())) && scene.told.contains(&(SECOND, begun))
        );
        scene.hears(FIRST, ToKeeper::End { update: 1 }, 0);
        assert!(!scene.is_still("a") && scene.is_still("b"));
        scene.passes(100 * LIFE_MS);
        assert!(!scene.is_still("a"), "its proxy follows it");
        scene.hears(SECOND, ToKeeper::End { update: 1 }, 0);
        assert!(scene.is_still("a"));
    }

    #[test]
    fn the_updates_of_a_proxy_that_is_gone_end_by_time_and_not_before() {
        let mut scene = Scene::with_nobody();
        scene.joins(FIRST, 5, &[]);
        scene.hears(FIRST, begin(1, "a"), 0);
        scene.lives.lost(FIRST, 10);
        scene.passes(10 + LIFE_MS - 1);
        assert!(!scene.is_still("a"));
        assert!(scene.lives.page().lives.contains_key(&5));
        scene.passes(10 + LIFE_MS);
        assert!(scene.is_still("a") && scene.lives.page().lives.is_empty());
    }

    #[test]
    fn a_proxy_that_comes_back_says_what_is_over() {
        let mut scene = Scene::with_nobody();
        scene.joins(FIRST, 5, &[]);
        scene.hears(FIRST, begin(1, "a"), 0);
        scene.hears(FIRST, begin(2, "b"), 0);
        scene.lives.lost(FIRST, 10);
        scene.joins(SECOND, 5, &[(1, "a")]);
        assert!(!scene.is_still("a") && scene.is_still("b"));
        scene.passes(100 * LIFE_MS);
        assert!(!scene.is_still("a"), "its proxy follows it again");
        // What the old connection still brings is of before.
        scene.hears(FIRST, ToKeeper::End { update: 1 }, 0);
        assert!(!scene.is_still("a"));
    }

    /// Rule W2, also across a restart of the keeper (trap W7).
    #[test]
    fn a_keeper_that_starts_waits_for_each_proxy_of_before() {
        let left = |lives: &[u64], are_all| Page {
            are_all,
            lives: lives.iter().map(|life| (*life, 1)).collect(),
        };
        let mut scene = Scene::begin(left(&[5, 6], true));
        assert!(!scene.is_still("b"));
        scene.joins(FIRST, 5, &[(1, "a")]);
        assert!(!scene.is_still("b"), "the other one may have changed it");
        assert_eq!(scene.lives.page(), left(&[5, 6], true));
        scene.joins(SECOND, 6, &[]);
        assert!(scene.is_still("b") && !scene.is_still("a"));
        // One that does not come.
        let mut scene = Scene::begin(left(&[5], true));
        scene.passes(LIFE_MS - 1);
        assert!(!scene.is_still("b"));
        scene.passes(LIFE_MS);
        assert!(scene.is_still("b"));
        // Nobody knows who there was: that all who come have listed is not enough.
        let mut scene = Scene::begin(Page::default());
        scene.joins(FIRST, 5, &[]);
        assert!(!scene.is_still("b") && !scene.lives.page().are_all);
        scene.passes(LIFE_MS);
        assert!(scene.is_still("b") && scene.lives.page().are_all);
    }

    #[test]
    fn what_lingers_ends_by_time_and_its_proxy_is_told() {
        let mut scene = Scene::with_nobody();
        scene.joins(FIRST, 5, &[]);
        scene.hears(FIRST, begin(1, "a"), 0);
        scene.hears(FIRST, ToKeeper::Linger { update: 1 }, 50);
        scene.passes(50 + LIFE_MS - 1);
        assert!(!scene.is_still("a"));
        scene.passes(50 + LIFE_MS);
        assert!(scene.is_still("a"));
        assert!(scene.told.contains(&(FIRST, ToProxy::Over { update: 1 })));
    }

    #[test]
    fn one_too_many_is_refused_and_if_it_may_be_forwarded_already_nothing_is_sure() {
        let mut scene = Scene::with_nobody();
        scene.joins(FIRST, 5, &[]);
        let most = UPDATES_OF_PROXY_MAX as u64;
        for update in 0..most {
            scene.hears(FIRST, begin(update, "a"), 0);
        }
        scene.hears(FIRST, begin(most, "b"), 0);
        assert!(
            scene
                .told
                .contains(&(FIRST, ToProxy::Refused { update: most }))
        );
        assert!(scene.is_still("b"));
        let third = Connection(3);
        let hello = ToKeeper::Hello {
            life: 5,
            process: 1,
        };
        scene.hears(third, hello, 0);
        scene.hears(third, begin(most, "b"), 0);
        assert!(!scene.is_still("b") && !scene.is_still("c"));
        // Who has not said which proxy it is says nothing.
        scene.hears(SECOND, begin(1, "a"), 0);
        let closed = scene.lives.hear(SECOND, ToKeeper::Listed, 0);
        assert_eq!(closed, [Todo::Close(SECOND)]);
        for life in 100..100 + PROXIES_MAX as u64 {
            scene.joins(Connection(life), life, &[]);
        }
        assert_eq!(scene.lives.page().lives.len(), PROXIES_MAX);
    }
}
