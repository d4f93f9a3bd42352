//! At the keeper: the proxies, and which updates of them are open (rule W2, with requests as a source). It does no I/O and reads no clock.

use super::book::Page;
use super::shown::{SHOWN_MAX, ShownKeys, ShownUpdate, ShownUpdates};
use super::updates::Updates;
use super::wire::{ByHand, FORWARDED_WITHIN_MS, ToKeeper, ToProxy};
use std::collections::BTreeMap;
use thorp_versions::{Bug, Event, OPEN_UPDATES_MAX, Place, UpdateId, is_planted};

/// Open updates of one proxy.
pub const UPDATES_OF_PROXY_MAX: usize = 16_384;

/// Proxies that are connected, or whose updates are open still. One more takes the place of one that is gone, or is not let in.
pub const PROXIES_MAX: usize = 64;

/// The update of the keeper's own: proxies of before may have open updates that it does not know.
pub(super) const OF_BEFORE: UpdateId = UpdateId(0);

/// Each proxy has one update more, for those that linger beyond what it counts, and the keeper has one of its own.
const COUNTED_MAX: usize = OPEN_UPDATES_MAX - PROXIES_MAX - 1;

/// A connection of a proxy. Each has a number of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Connection(pub u64);

/// What is to be done, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Todo {
    /// The ledger handles this event.
    Note(Event),
    /// A proxy is told, after what comes before is stored.
    Tell(Connection, ToProxy),
    /// The connection ends: its proxy is one too many, or sends what no proxy sends.
    Close(Connection),
}

/// The proxies, and their updates.
#[derive(Debug)]
pub struct Lives {
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
    updates: Updates,
}

/// Proxies of before that have not listed their updates to this keeper. As long as one is missing, everything may be changing.
#[derive(Debug)]
struct Before {
    missing: Page,
    begun_ms: u64,
    until_ms: u64,
}

impl Lives {
    /// A keeper begins a generation. The page is what the keeper before has left.
    pub fn begin(generation: u64, life_ms: u64, left: Page, now_ms: u64) -> (Self, Vec<Todo>) {
        let mut lives = Lives {
            generation,
            life_ms,
            of: BTreeMap::new(),
            next: OF_BEFORE.0 + 1,
            before: None,
        };
        let is_known = left.are_all && left.lives.is_empty() || is_planted(Bug::OthersNotAwaited);
        let todo = match is_known {
            true => Vec::new(),
            false => lives.await_those(left, now_ms),
        };
        (lives, todo)
    }

    /// What the next keeper has to know.
    pub fn page(&self) -> Page {
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
    pub fn awaits(&self, now_ms: u64) -> Option<(Vec<u32>, u64)> {
        let before = self.before.as_ref()?;
        let processes = before.missing.lives.values().copied().collect();
        Some((processes, before.until_ms.saturating_sub(now_ms)))
    }

    /// A proxy has sent something, or a person's command.
    pub fn hear(&mut self, from: Connection, said: ToKeeper, now_ms: u64) -> Vec<Todo> {
        match said {
            ToKeeper::Hello { life, process } => return self.hello(from, (life, process), now_ms),
            ToKeeper::Show => {
                let shown = self.shown(now_ms);
                return vec![Todo::Tell(from, ToProxy::Shown(shown))];
            }
            ToKeeper::EndByHand { id } => return self.end_by_hand(from, UpdateId(id)),
            _ => {}
        }
        let mut proxies = self.of.iter();
        let known = proxies.find(|(_, proxy)| proxy.connection == Some(from));
        let Some(life) = known.map(|(life, _)| *life) else {
            return vec![Todo::Close(from)];
        };
        match said {
            ToKeeper::Begin { update, keys } => self.begun((life, from), (update, keys), now_ms),
            ToKeeper::End { update } => self.ended(life, update),
            ToKeeper::Linger { update } => {
                let until_ms = now_ms.saturating_add(self.life_ms);
                if let Some(proxy) = self.of.get_mut(&life) {
                    proxy.updates.linger(update, until_ms);
                }
                Vec::new()
            }
            ToKeeper::Fold { update } => self.folded(life, update, now_ms),
            ToKeeper::Listed => self.listed(life, from),
            ToKeeper::Hello { .. } | ToKeeper::Show | ToKeeper::EndByHand { .. } => Vec::new(),
        }
    }

    /// A connection has ended. Nobody follows the updates of its proxy, unless that one comes back.
    pub fn lost(&mut self, connection: Connection, now_ms: u64) {
        let until_ms = match is_planted(Bug::GoneAreOver) {
            true => now_ms,
            false => self.ends_unseen_ms(now_ms),
        };
        let mut proxies = self.of.values_mut();
        if let Some(proxy) = proxies.find(|proxy| proxy.connection == Some(connection)) {
            proxy.connection = None;
            proxy.updates.lose(until_ms);
        }
        self.forget_gone();
    }

    /// Ends what has had its time.
    pub fn pass_time(&mut self, now_ms: u64) -> Vec<Todo> {
        let mut todo = Vec::new();
        for proxy in self.of.values_mut() {
            for (id, update) in proxy.updates.pass_time(now_ms) {
                todo.push(Todo::Note(Event::End(id)));
                todo.extend(over(proxy.connection, update));
            }
        }
        self.forget_gone();
        let before = self.before.as_ref();
        if before.is_some_and(|before| now_ms >= before.until_ms) {
            todo.extend(self.end_before());
        }
        todo
    }

    fn hello(&mut self, from: Connection, of: (u64, u32), now_ms: u64) -> Vec<Todo> {
        let (life, process) = of;
        let mut todo = Vec::new();
        if !self.of.contains_key(&life) && self.of.len() >= PROXIES_MAX {
            let Some(room) = self.make_room(now_ms) else {
                return vec![Todo::Close(from)];
            };
            todo = room;
        }
        let proxy = self.of.entry(life).or_default();
        let last = proxy.connection.replace(from);
        proxy.process = process;
        proxy.updates.lists();
        todo.extend(last.map(Todo::Close));
        todo
    }

    /// Forgets a proxy that is gone. Its updates count as one of before, which may change anything. None: all proxies are there.
    fn make_room(&mut self, now_ms: u64) -> Option<Vec<Todo>> {
        let mut proxies = self.of.iter();
        let gone = proxies.find(|(_, proxy)| proxy.connection.is_none());
        let life = gone.map(|(life, _)| *life)?;
        let updates = self.of.remove(&life)?.updates;
        let mut todo = self.doubt(now_ms);
        todo.extend(updates.into_ids().map(|id| Todo::Note(Event::End(id))));
        Some(todo)
    }

    fn begun(
        &mut self,
        (life, from): (u64, Connection),
        (update, keys): (u64, Option<Vec<String>>),
        now_ms: u64,
    ) -> Vec<Todo> {
        let is_full = self.counted() >= COUNTED_MAX;
        let (generation, next) = (self.generation, self.next);
        let Some(proxy) = self.of.get_mut(&life) else {
            return Vec::new();
        };
        let updates = &mut proxy.updates;
        let is_full = is_full || updates.len() >= UPDATES_OF_PROXY_MAX;
        let is_new = !updates.has(update);
        if is_new && is_full {
            // What is listed may be forwarded already.
            let doubt = match updates.is_listing() {
                true => self.doubt(now_ms),
                false => Vec::new(),
            };
            let refused = Todo::Tell(from, ToProxy::Refused { update });
            return [doubt, vec![refused]].concat();
        }
        let id = updates.begin((update, UpdateId(next)), keys.as_deref(), now_ms);
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
        let ended = proxy.and_then(|proxy| proxy.updates.end(update));
        ended
            .map(|id| Todo::Note(Event::End(id)))
            .into_iter()
            .collect()
    }

    /// An update lingers as one of many. Those are odd before this one ends.
    fn folded(&mut self, life: u64, update: Option<u64>, now_ms: u64) -> Vec<Todo> {
        let until_ms = now_ms.saturating_add(self.life_ms);
        let next = UpdateId(self.next);
        self.next += 1;
        let Some(proxy) = self.of.get_mut(&life) else {
            return Vec::new();
        };
        let others = proxy.updates.fold(next, (now_ms, until_ms));
        let ended = update.and_then(|update| proxy.updates.end(update));
        let mut todo = vec![Todo::Note(Event::Begin(others, None))];
        todo.extend(ended.map(|id| Todo::Note(Event::End(id))));
        todo
    }

    /// A proxy has listed all that is open: what it did not list is over.
    fn listed(&mut self, life: u64, from: Connection) -> Vec<Todo> {
        let mut todo = Vec::new();
        if let Some(proxy) = self.of.get_mut(&life) {
            let over = proxy.updates.listed().into_iter();
            todo.extend(over.map(|id| Todo::Note(Event::End(id))));
        }
        if let Some(before) = &mut self.before {
            before.missing.lives.remove(&life);
            if before.missing.are_all && before.missing.lives.is_empty() {
                todo.extend(self.end_before());
            }
        }
        let life_ms = self.life_ms;
        todo.push(Todo::Tell(from, ToProxy::Welcome { life_ms }));
        todo
    }

    /// Something may be open that this keeper does not know, and nobody will list it.
    fn doubt(&mut self, now_ms: u64) -> Vec<Todo> {
        let before = self.before.take().map(|before| before.missing);
        let mut missing = before.unwrap_or_default();
        missing.are_all = false;
        self.await_those(missing, now_ms)
    }

    fn await_those(&mut self, missing: Page, now_ms: u64) -> Vec<Todo> {
        self.before = Some(Before {
            missing,
            begun_ms: now_ms,
            until_ms: self.ends_unseen_ms(now_ms),
        });
        vec![Todo::Note(Event::Begin(OF_BEFORE, None))]
    }

    /// When all is over of which a proxy has an acknowledgement that this keeper does not hear of any more. Its request may not have left yet.
    fn ends_unseen_ms(&self, now_ms: u64) -> u64 {
        let longest_ms = self.life_ms.saturating_add(FORWARDED_WITHIN_MS);
        now_ms.saturating_add(longest_ms)
    }

    fn end_before(&mut self) -> Option<Todo> {
        self.before.take()?;
        Some(Todo::Note(Event::End(OF_BEFORE)))
    }

    /// A person knows that an update is over, and that nobody follows it.
    fn end_by_hand(&mut self, from: Connection, id: UpdateId) -> Vec<Todo> {
        let mut todo = Vec::new();
        let mut is_open = false;
        if id == OF_BEFORE {
            todo.extend(self.end_before());
        }
        for proxy in self.of.values_mut() {
            if let Some((id, update)) = proxy.updates.end_by_hand(id) {
                todo.push(Todo::Note(Event::End(id)));
                todo.extend(over(proxy.connection, update));
            }
            is_open |= proxy.updates.has_id(id);
        }
        self.forget_gone();
        let became = match (todo.is_empty(), is_open) {
            (false, _) => ByHand::Ended,
            (true, true) => ByHand::Followed,
            (true, false) => ByHand::NotOpen,
        };
        todo.push(Todo::Tell(from, ToProxy::ByHand(became)));
        todo
    }

    fn shown(&self, now_ms: u64) -> ShownUpdates {
        let before = self.before.iter().map(|before| ShownUpdate {
            id: OF_BEFORE.0,
            process: None,
            keys: ShownKeys::of(None),
            age_ms: now_ms.saturating_sub(before.begun_ms),
            left_ms: Some(before.until_ms.saturating_sub(now_ms)),
        });
        let of = self.of.values();
        let of = of.flat_map(|proxy| proxy.updates.shown(proxy.process, now_ms));
        let mut updates: Vec<ShownUpdate> = before.chain(of).collect();
        let open = updates.len();
        updates.sort_by_key(|update| (update.left_ms.is_none(), update.id));
        updates.truncate(SHOWN_MAX);
        ShownUpdates { open, updates }
    }

    /// A proxy that is gone and has nothing open cannot forward anything any more: it would need an acknowledgement.
    fn forget_gone(&mut self) {
        self.of
            .retain(|_, proxy| proxy.connection.is_some() || !proxy.updates.is_empty());
    }

    fn counted(&self) -> usize {
        self.of.values().map(|proxy| proxy.updates.len()).sum()
    }
}

/// The proxy of an update that has ended here learns it. It has no number for those that it does not count one by one.
fn over(connection: Option<Connection>, update: Option<u64>) -> Option<Todo> {
    let (connection, update) = connection.zip(update)?;
    Some(Todo::Tell(connection, ToProxy::Over { update }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_versions::{Ledger, Memory, Reader, Writer};

    const LIFE_MS: u64 = 1_000;
    /// How long what nobody follows stays open, if its request may not have left yet.
    const UNSEEN_MS: u64 = LIFE_MS + FORWARDED_WITHIN_MS;
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
        scene.passes(10 + UNSEEN_MS - 1);
        assert!(!scene.is_still("a"));
        assert!(scene.lives.page().lives.contains_key(&5));
        scene.passes(10 + UNSEEN_MS);
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
        scene.passes(UNSEEN_MS - 1);
        assert!(!scene.is_still("b"));
        scene.passes(UNSEEN_MS);
        assert!(scene.is_still("b"));
        // Nobody knows who there was: that all who come have listed is not enough.
        let mut scene = Scene::begin(Page::default());
        scene.joins(FIRST, 5, &[]);
        assert!(!scene.is_still("b") && !scene.lives.page().are_all);
        scene.passes(UNSEEN_MS);
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
    }

    fn all_there() -> Scene {
        let mut scene = Scene::with_nobody();
        for life in 1..=PROXIES_MAX as u64 {
            scene.joins(Connection(life), life, &[(1, "a")]);
        }
        scene
    }

    #[test]
    fn one_proxy_too_many_is_not_let_in() {
        let mut scene = all_there();
        let one_more = Connection(1_000);
        let hello = ToKeeper::Hello {
            life: 1_000,
            process: 1,
        };
        let todo = scene.lives.hear(one_more, hello, 0);
        assert_eq!(todo, [Todo::Close(one_more)]);
    }

    /// Proxies that die again and again keep no other out. What the one had open that is forgotten may be anything now.
    #[test]
    fn one_proxy_too_many_takes_the_place_of_one_that_is_gone() {
        let mut scene = all_there();
        scene.lives.lost(FIRST, 0);
        assert!(scene.is_still("b"));
        scene.joins(Connection(1_000), 1_000, &[]);
        assert_eq!(scene.lives.page().lives.len(), PROXIES_MAX);
        assert!(!scene.is_still("b") && !scene.lives.page().are_all);
        scene.passes(UNSEEN_MS);
        assert!(scene.is_still("b") && !scene.is_still("a"));
    }

    /// More linger than a proxy counts, and the keeper is full: what is folded stays odd.
    #[test]
    fn those_that_are_folded_are_odd_until_the_last_one_has_had_its_time() {
        let mut scene = Scene::with_nobody();
        scene.joins(FIRST, 5, &[(1, "a"), (2, "a")]);
        scene.hears(FIRST, ToKeeper::Fold { update: Some(1) }, 10);
        assert!(!scene.is_still("b"));
        scene.hears(FIRST, ToKeeper::Fold { update: Some(2) }, 20);
        scene.lives.lost(FIRST, 20);
        scene.passes(20 + LIFE_MS - 1);
        assert!(!scene.is_still("b") && scene.lives.page().lives.contains_key(&5));
        scene.passes(20 + LIFE_MS);
        assert!(scene.is_still("a") && scene.is_still("b"));
        // The next keeper learns of them by a list.
        scene.joins(FIRST, 5, &[]);
        scene.hears(FIRST, ToKeeper::Fold { update: None }, 2_000);
        assert!(!scene.is_still("b"));
    }

    #[test]
    fn a_person_ends_what_nobody_follows_and_nothing_else() {
        let left = Page {
            are_all: true,
            lives: BTreeMap::from([(9, 99)]),
        };
        let mut scene = Scene::begin(left);
        scene.joins(FIRST, 5, &[(1, "a"), (2, "b"), (3, "c")]);
        scene.hears(FIRST, ToKeeper::Linger { update: 2 }, 7);
        let person = Connection(8);
        let shown = |scene: &Scene| scene.lives.shown(10);
        let found: Vec<_> = shown(&scene)
            .updates
            .iter()
            .map(|of| (of.id, of.left_ms))
            .collect();
        let expected = [
            (0, Some(UNSEEN_MS - 10)),
            (2, Some(LIFE_MS - 3)),
            (1, None),
            (3, None),
        ];
        assert_eq!(found, expected);
        for (id, became) in [
            (0, ByHand::Ended),
            (0, ByHand::NotOpen),
            (1, ByHand::Followed),
            (2, ByHand::Ended),
            (2, ByHand::NotOpen),
            (77, ByHand::NotOpen),
        ] {
            scene.told.clear();
            scene.hears(person, ToKeeper::EndByHand { id }, 10);
            let last = scene.told.last();
            assert_eq!(last, Some(&(person, ToProxy::ByHand(became))), "{id}");
        }
        assert!(scene.is_still("b") && !scene.is_still("a") && !scene.is_still("c"));
        assert_eq!(shown(&scene).open, 2);
        // A person's command is no proxy.
        let todo = scene.lives.hear(person, ToKeeper::End { update: 1 }, 10);
        assert_eq!(todo, [Todo::Close(person)]);
    }
}
