//! A home 40 ms away, two sites, members below the first, and what they tell.

use crate::member::{ROLE, micros};
use std::collections::VecDeque;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use thorp_bench::Result;
use thorp_bench::process::Process;
use thorp_bench::village::{HOME, Village, fill};
use thorp_client::{Member, Reference};
use thorp_net::QUEUE_BYTES_MAX;

pub(crate) const MEMBERS: usize = 10;
pub(crate) const ONE_WAY_MS: u64 = 20;
/// Pages that every member has, and of which few change.
pub(crate) const PAGES: usize = 300;
/// Neighbours say so often that they are there, and are given up after so many of these periods without a word.
pub(crate) const ALIVE_MS: u64 = 200;
pub(crate) const MISSED_MAX: u32 = 10;
const SITE_BYTES: usize = 64 << 20;
const SITES: [&str; 2] = ["first", "second"];
const PATIENCE: Duration = Duration::from_secs(120);

/// A commit of a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commit {
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    /// What the member sent meanwhile.
    pub(crate) frames: u64,
    /// How long it took before to read an object that others may have changed, and the pages fetched for that.
    read_us: u64,
    fetched: u64,
}

/// What a member told.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) commits: Vec<Commit>,
    counted: VecDeque<Counted>,
    /// Transactions that ended otherwise.
    pub(crate) refused: u64,
    pub(crate) unknown: u64,
}

/// What a member had to fetch since it was warm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) pages: u64,
}

pub(crate) struct Running {
    pub(crate) process: Process,
    pub(crate) told: Arc<Mutex<Told>>,
}

pub(crate) struct Scene {
    // In the order in which they end.
    pub(crate) members: Vec<Running>,
    pub(crate) sites: Vec<Option<Process>>,
    /// Somebody else, straight at the home.
    pub(crate) far: Member,
    /// The first object of each page.
    pub(crate) firsts: Vec<Reference>,
    _village: Village,
}

impl Scene {
    pub(crate) fn start() -> Result<Self> {
        Self::start_with(MISSED_MAX, QUEUE_BYTES_MAX)
    }

    /// So many silent periods are borne, and so many bytes wait at a site for one member.
    pub(crate) fn start_with(missed_max: u32, queue_bytes_max: usize) -> Result<Self> {
        let limits = format!("{ALIVE_MS},{missed_max},{queue_bytes_max}");
        let delays = SITES.map(|name| (name, ONE_WAY_MS));
        let village = Village::new_with(&delays, &limits)?;
        let mut sites = Vec::new();
        for name in SITES {
            let site = village.site_with(name, SITE_BYTES, ONE_WAY_MS, &limits)?;
            sites.push(Some(site));
        }
        let every = Duration::from_millis(ALIVE_MS);
        let far = Member::join(village.config(HOME, "far")?.alive(every, missed_max))?;
        let library = far.create(LIBRARY)?;
        let firsts = fill(&far, &library, PAGES)?;
        let mut scene = Scene {
            members: Vec::new(),
            sites,
            far,
            firsts,
            _village: village,
        };
        for number in 0..MEMBERS {
            let member = scene.member(number, missed_max)?;
            scene.members.push(member);
        }
        Ok(scene)
    }

    fn member(&self, number: usize, missed_max: u32) -> Result<Running> {
        let dir = self._village.path("").display().to_string();
        let (name, sites) = (format!("member-{number}"), SITES.join(","));
        let (every, missed) = (ALIVE_MS.to_string(), missed_max.to_string());
        let arguments = [&dir, &name, &sites, LIBRARY, &every, &missed];
        let mut process = Process::start(ROLE, &arguments.map(|argument: &str| argument))?;
        let told = Arc::<Mutex<Told>>::default();
        let (lines, hears) = (process.lines()?, Arc::clone(&told));
        thread::spawn(move || {
            for line in lines {
                take(
                    &line,
                    &mut hears.lock().unwrap_or_else(PoisonError::into_inner),
                );
            }
        });
        Ok(Running { process, told })
    }

    /// Waits until each of some members has committed so often since a moment.
    pub(crate) fn committed(&self, members: &[usize], since: u64, commits: usize) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        let has = |member: &Running| {
            let told = member.told();
            let late = told.commits.iter().rev();
            late.take_while(|commit| commit.begun >= since).count() >= commits
        };
        while !members.iter().all(|member| has(&self.members[*member])) {
            if Instant::now() > end {
                return Err("the members do not go on".into());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// What each has fetched since it was warm, when it has read everything once more.
    pub(crate) fn count(&mut self, members: &[usize]) -> Result<Vec<Counted>> {
        for member in members {
            self.members[*member].process.tell("count")?;
        }
        let end = Instant::now() + PATIENCE;
        let mut all = Vec::new();
        for member in members {
            let counted = loop {
                if let Some(counted) = self.members[*member].told().counted.pop_front() {
                    break counted;
                }
                if Instant::now() > end {
                    return Err("a member does not count".into());
                }
                thread::sleep(Duration::from_millis(10));
            };
            all.push(counted);
        }
        Ok(all)
    }

    /// Changes an object in each of so many pages.
    pub(crate) fn change(&self, pages: usize) -> Result<()> {
        let bytes = micros().to_le_bytes();
        self.far.transact(|tx| {
            let mut firsts = self.firsts[..pages].iter();
            firsts.try_for_each(|first| tx.write(first, bytes))
        })?;
        Ok(())
    }
}

impl Commit {
    pub(crate) fn took_ms(&self) -> f64 {
        (self.ended - self.begun) as f64 / 1e3
    }

    /// How long the read before it took, if that had to fetch.
    pub(crate) fn fetch_ms(&self) -> Option<f64> {
        (self.fetched > 0).then(|| self.read_us as f64 / 1e3)
    }
}

impl Running {
    pub(crate) fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take(line: &str, told: &mut Told) {
    let mut words = line.split(' ');
    let kind = words.next();
    let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    match kind {
        Some("commit") => told.commits.push(Commit {
            begun: number(),
            ended: number(),
            frames: number(),
            read_us: number(),
            fetched: number(),
        }),
        Some("counted") => told.counted.push_back(Counted { pages: number() }),
        Some("unknown") => told.unknown += 1,
        _ => told.refused += 1,
    }
}

/// Sends a process a signal, by the system's own command.
pub(crate) fn signal(name: &str, process: u32) -> Result<()> {
    let sent = Command::new("kill")
        .args([format!("-{name}"), process.to_string()])
        .status()?;
    match sent.success() {
        true => Ok(()),
        false => Err(format!("kill -{name} {process} was refused").into()),
    }
}

const LIBRARY: &str = "thorp://alps/library";
