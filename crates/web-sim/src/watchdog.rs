//! The process of a watchdog. When commits go on is decided in the code that ships.

use crate::cells::Who;
use crate::commits;
use crate::database::{Database, Standby, Xid};
use crate::world::World;
use std::rc::Rc;
use thorp_web::{Deed, Look, Names};

/// As `thorp web watchdog` has it.
const LOOK_EVERY_US: u64 = 200_000;

/// Looks again and again.
pub(crate) fn look(world: &Rc<World>, number: usize) {
    let who = world.watchdogs[number].who();
    world.after(world.nearby(), Who::Nobody, move |world| {
        let seen = commits::consult(world, see);
        world.after(world.nearby(), who, move |world| {
            match seen {
                Some(seen) => looked(world, number, seen),
                // Its connection is gone, and what it knew.
                None => drop(world.watchdogs[number].patience.take()),
            }
            world.after(LOOK_EVERY_US, who, move |world| look(world, number));
        });
    });
}

fn see(database: &mut Database) -> Look<Xid> {
    Look {
        names: match database.names {
            Standby::Nobody => Names::Others,
            Standby::Keeper => Names::Keeper,
            Standby::Gone => Names::Gone,
        },
        waiting: database.waiting(),
        is_away: database.stream.is_none(),
    }
}

fn looked(world: &Rc<World>, number: usize, seen: Look<Xid>) {
    let host = &world.watchdogs[number];
    let now_ms = world.clock_ms(host.who());
    let deed = host.patience.borrow_mut().look(seen, now_ms);
    let names = match deed {
        Deed::Nothing => return,
        Deed::End => Standby::Gone,
        Deed::LetGo(_) => Standby::Nobody,
    };
    world.note("watchdog", &[number as u64, names as u64]);
    // It may hang before its statement leaves.
    world.after(world.nearby(), host.who(), move |world| {
        let from = deed.replaces().iter().map(|names| match names {
            Names::Keeper => Standby::Keeper,
            Names::Gone => Standby::Gone,
            Names::Others => Standby::Nobody,
        });
        let from: Vec<Standby> = from.collect();
        commits::consult(world, |database| database.set_names(names, &from));
    });
}
