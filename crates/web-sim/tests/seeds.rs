//! Some hundred worlds, and whether they are the same twice.

use thorp_web_sim::{Options, run, run_seeds};

#[test]
fn no_answer_is_older_than_what_was_known() {
    let campaign = run_seeds(1, 300, 2, Options::default());
    let counts = campaign.counts;
    assert!(campaign.failed.is_none(), "{:?}", campaign.failed);
    assert!(counts.hits > 1_000 && counts.joined > 1_000 && counts.not_kept > 1_000);
}

const OF_REQUESTS: Options = Options {
    keeps_lines: false,
    without: None,
    of_requests: true,
};

#[test]
fn no_answer_is_older_where_requests_are_the_source() {
    let campaign = run_seeds(1, 200, 2, OF_REQUESTS);
    let counts = campaign.counts;
    assert!(campaign.failed.is_none(), "{:?}", campaign.failed);
    assert!(counts.hits > 1_000 && counts.updates > 1_000 && counts.not_kept > 1_000);
}

#[test]
fn a_seed_makes_one_world() {
    for seed in 1..=20 {
        for options in [Options::default(), OF_REQUESTS] {
            let hash = || run(seed, options).hash;
            assert_eq!(hash(), hash(), "seed {seed}");
        }
    }
    assert_ne!(
        run(1, Options::default()).hash,
        run(2, Options::default()).hash
    );
}
