//! What another system comes to beside Thorp.

use super::against::{PeerRun, THORP, TUNED_CASE};
use crate::chart::{Bar, Bars};
use crate::experiment::Samples;
use serde_json::json;

/// What is compared, and how many times quicker Thorp is to be.
const WORK: [(&str, Option<f64>); 3] = [
    ("T1 cold", Some(10.0)),
    ("T1 hot", Some(5.0)),
    ("T2b", None),
];

fn seconds(samples: &Samples, case: &str, what: &str) -> f64 {
    let of = [("case", json!(case)), ("what", json!(what))];
    samples.median_of_means(&of, "total_s").unwrap_or(f64::NAN)
}

/// The peer's time in terms of Thorp's.
fn ratio(samples: &Samples, case: &str, what: &str) -> f64 {
    seconds(samples, case, what) / seconds(samples, THORP, what)
}

pub(super) fn table(told: &PeerRun, samples: &Samples) -> String {
    let mut text = format!(
        "OO7 {}, {} member(s)       | T1 cold s | times thorp's | T1 hot s | times thorp's |    T2b s | times thorp's\n",
        told.common.size, told.members
    );
    for case in told.cases() {
        text += &format!("{case:28}");
        for (what, _) in WORK {
            let (seconds, ratio) = (seconds(samples, &case, what), ratio(samples, &case, what));
            text += &format!(" | {seconds:9.4} | {ratio:10.2}");
        }
        text += "\n";
    }
    let asked = WORK
        .iter()
        .filter_map(|(what, asked)| Some(format!("{what} {}", (*asked)?)));
    text += &format!(
        "asked, times thorp's: {}\n",
        asked.collect::<Vec<_>>().join(", ")
    );
    text + &agreement(told, samples)
}

/// Both must have met the same numbers: else it was not the same work.
fn agreement(told: &PeerRun, samples: &Samples) -> String {
    let of = |case: &str, figure: &str| {
        samples.median_of_means(&[("case", json!(case)), ("what", json!("T1 cold"))], figure)
    };
    let mut text = String::new();
    for case in told.cases() {
        for figure in ["atomic_visits", "checksum"] {
            let (here, there) = (of(THORP, figure), of(&case, figure));
            if here.is_some() && there.is_some() && here != there {
                text += &format!(
                    "NOT THE SAME WORK: {figure} of {THORP} {here:?}, of {case} {there:?}\n"
                );
            }
        }
    }
    text
}

/// Short enough for the foot of a bar: a peer's further manners are numbered.
fn label(told: &PeerRun, case: &str) -> String {
    if case == TUNED_CASE {
        return "no site".to_owned();
    }
    let (name, manner) = case.split_once(", ").unwrap_or((case, ""));
    let manners = told.peer.manners();
    match manners.iter().position(|known| *known == manner) {
        Some(number) if number > 0 => format!("{name} {}", number + 1),
        _ => name.to_owned(),
    }
}

pub(super) fn chart(told: &PeerRun, samples: &Samples) -> Bars {
    let group = |(what, asked): &(&str, Option<f64>)| {
        let bar = |case: String| Bar {
            parts: vec![ratio(samples, &case, what)],
            modelled: asked.filter(|_| case.starts_with(told.peer.name())),
            name: label(told, &case),
        };
        (
            (*what).to_owned(),
            told.cases().into_iter().map(bar).collect(),
        )
    };
    Bars {
        title: format!(
            "OO7 {} over {:?}: times Thorp's time",
            told.common.size, told.common.round_trips
        ),
        y: "times Thorp's".to_owned(),
        parts: vec!["measured".to_owned()],
        model: "asked".to_owned(),
        groups: WORK.iter().map(group).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Common;
    use crate::peer::Zeo;
    use crate::village::Programs;
    use std::time::Duration;

    #[test]
    fn ratios_are_told_and_so_is_other_work() {
        let dir = tempfile::tempdir().expect("a directory");
        let told = PeerRun {
            common: Common {
                programs: Programs {
                    thorp: "thorp".into(),
                    worker: "worker".into(),
                },
                round_trips: vec![Duration::from_millis(40)],
                repeats: 1,
                size: "small".to_owned(),
                out: dir.path().to_owned(),
            },
            peer: &Zeo,
            members: 1,
            all_manners: false,
        };
        let mut samples = Samples::keep_in(dir.path(), "peer").expect("a file");
        let mut add = |case: &str, seconds: f64, checksum: u64| {
            let of = [
                ("case", json!(case)),
                ("what", json!("T1 cold")),
                ("run", json!(0)),
            ];
            let answer = json!({"total_s": seconds, "checksum": checksum, "atomic_visits": 7});
            samples.add(&of, &answer).expect("written");
        };
        add(THORP, 2.0, 1 << 60);
        add("zeo, told ahead", 30.0, 1 << 60);
        let text = table(&told, &samples);
        assert!(
            text.contains("15.00") && !text.contains("NOT THE SAME"),
            "{text}"
        );
        assert!(!chart(&told, &samples).svg().contains("NaN"));
        let labels = [
            "thorp",
            TUNED_CASE,
            "zeo, told ahead",
            "zeo, object by object",
        ];
        let labels = labels.map(|case| label(&told, case));
        assert_eq!(labels, ["thorp", "no site", "zeo", "zeo 2"]);
        let mut samples = samples;
        let of = [
            ("case", json!(TUNED_CASE)),
            ("what", json!("T1 cold")),
            ("run", json!(0)),
        ];
        samples
            .add(
                &of,
                &json!({"total_s": 3.0, "checksum": 5, "atomic_visits": 7}),
            )
            .expect("written");
        assert!(table(&told, &samples).contains("NOT THE SAME WORK: checksum"));
    }
}
