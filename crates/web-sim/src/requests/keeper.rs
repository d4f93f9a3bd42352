//! The keeper's process: its life and its links. What it does is decided in the code that ships.

use super::keeper_process::{KeeperProcess, ledger};
use super::world::{Side, World};
use crate::cells::{Memory, Who};
use std::rc::Rc;
use thorp_versions::{BEAT_MS_MAX, Event};
use thorp_web::{Connection, Lives, ToKeeper, Todo};

const BEAT_EVERY_US: u64 = 250_000;

/// Starts one, if none has the table.
pub(super) fn start(world: &mut World) {
    if world.keeper.is_some() {
        return;
    }
    let life = world.number();
    let generation = world.range(1, u64::MAX - 1);
    let memory = Memory::new();
    let mut ledger = ledger(&memory);
    ledger.restart(generation);
    let left = world.book.clone();
    let (lives, todo) = Lives::begin(generation, world.plan.life_ms, left, world.now_ms());
    world.named = Some(Rc::clone(&memory));
    world.keeper = Some(KeeperProcess {
        life,
        ledger,
        lives,
        listens: false,
    });
    world.note("keeper starts", &[life]);
    act(world, todo);
    // Beats of the table before are old by then.
    world.after((BEAT_MS_MAX + 1) * 1_000, Who::Keeper, move |world| {
        if let Some(keeper) = world.keeper.as_mut().filter(|keeper| keeper.life == life) {
            keeper.listens = true;
            beat(world, life);
        }
    });
}

fn beat(world: &mut World, life: u64) {
    let now_ms = world.now_ms();
    let Some(keeper) = world.keeper.as_mut().filter(|keeper| keeper.life == life) else {
        return;
    };
    keeper.ledger.handle(Event::Waits(now_ms));
    let todo = keeper.lives.pass_time(now_ms);
    act(world, todo);
    write_book(world);
    world.after(BEAT_EVERY_US, Who::Keeper, move |world| beat(world, life));
}

/// It is gone. Its links end behind what it has sent.
pub(super) fn dies(world: &mut World, in_order: bool) {
    let Some(mut keeper) = world.keeper.take() else {
        return;
    };
    world.note("keeper dies", &[keeper.life, u64::from(in_order)]);
    if in_order {
        let generation = world.range(1, u64::MAX - 1);
        keeper.ledger.restart(generation);
    }
    world.wake(Who::Keeper);
    for (number, link) in world.open_links() {
        if link.keeper_life == keeper.life {
            world.close_link(number);
            world.send(number, Side::Proxy, move |world| {
                (world.hooks.lost)(world, number)
            });
        }
    }
}

/// A message arrives on a link. None: the link ends.
pub(super) fn hear(world: &mut World, number: u64, said: Option<ToKeeper>) {
    let now_ms = world.now_ms();
    let Some(link) = world.link(number) else {
        return;
    };
    let keeper = world.keeper.as_mut();
    let Some(keeper) = keeper.filter(|keeper| keeper.life == link.keeper_life) else {
        return;
    };
    let todo = match said {
        None => {
            keeper.lives.lost(Connection(number), now_ms);
            Vec::new()
        }
        Some(said) => keeper.lives.hear(Connection(number), said, now_ms),
    };
    // The next keeper asks whoever is answered now.
    write_book(world);
    act(world, todo);
}

fn act(world: &mut World, todo: Vec<Todo>) {
    for todo in todo {
        match todo {
            Todo::Note(event) => {
                if let Some(keeper) = &mut world.keeper {
                    keeper.ledger.handle(event);
                }
            }
            Todo::Tell(Connection(number), what) => {
                if world.link(number).is_some_and(|link| !link.is_closed) {
                    world.send(number, Side::Proxy, move |world| {
                        (world.hooks.to_proxy)(world, number, what);
                    });
                }
            }
            Todo::Close(Connection(number)) => break_link(world, number),
        }
    }
}

/// A link ends, for both sides.
pub(super) fn break_link(world: &mut World, number: u64) {
    if world.link(number).is_some_and(|link| !link.is_closed) {
        world.close_link(number);
        world.send(number, Side::Proxy, move |world| {
            (world.hooks.lost)(world, number)
        });
        world.send(number, Side::Keeper, move |world| hear(world, number, None));
    }
}

fn write_book(world: &mut World) {
    if let Some(keeper) = &world.keeper {
        world.book = keeper.lives.page();
    }
}
