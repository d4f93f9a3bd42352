//! Tables 5.1 to 5.3.

use super::{ALL, Changes, HOUR_S, MINUTE_S, Spacing, model, percent};
use crate::report::{Section, Table};
use crate::web::{DAY_S, Workload};

pub(super) fn section() -> Section {
    let washington = Workload::washington();
    let popular = model(washington)
        .zipf()
        .share(1..=washington.popular_documents);
    Section {
        heading: "Web caches: the model and its parameters".to_owned(),
        words: vec![
            "Chapter 5 of the thesis asks what web caches gain if they cooperate. n documents are asked for in proportion to 1/i^α by N clients with λ requests each; popular ones change at one rate, the others at another, at random. A cache that holds everything it saw hits if it was asked since the last change: C_N = Σ p_i λNp_i / (λNp_i + μ).".to_owned(),
            format!(
                "The sum is computed, not only the integral that the thesis takes for it: the first 1024 documents one by one, the rest by quadrature with a bound of the error, in microseconds for any n. One thing in the parameters does not fit: the popular documents are said to get 40 % of all requests, but with α = 0.8 the first 10.4 million of 3.2 billion get {}. n_p is taken as it is printed.",
                percent(popular.value)
            ),
        ],
        tables: vec![table_1(), table_2(), table_3()],
        ..Section::default()
    }
}

fn table_1() -> Table {
    let mut table = Table::new("Table 5.1, as it is used here", &["parameter", "value"]);
    for (name, value) in [
        ("α, exponent of popularity", "0.8"),
        ("n, documents", "3.2 billion"),
        ("n_p, popular documents", "10.4 million"),
        ("λ, requests of a client", "590 a day"),
        ("p_c, cacheable", "60 %"),
        ("E(S), size of a document", "7.7 KB (7700 bytes)"),
        ("E(L), last byte from a server", "1.9 s"),
        ("lat_hit, last byte from a cache", "10 ms"),
    ] {
        table.row(vec![name.to_owned(), value.to_owned()]);
    }
    for changes in ALL {
        debug_assert_eq!(changes.workload().spacing, Spacing::Exponential);
        table.row(vec![
            format!("changes, {}: popular, others", changes.name),
            told(changes),
        ]);
    }
    table
}

fn told(changes: Changes) -> String {
    let popular = match changes.popular_s {
        DAY_S => "day".to_owned(),
        HOUR_S => "hour".to_owned(),
        seconds if seconds >= DAY_S => format!("{} days", seconds / DAY_S),
        seconds => format!("{} minutes", seconds / MINUTE_S),
    };
    format!(
        "every {popular}, every {} days",
        changes.unpopular_s / DAY_S
    )
}

/// Quoted: the trace that it was counted in is not public.
fn table_2() -> Table {
    let mut table = Table::new(
        "Table 5.2, quoted: days between changes, counted in the trace",
        &[
            "policy",
            "popular, mean",
            "popular, median",
            "others, mean",
            "others, median",
        ],
    );
    for row in [
        ["normal", "14", "< 1", "186", "85"],
        ["always change", "3", "< 1", "129", "23"],
        ["never change", "27", "< 1", "763", "180"],
        ["cacheable", "5", "< 1", "168", "65"],
        ["uncacheable", "< 1", "< 1", "22", "< 1"],
    ] {
        table.row(row.map(str::to_owned).to_vec());
    }
    table
}

fn table_3() -> Table {
    let mut table = Table::new(
        "Table 5.3: what is computed for each way to cooperate, and where it departs from print",
        &["", "hierarchical", "hashed", "directory"],
    );
    for row in [
        [
            "requests to a cache",
            "λ N_i (1 - H of the level below)",
            "λ N/m",
            "λ N/m, and for each that another cache answers one more",
        ],
        [
            "latency",
            "(1 - H of the top) E(L), and for each level what it adds to the hits, times its latency",
            "(1 - H_N) E(L) + H_N L_c",
            "(1 - H_N) E(L), other caches' hits times 2 L_c, own hits H_N/m times L_l",
        ],
        [
            "storage of a cache",
            "n H E(S) of all caches of the tree, over the lowest",
            "n H_N E(S) / m",
            "n H_N/m E(S)",
        ],
        [
            "departs",
            "the free index of the first term is the top's",
            "nowhere",
            "other caches' hits are H_N - H_N/m; print has (1 - H_N/m) H_N(1-1/m); L_i in its last term is L_l",
        ],
    ] {
        table.row(row.map(str::to_owned).to_vec());
    }
    table
}
