//! What the thesis leaves out: changes that are not exponential, and caches that fill up.

use super::{MID_SLOW, Spacing, count, model, percent};
use crate::report::{Axis, Chart, Section, Series, Table};
use crate::web::Workload;
use crate::web::finite::{Stale, Store, filled};
use crate::web::sweep::log_spaced;

pub(super) fn section() -> Section {
    Section {
        heading: "Web caches: beyond the thesis".to_owned(),
        words: vec![
            "The thesis finds its changes heavy-tailed and takes them as exponential, which it calls conservative. A request hits if the one before it is younger than the last change, whose age A is that of a renewal process, so that a document that is asked for at a rate s hits with 1 - E e^(-sA) = 1 - (1 - E e^(-sX)) / (s E X), and E e^(-sX) grows with how much the intervals X vary about their mean. So it is conservative for Pareto's intervals, which are mixtures of exponential ones, and for a lognormal with a large sigma; with a sigma of 1 so few intervals are short that for many clients hits are a little rarer. Equal intervals are the least that any distribution with that mean allows.".to_owned(),
            "The thesis takes caches as large as the cacheable Web. Che's approximation tells what less room costs: a cache that puts out the least recently used copy keeps each for about the same time after a request.".to_owned(),
        ],
        tables: vec![spacings(), rooms()],
        charts: vec![by_room()],
    }
}

fn spacings() -> Table {
    let mut table = Table::new(
        "C_N with mid slow changes, by how intervals between changes vary about the same mean",
        &[
            "intervals",
            "1,000 clients",
            "50,000",
            "500,000",
            "50 million",
        ],
    );
    for (name, spacing) in [
        ("all equal", Spacing::Regular),
        ("exponential (thesis)", Spacing::Exponential),
        ("lognormal, sigma 1", Spacing::Lognormal { sigma: 1.0 }),
        ("lognormal, sigma 2", Spacing::Lognormal { sigma: 2.0 }),
        ("Pareto, shape 3", Spacing::Pareto { shape: 3.0 }),
        ("Pareto, shape 1.5", Spacing::Pareto { shape: 1.5 }),
        ("Pareto, shape 1.2", Spacing::Pareto { shape: 1.2 }),
    ] {
        let told = Workload {
            spacing,
            ..MID_SLOW.workload()
        };
        let model = model(told);
        let hits = |clients: f64| percent(model.cacheable_hit_rate(clients).value);
        let mut row = vec![name.to_owned()];
        row.extend([1e3, 5e4, 5e5, 5e7].map(hits));
        table.row(row);
    }
    table
}

fn rooms() -> Table {
    let mut table = Table::new(
        "C_N of a cache for 50,000 clients, mid slow changes, by its room",
        &[
            "room, documents",
            "GB",
            "copies stay, days",
            "stale copies linger",
            "they are dropped at once",
        ],
    );
    let model = MID_SLOW.model();
    for power in 5..=9 {
        let documents = 10f64.powi(power);
        let [lingers, dropped] = [Stale::Lingers, Stale::IsDropped]
            .map(|stale| filled(&model, 5e4, Store { documents, stale }));
        table.row(vec![
            count(documents),
            format!("{:.0}", documents * model.workload().document_bytes / 1e9),
            format!("{:.3}", lingers.keep_s / crate::web::DAY_S),
            percent(lingers.cacheable_hit_rate.value),
            percent(dropped.cacheable_hit_rate.value),
        ]);
    }
    let (all, told) = (model.cacheable_hit_rate(5e4).value, model.workload());
    table.row(vec![
        "all that may be kept".to_owned(),
        format!("{:.0}", model.whole_bytes() * told.cacheable / 1e9),
        "∞".to_owned(),
        percent(all),
        percent(all),
    ]);
    table
}

fn by_room() -> Chart {
    let model = MID_SLOW.model();
    let curve = |clients: f64| {
        let points = log_spaced(1e4, 2e9, 33).map(|documents| {
            let stale = Stale::Lingers;
            let hits = filled(&model, clients, Store { documents, stale });
            (documents, hits.cacheable_hit_rate.value * 100.0)
        });
        Series::line(&format!("{} clients", count(clients)), points.collect())
    };
    Chart {
        name: "web-by-room".to_owned(),
        title: "Hits of cacheable requests, by the room of the cache".to_owned(),
        x: Axis::log("documents that fit in"),
        y: Axis::linear("C_N, %"),
        series: [5e3, 5e4, 5e5].map(curve).to_vec(),
    }
}
