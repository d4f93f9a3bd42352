//! `thorp-sim`: campaigns of simulated villages.

use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use std::{fs, io};
use thorp_model::planted;
use thorp_model::planted::Bug;
use thorp_sim::ATTACKS;
use thorp_sim::campaign::{self, Catch, Villages};
use thorp_sim::checkpoint::Checkpoint;
use thorp_sim::counts::Counts;
use thorp_sim::sameness::{self, Digests};
use thorp_sim::shards::{self, Plan, Progress, Ran, Shard};
use thorp_sim::{Mode, Options, Story};

/// Simulates villages from seeds and checks what must hold.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

/// Which seeds, and how.
#[derive(clap::Args)]
struct Range {
    /// Only this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// The seed with which to begin.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// How many seeds.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    jobs: u64,
    /// Print every event of the one seed.
    #[arg(long)]
    trace: bool,
    /// Plant a bug.
    #[arg(long)]
    bug: Option<String>,
}

#[derive(Subcommand)]
enum What {
    /// Run villages.
    Run {
        /// Only this seed.
        #[arg(long)]
        seed: Option<u64>,
        /// The seed with which to begin.
        #[arg(long, default_value_t = 1)]
        first: u64,
        /// How many seeds.
        #[arg(long, default_value_t = 100)]
        seeds: u64,
        /// Threads.
        #[arg(long, default_value_t = 1)]
        jobs: u64,
        /// Print every event of the one seed.
        #[arg(long)]
        trace: bool,
        /// Plant a bug.
        #[arg(long)]
        bug: Option<String>,
        #[command(flatten)]
        keeping: Keeping,
    },
    /// Run villages whose homes go back in time.
    Back(Range),
    /// Run villages in which hostile nodes stay, and nothing else goes wrong.
    Hostile(Range),
    /// Run villages whose members write by logs.
    Logs(Range),
    /// Run villages in which programs run sessions of all presets on the same objects.
    Mixed {
        #[command(flatten)]
        range: Range,
        #[command(flatten)]
        keeping: Keeping,
    },
    /// Print which presets exclude which anomalies, and the first seed that shows each of the others.
    Anomalies {
        /// How many seeds.
        #[arg(long, default_value_t = 10_000)]
        seeds: u64,
        /// Threads.
        #[arg(long, default_value_t = 1)]
        jobs: u64,
    },
    /// Add up what several files keep, and tell what is missing.
    Sum {
        /// The files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// The code that was run.
        #[arg(long)]
        tree: String,
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        first: u64,
        /// How many seeds.
        #[arg(long)]
        seeds: u64,
    },
    /// Compare the digests of seeds with those in a file: a change that only moves code keeps them.
    Same {
        /// The file, with a line for each seed.
        #[arg(long, default_value = "crates/sim/sameness/seeds.txt")]
        file: PathBuf,
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        first: u64,
        /// How many seeds.
        #[arg(long, default_value_t = 2_000)]
        seeds: u64,
        /// Threads.
        #[arg(long, default_value_t = 1)]
        jobs: u64,
        /// Write the file anew instead: after a change that is meant to change what happens.
        #[arg(long)]
        bless: bool,
    },
    /// Plant each bug in turn, and see whether a checker catches it.
    Bugs {
        /// Only this one.
        #[arg(long)]
        bug: Option<String>,
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        first: u64,
        /// Seeds to try for each.
        #[arg(long, default_value_t = 2_000)]
        seeds_max: u64,
        /// Threads.
        #[arg(long, default_value_t = 1)]
        jobs: u64,
    },
}

/// A campaign that can be stopped and goes on where it was, or that several machines share.
#[derive(clap::Args)]
struct Keeping {
    /// Keep what held in this file, and run only what it does not hold yet.
    #[arg(long, value_name = "FILE", requires = "tree", conflicts_with_all = ["seed", "bug"])]
    keep: Option<PathBuf>,
    /// A name for the code that runs (a commit): what other code held counts for nothing.
    #[arg(long)]
    tree: Option<String>,
    /// Only each N-th piece, beginning with the K-th.
    #[arg(long, value_name = "K/N", default_value = "1/1")]
    shard: Shard,
}

fn main() -> ExitCode {
    campaign::keep_panics();
    match Arguments::parse().what {
        What::Run {
            seed,
            first,
            seeds,
            jobs,
            trace,
            bug,
            keeping,
        } => {
            let Ok(bug) = find(bug.as_deref()) else {
                return ExitCode::from(2);
            };
            planted::plant(bug);
            match seed {
                Some(seed) => run_one(Villages::Usual, seed, trace, bug),
                None => run_many(
                    Villages::Usual,
                    Plan::new(first, seeds, keeping.shard),
                    jobs,
                    bug,
                    &keeping,
                ),
            }
        }
        What::Back(range) => run_range(Villages::GoingBack, range),
        What::Hostile(range) => run_range(Villages::Hostile, range),
        What::Logs(range) => run_range(Villages::Logs, range),
        What::Mixed { range, keeping } if keeping.keep.is_none() => {
            run_range(Villages::Mixed, range)
        }
        What::Mixed { range, keeping } => {
            let plan = Plan::new(range.first, range.seeds, keeping.shard);
            run_many(Villages::Mixed, plan, range.jobs, None, &keeping)
        }
        What::Anomalies { seeds, jobs } => print_anomalies(seeds, jobs),
        What::Sum {
            files,
            tree,
            first,
            seeds,
        } => failing(sum(
            &files,
            &tree,
            Plan::new(first, seeds, Shard::default()),
        )),
        What::Same {
            file,
            first,
            seeds,
            jobs,
            bless,
        } => failing(match sameness::digests(first, seeds, jobs) {
            Err(failed) => Err(io::Error::other(format!("these seeds fail: {failed:?}"))),
            Ok(now) if bless => {
                fs::write(&file, sameness::format(&now)).map(|()| ExitCode::SUCCESS)
            }
            Ok(now) => compare(&file, &now),
        }),
        What::Bugs {
            bug,
            first,
            seeds_max,
            jobs,
        } => match find(bug.as_deref()) {
            Ok(bug) => catch_all(bug, first, seeds_max, jobs),
            Err(()) => ExitCode::from(2),
        },
    }
}

fn find(name: Option<&str>) -> Result<Option<Bug>, ()> {
    let Some(name) = name else {
        return Ok(None);
    };
    let bug = Bug::ALL.iter().copied().find(|bug| bug.name() == name);
    if bug.is_none() {
        let names: Vec<&str> = Bug::ALL.iter().map(|bug| bug.name()).collect();
        eprintln!("there is no bug {name}; there are {}", names.join(", "));
    }
    bug.map(Some).ok_or(())
}

fn run_one(villages: Villages, seed: u64, trace: bool, bug: Option<Bug>) -> ExitCode {
    let mode = if trace { Mode::Print } else { Mode::Keep };
    let story = villages.run(seed, Options { trace: mode });
    match &story.result {
        Ok(()) => {
            print!("{}", story.counts);
            println!(
                "seed {seed} holds; its trace has the hash {:016x}",
                story.hash
            );
            ExitCode::SUCCESS
        }
        Err(_) => {
            if !trace {
                story.tail.iter().for_each(|line| println!("{line}"));
            }
            print_failure(villages, &story, bug);
            ExitCode::FAILURE
        }
    }
}

fn run_range(villages: Villages, range: Range) -> ExitCode {
    let Ok(bug) = find(range.bug.as_deref()) else {
        return ExitCode::from(2);
    };
    planted::plant(bug);
    if let Some(seed) = range.seed {
        return run_one(villages, seed, range.trace, bug);
    }
    let plan = Plan::new(range.first, range.seeds, Shard::default());
    let ran = shards::run(villages, plan, range.jobs, None, &mut print_progress);
    failing(ran.map(|ran| tell(villages, &ran, plan, bug, 0)))
}

fn run_many(
    villages: Villages,
    plan: Plan,
    jobs: u64,
    bug: Option<Bug>,
    keeping: &Keeping,
) -> ExitCode {
    let tree = keeping.tree.as_deref().unwrap_or_default();
    let kept = keeping
        .keep
        .as_deref()
        .map(|path| Checkpoint::open(path, tree));
    let ran = kept.transpose().and_then(|mut kept| {
        let campaign = shards::run(villages, plan, jobs, kept.as_mut(), &mut print_progress)?;
        Ok((campaign, kept.map_or(0, |kept| kept.others())))
    });
    failing(ran.map(|(campaign, others)| tell(villages, &campaign, plan, bug, others)))
}

/// Runs seeds, and prints the table of presets and anomalies.
fn print_anomalies(seeds: u64, jobs: u64) -> ExitCode {
    match thorp_sim::first_seeds(seeds, jobs) {
        Ok(first) => {
            print!("{}", thorp_sim::table_of_anomalies(&first));
            ExitCode::SUCCESS
        }
        Err(story) => {
            println!("seed {} fails: {:?}", story.seed, story.result);
            ExitCode::FAILURE
        }
    }
}

fn print_progress(progress: &Progress) {
    let Progress {
        held,
        seeds,
        seconds,
    } = progress;
    eprintln!("{held} of {seeds} seeds hold, after {seconds:.0} s");
}

fn failing(code: io::Result<ExitCode>) -> ExitCode {
    code.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::from(2)
    })
}

fn tell(
    villages: Villages,
    campaign: &Ran,
    plan: Plan,
    bug: Option<Bug>,
    others: usize,
) -> ExitCode {
    print!("{}", campaign.counts);
    println!("time: {:.1} s", campaign.seconds);
    if others > 0 {
        println!("{others} pieces that other code held are not counted");
    }
    let Some(failed) = &campaign.failed else {
        println!("all {} seeds {plan} hold", campaign.counts.seeds);
        return print_missing(villages, &campaign.counts);
    };
    let again = campaign::retell(villages, failed.seed);
    again.tail.iter().for_each(|line| println!("{line}"));
    print_failure(villages, failed, bug);
    if again.result != failed.result {
        println!("told again, the seed ends otherwise: {:?}", again.result);
    }
    ExitCode::FAILURE
}

/// What several files keep, as if one machine had done it.
fn sum(files: &[PathBuf], tree: &str, plan: Plan) -> io::Result<ExitCode> {
    let kept = files.iter().map(|path| Checkpoint::open(path, tree));
    let kept = kept.collect::<io::Result<Vec<_>>>()?.into_iter();
    let Some(kept) = kept.reduce(Checkpoint::joined) else {
        return Ok(ExitCode::SUCCESS);
    };
    let open: Vec<u64> = plan
        .pieces()
        .filter(|piece| !kept.has(*piece))
        .map(|piece| piece.first)
        .collect();
    if !open.is_empty() {
        println!("not run yet: the pieces from the seeds {open:?}");
        return Ok(ExitCode::FAILURE);
    }
    let campaign = Ran {
        counts: kept.counts(),
        seconds: kept.seconds(),
        failed: None,
    };
    Ok(tell(Villages::Usual, &campaign, plan, None, kept.others()))
}

/// Whether the file has these digests.
fn compare(file: &Path, now: &Digests) -> io::Result<ExitCode> {
    let named = |error: String| io::Error::other(format!("{}: {error}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
    let changed = sameness::changed(&sameness::parse(&text).map_err(named)?, now);
    if changed.is_empty() {
        println!("all {} seeds have the digests of the file", now.len());
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "{} of {} seeds differ: {changed:?}",
        changed.len(),
        now.len()
    );
    Ok(ExitCode::FAILURE)
}

/// A large campaign has to see everything that can happen: what it never saw is not tried.
fn print_missing(villages: Villages, counts: &Counts) -> ExitCode {
    let seeds = counts.seeds;
    let missing = match villages {
        Villages::Usual => counts.missing(),
        Villages::GoingBack => counts.answers_missing(thorp_sim::EVERYTHING_OF_GOING_BACK),
        Villages::Hostile => counts.answers_missing(ATTACKS),
        Villages::Logs => counts.answers_missing(thorp_sim::EVERYTHING_OF_LOGS),
        Villages::Mixed => {
            let shown = thorp_sim::SHOWN_BY_SEEDS;
            counts.answers_missing(shown)
        }
    };
    if seeds < SEEDS_FOR_ALL || missing.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("never seen in {seeds} seeds: {}", missing.join(", "));
    ExitCode::FAILURE
}

/// Seeds in which everything has to be seen.
const SEEDS_FOR_ALL: u64 = 1_000;

fn print_failure(villages: Villages, story: &Story, bug: Option<Bug>) {
    if let Err(failure) = &story.result {
        println!("seed {} fails: {failure}", story.seed);
        println!("{}", campaign::command(villages, story.seed, bug));
    }
}

/// What only its story catches, and only there it is looked for. `WordFromBehindPassed` needs a village that is hardly ever drawn: a site
/// below a site has to turn to a third one, whose stream is slower, just as a member comes from behind both. `ColdPagesHoldTheLog` keeps the
/// log as long as it may be, and no checker calls that wrong; nor what `OnlyNamesSeen` does, which hides what need not be hidden.
/// `WrittenOverLastOnly` needs three transactions of two threads of one member, the first of which waits at its home for a page from the disk, while the
/// second has given up a page and fetched it again, and the third has covered the one and changed the other; 8,000 seeds drew none.
/// `StruckSaidSame` needs a page of a large value that has ended, read once more after its end and then reported to a site that has not heard of that:
/// seed 47520 was the first one to have it. `MovedIsChanged` needs a page so full that a new slot moves an object that somebody else has changed just
/// before, `LockedIsMoved` one so full that it moves what a vote will write, `OtherHomesAhead` a commit over two homes that writes blind over one that is hidden and
/// waits for a page from the disk, and `KnownElsewhere` one that has read a page, given it up, and then reads at another home what is known and not told yet:
/// a thousand seeds for each, of nothing but villages with full pages and with chains over their homes, drew none of these.
/// `ContentBelieved` needs a member that writes two contents under one id. The rogue writes nothing, because checkers know
/// only what programs wrote. `ParkedNotChecked` needs a right that is lost while a commit waits for its page.
/// `OldDelegationTaken` needs a site that keeps what a member signed, and the rogue has no members. `OthersForgotten` needs more
/// registrations than a home remembers, and nobody can make them up any more. `FullStoreKeepsRights` and `DoubtsNotCounted`
/// change only whom a home refuses, which no checker calls wrong. `RoomNotShared` needs a member that changes lists of its
/// own on a full disk for long. `InstalledWithoutRoom` needs a volume: a disk of the simulator has only a limit.
/// `SystemPagesLeft` leaves in a store what nobody reads any more.
/// `AnybodySettles`, `SettlementNotLogged` and `SettledStaysShown` need an operator that ends a vote in doubt. No operator of
/// a village does: what an operator ends may be right at one home only, and the checkers demand that it is right at all.
/// `ReceiptsForgotten` and `JointsForgotten` need homes that go back: one more that restarts before anybody shows a receipt,
/// and an operator that lists what is lost. `AnybodyConfirms` and `ConfirmedTwice` need an operator that opens a running home.
/// Villages whose homes go back have none of these.
/// The bugs of shares let one name take what others may have (rule R7): nothing that a program reads is wrong then, and no
/// table is longer than it may be. `UpdateNumbersSkipped` needs a log that is sent with a hole: logs of villages are sent in order.
const STORIES_ONLY: &[Bug] = &[
    Bug::EndedStreamStands,
    Bug::WordFromBehindPassed,
    Bug::StruckSaidSame,
    Bug::ColdPagesHoldTheLog,
    Bug::OnlyNamesSeen,
    Bug::WrittenOverLastOnly,
    Bug::MovedIsChanged,
    Bug::LockedIsMoved,
    Bug::OtherHomesAhead,
    Bug::KnownElsewhere,
    Bug::ContentBelieved,
    Bug::ParkedNotChecked,
    Bug::OldDelegationTaken,
    Bug::OthersForgotten,
    Bug::FullStoreKeepsRights,
    Bug::RoomNotShared,
    Bug::InstalledWithoutRoom,
    Bug::SystemPagesLeft,
    Bug::DoubtsNotCounted,
    Bug::AnybodySettles,
    Bug::SettlementNotLogged,
    Bug::SettledStaysShown,
    Bug::AnybodyConfirms,
    Bug::ConfirmedTwice,
    Bug::HomesToldFirst,
    Bug::ReceiptsForgotten,
    Bug::JointsForgotten,
    Bug::SegmentsNotShared,
    Bug::SpaceNotShared,
    Bug::NumbersNotShared,
    Bug::ReadersNotShared,
    Bug::WatchesNotShared,
    Bug::ProcessesNotCounted,
    Bug::UpdateNumbersSkipped,
    Bug::ReadLeasesForgotten,
    Bug::ToldAgainNotWithheld,
    Bug::VoteNotWithheld,
    Bug::MissedNotAskedAgain,
    Bug::SeenTooEarly,
    Bug::SeenDebtForgiven,
    Bug::LockNotNamed,
    Bug::LocksForgotten,
    Bug::LockBesideVote,
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
    Bug::AgeFromAnswer,
    Bug::AnswerWaitsAlways,
    Bug::LockNotLooked,
    Bug::UpdatePastLock,
    Bug::PullQueued,
    Bug::LockBeforeStep,
    Bug::LockedWaits,
    Bug::LogForgotten,
    Bug::OverlayOfNow,
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

fn catch_all(only: Option<Bug>, first: u64, seeds_max: u64, jobs: u64) -> ExitCode {
    let mut missed = Vec::new();
    for bug in Bug::ALL.iter().copied() {
        if only.map_or(STORIES_ONLY.contains(&bug), |only| only != bug) {
            continue;
        }
        let begun = Instant::now();
        let caught = campaign::catch(bug, first, seeds_max, jobs);
        print_catch(&caught, begun.elapsed().as_secs_f64());
        if caught.story.is_none() {
            missed.push(bug.name());
        }
    }
    if missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("not caught: {}", missed.join(", "));
    ExitCode::FAILURE
}

fn print_catch(caught: &Catch, seconds: f64) {
    let name = caught.bug.name();
    match &caught.story {
        Some(story) => {
            let failure = story.result.as_ref().err();
            let checker = failure.map_or("", |failure| failure.checker);
            println!(
                "{name}: caught by \"{checker}\" after {} seeds ({seconds:.1} s)",
                caught.seeds
            );
        }
        None => println!(
            "{name}: NOT caught in {} seeds ({seconds:.1} s)",
            caught.seeds
        ),
    }
}
