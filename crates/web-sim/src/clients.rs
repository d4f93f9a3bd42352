//! Who writes and who reads. Each row has one writer, and its values only rise.

use crate::cells::Who;
use crate::commits;
use crate::database::{Content, Row, Xid};
use crate::pages::Page;
use crate::proxy;
use crate::updates::Pending;
use crate::world::World;
use std::rc::Rc;

/// Everybody begins.
pub(crate) fn start(world: &Rc<World>) {
    for writer in 0..world.plan.writers {
        write_again(world, writer);
    }
    for _ in 0..world.plan.readers {
        read_again(world);
    }
    look_again(world);
}

/// The database is back: who waited for it begins anew.
pub(crate) fn restart_writers(world: &Rc<World>) {
    world.updates.pending.borrow_mut().clear();
    for writer in 0..world.plan.writers {
        write_again(world, writer);
    }
}

fn write_again(world: &Rc<World>, writer: usize) {
    let us = world.range(1, 2 * world.plan.write_every_us);
    let life = world.database.borrow().life;
    world.after(us, Who::Nobody, move |world| {
        let database = world.database.borrow();
        let is_same = database.is_up && database.life == life;
        drop(database);
        if is_same && !world.is_over.get() {
            let own = (0..world.plan.rows).filter(|row| row % world.plan.writers == writer);
            let mut own: Vec<Row> = own.collect();
            let left = world.index(own.len()) + 1;
            own.truncate(left);
            write(world, own, Some(writer));
        }
    });
}

/// Updates these rows.
pub(crate) fn write(world: &Rc<World>, rows: Vec<Row>, writer: Option<usize>) {
    let value = world.updates.last.get() + 1;
    world.updates.last.set(value);
    let writes: Vec<(Row, u64)> = rows.iter().map(|row| (*row, value)).collect();
    let xid = world.database.borrow_mut().begin(writes.clone());
    let pending = Pending { writes, writer };
    world.updates.pending.borrow_mut().insert(xid, pending);
    let us = match world.percent(4) {
        true => world.range(100_000, 4_000_000),
        false => world.range(100, 4_000),
    };
    let is_named = !world.fails(world.plan.unnamed_percent);
    let life = world.database.borrow().life;
    world.after(us, Who::Nobody, move |world| {
        if world.database.borrow().life == life {
            commits::commit(world, xid, Content::Rows(rows, is_named));
        }
    });
}

/// A commit is acknowledged to its client.
pub(crate) fn committed(world: &Rc<World>, xid: Xid) {
    let pending = world.updates.pending.borrow_mut().remove(&xid);
    let Some(pending) = pending else {
        return;
    };
    let mut checker = world.checker.borrow_mut();
    checker.counts.updates += 1;
    for (row, value) in pending.writes {
        checker.learn(row, value);
    }
    drop(checker);
    world.note("acknowledged", &[xid]);
    if let Some(writer) = pending.writer {
        write_again(world, writer);
    }
}

fn read_again(world: &Rc<World>) {
    let us = world.range(1, 2 * world.plan.read_every_us);
    world.after(us, Who::Nobody, |world| {
        if world.is_over.get() {
            return;
        }
        let pages = Page::all(&world.plan);
        let page = pages[world.index(pages.len())];
        let number = world.index(world.plan.proxies);
        // Some come together.
        let more = if world.percent(10) {
            world.range(1, 3)
        } else {
            0
        };
        for _ in 0..more {
            read(world, number, page, |_| {});
        }
        read(world, number, page, read_again);
    });
}

/// Somebody looks into the database, past all caches.
fn look_again(world: &Rc<World>) {
    let us = world.range(1, 4 * world.plan.read_every_us);
    world.after(us, Who::Nobody, |world| {
        if world.is_over.get() {
            return;
        }
        let row = world.index(world.plan.rows);
        let database = world.database.borrow();
        let seen = database.is_up.then(|| database.read(row));
        drop(database);
        if let Some(value) = seen {
            world.checker.borrow_mut().learn(row, value);
        }
        look_again(world);
    });
}

/// Requests a page.
pub(crate) fn read(
    world: &Rc<World>,
    number: usize,
    page: Page,
    then: impl FnOnce(&Rc<World>) + 'static,
) {
    let least = world.checker.borrow().least(&page.rows(&world.plan));
    world.after(world.nearby(), Who::Proxy(number), move |world| {
        proxy::request(world, number, page, move |world, answered| {
            if let Some((answer, how)) = answered {
                let values: Vec<u64> = answer.0.iter().map(|(_, value)| *value).collect();
                world.note(how, &values);
                let mut checker = world.checker.borrow_mut();
                let how = format!("{how} of proxy {number} for {page:?}");
                checker.answered(world.now(), &how, &least, &answer);
            }
            then(world);
        });
    });
}
