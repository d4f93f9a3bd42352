//! Tables 1 and 2: what a fetch, a commit and a fetch from a neighbour cost where nothing is far.

use super::{CUT_SHORT, Common, HOME, PLAIN, SITE, Samples, TUNED, busy, each, median, network};
use crate::Outcome;
use crate::chart::{Bar, Bars};
use crate::net::{Link, Wan};
use crate::stop::Stop;
use crate::village::{Manner, Process, SiteMemory, Village, answer, together};
use serde_json::{Value, json};
use std::fs;

/// What the experiment is told.
#[derive(Clone, Debug)]
pub struct Costs {
    /// What all experiments are; distances do not matter to it.
    pub common: Common,
    /// Requests of each kind and member.
    pub requests: usize,
}

/// Sizes of groups, as in the paper.
const GROUPS: [usize; 2] = [3, 5];
/// And a member that nobody else keeps waiting: what passing on costs by itself.
const ALONE_TOO: [usize; 3] = [1, 3, 5];
/// A page holds one of these.
const OBJECT_BYTES: usize = 6000;
/// Neither ahead of reading, nor validated: a fetch alone is timed.
const ALONE: Manner = Manner {
    strict: false,
    ..PLAIN
};

/// What is between members and what they ask.
#[derive(Clone, Copy)]
enum Case {
    /// Straight at the home.
    Base,
    /// A site.
    Site(SiteMemory),
    /// Nothing of Thorp but its transport.
    Bare,
}

#[derive(Clone, Copy)]
struct Run {
    case: Case,
    members: usize,
    run: usize,
}

/// Runs it; tells the tables.
pub fn costs(told: &Costs, stop: &Stop, show: &mut dyn FnMut(&str)) -> Outcome<String> {
    let common = &told.common;
    let mut samples = Samples::keep_in(&common.out, "costs")?;
    let busy = busy();
    let wan = network(Link::default())?;
    show("making the pages");
    let mut village = match paged(told, &wan, stop) {
        Err(_) if stop.is_set() => return Ok(CUT_SHORT.to_owned()),
        village => village?,
    };
    let mut runs = Vec::new();
    for run in 0..common.repeats {
        for members in ALONE_TOO {
            let of = |case| Run { case, members, run };
            let sites = [SiteMemory::None, SiteMemory::Usual].map(Case::Site);
            runs.extend([Case::Bare, Case::Base].map(of));
            runs.extend(sites.map(of));
        }
    }
    let whole = each(
        &runs,
        |run| format!("costs, {} members, {}", run.members, name(run.case)),
        |run| match run.case {
            Case::Bare => bare(told, &mut village, run, &mut samples),
            _ => one(told, &mut village, run, &mut samples),
        },
        stop,
        show,
    )?;
    fs::write(common.out.join("costs.svg"), chart(&samples).svg())?;
    let table = tables(&samples) + &passing_on(&samples) + &busy;
    Ok(if whole { table } else { table + CUT_SHORT })
}

fn name(case: Case) -> &'static str {
    match case {
        Case::Base => "base",
        Case::Site(SiteMemory::None) => "buddy",
        Case::Site(SiteMemory::Usual) => "site with memory",
        Case::Bare => "bare",
    }
}

/// A home with as many pages as the largest group asks for.
fn paged<'a>(told: &Costs, wan: &'a Wan, stop: &Stop) -> Outcome<Village<'a>> {
    let village = Village::start(wan, HOME, &told.common.programs, stop)?;
    let mut builder = village.member(HOME, HOME, "builder", TUNED)?;
    let pages = GROUPS.iter().max().unwrap_or(&1) * told.requests;
    builder.tell(&format!("objects {pages} {OBJECT_BYTES}"))?;
    answer(&mut builder)?;
    Ok(village)
}

fn one(told: &Costs, village: &mut Village<'_>, run: &Run, samples: &mut Samples) -> Outcome<()> {
    village.end_sites();
    let at = match run.case {
        Case::Site(memory) => {
            village.site(SITE, HOME, memory)?;
            SITE
        }
        _ => HOME,
    };
    let start = |number| village.member(SITE, at, &format!("m{number}"), ALONE);
    let mut group: Vec<Process> = (1..=run.members).map(start).collect::<Outcome<_>>()?;
    let (requests, members) = (told.requests, run.members);
    let mut keep = |what: &str, answers: Vec<Value>| kept(samples, run, what, &answers);
    // Everybody's own pages first: they come from the home. Then those that a neighbour has got.
    let of = |number: usize| format!("fetches {} {requests} 1", number % members * requests);
    keep("fetch", together(&mut group, of)?)?;
    if at == SITE && members > 1 {
        keep("neighbour", together(&mut group, |number| of(number + 1))?)?;
    }
    keep(
        "commit",
        together(&mut group, |_| format!("commits {requests}"))?,
    )
}

/// As many ask as members fetch elsewhere, at the same time, and where they are: beside members and site.
fn bare(told: &Costs, village: &mut Village<'_>, run: &Run, samples: &mut Samples) -> Outcome<()> {
    village.end_sites();
    let _answerer = village.answerer(SITE)?;
    let start = |number| village.asker(SITE, SITE, &format!("m{number}"));
    let mut group: Vec<Process> = (1..=run.members).map(start).collect::<Outcome<_>>()?;
    let asks = format!("asks {}", told.requests);
    let answers = together(&mut group, |_| asks.clone())?;
    kept(samples, run, "round trip", &answers)
}

fn kept(samples: &mut Samples, run: &Run, what: &str, answers: &[Value]) -> Outcome<()> {
    answers.iter().enumerate().try_for_each(|(member, answer)| {
        let of = [
            ("case", json!(name(run.case))),
            ("what", json!(what)),
            ("members", json!(run.members)),
            ("run", json!(run.run)),
            ("member", json!(member)),
        ];
        samples.add(&of, answer)
    })
}

/// What the paper measured, in ms (tables 1 and 2); between two where it varied.
fn paper(what: &str, case: &str, members: usize) -> Option<(f64, f64)> {
    let one = |ms| Some((ms, ms));
    match (what, case, members) {
        ("fetch", "base", 3) => one(1.3),
        ("fetch", "base", 5) => one(1.4),
        ("fetch", "buddy", 3) => one(2.4),
        ("fetch", "buddy", 5) => one(2.6),
        ("commit", "base", 3) => one(2.5),
        ("commit", "base", 5) => one(5.5),
        ("commit", "buddy", 3) => one(2.4),
        ("commit", "buddy", 5) => one(5.7),
        ("neighbour", "buddy", _) => Some((1.8, 5.5)),
        _ => None,
    }
}

/// What is told of, and how it is called.
const LINES: [(&str, &str, &str); 8] = [
    (
        "round trip",
        "bare",
        "64 B up, 8 KiB down by the transport alone",
    ),
    ("fetch", "base", "fetch from the home"),
    ("fetch", "buddy", "fetch from the home, through a site"),
    (
        "fetch",
        "site with memory",
        "the same, and the site remembers it",
    ),
    ("commit", "base", "commit"),
    ("commit", "buddy", "commit through a site"),
    ("neighbour", "buddy", "PeerFetch: site, neighbour, member"),
    (
        "neighbour",
        "site with memory",
        "CrossRedirector, and a page of the site's memory",
    ),
];

/// In ms. The paper tells means; on a machine that does other work only the median says what a request costs.
fn measured(samples: &Samples, case: Of, members: usize, figure: &str) -> Option<f64> {
    let (what, case) = case;
    let of = [
        ("what", json!(what)),
        ("case", json!(case)),
        ("members", json!(members)),
    ];
    Some(1e3 * samples.median_of_means(&of, figure)?)
}

/// What a fetch from the home takes longer through a site, by bare round trips beside that site, run by run.
fn passing_on(samples: &Samples) -> String {
    let mut text = String::new();
    for members in ALONE_TOO {
        let p50 = |what: &str, case: &str, run: u64| {
            let of = [
                ("what", json!(what)),
                ("case", json!(case)),
                ("members", json!(members)),
                ("run", json!(run)),
            ];
            samples.median_of_means(&of, "p50_s")
        };
        let ratio = |run| {
            let more = p50("fetch", "buddy", run)? - p50("fetch", "base", run)?;
            Some(more / p50("round trip", "bare", run)?)
        };
        let ratios: Vec<f64> = (0..).map_while(ratio).collect();
        let least = ratios.iter().copied().reduce(f64::min).unwrap_or(f64::NAN);
        let middle = median(ratios).unwrap_or(f64::NAN);
        text += &format!(
            "passing a fetch on, {members} in flight: {middle:.2} bare round trips (median of runs), {least:.2} (least)\n"
        );
    }
    text
}

/// What was asked for, and where.
type Of = (&'static str, &'static str);

fn tables(samples: &Samples) -> String {
    let mut text = String::from(
        "ms                                               | 3 members: p50, mean (the paper) | 5 members: p50, mean (the paper)\n",
    );
    let cell = |ms: [Option<f64>; 2], paper: Option<(f64, f64)>| {
        let paper = match paper {
            Some((low, high)) if low == high => format!("({low:.1})"),
            Some((low, high)) => format!("({low:.1} to {high:.1})"),
            None => String::new(),
        };
        let [p50, mean] = ms.map(|ms| ms.unwrap_or(f64::NAN));
        format!("{p50:7.3}, {mean:8.3} {paper:14}")
    };
    let both = |case: Of, members: usize| {
        ["p50_s", "mean_s"].map(|figure| measured(samples, case, members, figure))
    };
    for (what, case, words) in LINES {
        let cells =
            GROUPS.map(|members| cell(both((what, case), members), paper(what, case, members)));
        text += &format!("{words:48} | {}\n", cells.join(" | "));
    }
    // What the neighbour adds: that it is alerted, and copies the page, in place of the site.
    let alert = GROUPS.map(|members| {
        let [peer, site] = ["buddy", "site with memory"].map(|at| both(("neighbour", at), members));
        let more = [0, 1].map(|at| peer[at].zip(site[at]).map(|(peer, site)| peer - site));
        cell(more, Some((0.3, 4.6)))
    });
    let words = "AlertHelper: the difference of these two";
    text + &format!("{words:48} | {}\n", alert.join(" | "))
}

fn chart(samples: &Samples) -> Bars {
    let group = |members: usize| {
        let bar = |(what, case, label): (&'static str, &'static str, &str)| Bar {
            name: label.to_owned(),
            parts: measured(samples, (what, case), members, "p50_s")
                .into_iter()
                .collect(),
            modelled: paper(what, case, members).map(|(low, high)| (low + high) / 2.0),
        };
        let bars = [
            ("fetch", "base", "fetch"),
            ("fetch", "buddy", "site"),
            ("commit", "base", "commit"),
            ("commit", "buddy", "site"),
            ("neighbour", "buddy", "peer"),
        ];
        (format!("{members} members"), bars.map(bar).to_vec())
    };
    Bars {
        title: "Tables 1 and 2: what a request costs where nothing is far".to_owned(),
        y: "ms".to_owned(),
        parts: vec!["measured, p50".to_owned()],
        model: "the paper, mean".to_owned(),
        groups: GROUPS.map(group).to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_value_and_the_papers() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut samples = Samples::keep_in(dir.path(), "costs").expect("a file");
        for (what, case, _) in LINES {
            let mean_s = if case == "buddy" { 0.002 } else { 0.0005 };
            let of = [
                ("what", json!(what)),
                ("case", json!(case)),
                ("members", json!(3)),
                ("run", json!(0)),
            ];
            samples
                .add(&of, &json!({"mean_s": mean_s, "p50_s": mean_s / 2.0}))
                .expect("written");
        }
        let text = tables(&samples);
        assert_eq!(text.lines().count(), LINES.len() + 2);
        assert!(text.contains("by the transport alone"), "{text}");
        let alert = text.lines().last().expect("a line");
        assert!(
            alert.contains("0.750,    1.500 (0.3 to 4.6)") && alert.contains("NaN"),
            "{text}"
        );
        assert!(text.contains("1.000,    2.000 (2.4)"), "{text}");
        // (1 ms - 0.25 ms) / 0.25 ms.
        let passing = passing_on(&samples);
        assert!(
            passing.contains("3 in flight: 3.00 bare") && passing.contains("5 in flight: NaN"),
            "{passing}"
        );
        assert!(!chart(&samples).svg().contains("NaN"));
    }
}
