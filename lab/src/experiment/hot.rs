//! Figures 10 to 12: warm members read what one of them changes, in their own group or in another.

use super::{CACHE_BYTES, CUT_SHORT, Common, HOME, OTHER, SITE, Samples};
use crate::Outcome;
use crate::net::{Link, Plan, Wan};
use crate::stop::Stop;
use crate::village::{Manner, Process, Village, answer, together};
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
struct Case {
    name: &'static str,
    readers_at: &'static str,
    writer: (&'static str, &'static str),
    strict: bool,
    fetch_ahead: Option<usize>,
    /// Whether the link has its delay.
    is_far: bool,
}

const CASES: [Case; 5] = [
    Case {
        name: "plain",
        readers_at: HOME,
        writer: (OTHER, HOME),
        strict: true,
        fetch_ahead: Some(0),
        is_far: true,
    },
    Case {
        name: "tuned",
        readers_at: HOME,
        writer: (OTHER, HOME),
        strict: false,
        fetch_ahead: None,
        is_far: true,
    },
    Case {
        name: "writer outside",
        readers_at: SITE,
        writer: (OTHER, OTHER),
        strict: false,
        fetch_ahead: None,
        is_far: true,
    },
    Case {
        name: "writer in the group",
        readers_at: SITE,
        writer: (SITE, SITE),
        strict: false,
        fetch_ahead: None,
        is_far: true,
    },
    Case {
        name: "no delay",
        readers_at: SITE,
        writer: (SITE, SITE),
        strict: false,
        fetch_ahead: None,
        is_far: false,
    },
];

/// Runs it; tells the table.
pub fn hot(told: &Hot, stop: &Stop, show: &mut dyn FnMut(&str)) -> Outcome<String> {
    let common = &told.common;
    let mut samples = Samples::keep_in(&common.out, "hot")?;
    let runs = common.repeats * CASES.len();
    let mut done = 0;
    for case in &CASES {
        let round_trip = if case.is_far {
            common.round_trip
        } else {
            Duration::ZERO
        };
        let mut plan = Plan::default();
        plan.add(HOME, Link::with_delay(round_trip / 2))?;
        plan.add(SITE, Link::default())?;
        plan.add(OTHER, Link::default())?;
        let wan = Wan::start(&plan)?;
        for run in 0..common.repeats {
            done += 1;
            show(&format!("{done} of {runs}: {}", case.name));
            let ended = one(told, &wan, case, run, &mut samples, stop);
            if stop.is_set() {
                return Ok(table(&samples) + CUT_SHORT);
            }
            ended?;
        }
    }
    Ok(table(&samples))
}

fn one(
    told: &Hot,
    wan: &Wan,
    case: &Case,
    run: usize,
    samples: &mut Samples,
    stop: &Stop,
) -> Outcome<()> {
    let common = &told.common;
    let manner = Manner {
        cache_bytes: CACHE_BYTES,
        fetch_ahead: case.fetch_ahead,
        strict: case.strict,
    };
    let mut village = Village::start(wan, HOME, &common.programs, stop)?;
    let mut builder = village.member(HOME, HOME, "builder", manner)?;
    builder.tell(&format!("build {}", common.size))?;
    answer(&mut builder)?;
    drop(builder);
    for site in [SITE, OTHER] {
        village.site(site, HOME)?;
    }
    let (spoke, at) = case.writer;
    let mut writer = village.member(spoke, at, "writer", manner)?;
    let start = |number| village.member(SITE, case.readers_at, &format!("m{number}"), manner);
    let mut readers: Vec<Process> = (1..=told.readers).map(start).collect::<Outcome<_>>()?;
    // Until it is ended with the village.
    writer.tell("mix 1000000 50")?;
    let (before, counted) = told.transactions;
    together(&mut readers, |_| format!("runs T1 {before}"))?;
    let answers = together(&mut readers, |_| format!("runs T1 {counted}"))?;
    for (member, answer) in answers.iter().enumerate() {
        let of = [
            ("case", json!(case.name)),
            ("run", json!(run)),
            ("member", json!(member)),
            ("round_trip_ms", json!(common.round_trip.as_millis() as u64)),
        ];
        samples.add(&of, answer)?;
    }
    Ok(())
}

fn table(samples: &Samples) -> String {
    let figure = |case: &str, figure: &str| {
        let found = samples.median_of_means(&[("case", json!(case))], figure);
        found.unwrap_or(f64::NAN)
    };
    let each = |case: &str| 1e3 * figure(case, "total_s") / figure(case, "transactions");
    let (plain, near) = (each("plain"), each("no delay"));
    let mut text = String::from(
        "case                | ms for each | saved of plain | of no delay | misses for each\n",
    );
    for case in &CASES {
        let name = case.name;
        text += &format!(
            "{name:19} | {:11.2} | {:12.1} % | {:11.2} | {:.3}\n",
            each(name),
            100.0 * (1.0 - each(name) / plain),
            each(name) / near,
            figure(name, "misses") / figure(name, "transactions"),
        );
    }
    text + "the paper at 40 ms (section 6.4.2): 62 % with the writer in the group, 30 % with it outside; asked: 95 % (1.2 of no delay), 80 %\n"
}
