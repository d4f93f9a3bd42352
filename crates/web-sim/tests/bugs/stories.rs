//! The traps as stories: each is a schedule on the code that ships, and what must not come of it.

use crate::table::Table;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use thorp_web_sim::{
    Asked, Book, Broadcast, Bug, Cache, Connection, Deed, Dependencies, Event, Filling, Follower,
    FollowerId, HomeLedger, Keeper, Ledger, Lives, Names, OpenUpdates, Place, Reader, Step, Store,
    ToFollower, ToKeeper, Todo, UpdateId, Waiting, Weight, Word, Writer, counts, may_leave,
};

type Told = Result<(), String>;

/// Its name, the bugs that it shows, and its schedule.
type Tale = (&'static str, &'static [Bug], fn() -> Told);

/// All stories.
pub(crate) const STORIES: &[Tale] = &[
    ("refill race", &[Bug::EvidenceAfterAnswer], refill_race),
    (
        "even at acknowledgement",
        &[Bug::EvenAtBegin],
        even_at_acknowledgement,
    ),
    (
        "two updates, one word",
        &[Bug::FirstEndMakesEven],
        two_updates,
    ),
    (
        "sequence before words",
        &[Bug::SequenceBeforeWords],
        sequence_before_words,
    ),
    ("joined onto the past", &[Bug::OlderFillShared], joined),
    ("learned late", &[Bug::LearnedNotChecked], learned_late),
    (
        "a late follower",
        &[Bug::YesToLateFollower, Bug::StruckAtOnce],
        late_follower,
    ),
    (
        "a follower wakes",
        &[Bug::LeaseFromAnswer],
        a_follower_wakes,
    ),
    (
        "everything has two meanings",
        &[Bug::EverythingOnlyUnnamed],
        everything,
    ),
    ("restart during a check", &[Bug::GenerationFirst], restart),
    (
        "one load sees no beat",
        &[Bug::ShortCutWithoutBeat, Bug::BeatNotLookedAt],
        no_beat,
    ),
    ("odd without a number", &[Bug::ShortCutBySequence], a_vote),
    ("several homes", &[Bug::VoteLeavesEven], a_home_votes),
    (
        "admitted, then joined",
        &[Bug::JoinedAfterCheck],
        admitted_then_joined,
    ),
    ("a watchdog wakes", &[Bug::AnyNameLetGo], a_watchdog_wakes),
    (
        "acknowledged by the dead",
        &[Bug::DeadAcknowledges],
        acknowledged_by_the_dead,
    ),
    ("a proxy wakes late", &[Bug::LeavesLate], a_proxy_wakes_late),
];

const NOW_MS: u64 = 10_000;
const LATE_MS: u64 = 20_000;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Page;

#[derive(PartialEq, Eq, Debug)]
struct Shown(u64);

impl Weight for Page {
    fn bytes(&self) -> u64 {
        1
    }
}

impl Weight for Shown {
    fn bytes(&self) -> u64 {
        1
    }
}

/// A keeper and a proxy. The row is the database's.
struct Shop {
    table: Table,
    ledger: Ledger<Table>,
    cache: Rc<Cache<Page, Shown, Reader<Table>>>,
}

type Fill = (Asked<Page>, Filling<Page, Shown>);

impl Shop {
    fn open() -> Shop {
        let table = Table::default();
        let mut ledger = Ledger::new(Writer::new(table.clone()));
        ledger.restart(1);
        ledger.handle(Event::Waits(NOW_MS));
        let cache = Rc::new(Cache::new(Reader::new(table.clone()), 1 << 16));
        Shop {
            table,
            ledger,
            cache,
        }
    }

    fn begin(&mut self, id: u64, keys: &[&str]) {
        let keys = keys.iter().map(|key| Place::of(key)).collect();
        self.ledger.handle(Event::Begin(UpdateId(id), Some(keys)));
    }

    fn end(&mut self, id: u64) {
        self.ledger.handle(Event::End(UpdateId(id)));
    }

    fn fill(&self) -> Fill {
        let asked = self.cache.arrive(Page);
        match self.cache.step(&asked, || NOW_MS) {
            thorp_web_sim::Next::Fill(filling) => (asked, filling),
            other => panic!("{other:?}"),
        }
    }

    /// The fill's answer has come. Whether it is an entry.
    fn land(&self, (_, filling): Fill, shown: u64, rests: Dependencies) -> bool {
        let shown = Arc::new(Shown(shown));
        self.cache.land(filling, &shown, rests, || NOW_MS).is_ok()
    }

    /// What a request gets that arrives then, if it is a hit.
    fn hit(&self, now_ms: u64) -> Option<u64> {
        hit(&self.cache, now_ms)
    }
}

fn hit(cache: &Cache<Page, Shown, Reader<Table>>, now_ms: u64) -> Option<u64> {
    let asked = cache.arrive(Page);
    match cache.step(&asked, || now_ms) {
        thorp_web_sim::Next::Hit(answer) => Some(answer.0),
        _ => None,
    }
}

fn row() -> Dependencies {
    Dependencies {
        known: vec![Place::of("row")],
        learned: Vec::new(),
    }
}

fn demand(holds: bool, wrong: &str) -> Told {
    match holds {
        true => Ok(()),
        false => Err(wrong.to_owned()),
    }
}

fn refill_race() -> Told {
    let mut shop = Shop::open();
    let old = shop.fill();
    shop.begin(1, &["row"]);
    shop.end(1);
    demand(!shop.land(old, 0, row()), "the old row is an entry")
}

fn even_at_acknowledgement() -> Told {
    let mut shop = Shop::open();
    shop.begin(1, &["row"]);
    let old = shop.fill();
    demand(!shop.land(old, 0, row()), "the old row is an entry")
}

fn two_updates() -> Told {
    let mut shop = Shop::open();
    shop.begin(1, &["row"]);
    shop.begin(2, &["row"]);
    shop.end(1);
    let without_the_second = shop.fill();
    demand(
        !shop.land(without_the_second, 1, row()),
        "a row without an open update is an entry",
    )
}

fn sequence_before_words() -> Told {
    let mut shop = Shop::open();
    let first = shop.fill();
    shop.land(first, 0, row());
    // Sequence, stores, then words: the check comes after the fourth of these stores and loads.
    let cache = Rc::clone(&shop.cache);
    shop.table.hold_before(4, move || {
        hit(&cache, NOW_MS);
    });
    shop.begin(1, &["row"]);
    demand(
        shop.hit(NOW_MS).is_none(),
        "a hit after the acknowledgement",
    )
}

fn joined() -> Told {
    let mut shop = Shop::open();
    let old = shop.fill();
    shop.begin(1, &["row"]);
    shop.end(1);
    let mut asked = shop.cache.arrive(Page);
    let waiting: Waiting<Shown> = match shop.cache.step(&asked, || NOW_MS) {
        thorp_web_sim::Next::Wait(waiting) => waiting,
        other => panic!("{other:?}"),
    };
    shop.land(old, 0, row());
    let shared = shop.cache.waited(&mut asked, &waiting);
    demand(shared.is_none(), "a request shares an answer of before it")
}

fn learned_late() -> Told {
    let mut shop = Shop::open();
    let old = shop.fill();
    shop.begin(1, &["other"]);
    shop.end(1);
    let rests = Dependencies {
        learned: vec![Place::of("other")],
        ..row()
    };
    demand(!shop.land(old, 0, rests), "the old row is an entry")
}

fn late_follower() -> Told {
    let id = FollowerId(1);
    let mut broadcast = Broadcast::new(0, false);
    broadcast.join(id, &Keeper::new(), 0);
    broadcast.acknowledged(id, Step(0), 0);
    broadcast.stored(Store::default(), 100);
    broadcast.asked(id, 7);
    let answer = broadcast.answer(id, 50, 200);
    demand(answer.is_none(), "a late follower is answered yes")?;
    demand(
        broadcast.strike(4_000).is_empty(),
        "a follower is struck while it serves hits",
    )
}

fn a_follower_wakes() -> Told {
    let table = Table::default();
    let mut follower = Follower::new(Writer::new(table.clone()));
    follower.handle(ToFollower::Begin(Step(1), 1, Vec::new()), 1, NOW_MS);
    let reader = Reader::new(table);
    let evidence = reader.evidence();
    // It asks, and hangs until it has been struck. The answer has come meanwhile.
    follower.handle(ToFollower::Waits(NOW_MS, 0), 2, LATE_MS);
    demand(
        reader.check(evidence, &[], LATE_MS).is_err(),
        "a follower that was struck serves a hit",
    )
}

fn everything() -> Told {
    let mut shop = Shop::open();
    let rests = || Dependencies {
        known: vec![Place::EVERYTHING],
        learned: Vec::new(),
    };
    let first = shop.fill();
    shop.land(first, 0, rests());
    shop.begin(1, &["row"]);
    demand(shop.hit(NOW_MS).is_none(), "an entry without a list is old")
}

fn restart() -> Told {
    let shop = Shop::open();
    let first = shop.fill();
    shop.land(first, 0, row());
    // The keeper hangs, the database goes on without it, and the row changes. Then a request comes. Its short cut loads stores, beat and
    // generation. Before the third load the keeper starts again.
    let ledger = Rc::new(RefCell::new(shop.ledger));
    let keeper = Rc::clone(&ledger);
    shop.table.hold_before(3, move || {
        let mut keeper = keeper.borrow_mut();
        keeper.restart(2);
        keeper.handle(Event::Waits(LATE_MS));
    });
    demand(
        hit(&shop.cache, LATE_MS).is_none(),
        "the beat of another life serves an entry",
    )
}

fn no_beat() -> Told {
    let shop = Shop::open();
    let first = shop.fill();
    shop.land(first, 0, row());
    demand(shop.hit(NOW_MS) == Some(0), "no hit beside a young beat")?;
    demand(shop.hit(LATE_MS).is_none(), "a hit without a young beat")
}

fn a_vote() -> Told {
    let table = Table::default();
    let mut home = Writer::new(table.clone());
    let position = home.restart(1, &[]);
    home.beat(NOW_MS);
    let reader = Reader::new(table);
    let (evidence, keys) = (reader.evidence(), [Place::of("row")]);
    let checked = reader.check(evidence, &keys, NOW_MS);
    let passed = checked.map_err(|denied| format!("{denied:?}"))?;
    // The home votes. Its position is as before.
    home.store(&Store {
        words: vec![(keys[0], Word::odd(position))],
        sequence: position,
    });
    demand(
        !reader.still(passed, evidence, NOW_MS),
        "a hit beside an open vote",
    )
}

fn a_home_votes() -> Told {
    let table = Table::default();
    let mut home = HomeLedger::new(Writer::new(table.clone()));
    home.begin(1, 5, []);
    home.beat(NOW_MS);
    let reader = Reader::new(table);
    let (evidence, keys) = (reader.evidence(), [Place::of("row")]);
    let checked = reader.check(evidence, &keys, NOW_MS);
    checked.map_err(|denied| format!("{denied:?}"))?;
    // The home votes. Its member may show the new row before the home knows the outcome.
    home.vote(1, Some(keys.to_vec()));
    demand(
        reader.check(evidence, &keys, NOW_MS).is_err(),
        "a hit of what a home has voted to change",
    )
}

fn admitted_then_joined() -> Told {
    let shop = Shop::open();
    let old = shop.fill();
    // Behind the word of the row, before the beat: an update is acknowledged, and a request comes.
    let ledger = Rc::new(RefCell::new(shop.ledger));
    let cache = Rc::clone(&shop.cache);
    let came = Rc::new(RefCell::new(None));
    let comes = Rc::clone(&came);
    shop.table.hold_before(5, move || {
        let keys = Some(vec![Place::of("row")]);
        ledger.borrow_mut().handle(Event::Begin(UpdateId(1), keys));
        let asked = cache.arrive(Page);
        if let thorp_web_sim::Next::Wait(waiting) = cache.step(&asked, || NOW_MS) {
            comes.replace(Some((asked, waiting)));
        }
    });
    let shown = Arc::new(Shown(0));
    // Whether it is kept is not the question here.
    let _ = shop.cache.land(old.1, &shown, row(), || NOW_MS);
    let came = came.take();
    let shared = came.and_then(|(mut asked, waiting)| shop.cache.waited(&mut asked, &waiting));
    demand(shared.is_none(), "a request shares an answer of before it")
}

fn a_watchdog_wakes() -> Told {
    let deed = Deed::LetGo(String::new());
    demand(
        !deed.replaces().contains(&Names::Keeper),
        "a watchdog that wakes lets go a keeper that beats",
    )
}

/// What a keeper does that begins now, and that waits for one proxy of before.
fn keeper_of_requests(table: &Table, life: u64) -> (Ledger<Table>, Lives) {
    let mut ledger = Ledger::new(Writer::new(table.clone()));
    ledger.restart(NEW);
    ledger.handle(Event::Waits(NOW_MS));
    let left = Book {
        are_all: true,
        lives: std::iter::once((life, 1)).collect(),
    };
    let (lives, todo) = Lives::begin(NEW, REQUEST_MS, left, NOW_MS);
    note(&mut ledger, todo);
    (ledger, lives)
}

fn note(ledger: &mut Ledger<Table>, todo: Vec<Todo>) {
    for todo in todo {
        if let Todo::Note(event) = todo {
            ledger.handle(event);
        }
    }
}

/// The generations of two keepers, and the longest time that the application works on a request.
const OLD: u64 = 7;
const NEW: u64 = 8;
const REQUEST_MS: u64 = 1_000;

/// Trap W32. A proxy lists to a new keeper, and then the old one's acknowledgement arrives. Each of the two guards is enough.
fn acknowledged_by_the_dead() -> Told {
    const LIFE: u64 = 5;
    let table = Table::default();
    let mut proxy = OpenUpdates::default();
    let keys = Some(vec![String::from("a")]);
    let (update, ..) = proxy.begin(keys).ok_or("it has room")?;
    let (mut ledger, mut lives) = keeper_of_requests(&table, LIFE);
    let (life, process) = (LIFE, 1);
    let said = [ToKeeper::Hello { life, process }].into_iter();
    let said = said.chain(proxy.list(NOW_MS, REQUEST_MS));
    for said in said.chain([ToKeeper::Listed]) {
        let todo = lives.hear(Connection(1), said, NOW_MS);
        note(&mut ledger, todo);
    }
    proxy.begun(update, OLD);
    let is_forwarded = counts(OLD, Some(NEW));
    // A fill reads the old row.
    let reader = Reader::new(table);
    let evidence = reader.evidence();
    let is_kept = reader.check(evidence, &[Place::of("a")], NOW_MS).is_ok();
    match is_forwarded && is_kept {
        true => Err(String::from(
            "an entry of before a change that nobody knows",
        )),
        false => Ok(()),
    }
}

/// Trap W32. A proxy is stopped between an acknowledgement and the request. The next keeper has waited for it as long as it has to.
fn a_proxy_wakes_late() -> Told {
    let table = Table::default();
    let (mut ledger, mut lives) = keeper_of_requests(&table, 5);
    let reader = Reader::new(table);
    // It waits from its start on, and the acknowledgement is older than that.
    let mut now_ms = NOW_MS;
    let is_kept = |now_ms: u64| {
        let evidence = reader.evidence();
        reader.check(evidence, &[Place::of("a")], now_ms).is_ok()
    };
    while !is_kept(now_ms) {
        if now_ms > NOW_MS + 60_000 {
            return Err(String::from("it waits for ever"));
        }
        now_ms += 250;
        ledger.handle(Event::Waits(now_ms));
        let todo = lives.pass_time(now_ms);
        note(&mut ledger, todo);
    }
    // A request that left then is at work still.
    match may_leave(NOW_MS, now_ms - REQUEST_MS + 1) {
        true => Err(String::from(
            "an entry of before a change that nobody knows",
        )),
        false => Ok(()),
    }
}
