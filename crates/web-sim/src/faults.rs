//! What goes wrong, and when.

use crate::cells::Who;
use crate::clients;
use crate::database::Standby;
use crate::plan::{Fault, Without};
use crate::world::World;
use crate::{follower, keeper, proxy};
use std::rc::Rc;

/// Twice as long as a beat is young.
const CRASHED_FOR_US: u64 = 4_000_000;
/// How soon PostgreSQL is back by itself.
const RESTARTED_AFTER_US: u64 = 120_000;

/// Faults strike from now on.
pub(crate) fn start(world: &Rc<World>) {
    if world.plan.faults.is_empty() {
        return;
    }
    let us = world.range(1, 2 * world.plan.fault_every_us);
    world.after(us, Who::Nobody, |world| {
        if world.is_over.get() {
            return;
        }
        let fault = world.plan.faults[world.index(world.plan.faults.len())];
        strike(world, fault);
        start(world);
    });
}

fn strike(world: &Rc<World>, fault: Fault) {
    world.note("fault", &[fault as u64]);
    match fault {
        Fault::KeeperHangs => world.pause(Who::Keeper, a_while(world, 8_000_000)),
        Fault::KeeperDies => {
            keeper::kill(world);
            start_keeper(world);
        }
        Fault::KeeperLeaves => {
            world.after(0, Who::Keeper, keeper::leave);
            start_keeper(world);
        }
        Fault::StreamBreaks => keeper::lose_stream(world),
        Fault::DatabaseSlow => {
            let until = world.now().plus_us(a_while(world, 6_000_000));
            world.slow_until.set(until);
        }
        Fault::DatabaseCrashes => crash(world),
        Fault::SlotDropped => drop_slot(world),
        Fault::ProxyHangs => {
            let number = world.index(world.plan.proxies);
            world.pause(Who::Proxy(number), a_while(world, 10_000_000));
        }
        Fault::ProxyDies => {
            let number = world.index(world.plan.proxies);
            proxy::kill(world, number);
            proxy::start(world, number);
        }
        Fault::FollowerHangs | Fault::FollowerDies | Fault::FollowerCutOff
            if world.plan.followers == 0 => {}
        Fault::FollowerHangs => {
            let number = world.index(world.plan.followers);
            world.pause(Who::Follower(number), a_while(world, 9_000_000));
        }
        Fault::FollowerDies => {
            let number = world.index(world.plan.followers);
            follower::kill(world, number);
            let us = a_while(world, 4_000_000);
            world.after(us, Who::Follower(number), move |world| {
                follower::start(world, number)
            });
        }
        Fault::FollowerCutOff => {
            let number = world.index(world.plan.followers);
            follower::break_connection(world, number);
        }
        Fault::WatchdogHangs => {
            let number = world.index(world.plan.watchdogs);
            world.pause(Who::Watchdog(number), a_while(world, 12_000_000));
        }
    }
}

/// Mostly short.
fn a_while(world: &World, us_max: u64) -> u64 {
    match world.percent(50) {
        true => world.range(1_000, us_max / 20),
        false => world.range(us_max / 20, us_max),
    }
}

/// Somebody starts it again, whether or not it has ended by then.
fn start_keeper(world: &Rc<World>) {
    let us = a_while(world, 8_000_000);
    world.after(us, Who::Keeper, |world| match world.keeper.is_running() {
        true => {}
        false => keeper::start(world),
    });
}

/// A backend of the database crashes. Its unit takes the names out, waits, and starts it again.
pub(crate) fn crash(world: &Rc<World>) {
    if !world.database.borrow().is_up {
        return;
    }
    world.note("database crashes", &[]);
    let names = world.database.borrow().names;
    keeper::lose_stream(world);
    world.database.borrow_mut().crash();
    let (us, names) = match world.plan.without {
        Some(Without::WaitAfterCrash) => (RESTARTED_AFTER_US, names),
        _ => (CRASHED_FOR_US + world.range(0, 500_000), Standby::Nobody),
    };
    world.after(us, Who::Nobody, move |world| {
        world.note("database is back", &[]);
        world.database.borrow_mut().recover(names);
        clients::restart_writers(world);
    });
}

/// An operator drops the slot of a keeper that is away.
fn drop_slot(world: &Rc<World>) {
    let mut database = world.database.borrow_mut();
    if database.stream.is_none() {
        database.slot = None;
    }
}
