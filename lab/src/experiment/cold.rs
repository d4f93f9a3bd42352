//! Figures 7 to 9: members with empty caches go through the same module at the same time.

use super::cold_told::{told_of, write_charts};
use super::{
    CUT_SHORT, Common, HOME, PLAIN, SITE, Samples, TUNED, built, busy, each, ms, network,
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
pub struct Cold {
    /// What all experiments are.
    pub common: Common,
    /// Sizes of groups.
    pub groups: Vec<usize>,
}

/// How members are joined and behave.
pub(super) struct Case {
    pub(super) name: &'static str,
    manner: Manner,
    site: Option<SiteMemory>,
}

/// *Plain*: no site, strict sessions, page by page: the paper's base. *Buddy*: the same at a site without memory: the paper's
/// BuddyCache. *Tuned*: everything but neighbours. *Thorp*: everything.
pub(super) const CASES: [Case; 4] = [
    Case {
        name: "plain",
        manner: PLAIN,
        site: None,
    },
    Case {
        name: "buddy",
        manner: PLAIN,
        site: Some(SiteMemory::None),
    },
    Case {
        name: "tuned",
        manner: TUNED,
        site: None,
    },
    Case {
        name: "thorp",
        manner: TUNED,
        site: Some(SiteMemory::Usual),
    },
];

struct Run {
    case: &'static Case,
    round_trip: Duration,
    members: usize,
    run: usize,
}

/// Runs it; tells the table.
pub fn cold(told: &Cold, stop: &Stop, show: &mut dyn FnMut(&str)) -> Outcome<String> {
    let common = &told.common;
    let mut samples = Samples::keep_in(&common.out, "cold")?;
    let busy = busy();
    let wan = network(Link::default())?;
    show("making the module");
    let mut village = match built(common, &wan, stop) {
        Err(_) if stop.is_set() => return Ok(CUT_SHORT.to_owned()),
        village => village?,
    };
    let whole = each(
        &runs(told),
        |run| {
            let (name, far) = (run.case.name, ms(run.round_trip));
            format!("cold, {far} ms, {} members, {name}", run.members)
        },
        |run| one(&wan, &mut village, run, &mut samples),
        stop,
        show,
    )?;
    write_charts(told, &samples)?;
    let table = told_of(told, &samples) + &busy;
    Ok(if whole { table } else { table + CUT_SHORT })
}

/// Case after case, each as often as asked, so that whatever else the machine does falls on all.
fn runs(told: &Cold) -> Vec<Run> {
    let mut runs = Vec::new();
    for &round_trip in &told.common.round_trips {
        for &members in &told.groups {
            for run in 0..told.common.repeats {
                runs.extend(CASES.iter().map(|case| Run {
                    case,
                    round_trip,
                    members,
                    run,
                }));
            }
        }
    }
    runs
}

/// Members and a site of their own: no cache but the home's knows of an earlier run.
fn one(wan: &Wan, village: &mut Village<'_>, run: &Run, samples: &mut Samples) -> Outcome<()> {
    set_round_trip(wan, run.round_trip)?;
    village.end_sites();
    if let Some(memory) = run.case.site {
        village.site(SITE, HOME, memory)?;
    }
    let at = run.case.site.map_or(HOME, |_| SITE);
    let start = |number| village.member(SITE, at, &format!("m{number}"), run.case.manner);
    let mut group: Vec<Process> = (1..=run.members).map(start).collect::<Outcome<_>>()?;
    // Each begins elsewhere, as people do.
    let answers = together(&mut group, |number| format!("run T1 {}", number + 1))?;
    for (member, answer) in answers.iter().enumerate() {
        let of = [
            ("case", json!(run.case.name)),
            ("members", json!(run.members)),
            ("run", json!(run.run)),
            ("member", json!(member)),
            ("round_trip_ms", json!(ms(run.round_trip))),
        ];
        samples.add(&of, answer)?;
    }
    Ok(())
}
