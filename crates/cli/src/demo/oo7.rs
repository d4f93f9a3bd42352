//! Part 2: OO7 with a site beside OO7 without.

use super::figures::{Figures, Phase, Run, Spent, Way};
use super::progress::Progress;
use super::village::{HOME, Node, Village, Worker, together};
use super::wire::{Done, Order};
use crate::failure::Failure;
use thorp_workloads::oo7::{Config, Traversal};

/// How often [`Progress::step`] is called for so many kinds of groups.
pub(super) fn steps(groups: &[usize]) -> usize {
    1 + 2 * groups.len()
}

/// Runs every group both ways, and adds the figures and what must hold of them.
pub(super) fn run(
    village: &Village,
    home: &Node,
    groups: &[usize],
    figures: &mut Figures,
    progress: &mut Progress,
) -> Result<(), Failure> {
    progress.step("OO7 small is built at the home");
    build(village, home, progress)?;
    for &members in groups {
        for way in [Way::Direct, Way::Thorp] {
            progress.step(&format!("OO7: {members} members, {}", words(way)));
            group(village, home, way, members, figures, progress)?;
        }
    }
    check_counts(figures);
    for &members in groups {
        compare(figures, members);
    }
    Ok(())
}

fn words(way: Way) -> &'static str {
    match way {
        Way::Direct => "each connected straight to the home",
        Way::Thorp => "at one site",
    }
}

/// The names of those whom a wide-area link lies before.
pub(super) fn far(groups: &[usize]) -> Vec<String> {
    let direct = groups
        .iter()
        .flat_map(|&members| names(Way::Direct, members));
    direct
        .chain(groups.iter().map(|&members| site_name(members)))
        .collect()
}

fn site_name(members: usize) -> String {
    format!("oo7-{members}-site")
}

fn names(way: Way, members: usize) -> Vec<String> {
    let label = match way {
        Way::Direct => "direct",
        Way::Thorp => "near",
    };
    (1..=members)
        .map(|at| format!("oo7-{members}-{label}-{at}"))
        .collect()
}

fn build(village: &Village, home: &Node, progress: &mut Progress) -> Result<(), Failure> {
    // Not measured: so not from far away.
    let mut builder = village.workers(&["builder".to_owned()], home, false)?;
    let order = Order::Build { segment: segment() };
    together(&mut builder, &[order], progress)?;
    stop(builder)
}

/// New processes with empty caches, then phase after phase.
fn group(
    village: &Village,
    home: &Node,
    way: Way,
    members: usize,
    figures: &mut Figures,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let site = match way {
        Way::Direct => None,
        Way::Thorp => Some(village.site(&site_name(members), home)?),
    };
    let names = names(way, members);
    let parent = site.as_ref().unwrap_or(home);
    let mut workers = village.workers(&names, parent, way == Way::Direct)?;
    for phase in Phase::ALL {
        let run = measure(&mut workers, home, way, phase, progress)?;
        progress.result(&line(&run));
        figures.runs.push(run);
    }
    stop(workers)?;
    site.map_or(Ok(()), Node::stop)
}

fn measure(
    workers: &mut [Worker],
    home: &Node,
    way: Way,
    phase: Phase,
    progress: &mut Progress,
) -> Result<Run, Failure> {
    let members = workers.len();
    // The first one writes.
    let at_work = match phase {
        Phase::ColdT1 | Phase::HotT1 => &mut workers[..],
        Phase::T2b => &mut workers[..1],
        Phase::T1AfterT2b => &mut workers[1..],
    };
    let order = |number| Order::Traverse {
        segment: segment(),
        writing: phase == Phase::T2b,
        number,
    };
    let orders: Vec<Order> = (0..at_work.len()).map(order).collect();
    let before = home.links_below()?;
    progress.at(phase.words());
    let done = together(at_work, &orders, progress)?;
    let wide_area = home.links_below()?.since(before);
    let spent: Vec<Spent> = done.iter().map(|done| done.spent).collect();
    Ok(Run {
        way,
        members,
        phase,
        mean: Spent::mean(&spent),
        slowest_s: spent.iter().map(|spent| spent.elapsed).fold(0., f64::max),
        visited: done.iter().map(|done: &Done| done.count).collect(),
        wide_area,
    })
}

fn line(run: &Run) -> String {
    format!(
        "{:<13} {:>8.3} s, {:>10} over the wide-area link",
        run.phase.name(),
        run.mean.elapsed,
        crate::text::bytes(run.wide_area.bytes)
    )
}

fn stop(workers: Vec<Worker>) -> Result<(), Failure> {
    workers.into_iter().try_for_each(Worker::stop)
}

fn check_counts(figures: &mut Figures) {
    let expected = |phase| {
        let traversal = if phase == Phase::T2b {
            Traversal::T2b
        } else {
            Traversal::T1
        };
        Config::small().expected(traversal).atomic_visits
    };
    let traversals: usize = figures.runs.iter().map(|run| run.visited.len()).sum();
    let wrong = figures
        .runs
        .iter()
        .flat_map(|run| {
            run.visited
                .iter()
                .map(|count| (expected(run.phase), *count))
        })
        .filter(|(wanted, found)| wanted != found)
        .count();
    let wanted = expected(Phase::ColdT1);
    let detail = format!(
        "{} of {traversals} visited {wanted} atomic parts",
        traversals - wrong
    );
    figures.check(
        "every OO7 traversal counts right",
        wrong == 0 && traversals > 0,
        detail,
    );
}

fn compare(figures: &mut Figures, members: usize) {
    let run = |way| {
        figures
            .run(way, members, Phase::ColdT1)
            .map(|run| (run.mean.elapsed, run.wide_area.bytes))
    };
    let (Some((thorp_s, thorp_bytes)), Some((direct_s, direct_bytes))) =
        (run(Way::Thorp), run(Way::Direct))
    else {
        return;
    };
    let detail = format!("{thorp_s:.2} s against {direct_s:.2} s");
    let name =
        format!("{members} members: Thorp's cold T1 takes less time than direct connections");
    let half = crate::text::percent(thorp_bytes, direct_bytes);
    figures.check(&name, thorp_s < direct_s, detail);
    let name = format!("{members} members: Thorp's cold T1 moves at most half the wide-area bytes");
    let good = thorp_bytes > 0 && thorp_bytes.saturating_mul(2) <= direct_bytes;
    figures.check(&name, good, format!("{half} of them"));
}

fn segment() -> String {
    format!("thorp://{HOME}/oo7/small")
}
