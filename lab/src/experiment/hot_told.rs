//! What warm readers come to: tables and charts, with the paper's model and values beside them.

use super::hot::{CASES, Hot};
use super::model::Waits;
use super::{Cost, Model, Samples, ms};
use crate::Outcome;
use crate::chart::{Bar, Bars, Chart};
use serde_json::json;
use std::fs;

/// What the paper saved at 40 ms (section 6.4.2): a group of readers, and the writer's group.
const PAPER_READERS: f64 = 30.0;
const PAPER_WRITER: f64 = 62.0;
/// Over all distances the writer's group saved between so much and so much.
const PAPER_WRITER_RANGE: (f64, f64) = (44.0, 64.0);

const PLAIN: usize = 0;
const BUDDY_READERS: usize = 1;
const BUDDY_WRITER: usize = 2;
const TUNED: usize = 3;
const THORP_READERS: usize = 4;
const THORP_WRITER: usize = 5;
const NEAR: usize = 6;

/// What transactions come to at a distance, in seconds for each.
struct Row {
    round_trip_ms: f64,
    /// In the order of the cases.
    waits: Vec<Option<Waits>>,
    misses: Vec<Option<f64>>,
    /// By the paper's model: the base, the group of readers, the writer's.
    modelled: Option<[f64; 3]>,
    /// How many of the readers' fetches each fetch from the home was good for.
    sharing: Option<f64>,
}

impl Row {
    fn of(round_trip_ms: f64, samples: &Samples) -> Self {
        let figure = |case: usize, figure: &str| {
            let far = if CASES[case].is_far() {
                round_trip_ms
            } else {
                0.0
            };
            let of = [
                ("case", json!(CASES[case].name)),
                ("round_trip_ms", json!(far)),
            ];
            samples.median_of_means(&of, figure)
        };
        let each = |case: usize| {
            let count = figure(case, "transactions")?;
            let waits = Waits::measured(&|name| figure(case, name))?;
            Some(waits.each(count))
        };
        let misses = |case: usize| Some(figure(case, "misses")? / figure(case, "transactions")?);
        let sharing = || {
            let through = figure(BUDDY_READERS, "through_site")?;
            (through > 0.0).then_some(1.0 + figure(BUDDY_READERS, "from_peers")? / through)
        };
        let modelled = || {
            let cost = |case: usize| Cost::measured(&|name| figure(case, name));
            let (missed, sharing) = (misses(PLAIN)?, sharing()?);
            Some([
                Model::stale_base(missed, &cost(PLAIN)?),
                Model::stale_readers(missed, sharing, &cost(BUDDY_READERS)?),
                Model::stale_writers(&cost(BUDDY_WRITER)?),
            ])
        };
        Row {
            round_trip_ms,
            waits: (0..CASES.len()).map(each).collect(),
            misses: (0..CASES.len()).map(misses).collect(),
            modelled: modelled(),
            sharing: sharing(),
        }
    }

    fn total(&self, case: usize) -> f64 {
        self.waits[case].map_or(f64::NAN, |waits| waits.parts().iter().sum())
    }

    /// In per cent of the plain base's time.
    fn saved(&self, case: usize) -> f64 {
        100.0 * (1.0 - self.total(case) / self.total(PLAIN))
    }

    /// The same by the paper's model, of its three cases.
    fn model_saved(&self, case: usize) -> f64 {
        let saved = |all: [f64; 3]| 100.0 * (1.0 - all.get(case).unwrap_or(&f64::NAN) / all[PLAIN]);
        self.modelled.map_or(f64::NAN, saved)
    }
}

fn rows(told: &Hot, samples: &Samples) -> Vec<Row> {
    let far = told.common.round_trips.iter().map(|time| ms(*time));
    far.map(|far| Row::of(far, samples)).collect()
}

/// What there is so far.
pub(super) fn told_of(told: &Hot, samples: &Samples) -> String {
    table(&rows(told, samples))
}

/// What the paper has at 40 ms, or what is asked of us.
fn beside(case: usize) -> &'static str {
    match case {
        BUDDY_READERS => "paper 30 %",
        BUDDY_WRITER => "paper 62 %",
        THORP_READERS => "asked 80 %",
        THORP_WRITER => "asked 95 %, 1.2 of no delay",
        _ => "",
    }
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "round trip | case           | ms for each | of no delay | saved of plain | by the model | misses for each |\n",
    );
    for row in rows {
        for (case, told) in CASES.iter().enumerate() {
            text += &format!(
                "{:7} ms | {:14} | {:11.2} | {:11.2} | {:12.1} % | {:10.1} % | {:15.3} | {}\n",
                row.round_trip_ms,
                told.name,
                1e3 * row.total(case),
                row.total(case) / row.total(NEAR),
                row.saved(case),
                row.model_saved(case),
                row.misses[case].unwrap_or(f64::NAN),
                beside(case),
            );
        }
        if let Some(sharing) = row.sharing {
            text += &format!(
                "{:7} ms | r of the model: one fetch from the home for {sharing:.2} of the buddy readers'\n",
                row.round_trip_ms
            );
        }
    }
    text
}

/// For each distance where the time went (figures 10 and 11), and what is saved over distances (figure 12), where there are
/// several.
pub(super) fn write_charts(told: &Hot, samples: &Samples) -> Outcome<()> {
    let rows = rows(told, samples);
    let out = &told.common.out;
    for row in &rows {
        let name = format!("hot-{}ms.svg", row.round_trip_ms);
        fs::write(out.join(name), breakdown(row).svg())?;
    }
    if rows.len() > 1 {
        fs::write(out.join("hot-figure12.svg"), over_distance(&rows).svg())?;
    }
    Ok(())
}

fn breakdown(row: &Row) -> Bars {
    let modelled = |case: usize| Some(1e3 * row.modelled?.get(case)?);
    let bar = |(case, label): (usize, &str)| Bar {
        name: label.to_owned(),
        parts: row.waits[case].map_or(Vec::new(), |waits| {
            waits.parts().map(|part| 1e3 * part).to_vec()
        }),
        modelled: modelled(case),
    };
    let group = |name: &str, bars: &[(usize, &str)]| {
        (name.to_owned(), bars.iter().copied().map(bar).collect())
    };
    Bars {
        title: format!(
            "Warm readers, {} ms round trip: where a transaction's time goes",
            row.round_trip_ms
        ),
        y: "ms".to_owned(),
        parts: Waits::NAMES.map(str::to_owned).to_vec(),
        model: "the paper's model".to_owned(),
        groups: vec![
            group(
                "the paper's means",
                &[
                    (PLAIN, "base"),
                    (BUDDY_READERS, "readers"),
                    (BUDDY_WRITER, "writer"),
                ],
            ),
            group(
                "all that Thorp has",
                &[
                    (TUNED, "base"),
                    (THORP_READERS, "readers"),
                    (THORP_WRITER, "writer"),
                    (NEAR, "no delay"),
                ],
            ),
        ],
    }
}

/// Figure 12.
fn over_distance(rows: &[Row]) -> Chart {
    let line = |name: &str, value: &dyn Fn(&Row) -> f64| {
        let points = rows.iter().map(|row| (row.round_trip_ms, value(row)));
        (name.to_owned(), points.collect::<Vec<_>>())
    };
    let mark = |name: &str, points: &[(f64, f64)]| (name.to_owned(), points.to_vec());
    let (least, most) = PAPER_WRITER_RANGE;
    Chart {
        title: "Figure 12: hot, saved of the plain base".to_owned(),
        x: "round trip (ms)".to_owned(),
        y: "saved, %".to_owned(),
        lines: vec![
            line("buddy readers", &|row| row.saved(BUDDY_READERS)),
            line("buddy writer", &|row| row.saved(BUDDY_WRITER)),
            line("thorp readers", &|row| row.saved(THORP_READERS)),
            line("thorp writer", &|row| row.saved(THORP_WRITER)),
        ],
        dashed: vec![
            line("model, readers", &|row| row.model_saved(BUDDY_READERS)),
            line("model, writer", &|row| row.model_saved(BUDDY_WRITER)),
        ],
        marks: vec![
            mark("the paper, readers", &[(40.0, PAPER_READERS)]),
            mark(
                "the paper, writer",
                &[(1.0, least), (40.0, PAPER_WRITER), (100.0, most)],
            ),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_told_beside_the_papers() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut samples = Samples::keep_in(dir.path(), "hot").expect("a file");
        let times = [40.0, 20.0, 10.0, 8.0, 6.0, 4.0, 4.0];
        for (case, total) in CASES.iter().zip(times) {
            let far = if case.is_far() { 40.0 } else { 0.0 };
            let of = [
                ("case", json!(case.name)),
                ("run", json!(0)),
                ("round_trip_ms", json!(far)),
            ];
            let answer = json!({"transactions": 100, "total_s": total, "misses": 100, "home_fetch_s": 0, "commit_s": 0, "site_fetch_s": 0, "peer_fetch_s": 0, "from_peers": 50, "from_home": 0, "through_site": 50});
            samples.add(&of, &answer).expect("written");
        }
        let row = Row::of(40.0, &samples);
        assert_eq!(row.sharing, Some(2.0));
        let rows = [row, Row::of(1.0, &samples)];
        let table = table(&rows);
        for part in ["400.00", "50.0 %", "paper 62 %", "for 2.00 of", "NaN"] {
            assert!(table.contains(part), "{part}: {table}");
        }
        let svgs = [breakdown(&rows[0]).svg(), over_distance(&rows).svg()];
        assert!(svgs.iter().all(|svg| !svg.contains("NaN")));
        assert!(svgs[0].contains("the paper's model") && svgs[1].contains("thorp writer"));
    }
}
