//! The proxies: their lives, their links to the keeper, unsafe requests, and requests for pages.

use super::application;
use super::keeper;
use super::proxy_process::{Given, Post, ProxyProcess, Request};
use super::world::{Link, Side, World};
use crate::cells::Who;
use crate::pages::{self, Answer, Page};
use std::rc::Rc;
use std::sync::Arc;
use thorp_versions::Versions;
use thorp_web::{Filling, Next, ToKeeper, ToProxy, counts, ends_update, may_leave};

/// How often it looks for a new table, and for a keeper.
const LOOK_EVERY_US: u64 = 100_000;
const AGAIN_AFTER_US: u64 = 50_000;

/// How long a request waits for its acknowledgement.
const BEGUN_WITHIN_US: u64 = 4_000_000;

/// What it takes a keeper to say, before its first word.
const LIFE_MS: u64 = 300_000;

pub(super) fn start(world: &mut World, number: usize) {
    if world.proxies[number].is_some() {
        return;
    }
    let life = world.number();
    world.note("proxy starts", &[number as u64, life]);
    world.proxies[number] = Some(ProxyProcess::new(life, LIFE_MS));
    look(world, (number, life));
    connect(world, (number, life));
}

pub(super) fn dies(world: &mut World, number: usize) {
    let Some(process) = world.proxies[number].take() else {
        return;
    };
    world.note("proxy dies", &[number as u64, process.life]);
    world.wake(Who::Proxy(number));
    if let Some(link) = process.link {
        world.close_link(link);
        world.send(link, Side::Keeper, move |world| {
            keeper::hear(world, link, None)
        });
    }
    for (request, _) in process.waiting {
        (request.then)(world, None);
    }
    for post in process.posts.into_values() {
        (world.hooks.write_again)(world, post.writer);
    }
}

fn process(world: &mut World, (number, life): (usize, u64)) -> Option<&mut ProxyProcess<World>> {
    let process = world.proxies[number].as_mut();
    process.filter(|process| process.life == life)
}

// --- The keeper ---

/// The table that the file names, if its keeper lives.
fn look(world: &mut World, of: (usize, u64)) {
    if process(world, of).is_none() {
        return;
    }
    present(world, of);
    world.after(LOOK_EVERY_US, Who::Proxy(of.0), move |world| {
        look(world, of)
    });
}

/// The generation of the table that is read now. None: that of no keeper that lives.
fn present(world: &mut World, of: (usize, u64)) -> Option<u64> {
    world.keeper.as_ref()?;
    let named = Rc::clone(world.named.as_ref()?);
    let process = process(world, of)?;
    process.follows.read(&named);
    Some(process.follows.evidence().generation)
}

/// Connects to the keeper if there is one. The list comes first.
fn connect(world: &mut World, of: (usize, u64)) {
    let (number, life) = of;
    let now_ms = world.now_ms();
    let keeper = world.keeper.as_ref().filter(|keeper| keeper.listens);
    let keeper_life = keeper.map(|keeper| keeper.life);
    let Some(process) = process(world, of).filter(|process| process.link.is_none()) else {
        return;
    };
    let Some(keeper_life) = keeper_life else {
        return world.after(AGAIN_AFTER_US, Who::Proxy(number), move |world| {
            connect(world, of)
        });
    };
    let list = process.open.list(now_ms, process.life_ms);
    let link = world.open_link(Link {
        proxy: number,
        proxy_life: life,
        keeper_life,
        is_closed: false,
    });
    if let Some(process) = self::process(world, of) {
        process.link = Some(link);
    }
    let hello = ToKeeper::Hello {
        life,
        process: number as u32,
    };
    tell(world, of, Some(hello));
    for said in list.into_iter().chain([ToKeeper::Listed]) {
        tell(world, of, Some(said));
    }
}

/// Without a link, the next list says it.
fn tell(world: &mut World, of: (usize, u64), said: Option<ToKeeper>) {
    let link = process(world, of).and_then(|process| process.link);
    let Some((link, said)) = link.zip(said) else {
        return;
    };
    if world.link(link).is_some_and(|link| !link.is_closed) {
        world.send(link, Side::Keeper, move |world| {
            keeper::hear(world, link, Some(said));
        });
    }
}

/// A link has ended.
pub(super) fn lost(world: &mut World, number: u64) {
    let Some(link) = world.link(number) else {
        return;
    };
    let of = (link.proxy, link.proxy_life);
    let Some(process) = process(world, of).filter(|process| process.link == Some(number)) else {
        return;
    };
    process.link = None;
    world.after(AGAIN_AFTER_US, Who::Proxy(of.0), move |world| {
        connect(world, of)
    });
}

/// A message of the keeper.
pub(super) fn hear(world: &mut World, number: u64, message: ToProxy) {
    let Some(link) = world.link(number) else {
        return;
    };
    let of = (link.proxy, link.proxy_life);
    let Some(process) = process(world, of).filter(|process| process.link == Some(number)) else {
        return;
    };
    match message {
        ToProxy::Welcome { life_ms } => process.life_ms = life_ms,
        ToProxy::Begun { update, generation } => {
            process.open.begun(update, generation);
            acknowledged(world, of, update, generation);
        }
        ToProxy::Refused { update } => {
            process.open.refused(update);
            give_up(world, of, update);
        }
        ToProxy::Over { update } => process.open.over(update),
        _ => {}
    }
}

// --- Unsafe requests ---

/// An unsafe request arrives.
pub(super) fn post(world: &mut World, number: usize, post: Post) {
    let is_named = !world.fails(world.plan.common.unnamed_percent);
    let keys = is_named.then(|| pages::keys(&post.rows));
    let writer = post.writer;
    let Some(process) = &mut world.proxies[number] else {
        return (world.hooks.write_again)(world, writer);
    };
    let of = (number, process.life);
    let Some((update, begin, _)) = process.open.begin(keys) else {
        return (world.hooks.write_again)(world, writer);
    };
    process.posts.insert(update, post);
    tell(world, of, Some(begin));
    world.after(BEGUN_WITHIN_US, Who::Proxy(number), move |world| {
        let post = process_of(world, of, update);
        if post.is_some_and(|post| !post.is_forwarded) {
            give_up(world, of, update);
        }
    });
}

fn process_of(world: &mut World, of: (usize, u64), update: u64) -> Option<&mut Post> {
    process(world, of)?.posts.get_mut(&update)
}

/// It is not sent on.
fn give_up(world: &mut World, of: (usize, u64), update: u64) {
    let Some(process) = process(world, of) else {
        return;
    };
    let Some(post) = process.posts.remove(&update) else {
        return;
    };
    let end = process.open.end(update);
    tell(world, of, end);
    (world.hooks.write_again)(world, post.writer);
}

fn acknowledged(world: &mut World, of: (usize, u64), update: u64, generation: u64) {
    if process_of(world, of, update).is_none_or(|post| post.is_forwarded) {
        return;
    }
    if !counts(generation, present(world, of)) {
        return give_up(world, of, update);
    }
    // The process may hang between the two.
    let us = world.nearby();
    world.after(us, Who::Proxy(of.0), move |world| {
        forward(world, of, update)
    });
}

fn forward(world: &mut World, of: (usize, u64), update: u64) {
    let now_ms = world.now_ms();
    let Some(post) = process_of(world, of, update).filter(|post| !post.is_forwarded) else {
        return;
    };
    if !may_leave(post.begun_ms, now_ms) {
        return give_up(world, of, update);
    }
    post.is_forwarded = true;
    let post = post.clone();
    world.note("forwarded", &[post.value]);
    let us = world.nearby();
    world.after(us, Who::Nobody, move |world| {
        application::post(world, of, update, post);
    });
}

/// The application has answered, or has closed the connection.
pub(super) fn answered(world: &mut World, of: (usize, u64), update: u64, status: Option<u16>) {
    let now_ms = world.now_ms();
    let Some(process) = process(world, of) else {
        return;
    };
    let Some(post) = process.posts.remove(&update) else {
        return;
    };
    let said = match status.is_some_and(ends_update) {
        true => process.open.end(update),
        false => process.open.linger(update, now_ms),
    };
    tell(world, of, said);
    if status == Some(200) {
        world.note("acknowledged", &[post.value]);
        world.checker.counts.updates += 1;
        for row in &post.rows {
            world.checker.learn(*row, post.value);
        }
    }
    (world.hooks.write_again)(world, post.writer);
}

// --- Pages ---

/// A request for a page arrives.
pub(super) fn request(
    world: &mut World,
    number: usize,
    page: Page,
    then: impl FnOnce(&mut World, Given) + 'static,
) {
    let Some(process) = &world.proxies[number] else {
        return then(world, None);
    };
    let of = (number, process.life);
    let request = Request {
        page,
        asked: Some(process.cache.arrive(page)),
        then: Box::new(then),
    };
    go_on(world, of, request);
}

/// A hit, or a fill, or the fill of another.
fn go_on(world: &mut World, of: (usize, u64), request: Request<World>) {
    let now_ms = world.now_ms();
    let Some(process) = process(world, of) else {
        return (request.then)(world, None);
    };
    let Some(asked) = &request.asked else {
        return;
    };
    match process.cache.step(asked, || now_ms) {
        Next::Hit(answer) => {
            world.checker.counts.hits += 1;
            give(world, request, answer, "a hit");
        }
        Next::Wait(waiting) => process.waiting.push((request, waiting)),
        Next::Fill(filling) => fill(world, of, request, filling),
    }
}

fn fill(
    world: &mut World,
    of: (usize, u64),
    request: Request<World>,
    filling: Filling<Page, Answer>,
) {
    let us = world.nearby();
    world.after(us, Who::Nobody, move |world| {
        let answer = application::read(world, request.page);
        let us = world.range(50, 6_000);
        world.after(us, Who::Proxy(of.0), move |world| {
            landed(world, of, request, (filling, answer));
            wake_waiting(world, of);
        });
    });
}

fn landed(
    world: &mut World,
    of: (usize, u64),
    request: Request<World>,
    (filling, answer): (Filling<Page, Answer>, Arc<Answer>),
) {
    let now_ms = world.now_ms();
    let dependencies = request.page.dependencies();
    let Some(process) = process(world, of) else {
        return (request.then)(world, None);
    };
    let landed = process
        .cache
        .land(filling, &answer, dependencies, || now_ms);
    world.checker.filled(landed.is_ok());
    give(world, request, answer, "a fill");
}

/// Fills are over: those who wait for them go on.
fn wake_waiting(world: &mut World, of: (usize, u64)) {
    let Some(process) = process(world, of) else {
        return;
    };
    let waiting = std::mem::take(&mut process.waiting);
    let (over, still): (Vec<_>, Vec<_>) = waiting
        .into_iter()
        .partition(|(_, waiting)| waiting.is_over());
    process.waiting = still;
    for (mut request, waiting) in over {
        let Some(process) = self::process(world, of) else {
            return;
        };
        let asked = request.asked.as_mut();
        let answer = asked.and_then(|asked| process.cache.waited(asked, &waiting));
        match answer {
            Some(answer) => {
                world.checker.counts.joined += 1;
                give(world, request, answer, "the fill of another");
            }
            None => world.after(1, Who::Proxy(of.0), move |world| go_on(world, of, request)),
        }
    }
}

fn give(world: &mut World, request: Request<World>, answer: Arc<Answer>, how: &'static str) {
    let us = world.nearby();
    world.after(us, Who::Nobody, move |world| {
        (request.then)(world, Some((answer, how)));
    });
}
