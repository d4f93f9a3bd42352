//! Chapter 5 of the thesis: its tables and figures, computed, beside what it says.

mod beyond;
mod claims;
mod cooperation;
mod figures;
mod parameters;

use super::change::Spacing;
use super::model::{DAY_S, Model, Workload};
use crate::report::{self, Section};

/// What the thesis says, what the model says, and why they differ where they do.
pub fn paper() -> Vec<Section> {
    vec![
        parameters::section(),
        figures::by_population(),
        figures::by_changes(),
        cooperation::section(),
        cooperation::readings(),
        claims::section(),
        beyond::section(),
    ]
}

/// Table 5.1's rates of change: a name, and the mean time between changes of popular and of other documents.
#[derive(Clone, Copy)]
struct Changes {
    name: &'static str,
    popular_s: f64,
    unpopular_s: f64,
}

const SLOW: Changes = changes("slow", 14.0 * DAY_S, 186.0);
const MID_SLOW: Changes = changes("mid slow", DAY_S, 186.0);
const MID_FAST: Changes = changes("mid fast", HOUR_S, 85.0);
const FAST: Changes = changes("fast", 5.0 * MINUTE_S, 85.0);
const ALL: [Changes; 4] = [SLOW, MID_SLOW, MID_FAST, FAST];

const MINUTE_S: f64 = 60.0;
const HOUR_S: f64 = 3600.0;

/// lat_hit of table 5.1.
const HIT_S: f64 = 0.01;

const fn changes(name: &'static str, popular_s: f64, unpopular_days: f64) -> Changes {
    Changes {
        name,
        popular_s,
        unpopular_s: unpopular_days * DAY_S,
    }
}

impl Changes {
    fn workload(self) -> Workload {
        Workload {
            popular_change_s: self.popular_s,
            unpopular_change_s: self.unpopular_s,
            ..Workload::washington()
        }
    }

    fn model(self) -> Model {
        model(self.workload())
    }
}

/// For parameters of a paper, all of which can be.
fn model(workload: Workload) -> Model {
    Model::new(workload).expect("table 5.1 and what is near to it can be")
}

/// In thousands, millions, billions.
fn count(value: f64) -> String {
    let (by, unit) = match value {
        _ if value >= 1e9 => (1e9, " billion"),
        _ if value >= 1e6 => (1e6, " million"),
        _ if value >= 1e4 => (1e3, ",000"),
        _ => (1.0, ""),
    };
    let value = value / by;
    let places = match unit {
        ",000" | "" => 0,
        _ if value < 9.95 => 1,
        _ => 0,
    };
    let digits = format!("{value:.places$}");
    match digits.strip_suffix(".0") {
        Some(whole) => format!("{whole}{unit}"),
        None => format!("{digits}{unit}"),
    }
}

fn percent(part: f64) -> String {
    report::percent(part, 1)
}

/// Relatively, with a sign.
fn off(ours: f64, paper: f64) -> String {
    format!("{:+.1} %", (ours / paper - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::super::sweep::clients_for;
    use super::*;

    #[test]
    fn the_sections_have_all_tables_and_figures() {
        let sections = paper();
        let tables: Vec<String> = sections
            .iter()
            .flat_map(|section| &section.tables)
            .map(|table| table.title.clone())
            .collect();
        for number in 1..=6 {
            let name = format!("Table 5.{number}");
            assert!(
                tables.iter().any(|title| title.starts_with(&name)),
                "{name}"
            );
        }
        let charts: Vec<&str> = sections
            .iter()
            .flat_map(|section| &section.charts)
            .map(|chart| &*chart.name)
            .collect();
        for number in 1..=4 {
            let name = format!("web-figure-5-{number}");
            assert!(
                charts.iter().any(|chart| chart.starts_with(&name)),
                "{name}"
            );
        }
        for table in sections.iter().flat_map(|section| &section.tables) {
            let cells = table.rows.iter().flatten();
            let wrong = |cell: &&String| cell.contains("NaN") || cell.contains("inf ");
            assert_eq!(cells.clone().find(wrong), None, "{}", table.title);
            assert!(
                table
                    .rows
                    .iter()
                    .all(|row| row.len() == table.columns.len())
            );
        }
        let points = sections.iter().flat_map(|section| &section.charts);
        let points = points.flat_map(|chart| &chart.series);
        let mut points = points.flat_map(|series| &series.points);
        assert!(points.all(|(x, y)| x.is_finite() && y.is_finite()));
    }

    /// What the text says of figures 5.1 and 5.2, to the digits that it gives.
    #[test]
    fn the_figures_of_the_text_are_met() {
        let slow = clients_for(&SLOW.model(), 0.9).unwrap().unwrap();
        assert!((slow / 250e3 - 1.0).abs() < 0.1, "{slow}");
        let fast = clients_for(&FAST.model(), 0.9).unwrap().unwrap();
        assert!((fast / 20e6 - 1.0).abs() < 0.1, "{fast}");
        let half_a_million = |changes: Changes| changes.model().cacheable_hit_rate(5e5).value;
        assert_eq!((half_a_million(SLOW) * 100.0).round(), 95.0);
        assert_eq!((half_a_million(FAST) * 100.0).round(), 68.0);
    }

    #[test]
    fn counts_are_read_easily() {
        let told = [500.0, 250e3, 2.31e6, 18.2e6, 3.2e9, 1e6].map(count);
        assert_eq!(
            told,
            [
                "500",
                "250,000",
                "2.3 million",
                "18 million",
                "3.2 billion",
                "1 million"
            ]
        );
    }
}
