//! How the work and the memory of a home and of a redirector grow with members, sites and pages: nothing may grow
//! faster than they do. `cargo run --release -p thorp-bench --bin scale [PAGES]`, a million if nothing is said.
//!
//! The state machines alone, in one thread: what sockets and disks cost is not in it. Lines that say `met` compare the
//! largest village with the smallest.

mod still_village;

use std::time::Duration;
use still_village::{Size, Spent, StillVillage};
use thorp_bench::Result;
use thorp_bench::counting::{Counting, bytes};
use thorp_bench::figure::Figure;
use thorp_model::NodeKind;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Rounds of each measurement.
const ROUNDS: usize = 7;
/// Operations in a round.
const OPERATIONS: usize = 500;
/// Heartbeats in a round.
const BEATS: usize = 20;
/// Pages that are fetched between two, where many are.
const PAGES_A_BEAT: usize = 10_000;
/// As often as a home's heart beats.
const BEAT_MS: u64 = 500;
/// How much more than in proportion something may grow before it is said to: the clock's share.
const NOISE: f64 = 1.3;

fn main() -> Result<()> {
    let pages = std::env::args().nth(1).map(|pages| pages.parse());
    let pages_max: usize = pages.transpose()?.unwrap_or(1_000_000);
    let village = |sites, members_a_site| Size {
        sites,
        members_a_site,
    };
    let members = [1, 2, 4, 8, 16, 32, 64].map(|members| (members, village(1, members)));
    along("members of a site", &members, |_, size| measure_small(size))?;
    let sites = [1, 2, 4, 8, 16, 32].map(|sites| (sites, village(sites, 1)));
    along("sites", &sites, |_, size| measure_small(size))?;
    let pages = [1_000, 10_000, 100_000].into_iter();
    let pages = pages.filter(|pages| *pages < pages_max).chain([pages_max]);
    let pages: Vec<(usize, Size)> = pages.map(|pages| (pages, village(1, 2))).collect();
    along("pages", &pages, measure_large)
}

/// What was measured in one village, by what was done.
type Measured = Vec<(&'static str, Costs)>;

/// What the home and all sites together take for an operation, in nanoseconds, or for all pages, in bytes.
#[derive(Clone, Copy)]
struct Costs {
    home: f64,
    sites: f64,
}

/// Measures in larger and larger villages, and compares the last one with the first.
fn along(
    what: &'static str,
    villages: &[(usize, Size)],
    measure: fn(usize, Size) -> Result<Measured>,
) -> Result<()> {
    let mut first: Vec<(usize, &'static str, Costs)> = Vec::new();
    let mut last = first.clone();
    for (number, size) in villages {
        last.clear();
        for (operation, costs) in measure(*number, *size)? {
            let figure = Figure::new("scale").with("along", what);
            let figure = figure.with("number", *number).with("operation", operation);
            figure
                .with("home", costs.home)
                .with("sites", costs.sites)
                .tell();
            last.push((*number, operation, costs));
            if !first.iter().any(|(_, known, _)| *known == operation) {
                first.push((*number, operation, costs));
            }
        }
    }
    for (most, operation, large) in &last {
        for (least, _, small) in first.iter().filter(|(_, known, _)| known == operation) {
            let proportion = *most as f64 / *least as f64;
            let growths = [
                ("home", large.home / small.home),
                ("sites", large.sites / small.sites),
            ];
            for (whose, growth) in growths.into_iter().filter(|(_, growth)| growth.is_finite()) {
                let figure = Figure::new("scale")
                    .with("along", what)
                    .with("operation", *operation);
                let figure = figure
                    .with("whose", whose)
                    .with("from", *least)
                    .with("to", *most);
                figure.at_most("growth against proportion", growth / proportion, NOISE);
            }
        }
    }
    Ok(())
}

/// What operations cost where there are many members or sites, and few pages.
fn measure_small(size: Size) -> Result<Measured> {
    let mut village = StillVillage::new(size)?;
    let (first, last) = village.ends();
    let own = village.made_by(first)?;
    let shared = village.made_by(first)?;
    for member in village.members() {
        village.fetch(member, shared)?;
    }
    let mut measured = measure_fetches(&mut village)?;
    if first != last {
        let cost = cost_of(&mut village, OPERATIONS, |village| {
            let page = village.fresh()?;
            village.fetch(first, page)?;
            village.timed(|village| village.fetch(last, page))
        })?;
        measured.push(("a page that another member has", cost));
    }
    for (operation, page) in [
        ("a commit that concerns nobody else", own),
        ("a commit that concerns everybody", shared),
    ] {
        let cost = cost_of(&mut village, OPERATIONS, |village| {
            village.timed(|village| village.write(first, page))
        })?;
        measured.push((operation, cost));
    }
    let beat = cost_of(&mut village, BEATS, |village| {
        village.timed(|village| village.wait(BEAT_MS))
    })?;
    measured.push(("a heartbeat", beat));
    Ok(measured)
}

/// What operations cost where one member holds many pages, and what all of them take.
fn measure_large(pages: usize, size: Size) -> Result<Measured> {
    let mut village = StillVillage::new(size)?;
    let (first, _) = village.ends();
    for number in 0..pages {
        let page = village.fresh()?;
        village.fetch(first, page)?;
        if number % PAGES_A_BEAT == 0 {
            village.wait(BEAT_MS)?;
        }
    }
    let mut measured = measure_fetches(&mut village)?;
    let own = village.made_by(first)?;
    let commit = cost_of(&mut village, OPERATIONS, |village| {
        village.timed(|village| village.write(first, own))
    })?;
    measured.push(("a commit that concerns nobody else", commit));
    let mut drop_all = |kind| {
        let before = bytes();
        village.forget(kind);
        (before - bytes()) as f64
    };
    // The home last: it shares its images with all others.
    drop_all(NodeKind::Member);
    let sites = drop_all(NodeKind::Redirector);
    let home = drop_all(NodeKind::Home);
    measured.push(("bytes in memory", Costs { home, sites }));
    Ok(measured)
}

fn measure_fetches(village: &mut StillVillage) -> Result<Measured> {
    let (first, _) = village.ends();
    let cost = cost_of(village, OPERATIONS, |village| {
        let page = village.fresh()?;
        village.timed(|village| village.fetch(first, page))
    })?;
    Ok(vec![("a page that nobody has", cost)])
}

/// What each of many operations costs, but for the twentieth that costs most: there the machine did something else, too.
/// Now and then a heartbeat cleans up between them.
fn cost_of(
    village: &mut StillVillage,
    operations: usize,
    mut act: impl FnMut(&mut StillVillage) -> Result<Spent>,
) -> Result<Costs> {
    let (mut home, mut sites) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        village.wait(BEAT_MS)?;
        for _ in 0..operations {
            let spent = act(village)?;
            home.push(spent.home);
            sites.push(spent.sites);
        }
    }
    Ok(Costs {
        home: usual(home),
        sites: usual(sites),
    })
}

/// The mean, in nanoseconds, without the largest twentieth.
fn usual(mut spent: Vec<Duration>) -> f64 {
    spent.sort();
    spent.truncate((spent.len() * 19).div_ceil(20));
    let all: Duration = spent.iter().sum();
    all.as_nanos() as f64 / spent.len().max(1) as f64
}
