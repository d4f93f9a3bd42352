//! Many seeds, on several threads, until one fails.

use crate::counts::Counts;
use crate::{Mode, Options, Story, run, run_back, run_hostile, run_logs, run_mixed};
use std::cell::RefCell;
use std::panic;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use thorp_model::planted;
use thorp_model::planted::Bug;

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What the last panic of this thread said, and where.
pub fn last_panic() -> String {
    PANIC.with(|panic| panic.borrow().clone())
}

/// Keeps what panics say instead of printing it: a panic in a core is a finding.
pub fn keep_panics() {
    panic::set_hook(Box::new(|info| {
        PANIC.with(|panic| *panic.borrow_mut() = info.to_string());
    }));
}

/// Which villages a campaign makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Villages {
    /// Those whose homes never go back.
    Usual,
    /// Those whose homes do (rule R9).
    GoingBack,
    /// Those in which hostile nodes stay, and nothing else goes wrong.
    Hostile,
    /// Those whose members write by logs (rules C3, C4, C6 and C7).
    Logs,
    /// The same, in which programs run sessions of all presets on the same objects (rule C12).
    Mixed,
}

/// Bugs that only villages whose homes go back can show.
const OF_GOING_BACK: &[Bug] = &[
    Bug::ClaimsBelieved,
    Bug::AnswersNotVouched,
    Bug::OtherHistoryIgnored,
    Bug::NobodyForgets,
    Bug::LeftExecuted,
    Bug::LostIsNo,
    Bug::LifeNotDurable,
    Bug::ClaimsNotPassed,
    Bug::GenerationsGivenAgain,
    Bug::MarksNotCompared,
];

/// Bugs that only villages whose members write by logs can show.
const OF_LOGS: &[Bug] = &[
    Bug::SavedNotTold,
    Bug::UpdateTakenTwice,
    Bug::UpdateNumbersSkipped,
    Bug::LeaseEndsWithEdge,
    Bug::LeasesForgotten,
    Bug::WritersNotAsked,
    Bug::HeadsNotAwaited,
    Bug::LeaseFromAnswer,
    Bug::UpdateRefusalForgotten,
    Bug::UpdatesNotSentAgain,
    Bug::FollowNotAwaited,
    Bug::LateUpdateShown,
    Bug::AnswerNotWithheld,
    Bug::ReadLeasesForgotten,
    Bug::SeenWhenSent,
    Bug::ReadLeaseBesideWriter,
    Bug::SeenForOthers,
    Bug::RememberedNotWithheld,
    Bug::ToldAgainNotWithheld,
    Bug::VoteNotWithheld,
    Bug::MissedNotAskedAgain,
    Bug::SeenTooEarly,
    Bug::SeenDebtForgiven,
    Bug::LockNotNamed,
    Bug::LocksForgotten,
    Bug::LockBesideVote,
    Bug::EndedStreamStands,
    Bug::PullPastVote,
    Bug::LockBesideWriter,
    Bug::LockOutlivesRight,
    Bug::LeaseOutlivesRight,
    Bug::RestoredNotAsked,
    Bug::GivesBackTooEarly,
    Bug::GivesBackForOthers,
    Bug::AnswersRecalled,
    Bug::PaceNotKept,
    Bug::RefusalWithheld,
    Bug::PullJoined,
    Bug::UpdateInImage,
    Bug::LogIdKept,
    Bug::AnswerWaitsAlways,
    Bug::UpdatePastLock,
    Bug::PullQueued,
    Bug::RestartedIsHolder,
    Bug::LockBeforeStep,
    Bug::LockedWaits,
    Bug::LogForgotten,
    Bug::OtherLogTaken,
    Bug::CustodyBelieved,
    Bug::AuthorBelieved,
    Bug::KeptUnproven,
    Bug::AuthorsNotAsked,
    Bug::SavedNotKept,
    Bug::FoundLockNotLooked,
    Bug::MissedNotCounted,
    Bug::LateLockTold,
    Bug::EndedLockForgotten,
    Bug::UnlockNotRepeated,
    Bug::WantNotCounted,
    Bug::WantNeverForgotten,
    Bug::DebtForgiven,
];

impl Villages {
    /// Those in which a bug is looked for.
    pub fn of(bug: Bug) -> Self {
        match bug {
            bug if OF_GOING_BACK.contains(&bug) => Villages::GoingBack,
            bug if OF_LOGS.contains(&bug) => Villages::Logs,
            _ => Villages::Usual,
        }
    }

    /// Runs the village of a seed.
    pub fn run(self, seed: u64, options: Options) -> Story {
        match self {
            Villages::Usual => run(seed, options),
            Villages::GoingBack => run_back(seed, options),
            Villages::Hostile => run_hostile(seed, options),
            Villages::Logs => run_logs(seed, options),
            Villages::Mixed => run_mixed(seed, options),
        }
    }

    fn command(self) -> &'static str {
        match self {
            Villages::Usual => "run",
            Villages::GoingBack => "back",
            Villages::Hostile => "hostile",
            Villages::Logs => "logs",
            Villages::Mixed => "mixed",
        }
    }
}

/// What came of a campaign.
#[derive(Debug, Default)]
pub struct Campaign {
    /// What was counted in all seeds that ran.
    pub counts: Counts,
    /// The story that failed, if one did: the one with the lowest seed of those that ran.
    pub failed: Option<Story>,
}

/// Runs seeds from `first` on until one fails.
pub fn run_seeds(villages: Villages, first: u64, seeds: u64, jobs: u64) -> Campaign {
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
                    let story = villages.run(seed, Options::default());
                    stop.fetch_or(story.result.is_err(), Ordering::Relaxed);
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
    campaign.counts.add(&story.counts);
    let lower = |failed: &Story| story.seed < failed.seed;
    if story.result.is_err() && campaign.failed.as_ref().is_none_or(lower) {
        campaign.failed = Some(story);
    }
}

/// Tells a seed's story again, with its last events.
pub fn retell(villages: Villages, seed: u64) -> Story {
    villages.run(seed, Options { trace: Mode::Keep })
}

/// Whether two runs of a seed are the same, event by event.
pub fn is_deterministic(villages: Villages, seed: u64) -> bool {
    let (one, two) = (retell(villages, seed), retell(villages, seed));
    one.hash == two.hash && one.counts == two.counts
}

/// The command that tells a seed's story again.
pub fn command(villages: Villages, seed: u64, bug: Option<Bug>) -> String {
    let command = villages.command();
    let bug = bug.map_or(String::new(), |bug| format!(" --bug {}", bug.name()));
    format!("cargo run --profile sim -p thorp-sim -- {command} --seed {seed} --trace{bug}")
}

/// How a planted bug was found.
#[derive(Debug)]
pub struct Catch {
    /// The bug.
    pub bug: Bug,
    /// Seeds that it took.
    pub seeds: u64,
    /// The story that failed; none if the bug was not found.
    pub story: Option<Story>,
}

/// Plants a bug and runs seeds until a checker catches it.
pub fn catch(bug: Bug, first: u64, seeds_max: u64, jobs: u64) -> Catch {
    planted::plant(Some(bug));
    let campaign = run_seeds(Villages::of(bug), first, seeds_max, jobs);
    planted::plant(None);
    let seeds = match &campaign.failed {
        Some(story) => story.seed - first + 1,
        None => seeds_max,
    };
    Catch {
        bug,
        seeds,
        story: campaign.failed,
    }
}
