//! What prefetching saves, in a sentence and in tables.

use thorp_plan::prefetch::{Comparison, Outcome, Policy};
use thorp_plan::report::{Axis, Chart, Section, Series, Table};

/// What is compared, and what each does.
pub(super) const POLICIES: [(Policy, &str); 8] = [
    (
        Policy::DEMAND_LRU,
        "fetches what is needed when it is needed; the page used longest ago makes room",
    ),
    (
        Policy::DEMAND_MIN,
        "the same, but the page needed last makes room, as far as that is told",
    ),
    (
        Policy::FIXED_HORIZON,
        "begins each fetch the time ahead that it takes",
    ),
    (
        Policy::AGGRESSIVE,
        "fetches into the node's memory whenever its disk or link is free, for what is needed later",
    ),
    (
        Policy::FORESTALL,
        "fetches into the node's memory when waiting could no longer be avoided otherwise",
    ),
    (
        Policy::AGGRESSIVE_TWICE,
        "aggressive, and the servers' disks read into their memory as fast as they can",
    ),
    (
        Policy::HYBRID,
        "forestall, and the servers' disks read into their memory as fast as they can",
    ),
    (
        Policy::HYBRID_PAST,
        "the same; the node's own disk reads on while a server reads the page needed first",
    ),
];

pub(super) fn answer(comparison: &Comparison) -> String {
    let outcome = |policy: Policy| {
        let found = comparison
            .outcomes
            .iter()
            .find(|(known, _)| *known == policy);
        found.map_or(Outcome::default(), |(_, outcome)| *outcome)
    };
    let demand = outcome(Policy::DEMAND_LRU);
    let forestall = outcome(Policy::FORESTALL);
    let hybrid_us = outcome(Policy::HYBRID)
        .elapsed_us
        .min(outcome(Policy::HYBRID_PAST).elapsed_us);
    let alone = "into the node's memory alone";
    let (best_us, how, other) = match forestall.elapsed_us <= hybrid_us {
        true => (forestall.elapsed_us, alone, String::new()),
        false => (
            hybrid_us,
            "into the memory of servers and from there just in time",
            format!(
                " Prefetching {alone} takes {} s.",
                seconds(forestall.elapsed_us)
            ),
        ),
    };
    let times = demand.elapsed_us as f64 / best_us.max(1) as f64;
    let verdict = match times {
        times if times < 1.005 => "No",
        times if times < 1.1 => "Hardly",
        _ => "Yes",
    };
    let computing = match demand.compute_us {
        0 => String::new(),
        us => format!("; {} s of both are computing", seconds(us)),
    };
    format!(
        "{verdict}: prefetching {how} takes {} s where fetching on demand takes {} s ({}){computing}.{other} No schedule whatever could take less than {} s.",
        seconds(best_us),
        seconds(demand.elapsed_us),
        speed(times),
        seconds(comparison.limit_us),
    )
}

fn speed(times: f64) -> String {
    match 1.0 / times {
        _ if times >= 0.995 => format!("{times:.2} times as fast"),
        slower if slower < 10.0 => format!("{slower:.2} times as slow"),
        slower => format!("{slower:.0} times as slow"),
    }
}

pub(super) fn policies_section(comparison: &Comparison) -> Section {
    let mut times = Table::new(
        "By policy",
        &[
            "policy",
            "time, s",
            "of that waiting, s",
            "times what no schedule is below",
            "waits",
            "prefetches that came late",
            "for nothing",
        ],
    );
    let mut fetches = Table::new(
        "What was fetched",
        &[
            "policy",
            "disk to node, when needed",
            "ahead",
            "server to node, when needed",
            "ahead",
            "disk to server, ahead",
        ],
    );
    let mut words = Table::new("", &["policy", "what it does"]);
    for ((policy, outcome), (_, what)) in comparison.outcomes.iter().zip(POLICIES) {
        let over = outcome.elapsed_us as f64 / comparison.limit_us.max(1) as f64;
        times.row(vec![
            policy.name.to_owned(),
            seconds(outcome.elapsed_us),
            seconds(outcome.stall_us),
            format!("{over:.2}"),
            outcome.waits.to_string(),
            outcome.late.to_string(),
            outcome.useless.to_string(),
        ]);
        let fetched = &outcome.fetches;
        let counts = [
            fetched.demand_disk,
            fetched.prefetch_disk,
            fetched.demand_global,
            fetched.prefetch_global,
            fetched.prefetch_into_global,
        ];
        let mut row = vec![policy.name.to_owned()];
        row.extend(counts.map(|count| count.to_string()));
        fetches.row(row);
        words.row(vec![policy.name.to_owned(), what.to_owned()]);
    }
    Section {
        tables: vec![times, fetches, words],
        ..Section::default()
    }
}

pub(super) fn section(heading: &str, table: Table, chart: Chart) -> Section {
    Section {
        heading: heading.to_owned(),
        tables: vec![table],
        charts: vec![chart],
        ..Section::default()
    }
}

pub(super) fn chart(name: &str, title: &str, x: &str, series: Vec<Series>) -> Chart {
    Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::linear(x),
        y: Axis::linear("time, s"),
        series,
    }
}

pub(super) fn seconds(time_us: u64) -> String {
    let time_s = time_us as f64 / 1e6;
    match time_s {
        _ if time_s < 0.1 => format!("{time_s:.4}"),
        _ if time_s < 10.0 => format!("{time_s:.2}"),
        _ => format!("{time_s:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::speed;

    #[test]
    fn what_is_slower_is_called_slower() {
        let said = [2.0, 1.0, 0.5, 0.01].map(speed);
        let right = [
            "2.00 times as fast",
            "1.00 times as fast",
            "2.00 times as slow",
            "100 times as slow",
        ];
        assert_eq!(said, right);
    }
}
