//! What programs see: all of it stands together, read-only transactions in a
//! past that is recent enough, sessions never go back.

use crate::failure::{Checked, demand};
use crate::program::{Session, Transaction};
use crate::time::{At, NodeNo};
use crate::world::World;
use thorp_core::ids::Position;

/// Milliseconds that a message may be on its way at worst: several hops, each
/// with a slow link and a reader that does not read.
const HOPS_MS_MAX: u64 = 15_000;

/// All that a transaction saw stood together at one position.
pub fn opacity(world: &World, transaction: &Transaction) -> Checked {
    match world.truths.get(&transaction.home) {
        Some(truth) => transaction.check_opacity(truth, truth.end),
        None => Ok(()),
    }
}

/// A read-only transaction commits here without a message (rule 5).
pub fn read_only(
    world: &World,
    no: NodeNo,
    session: &Session,
    transaction: &Transaction,
    evidence: Position,
) -> Checked {
    let Some(truth) = world.truths.get(&transaction.home) else {
        return Ok(());
    };
    for ((_, object), seen) in &transaction.seen {
        let is = truth.object(*object, evidence);
        demand!(
            is == *seen,
            "serializability",
            "a read-only transaction at {} with evidence {evidence} saw {object} as {seen:?}; it is {is:?}",
            world.nodes[no.0].name
        );
    }
    demand!(
        evidence <= truth.end,
        "durable first",
        "evidence {evidence} lies above the end of the log, {}",
        truth.end
    );
    if transaction.seen.is_empty() {
        return Ok(());
    }
    self::session(session, evidence, "reads as of")?;
    staleness(world, transaction, evidence)
}

/// A session sees what it has seen and written before.
pub fn session(session: &Session, position: Position, what: &str) -> Checked {
    demand!(
        position >= session.floor,
        "sessions",
        "a session that has been at {} {what} {position}",
        session.floor
    );
    Ok(())
}

/// What is read was current not too long before the transaction began.
fn staleness(world: &World, transaction: &Transaction, evidence: Position) -> Checked {
    let allowed = world.village.habits.staleness_ms_max + HOPS_MS_MAX;
    let since = At(transaction.began.0.saturating_sub(allowed * 1000));
    let told = world.durable_told.get(&transaction.home);
    let told = told.into_iter().flatten();
    let known = told.take_while(|(at, _)| *at <= since).last();
    demand!(
        known.is_none_or(|(_, position)| *position <= evidence),
        "staleness",
        "a transaction begun at {:?} reads as of {evidence}; {known:?} was told long before",
        transaction.began
    );
    Ok(())
}
