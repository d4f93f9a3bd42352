//! `thorp demo --rights`: who is refused what, and by whom, in a village of processes (rules R3 to R5 and R8).

mod errand;
mod member;

pub(super) use errand::Errand;
pub(super) use member::{Kept, obey};

use super::checks::Checks;
use super::process::Interrupted;
use super::progress::Progress;
use super::village::{HOME, Node, Village, Worker, together};
use super::wire::{Done, Order};
use crate::failure::Failure;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use thorp_net::NodeRole;

/// Names in this demo: who may read, who may not, who writes, and who operates the village.
const ANNA: &str = "anna";
const BEN: &str = "ben";
const CARL: &str = "carl";
const OLGA: &str = "olga";
/// How long Carl commits and Anna looks, and when Anna loses her right.
const COUNT_MS: u64 = 4_000;
const REVOKE_AFTER_MS: u64 = 1_500;
/// How long the audit may take to have all that happened, and when it is read again.
const AUDIT_TIMEOUT: Duration = Duration::from_secs(20);
const AUDIT_AGAIN: Duration = Duration::from_millis(200);
/// What the audit has at the end: who, what, and the segment or the site that says so.
const EXPECTED: [[&str; 3]; 6] = [
    [BEN, WANTED, "office"],
    [BEN, WANTED, "yard"],
    [BEN, WANTED, "plans"],
    [CARL, CHANGED, "plans"],
    [OLGA, CHANGED, "plans"],
    [ANNA, WANTED, "office"],
];
const WANTED: &str = "wanted read";
const CHANGED: &str = "changed the rights";
/// What a site keeps in memory, in bytes: one site serves pages itself, the other sends requests to neighbours.
const OFFICE_MEMORY: usize = 64 << 20;
const YARD_MEMORY: usize = 0;

/// Everybody in the village.
struct Cast {
    home: Node,
    office: Node,
    yard: Node,
    carl: Worker,
    olga: Worker,
    anna: Worker,
    ben: Worker,
    anna_in_yard: Worker,
    ben_in_yard: Worker,
    ben_at_home: Worker,
}

/// Somebody has to be refused.
fn refused(checks: &mut Checks, by: &str, done: &Done) -> Result<(), Failure> {
    let what = format!("Ben is refused by {by}");
    checks.check(done.count == 0, &what, &done.said)
}

/// Runs the demo and prints what was seen.
pub(super) fn run(
    dir: &Path,
    logs: &Path,
    interrupted: &Interrupted,
    checks: &mut Checks,
) -> Result<(), Failure> {
    let village = Village::new(dir, logs, 0, interrupted)?;
    let mut progress = Progress::new(5);
    progress.step("a home, two sites, and members start");
    let mut cast = Cast::start(&village)?;
    progress.step("anna may read thorp://alps/plans, and ben may not");
    cast.give_rights(&mut progress, checks)?;
    progress.step("ben asks the home, the memory of a site, a neighbour, and for a watch");
    cast.ask(&mut progress, checks)?;
    progress.step("anna loses her right while carl commits");
    cast.take_right(&mut progress, checks)?;
    progress.step("thorp audit");
    cast.audit(&village, checks)?;
    cast.stop()
}

/// Whether a line of the audit has these words.
fn is_in(lines: &[String], words: &[&str]) -> bool {
    let has = |line: &String| words.iter().all(|word| line.contains(word));
    lines.iter().any(has)
}

fn segment() -> String {
    format!("thorp://{HOME}/plans")
}

impl Cast {
    fn start(village: &Village) -> Result<Self, Failure> {
        let home = village.home(&[])?;
        let office = village.site_with("office", &home, OFFICE_MEMORY)?;
        let yard = village.site_with("yard", &home, YARD_MEMORY)?;
        let join = |name, parent| village.guest(NodeRole::Member, name, parent);
        Ok(Cast {
            carl: join(CARL, &home)?,
            olga: village.guest(NodeRole::Operator, OLGA, &home)?,
            anna: join(ANNA, &office)?,
            ben: join(BEN, &office)?,
            anna_in_yard: join(ANNA, &yard)?,
            ben_in_yard: join(BEN, &yard)?,
            ben_at_home: join(BEN, &home)?,
            home,
            office,
            yard,
        })
    }

    fn give_rights(&mut self, progress: &mut Progress, checks: &mut Checks) -> Result<(), Failure> {
        let segment = segment();
        let read = || Errand::Read {
            segment: segment.clone(),
        };
        one(
            &mut self.carl,
            Errand::Make {
                segment: segment.clone(),
            },
            progress,
        )?;
        // Everybody reads it while it is open, so everybody knows where it is.
        for worker in [&mut self.ben, &mut self.ben_in_yard] {
            let read = one(worker, read(), progress)?;
            checks.check(
                read.count == 1,
                "a new segment is open to every member",
                &read.said,
            )?;
            one(worker, Errand::Watch, progress)?;
        }
        let grant = Errand::Grant {
            segment: segment.clone(),
            right: "read".to_owned(),
            subject: ANNA.to_owned(),
        };
        one(&mut self.carl, grant, progress)?;
        let revoke = Errand::Revoke {
            segment: segment.clone(),
            subject: "@members".to_owned(),
            after_ms: 0,
        };
        let left = one(&mut self.carl, revoke, progress)?;
        checks.tell(&format!("  the rights are: {}", left.said))?;
        for worker in [&mut self.anna, &mut self.anna_in_yard] {
            let read = one(worker, read(), progress)?;
            checks.check(read.count == 1, "Anna reads", &read.said)?;
        }
        Ok(())
    }

    fn ask(&mut self, progress: &mut Progress, checks: &mut Checks) -> Result<(), Failure> {
        let segment = segment();
        let read = Errand::Read {
            segment: segment.clone(),
        };
        let done = one(&mut self.ben_at_home, read, progress)?;
        refused(checks, "the home", &done)?;
        let done = one(&mut self.ben, Errand::ReadAgain, progress)?;
        refused(checks, "the memory of the site office", &done)?;
        let done = one(&mut self.ben_in_yard, Errand::ReadAgain, progress)?;
        refused(
            checks,
            "the site yard, where only his neighbour Anna has the page",
            &done,
        )?;
        let write = Errand::WriteAgain;
        let done = one(&mut self.ben, write, progress)?;
        refused(checks, "the home, when he writes by way of the site", &done)?;
        for worker in [&mut self.ben, &mut self.ben_in_yard] {
            let done = one(worker, Errand::Watched, progress)?;
            refused(checks, "the end of his watch", &done)?;
        }
        Ok(())
    }

    fn take_right(&mut self, progress: &mut Progress, checks: &mut Checks) -> Result<(), Failure> {
        let segment = segment();
        let count = Errand::Count {
            segment: segment.clone(),
            ms: COUNT_MS,
        };
        let look = Errand::Look {
            segment: segment.clone(),
            ms: COUNT_MS,
        };
        let revoke = Errand::Revoke {
            segment,
            subject: ANNA.to_owned(),
            after_ms: REVOKE_AFTER_MS,
        };
        let orders = [count, look.clone(), look, revoke].map(Order::Rights);
        let mut workers = [
            &mut self.carl,
            &mut self.anna,
            &mut self.anna_in_yard,
            &mut self.olga,
        ];
        let [carl, anna, yard, olga] = &together(&mut workers, &orders, progress)?[..] else {
            return Err(Failure::new("a member did not answer", ""));
        };
        let goes_on = carl.count > olga.count;
        let seen = format!(
            "{} at the revocation, {} at the end",
            olga.count, carl.count
        );
        checks.check(
            goes_on,
            "Carl goes on committing after Anna has lost her right",
            &seen,
        )?;
        for (where_, anna) in [("office", anna), ("yard", yard)] {
            let what = format!("Anna, in the {where_}, sees nothing that is committed after that");
            let seen = format!(
                "{} of at most {}, then: {}",
                anna.count, olga.count, anna.said
            );
            let good = anna.count > 0 && anna.count <= olga.count && !anna.said.is_empty();
            checks.check(good, &what, &seen)?;
        }
        Ok(())
    }

    fn audit(&mut self, village: &Village, checks: &mut Checks) -> Result<(), Failure> {
        let lines = self.written_audit(village)?;
        lines
            .iter()
            .try_for_each(|line| checks.tell(&format!("  {line}")))?;
        for expected in EXPECTED {
            let [who, what, by] = expected;
            let line = format!("the audit has: {who} {what} ({by})");
            let has = is_in(&lines, &expected);
            checks.check(has, &line, if has { "it has" } else { "it has not" })?;
        }
        Ok(())
    }

    /// The audit, once all is in it. The home writes it with its heartbeats, and shows what its disk has.
    fn written_audit(&self, village: &Village) -> Result<Vec<String>, Failure> {
        let end = Instant::now() + AUDIT_TIMEOUT;
        loop {
            let lines = village.audit(OLGA, &self.home)?;
            let is_whole = EXPECTED.iter().all(|expected| is_in(&lines, expected));
            if is_whole || Instant::now() > end {
                return Ok(lines);
            }
            thread::sleep(AUDIT_AGAIN);
        }
    }

    fn stop(self) -> Result<(), Failure> {
        for worker in [
            self.carl,
            self.olga,
            self.anna,
            self.ben,
            self.anna_in_yard,
            self.ben_in_yard,
            self.ben_at_home,
        ] {
            worker.stop()?;
        }
        self.office.stop()?;
        self.yard.stop()?;
        self.home.stop()
    }
}

/// Gives one worker an errand, and waits for it.
fn one(worker: &mut Worker, errand: Errand, progress: &mut Progress) -> Result<Done, Failure> {
    let mut done = together(&mut [worker], &[Order::Rights(errand)], progress)?;
    done.pop()
        .ok_or_else(|| Failure::new("a member did not answer", ""))
}
