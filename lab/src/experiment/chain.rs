//! A chain of transactions, each of which depends on the one before (rule 14): with and without waiting for each.

use super::{
    CUT_SHORT, Common, HOME, SITE, Samples, TUNED, busy, each, ms, network, set_round_trip,
};
use crate::Outcome;
use crate::chart::{Chart, Points};
use crate::net::{Link, Wan};
use crate::stop::Stop;
use crate::village::{SiteMemory, Village, answer};
use serde_json::json;
use std::fs;
use std::time::Duration;

/// What the experiment is told.
#[derive(Clone, Debug)]
pub struct Chain {
    /// What all experiments are.
    pub common: Common,
    /// Transactions that wait for each other, and those that do not.
    pub transactions: (u64, u64),
}

const WHERE: [(&str, bool); 2] = [("at the home", false), ("at a site", true)];

/// As the member's command has them.
const MANNERS: [&str; 2] = ["waiting", "early"];

/// What is asked of us at 40 ms.
const ASKED: f64 = 20.0;

struct Run {
    place: (&'static str, bool),
    round_trip: Duration,
    run: usize,
}

/// Runs it; tells the table.
pub fn chain(told: &Chain, stop: &Stop, show: &mut dyn FnMut(&str)) -> Outcome<String> {
    let common = &told.common;
    let mut samples = Samples::keep_in(&common.out, "chain")?;
    let busy = busy();
    let wan = network(Link::default())?;
    let mut village = Village::start(&wan, HOME, &common.programs, stop)?;
    let whole = each(
        &runs(common),
        |run| format!("chain, {} ms, {}", ms(run.round_trip), run.place.0),
        |run| one(told, &wan, &mut village, run, &mut samples),
        stop,
        show,
    )?;
    fs::write(common.out.join("chain.svg"), chart(common, &samples).svg())?;
    let table = table(common, &samples) + &busy;
    Ok(if whole { table } else { table + CUT_SHORT })
}

fn runs(common: &Common) -> Vec<Run> {
    let mut runs = Vec::new();
    for &round_trip in &common.round_trips {
        for run in 0..common.repeats {
            runs.extend(WHERE.map(|place| Run {
                place,
                round_trip,
                run,
            }));
        }
    }
    runs
}

/// Both manners in one process, one right after the other.
fn one(
    told: &Chain,
    wan: &Wan,
    village: &mut Village<'_>,
    run: &Run,
    samples: &mut Samples,
) -> Outcome<()> {
    set_round_trip(wan, run.round_trip)?;
    village.end_sites();
    let (place, has_site) = run.place;
    if has_site {
        village.site(SITE, HOME, SiteMemory::Usual)?;
    }
    let at = if has_site { SITE } else { HOME };
    let mut member = village.member(SITE, at, "m1", TUNED)?;
    let counts = [told.transactions.0, told.transactions.1];
    for (manner, count) in MANNERS.iter().zip(counts) {
        member.tell(&format!("chain {count} {manner}"))?;
        let of = [
            ("case", json!(place)),
            ("manner", json!(manner)),
            ("run", json!(run.run)),
            ("round_trip_ms", json!(ms(run.round_trip))),
        ];
        let answered = answer(&mut member)?;
        samples.add(&of, &answered)?;
    }
    Ok(())
}

/// Transactions in a second.
fn rate(samples: &Samples, place: &str, manner: &str, round_trip: Duration) -> f64 {
    let of = [
        ("case", json!(place)),
        ("manner", json!(manner)),
        ("round_trip_ms", json!(ms(round_trip))),
    ];
    let median = |figure| samples.median_of_means(&of, figure).unwrap_or(f64::NAN);
    median("count") / median("total_s")
}

fn table(common: &Common, samples: &Samples) -> String {
    let mut text = String::from(
        "round trip |       where | waiting for each, /s | early, /s | times (asked)\n",
    );
    for &round_trip in &common.round_trips {
        for (place, _) in WHERE {
            let [waiting, early] = MANNERS.map(|manner| rate(samples, place, manner, round_trip));
            let asked = match ms(round_trip) {
                40.0 => format!(" ({ASKED:.0})"),
                _ => String::new(),
            };
            text += &format!(
                "{:7} ms | {place:>11} | {waiting:20.1} | {early:9.1} | {:.1}{asked}\n",
                ms(round_trip),
                early / waiting
            );
        }
    }
    text
}

fn chart(common: &Common, samples: &Samples) -> Chart {
    let line = |place: &str| -> Points {
        let gain = |far: Duration| {
            let [waiting, early] = MANNERS.map(|manner| rate(samples, place, manner, far));
            (ms(far), early / waiting)
        };
        let points = common.round_trips.iter().map(|&far| gain(far)).collect();
        (place.to_owned(), points)
    };
    Chart {
        title: "Dependent transactions: how many times as many, if none waits".to_owned(),
        x: "round trip to the home, ms".to_owned(),
        y: "times".to_owned(),
        lines: WHERE.map(|(place, _)| line(place)).to_vec(),
        marks: vec![("asked".to_owned(), vec![(40.0, ASKED)])],
        ..Chart::default()
    }
}
