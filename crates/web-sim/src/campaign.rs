//! Many seeds, on several threads, until one fails.

use crate::checker::Counts;
use crate::requests::run_requests;
use crate::run::{Options, Story, run_database};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use thorp_versions::{Bug, plant};

/// The bugs that only the world with requests as the source can show.
pub const OF_REQUESTS: &[Bug] = &[
    Bug::GoneAreOver,
    Bug::OthersNotAwaited,
    Bug::AnyAnswerEnds,
    Bug::DeadAcknowledges,
    Bug::LeavesLate,
];

/// What came of many seeds.
#[derive(Debug, Default)]
pub struct Campaign {
    /// How many have run.
    pub seeds: u64,
    /// What was counted in all of them.
    pub counts: Counts,
    /// The one that failed; of several, the one with the lowest seed.
    pub failed: Option<Story>,
}

/// How a planted bug was found.
#[derive(Debug)]
pub struct Catch {
    /// The seed that shows it, if one does.
    pub seed: Option<u64>,
    /// What the checker found.
    pub failure: String,
}

/// Runs the world of a seed.
pub fn run(seed: u64, options: Options) -> Story {
    match options.of_requests {
        true => run_requests(seed, options),
        false => run_database(seed, options),
    }
}

/// Runs seeds from `first` on until one fails.
pub fn run_seeds(first: u64, seeds: u64, jobs: u64, options: Options) -> Campaign {
    let next = AtomicU64::new(first);
    let stop = AtomicBool::new(false);
    let campaign = Mutex::new(Campaign::default());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first.saturating_add(seeds) {
                        break;
                    }
                    let story = run(seed, options);
                    stop.fetch_or(story.failure.is_some(), Ordering::Relaxed);
                    take(&campaign, story);
                }
            });
        }
    });
    campaign.into_inner().unwrap_or_default()
}

fn take(campaign: &Mutex<Campaign>, story: Story) {
    let Ok(mut campaign) = campaign.lock() else {
        return;
    };
    campaign.seeds += 1;
    campaign.counts.add(&story.counts);
    let lower = |failed: &Story| story.seed < failed.seed;
    if story.failure.is_some() && campaign.failed.as_ref().is_none_or(lower) {
        campaign.failed = Some(story);
    }
}

/// Plants a bug in this process, and runs seeds until the checker catches it.
pub fn catch(bug: Option<Bug>, options: Options, seeds_max: u64, jobs: u64) -> Catch {
    plant(bug);
    let campaign = run_seeds(1, seeds_max, jobs, options);
    plant(None);
    let failed = campaign.failed;
    Catch {
        seed: failed.as_ref().map(|story| story.seed),
        failure: failed.and_then(|story| story.failure).unwrap_or_default(),
    }
}
