//! The driver of every machine: hands over events, and does what the outbox says, in its order.

use super::plan::HOME;
use super::program::Scribe;
use super::world::{Local, World};
use super::{network, truth};
use crate::Authority;
use crate::failure::{Checked, Failure};
use crate::given::{Given, Wanted};
use crate::node::Machine;
use thorp_model::records::{UpdateRecord, decode, decode_page, page_key, update_range};
use thorp_model::{
    Action, Batch, Event, Lack, Mark, NameId, NodeKind, Outbox, PageId, Purpose, Reader, Scan,
    Table,
};
use thorp_protocol::{
    AliveLimits, Home, HomeAction, HomeCommand, HomeConfig, LoadResult, Member, MemberAction,
    MemberCommand, MemberConfig, Redirector, RedirectorConfig,
};

/// Hands something to a node's machine, and does what follows.
pub(super) fn handle(world: &mut World, no: usize, given: Given) -> Checked {
    let (at, now) = (world.now, world.nodes[no].now(world.now));
    let name = &world.nodes[no].name;
    world.trace.line(|| format!("{at} {name} <- {given:?}"));
    let actions = match &mut world.nodes[no].machine {
        Some(machine) => given.to(machine, now),
        None => Vec::new(),
    };
    perform(world, no, actions)
}

fn perform(world: &mut World, no: usize, actions: Vec<Action<Wanted>>) -> Checked {
    for action in actions {
        match action {
            Action::Send(edge, message) => network::send(world, no, edge, message),
            Action::Close(edge, why) => {
                let (at, name) = (world.now, &world.nodes[no].name);
                world
                    .trace
                    .line(|| format!("{at} {name} closes {edge}: {why}"));
                network::close(world, edge);
            }
            Action::Note(note) => world.counts.noted(note),
            Action::Role(Wanted::Home(HomeAction::Append(batch))) => append(world, no, batch),
            Action::Role(Wanted::Home(HomeAction::Load(page))) => {
                let at = world.now + world.prng.below(3_000);
                world.plan_local(no, at, Local::Read(page));
            }
            Action::Role(Wanted::Home(HomeAction::Close(_) | HomeAction::Reopen(_))) => {
                return Err(Failure::new("driver", "this home never goes back"));
            }
            Action::Role(Wanted::Member(action)) => act_of_member(world, no, action)?,
        }
    }
    truth::look_at_lease(world, no);
    world.plan_tick(no);
    Ok(())
}

fn act_of_member(world: &mut World, no: usize, action: MemberAction) -> Checked {
    match action {
        MemberAction::Publish(publish) => {
            if let Some(scribe) = &world.nodes[no].scribe {
                scribe.cache.publish(&publish);
            }
        }
        MemberAction::Respond(request, response) => {
            if let Some(scribe) = &mut world.nodes[no].scribe {
                scribe.answers.insert(request, response);
            }
            let at = world.now + world.prng.below(500);
            world.plan_local(no, at, Local::Answered(request));
        }
        MemberAction::Keep(batch) => {
            let is_new = batch.purpose == Purpose::NewData;
            let is_full = world.nodes[no].disk.as_ref().is_some_and(|disk| disk.full);
            if is_new && is_full {
                let command = MemberCommand::NotKept(batch.mark, Some(Lack::OF_ALL));
                return handle(world, no, Given::Member(command));
            }
            append(world, no, batch);
        }
        MemberAction::Rejected(update, _) => truth::rejected(world, &update),
        _ => {}
    }
    Ok(())
}

// --- Disks ---

fn append(world: &mut World, no: usize, batch: Batch) {
    let Some(disk) = &mut world.nodes[no].disk else {
        return;
    };
    // Only what is new is refused by a full log.
    let is_full = std::mem::take(&mut disk.full);
    disk.append(batch);
    disk.full = is_full;
    if !disk.syncing {
        disk.syncing = true;
        plan_sync(world, no);
    }
}

fn plan_sync(world: &mut World, no: usize) {
    let (share, delay) = (world.prng.bits(), world.prng.bits());
    let Some(disk) = &world.nodes[no].disk else {
        return;
    };
    let pending = disk.pending().max(1) as u64;
    let batches = 1 + (share % (pending * 2)).min(pending - 1) as usize;
    let at = world.now + 200 + delay % (disk.sync_ms_max * 1000);
    world.plan_local(no, at, Local::Sync(batches));
}

fn sync(world: &mut World, no: usize, batches: usize) {
    let Some(disk) = &mut world.nodes[no].disk else {
        return;
    };
    let mark = disk.mark_of(batches);
    disk.sync(batches);
    let more = disk.pending() > 0;
    disk.syncing = more;
    if let Some(mark) = mark {
        let at = world.now + world.prng.below(2_000);
        world.plan_local(no, at, Local::SyncTold(mark));
    }
    if more {
        plan_sync(world, no);
    }
}

fn sync_told(world: &mut World, no: usize, mark: Mark) -> Checked {
    match world.nodes[no].kind {
        NodeKind::Home => handle(world, no, Given::Home(HomeCommand::Durable(mark))),
        _ => handle(world, no, Given::Member(MemberCommand::Kept(mark))),
    }
}

/// A full log has room again.
pub(super) fn refill(world: &mut World, no: usize) {
    if let Some(disk) = &mut world.nodes[no].disk {
        disk.full = false;
    }
}

fn read(world: &mut World, no: usize, page: PageId) -> Checked {
    let mut prng = world.prng.fork();
    let key = page_key(page);
    let Some(disk) = &mut world.nodes[no].disk else {
        return Ok(());
    };
    let stored = disk.read(&mut prng, Table::Pages, &key);
    let stored = stored.map_err(|_| Failure::new("disk", "no bit was flipped"))?;
    let image = stored.map(|value| decode_page(&key, &value)).transpose();
    let image = image.map_err(|error| Failure::new("disk", error.to_string()))?;
    let result = LoadResult::Found(image);
    handle(world, no, Given::Home(HomeCommand::Loaded { page, result }))
}

// --- What happens at a node ---

/// Something happens at a node that is alive.
pub(super) fn happen(world: &mut World, no: usize, local: Local) -> Checked {
    match local {
        Local::Tick => {
            let now = world.now;
            let node = &mut world.nodes[no];
            if node.tick_planned != Some(now) {
                return Ok(());
            }
            node.tick_planned = None;
            let due = node.machine.as_ref().and_then(|machine| machine.deadline());
            if due.is_some_and(|due| node.at(due) <= now) {
                return handle(world, no, Given::Event(Event::Tick));
            }
            world.plan_tick(no);
        }
        Local::Dial(parent) => network::dial(world, no, parent),
        Local::Sync(batches) => sync(world, no, batches),
        Local::SyncTold(mark) => return sync_told(world, no, mark),
        Local::Read(page) => return read(world, no, page),
        // The program does these.
        Local::Step | Local::Answered(_) => {}
    }
    Ok(())
}

// --- Life and death ---

/// Starts a node, or starts it again.
pub(super) fn start(world: &mut World, no: usize) -> Checked {
    if world.nodes[no].machine.is_some() {
        return Ok(());
    }
    let (now, id) = (world.now, world.draw_id(no));
    let node = &mut world.nodes[no];
    node.life += 1;
    node.started = now;
    node.id = id;
    node.tick_planned = None;
    let name = &node.name;
    world.trace.line(|| format!("{now} {name} starts"));
    match world.nodes[no].kind {
        NodeKind::Home => start_home(world, no)?,
        NodeKind::Redirector => start_site(world, no),
        NodeKind::Member => start_member(world, no)?,
    }
    world.plan_tick(no);
    for parent in world.nodes[no].parents.clone() {
        let at = now + world.prng.below(20_000);
        world.plan_local(no, at, Local::Dial(parent));
    }
    Ok(())
}

fn alive(world: &World) -> Option<AliveLimits> {
    Some(AliveLimits {
        every_ms: world.plan.alive_ms,
        missed_max: 3,
    })
}

fn start_home(world: &mut World, no: usize) -> Checked {
    let random = world.prng.bits();
    let (alive, lease_ms) = (alive(world), world.plan.lease_ms);
    let node = &world.nodes[no];
    let now = node.now(world.now);
    let Some(disk) = &node.disk else {
        return Err(Failure::new("driver", "the home has no disk"));
    };
    let config = HomeConfig {
        alive,
        lease_ms,
        verifier: Authority::default().verifier(),
        history: disk.history(random),
        ..HomeConfig::new(HOME, node.name.clone(), node.id)
    };
    let mut outbox = Outbox::new();
    let opened = Home::open(config, disk, now, &mut outbox);
    let home = opened.map_err(|error| Failure::new("recovery", error.to_string()))?;
    let life = home.life();
    let node = &mut world.nodes[no];
    if let Some(disk) = &mut node.disk {
        disk.begin_life(life);
    }
    node.machine = Some(Machine::Home(Box::new(home)));
    let actions = outbox.actions.into_iter();
    perform(
        world,
        no,
        actions.map(|action| action.map(Wanted::Home)).collect(),
    )
}

fn start_site(world: &mut World, no: usize) {
    let alive = alive(world);
    let keeper = world.plan.keeper(no - 1);
    let keeper = keeper.map(|member| 1 + world.plan.sites.len() + member);
    let log_keeper = keeper.map(|keeper| NameId::of(&world.nodes[keeper].name));
    let node = &mut world.nodes[no];
    let config = RedirectorConfig {
        alive,
        log_keeper,
        ..RedirectorConfig::new(node.id, node.name.clone())
    };
    node.machine = Some(Machine::Site(Box::new(Redirector::new(config))));
}

fn start_member(world: &mut World, no: usize) -> Checked {
    let alive = alive(world);
    let keeps = world.plan.is_keeper(world.member_of(no));
    let node = &mut world.nodes[no];
    let log = node.disk.as_ref().map(in_log).transpose()?;
    let config = MemberConfig {
        alive,
        log,
        signer: Authority::default().signer(&node.name, node.who()),
        verifier: keeps.then(|| Authority::default().verifier()),
        ..MemberConfig::new(node.id, node.name.clone())
    };
    node.machine = Some(Machine::Member(Box::new(Member::new(config))));
    node.scribe = Some(Scribe::new(no, node.life, world.plan.pages));
    let at = world.now + world.prng.below(200_000);
    world.plan_local(no, at, Local::Step);
    Ok(())
}

/// What a log has when its member starts.
pub(super) fn in_log(disk: &crate::disk::Disk) -> Checked<Vec<UpdateRecord>> {
    let (from, to) = update_range();
    let (mut all, mut wrong) = (Vec::new(), None);
    let scanned = disk.scan(Table::Meta, &from, &to, &mut |key, value| {
        match decode(Table::Meta, key, value) {
            Ok(record) => all.push(record),
            Err(error) => wrong = Some(error),
        }
        Scan::Go
    });
    let failed = scanned.err().or(wrong);
    failed.map_or(Ok(all), |error| Err(Failure::new("log", error.to_string())))
}

/// A node dies: its memory is lost, its connections break, its disk keeps what was synced, and perhaps some more.
pub(super) fn kill(world: &mut World, no: usize) {
    let share = world.prng.bits() as usize;
    let (now, node) = (world.now, &mut world.nodes[no]);
    node.machine = None;
    node.scribe = None;
    node.life += 1;
    if let Some(disk) = &mut node.disk {
        let survive = share % (disk.pending() + 1);
        disk.crash(survive);
    }
    let name = &node.name;
    world.trace.line(|| format!("{now} {name} dies"));
    network::break_all(world, no);
}
