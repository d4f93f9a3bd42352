//! A member does not read what it is sent: it is cut off when its queue is full, and the others do not notice (rule 15).

use crate::member::micros;
use crate::village::{Commit, MEMBERS, PAGES, Scene, signal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use thorp_bench::Result;
use thorp_bench::figure::{Figure, median, percentile};

/// What may wait for one member at the site.
const QUEUE_BYTES_MAX: usize = 1 << 20;
/// Silent periods until a member is given up for that: far more than it takes to fill the queue.
const MISSED_MAX: u32 = 600;
/// An object in every page is changed so often, by somebody far away.
const EVERY: Duration = Duration::from_millis(25);
/// Commits of each before the member stops, and at least while it is stopped.
const COMMITS: usize = 60;
const PATIENCE: Duration = Duration::from_secs(120);

/// What one round told.
struct Round {
    before: Vec<Commit>,
    during: Vec<Commit>,
    /// Changes of all pages by somebody else.
    changes: u64,
    /// From its stop until it is cut off, and from going on to its next commit; in milliseconds.
    cut_off_ms: f64,
    back_ms: f64,
}

pub(crate) fn slow(rounds: usize) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for round in 1..=rounds {
        eprintln!("  round {round} of {rounds}: {MEMBERS} members get warm");
        let mut scene = Scene::start_with(MISSED_MAX, QUEUE_BYTES_MAX)?;
        all.push(under_load(&mut scene)?);
    }
    Ok(vec![told(&all)])
}

fn under_load(scene: &mut Scene) -> Result<Round> {
    let mut first = scene.sites[0].take().ok_or("no site")?;
    let over = AtomicBool::new(false);
    let scene = &*scene;
    thread::scope(|scope| {
        let changes = scope.spawn(|| -> Result<u64> {
            let mut changes = 0;
            while !over.load(Ordering::Relaxed) {
                scene.change(PAGES)?;
                changes += 1;
                thread::sleep(EVERY);
            }
            Ok(changes)
        });
        let round = stopped(scene, || first.ask());
        over.store(true, Ordering::Relaxed);
        let changes = changes.join().map_err(|_| "the changes panicked")??;
        Ok(Round { changes, ..round? })
    })
}

/// The first member is stopped until it is cut off, as the site tells it.
fn stopped(scene: &Scene, mut cut_off: impl FnMut() -> Result<u64>) -> Result<Round> {
    let others: Vec<usize> = (1..MEMBERS).collect();
    let began = micros();
    scene.committed(&others, began, COMMITS)?;
    let (since, stopped) = (micros(), Instant::now());
    if cut_off()? > 0 {
        return Err("a member was cut off that was not slow".into());
    }
    let slow = scene.members[0].process.id();
    signal("STOP", slow)?;
    while cut_off()? == 0 {
        if stopped.elapsed() > PATIENCE {
            return Err("a member that does not read is not cut off".into());
        }
        thread::sleep(Duration::from_millis(10));
    }
    let cut_off_ms = stopped.elapsed().as_secs_f64() * 1e3;
    scene.committed(&others, since, COMMITS)?;
    let until = micros();
    signal("CONT", slow)?;
    scene.committed(&[0], until, 1)?;
    let back = commits_of(scene, 0, until, u64::MAX);
    let back = back.first().ok_or("it did not commit")?.ended - until;
    if cut_off()? > 1 {
        return Err("more than the slow member was cut off".into());
    }
    let of_others = |from: u64, to: u64| -> Vec<Commit> {
        let others = others.iter();
        others
            .flat_map(|other| commits_of(scene, *other, from, to))
            .collect()
    };
    Ok(Round {
        before: of_others(began, since),
        during: of_others(since, until),
        changes: 0,
        cut_off_ms,
        back_ms: back as f64 / 1e3,
    })
}

/// What a member has begun and ended within some time.
fn commits_of(scene: &Scene, member: usize, from: u64, to: u64) -> Vec<Commit> {
    let told = scene.members[member].told();
    let within = |commit: &&Commit| commit.begun >= from && commit.ended < to;
    told.commits.iter().filter(within).copied().collect()
}

fn told(rounds: &[Round]) -> String {
    let before: Vec<Commit> = rounds
        .iter()
        .flat_map(|round| round.before.clone())
        .collect();
    let during: Vec<Commit> = rounds
        .iter()
        .flat_map(|round| round.during.clone())
        .collect();
    let took = |commits: &[Commit]| commits.iter().map(Commit::took_ms).collect::<Vec<f64>>();
    let fetch = |commits: &[Commit]| {
        commits
            .iter()
            .filter_map(Commit::fetch_ms)
            .collect::<Vec<f64>>()
    };
    let both = |times: &[f64]| [median(times.to_vec()), percentile(times, 0.99)];
    let commits = [both(&took(&before)), both(&took(&during))];
    let fetches = [both(&fetch(&before)), both(&fetch(&during))];
    let cut_off_ms = median(rounds.iter().map(|round| round.cut_off_ms).collect());
    let back_ms = median(rounds.iter().map(|round| round.back_ms).collect());
    let figure = Figure::new("failover").with("figure", "member_slow");
    figure
        .with("rounds", rounds.len())
        .with(
            "changes_of_all_pages",
            rounds.iter().map(|round| round.changes).sum::<u64>(),
        )
        .with("queue_bytes_max", QUEUE_BYTES_MAX)
        .with("commits_before", before.len())
        .with("commits_during", during.len())
        .with("commit_p50_ms_before", commits[0][0])
        .with("commit_p99_ms_before", commits[0][1])
        .with("commit_p99_ms_during", commits[1][1])
        .with("fetches_during", fetch(&during).len())
        .with("fetch_p50_ms_before", fetches[0][0])
        .with("fetch_p99_ms_before", fetches[0][1])
        .with("fetch_p50_ms_during", fetches[1][0])
        .with("fetch_p99_ms_during", fetches[1][1])
        .with("cut_off_after_ms", cut_off_ms)
        .with("back_after_ms", back_ms)
        .with("commit_p50_ms_during", commits[1][0])
        .at_most("commit_p50_ratio", commits[1][0] / commits[0][0], 1.1);
    let pair = |[p50, p99]: [f64; 2]| format!("{p50:.1}, {p99:.1} ms");
    format!(
        "member_slow    | cut off {cut_off_ms:.0} ms after it stopped | the others' commits p50, p99: {} before, {} meanwhile; their reads that fetched: {} before, {} meanwhile | it commits again {back_ms:.0} ms after it went on",
        pair(commits[0]),
        pair(commits[1]),
        pair(fetches[0]),
        pair(fetches[1]),
    )
}
