//! The proxies. Which answer a request gets is decided in the code that ships; here are its messages, and how long they take.

use crate::cells::{Memory, Seen, Who};
use crate::origin;
use crate::pages::{Answer, Page};
use crate::proxy_host::{self, Given};
use crate::world::World;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use thorp_versions::Reader;
use thorp_web::{Cache, Filling, Next};

/// No entry is evicted.
const BYTES: u64 = 1 << 20;

/// How often a fill asks the origin.
const TRIES: usize = 2;

type Process = proxy_host::Process<World>;
type Request = proxy_host::Request<World>;

/// Starts a proxy with an empty cache.
pub(crate) fn start(world: &Rc<World>, number: usize) {
    let host = &world.proxies[number];
    if host.process.borrow().is_some() {
        return;
    }
    world.note("proxy starts", &[number as u64]);
    let is_alive = Rc::new(Cell::new(true));
    let memory: &Rc<Memory> = world.table_of(number);
    let seen = Seen::new(memory, world, host.who(), &is_alive);
    host.process.replace(Some(Rc::new(Process {
        number,
        is_alive,
        cache: Cache::new(Reader::new(seen), BYTES),
        waiting: RefCell::default(),
    })));
}

/// A proxy dies. Its connections break.
pub(crate) fn kill(world: &Rc<World>, number: usize) {
    let host = &world.proxies[number];
    let Some(process) = host.process.take() else {
        return;
    };
    world.note("proxy dies", &[number as u64]);
    process.is_alive.set(false);
    world.wake(host.who());
    for (request, _) in process.waiting.take() {
        (request.then)(world, None);
    }
}

/// A request arrives.
pub(crate) fn request(
    world: &Rc<World>,
    number: usize,
    page: Page,
    then: impl FnOnce(&Rc<World>, Given) + 'static,
) {
    let process = world.proxies[number].process.borrow().clone();
    let Some(process) = process else {
        return then(world, None);
    };
    let request = Request {
        page,
        asked: Some(process.cache.arrive(page)),
        then: Box::new(then),
    };
    go_on(world, &process, request);
}

/// A hit, or a fill, or the fill of another.
fn go_on(world: &Rc<World>, process: &Rc<Process>, request: Request) {
    let Some(asked) = &request.asked else {
        return;
    };
    match process.cache.step(asked, || clock(world, process)) {
        Next::Hit(answer) => {
            world.checker.borrow_mut().counts.hits += 1;
            give(world, process, request, &answer, "a hit");
        }
        Next::Wait(waiting) => process.waiting.borrow_mut().push((request, waiting)),
        Next::Fill(filling) => fill(world, process, request, filling),
    }
}

/// The clock is read between two other things.
fn clock(world: &Rc<World>, process: &Process) -> u64 {
    world.between(process.who());
    world.clock_ms(process.who())
}

fn fill(
    world: &Rc<World>,
    process: &Rc<Process>,
    request: Request,
    filling: Filling<Page, Answer>,
) {
    world.checker.borrow_mut().fill_begins(request.page);
    ask(world, process, request, (filling, TRIES));
}

/// One try. The origin has several addresses.
fn ask(
    world: &Rc<World>,
    process: &Rc<Process>,
    request: Request,
    (mut filling, tries): (Filling<Page, Answer>, usize),
) {
    let process = Rc::clone(process);
    world.after(world.nearby(), Who::Nobody, move |world| {
        let is_up = world.database.borrow().is_up;
        let answer = origin::read(world, request.page);
        let us = world.works();
        world.after(us, process.who(), move |world| {
            let is_answered = is_up && !world.fails(world.plan.failing_percent);
            if process.is_alive.get() && !is_answered && tries > 1 {
                process.cache.try_again(&mut filling);
                if process.is_alive.get() {
                    return ask(world, &process, request, (filling, tries - 1));
                }
            }
            world.checker.borrow_mut().fill_ends(request.page);
            if !process.is_alive.get() {
                return (request.then)(world, None);
            }
            match is_answered {
                true => landed(world, &process, request, filling, &answer),
                false => {
                    drop(filling);
                    (request.then)(world, None);
                }
            }
            wake_waiting(world, &process);
        });
    });
}

fn landed(
    world: &Rc<World>,
    process: &Rc<Process>,
    request: Request,
    filling: Filling<Page, Answer>,
    answer: &Arc<Answer>,
) {
    if world.fails(world.plan.alone_percent) {
        process.cache.land_alone(filling);
        return give(world, process, request, answer, "an answer of its own");
    }
    let dependencies = request.page.dependencies();
    let clock = || clock(world, process);
    let landed = process.cache.land(filling, answer, dependencies, clock);
    let is_kept = landed.is_ok();
    world.checker.borrow_mut().filled(is_kept);
    give(world, process, request, answer, "a fill");
}

/// Fills are over: those who wait for them go on.
fn wake_waiting(world: &Rc<World>, process: &Rc<Process>) {
    let waiting = process.waiting.take();
    let (over, still): (Vec<_>, Vec<_>) = waiting
        .into_iter()
        .partition(|(_, waiting)| waiting.is_over());
    process.waiting.borrow_mut().extend(still);
    for (mut request, waiting) in over {
        let asked = request.asked.as_mut();
        let answer = asked.and_then(|asked| process.cache.waited(asked, &waiting));
        match answer {
            Some(answer) => {
                world.checker.borrow_mut().counts.joined += 1;
                give(world, process, request, &answer, "the fill of another");
            }
            None => {
                let who = process.who();
                let process = Rc::clone(process);
                world.after(1, who, move |world| match process.is_alive.get() {
                    true => go_on(world, &process, request),
                    false => (request.then)(world, None),
                });
            }
        }
    }
}

fn give(
    world: &Rc<World>,
    process: &Rc<Process>,
    request: Request,
    answer: &Arc<Answer>,
    how: &'static str,
) {
    let answer = process.is_alive.get().then(|| (Arc::clone(answer), how));
    world.after(world.nearby(), Who::Nobody, move |world| {
        (request.then)(world, answer)
    });
}
