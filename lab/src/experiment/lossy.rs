//! Fetches over a link that loses packets, many of them in flight: how long one takes, beside the same link without loss.

use super::{CUT_SHORT, Common, HOME, PLAIN, SITE, Samples, TUNED, busy, each, network};
use crate::Outcome;
use crate::chart::{Chart, distribution};
use crate::net::{Link, Wan};
use crate::stop::Stop;
use crate::village::{Manner, SiteMemory, Village, answer};
use serde_json::json;
use std::fs;

/// What the experiment is told.
#[derive(Clone, Debug)]
pub struct Lossy {
    /// What all experiments are.
    pub common: Common,
    /// The share of packets that vanish, in either direction.
    pub loss: f64,
    /// Fetches under way at the same time.
    pub flight: usize,
    /// Fetches in all.
    pub fetches: usize,
}

/// A page holds one of these.
const OBJECT_BYTES: usize = 6000;
const MANNER: Manner = Manner {
    strict: false,
    ..PLAIN
};
const WHERE: [(&str, bool); 2] = [("at the home", false), ("at a site", true)];

struct Run {
    place: &'static str,
    has_site: bool,
    loss: f64,
    run: usize,
}

/// Runs it; tells the table.
pub fn lossy(told: &Lossy, stop: &Stop, show: &mut dyn FnMut(&str)) -> Outcome<String> {
    let common = &told.common;
    let delay = common.round_trip()? / 2;
    let mut samples = Samples::keep_in(&common.out, "lossy")?;
    let busy = busy();
    let wan = network(Link::with_delay(delay))?;
    show("making the pages");
    let mut village = match paged(told, &wan, stop) {
        Err(_) if stop.is_set() => return Ok(CUT_SHORT.to_owned()),
        village => village?,
    };
    let mut runs = Vec::new();
    for run in 0..common.repeats {
        for (place, has_site) in WHERE {
            runs.extend([0.0, told.loss].map(|loss| Run {
                place,
                has_site,
                loss,
                run,
            }));
        }
    }
    let whole = each(
        &runs,
        |run| format!("{} % lost, {}", 100.0 * run.loss, run.place),
        |run| {
            let loss = (run.loss > 0.0).then_some(run.loss);
            let link = Link {
                loss,
                ..Link::with_delay(delay)
            };
            wan.controls().set_spoke(HOME, link)?;
            one(told, &mut village, run, &mut samples)
        },
        stop,
        show,
    )?;
    fs::write(common.out.join("lossy.svg"), chart(told, &samples).svg())?;
    let table = table(told, &samples) + &busy;
    Ok(if whole { table } else { table + CUT_SHORT })
}

fn paged<'a>(told: &Lossy, wan: &'a Wan, stop: &Stop) -> Outcome<Village<'a>> {
    let village = Village::start(wan, HOME, &told.common.programs, stop)?;
    let mut builder = village.member(HOME, HOME, "builder", TUNED)?;
    builder.tell(&format!(
        "objects {} {OBJECT_BYTES}",
        told.flight + told.fetches
    ))?;
    answer(&mut builder)?;
    Ok(village)
}

fn one(told: &Lossy, village: &mut Village<'_>, run: &Run, samples: &mut Samples) -> Outcome<()> {
    village.end_sites();
    if run.has_site {
        village.site(SITE, HOME, SiteMemory::Usual)?;
    }
    let at = if run.has_site { SITE } else { HOME };
    let mut member = village.member(SITE, at, "m1", MANNER)?;
    // A connection that has just begun is another matter.
    member.tell(&format!("fetches 0 {0} {0}", told.flight))?;
    answer(&mut member)?;
    member.tell(&format!(
        "fetches {} {} {}",
        told.flight, told.fetches, told.flight
    ))?;
    let of = [
        ("case", json!(run.place)),
        ("loss", json!(run.loss)),
        ("run", json!(run.run)),
        ("flight", json!(told.flight)),
        (
            "round_trip_ms",
            json!(told.common.round_trip()?.as_secs_f64() * 1e3),
        ),
    ];
    let answered = answer(&mut member)?;
    samples.add(&of, &answered)
}

fn table(told: &Lossy, samples: &Samples) -> String {
    let figure = |place: &str, loss: f64, figure: &str| {
        let of = [("case", json!(place)), ("loss", json!(loss))];
        1e3 * samples.median_of_means(&of, figure).unwrap_or(f64::NAN)
    };
    let mut text = format!(
        "{} fetches in flight  | p50 ms, no loss | p50 ms, {} % lost | ratio | p99 ms, no loss, lost\n",
        told.flight,
        100.0 * told.loss
    );
    for (place, _) in WHERE {
        let (clean, lost) = (
            figure(place, 0.0, "p50_s"),
            figure(place, told.loss, "p50_s"),
        );
        text += &format!(
            "member {place:14} | {clean:15.2} | {lost:14.2} | {:5.2} | {:.1}, {:.1}\n",
            lost / clean,
            figure(place, 0.0, "p99_s"),
            figure(place, told.loss, "p99_s"),
        );
    }
    text
}

fn chart(told: &Lossy, samples: &Samples) -> Chart {
    let line = |(place, loss): (&str, f64)| {
        let of = [("case", json!(place)), ("loss", json!(loss))];
        let times = samples
            .listed(&of, "sorted_us")
            .into_iter()
            .map(|us| us / 1e3);
        (
            format!("{} % lost, {place}", 100.0 * loss),
            distribution(times.collect()),
        )
    };
    let all = WHERE
        .iter()
        .flat_map(|(place, _)| [(*place, 0.0), (*place, told.loss)]);
    Chart {
        title: format!("{} fetches in flight: how many took no longer", told.flight),
        x: "ms".to_owned(),
        y: "share (%)".to_owned(),
        lines: all.map(line).collect(),
        ..Chart::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::village::Programs;

    #[test]
    fn loss_is_told_in_terms_of_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let told = Lossy {
            common: Common {
                programs: Programs {
                    thorp: "thorp".into(),
                    worker: "worker".into(),
                },
                round_trips: Vec::new(),
                repeats: 1,
                size: "small".to_owned(),
                out: dir.path().to_owned(),
            },
            loss: 0.01,
            flight: 32,
            fetches: 100,
        };
        let mut samples = Samples::keep_in(dir.path(), "lossy").expect("a file");
        for (loss, p50) in [(0.0, 0.04), (0.01, 0.06)] {
            let of = [
                ("case", json!("at a site")),
                ("loss", json!(loss)),
                ("run", json!(0)),
            ];
            let answer = json!({"p50_s": p50, "p99_s": 0.1, "sorted_us": [40_000, 60_000]});
            samples.add(&of, &answer).expect("written");
        }
        let text = table(&told, &samples);
        assert!(
            text.lines().nth(2).expect("a line").contains("1.50"),
            "{text}"
        );
        assert!(
            text.lines().nth(1).expect("a line").contains("NaN"),
            "{text}"
        );
        assert!(!chart(&told, &samples).svg().contains("NaN"));
    }
}
