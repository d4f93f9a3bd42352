//! A large object that is asked for after a silence: how many round trips it takes.

use super::{CUT_SHORT, Common, HOME, SITE, Samples, TUNED, busy, each};
use crate::Outcome;
use crate::chart::{Bar, Bars};
use crate::net::{Link, Plan, Wan};
use crate::quantity::Rate;
use crate::stop::Stop;
use crate::village::{SiteMemory, Village, answer};
use serde_json::json;
use std::fs;
use std::time::Duration;

/// What the experiment is told.
#[derive(Clone, Debug)]
pub struct Idle {
    /// What all experiments are.
    pub common: Common,
    /// Bytes of the object.
    pub bytes: usize,
    /// How long nothing is asked for before.
    pub silence: Duration,
    /// Of the link.
    pub rate: Rate,
}

/// What the kernel does after a silence: `1`, its default, begins as slowly as with a new connection.
const SETTING: &str = "net.ipv4.tcp_slow_start_after_idle";
const KERNELS: [(&str, &str); 2] = [("as the lab sets it", "0"), ("the kernel's default", "1")];
const WHERE: [(&str, bool); 2] = [("at the home", false), ("at a site", true)];
/// Read before the silence, so that the connection knows its way.
const WARM: usize = 4;

struct Run {
    kernel: (&'static str, &'static str),
    place: (&'static str, bool),
    run: usize,
}

/// Runs it; tells the table.
pub fn idle(told: &Idle, stop: &Stop, show: &mut dyn FnMut(&str)) -> Outcome<String> {
    let common = &told.common;
    let mut samples = Samples::keep_in(&common.out, "idle")?;
    let busy = busy();
    let mut runs = Vec::new();
    for run in 0..common.repeats {
        for kernel in KERNELS {
            runs.extend(WHERE.map(|place| Run { kernel, place, run }));
        }
    }
    let whole = each(
        &runs,
        |run| format!("after a silence, {}, {}", run.place.0, run.kernel.0),
        |run| one(told, run, &mut samples, stop),
        stop,
        show,
    )?;
    fs::write(common.out.join("idle.svg"), chart(told, &samples)?.svg())?;
    let table = table(told, &samples)? + &busy;
    Ok(if whole { table } else { table + CUT_SHORT })
}

/// Settings of the kernel are a network's: each run has its own.
fn one(told: &Idle, run: &Run, samples: &mut Samples, stop: &Stop) -> Outcome<()> {
    let round_trip = told.common.round_trip()?;
    let wan = wan(told, run.kernel.1, round_trip)?;
    let mut village = Village::start(&wan, HOME, &told.common.programs, stop)?;
    let mut builder = village.member(HOME, HOME, "builder", TUNED)?;
    builder.tell(&format!("objects {} {}", WARM + 2, told.bytes))?;
    answer(&mut builder)?;
    let (place, has_site) = run.place;
    if has_site {
        village.site(SITE, HOME, SiteMemory::Usual)?;
    }
    let at = if has_site { SITE } else { HOME };
    let mut member = village.member(SITE, at, "m1", TUNED)?;
    member.tell(&format!("fetches 0 {WARM} 1"))?;
    answer(&mut member)?;
    for (number, what) in ["busy", "silent"].iter().enumerate() {
        if *what == "silent" {
            stop.sleep(told.silence);
        }
        member.tell(&format!("fetches {} 1 1", WARM + number))?;
        let of = [
            ("case", json!(place)),
            ("kernel", json!(run.kernel.0)),
            ("before", json!(what)),
            ("run", json!(run.run)),
            ("bytes", json!(told.bytes)),
            ("round_trip_ms", json!(round_trip.as_secs_f64() * 1e3)),
        ];
        let answered = answer(&mut member)?;
        samples.add(&of, &answered)?;
    }
    Ok(())
}

fn wan(told: &Idle, kernel: &str, round_trip: Duration) -> Outcome<Wan> {
    let mut plan = Plan::default();
    let link = Link {
        rate: Some(told.rate),
        ..Link::with_delay(round_trip / 2)
    };
    plan.add(HOME, link)?;
    plan.add(SITE, Link::default())?;
    plan.tuning.set(&format!("{SETTING}={kernel}"))?;
    Wan::start(&plan)
}

fn seconds(samples: &Samples, place: &str, kernel: &str, before: &str) -> f64 {
    let of = [
        ("case", json!(place)),
        ("kernel", json!(kernel)),
        ("before", json!(before)),
    ];
    samples.median_of_means(&of, "total_s").unwrap_or(f64::NAN)
}

fn table(told: &Idle, samples: &Samples) -> Outcome<String> {
    let round_trip = told.common.round_trip()?.as_secs_f64();
    let wire = told.rate.time_for(told.bytes as u64).as_secs_f64();
    let mut text = format!(
        "{} bytes, in round trips | right after others | after a silence | that in ms, and beyond the wire's {:.1} ms\n",
        told.bytes,
        1e3 * wire
    );
    for (place, _) in WHERE {
        for (kernel, _) in KERNELS {
            let of = |before| seconds(samples, place, kernel, before);
            let silent = of("silent");
            text += &format!(
                "{:34} | {:9.2} | {:15.2} | {:.1}, {:.2} round trips\n",
                format!("{place}, {kernel}"),
                of("busy") / round_trip,
                silent / round_trip,
                1e3 * silent,
                (silent - wire) / round_trip
            );
        }
    }
    Ok(text)
}

fn chart(told: &Idle, samples: &Samples) -> Outcome<Bars> {
    let round_trip = told.common.round_trip()?.as_secs_f64();
    let group = |(place, kernel): (&str, &str)| {
        let bar = |before: &str| Bar {
            name: before.to_owned(),
            parts: vec![seconds(samples, place, kernel, before) / round_trip],
            modelled: None,
        };
        // Short enough for the foot of two bars.
        let (_, place) = place.rsplit_once(' ').unwrap_or(("", place));
        let kernel = if kernel == KERNELS[0].0 {
            "lab"
        } else {
            "kernel"
        };
        (
            format!("{place}, {kernel}"),
            ["busy", "silent"].map(bar).to_vec(),
        )
    };
    let all = WHERE
        .iter()
        .flat_map(|(place, _)| KERNELS.map(|(kernel, _)| (*place, kernel)));
    Ok(Bars {
        title: format!(
            "{} bytes right after others, and after a silence",
            told.bytes
        ),
        y: "round trips".to_owned(),
        parts: vec!["measured".to_owned()],
        model: String::new(),
        groups: all.map(group).collect(),
    })
}
