//! Certificates change while a village works: a member's is renewed, the authority gets a new key, a member is revoked, and
//! a site fails in between. No node loses an edge by that but the revoked member.

use crate::Outcome;
use crate::faults::Tally;
use crate::roster::{RENEWED, REVOKED, SHORT_LIFE, member};
use crate::village::{Edges, PATIENCE, Village};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// A node looks at its files and its edges at least so often.
const LOOKED_AT: Duration = Duration::from_secs(4);
/// Nobody moves any more when all edges have stayed so long.
const SETTLED: Duration = Duration::from_secs(4);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What is done to the village, in this order.
const STEPS: [Step; 7] = [
    Step::Renew,
    Step::BeginRotation,
    Step::FailOver,
    Step::Switch,
    Step::Revoke,
    Step::FinishRotation,
    Step::FailOver,
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Renew,
    BeginRotation,
    FailOver,
    Switch,
    Revoke,
    FinishRotation,
}

/// Takes all steps, and demands after each one that the edges are there. Between two steps, transactions commit.
pub(crate) fn change_all(village: &mut Village, transactions: u64) -> Outcome<Tally> {
    let mut tally = Tally::default();
    for (step, done) in STEPS.into_iter().zip(1..) {
        let before = settled(village)?;
        step.take(village)?;
        thread::sleep(LOOKED_AT);
        let after = settled(village)?;
        let lost: Vec<_> = before.difference(&after).collect();
        println!(
            "{}: of {} edges, {} are lost",
            step.name(),
            before.len(),
            lost.len()
        );
        step.judge(village, &lost)?;
        *tally.0.entry(step.name()).or_default() += 1;
        village.await_commits(transactions * done / STEPS.len() as u64)?;
    }
    Ok(tally)
}

/// The edges, once nobody moves.
fn settled(village: &Village) -> Outcome<Edges> {
    let (mut edges, mut since) = (village.edges()?, Instant::now());
    let end = Instant::now() + PATIENCE;
    while since.elapsed() < SETTLED {
        if Instant::now() > end {
            return Err("members move for ever".into());
        }
        thread::sleep(LOOK_EVERY);
        let now = village.edges()?;
        if now != edges {
            (edges, since) = (now, Instant::now());
        }
    }
    Ok(edges)
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Step::Renew => "certificates renewed",
            Step::BeginRotation => "rotations begun",
            Step::FailOver => "sites killed",
            Step::Switch => "rotations switched",
            Step::Revoke => "members revoked",
            Step::FinishRotation => "rotations finished",
        }
    }

    fn take(self, village: &mut Village) -> Outcome<()> {
        match self {
            Step::Renew => renew(village),
            Step::BeginRotation => rotate(village, "--begin"),
            Step::Switch => rotate(village, "--switch"),
            Step::FinishRotation => rotate(village, "--finish"),
            Step::FailOver => {
                let site = village.site();
                village.kill(site);
                // Its members turn to each other meanwhile.
                thread::sleep(LOOKED_AT);
                village.start_again(site)
            }
            Step::Revoke => {
                village.revoke(REVOKED)?;
                await_gone(village)?;
                village.retire(REVOKED)
            }
        }
    }

    /// Whether only those edges are lost that have to be.
    fn judge(self, village: &Village, lost: &[&(usize, u64, String)]) -> Outcome<()> {
        let may_go = |(node, _, child): &(usize, u64, String)| match self {
            Step::FailOver => *node == village.site() || !child.starts_with("thorp:member/"),
            Step::Revoke => is_revoked(child),
            _ => false,
        };
        if let Some(edge) = lost.iter().find(|edge| !may_go(edge)) {
            return Err(format!("{}: the edge {edge:?} is lost", self.name()).into());
        }
        Ok(())
    }
}

/// The member gets its next certificate in the last third of the first one, and stays beyond the end of that.
fn renew(village: &Village) -> Outcome<()> {
    let end = village.certificate_ends(RENEWED)?;
    sleep_until(end - SHORT_LIFE / 4);
    village.invite_member(RENEWED)?;
    if village.certificate_ends(RENEWED)? <= end {
        return Err("the certificate was not renewed".into());
    }
    sleep_until(end + LOOKED_AT);
    Ok(())
}

fn sleep_until(time: SystemTime) {
    // Of a time that is past, nothing is left.
    thread::sleep(time.duration_since(SystemTime::now()).unwrap_or_default());
}

/// Waits until no node has an edge of the revoked member.
fn await_gone(village: &Village) -> Outcome<()> {
    let end = Instant::now() + PATIENCE;
    let is_there = |edges: Edges| edges.iter().any(|edge| is_revoked(&edge.2));
    while is_there(village.edges()?) {
        if Instant::now() > end {
            return Err("the revoked member is still there".into());
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn is_revoked(certificate: &str) -> bool {
    certificate == format!("thorp:member/{}", member(REVOKED))
}

/// One step of the authority's rotation. Then every node gets what has changed.
fn rotate(village: &mut Village, step: &str) -> Outcome<()> {
    village.rotate(step)?;
    village.invite_all()
}
