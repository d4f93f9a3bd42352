//! One seed, from its beginning to its end.

use crate::cells::Who;
use crate::checker::Counts;
use crate::pages::Page;
use crate::plan::{Plan, Without};
use crate::time::At;
use crate::world::{Hooks, World};
use crate::{clients, faults, follower, keeper, proxy, watchdog};
use std::rc::Rc;

/// How long the world may take to be well again once nothing goes wrong.
const SETTLES_FOR_US: u64 = 45_000_000;

const HOOKS: Hooks = Hooks {
    log_grew: keeper::deliver_soon,
    committed: clients::committed,
    follower_lost: follower::lost,
    to_follower: follower::receive,
};

/// What is wanted beside a seed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The last lines of the run are kept.
    pub keeps_lines: bool,
    /// Something that the promise rests on is missing.
    pub without: Option<Without>,
    /// Requests are the source. Otherwise a database is.
    pub of_requests: bool,
}

/// What became of a seed.
#[derive(Clone, Debug)]
pub struct Story {
    /// The seed.
    pub seed: u64,
    /// What the checker found.
    pub failure: Option<String>,
    /// A hash of everything that happened.
    pub hash: u64,
    /// What was counted.
    pub counts: Counts,
    /// The last lines, if they were wanted.
    pub lines: Vec<String>,
}

/// Runs the world of a seed, with a database.
pub(crate) fn run_database(seed: u64, options: Options) -> Story {
    let plan = Plan::drawn(seed, options.without);
    let world = World::new(seed, plan, HOOKS, options.keeps_lines);
    begin(&world);
    clients::start(&world);
    faults::start(&world);
    go_on(&world, world.plan.works_for_us);
    if world.checker.borrow().failure().is_none() {
        settle(&world);
    }
    let (hash, lines) = world.digest();
    let checker = world.checker.borrow();
    Story {
        seed,
        failure: checker.failure().cloned(),
        hash,
        counts: checker.counts,
        lines,
    }
}

/// All processes start.
pub(crate) fn begin(world: &Rc<World>) {
    world.after(0, Who::Keeper, keeper::start);
    for number in 0..world.plan.watchdogs {
        world.after(0, Who::Watchdog(number), move |world| {
            watchdog::look(world, number)
        });
    }
    for number in 0..world.plan.followers {
        world.after(0, Who::Follower(number), move |world| {
            follower::start(world, number)
        });
    }
    for number in 0..world.plan.proxies {
        proxy::start(world, number);
    }
}

/// Until then, or until something is wrong.
pub(crate) fn go_on(world: &Rc<World>, us: u64) {
    let end = world.now().plus_us(us);
    while world.now() < end && world.checker.borrow().failure().is_none() {
        let next = world.now().plus_us(100_000).min(end);
        world.run_until(next);
    }
}

/// Nothing goes wrong any more: then hits come back.
fn settle(world: &Rc<World>) {
    world.is_over.set(true);
    world.slow_until.set(At::default());
    // A keeper that leaves takes its time.
    for us in [1, 5_000_000, 10_000_000, 15_000_000] {
        world.after(us, Who::Keeper, keeper::start);
    }
    for number in 0..world.plan.followers {
        world.after(1, Who::Follower(number), move |world| {
            follower::start(world, number)
        });
    }
    world.note("settles", &[]);
    go_on(world, SETTLES_FOR_US);
    if !world.keeper.is_live() {
        fail(world, "liveness: the keeper is not live");
    }
    for number in 0..world.plan.proxies {
        hits_come_back(world, number);
    }
    one_change_ends_one_page(world);
}

fn hits_come_back(world: &Rc<World>, number: usize) {
    let pages = Page::all(&world.plan);
    for round in 0..2 {
        let before = world.checker.borrow().counts;
        for page in &pages {
            clients::read(world, number, *page, |_| {});
        }
        go_on(world, 5_000_000);
        let now = world.checker.borrow().counts;
        let expected = pages.len() as u64;
        if now.answers - before.answers != expected {
            fail(world, "liveness: requests are not answered");
        }
        if round == 1 && now.hits - before.hits != expected {
            fail(world, "liveness: no hits, and nothing goes wrong");
        }
    }
}

/// One row changes. Pages without it are still hits, and many requests for one that shows it are one fill.
fn one_change_ends_one_page(world: &Rc<World>) {
    const REQUESTS: u64 = 12;
    clients::write(world, vec![0], None);
    go_on(world, 10_000_000);
    let before = world.checker.borrow().counts;
    let fills = before.kept + before.not_kept;
    clients::read(world, 0, Page::Item(2), |_| {});
    for _ in 0..REQUESTS {
        clients::read(world, 0, Page::Item(0), |_| {});
    }
    go_on(world, 5_000_000);
    let now = world.checker.borrow().counts;
    if now.updates == before.updates && now.answers != before.answers + REQUESTS + 1 {
        fail(world, "liveness: requests are not answered");
    }
    // A request may be alone, or its fill may fail.
    if now.kept + now.not_kept - fills > 1 {
        fail(
            world,
            "all at once: one page is filled by several, or another one with it",
        );
    }
}

fn fail(world: &Rc<World>, failure: &str) {
    world.checker.borrow_mut().fail(failure.to_owned());
}
