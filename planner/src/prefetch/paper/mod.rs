//! Chapter 4 of the thesis, as far as its text gives what its figures were drawn from.

mod bound;
mod costs;
mod memory;
mod nodes;
mod patterns;
mod runs;
mod schedules;
mod sharing;
mod traces;

use crate::Invalid;
use crate::report::Section;

pub use traces::paper_of_traces;

/// What the thesis says of prefetching, what the simulation says, and with what.
pub fn paper() -> Vec<Section> {
    sections().expect("the thesis's parameters can be")
}

fn sections() -> Result<Vec<Section>, Invalid> {
    let mut runs = runs::Runs::default();
    Ok(vec![
        patterns::section(&mut runs)?,
        nodes::section(&mut runs)?,
        memory::section(&mut runs)?,
        sharing::section(&mut runs)?,
        costs::section(&mut runs)?,
        bound::section(&mut runs)?,
    ])
}

fn ratio(over: u64, under: u64) -> f64 {
    over as f64 / under.max(1) as f64
}

fn seconds(time_us: u64) -> String {
    format!("{:.1}", time_us as f64 / 1e6)
}

fn times(ratio: f64) -> String {
    format!("{ratio:.2}")
}

fn percent_more(ratio: f64) -> String {
    format!("{:+.0} %", (ratio - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_has_something_to_show() {
        for section in paper() {
            assert!(!section.words.is_empty() && !section.tables.is_empty());
            for chart in &section.charts {
                let mut points = chart.series.iter().flat_map(|series| &series.points);
                assert!(points.all(|(x, y)| x.is_finite() && y.is_finite()));
            }
        }
    }
}
