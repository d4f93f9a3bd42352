//! A site is killed or stopped under load, or a member is.

use crate::member::micros;
use crate::village::{ALIVE_MS, Commit, MEMBERS, MISSED_MAX, PAGES, Running, Scene, signal};
use std::thread;
use std::time::Duration;
use thorp_bench::Result;
use thorp_bench::figure::{Figure, median, percentile};
use thorp_model::limits::PAGE_BYTES;

/// Pages that really change while the site is gone.
const CHANGED: usize = 20;
const WARM: Duration = Duration::from_secs(2);
/// Commits of each after it.
const AFTER: usize = 30;

pub(crate) fn killed(rounds: usize) -> Result<Vec<String>> {
    rounds_of("site_killed", rounds, |scene| {
        // Dropping it is `kill -9`.
        scene.sites[0] = None;
        Ok(())
    })
}

pub(crate) fn stopped(rounds: usize) -> Result<Vec<String>> {
    rounds_of("site_stopped", rounds, |scene| {
        let first = scene.sites[0].as_ref().ok_or("no site")?;
        signal("STOP", first.id())
    })
}

fn limit_ms() -> f64 {
    (ALIVE_MS * u64::from(MISSED_MAX)) as f64
}

fn rounds_of(name: &str, rounds: usize, fell: fn(&mut Scene) -> Result<()>) -> Result<Vec<String>> {
    let everybody: Vec<usize> = (0..MEMBERS).collect();
    let (mut pauses, mut fetched, mut unknown) = (Vec::new(), 0, 0);
    for round in 1..=rounds {
        eprintln!("  round {round} of {rounds}: {MEMBERS} members get warm");
        let mut scene = Scene::start()?;
        thread::sleep(WARM);
        let before: u64 = scene.count(&everybody)?.iter().map(|one| one.pages).sum();
        let since = micros();
        fell(&mut scene)?;
        scene.change(CHANGED)?;
        scene.committed(&everybody, since, AFTER)?;
        let counted = scene.count(&everybody)?;
        fetched += counted.iter().map(|one| one.pages).sum::<u64>() - before;
        unknown += scene
            .members
            .iter()
            .map(|one| one.told().unknown)
            .sum::<u64>();
        let paused = scene.members.iter().map(|member| pause(member, since));
        let paused: Vec<f64> = paused.collect();
        eprintln!("  the longest pause: {:.0} ms", percentile(&paused, 1.0));
        pauses.extend(paused);
    }
    let (p50, p99) = (median(pauses.clone()), percentile(&pauses, 0.99));
    let changed = (CHANGED * MEMBERS * rounds) as u64;
    let figure = Figure::new("failover").with("figure", name);
    figure
        .with("members", MEMBERS)
        .with("rounds", rounds)
        .with("detection_limit_ms", limit_ms())
        .with("pause_p50_ms", p50)
        .with("pause_p99_ms", p99)
        .with("pause_p50_limits", p50 / limit_ms())
        .with("outcomes_unknown", unknown)
        .at_most("pause_p99_limits", p99 / limit_ms(), 2.0);
    let figure = Figure::new("failover").with("figure", format!("{name}, pages fetched again"));
    figure
        .with("cached_pages_each", PAGES)
        .with("changed_bytes", changed * PAGE_BYTES as u64)
        .with("fetched_bytes", fetched * PAGE_BYTES as u64)
        .at_most("ratio", fetched as f64 / changed as f64, 1.1);
    Ok(vec![format!(
        "{name:14} | pause p50 {p50:.0} ms, p99 {p99:.0} ms = {:.2}, {:.2} detection limits of {:.0} ms | {fetched} pages fetched again, {changed} had changed | {unknown} outcomes unknown",
        p50 / limit_ms(),
        p99 / limit_ms(),
        limit_ms(),
    )])
}

/// The longest time after a moment in which a member's commits did not flow, in milliseconds.
fn pause(member: &Running, since: u64) -> f64 {
    let told = member.told();
    let ends: Vec<u64> = told.commits.iter().map(|commit| commit.ended).collect();
    let gaps = ends.windows(2).filter(|pair| pair[1] >= since);
    let longest = gaps.map(|pair| pair[1] - pair[0].max(since)).max();
    longest.unwrap_or(0) as f64 / 1e3
}

/// One is killed, and another one stopped: nobody else's commit waits for them.
pub(crate) fn member_killed(rounds: usize) -> Result<Vec<String>> {
    let others: Vec<usize> = (2..MEMBERS).collect();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        eprintln!("  round {round} of {rounds}: {MEMBERS} members get warm");
        let scene = Scene::start()?;
        let began = micros();
        scene.committed(&others, began, AFTER)?;
        let since = micros();
        signal("KILL", scene.members[0].process.id())?;
        signal("STOP", scene.members[1].process.id())?;
        scene.committed(&others, since, AFTER)?;
        for other in &others {
            let told = scene.members[*other].told();
            let late = told.commits.iter().filter(|commit| commit.begun >= since);
            after.extend(late.take(AFTER).copied());
            let early = |commit: &&Commit| commit.begun >= began && commit.ended < since;
            before.extend(told.commits.iter().filter(early).copied());
        }
    }
    let took = |commits: &[Commit]| commits.iter().map(Commit::took_ms).collect::<Vec<f64>>();
    let frames = |commits: &[Commit]| -> f64 {
        let all: u64 = commits.iter().map(|commit| commit.frames).sum();
        all as f64 / commits.len() as f64
    };
    let (took_before, took_after) = (took(&before), took(&after));
    let longest = percentile(&took_after, 1.0);
    let (sent_before, sent_after) = (frames(&before), frames(&after));
    let figure = Figure::new("failover").with("figure", "member_killed");
    figure
        .with("commits_before", before.len())
        .with("commits_after", after.len())
        .with("p50_ms_before", median(took_before.clone()))
        .with("p99_ms_before", percentile(&took_before, 0.99))
        .with("p50_ms_after", median(took_after.clone()))
        .with("p99_ms_after", percentile(&took_after, 0.99))
        .with("frames_each_before", sent_before)
        .with("frames_each_after", sent_after)
        .with("detection_limit_ms", limit_ms())
        .with("longest_ms_after", longest)
        .at_most("longest_limits", longest / limit_ms(), 1.0);
    Ok(vec![format!(
        "member_killed  | the others' commits p50, p99: {:.1}, {:.1} ms before, {:.1}, {:.1} ms after, the longest {longest:.0} ms | {sent_before:.2} frames sent for each before, {sent_after:.2} after",
        median(took_before.clone()),
        percentile(&took_before, 0.99),
        median(took_after.clone()),
        percentile(&took_after, 0.99),
    )])
}
