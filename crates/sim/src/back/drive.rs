//! The driver of every machine: hands over events, and does what the outbox says, in its order.

use super::network;
use super::node::Node;
use super::world::World;
use super::{disks, program, sessions, truth};
use crate::Authority;
use crate::failure::{Checked, Failure, demand};
use crate::given::{Given, Wanted};
use crate::node::Machine;
use crate::time::{At, Local, NodeNo};
use thorp_model::{Action, Down, Event, HomeId, Message, NodeKind, Outbox};
use thorp_protocol::{
    AliveLimits, Home, HomeAction, HomeConfig, Member, MemberAction, MemberConfig, OtherHistory,
    Redirector, RedirectorConfig, Reopen, Response,
};

/// Hands something to a node's machine, does what follows, and looks at the node.
pub(super) fn handle(world: &mut World, no: NodeNo, given: Given) -> Checked {
    let now = world.now;
    let node = &mut world.nodes[no.0];
    let clocks = node.now(now);
    let name = &node.name;
    world
        .trace
        .line(|| format!("{now:?} {name} ({}) <- {given:?}", no.0));
    note_claims(world, &given);
    let began = begins(&given);
    let Some(machine) = &mut world.node(no).machine else {
        return Ok(());
    };
    let actions = given.to(machine, clocks);
    if let Some((edge, home)) = began {
        follow(world, no, edge, home);
    }
    for action in actions {
        act(world, no, action)?;
    }
    world.plan_tick(no);
    truth::holds(world, no)
}

fn note_claims(world: &mut World, given: &Given) {
    if let Given::Event(Event::Received {
        edge,
        message: Message::Claims(claims),
    }) = given
    {
        world.streams.claimed(*edge, claims);
    }
}

fn begins(given: &Given) -> Option<(thorp_model::EdgeId, HomeId)> {
    match given {
        Given::Event(Event::Received {
            edge,
            message: Message::Down(Down::Begin(begin)),
        }) => Some((*edge, begin.home)),
        _ => None,
    }
}

fn follow(world: &mut World, no: NodeNo, edge: thorp_model::EdgeId, home: HomeId) {
    let branch = world.streams.come(edge, home);
    let machine = world.nodes[no.0].machine.as_ref();
    let listens = machine.is_some_and(|machine| machine.listens(home, edge));
    if let Some(branch) = branch.filter(|_| listens) {
        world.streams.follow(no, home, branch);
    }
}

fn act(world: &mut World, no: NodeNo, action: Action<Wanted>) -> Checked {
    match action {
        Action::Send(edge, message) => network::send(world, no, edge, message),
        Action::Close(edge, why) => {
            let (now, name) = (world.now, &world.nodes[no.0].name);
            world
                .trace
                .line(|| format!("{now:?} {name} ({}) closes {edge}: {why}", no.0));
            network::close(world, no, edge);
            Ok(())
        }
        Action::Note(note) => {
            world.counts.noted(note);
            Ok(())
        }
        Action::Role(Wanted::Home(HomeAction::Append(batch))) => {
            disks::append(world, no, batch);
            Ok(())
        }
        Action::Role(Wanted::Home(HomeAction::Load(page))) => {
            let at = world.now.plus_us(world.prng.below(5_000));
            world.plan_local(no, at, Local::Read(page));
            Ok(())
        }
        Action::Role(Wanted::Home(HomeAction::Close(met))) => closed(world, no, &met),
        Action::Role(Wanted::Home(HomeAction::Reopen(reopen))) => opened(world, no, &reopen),
        Action::Role(Wanted::Member(action)) => act_of_member(world, no, action),
    }
}

/// A home has met another history: of this very home, and not its own.
fn closed(world: &mut World, no: NodeNo, met: &OtherHistory) -> Checked {
    world.counts.answered("homes closed by a receipt");
    let Some(store) = &mut world.nodes[no.0].store else {
        return Ok(());
    };
    store.disk.close(met.receipt);
    let branch = &world.branches[store.branch.0];
    demand!(
        branch.has_made(&met.receipt) && !branch.holds(&met.receipt),
        "verdicts",
        "{} closes, and nothing proves another history: {met:?}",
        world.nodes[no.0].name
    );
    Ok(())
}

/// Operators of these villages open homes at their start.
fn opened(world: &mut World, no: NodeNo, reopen: &Reopen) -> Checked {
    demand!(
        false,
        "verdicts",
        "{} is opened, and nobody asked for it: {reopen:?}",
        world.nodes[no.0].name
    );
    Ok(())
}

fn act_of_member(world: &mut World, no: NodeNo, action: MemberAction) -> Checked {
    match action {
        MemberAction::Publish(publish) => {
            if let Some(program) = &world.nodes[no.0].program {
                program.cache.publish(&publish);
            }
        }
        MemberAction::Named(request, id) => sessions::named(world, no, request, id),
        MemberAction::Respond(request, response) => {
            if let Response::Outcome(id, outcome, _) = &response {
                truth::told(world, no, *id, outcome)?;
            }
            sessions::answered(world, no, request, response);
        }
        MemberAction::StreamBegan {
            home, incarnation, ..
        } => {
            if let Some(program) = &mut world.node(no).program {
                program.incarnations.insert(home, incarnation);
            }
        }
        MemberAction::WentBack(home) => return forgotten(world, no, home),
        // Members of these villages have no log.
        MemberAction::Keep(_)
        | MemberAction::Rejected(..)
        | MemberAction::Locked { .. }
        | MemberAction::LockLost { .. }
        | MemberAction::Showing(_)
        | MemberAction::Arrived(..)
        | MemberAction::Evicted
        | MemberAction::Hint(_)
        | MemberAction::Joined(_)
        | MemberAction::HomesTold { .. }
        | MemberAction::StreamEnded(_) => {}
    }
    Ok(())
}

/// A member forgets what it held of a home, which has more than one history.
fn forgotten(world: &mut World, no: NodeNo, home: HomeId) -> Checked {
    world.counts.answered("members that forgot");
    let histories = world.branches.iter().filter(|branch| branch.home == home);
    let name = &world.nodes[no.0].name;
    demand!(
        histories.count() > 1,
        "verdicts",
        "{name} forgets home {home}, whose disk never went back"
    );
    let (event, process) = (world.counts.events, (no, world.nodes[no.0].life));
    let told = world.ledger.went_back.entry((process, home)).or_default();
    told.push(event);
    Ok(())
}

/// The deadline of a machine may have come.
pub(super) fn tick(world: &mut World, no: NodeNo) -> Checked {
    let now = world.now;
    let node = world.node(no);
    if node.tick_planned != Some(now) {
        return Ok(());
    }
    node.tick_planned = None;
    let due = node.machine.as_ref().and_then(|machine| machine.deadline());
    if due.is_some_and(|due| node.at(due) <= now) {
        return handle(world, no, Given::Event(Event::Tick));
    }
    world.plan_tick(no);
    Ok(())
}

// --- Life and death ---

/// Starts a node, or starts it again.
pub(super) fn start(world: &mut World, no: NodeNo) -> Checked {
    let (now, id) = (world.now, world.draw_id(no));
    let node = world.node(no);
    node.life += 1;
    node.started = now;
    node.id = id;
    node.tick_planned = None;
    let name = node.name.clone();
    world
        .trace
        .line(|| format!("{now:?} {name} ({}) starts", no.0));
    match world.nodes[no.0].kind {
        NodeKind::Home => start_home(world, no)?,
        NodeKind::Redirector => start_site(world, no),
        NodeKind::Member => start_member(world, no),
    }
    world.plan_tick(no);
    for parent in world.nodes[no.0].parents.clone() {
        let at = now.plus_us(world.prng.below(20_000));
        world.plan_local(no, at, Local::Dial { parent });
    }
    Ok(())
}

fn alive(world: &World) -> Option<AliveLimits> {
    Some(AliveLimits {
        every_ms: world.plan.alive_ms,
        missed_max: 3,
    })
}

fn start_home(world: &mut World, no: NodeNo) -> Checked {
    let random = world.prng.bits();
    let others = world.plan.home_ids();
    let alive = alive(world);
    let node = &world.nodes[no.0];
    let now = node.now(world.now);
    let Some(store) = &node.store else {
        return Ok(());
    };
    let home = store.home;
    let others = others.filter(|other| *other != home);
    let config = HomeConfig {
        other_homes: others.map(|other| format!("h{}", other.0 - 1)).collect(),
        mob_bytes_high: world.plan.mob_bytes_high,
        alive,
        verifier: Authority::default().verifier(),
        history: store.disk.history(random),
        ..HomeConfig::new(home, node.name.clone(), node.id)
    };
    let mut outbox = Outbox::new();
    let opened = Home::open(config, &store.disk, now, &mut outbox);
    let machine = opened.map_err(|error| {
        Failure::new("recovery", format!("{} does not open: {error}", node.name))
    })?;
    let branch = store.branch;
    let end = world.branch(branch).oracle.end;
    demand!(
        machine.durable() == end,
        "recovery",
        "{} opens at {}, and {branch:?} ends at {end}",
        world.nodes[no.0].name,
        machine.durable()
    );
    let life = machine.life();
    world.branches[branch.0].begin_life(life.0);
    let node = world.node(no);
    if let Some(store) = &mut node.store {
        store.disk.begin_life(life);
    }
    node.machine = Some(Machine::Home(Box::new(machine)));
    for action in outbox.actions {
        act(world, no, action.map(Wanted::Home))?;
    }
    Ok(())
}

fn start_site(world: &mut World, no: NodeNo) {
    let alive = alive(world);
    let node = world.node(no);
    let config = RedirectorConfig {
        alive,
        ..RedirectorConfig::new(node.id, node.name.clone())
    };
    node.machine = Some(Machine::Site(Box::new(Redirector::new(config))));
}

fn start_member(world: &mut World, no: NodeNo) {
    let alive = alive(world);
    let sessions = (0..world.plan.sessions)
        .map(|_| world.prng.fork())
        .collect();
    let node: &mut Node = &mut world.nodes[no.0];
    let config = MemberConfig {
        alive,
        signer: Authority::default().signer(&node.name, node.who()),
        ..MemberConfig::new(node.id, node.name.clone())
    };
    node.machine = Some(Machine::Member(Box::new(Member::new(config))));
    node.program = Some(program::Program::new(sessions));
    for session in 0..world.plan.sessions {
        let at = world.now.plus_us(world.prng.below(100_000));
        world.plan_local(no, at, Local::Step { session, wait: 0 });
    }
}

/// A node dies: its memory is lost, its connections break, its disk keeps what was synced, and perhaps some more.
pub(super) fn kill(world: &mut World, no: NodeNo) -> Checked {
    let now: At = world.now;
    let node = world.node(no);
    if !node.is_up() {
        return Ok(());
    }
    node.machine = None;
    node.program = None;
    node.life += 1;
    let name = node.name.clone();
    world
        .trace
        .line(|| format!("{now:?} {name} ({}) dies", no.0));
    world.streams.forget(no);
    network::break_all(world, no);
    disks::crash(world, no)
}
