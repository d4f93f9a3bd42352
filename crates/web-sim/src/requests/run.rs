//! One seed: who writes and reads, what goes wrong, and that hits come back.

use super::plan::{Fault, Plan};
use super::proxy_process::Post;
use super::world::{Hooks, World};
use super::{keeper, proxy};
use crate::cells::Who;
use crate::database::Row;
use crate::pages::Page;
use crate::run::{Options, Story};

/// How long a process that is gone may be away.
const AWAY_US_MAX: u64 = 1_200_000;

/// How long a process may hang.
const HANGS_US_MAX: u64 = 14_000_000;

/// How long the world may take to be well again: until nothing hangs, and what is open has had its time.
const SETTLES_FOR_US: u64 = HANGS_US_MAX + 20_000_000;

const HOOKS: Hooks = Hooks {
    answered: proxy::answered,
    to_proxy: proxy::hear,
    lost: proxy::lost,
    write_again,
};

/// Runs the world of a seed with requests as the source.
pub(crate) fn run(seed: u64, options: Options) -> Story {
    let plan = Plan::drawn(seed);
    let mut world = World::new(seed, plan, HOOKS, options.keeps_lines);
    let world = &mut world;
    begin(world);
    go_on(world, world.plan.works_for_us);
    if world.checker.failure().is_none() {
        settle(world);
    }
    let (hash, lines) = world.digest();
    Story {
        seed,
        failure: world.checker.failure().cloned(),
        hash,
        counts: world.checker.counts,
        lines,
    }
}

fn begin(world: &mut World) {
    keeper::start(world);
    for number in 0..world.plan.proxies {
        proxy::start(world, number);
    }
    for writer in 0..world.plan.common.writers {
        write_again(world, Some(writer));
    }
    for _ in 0..world.plan.common.readers {
        read_again(world);
    }
    look_again(world);
    fail_again(world);
}

/// Until then, or until something is wrong.
fn go_on(world: &mut World, us: u64) {
    let end = world.now().plus_us(us);
    while world.now() < end && world.checker.failure().is_none() {
        let next = world.now().plus_us(100_000).min(end);
        world.run_until(next);
    }
}

// --- Clients ---

/// Each row has one writer, and its values only rise.
fn write_again(world: &mut World, writer: Option<usize>) {
    let Some(writer) = writer else {
        return;
    };
    let most = 2 * world.plan.common.write_every_us;
    let us = world.range(1, most);
    world.after(us, Who::Nobody, move |world| {
        if world.is_over {
            return;
        }
        let Plan { common, .. } = &world.plan;
        let (rows, writers) = (common.rows, common.writers);
        let own = (0..rows).filter(|row| row % writers == writer);
        let mut own: Vec<Row> = own.collect();
        let left = world.index(own.len()) + 1;
        own.truncate(left);
        write(world, own, Some(writer));
    });
}

fn write(world: &mut World, rows: Vec<Row>, writer: Option<usize>) {
    world.last_value += 1;
    let number = world.index(world.plan.proxies);
    let post = Post {
        rows,
        value: world.last_value,
        begun_ms: world.now_ms(),
        is_forwarded: false,
        writer,
    };
    let us = world.nearby();
    world.after(us, Who::Proxy(number), move |world| {
        let post = Post {
            begun_ms: world.now_ms(),
            ..post
        };
        proxy::post(world, number, post);
    });
}

fn read_again(world: &mut World) {
    let most = 2 * world.plan.common.read_every_us;
    let us = world.range(1, most);
    world.after(us, Who::Nobody, |world| {
        if world.is_over {
            return;
        }
        let pages = Page::all(&world.plan.common);
        let page = pages[world.index(pages.len())];
        let number = world.index(world.plan.proxies);
        read(world, number, page, read_again);
    });
}

/// Somebody looks into the database, past all caches.
fn look_again(world: &mut World) {
    let most = 4 * world.plan.common.read_every_us;
    let us = world.range(1, most);
    world.after(us, Who::Nobody, |world| {
        if world.is_over {
            return;
        }
        let row = world.index(world.plan.common.rows);
        let value = world.rows[row];
        world.checker.learn(row, value);
        look_again(world);
    });
}

/// Requests a page.
fn read(world: &mut World, number: usize, page: Page, then: impl FnOnce(&mut World) + 'static) {
    let least = world.checker.least(&page.rows(&world.plan.common));
    let us = world.nearby();
    world.after(us, Who::Proxy(number), move |world| {
        proxy::request(world, number, page, move |world, answered| {
            if let Some((answer, how)) = answered {
                let values: Vec<u64> = answer.0.iter().map(|(_, value)| *value).collect();
                world.note(how, &values);
                let how = format!("{how} of proxy {number} for {page:?}");
                let now = world.now();
                world.checker.answered(now, &how, &least, &answer);
            }
            then(world);
        });
    });
}

// --- Faults ---

fn fail_again(world: &mut World) {
    let most = 2 * world.plan.fault_every_us;
    let us = world.range(1, most);
    world.after(us, Who::Nobody, |world| {
        if world.is_over || world.plan.faults.is_empty() {
            return;
        }
        let which = world.index(world.plan.faults.len());
        let fault = world.plan.faults[which];
        happens(world, fault);
        fail_again(world);
    });
}

fn happens(world: &mut World, fault: Fault) {
    let number = world.index(world.plan.proxies);
    match fault {
        Fault::KeeperDies => keeper_dies(world, false),
        Fault::KeeperLeaves => keeper_dies(world, true),
        Fault::KeeperHangs => hangs(world, Who::Keeper),
        Fault::ProxyHangs => hangs(world, Who::Proxy(number)),
        Fault::ProxyDies => proxy_dies(world, number),
        Fault::LinkBreaks => {
            let links = world.open_links();
            if !links.is_empty() {
                let (link, _) = links[world.index(links.len())];
                keeper::break_link(world, link);
            }
        }
        Fault::AllDie => {
            for number in 0..world.plan.proxies {
                proxy_dies(world, number);
            }
            keeper_dies(world, false);
        }
    }
}

fn hangs(world: &mut World, who: Who) {
    let us = world.range(1_000, HANGS_US_MAX);
    world.note("hangs", &[us]);
    world.pause(who, us);
}

fn keeper_dies(world: &mut World, in_order: bool) {
    keeper::dies(world, in_order);
    let us = world.range(1_000, AWAY_US_MAX);
    world.after(us, Who::Nobody, keeper::start);
}

fn proxy_dies(world: &mut World, number: usize) {
    proxy::dies(world, number);
    let us = world.range(1_000, AWAY_US_MAX);
    world.after(us, Who::Nobody, move |world| proxy::start(world, number));
}

// --- The end ---

/// Nothing goes wrong any more: then hits come back.
fn settle(world: &mut World) {
    world.is_over = true;
    world.note("settles", &[]);
    go_on(world, SETTLES_FOR_US);
    for number in 0..world.plan.proxies {
        hits_come_back(world, number);
    }
}

fn hits_come_back(world: &mut World, number: usize) {
    let pages = Page::all(&world.plan.common);
    for round in 0..2 {
        let before = world.checker.counts;
        for page in &pages {
            read(world, number, *page, |_| {});
        }
        go_on(world, 5_000_000);
        let now = world.checker.counts;
        let expected = pages.len() as u64;
        if now.answers - before.answers != expected {
            world
                .checker
                .fail(String::from("liveness: requests are not answered"));
        }
        if round == 1 && now.hits - before.hits != expected {
            let failure = "liveness: no hits, and nothing goes wrong";
            world.checker.fail(failure.to_owned());
        }
    }
}
