//! Figures 7 to 9: members with empty caches go through the same module at the same time.

use super::{CACHE_BYTES, CUT_SHORT, Common, Cost, HOME, Model, SITE, Samples};
use crate::Outcome;
use crate::chart::Chart;
use crate::net::{Link, Plan, Wan};
use crate::stop::Stop;
use crate::village::{Manner, Process, Village, answer, together};
use serde_json::json;

/// What the experiment is told.
#[derive(Clone, Debug)]
pub struct Cold {
    /// What all experiments are.
    pub common: Common,
    /// Sizes of groups.
    pub groups: Vec<usize>,
}

/// How members are joined and behave.
struct Case {
    name: &'static str,
    at: &'static str,
    manner: Manner,
}

/// *Plain*: no site, strict sessions, page by page, which is what the paper compares with. *Tuned*: everything but neighbours.
const CASES: [Case; 3] = [
    Case {
        name: "plain",
        at: HOME,
        manner: Manner {
            cache_bytes: CACHE_BYTES,
            fetch_ahead: Some(0),
            strict: true,
        },
    },
    Case {
        name: "tuned",
        at: HOME,
        manner: Manner {
            cache_bytes: CACHE_BYTES,
            fetch_ahead: None,
            strict: false,
        },
    },
    Case {
        name: "thorp",
        at: SITE,
        manner: Manner {
            cache_bytes: CACHE_BYTES,
            fetch_ahead: None,
            strict: false,
        },
    },
];

/// Runs it; tells the table.
pub fn cold(told: &Cold, stop: &Stop, show: &mut dyn FnMut(&str)) -> Outcome<String> {
    let common = &told.common;
    let plan = Plan::two(SITE, HOME, Link::with_delay(common.round_trip / 2))?;
    let wan = Wan::start(&plan)?;
    let mut samples = Samples::keep_in(&common.out, "cold")?;
    let runs = common.repeats * told.groups.len() * CASES.len();
    let mut done = 0;
    for &members in &told.groups {
        for case in &CASES {
            for run in 0..common.repeats {
                done += 1;
                show(&format!(
                    "{done} of {runs}: {members} members, {}",
                    case.name
                ));
                let ended = one(common, &wan, case, (members, run), &mut samples, stop);
                if stop.is_set() {
                    return Ok(told_of(told, &samples)? + CUT_SHORT);
                }
                ended?;
            }
        }
    }
    told_of(told, &samples)
}

/// What there is so far comes to.
fn told_of(told: &Cold, samples: &Samples) -> Outcome<String> {
    let common = &told.common;
    let of = |members: &usize| Row::of(*members, samples);
    let rows: Vec<Row> = told.groups.iter().map(of).collect();
    let chart = chart(&rows, common.round_trip.as_millis());
    std::fs::write(common.out.join("cold.svg"), chart.svg())?;
    Ok(table(&rows))
}

/// A village of its own: no cache anywhere knows of an earlier run.
fn one(
    common: &Common,
    wan: &Wan,
    case: &Case,
    (members, run): (usize, usize),
    samples: &mut Samples,
    stop: &Stop,
) -> Outcome<()> {
    let mut village = Village::start(wan, HOME, &common.programs, stop)?;
    // Made next door to the home: that is not measured.
    let mut builder = village.member(HOME, HOME, "builder", case.manner)?;
    builder.tell(&format!("build {}", common.size))?;
    answer(&mut builder)?;
    drop(builder);
    if case.at == SITE {
        village.site(SITE, HOME)?;
    }
    let start = |number| village.member(SITE, case.at, &format!("m{number}"), case.manner);
    let mut group: Vec<Process> = (1..=members).map(start).collect::<Outcome<_>>()?;
    // Each begins elsewhere, as people do.
    let answers = together(&mut group, |number| format!("run T1 {}", number + 1))?;
    for (member, answer) in answers.iter().enumerate() {
        let of = [
            ("case", json!(case.name)),
            ("members", json!(members)),
            ("run", json!(run)),
            ("member", json!(member)),
            ("round_trip_ms", json!(common.round_trip.as_millis() as u64)),
        ];
        samples.add(&of, answer)?;
    }
    Ok(())
}

/// What the paper saved at 40 ms, in parts of its base's time (section 6.4.1), and what is asked of us.
fn asked(members: usize) -> Option<(f64, f64)> {
    match members {
        3 => Some((0.39, 0.75)),
        5 => Some((0.46, 0.85)),
        10 => Some((0.56, 0.92)),
        _ => None,
    }
}

/// What a size of group comes to, in seconds for each member.
struct Row {
    members: usize,
    plain: f64,
    tuned: f64,
    thorp: f64,
    /// By the paper's model: the base, and the group.
    modelled: (f64, f64),
}

impl Row {
    fn of(members: usize, samples: &Samples) -> Self {
        let figure = |case: &str, figure: &str| {
            let of = [("case", json!(case)), ("members", json!(members))];
            samples.median_of_means(&of, figure).unwrap_or(f64::NAN)
        };
        Row {
            members,
            plain: figure("plain", "total_s"),
            tuned: figure("tuned", "total_s"),
            thorp: figure("thorp", "total_s"),
            modelled: modelled(members, &figure),
        }
    }

    /// In per cent of another time.
    fn saved_of(&self, base: f64) -> f64 {
        100.0 * (1.0 - self.thorp / base)
    }

    /// Who fetches every page once for all k saves no more.
    fn limit(&self) -> f64 {
        100.0 * (1.0 - 1.0 / self.members as f64)
    }
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "members |  plain s |  tuned s |  thorp s | saved of plain | paper, target | saved of tuned | limit 1-1/k | model: plain, thorp s\n",
    );
    for row in rows {
        let paper = asked(row.members).map_or("-".to_owned(), |(paper, target)| {
            format!("{:.0} %, {:.0} %", 100.0 * paper, 100.0 * target)
        });
        text += &format!(
            "{:7} | {:8.2} | {:8.2} | {:8.2} | {:12.1} % | {paper:>13} | {:12.1} % | {:9.1} % | {:.2}, {:.2}\n",
            row.members,
            row.plain,
            row.tuned,
            row.thorp,
            row.saved_of(row.plain),
            row.saved_of(row.tuned),
            row.limit(),
            row.modelled.0,
            row.modelled.1,
        );
    }
    text
}

fn chart(rows: &[Row], round_trip_ms: u128) -> Chart {
    let line = |name: &str, value: &dyn Fn(&Row) -> Option<f64>| {
        let points = rows
            .iter()
            .filter_map(|row| Some((row.members as f64, value(row)?)));
        (name.to_owned(), points.collect())
    };
    let asked = |row: &Row| asked(row.members);
    Chart {
        title: format!("Time saved from cold, {round_trip_ms} ms round trip"),
        x: "members of the group".to_owned(),
        y: "saved, %".to_owned(),
        lines: vec![
            line("of the plain base", &|row| Some(row.saved_of(row.plain))),
            line("of the tuned base", &|row| Some(row.saved_of(row.tuned))),
            line("limit 1 - 1/k", &|row| Some(row.limit())),
            line("the paper, of its base", &|row| Some(100.0 * asked(row)?.0)),
            line("the paper's model, here", &|row| {
                Some(100.0 * (1.0 - row.modelled.1 / row.modelled.0))
            }),
        ],
    }
}

/// Equations 1 and 2 with what was measured here: of pages one by one in the plain base, and at the site.
fn modelled(members: usize, figure: &dyn Fn(&str, &str) -> f64) -> (f64, f64) {
    let each = |case: &str, time: &str, count: &str| {
        let count = figure(case, count);
        if count > 0.0 {
            figure(case, time) / count
        } else {
            0.0
        }
    };
    let waits = ["commit_s", "home_fetch_s", "site_fetch_s", "peer_fetch_s"];
    let compute = |case: &str| {
        let waited: f64 = waits.iter().map(|wait| figure(case, wait)).sum();
        (figure(case, "total_s") - waited).max(0.0)
    };
    let model = Model {
        clients: members as f64,
        pages: figure("plain", "misses"),
        transactions: 1.0,
    };
    let base = Cost {
        fetch_s: each("plain", "home_fetch_s", "misses"),
        redirect_s: 0.0,
        commit_s: figure("plain", "commit_s"),
        compute_s: compute("plain"),
    };
    let group = Cost {
        redirect_s: each("thorp", "peer_fetch_s", "from_peers"),
        commit_s: figure("thorp", "commit_s"),
        compute_s: compute("thorp"),
        ..base
    };
    (model.cold_base(&base), model.cold_group(&group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_told_beside_the_papers() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut samples = Samples::keep_in(dir.path(), "cold").expect("a file");
        for (case, total) in [("plain", 20.0), ("tuned", 4.0), ("thorp", 2.0)] {
            let of = [
                ("case", json!(case)),
                ("members", json!(3)),
                ("run", json!(0)),
            ];
            let answer = json!({"total_s": total, "misses": 500, "home_fetch_s": total, "commit_s": 0, "site_fetch_s": 0, "peer_fetch_s": 0, "from_peers": 0});
            samples.add(&of, &answer).expect("written");
        }
        let rows = [Row::of(3, &samples)];
        let table = table(&rows);
        let line = table.lines().nth(1).expect("a line");
        for part in ["90.0 %", "39 %, 75 %", "50.0 %", "66.7 %"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        let svg = chart(&rows, 40).svg();
        assert!(
            svg.contains("of the tuned base") && !svg.contains("NaN"),
            "{svg}"
        );
    }
}
