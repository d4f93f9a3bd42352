//! What members that begin with empty caches come to: tables and charts, with the paper's model and values beside them.

use super::cold::{CASES, Cold};
use super::model::Waits;
use super::{Cost, Model, Samples, ms};
use crate::Outcome;
use crate::chart::{Bar, Bars, Chart, Points};
use serde_json::json;
use std::fs;

/// What the paper saved at 40 ms, in parts of its base's time (section 6.4.1), and what is asked of us.
fn asked(members: usize) -> Option<(f64, f64)> {
    match members {
        3 => Some((0.39, 0.75)),
        5 => Some((0.46, 0.85)),
        10 => Some((0.56, 0.92)),
        _ => None,
    }
}

/// Where the paper tells a number of its figure 9: at 40 ms for each group, and 62 % of ten beyond 60 ms.
fn paper_points(members: usize) -> Vec<(f64, f64)> {
    let at_40 = asked(members).map(|(paper, _)| (40.0, 100.0 * paper));
    let most = (members == 10).then_some((60.0, 62.0));
    at_40.into_iter().chain(most).collect()
}

/// What a size of group comes to at a distance; times in seconds for each member.
struct Row {
    round_trip_ms: f64,
    members: usize,
    /// In the order of the cases.
    waits: Vec<Option<Waits>>,
    /// By the paper's model: the base, and the group.
    modelled: Option<(f64, f64)>,
}

const PLAIN: usize = 0;
const BUDDY: usize = 1;
const TUNED: usize = 2;
const THORP: usize = 3;

impl Row {
    fn of(round_trip_ms: f64, members: usize, samples: &Samples) -> Self {
        let figure = |case: &str, figure: &str| {
            let of = [
                ("case", json!(case)),
                ("members", json!(members)),
                ("round_trip_ms", json!(round_trip_ms)),
            ];
            samples.median_of_means(&of, figure)
        };
        let of_case = |case: usize| move |name: &str| figure(CASES[case].name, name);
        let measured = |case: usize| Waits::measured(&of_case(case));
        Row {
            round_trip_ms,
            members,
            waits: (0..CASES.len()).map(measured).collect(),
            modelled: modelled(members, &of_case(PLAIN), &of_case(BUDDY)),
        }
    }

    fn total(&self, case: usize) -> f64 {
        self.waits[case].map_or(f64::NAN, |waits| waits.parts().iter().sum())
    }

    /// In per cent of another case's time.
    fn saved(&self, case: usize, base: usize) -> f64 {
        100.0 * (1.0 - self.total(case) / self.total(base))
    }

    fn model_saved(&self) -> f64 {
        let saved = |(base, group)| 100.0 * (1.0 - group / base);
        self.modelled.map_or(f64::NAN, saved)
    }

    /// Who fetches every page once for all k saves no more.
    fn limit(&self) -> f64 {
        100.0 * (1.0 - 1.0 / self.members as f64)
    }
}

/// Equations 1 and 2 with what was measured here: pages, fetches and commits of the base, and those of the group.
fn modelled(
    members: usize,
    base: &dyn Fn(&str) -> Option<f64>,
    group: &dyn Fn(&str) -> Option<f64>,
) -> Option<(f64, f64)> {
    let model = Model {
        clients: members as f64,
        pages: base("misses")?,
        transactions: 1.0,
    };
    let (base, group) = (Cost::measured(base)?, Cost::measured(group)?);
    Some((model.cold_base(&base), model.cold_group(&group)))
}

fn rows(told: &Cold, samples: &Samples) -> Vec<Row> {
    let far = told.common.round_trips.iter().map(|time| ms(*time));
    far.flat_map(|far| {
        told.groups
            .iter()
            .map(move |members| Row::of(far, *members, samples))
    })
    .collect()
}

/// What there is so far.
pub(super) fn told_of(told: &Cold, samples: &Samples) -> String {
    table(&rows(told, samples))
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "round trip | members |  plain s |  buddy s |  tuned s |  thorp s | buddy saves (paper; model) | thorp saves (asked) | of tuned (limit 1-1/k)\n",
    );
    for row in rows {
        // The paper tells numbers only of 40 ms, and says that at 80 ms they are similar.
        let told =
            |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{:.0} %", 100.0 * v));
        let asked = asked(row.members);
        text += &format!(
            "{:7} ms | {:7} | {:8.2} | {:8.2} | {:8.2} | {:8.2} | {:8.1} % ({}; {:.1} %) | {:10.1} % ({}) | {:8.1} % ({:.1} %)\n",
            row.round_trip_ms,
            row.members,
            row.total(PLAIN),
            row.total(BUDDY),
            row.total(TUNED),
            row.total(THORP),
            row.saved(BUDDY, PLAIN),
            told(asked.map(|asked| asked.0)),
            row.model_saved(),
            row.saved(THORP, PLAIN),
            told(asked.map(|asked| asked.1)),
            row.saved(THORP, TUNED),
            row.limit(),
        );
    }
    text
}

/// For each distance where the time went (figures 7 and 8); what is saved over the sizes of groups; and over distances
/// (figure 9), where there are several.
pub(super) fn write_charts(told: &Cold, samples: &Samples) -> Outcome<()> {
    let rows = rows(told, samples);
    let out = &told.common.out;
    for far in told.common.round_trips.iter().map(|time| ms(*time)) {
        let of: Vec<&Row> = rows.iter().filter(|row| row.round_trip_ms == far).collect();
        fs::write(
            out.join(format!("cold-{far}ms.svg")),
            breakdown(&of, far).svg(),
        )?;
        fs::write(
            out.join(format!("cold-saved-{far}ms.svg")),
            over_groups(&of, far).svg(),
        )?;
    }
    if told.common.round_trips.len() > 1 {
        let charts = over_distance(&told.groups, &rows);
        for (name, chart) in ["cold-figure9.svg", "cold-figure9-thorp.svg"]
            .iter()
            .zip(charts)
        {
            fs::write(out.join(name), chart.svg())?;
        }
    }
    Ok(())
}

fn breakdown(rows: &[&Row], far: f64) -> Bars {
    let group = |row: &&Row| {
        let modelled = |case| match (case, row.modelled) {
            (PLAIN, Some((base, _))) => Some(base),
            (BUDDY, Some((_, group))) => Some(group),
            _ => None,
        };
        let bar = |case: usize| Bar {
            name: CASES[case].name.to_owned(),
            parts: row.waits[case].map_or(Vec::new(), |waits| waits.parts().to_vec()),
            modelled: modelled(case),
        };
        let bars = (0..CASES.len()).map(bar).collect();
        (format!("{} members", row.members), bars)
    };
    Bars {
        title: format!("From cold, {far} ms round trip: where a member's time goes"),
        y: "s".to_owned(),
        parts: Waits::NAMES.map(str::to_owned).to_vec(),
        model: "the paper's model".to_owned(),
        groups: rows.iter().map(group).collect(),
    }
}

fn over_groups(rows: &[&Row], far: f64) -> Chart {
    let line = |name: &str, value: &dyn Fn(&Row) -> Option<f64>| {
        let points = rows
            .iter()
            .filter_map(|row| Some((row.members as f64, value(row)?)));
        (name.to_owned(), points.collect())
    };
    Chart {
        title: format!("Time saved from cold, {far} ms round trip"),
        x: "members of the group".to_owned(),
        y: "saved, %".to_owned(),
        lines: vec![
            line("buddy, of plain", &|row| Some(row.saved(BUDDY, PLAIN))),
            line("thorp, of plain", &|row| Some(row.saved(THORP, PLAIN))),
            line("thorp, of tuned", &|row| Some(row.saved(THORP, TUNED))),
        ],
        dashed: vec![
            line("the paper's model of buddy", &|row| Some(row.model_saved())),
            line("asked", &|row| Some(100.0 * asked(row.members)?.1)),
            line("limit 1 - 1/k", &|row| Some(row.limit())),
        ],
        marks: vec![line("the paper, at 40 ms", &|row| {
            Some(100.0 * asked(row.members)?.0)
        })],
    }
}

/// Figure 9, and the same of all that Thorp has.
fn over_distance(groups: &[usize], rows: &[Row]) -> [Chart; 2] {
    let lines = |words: &str, value: &dyn Fn(&Row) -> f64| -> Vec<Points> {
        let line = |members: &usize| {
            let of = rows.iter().filter(|row| row.members == *members);
            let points = of.map(|row| (row.round_trip_ms, value(row)));
            (format!("{members} members, {words}"), points.collect())
        };
        groups.iter().map(line).collect()
    };
    let chart = |title: &str| Chart {
        title: title.to_owned(),
        x: "round trip (ms)".to_owned(),
        y: "saved, %".to_owned(),
        ..Chart::default()
    };
    let paper = |members: &usize| (format!("{members}, the paper"), paper_points(*members));
    [
        Chart {
            lines: lines("buddy", &|row| row.saved(BUDDY, PLAIN)),
            dashed: lines("model", &Row::model_saved),
            marks: groups.iter().map(paper).collect(),
            ..chart("Figure 9: cold, saved of the plain base by BuddyCache's own means")
        },
        Chart {
            lines: lines("of plain", &|row| row.saved(THORP, PLAIN)),
            dashed: lines("of tuned", &|row| row.saved(THORP, TUNED)),
            ..chart("Cold, saved by all that Thorp has")
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_told_beside_the_papers() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut samples = Samples::keep_in(dir.path(), "cold").expect("a file");
        for (case, total, from_home) in [
            ("plain", 20.0, 500),
            ("buddy", 12.0, 0),
            ("tuned", 4.0, 500),
            ("thorp", 2.0, 0),
        ] {
            let of = [
                ("case", json!(case)),
                ("members", json!(3)),
                ("run", json!(0)),
                ("round_trip_ms", json!(40.0)),
            ];
            let through_site = 500 - from_home;
            let answer = json!({"total_s": total, "misses": 500, "home_fetch_s": if from_home > 0 { total } else { 0.0 }, "commit_s": 0, "site_fetch_s": 0, "peer_fetch_s": 0, "from_peers": 0, "from_home": from_home, "through_site": through_site});
            samples.add(&of, &answer).expect("written");
        }
        let rows = [Row::of(40.0, 3, &samples), Row::of(80.0, 3, &samples)];
        let table = table(&rows);
        let line = table.lines().nth(1).expect("a line");
        for part in ["40.0 % (39 %", "90.0 % (75 %)", "50.0 % (66.7 %)"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(
            table.lines().nth(2).expect("a line").contains("NaN"),
            "not measured"
        );
        let of: Vec<&Row> = rows.iter().take(1).collect();
        let charts = [breakdown(&of, 40.0).svg(), over_groups(&of, 40.0).svg()];
        let over = over_distance(&[3], &rows).map(|chart| chart.svg());
        for svg in charts.iter().chain(&over) {
            assert!(!svg.contains("NaN"), "{svg}");
        }
        assert!(charts[0].contains("3 members") && over[0].contains("3, the paper"));
    }
}
