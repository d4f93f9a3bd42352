//! What scribes must see, held against what they wrote.

use super::ledger::{Expected, Fate, tokens_of};
use super::plan::{HOME, SEGMENT};
use super::program::Seen;
use super::token::Token;
use super::world::World;
use crate::failure::{Checked, demand};
use crate::node::Machine;
use std::collections::BTreeSet;
use thorp_model::{EdgeId, Update, UpdateId};
use thorp_protocol::Member;

/// Whether a pull says what a scribe sees: its member stands where its parent does, in the stream in which the pull left.
pub(super) fn counts(world: &World, no: usize, expected: &Expected) -> bool {
    match &world.nodes[no].machine {
        Some(Machine::Member(member)) => {
            expected.stream == stream(member) && !member.is_behind(HOME)
        }
        _ => false,
    }
}

/// A scribe writes.
pub(super) fn asked(world: &mut World, no: usize, token: Token, is_wrong: bool) {
    let fate = Fate {
        of: (no, world.nodes[no].life),
        kept: None,
        keeper: None,
        is_rejected: false,
        is_committed: false,
        is_wrong,
    };
    world.ledger.fates.insert(token, fate);
}

/// How many were written to an object.
pub(super) fn tokens(world: &World, slot: u16) -> usize {
    let tokens = world.ledger.fates.keys();
    tokens.filter(|token| token.slot() == slot).count()
}

/// It is answered.
pub(super) fn kept(world: &mut World, no: usize, token: Token, kept: (UpdateId, bool)) {
    world.counts.answered(match kept.1 {
        true => "updates kept with a lease",
        false => "updates kept without one",
    });
    let keeper = world.process(kept.0.log.0);
    if keeper.is_some_and(|(keeper, _)| keeper != no) {
        world.counts.answered("updates in the log of a site");
    }
    let lapses = keeper.and_then(|keeper| world.ledger.lapses.get(&keeper));
    let lapses = lapses.copied().unwrap_or_default();
    world.ledger.since.insert(token, lapses);
    if let Some(fate) = world.ledger.fates.get_mut(&token) {
        fate.kept = Some(kept);
        fate.keeper = keeper;
    }
}

/// The home has committed it, and all readers with hard bounds have seen it.
pub(super) fn committed(world: &mut World, token: Token) {
    world.counts.answered("commits answered");
    if let Some(fate) = world.ledger.fates.get_mut(&token) {
        fate.is_committed = true;
    }
}

/// It was refused, or not given out, and will never be.
pub(super) fn refused(world: &mut World, token: Token) {
    if let Some(fate) = world.ledger.fates.get_mut(&token) {
        fate.is_rejected = true;
    }
}

/// Whether a member does not know yet which pages have changed (rule 13).
pub(super) fn is_held(world: &World, no: usize) -> bool {
    match &world.nodes[no].machine {
        Some(Machine::Member(member)) => member.is_behind(HOME),
        _ => true,
    }
}

/// A home has refused it, and the log says so.
pub(super) fn rejected(world: &mut World, update: &Update) {
    world.counts.answered("updates rejected");
    for token in tokens_of(update) {
        if let Some(fate) = world.ledger.fates.get_mut(&token) {
            fate.is_rejected = true;
        }
    }
}

/// Notes whether a member's lease has lapsed.
pub(super) fn look_at_lease(world: &mut World, no: usize) {
    let node = &world.nodes[no];
    let process = (no, node.life);
    let now = node.now(world.now).mono;
    let Some(Machine::Member(member)) = &node.machine else {
        return;
    };
    let believes = member.holds_lease(HOME, SEGMENT, now);
    let ledger = &mut world.ledger;
    if believes {
        ledger.believed.insert(process);
    } else if ledger.believed.remove(&process) {
        *ledger.lapses.entry(process).or_default() += 1;
    }
}

/// The stream of the home at a member.
fn stream(member: &Member) -> Option<EdgeId> {
    member.streams().find_map(|(_, _, edge)| edge)
}

/// What a pull of a member that leaves now has to find.
pub(super) fn expected(world: &World, no: usize) -> Expected {
    let ledger = &world.ledger;
    let is_leased = |fate: &Fate| fate.is_committed || fate.kept.is_some_and(|(_, leased)| leased);
    let leased = ledger.fates.iter().filter(|(_, fate)| is_leased(fate));
    let all = leased.map(|(token, _)| *token);
    let stream = match &world.nodes[no].machine {
        Some(Machine::Member(member)) => stream(member),
        _ => None,
    };
    let tokens = all.collect();
    let sent = world.now;
    still_expected(
        world,
        Expected {
            tokens,
            stream,
            sent,
        },
    )
}

/// Of these, those whose process lives and has believed in its lease all the time, and those that were seen to be saved. What a
/// lost writer had answered and never sent is missed (rule C10).
pub(super) fn still_expected(world: &World, expected: Expected) -> Expected {
    let ledger = &world.ledger;
    let is_certain = |token: &Token| {
        let is_good = |fate: &&Fate| !fate.is_rejected && !fate.is_wrong;
        let Some(fate) = ledger.fates.get(token).filter(is_good) else {
            return false;
        };
        if fate.is_committed {
            return true;
        }
        let Some((no, life)) = fate.keeper else {
            return ledger.saved.contains(token);
        };
        let node = &world.nodes[no];
        let lapses = ledger.lapses.get(&(no, life)).copied().unwrap_or_default();
        let now = node.now(world.now).mono;
        let believes = match &node.machine {
            Some(Machine::Member(member)) => member.holds_lease(HOME, SEGMENT, now),
            _ => false,
        };
        let has_lasted = ledger.since.get(token) == Some(&lapses);
        ledger.saved.contains(token) || node.life == life && believes && has_lasted
    };
    let kept = expected.tokens.iter().copied().filter(is_certain);
    let tokens = kept.collect();
    Expected { tokens, ..expected }
}

/// What a scribe sees of an object holds together.
pub(super) fn judge(world: &mut World, no: usize, slot: u16, seen: &Seen) -> Checked {
    let name = &world.nodes[no].name;
    for (what, tokens) in [("committed", &seen.committed), ("shown", &seen.shown)] {
        let mut once = BTreeSet::new();
        let again = tokens.iter().find(|token| !once.insert(*token));
        demand!(
            again.is_none(),
            "once",
            "{name} sees a token twice, {what}, among {}: {again:?}",
            tokens.len()
        );
    }
    let process = (no, world.nodes[no].life);
    for (token, fate) in &world.ledger.fates {
        let is_answered = fate.kept.is_some() || fate.is_committed;
        let is_own = fate.of == process && token.slot() == slot && is_answered;
        demand!(
            !is_own || fate.is_rejected || fate.is_wrong || seen.shown.contains(token),
            "own writes",
            "{name} does not see its own {token:?}: {:?}, committed {:?}",
            seen.shown,
            seen.committed
        );
    }
    for token in &seen.committed {
        let fate = world.ledger.fates.get(token);
        demand!(
            fate.is_some_and(|fate| !fate.is_rejected && !fate.is_wrong),
            "exactly once",
            "{name} sees {token:?} committed, which is {fate:?}"
        );
    }
    world.ledger.saved.extend(&seen.committed);
    let others = seen.shown.iter();
    let mut others = others.filter(|token| token.node() != no);
    if others.any(|token| !world.ledger.saved.contains(token)) {
        let what = "tokens of others read before they were saved";
        world.counts.answered(what);
    }
    Ok(())
}

/// What a pull has promised is there.
pub(super) fn judge_pull(world: &World, no: usize, expected: &Expected, seen: &Seen) -> Checked {
    let Some(slot) = seen.committed.first().map(|token| token.slot()) else {
        return Ok(());
    };
    for token in expected.tokens.iter().filter(|token| token.slot() == slot) {
        let fate = world.ledger.fates.get(token);
        let is_rejected = fate.is_some_and(|fate| fate.is_rejected);
        demand!(
            is_rejected || seen.committed.contains(token),
            "pulls",
            "{} pulled, and misses {token:?}, which was answered before; it sees {} others",
            world.nodes[no].name,
            seen.committed.len()
        );
    }
    Ok(())
}

/// Tokens that were answered and not rejected.
pub(super) fn answered(world: &World) -> impl Iterator<Item = Token> + '_ {
    let fates = world.ledger.fates.iter();
    let answered =
        fates.filter(|(_, fate)| (fate.kept.is_some() || fate.is_committed) && !fate.is_rejected);
    answered.map(|(token, _)| *token)
}
