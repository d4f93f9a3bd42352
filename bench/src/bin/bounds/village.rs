//! The processes of a run.

use crate::cast::{Place, READERS, SITE_A, SITE_B, WRITERS, objects};
use crate::{obey, reader, writer};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use thorp_bench::Result;
use thorp_bench::process::Process;
use thorp_bench::village::{HOME, Village};

/// Everything that runs. In the order in which it ends.
pub(crate) struct Running {
    readers: Vec<Process>,
    writers: Vec<Process>,
    _sites: Vec<Process>,
    village: Village,
}

impl Running {
    /// Starts all processes; nobody reads or writes yet.
    pub(crate) fn start() -> Result<Self> {
        let far = [SITE_A, SITE_B];
        let village = Village::new_with(&far.map(|site| (site, ONE_WAY_MS)), LEASES)?;
        let site = |name| village.site(name, SITE_BYTES, ONE_WAY_MS);
        let sites = far.into_iter().map(site).collect::<Result<_>>()?;
        make(&village)?;
        let dir = village.path("").display().to_string();
        let start = |role, name| Process::start(role, &[&dir, name]);
        let writers = WRITERS.iter();
        let writers = writers.map(|writer| start(writer::ROLE, writer.name));
        let writers = writers.collect::<Result<_>>()?;
        let readers = READERS.iter();
        let readers = readers.map(|reader| start(reader::ROLE, reader.name));
        let readers = readers.collect::<Result<_>>()?;
        Ok(Running {
            readers,
            writers,
            _sites: sites,
            village,
        })
    }

    /// Where everybody writes down what happened.
    pub(crate) fn dir(&self) -> PathBuf {
        self.village.path("")
    }

    /// Lets everybody work until there are so many hard reads, or the time is over. How long it took.
    pub(crate) fn work(&mut self, hard_reads: u64, most: Duration) -> Result<Duration> {
        let began = Instant::now();
        let mut everybody = self.writers.iter_mut().chain(&mut self.readers);
        everybody.try_for_each(obey::go)?;
        let mut told = began;
        loop {
            thread::sleep(LOOK);
            let counts = self.readers.iter_mut().map(Process::ask);
            let made: u64 = counts.sum::<Result<u64>>()?;
            let seconds = began.elapsed().as_secs();
            if told.elapsed() > TELL {
                eprintln!("{made} hard reads in {seconds} s");
                told = Instant::now();
            }
            if made >= hard_reads || began.elapsed() > most {
                break;
            }
        }
        // Readers first: until their end everything goes on changing.
        let mut everybody = self.readers.iter_mut().chain(&mut self.writers);
        everybody.try_for_each(obey::end)?;
        Ok(began.elapsed())
    }
}

/// The segments, and a root for each object.
fn make(village: &Village) -> Result<()> {
    let member = village.member(HOME, "founder")?;
    for place in Place::ALL {
        let segment = member.create(&place.segment())?;
        let mut here = objects().filter(|object| object.place == place);
        here.try_for_each(|object| {
            member.transact(|tx| {
                let reference = tx.create(&segment, 0u64.to_le_bytes())?;
                tx.set_root(&segment, &object.root(), Some(reference))
            })
        })?;
    }
    member.close();
    Ok(())
}

/// From a site to the home and back.
pub(crate) const ROUND_TRIP_MS: u64 = 2 * ONE_WAY_MS;
const ONE_WAY_MS: u64 = 20;
/// Short, so that they begin and end often.
const LEASES: &str = "lease=2000";
const SITE_BYTES: usize = 64 << 20;
const LOOK: Duration = Duration::from_millis(200);
const TELL: Duration = Duration::from_secs(30);
