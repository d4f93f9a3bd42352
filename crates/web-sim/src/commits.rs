//! Commits on their way: in the log, released, visible, answered.

use crate::cells::Who;
use crate::database::{Content, Database, Xid};
use crate::world::World;
use std::rc::Rc;

/// The commit is in the log now.
pub(crate) fn commit(world: &Rc<World>, xid: Xid, content: Content) {
    if !world.database.borrow().is_up {
        return;
    }
    world.note("commits", &[xid]);
    let goes_on = world.database.borrow_mut().commit(xid, content);
    (world.hooks.log_grew)(world);
    if goes_on {
        release(world, vec![xid]);
    }
}

/// These commits do not wait any more. They are visible after the gap.
pub(crate) fn release(world: &Rc<World>, xids: Vec<Xid>) {
    let life = world.database.borrow().life;
    for xid in xids {
        let gap = match world.percent(10) {
            true => world.range(2_000, 80_000),
            false => world.range(20, 2_000),
        };
        world.after(gap, Who::Nobody, move |world| {
            let is_same = move |world: &World| {
                let database = world.database.borrow();
                database.is_up && database.life == life
            };
            if !is_same(world) {
                return;
            }
            world.note("visible", &[xid]);
            world.database.borrow_mut().show(xid);
            world.after(world.range(20, 500), Who::Nobody, move |world| {
                if is_same(world) {
                    (world.hooks.committed)(world, xid);
                }
            });
        });
    }
}

/// A session asks the database, or changes the names. None: it is down.
pub(crate) fn consult<T>(
    world: &Rc<World>,
    question: impl FnOnce(&mut Database) -> T,
) -> Option<T> {
    let mut database = world.database.borrow_mut();
    let before = database.names;
    let answer = database.is_up.then(|| question(&mut database));
    let is_changed = database.names != before;
    drop(database);
    if is_changed {
        reload_soon(world);
    }
    answer
}

/// Commits see the names when the checkpointer has read them.
fn reload_soon(world: &Rc<World>) {
    world.note("names", &[world.database.borrow().names as u64]);
    let us = match world.percent(world.plan.busy_checkpointer_percent) {
        true => world.range(20_000, 3_000_000),
        false => world.range(500, 10_000),
    };
    world.after(us, Who::Nobody, |world| {
        if world.database.borrow().is_up {
            let released = world.database.borrow_mut().reload();
            release(world, released);
        }
    });
}
