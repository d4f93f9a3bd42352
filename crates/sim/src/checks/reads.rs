//! What programs see: all of it stands together, read-only transactions in a
//! past that is recent enough, sessions never go back.

use crate::failure::{Checked, demand};
use crate::freshness::Freshness;
use crate::program::Transaction;
use crate::time::NodeNo;
use crate::world::World;
use thorp_model::{HomeId, Position, Stamp};

/// All that a transaction saw of a home stood together at one position.
pub fn opacity(world: &World, transaction: &Transaction) -> Checked {
    for home in &transaction.homes {
        let Some(oracle) = world.oracles.get(home) else {
            continue;
        };
        // Own values before their place stand together with the rest at no position yet (trap 6).
        let mut own = transaction.core.reads().built_on().iter();
        if own.all(|(of, _)| of != home) {
            transaction.check_opacity(*home, oracle, oracle.end)?;
        } else {
            super::chains::opacity(world, *home, oracle, transaction)?;
        }
    }
    Ok(())
}

/// A read-only transaction commits here without a message (rule 5): what it read of a home.
pub fn read_only(
    world: &World,
    no: NodeNo,
    transaction: &Transaction,
    home: HomeId,
    (floor, evidence): (Position, Position),
) -> Checked {
    let Some(oracle) = world.oracles.get(&home) else {
        return Ok(());
    };
    let seen = transaction.seen.iter().filter(|((of, _), _)| *of == home);
    let nothing = seen.clone().next().is_none();
    for ((_, object), seen) in seen {
        let is = oracle.object(*object, evidence);
        demand!(
            is == *seen,
            "serializability",
            "a read-only transaction at {} with evidence {evidence} saw {object} as {seen:?}; it is {is:?}",
            world.nodes[no.0].name
        );
    }
    demand!(
        evidence <= oracle.end,
        "durable first",
        "evidence {evidence} lies above the end of the log, {}",
        oracle.end
    );
    if nothing {
        return Ok(());
    }
    self::session(floor, evidence, "reads as of")?;
    staleness(world, no, transaction, (home, evidence))
}

/// A session sees what it has seen and written before.
pub fn session(floor: Position, position: Position, what: &str) -> Checked {
    demand!(
        position >= floor,
        "sessions",
        "a session that has been at {floor} {what} {position}"
    );
    Ok(())
}

/// A transaction stands nowhere before where its program stood when it began (rule 5).
pub fn stands(transaction: &Transaction, stamp: Stamp) -> Checked {
    demand!(
        stamp >= transaction.floor,
        "sessions",
        "a program that had stood at {:?} when its transaction began stands at {stamp:?}",
        transaction.floor
    );
    Ok(())
}

/// What is read is no older than was promised. A transaction that commits at `c` lies no further
/// back than `c - max_staleness - way`: its stream was heard of within `max_staleness`, and what it
/// heard left the home when its way here began. That way is not bounded by a number but followed
/// (`news`): of the last heartbeat that came here, the time on each link, in each queue, and until
/// each reader on the way read it. Nothing else counts as hearing of the home, above all nothing
/// that a parent sends out of its memory.
///
/// Evidence that is frozen, because a page that was read had to be given up (rule 2), is as of
/// then: it is held against what was heard when the transaction began. How long the home had been
/// silent then, nobody promises: members look at that only when they commit.
fn staleness(
    world: &World,
    no: NodeNo,
    transaction: &Transaction,
    (home, evidence): (HomeId, Position),
) -> Checked {
    let node = &world.nodes[no.0];
    let news = node.news.get(&home).copied().unwrap_or_default();
    silence(world, no, news)?;
    let cache = node.resident.as_ref().map(|resident| &resident.cache);
    let frozen = cache.is_some_and(|cache| evidence < cache.position(home));
    let begun = transaction.news.get(&home).copied().unwrap_or_default();
    let news = if frozen { begun } else { news };
    let told = world.durable_told.get(&home).into_iter().flatten();
    let known = told.take_while(|(at, _)| *at < news.as_of).last();
    demand!(
        known.is_none_or(|(_, position)| *position <= evidence),
        "staleness",
        "a transaction at {} begun at {:?} reads as of {evidence} (frozen: {frozen}); the home \
         was heard of as of {:?}, and had told {known:?} before",
        node.name,
        transaction.began,
        news.as_of
    );
    Ok(())
}

/// The home was heard of not too long before.
fn silence(world: &World, no: NodeNo, news: Freshness) -> Checked {
    let silent = world.now.ms_since(news.arrived);
    // Nodes count whole milliseconds: when it came, and what time it is.
    let counted = world.village.habits.staleness_ms_max + 1;
    let slowest = 1000 - world.village.mono_per_mille_max;
    let allowed = (counted * 1000).div_ceil(slowest);
    demand!(
        silent <= allowed,
        "staleness",
        "a transaction at {} commits without a message; it had not heard of the home for \
         {silent} ms, and {allowed} ms are allowed",
        world.nodes[no.0].name
    );
    Ok(())
}
