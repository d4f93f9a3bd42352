//! A process that changes objects, and writes down when each change was answered.

use crate::cast::{Object, Place, WRITERS, Way, objects_of};
use crate::clock::now_ns;
use crate::obey::{self, Shared};
use crate::record::{ANSWERS, Answer, Recorder};
use std::path::Path;
use std::time::{Duration, Instant};
use thorp_bench::Result;
use thorp_client::{Consistency, ErrorKind, Member, Reference, Segment, Visit};

pub(crate) const ROLE: &str = "bounds-writer";

/// One object, and how it is written.
struct Work<'a> {
    member: &'a Member,
    shared: &'a Shared,
    object: Object,
    segment: Segment,
    reference: Reference,
}

/// Writes until it is told to end.
pub(crate) fn play(arguments: &[String]) -> Result<()> {
    let [dir, name] = arguments else {
        return Err("a writer is told where, and who".into());
    };
    let dir = Path::new(dir);
    let writer = WRITERS.iter().find(|writer| writer.name == name);
    let writer = writer.ok_or("there is no such writer")?;
    let member = obey::join(dir, (writer.name, writer.at), |config| {
        config.log(dir.join(name).join("log"))
    })?;
    let shared = Shared::default();
    let mut works = Vec::new();
    for object in objects_of(writer.name) {
        let segment = member.open(&object.place.segment())?;
        let reference = segment.root(&object.root())?;
        works.push(Work {
            member: &member,
            shared: &shared,
            object,
            segment,
            reference: reference.ok_or("an object is not there")?,
        });
    }
    let done = {
        let _following = works.iter().map(Work::follow).collect::<Result<Vec<_>>>()?;
        obey::work(&works, &shared, |work| work.run(dir))
    };
    drop(works);
    member.close();
    done
}

impl Work<'_> {
    /// Each visit to a log follows the updates of others. One that is there already makes that free.
    fn follow(&self) -> Result<Option<Visit>> {
        if !self.object.way.is_log() {
            return Ok(None);
        }
        let consistency = Consistency::EVENTUAL.for_reading();
        let visit = Visit::open(self.member, consistency, &[&self.segment])?;
        Ok(Some(visit))
    }

    fn run(&self, dir: &Path) -> Result<()> {
        let file = dir.join(format!("{}.{ANSWERS}", self.object.number));
        let mut recorder = Recorder::create(&file)?;
        let mut burst = Instant::now();
        for value in 1.. {
            if self.is_between_bursts(burst) {
                self.shared.pause(BETWEEN_BURSTS);
                burst = Instant::now();
            }
            let Some(is_leased) = self.until_answered(value)? else {
                break;
            };
            recorder.answer(&Answer {
                object: self.object.number,
                value,
                at_ns: now_ns(),
                is_leased,
            })?;
            self.shared.pause(PAUSE);
        }
        Ok(recorder.finish()?)
    }

    /// Where logs write in bursts, readers get read leases in between.
    fn is_between_bursts(&self, burst: Instant) -> bool {
        let is_in_bursts = self.object.place == Place::Mixed && self.object.way.is_log();
        is_in_bursts && burst.elapsed() > BURST
    }

    /// Whether the answer came with a lease, or from the home. None: it is over.
    ///
    /// A change of which nobody knows whether it has happened ends the run: it could undo a later one.
    fn until_answered(&self, value: u64) -> Result<Option<bool>> {
        while !self.shared.is_over() {
            match self.write(value) {
                Ok(is_leased) => return Ok(Some(is_leased)),
                Err(error) => match error.kind() {
                    ErrorKind::Busy { .. } | ErrorKind::Conflict | ErrorKind::HomeUnreachable => {
                        self.shared.pause(AGAIN);
                    }
                    _ => return Err(format!("{:?}: {error}", self.object).into()),
                },
            }
        }
        Ok(None)
    }

    fn write(&self, value: u64) -> thorp_client::Result<bool> {
        let bytes = value.to_le_bytes();
        match self.object.way {
            Way::Transaction => {
                self.member.transact(|tx| {
                    tx.read(&self.reference)?;
                    tx.write(&self.reference, bytes)
                })?;
                Ok(true)
            }
            Way::Visit => self.visit(Consistency::MASTER_SLAVE, bytes),
            Way::Log => self.visit(Consistency::EVENTUAL, bytes),
            Way::HastyLog => {
                let failures = thorp_client::Failures::Optimistic {
                    cutoff: Some(HASTE),
                };
                self.visit(Consistency::EVENTUAL.with_failures(failures), bytes)
            }
        }
    }

    fn visit(&self, consistency: Consistency, bytes: [u8; 8]) -> thorp_client::Result<bool> {
        let mut visit = Visit::open(self.member, consistency, &[&self.segment])?;
        visit.write(&self.reference, bytes)?;
        visit.publish()?;
        let is_leased = visit.left_out().is_empty();
        visit.close()?;
        Ok(is_leased)
    }
}

/// Between two changes of an object.
const PAUSE: Duration = Duration::from_millis(3);
/// After a refusal.
const AGAIN: Duration = Duration::from_millis(20);
/// How long such a writer waits for a lease.
const HASTE: Duration = Duration::from_millis(10);
/// The leases of the home last two seconds here: in the time between, a log gives its lease back.
const BURST: Duration = Duration::from_secs(2);
const BETWEEN_BURSTS: Duration = Duration::from_secs(6);
