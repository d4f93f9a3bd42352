//! What a parameter does over a range of its values.

use super::answer::section;
use super::question::Question;
use super::range::Sweep;
use super::said::{count, share, took};
use crate::Invalid;
use crate::report::{Axis, Cell, Chart, Section, Series, Table};
use crate::web::sweep::{Parameter, hit_rates, varied};
use crate::web::{DAY_S, Model};

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
            let mut row = vec![Cell::count(shown(value), value), share(hits)];
            row.extend(self.latencies(model, sweep, value)?.into_iter().map(took));
            table.cells(row);
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

const ROWS: usize = 9;

const POINTS: usize = 33;
