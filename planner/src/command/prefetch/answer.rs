//! What prefetching saves, in a sentence and in tables.

use crate::command::given::numeral;
use crate::prefetch::{Comparison, Hinting, Outcome, Policy};
use crate::report::{Axis, Cell, Chart, Section, Series, Table, percent};

/// What is compared, and what each does.
pub(super) const POLICIES: [(Policy, &str); 8] = [
    (
        Policy::DEMAND_LRU,
        "fetches what is needed when it is needed; the page used longest ago makes room",
    ),
    (
        Policy::DEMAND_MIN,
        "the same, but the page needed last makes room, as far as that is hinted (GLFD: global longest forward distance)",
    ),
    (
        Policy::FIXED_HORIZON,
        "begins each fetch ahead by the time (the horizon) that it takes, however many come together",
    ),
    (
        Policy::AGGRESSIVE,
        "fetches into the node's memory whenever its disk or link is free, for what is needed later",
    ),
    (
        Policy::FORESTALL,
        "fetches into the node's memory just in time: when waiting could no longer be avoided otherwise (forestalled)",
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

/// What an answer rests on beside the comparison.
pub(super) struct Told {
    pub(super) hinting: Hinting,
    /// It is of a trace, so that hints are hindsight.
    pub(super) is_recorded: bool,
    /// What prefetching takes at best without servers' disks, if they have some.
    pub(super) without_servers_disks_us: Option<u64>,
}

pub(super) fn answer(comparison: &Comparison, told: &Told) -> String {
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
    let of_disks = told
        .without_servers_disks_us
        .and_then(|without_us| by_disks(demand.elapsed_us, best_us, without_us))
        .unwrap_or_default();
    format!(
        "{verdict}: prefetching {how}, {}, takes {} s where fetching on demand takes {} s ({}){computing}.{of_disks}{other} No schedule whatever could take less than {} s.",
        condition(told),
        seconds(best_us),
        seconds(demand.elapsed_us),
        speed(times),
        seconds(comparison.limit_us),
    )
}

/// What has to be known ahead for it.
fn condition(told: &Told) -> String {
    let Hinting { hinted, wrong, .. } = told.hinting;
    let part = match hinted {
        hinted if hinted <= 0.0 => return "with nothing hinted (told ahead)".to_owned(),
        hinted if hinted >= 1.0 => "all".to_owned(),
        hinted => numeral_percent(hinted),
    };
    let falsely = match wrong {
        wrong if wrong <= 0.0 => String::new(),
        wrong if wrong >= 1.0 => " and every hint is wrong".to_owned(),
        wrong => format!(" and {} of the hints are wrong", numeral_percent(wrong)),
    };
    let hindsight = match told.is_recorded {
        true => " (in hindsight: a trace tells what was read only afterwards)",
        false => "",
    };
    format!("if {part} of what is read is hinted (told ahead){falsely}{hindsight}")
}

/// Not rounded: nearly all is not all.
fn numeral_percent(part: f64) -> String {
    format!("{} %", numeral(part * 100.0))
}

/// What servers' disks do, if that is most of the gain: memory alone would not bring it.
fn by_disks(demand_us: u64, best_us: u64, without_us: u64) -> Option<String> {
    let gain_us = demand_us.checked_sub(best_us).filter(|&gain| gain > 0)?;
    let of_disks_us = without_us.saturating_sub(best_us).min(gain_us);
    let part = of_disks_us as f64 / gain_us as f64;
    (part > 0.5).then(|| {
        format!(
            " {} of what that saves comes from the servers' disks: with their memory alone (--server-disks 0) it takes {} s.",
            percent(part, 0),
            seconds(without_us)
        )
    })
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
    let mut words = Table::new("What each policy does", &["policy", "what it does"]);
    for ((policy, outcome), (_, what)) in comparison.outcomes.iter().zip(POLICIES) {
        let over = outcome.elapsed_us as f64 / comparison.limit_us.max(1) as f64;
        times.cells(vec![
            policy.name.into(),
            took(outcome.elapsed_us),
            took(outcome.stall_us),
            Cell::count(format!("{over:.2}"), over),
            outcome.waits.to_string().into(),
            outcome.late.to_string().into(),
            outcome.useless.to_string().into(),
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
        tables: vec![times, fetches, words, meanings()],
        ..Section::default()
    }
}

fn meanings() -> Table {
    let mut table = Table::new("What the words mean", &["word", "meaning"]);
    for (word, meaning) in MEANINGS {
        table.row(vec![word.to_owned(), meaning.to_owned()]);
    }
    table
}

const MEANINGS: [(&str, &str); 6] = [
    (
        "hinted",
        "told ahead: that this page will be read, and in which order",
    ),
    (
        "waiting",
        "stall: the process needs a page and it is not in its node's memory yet",
    ),
    ("on demand", "fetched when it is needed, and not before"),
    (
        "times what no schedule is below",
        "the time as a multiple of one that nobody could end before, with the same memory and disks and knowing all",
    ),
    (
        "came late",
        "still on its way when it was needed: it saved a part of the waiting",
    ),
    (
        "for nothing",
        "fetched ahead and put out, or there at the end, without having been read",
    ),
];

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

/// A time, as a cell of a table whose head has the unit.
pub(super) fn took(time_us: u64) -> Cell {
    Cell::time(seconds(time_us), time_us as f64 / 1e6)
}

fn seconds(time_us: u64) -> String {
    let time_s = time_us as f64 / 1e6;
    match time_s {
        _ if time_s < 0.1 => format!("{time_s:.4}"),
        _ if time_s < 10.0 => format!("{time_s:.2}"),
        _ => format!("{time_s:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(hinted: f64, wrong: f64, is_recorded: bool) -> Told {
        Told {
            hinting: Hinting {
                hinted,
                wrong,
                seed: 0,
            },
            is_recorded,
            without_servers_disks_us: None,
        }
    }

    #[test]
    fn what_has_to_be_known_ahead_is_said() {
        for (told, said) in [
            (
                told(1.0, 0.0, false),
                "if all of what is read is hinted (told ahead)",
            ),
            (
                told(0.7, 0.1, false),
                "if 70 % of what is read is hinted (told ahead) and 10 % of the hints are wrong",
            ),
            (
                told(1.0, 1.0, true),
                "if all of what is read is hinted (told ahead) and every hint is wrong (in hindsight: a trace tells what was read only afterwards)",
            ),
            (told(0.0, 0.5, true), "with nothing hinted (told ahead)"),
        ] {
            assert_eq!(condition(&told), said);
        }
    }

    #[test]
    fn servers_disks_are_named_where_most_of_the_gain_is_theirs() {
        let said = by_disks(100_000_000, 20_000_000, 80_000_000).expect("75 %");
        assert!(said.starts_with(" 75 % of what that saves"), "{said}");
        assert!(said.contains("it takes 80.0 s"), "{said}");
        // Half of it, nothing gained, and more than is gained.
        assert_eq!(by_disks(100, 20, 60), None);
        assert_eq!(by_disks(20, 20, 60), None);
        let said = by_disks(100_000_000, 20_000_000, 180_000_000).expect("all");
        assert!(said.starts_with(" 100 %"), "{said}");
    }

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
