//! Figures 5.1 to 5.4.

use super::{ALL, Changes, HIT_S, MINUTE_S, count, percent};
use crate::report::{Axis, Chart, Section, Series, Style, Table};
use crate::web::sweep::{Parameter, hit_rates, log_spaced};
use crate::web::{DAY_S, Model, Workload};

pub(super) fn by_population() -> Section {
    Section {
        heading: "Web caches: hits and waiting by population (figures 5.1 and 5.2)".to_owned(),
        words: vec![
            "The figures are pictures without numbers in the text, except for those that the section of statements below checks one by one; the points are those.".to_owned(),
        ],
        tables: vec![populations()],
        charts: vec![figure_1(), figure_2()],
    }
}

fn populations() -> Table {
    let mut table = Table::new(
        "C_N, the share of requests for cacheable documents that hit; its bound of error; and the integral of the thesis",
        &[
            "clients",
            "slow",
            "mid slow",
            "mid fast",
            "fast",
            "bound",
            "integral, fast",
        ],
    );
    let models = ALL.map(Changes::model);
    for clients in [1.0, 1e3, 5e4, 2.5e5, 5e5, 5e6, 2e7, 5e7, 2.5e8, 1e9] {
        let hits: Vec<_> = models
            .iter()
            .map(|model| model.cacheable_hit_rate(clients))
            .collect();
        let mut row = vec![count(clients)];
        row.extend(
            hits.iter()
                .map(|hits| format!("{:.2} %", hits.value * 100.0)),
        );
        let bound = hits
            .iter()
            .fold(0.0, |bound: f64, hits| bound.max(hits.error));
        row.push(format!("{:.0e}", bound));
        let integral = models[3].cacheable_hit_rate_by_integral(clients);
        row.push(integral.map_or_else(String::new, |hits| format!("{:.2} %", hits.value * 100.0)));
        table.row(row);
    }
    table
}

/// The populations of the axis.
fn clients() -> impl Iterator<Item = f64> {
    log_spaced(1e2, 1e9, 57)
}

fn curves(of: impl Fn(&Model, f64) -> f64) -> Vec<Series> {
    let curve = |changes: Changes| {
        let model = changes.model();
        let points = clients().map(|clients| (clients, of(&model, clients)));
        Series::line(changes.name, points.collect()).drawn(Style::Line)
    };
    ALL.map(curve).to_vec()
}

fn figure_1() -> Chart {
    let mut series = curves(|model, clients| model.cacheable_hit_rate(clients).value * 100.0);
    let said = vec![(250e3, 90.0), (500e3, 95.0), (500e3, 68.0), (20e6, 90.0)];
    series.push(Series::line("thesis, text", said).drawn(Style::Points));
    Chart {
        name: "web-figure-5-1".to_owned(),
        title: "Figure 5.1: hits of cacheable requests, by population".to_owned(),
        x: Axis::log("clients"),
        y: Axis::linear("C_N, %"),
        series,
    }
}

fn figure_2() -> Chart {
    let mut series = curves(|model, clients| model.latency_s(clients, HIT_S));
    let told = Workload::washington();
    let limit = (1.0 - told.cacheable) * told.server_s;
    let ends = vec![(1e2, limit), (1e9, limit)];
    series.push(Series::line("(1 - p_c) E(L)", ends).drawn(Style::Thin));
    Chart {
        name: "web-figure-5-2".to_owned(),
        title: "Figure 5.2: mean latency, by population".to_owned(),
        x: Axis::log("clients"),
        y: Axis::linear("latency, s"),
        series,
    }
}

pub(super) fn by_changes() -> Section {
    Section {
        heading: "Web caches: how much changes matter (figures 5.3 and 5.4)".to_owned(),
        words: vec![
            "One class of documents changes at intervals from a minute to 180 days, the other every 180 days. Figure 5.3 is for 250,000 clients by its caption and for 500,000 by the text; both are computed.".to_owned(),
        ],
        tables: vec![intervals()],
        charts: vec![
            figure("web-figure-5-3", "Figure 5.3 (caption): 250,000 clients", 250e3),
            figure("web-figure-5-3-text", "Figure 5.3 (text): 500,000 clients", 500e3),
            figure("web-figure-5-4", "Figure 5.4: 20 million clients", 20e6),
        ],
    }
}

fn figure(name: &str, title: &str, clients: f64) -> Chart {
    let curve = |name: &str, parameter| {
        let points = varied(clients, parameter, log_spaced(MINUTE_S, FAR_S, 61));
        let points = points
            .into_iter()
            .map(|(s, hits)| (s / DAY_S, hits * 100.0));
        Series::line(name, points.collect())
    };
    Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::log("mean interval between changes, days"),
        y: Axis::linear("C_N, %"),
        series: vec![
            curve("popular documents change so", Parameter::PopularChange),
            curve("the others change so", Parameter::UnpopularChange),
        ],
    }
}

/// C_N where one class changes at these intervals, and the other every 180 days.
pub(super) fn varied(
    clients: f64,
    parameter: Parameter,
    intervals: impl IntoIterator<Item = f64>,
) -> Vec<(f64, f64)> {
    let workload = Workload {
        popular_change_s: FAR_S,
        unpopular_change_s: FAR_S,
        ..Workload::washington()
    };
    hit_rates(&workload, clients, parameter, intervals).expect("intervals of the figure can be")
}

fn intervals() -> Table {
    let mut table = Table::new(
        "C_N if one class changes at this interval, the other every 180 days",
        &[
            "class, clients",
            "1 minute",
            "10 minutes",
            "1 hour",
            "1 day",
            "30 days",
            "180 days",
        ],
    );
    for (class, parameter) in [
        ("popular", Parameter::PopularChange),
        ("others", Parameter::UnpopularChange),
    ] {
        for clients in [250e3, 500e3, 20e6] {
            let intervals = [60.0, 600.0, 3600.0, DAY_S, 30.0 * DAY_S, FAR_S];
            let mut row = vec![format!("{class}, {}", count(clients))];
            let points = varied(clients, parameter, intervals);
            row.extend(points.into_iter().map(|(_, hits)| percent(hits)));
            table.row(row);
        }
    }
    table
}

/// Points A of the figures.
pub(super) const FAR_S: f64 = 180.0 * DAY_S;
