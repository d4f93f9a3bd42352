//! Who asks for what, where a trace does not tell.

use super::*;

fn thousand() -> Trace {
    let mut trace = Trace::of("thousand", (0..1000).map(|at| at * at % 97));
    trace.times_us = (0..1000).map(|at| at * 500_000).collect();
    trace
}

#[test]
fn requests_are_dealt_by_the_rule() {
    let trace = thousand();
    let by = |rule| dealt(&trace, rule, 4, 9).expect("it can be dealt");
    assert_eq!(by(Dealing::RoundRobin)[..6], [0, 1, 2, 3, 0, 1]);
    assert_eq!(
        by(Dealing::Slices { seconds: 1.0 })[..6],
        [0, 0, 1, 1, 2, 2]
    );
    let owners = by(Dealing::ByObject);
    let whole = trace.pages.iter().zip(&owners);
    assert!(whole.clone().all(|(page, owner)| {
        whole
            .clone()
            .all(|(other, of)| page != other || owner == of)
    }));
    let changes = |clients: &[u16]| clients.windows(2).filter(|pair| pair[0] != pair[1]).count();
    // A change of client every 20 requests, but one in four draws the same again.
    let changed = changes(&by(Dealing::Runs { mean: 20.0 }));
    assert!((20..60).contains(&changed), "{changed}");
    let random = by(Dealing::Random);
    assert!((0..4).all(|client| {
        random
            .iter()
            .filter(|&&it| it == client)
            .count()
            .abs_diff(250)
            < 60
    }));
    assert_eq!(random, by(Dealing::Random), "the same seed deals the same");
}

#[test]
fn what_cannot_be_dealt_is_refused() {
    let trace = Trace::of("plain", [1, 2, 3]);
    for (rule, clients, told) in [
        (
            Dealing::Named,
            2,
            "deal must be round-robin, random, by-object, runs=REQUESTS or slices=SECONDS: the trace names no clients",
        ),
        (
            Dealing::Slices { seconds: 1.0 },
            2,
            "deal must be round-robin, random, by-object or runs=REQUESTS: the trace does not tell when",
        ),
        (
            Dealing::Runs { mean: 0.5 },
            2,
            "deal must be a number not below 1, not 0.5",
        ),
        (Dealing::Random, 0, "clients must be from 1 to 65535, not 0"),
    ] {
        assert_eq!(
            dealt(&trace, rule, clients, 1)
                .expect_err("refused")
                .to_string(),
            told
        );
    }
    let named = Trace {
        clients: vec![0, 1, 2],
        ..trace
    };
    assert!(
        dealt(&named, Dealing::Named, 2, 1).is_err() && dealt(&named, Dealing::Named, 3, 1).is_ok()
    );
    for (text, is_rule) in [
        ("runs=50", true),
        ("round-robin", true),
        ("runs", false),
        ("random=3", false),
        ("named=", false),
    ] {
        assert_eq!(text.parse::<Dealing>().is_ok(), is_rule, "{text}");
    }
}
