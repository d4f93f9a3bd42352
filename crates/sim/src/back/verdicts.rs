//! A stream goes on from what a child holds only if that is of the stream's own history.

use super::branch::BranchNo;
use super::world::World;
use crate::failure::{Checked, Failure, demand};
use crate::time::NodeNo;
use thorp_model::message::Begin;
use thorp_model::{Claim, Down, EdgeId, HomeId, Message, Verdict};

/// A node sends a message: a stream that begins is looked at.
pub(super) fn sent(world: &mut World, from: NodeNo, edge: EdgeId, message: &Message) -> Checked {
    let Message::Down(Down::Begin(begin)) = message else {
        return Ok(());
    };
    let branch = branch_of(world, from, begin.home)?;
    let claim = world.streams.claim(edge, begin.home).copied();
    check(world, from, branch, begin, claim.as_ref())?;
    world.streams.sent(edge, begin.home, branch);
    Ok(())
}

/// The history whose stream a node sends.
fn branch_of(world: &World, from: NodeNo, home: HomeId) -> Checked<BranchNo> {
    let node = &world.nodes[from.0];
    let branch = match node.home() == Some(home) {
        true => world.branch_of(from),
        false => world.streams.followed(from, home),
    };
    branch.ok_or_else(|| {
        let detail = format!(
            "{} begins a stream of home {home}, which it has not",
            node.name
        );
        Failure::new("verdicts", detail)
    })
}

fn check(
    world: &World,
    from: NodeNo,
    branch: BranchNo,
    begin: &Begin,
    claim: Option<&Claim>,
) -> Checked {
    let (name, history) = (&world.nodes[from.0].name, world.branch(branch));
    demand!(
        history.holds(&begin.receipt),
        "verdicts",
        "{name} begins a stream of {branch:?} with a receipt of another history: {begin:?}"
    );
    let Some(claim) = claim else {
        return Ok(());
    };
    let is_in = history.holds(&claim.receipt);
    match begin.verdict {
        Verdict::Known => demand!(
            is_in && history.has_made(&claim.receipt),
            "verdicts",
            "{name} goes on in {branch:?} with a child that claims {claim:?}"
        ),
        Verdict::Forget => demand!(
            is_in
                || !history.has_made(&claim.receipt)
                || claim.receipt.incarnation < history.incarnation,
            "verdicts",
            "{name} has met another history in {branch:?}, and does not close: {claim:?}"
        ),
    }
    Ok(())
}
