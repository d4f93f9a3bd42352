//! What sections 5.2 and 5.3 say in words and numbers, one by one.

use super::cooperation::SCALES;
use super::figures::{FAR_S, varied};
use super::{Changes, FAST, HOUR_S, MID_SLOW, MINUTE_S, SLOW, count, model, percent};
use crate::report::{Section, Table};
use crate::web::sweep::{Parameter, clients_for};
use crate::web::{DAY_S, Workload};

pub(super) fn section() -> Section {
    Section {
        heading: "Web caches: what the text says, one by one".to_owned(),
        words: vec![
            "*Yes* is within 10 % of a number, or the order that is claimed.".to_owned(),
            "The 9 TB of the footnote are no result of the model: the thesis only says that all cacheable documents would need *a large contemporary disk array, such as the 9TB EMC*. Ours is n p_c E(S) with table 5.1's figures.".to_owned(),
        ],
        tables: vec![numbers(), orders(), growth(), skew()],
        ..Section::default()
    }
}

/// A statement, its number, ours, and how both are shown.
type Claim = (&'static str, f64, f64, fn(f64) -> String);

fn numbers() -> Table {
    let mut table = Table::new("Numbers", &["statement", "thesis", "model", "agrees"]);
    for (what, paper, ours, show) in populations().into_iter().chain(constants()) {
        let agrees = (ours / paper - 1.0).abs() <= 0.1;
        let agrees = if agrees { "yes" } else { "no" };
        table.row(vec![
            what.to_owned(),
            show(paper),
            show(ours),
            agrees.to_owned(),
        ]);
    }
    table
}

fn populations() -> Vec<Claim> {
    let reaching = |changes: Changes| ninety(changes.workload());
    let half = |changes: Changes| changes.model().cacheable_hit_rate(5e5).value;
    vec![
        (
            "5.2.4: clients for 90 % of p_c, slow",
            250e3,
            reaching(SLOW),
            count,
        ),
        ("5.2.4: the same, fast", 20e6, reaching(FAST), count),
        (
            "5.2.4: of the most that can be saved, at 500,000 clients, slow",
            0.95,
            half(SLOW),
            percent,
        ),
        ("5.2.4: the same, fast", 0.68, half(FAST), percent),
        (
            "figure 5.4: hits at 20 million clients, fast",
            0.9,
            FAST.model().cacheable_hit_rate(20e6).value,
            percent,
        ),
        (
            "5.2.4: clients for 90 %, slow, 10 times the documents",
            25e6,
            ninety(times(10.0)),
            count,
        ),
        (
            "5.2.4: the same, 100 times the documents",
            250e6,
            ninety(times(100.0)),
            count,
        ),
    ]
}

fn constants() -> Vec<Claim> {
    let told = Workload::washington();
    let model = MID_SLOW.model();
    let seconds = |s: f64| format!("{s:.2} s");
    vec![
        (
            "5.2.3: share of requests for popular documents",
            0.4,
            model.zipf().share(1..=told.popular_documents).value,
            percent,
        ),
        (
            "5.2.3: popular documents, of all",
            0.003,
            told.popular_documents as f64 / told.documents as f64,
            percent,
        ),
        (
            "5.2.4: latency with everybody, (1 - p_c) E(L)",
            0.76,
            model.latency_s(1e15, 0.0),
            seconds,
        ),
        (
            "5.3: requests of 50,000 clients in a second",
            350.0,
            model.requests_s(5e4),
            count,
        ),
        (
            "5.2.1, footnote: all cacheable documents, TB",
            9.0,
            model.whole_bytes() * told.cacheable / 1e12,
            |tb| format!("{tb:.1} TB"),
        ),
    ]
}

/// How many clients it takes for 90 %. They are there: no document of table 5.1 changes all the time.
fn ninety(workload: Workload) -> f64 {
    let found = clients_for(&model(workload), 0.9).expect("90 % is a share");
    found.unwrap_or(f64::INFINITY)
}

/// So many times the documents, popular ones as well, with slow changes.
fn times(by: f64) -> Workload {
    let told = SLOW.workload();
    Workload {
        documents: (told.documents as f64 * by) as u64,
        popular_documents: (told.popular_documents as f64 * by) as u64,
        ..told
    }
}

fn orders() -> Table {
    let mut table = Table::new(
        "Statements without a number",
        &["statement", "model", "agrees"],
    );
    let rows = [
        slower_than_a_day(),
        unpopular_matter_more(),
        twenty_million(),
        more_below_than_above(),
        city_has_the_bulk(),
        coast_is_worse(),
        server_latency(),
    ];
    for (what, found, agrees) in rows {
        let agrees = if agrees { "yes" } else { "no" };
        table.row(vec![what.to_owned(), found, agrees.to_owned()]);
    }
    table
}

type Order = (&'static str, String, bool);

/// What C_N loses as one class changes ever more often, between each two of these intervals.
fn losses<const N: usize>(clients: f64, parameter: Parameter, intervals: [f64; N]) -> Vec<f64> {
    let points = varied(clients, parameter, intervals);
    points
        .windows(2)
        .map(|pair| pair[0].1 - pair[1].1)
        .collect()
}

fn slower_than_a_day() -> Order {
    let intervals = [FAR_S, DAY_S, MINUTE_S];
    let popular = losses(250e3, Parameter::PopularChange, intervals);
    let others = losses(250e3, Parameter::UnpopularChange, intervals);
    (
        "figure 5.3: popular documents matter if they change more than once a day, the others if less",
        format!(
            "from 180 days to a day and on to a minute, popular ones cost {} and {}, the others {} and {}",
            percent(popular[0]),
            percent(popular[1]),
            percent(others[0]),
            percent(others[1])
        ),
        popular[0] < popular[1] && others[0] > others[1],
    )
}

fn unpopular_matter_more() -> Order {
    let ends = [FAR_S, MINUTE_S];
    let popular = losses(250e3, Parameter::PopularChange, ends)[0];
    let others = losses(250e3, Parameter::UnpopularChange, ends)[0];
    (
        "figure 5.3: how often unpopular documents change matters more",
        format!(
            "from 180 days to a minute: {} against {}",
            percent(others),
            percent(popular)
        ),
        others > popular,
    )
}

fn twenty_million() -> Order {
    let popular = losses(20e6, Parameter::PopularChange, [FAR_S, HOUR_S, MINUTE_S]);
    let others = losses(
        20e6,
        Parameter::UnpopularChange,
        [FAR_S, 30.0 * DAY_S, 600.0, MINUTE_S],
    );
    let (popular_all, others_all): (f64, f64) = (popular.iter().sum(), others.iter().sum());
    let (popular, others) = (popular[1] / popular_all, others[1] / others_all);
    (
        "figure 5.4: at 20 million clients the scale is an hour or less for popular ones, and most of the others' is between 10 minutes and a month",
        format!(
            "{} and {} of the variation lies there",
            percent(popular),
            percent(others)
        ),
        popular > 0.5 && others > 0.5,
    )
}

fn more_below_than_above() -> Order {
    let model = FAST.model();
    let hits = |clients: f64| model.cacheable_hit_rate(clients).value;
    let (before, after) = (hits(5e5) - hits(5e4), hits(5e6) - hits(5e5));
    (
        "5.2.4: with fast changes, the benefit of more clients decreases after 500,000",
        format!(
            "ten times the clients up to there bring {}, ten times from there {}",
            percent(before),
            percent(after)
        ),
        after < before,
    )
}

fn city_has_the_bulk() -> Order {
    let model = MID_SLOW.model();
    let most = model.workload().cacheable * model.workload().server_s;
    let of = |latency_s: f64| (model.workload().server_s - latency_s) / most;
    let [tree, .., alone] = SCALES[0].outcomes(&model);
    let (alone, city, west) = (
        of(alone.latency_s),
        of(tree.latency_s),
        of(SCALES[2].tree(&model).latency_s),
    );
    (
        "5.3: the bulk of what can be had is had in the city",
        format!(
            "of the most that can be saved, each alone has {}, the city's tree {}, the coast's {}",
            percent(alone),
            percent(city),
            percent(west)
        ),
        city - alone > west - city,
    )
}

fn coast_is_worse() -> Order {
    let model = MID_SLOW.model();
    let [state, west] = [1, 2].map(|scale| SCALES[scale].outcomes(&model));
    let latency = |scale: &[crate::web::schemes::Outcome; 4], scheme: usize| {
        format!("{:.2} s", scale[scheme].latency_s)
    };
    (
        "5.3: on the coast hashed and directory-based caches are worse than in the state",
        format!(
            "hashed {} after {}, directory {} after {}",
            latency(&west, 1),
            latency(&state, 1),
            latency(&west, 2),
            latency(&state, 2)
        ),
        (1..3).all(|scheme| west[scheme].latency_s > state[scheme].latency_s),
    )
}

/// The order of the three schemes for servers from 250 ms to 10 s.
fn server_latency() -> Order {
    let order = |server_s: f64, scale: usize| {
        let told = Workload {
            server_s,
            ..MID_SLOW.workload()
        };
        let latencies = SCALES[scale]
            .outcomes(&model(told))
            .map(|outcome| outcome.latency_s);
        let mut schemes = [0, 1, 2];
        schemes.sort_by(|&a, &b| latencies[a].total_cmp(&latencies[b]));
        schemes
    };
    let servers = [0.25, 0.5, 1.0, 1.9, 5.0, 10.0];
    let others: Vec<String> = servers
        .into_iter()
        .flat_map(|server_s| (0..3).map(move |scale| (server_s, scale)))
        .filter(|&(server_s, scale)| order(server_s, scale) != order(1.9, scale))
        .map(|(server_s, scale)| {
            format!(
                "{} at {server_s} s: {}",
                SCALES[scale].name,
                names(order(server_s, scale))
            )
        })
        .collect();
    let usual: Vec<String> = (0..3)
        .map(|scale| format!("{}: {}", SCALES[scale].name, names(order(1.9, scale))))
        .collect();
    let usual = usual.join("; ");
    let found = match others.is_empty() {
        true => format!(
            "the same order from the least latency on ({usual}) for servers from 250 ms to 10 s"
        ),
        false => format!(
            "at 1.9 s, from the least latency on, {usual}; otherwise {}",
            others.join("; ")
        ),
    };
    (
        "5.3: how the schemes compare does not depend on the servers' latency",
        found,
        others.is_empty(),
    )
}

fn names(order: [usize; 3]) -> String {
    let names = ["hierarchical", "hashed", "directory"];
    order.map(|scheme| names[scheme]).join(", ")
}

fn growth() -> Table {
    let mut table = Table::new(
        "Clients for 90 % with slow changes, as the Web grows. The text's three are said to grow with n, and do not with each other: from the first to the second it is a hundred times for ten times the documents. 2.5 and 25 million would fit, and do fit the model.",
        &["documents", "thesis", "model", "model, n_p stays"],
    );
    for (by, said) in [(1.0, 250e3), (10.0, 25e6), (100.0, 250e6)] {
        let with = times(by);
        let fixed = Workload {
            popular_documents: SLOW.workload().popular_documents,
            ..with
        };
        let documents = with.documents as f64;
        table.row(vec![
            count(documents),
            count(said),
            count(ninety(with)),
            count(ninety(fixed)),
        ]);
    }
    table
}

fn skew() -> Table {
    let mut table = Table::new(
        "C_N by α. The text has hits rise with it, by much if changes are slow, by little if they are fast. So it is for up to some ten thousand clients. For more, and fast changes, hits fall with α up to 0.8 (50,000 clients) or 0.9 (250,000): requests move to the documents that change most.",
        &[
            "α",
            "slow, 1,000 clients",
            "slow, 50,000",
            "slow, 250,000",
            "fast, 1,000 clients",
            "fast, 50,000",
            "fast, 250,000",
        ],
    );
    for alpha in [0.6, 0.7, 0.8, 0.9, 1.0, 1.1] {
        let mut row = vec![format!("{alpha:.1}")];
        for changes in [SLOW, FAST] {
            let model = model(Workload {
                alpha,
                ..changes.workload()
            });
            let hits = |clients: f64| percent(model.cacheable_hit_rate(clients).value);
            row.extend([1e3, 5e4, 2.5e5].map(hits));
        }
        table.row(row);
    }
    table
}
