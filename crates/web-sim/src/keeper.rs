//! The keeper's process. What it decides is in the code that ships; here are its messages, and how long they take.

use crate::cells::{Seen, Who};
use crate::commits;
use crate::database::{Content, Database, Position, Standby, Xid};
use crate::follower_host::DOWN;
use crate::keeper_host::Process;
use crate::pages;
use crate::world::World;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use thorp_versions::{
    Action, BEAT_MS_MAX, Broadcast, Event, FollowerId, Ledger, ToFollower, ToKeeper, UpdateId,
    Writer,
};
use thorp_web::{Found, GoingLive, Numbers, Question, Task, leaves_after_ms};

/// As `thorp web` has them.
const AGAIN_AFTER_US: u64 = 1_000_000;
const GOING_LIVE_US_MAX: u64 = 30_000_000;
const LOOK_AFTER_US: u64 = 20_000;
const BEAT_EVERY_US: u64 = 500_000;
const VISIBLE_AFTER_US: u64 = 1_000;
const FOLLOWERS_EVERY_US: u64 = 100_000;

/// The connection on which the stream of changes comes.
const STREAM: u64 = 0;
/// The same in the other direction.
const FEEDBACK: u64 = 1;

// --- The process ---

/// A process starts, if none is there.
pub(crate) fn start(world: &Rc<World>) {
    if world.keeper.is_running() {
        return;
    }
    world.note("keeper starts", &[]);
    let is_alive = Rc::new(Cell::new(true));
    let seen = Seen::new(&world.keeper.memory, world, Who::Keeper, &is_alive);
    let alive = Rc::clone(&is_alive);
    world.keeper.process.replace(Some(Process {
        is_alive,
        ledger: Some(Ledger::new(Writer::new(seen))),
        life: 0,
        is_live: false,
        is_connected: false,
        is_leaving: false,
        going: GoingLive::new(),
        numbers: Numbers::default(),
        awaited: None,
        position: None,
        delivered: 0,
        is_delivering: false,
        open: BTreeSet::new(),
        is_looking: false,
        broadcast: Broadcast::new(world.clock_ms(Who::Keeper), world.plan.followers > 0),
        links: BTreeMap::new(),
        pending: VecDeque::new(),
    }));
    look_at_followers(world, Rc::clone(&alive));
    begin_life(world);
}

/// It dies, and its connections with it.
pub(crate) fn kill(world: &Rc<World>) {
    let Some(process) = world.keeper.process.take() else {
        return;
    };
    world.note("keeper dies", &[]);
    process.is_alive.set(false);
    world.wake(Who::Keeper);
    disconnect(world, process.life);
    for (number, connection) in process.links {
        (world.hooks.follower_lost)(world, number, connection);
    }
}

/// It stops in order: no beat, then nobody serves hits, then no commit waits. Until then, it acknowledges as before.
pub(crate) fn leave(world: &Rc<World>) {
    let stops = world.keeper.with(|process| {
        process.is_live = false;
        let is_first = !std::mem::replace(&mut process.is_leaving, true);
        let is_alive = Rc::clone(&process.is_alive);
        is_first.then_some((process.life, process.is_connected, is_alive))
    });
    let Some((life, is_connected, is_alive)) = stops.flatten() else {
        return;
    };
    world.note("keeper leaves", &[life]);
    restart_table(world, life);
    if !is_connected {
        return kill(world);
    }
    world.after(
        leaves_after_ms() * 1_000,
        Who::Keeper,
        move |world| match world.keeper.life() == Some(life) {
            true => take_name_out(world, is_alive),
            false => end_the_next_one(world, is_alive),
        },
    );
}

/// Its slot is lost: another keeper may have it, and beat by now. That one is stopped first.
fn end_the_next_one(world: &Rc<World>, is_alive: Rc<Cell<bool>>) {
    let end = |database: &mut Database| database.set_names(Standby::Gone, &[Standby::Keeper]);
    set_names(world, is_alive, end, |world, is_alive| {
        world.after(2 * BEAT_MS_MAX * 1_000, Who::Keeper, move |world| {
            take_name_out(world, is_alive);
        });
    });
}

fn take_name_out(world: &Rc<World>, is_alive: Rc<Cell<bool>>) {
    let from = [Standby::Keeper, Standby::Gone];
    let remove = move |database: &mut Database| database.set_names(Standby::Nobody, &from);
    set_names(world, is_alive, remove, |world, _| kill(world));
}

/// If the database is down, the keeper ends as it is, and commits go on waiting.
fn set_names(
    world: &Rc<World>,
    is_alive: Rc<Cell<bool>>,
    set: impl FnOnce(&mut Database) -> bool + 'static,
    then: fn(&Rc<World>, Rc<Cell<bool>>),
) {
    if !is_alive.get() {
        return;
    }
    world.after(world.to_database(), Who::Nobody, move |world| {
        let is_set = commits::consult(world, set).is_some();
        world.after(world.to_database(), Who::Keeper, move |world| {
            match (is_alive.get(), is_set) {
                (true, true) => then(world, is_alive),
                (true, false) => kill(world),
                (false, _) => {}
            }
        });
    });
}

// --- One life ---

fn begin_life(world: &Rc<World>) {
    let Some(old) = world.keeper.life() else {
        return;
    };
    let life = world.keeper.next_life();
    world.keeper.change(old, |process| {
        process.life = life;
        process.is_live = false;
        process.is_connected = false;
        process.going = GoingLive::new();
        process.awaited = None;
        process.position = None;
        process.is_delivering = false;
        process.open.clear();
        process.is_looking = false;
    });
    world.note("keeper's life", &[life]);
    restart_table(world, life);
    let slot = |database: &mut Database| database.running();
    ask(world, life, slot, move |world, running| {
        make_slot(world, life, running)
    });
    world.after(GOING_LIVE_US_MAX, Who::Keeper, move |world| {
        if !world.keeper.is_live() && !world.keeper.is_leaving() {
            lose(world, life);
        }
    });
}

/// A slot is made once all that runs has ended. If it is there, nobody waits.
fn make_slot(world: &Rc<World>, life: u64, running: BTreeSet<Xid>) {
    let try_it = move |database: &mut Database| {
        let now = database.running();
        let may = database.slot.is_some() || running.is_disjoint(&now);
        match may {
            true => Ok((database.make_slot(), database.next_number())),
            false => Err(running),
        }
    };
    ask(world, life, try_it, move |world, made| match made {
        Ok((_, next)) => connect(world, life, next),
        Err(running) => world.after(LOOK_AFTER_US, Who::Keeper, move |world| {
            make_slot(world, life, running);
        }),
    });
}

fn connect(world: &Rc<World>, life: u64, next: Xid) {
    world
        .keeper
        .change(life, |process| process.numbers = Numbers::new(next));
    let open = move |database: &mut Database| {
        let slot = database.slot.filter(|_| database.stream.is_none())?;
        database.stream = Some(life);
        Some(slot)
    };
    ask(world, life, open, move |world, slot| match slot {
        Some(slot) => {
            world.keeper.change(life, |process| {
                process.delivered = slot;
                process.is_connected = true;
            });
            acknowledge(world, life, slot);
            deliver_soon(world);
            work(world, life);
        }
        None => lose(world, life),
    });
}

/// The database is lost, or does not wait any more.
pub(crate) fn lose(world: &Rc<World>, life: u64) {
    if world.keeper.life() != Some(life) {
        return;
    }
    world.note("keeper loses its database", &[life]);
    disconnect(world, life);
    let away = world.keeper.next_life();
    world.keeper.change(life, |process| {
        process.life = away;
        process.is_live = false;
        process.is_connected = false;
    });
    restart_table(world, away);
    world.after(AGAIN_AFTER_US, Who::Keeper, move |world| {
        if world.keeper.life() == Some(away) && !world.keeper.is_leaving() {
            begin_life(world);
        }
    });
}

/// The keeper hears soon that its stream is lost.
pub(crate) fn lose_stream(world: &Rc<World>) {
    let stream = world.database.borrow_mut().stream.take();
    if let Some(life) = stream {
        world.after(world.to_database(), Who::Keeper, move |world| {
            lose(world, life)
        });
    }
}

fn disconnect(world: &Rc<World>, life: u64) {
    world.after(world.range(100, 20_000), Who::Nobody, move |world| {
        let mut database = world.database.borrow_mut();
        database.end_sessions(life);
    });
}

// --- Going live ---

/// Does what [`GoingLive`] wants.
fn work(world: &Rc<World>, life: u64) {
    let task = |process: &mut Process| (!process.is_leaving).then(|| process.going.task());
    let Some(task) = world.keeper.change(life, task).flatten() else {
        return;
    };
    world.note("keeper's task", &[life, task as u64]);
    match task {
        Task::Name => {
            let add =
                |database: &mut Database| database.set_names(Standby::Keeper, &[Standby::Nobody]);
            ask(world, life, add, move |world, is_set| match is_set {
                true => found(world, life, Found::Done),
                false => lose(world, life),
            });
        }
        Task::AskWhetherWaitedFor => {
            let waits = move |database: &mut Database| Found::Waits(database.waits_for(life));
            ask(world, life, waits, move |world, answer| {
                found(world, life, answer)
            });
        }
        Task::Emit => emit(world, life),
        Task::TakeUp => {
            let is_there = |process: &mut Process| process.position.is_some();
            if world.keeper.change(life, is_there) == Some(true) {
                found(world, life, Found::Done);
            }
        }
        Task::AskWhetherItWaits => ask_whether_it_waits(world, life),
        Task::Acknowledge => {
            acknowledge_message(world, life);
            await_end(world, life);
        }
        Task::AskNextNumber => {
            let next = |database: &mut Database| Found::Number(database.next_number());
            ask(world, life, next, move |world, answer| {
                found(world, life, answer)
            });
        }
        Task::AskOldest => {
            let oldest = |database: &mut Database| Found::Number(database.oldest());
            ask(world, life, oldest, move |world, answer| {
                found(world, life, answer)
            });
        }
        Task::Renew => {
            renew_table(world, life);
            found(world, life, Found::Done);
        }
        Task::Beat => {
            world.keeper.change(life, |process| process.is_live = true);
            world.note("keeper is live", &[life]);
            beat(world, life);
        }
    }
}

fn found(world: &Rc<World>, life: u64, found: Found) {
    let went_on = world.keeper.change(life, |process| {
        let before = process.going.task();
        process.going.found(found);
        process.going.task() != before
    });
    if went_on == Some(true) && found != Found::Waits(false) {
        return work(world, life);
    }
    acknowledge_message(world, life);
    world.after(LOOK_AFTER_US, Who::Keeper, move |world| work(world, life));
}

fn emit(world: &Rc<World>, life: u64) {
    let nonce = world.bits();
    world.keeper.change(life, |process| {
        process.awaited = Some((nonce, 0));
        process.position = None;
    });
    world.after(world.to_database(), Who::Nobody, move |world| {
        let xid = commits::consult(world, |database| database.begin(Vec::new()));
        let Some(xid) = xid else {
            return world.after(world.to_database(), Who::Keeper, move |world| {
                lose(world, life)
            });
        };
        world.keeper.change(life, |process| {
            process.awaited = process.awaited.and(Some((nonce, xid)));
        });
        commits::commit(world, xid, Content::Message(nonce));
        world.after(world.to_database(), Who::Keeper, move |world| {
            found(world, life, Found::Done);
        });
    });
}

fn ask_whether_it_waits(world: &Rc<World>, life: u64) {
    let own = world.keeper.change(life, |process| process.awaited);
    let Some(xid) = own.flatten().map(|(_, xid)| xid) else {
        return found(world, life, Found::Waits(false));
    };
    let look = move |database: &mut Database| {
        let is_over = !database.running().contains(&xid);
        (database.waiting().contains(&xid), is_over)
    };
    ask(world, life, look, move |world, (waits, is_over)| {
        match waits || is_over {
            true => found(world, life, Found::Waits(waits)),
            false => world.after(VISIBLE_AFTER_US, Who::Keeper, move |world| {
                ask_whether_it_waits(world, life);
            }),
        }
    });
}

/// Its message is acknowledged. Only when its commit is over, a snapshot knows all that was open before.
fn await_end(world: &Rc<World>, life: u64) {
    let own = world.keeper.change(life, |process| process.awaited);
    let Some((_, xid)) = own.flatten() else {
        return found(world, life, Found::Done);
    };
    let is_over = move |database: &mut Database| !database.running().contains(&xid);
    ask(world, life, is_over, move |world, is_over| match is_over {
        true => found(world, life, Found::Done),
        false => world.after(VISIBLE_AFTER_US, Who::Keeper, move |world| {
            await_end(world, life);
        }),
    });
}

fn acknowledge_message(world: &Rc<World>, life: u64) {
    let position = world.keeper.change(life, |process| process.position);
    if let Some(position) = position.flatten() {
        acknowledge(world, life, position);
    }
}

// --- Beats ---

fn beat(world: &Rc<World>, life: u64) {
    let question = Question::ask(world.clock_ms(Who::Keeper));
    let waits = move |database: &mut Database| database.waits_for(life);
    ask(world, life, waits, move |world, waits| {
        match question.answered(waits, || world.clock_ms(Who::Keeper)) {
            Some(_) if world.keeper.is_leaving() => {}
            Some(event) => {
                handle(world, life, event);
                world.after(BEAT_EVERY_US, Who::Keeper, move |world| {
                    if world.keeper.life() == Some(life) {
                        beat(world, life);
                    }
                });
            }
            None => lose(world, life),
        }
    });
}

// --- The stream ---

/// If there is more in the log, it comes to the keeper.
pub(crate) fn deliver_soon(world: &Rc<World>) {
    let Some(life) = world.database.borrow().stream else {
        return;
    };
    let next = world.keeper.change(life, |process| {
        let is_free = !std::mem::replace(&mut process.is_delivering, true);
        is_free.then_some(process.delivered + 1)
    });
    let Some(end) = next.flatten() else {
        return;
    };
    if world.database.borrow().record(end).is_none() {
        world
            .keeper
            .change(life, |process| process.is_delivering = false);
        return;
    }
    let us = world.to_database();
    world.send((Who::Keeper, STREAM), us, Who::Keeper, move |world| {
        deliver(world, life, end)
    });
}

fn deliver(world: &Rc<World>, life: u64, end: Position) {
    let record = world.database.borrow().record(end).cloned();
    let Some(record) = record.filter(|_| world.keeper.life() == Some(life)) else {
        return;
    };
    if let Some(beat) = Question::heard(|| world.clock_ms(Who::Keeper)) {
        handle(world, life, beat);
    }
    match record.content {
        Content::Message(nonce) => heard(world, life, nonce, end),
        Content::Rows(rows, is_named) => {
            let keys = is_named.then(|| pages::changed(&world.plan, &rows));
            let low = record.xid as u32;
            let xid = world
                .keeper
                .change(life, |process| process.numbers.whole(low));
            let Some(xid) = xid else {
                return;
            };
            world.note("decoded", &[record.xid, end as u64]);
            let Some(actions) = handle(world, life, Event::Begin(UpdateId(xid), keys)) else {
                return;
            };
            if actions
                .iter()
                .any(|action| matches!(action, Action::Refuse(_)))
            {
                return lose(world, life);
            }
            acknowledge(world, life, end);
            world
                .keeper
                .change(life, |process| process.open.insert(xid));
            look_soon(world, life);
        }
    }
    world.keeper.change(life, |process| {
        process.delivered = end;
        process.is_delivering = false;
    });
    deliver_soon(world);
}

/// A message of the keeper's own.
fn heard(world: &Rc<World>, life: u64, nonce: u64, end: Position) {
    let is_own = world.keeper.change(life, |process| {
        let is_own = process.awaited.is_some_and(|(own, _)| own == nonce);
        if is_own {
            process.position = Some(end);
        }
        (is_own && !process.is_leaving, process.going.task())
    });
    match is_own {
        Some((true, Task::TakeUp)) => found(world, life, Found::Done),
        Some((true, _)) => {}
        _ => acknowledge(world, life, end),
    }
}

/// The keeper has everything up to there. It says so once its followers have, too.
fn acknowledge(world: &Rc<World>, life: u64, position: Position) {
    world.keeper.change(life, |process| {
        let step = process.broadcast.last();
        process.pending.push_back((step, life, position));
    });
    acknowledge_what_is_everywhere(world);
}

fn acknowledge_what_is_everywhere(world: &Rc<World>) {
    let now_ms = world.clock_ms(Who::Keeper);
    let next = || {
        let mut process = world.keeper.process.borrow_mut();
        let process = process.as_mut()?;
        let (step, life, position) = process.pending.front().copied()?;
        let is_everywhere = process.broadcast.is_everywhere(step, now_ms);
        is_everywhere.then(|| process.pending.pop_front())?;
        Some((life, position))
    };
    while let Some((life, position)) = next() {
        let us = world.to_database();
        world.send((Who::Keeper, FEEDBACK), us, Who::Nobody, move |world| {
            let released = world.database.borrow_mut().acknowledge(life, position);
            commits::release(world, released);
        });
    }
}

// --- Followers ---

/// Strikes those whose leases have ended, again and again.
fn look_at_followers(world: &Rc<World>, is_alive: Rc<Cell<bool>>) {
    if world.plan.followers == 0 {
        return;
    }
    world.after(FOLLOWERS_EVERY_US, Who::Keeper, move |world| {
        if !is_alive.get() {
            return;
        }
        let now_ms = world.clock_ms(Who::Keeper);
        let mut process = world.keeper.process.borrow_mut();
        let mut struck = Vec::new();
        if let Some(process) = process.as_mut() {
            for FollowerId(number) in process.broadcast.strike(now_ms) {
                let connection = process.links.remove(&(number as usize));
                struck.push((number as usize, connection.unwrap_or_default()));
            }
        }
        drop(process);
        for (number, connection) in struck {
            world.note("struck", &[number as u64]);
            (world.hooks.follower_lost)(world, number, connection);
        }
        acknowledge_what_is_everywhere(world);
        look_at_followers(world, is_alive);
    });
}

/// A follower connects.
pub(crate) fn join(world: &Rc<World>, number: usize, connection: u64) {
    let now_ms = world.clock_ms(Who::Keeper);
    let begin = world.keeper.with(|process| {
        let keeper = process.ledger.as_ref()?.keeper();
        let begin = process
            .broadcast
            .join(FollowerId(number as u64), keeper, now_ms);
        process.links.insert(number, connection);
        Some(begin)
    });
    match begin.flatten() {
        Some(begin) => send_down(world, number, connection, begin),
        None => (world.hooks.follower_lost)(world, number, connection),
    }
}

/// The connection to a follower is lost, and the keeper hears so.
pub(crate) fn lose_follower(world: &Rc<World>, number: usize, connection: u64) {
    world.after(world.range(100, 20_000), Who::Keeper, move |world| {
        let now_ms = world.clock_ms(Who::Keeper);
        world.keeper.with(|process| {
            if process.links.get(&number) == Some(&connection) {
                process.links.remove(&number);
                process.broadcast.lost(FollowerId(number as u64), now_ms);
            }
        });
    });
}

/// A message of a follower.
pub(crate) fn from_follower(world: &Rc<World>, number: usize, connection: u64, message: ToKeeper) {
    let now_ms = world.clock_ms(Who::Keeper);
    let id = FollowerId(number as u64);
    let answer = world.keeper.with(|process| {
        process
            .links
            .get(&number)
            .filter(|link| **link == connection)?;
        match message {
            ToKeeper::Stored(step) => process.broadcast.acknowledged(id, step, now_ms),
            ToKeeper::Asks(question) => process.broadcast.asked(id, question),
        }
        let beat_ms = process.ledger.as_ref()?.beat_ms();
        process.broadcast.answer(id, beat_ms, now_ms)
    });
    if let Some(answer) = answer.flatten() {
        send_down(world, number, connection, answer);
    }
    acknowledge_what_is_everywhere(world);
}

fn send_to_all(world: &Rc<World>, message: &ToFollower) {
    let links = world.keeper.with(|process| process.links.clone());
    for (number, connection) in links.unwrap_or_default() {
        send_down(world, number, connection, message.clone());
    }
}

fn send_down(world: &Rc<World>, number: usize, connection: u64, message: ToFollower) {
    let who = world.followers[number].who();
    let us = world.to_follower();
    world.send((who, DOWN), us, who, move |world| {
        (world.hooks.to_follower)(world, number, connection, message);
    });
}

// --- Who is visible ---

fn look_soon(world: &Rc<World>, life: u64) {
    let starts = world.keeper.change(life, |process| {
        !process.open.is_empty() && !std::mem::replace(&mut process.is_looking, true)
    });
    if starts == Some(true) {
        world.after(VISIBLE_AFTER_US, Who::Keeper, move |world| {
            look(world, life)
        });
    }
}

fn look(world: &Rc<World>, life: u64) {
    let Some(open) = world.keeper.change(life, |process| process.open.clone()) else {
        return;
    };
    let visible = move |database: &mut Database| {
        let visible = open.into_iter().filter(|xid| database.is_visible(*xid));
        visible.collect::<Vec<_>>()
    };
    ask(world, life, visible, move |world, visible| {
        for xid in visible {
            world
                .keeper
                .change(life, |process| process.open.remove(&xid));
            world.note("ended", &[xid]);
            handle(world, life, Event::End(UpdateId(xid)));
        }
        world
            .keeper
            .change(life, |process| process.is_looking = false);
        look_soon(world, life);
    });
}

// --- The table ---

fn restart_table(world: &Rc<World>, life: u64) {
    let generation = world.bits() | 1;
    with_ledger(world, life, |ledger| ledger.restart(generation));
    generation_begins(world, life);
}

fn renew_table(world: &Rc<World>, life: u64) {
    let generation = world.bits() | 1;
    with_ledger(world, life, |ledger| ledger.renew(generation));
    generation_begins(world, life);
}

fn generation_begins(world: &Rc<World>, life: u64) {
    let now_ms = world.clock_ms(Who::Keeper);
    let begin = world.keeper.change(life, |process| {
        let keeper = process.ledger.as_ref()?.keeper();
        Some(process.broadcast.restarted(keeper, now_ms))
    });
    if let Some(begin) = begin.flatten() {
        send_to_all(world, &begin);
    }
}

/// None: the process has died meanwhile.
fn handle(world: &Rc<World>, life: u64, event: Event) -> Option<Vec<Action>> {
    let actions = with_ledger(world, life, |ledger| ledger.handle(event))?;
    let now_ms = world.clock_ms(Who::Keeper);
    for action in &actions {
        if let Action::Store(store) = action {
            let stored = |process: &mut Process| process.broadcast.stored(store.clone(), now_ms);
            let message = world.keeper.change(life, stored)?;
            send_to_all(world, &message);
        }
    }
    Some(actions)
}

/// While the ledger stores, the world may go on, and this process may die.
fn with_ledger<T>(
    world: &Rc<World>,
    life: u64,
    work: impl FnOnce(&mut Ledger<Seen>) -> T,
) -> Option<T> {
    let mut ledger = world
        .keeper
        .change(life, |process| process.ledger.take())??;
    let done = world.busy(Who::Keeper, || work(&mut ledger));
    world
        .keeper
        .change(life, |process| process.ledger = Some(ledger))?;
    Some(done)
}

/// Asks the database. The answer comes back to the same life, or the life is over.
fn ask<T: 'static>(
    world: &Rc<World>,
    life: u64,
    question: impl FnOnce(&mut Database) -> T + 'static,
    then: impl FnOnce(&Rc<World>, T) + 'static,
) {
    if world.keeper.life() != Some(life) {
        return;
    }
    world.after(world.to_database(), Who::Nobody, move |world| {
        let answer = commits::consult(world, question);
        world.after(
            world.to_database(),
            Who::Keeper,
            move |world| match answer {
                // A stream that was connected meanwhile is nobody's.
                _ if world.keeper.life() != Some(life) => disconnect(world, life),
                Some(answer) => then(world, answer),
                None => lose(world, life),
            },
        );
    });
}
