//! What a parameter does over a range of its values.

use super::answer::section;
use super::question::{Question, WHOLE_MAX};
use super::said::{count, percent, time};
use thorp_plan::Invalid;
use thorp_plan::report::{Axis, Chart, Section, Series, Table};
use thorp_plan::web::sweep::{Parameter, hit_rates, log_spaced, varied};
use thorp_plan::web::{DAY_S, Model};

/// A parameter, and from where to where it is varied, as it is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sweep {
    parameter: Parameter,
    from: f64,
    to: f64,
}

/// `alpha=0.5:1.2`; nothing for what is no such text.
pub(super) fn sweep(text: &str) -> Option<Sweep> {
    let (name, range) = text.split_once('=')?;
    let (_, parameter) = NAMES.into_iter().find(|(known, _)| *known == name.trim())?;
    let (from, to) = range.split_once(':')?;
    let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    let is_whole = matches!(parameter, Parameter::Clients | Parameter::Documents);
    let least = match (is_whole, parameter) {
        (true, _) => 1.0,
        (false, Parameter::Alpha) => 0.0,
        (false, Parameter::RequestRate) => REQUESTS_MIN,
        (false, _) => DAYS_MIN,
    };
    let most = match parameter {
        Parameter::Alpha => ALPHA_MAX,
        _ => WHOLE_MAX,
    };
    let can_be = least <= from && from < to && to <= most;
    can_be.then_some(Sweep {
        parameter,
        from,
        to,
    })
}

/// What can be varied, for people who told something else.
pub(super) fn names() -> String {
    NAMES.map(|(name, _)| name).join(", ")
}

impl Sweep {
    /// So many values; in equal steps for an exponent, in equal factors for all else.
    fn values(self, many: usize) -> Vec<f64> {
        let last = (many - 1) as f64;
        let step = |number: usize| self.from + (self.to - self.from) * number as f64 / last;
        let mut values: Vec<f64> = match self.parameter {
            Parameter::Alpha => (0..many).map(step).collect(),
            _ => log_spaced(self.from, self.to, many).collect(),
        };
        if matches!(self.parameter, Parameter::Clients | Parameter::Documents) {
            values.iter_mut().for_each(|value| *value = value.round());
            values.dedup();
        }
        values
    }

    fn label(self) -> &'static str {
        match self.parameter {
            Parameter::Clients => "clients",
            Parameter::RequestRate => "requests of a client in a day",
            Parameter::PopularChange => "days between changes, popular documents",
            Parameter::UnpopularChange => "days between changes, other documents",
            Parameter::Alpha => "exponent of popularity",
            Parameter::Documents => "documents",
        }
    }
}

impl Question {
    /// Hits and waiting by one parameter, all else as it is.
    pub(super) fn by_sweep(&self, model: &Model, sweep: Sweep) -> Result<Section, Invalid> {
        let mut names = vec!["each on its own"];
        let here = self.outcomes(model, &self.sites)?;
        names.extend(here.schemes.iter().map(|(scheme, _)| scheme.name()));
        let columns = [
            &[
                sweep.label(),
                "one cache for all hits, of the requests it may answer",
            ],
            &names[..],
        ];
        let title = format!("By {}", sweep.label());
        let mut table = Table::new(&title, &columns.concat());
        let values = sweep.values(ROWS);
        let in_units = values.iter().map(|&value| self.units(sweep, value));
        let clients = self.sites.clients;
        let hits = hit_rates(&self.workload, clients, sweep.parameter, in_units)?;
        for (value, (_, hits)) in values.into_iter().zip(hits) {
            let mut row = vec![shown(value), percent(hits)];
            row.extend(self.latencies(model, sweep, value)?.into_iter().map(time));
            table.row(row);
        }
        let mut curves: Vec<Series> = names
            .iter()
            .map(|name| Series::line(name, Vec::new()))
            .collect();
        for value in sweep.values(POINTS) {
            for (curve, s) in curves.iter_mut().zip(self.latencies(model, sweep, value)?) {
                curve.points.push((value, s * 1000.0));
            }
        }
        let x = match sweep.parameter {
            Parameter::Alpha => Axis::linear(sweep.label()),
            _ => Axis::log(sweep.label()),
        };
        let chart = Chart {
            name: "web-by-parameter".to_owned(),
            title: format!("A document takes, by {}", sweep.label()),
            x,
            y: Axis::linear("ms"),
            series: curves,
        };
        Ok(section(table, chart))
    }

    /// A value as the model has it.
    fn units(&self, sweep: Sweep, value: f64) -> f64 {
        match sweep.parameter {
            Parameter::RequestRate => value / DAY_S / self.workload.requests_per_client_s,
            Parameter::PopularChange | Parameter::UnpopularChange => value * DAY_S,
            Parameter::Clients | Parameter::Alpha | Parameter::Documents => value,
        }
    }

    /// What a document takes with caches on their own, and with each scheme.
    fn latencies(&self, model: &Model, sweep: Sweep, value: f64) -> Result<Vec<f64>, Invalid> {
        let workload = varied(&self.workload, sweep.parameter, self.units(sweep, value));
        let mut sites = self.sites;
        if sweep.parameter == Parameter::Clients {
            sites.clients = value;
        }
        let outcomes = self.outcomes(&model.with(workload)?, &sites)?;
        let schemes = outcomes.schemes.iter().map(|(_, outcome)| outcome);
        let all = std::iter::once(&outcomes.alone).chain(schemes);
        Ok(all.map(|outcome| outcome.latency_s).collect())
    }
}

/// Small values keep their digits.
fn shown(value: f64) -> String {
    match value {
        value if value >= 10.0 => count(value),
        value if value >= 0.01 || value == 0.0 => format!("{value:.2}"),
        value => format!("{value:.1e}"),
    }
}

const NAMES: [(&str, Parameter); 6] = [
    ("clients", Parameter::Clients),
    ("requests-per-day", Parameter::RequestRate),
    ("popular-change-days", Parameter::PopularChange),
    ("other-change-days", Parameter::UnpopularChange),
    ("alpha", Parameter::Alpha),
    ("documents", Parameter::Documents),
];

const ALPHA_MAX: f64 = 20.0;

/// Once in three thousand million years.
const REQUESTS_MIN: f64 = 1e-12;

/// A change every 86 nanoseconds.
const DAYS_MIN: f64 = 1e-12;

const ROWS: usize = 9;

const POINTS: usize = 33;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_a_parameter_and_its_ends() {
        let told = sweep("alpha=0.5:1.5").expect("a sweep");
        let values = told.values(3);
        assert_eq!(
            (told.parameter, &*values),
            (Parameter::Alpha, &[0.5, 1.0, 1.5][..])
        );
        let clients = sweep("clients=1:3").expect("a sweep").values(9);
        assert_eq!(clients, [1.0, 2.0, 3.0]);
        let days = sweep("other-change-days=0.01:100").expect("a sweep");
        assert!((days.values(5)[2] - 1.0).abs() < 1e-12);
        for wrong in [
            "alpha",
            "alpha=1",
            "alpha=1.5:0.5",
            "alpha=1:21",
            "alpha=0.5:nan",
            "clients=0:10",
            "clients=5:5",
            "documents=1:1e16",
            "other-change-days=0:10",
            "popular-change-days=1e-300:1e15",
            "members=1:10",
        ] {
            assert_eq!(sweep(wrong), None, "{wrong}");
        }
    }
}
