//! What goes wrong, one thing after the other.

use crate::dice::Dice;
use crate::village::{PATIENCE, Village};
use crate::{Options, Outcome, Workload};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

/// Between two faults.
const CALM_MS_MAX: u64 = 800;
/// A fault lasts so long.
const FAULT_MS_MAX: u64 = 1_200;

/// How often each fault happened.
#[derive(Default)]
pub(crate) struct Tally(BTreeMap<&'static str, u64>);

#[derive(Clone, Copy)]
enum Fault {
    /// `kill -9` of a home or the site.
    Kill,
    /// A home or the site stands still.
    Stop,
    /// A link is cut, and refuses for a while.
    Cut,
    /// A member stands still.
    StopMember,
    /// `kill -9` of a member.
    KillMember,
}

/// Until enough transactions have ended. Then everything is mended.
pub(crate) fn strike_until_done(
    village: &mut Village,
    options: &Options,
    dice: &mut Dice,
) -> Outcome<Tally> {
    let mut tally = Tally::default();
    let (mut seen, mut since) = (0, Instant::now());
    while village.ended() < options.transactions {
        if village.ended() > seen {
            (seen, since) = (village.ended(), Instant::now());
        }
        if since.elapsed() > PATIENCE {
            return Err(format!("nothing ends any more, after {seen} transactions").into());
        }
        thread::sleep(Duration::from_millis(dice.below(CALM_MS_MAX)));
        if !options.calm {
            let fault = draw(options.workload, dice);
            strike(village, fault, dice)?;
            *tally.0.entry(fault.name()).or_default() += 1;
        }
    }
    Ok(tally)
}

fn draw(workload: Workload, dice: &mut Dice) -> Fault {
    match dice.below(10) {
        0..3 => Fault::Kill,
        3..5 => Fault::Stop,
        5..8 => Fault::Cut,
        // What a member that was killed had begun has no place in the order that registers need.
        8 if workload == Workload::Lists => Fault::KillMember,
        _ => Fault::StopMember,
    }
}

fn strike(village: &mut Village, fault: Fault, dice: &mut Dice) -> Outcome<()> {
    let pause = Duration::from_millis(dice.below(FAULT_MS_MAX));
    let node = dice.index(village.nodes());
    match fault {
        Fault::Kill => {
            village.kill(node);
            thread::sleep(pause / 4);
            village.start_again(node)?;
        }
        Fault::Stop => {
            village.signal_node(node, Signal::STOP);
            thread::sleep(pause);
            village.signal_node(node, Signal::CONT);
        }
        Fault::Cut => {
            let link = &village.links()[dice.index(village.links().len())];
            link.cut();
            thread::sleep(pause / 2);
            link.mend();
        }
        Fault::StopMember => {
            let worker = dice.index(village.workers());
            village.signal_worker(worker, Signal::STOP);
            thread::sleep(pause);
            village.signal_worker(worker, Signal::CONT);
        }
        Fault::KillMember => village.replace_worker(dice.index(village.workers()))?,
    }
    Ok(())
}

impl Fault {
    fn name(self) -> &'static str {
        match self {
            Fault::Kill => "nodes killed",
            Fault::Stop => "nodes stopped",
            Fault::Cut => "links cut",
            Fault::StopMember => "members stopped",
            Fault::KillMember => "members killed",
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0.iter().map(|(name, count)| format!("{count} {name}"));
        let all: Vec<String> = all.collect();
        match all.is_empty() {
            true => f.write_str("faults: none"),
            false => write!(f, "faults: {}", all.join(", ")),
        }
    }
}
