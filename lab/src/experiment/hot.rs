//! Figures 10 to 12: warm members read what one of them changes, in their own group or in another.

use super::hot_told::{told_of, write_charts};
use super::{
    CUT_SHORT, Common, HOME, OTHER, PLAIN, SITE, Samples, TUNED, built, busy, each, ms, network,
    set_round_trip,
};
use crate::Outcome;
use crate::net::{Link, Wan};
use crate::stop::Stop;
use crate::village::{Manner, Process, SiteMemory, Village, together};
use serde_json::json;
use std::time::Duration;

/// What the experiment is told.
#[derive(Clone, Debug)]
pub struct Hot {
    /// What all experiments are.
    pub common: Common,
    /// Members that only read.
    pub readers: usize,
    /// Transactions of each reader before it counts, and those that do.
    pub transactions: (usize, usize),
}

/// Where the writer is joined, and where the readers are.
pub(super) struct Case {
    pub(super) name: &'static str,
    manner: Manner,
    /// What the sites have, if there are any.
    sites: Option<SiteMemory>,
    /// Where the writer is, and where it is joined.
    writer: (&'static str, &'static str),
    /// Whether the link has its delay.
    is_far: bool,
}

impl Case {
    pub(super) fn is_far(&self) -> bool {
        self.is_far
    }
}

/// *Plain*: no site, strict sessions, page by page: the paper's base. *Buddy*: the same at sites without memory. The others
/// have everything, but for *tuned*, which has no site.
pub(super) const CASES: [Case; 7] = [
    Case {
        name: "plain",
        manner: PLAIN,
        sites: None,
        writer: (OTHER, HOME),
        is_far: true,
    },
    Case {
        name: "buddy readers",
        manner: PLAIN,
        sites: Some(SiteMemory::None),
        writer: (OTHER, OTHER),
        is_far: true,
    },
    Case {
        name: "buddy writer",
        manner: PLAIN,
        sites: Some(SiteMemory::None),
        writer: (SITE, SITE),
        is_far: true,
    },
    Case {
        name: "tuned",
        manner: TUNED,
        sites: None,
        writer: (OTHER, HOME),
        is_far: true,
    },
    Case {
        name: "thorp readers",
        manner: TUNED,
        sites: Some(SiteMemory::Usual),
        writer: (OTHER, OTHER),
        is_far: true,
    },
    Case {
        name: "thorp writer",
        manner: TUNED,
        sites: Some(SiteMemory::Usual),
        writer: (SITE, SITE),
        is_far: true,
    },
    Case {
        name: "no delay",
        manner: TUNED,
        sites: Some(SiteMemory::Usual),
        writer: (SITE, SITE),
        is_far: false,
    },
];

struct Run {
    case: &'static Case,
    round_trip: Duration,
    run: usize,
}

/// Runs it; tells the table.
pub fn hot(told: &Hot, stop: &Stop, show: &mut dyn FnMut(&str)) -> Outcome<String> {
    let common = &told.common;
    let mut samples = Samples::keep_in(&common.out, "hot")?;
    let busy = busy();
    let wan = network(Link::default())?;
    show("making the module");
    let mut village = match built(common, &wan, stop) {
        Err(_) if stop.is_set() => return Ok(CUT_SHORT.to_owned()),
        village => village?,
    };
    let whole = each(
        &runs(common),
        |run| format!("hot, {} ms, {}", ms(run.round_trip), run.case.name),
        |run| one(told, &wan, &mut village, run, &mut samples),
        stop,
        show,
    )?;
    write_charts(told, &samples)?;
    let table = told_of(told, &samples) + &busy;
    Ok(if whole { table } else { table + CUT_SHORT })
}

/// What is not far is measured once, not for each distance.
fn runs(common: &Common) -> Vec<Run> {
    let mut runs = Vec::new();
    for (number, &round_trip) in common.round_trips.iter().enumerate() {
        for run in 0..common.repeats {
            let cases = CASES.iter().filter(|case| case.is_far || number == 0);
            runs.extend(cases.map(|case| Run {
                case,
                round_trip: if case.is_far {
                    round_trip
                } else {
                    Duration::ZERO
                },
                run,
            }));
        }
    }
    runs
}

fn one(
    told: &Hot,
    wan: &Wan,
    village: &mut Village<'_>,
    run: &Run,
    samples: &mut Samples,
) -> Outcome<()> {
    set_round_trip(wan, run.round_trip)?;
    let case = run.case;
    village.end_sites();
    if let Some(memory) = case.sites {
        village.site(SITE, HOME, memory)?;
        village.site(OTHER, HOME, memory)?;
    }
    let (spoke, at) = case.writer;
    let readers_at = case.sites.map_or(HOME, |_| SITE);
    let mut writer = village.member(spoke, at, "writer", case.manner)?;
    let start = |number| village.member(SITE, readers_at, &format!("m{number}"), case.manner);
    let mut readers: Vec<Process> = (1..=told.readers).map(start).collect::<Outcome<_>>()?;
    // Until it is ended with this run.
    writer.tell(&format!("mix 1000000 50 {}", run.run + 1))?;
    let (before, counted) = told.transactions;
    together(&mut readers, |_| format!("runs T1 {before}"))?;
    let answers = together(&mut readers, |_| format!("runs T1 {counted}"))?;
    for (member, answer) in answers.iter().enumerate() {
        let of = [
            ("case", json!(case.name)),
            ("run", json!(run.run)),
            ("member", json!(member)),
            ("round_trip_ms", json!(ms(run.round_trip))),
        ];
        samples.add(&of, answer)?;
    }
    Ok(())
}
