//! The processes of followers: copies of the keeper's table on other hosts.

use crate::cells::{Seen, Who};
use crate::follower_host::Process;
use crate::keeper;
use crate::world::World;
use std::cell::Cell;
use std::rc::Rc;
use thorp_versions::{Follower, ToFollower, ToKeeper, Writer};

const ASK_EVERY_US: u64 = 500_000;
const CONNECT_AGAIN_AFTER_US: u64 = 100_000;
/// A keeper that says nothing for so many questions is gone.
const UNANSWERED_MAX: u32 = 4;

/// The connection from a follower.
const UP: u64 = 3;

/// A process starts, if none is there.
pub(crate) fn start(world: &Rc<World>, number: usize) {
    let host = &world.followers[number];
    if host.process.borrow().is_some() {
        return;
    }
    world.note("follower starts", &[number as u64]);
    let is_alive = Rc::new(Cell::new(true));
    let seen = Seen::new(&host.memory, world, host.who(), &is_alive);
    host.process.replace(Some(Process {
        is_alive,
        follower: Some(Follower::new(Writer::new(seen))),
        connection: 0,
        unanswered: 0,
    }));
    connect(world, number);
}

/// It dies. What its table has stays.
pub(crate) fn kill(world: &Rc<World>, number: usize) {
    let host = &world.followers[number];
    let Some(process) = host.process.take() else {
        return;
    };
    world.note("follower dies", &[number as u64]);
    process.is_alive.set(false);
    world.wake(host.who());
    keeper::lose_follower(world, number, process.connection);
}

fn connect(world: &Rc<World>, number: usize) {
    let host = &world.followers[number];
    let connection = host.connections.get() + 1;
    host.connections.set(connection);
    if let Some(process) = host.process.borrow_mut().as_mut() {
        process.connection = connection;
        process.unanswered = 0;
    }
    world.note("follower connects", &[number as u64, connection]);
    let us = world.to_follower();
    world.send((host.who(), UP), us, Who::Keeper, move |world| {
        keeper::join(world, number, connection);
    });
    ask(world, number, connection);
}

/// Its connection is lost, and it hears so.
pub(crate) fn lost(world: &Rc<World>, number: usize, connection: u64) {
    let who = world.followers[number].who();
    world.after(world.range(100, 20_000), who, move |world| {
        disconnected(world, number, connection);
    });
}

fn disconnected(world: &Rc<World>, number: usize, connection: u64) {
    let host = &world.followers[number];
    let is_new = host.change(connection, |process| process.connection = 0);
    if is_new.is_some() {
        world.after(CONNECT_AGAIN_AFTER_US, host.who(), move |world| {
            let host = &world.followers[number];
            if host.change(0, |_| ()).is_some() {
                connect(world, number);
            }
        });
    }
}

/// The connection breaks: each end hears so in its time.
pub(crate) fn break_connection(world: &Rc<World>, number: usize) {
    let process = world.followers[number].process.borrow();
    let connection = process.as_ref().map(|process| process.connection);
    drop(process);
    if let Some(connection) = connection.filter(|connection| *connection > 0) {
        keeper::lose_follower(world, number, connection);
        lost(world, number, connection);
    }
}

fn ask(world: &Rc<World>, number: usize, connection: u64) {
    let host = &world.followers[number];
    let now_ms = world.clock_ms(host.who());
    let asked = host.change(connection, |process| {
        process.unanswered += 1;
        let is_gone = process.unanswered > UNANSWERED_MAX;
        let follower = process.follower.as_mut();
        (is_gone, follower.map(|follower| follower.ask(now_ms)))
    });
    match asked {
        Some((false, Some(question))) => {
            reply(world, number, connection, question);
            world.after(ASK_EVERY_US, host.who(), move |world| {
                ask(world, number, connection)
            });
        }
        Some((true, _)) => {
            keeper::lose_follower(world, number, connection);
            disconnected(world, number, connection);
        }
        _ => {}
    }
}

/// A message of the keeper.
pub(crate) fn receive(world: &Rc<World>, number: usize, connection: u64, message: ToFollower) {
    let host = &world.followers[number];
    let taken = host.change(connection, |process| {
        process.unanswered = 0;
        process.follower.take()
    });
    let Some(mut follower) = taken.flatten() else {
        return;
    };
    world.note(name(&message), &[number as u64, connection]);
    let generation = world.bits() | 1;
    let now_ms = world.clock_ms(host.who());
    let answer = world.busy(host.who(), || follower.handle(message, generation, now_ms));
    let is_there = host.change(connection, |process| process.follower = Some(follower));
    if let Some(answer) = answer.filter(|_| is_there.is_some()) {
        reply(world, number, connection, answer);
    }
}

fn reply(world: &Rc<World>, number: usize, connection: u64, message: ToKeeper) {
    let us = world.to_follower();
    let link = (world.followers[number].who(), UP);
    world.send(link, us, Who::Keeper, move |world| {
        keeper::from_follower(world, number, connection, message);
    });
}

fn name(message: &ToFollower) -> &'static str {
    match message {
        ToFollower::Begin(..) => "follower begins",
        ToFollower::Store(..) => "follower stores",
        ToFollower::Waits(..) => "follower is waited for",
    }
}
