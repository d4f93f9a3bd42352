//! Which presets exclude which anomalies, and seeds that show the others.

use crate::campaign::Villages;
use crate::logs::preset::{Anomaly, Preset};
use crate::{Options, Story};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What sessions of a large campaign have to see: `preset: anomaly`.
pub const SHOWN_BY_SEEDS: &[&str] = &[
    "serializable: stale read",
    "master-slave: lost update",
    "master-slave: write skew",
    "master-slave: stale read",
    "close-to-open: lost update",
    "close-to-open: write skew",
    "bounded: lost update",
    "bounded: write skew",
    "eventual: lost update",
    "eventual: write skew",
    "eventual: stale read",
    "snapshot: lost update",
    "snapshot: write skew",
    "snapshot: stale read",
    "stream: lost update",
    "stream: write skew",
    "stream: stale read",
    "stream: fractured read",
];

/// The first seed that shows each anomaly, by `preset: anomaly`.
pub type FirstSeeds = BTreeMap<String, u64>;

/// Runs mixed villages, and notes which seeds show what.
///
/// # Errors
///
/// The story of a seed that fails.
pub fn first_seeds(seeds: u64, jobs: u64) -> Result<FirstSeeds, Box<Story>> {
    let next = AtomicU64::new(1);
    let first = Mutex::new((FirstSeeds::new(), None));
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > seeds {
                        break;
                    }
                    let story = Villages::Mixed.run(seed, Options::default());
                    let Ok(mut first) = first.lock() else { break };
                    for name in story.counts.answers.keys() {
                        let at = first.0.entry(name.to_string()).or_insert(seed);
                        *at = seed.min(*at);
                    }
                    if story.result.is_err() {
                        first.1 = Some(Box::new(story));
                        next.store(seeds, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let (first, failed) = first.into_inner().unwrap_or_default();
    failed.map_or(Ok(first), Err)
}

/// The table of presets and anomalies in Markdown.
pub fn table(first: &FirstSeeds) -> String {
    let names: Vec<&str> = Anomaly::ALL.iter().map(|anomaly| anomaly.name()).collect();
    let mut told = format!("| preset | {} |\n|---|", names.join(" | "));
    told.push_str(&"---|".repeat(names.len()));
    told.push('\n');
    for preset in Preset::all() {
        let cells = Anomaly::ALL.map(|anomaly| cell(preset, anomaly, first));
        let _ = writeln!(told, "| {} | {} |", preset.name(), cells.join(" | "));
    }
    told
}

fn cell(preset: Preset, anomaly: Anomaly, first: &FirstSeeds) -> String {
    let name = format!("{}: {}", preset.name(), anomaly.name());
    match (preset.excludes(anomaly), first.get(&name)) {
        (true, _) => String::from("never"),
        (false, Some(seed)) => format!("seed {seed}"),
        (false, None) => String::from("not drawn"),
    }
}
