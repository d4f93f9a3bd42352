use super::*;
use fastrand::Rng;

const COLD: Cold = Cold {
    pages: 500.0,
    pages_per_wait: 1.0,
    transactions: 10.0,
    compute_ms: 5.0,
};

const HOT: Hot = Hot {
    misses: 2.0,
    sharing: 3.0,
    compute_ms: 5.0,
};

fn site(members: f64, round_trip_ms: f64) -> Site {
    Site {
        members,
        round_trip_ms,
        costs: BUDDY_CACHE,
    }
}

#[test]
fn equations_by_hand() {
    let near = Site {
        members: 4.0,
        round_trip_ms: 10.0,
        costs: Costs {
            fetch_ms: 1.0,
            fetch_by_site_ms: 2.0,
            redirect_ms: 3.0,
            commit_ms: 4.0,
            commit_by_site_ms: 5.0,
        },
    };
    let cold = Cold {
        pages: 8.0,
        pages_per_wait: 1.0,
        transactions: 2.0,
        compute_ms: 1.0,
    };
    // (1): 8 * 11 + 2 * (1 + 14). (2): 8 * (12 / 4 + 3/4 * 3) + 2 * (1 + 15).
    let times = near.cold(&cold).expect("it can be");
    assert_eq!((times.alone_ms, times.together_ms), (118.0, 74.0));
    let hot = Hot {
        misses: 2.0,
        sharing: 2.0,
        compute_ms: 1.0,
    };
    // (3): 2 * 11 + 1 + 14. (4): 2 * (12 / 2 + 3 / 2) + 1 + 15. (5): 1 + 15.
    let elsewhere = near.writer_elsewhere(&hot).expect("it can be");
    assert_eq!((elsewhere.alone_ms, elsewhere.together_ms), (37.0, 31.0));
    assert_eq!(near.writer_here(&hot).expect("it can be").together_ms, 16.0);
}

#[test]
fn alone_at_a_site_one_pays_for_it() {
    let times = site(1.0, 40.0).cold(&COLD).expect("it can be");
    assert!(times.saved() < 0.0);
    assert_eq!(site(1.0, 40.0).cold_break_even(&COLD), Ok(BreakEven::Never));
}

#[test]
fn many_members_far_away_save_all_fetches() {
    let work = Cold {
        transactions: 0.0,
        ..COLD
    };
    for members in [2.0, 3.0, 10.0, 1e6] {
        let saved = site(members, 1e9).cold(&work).expect("it can be").saved();
        assert!((saved - (1.0 - 1.0 / members)).abs() < 1e-6, "{saved}");
    }
}

#[test]
fn pages_fetched_ahead_leave_less_to_be_saved() {
    let saved = |pages_per_wait| {
        let work = Cold {
            pages_per_wait,
            ..COLD
        };
        site(5.0, 40.0).cold(&work).expect("it can be").saved()
    };
    assert!(saved(1.0) > saved(4.0) && saved(4.0) > saved(64.0));
}

#[test]
fn farther_and_more_is_never_worse() {
    let mut rng = Rng::with_seed(1);
    for _ in 0..1000 {
        let mut cost = || rng.f64() * 5.0;
        let costs = Costs {
            fetch_ms: cost(),
            fetch_by_site_ms: cost(),
            redirect_ms: cost(),
            commit_ms: cost(),
            commit_by_site_ms: cost(),
        };
        let of = |members, round_trip_ms| Site {
            members,
            round_trip_ms,
            costs,
        };
        let gain = |site: Site| {
            let times = site.cold(&COLD).expect("it can be");
            times.alone_ms - times.together_ms
        };
        assert!(gain(of(5.0, 20.0)) >= gain(of(5.0, 10.0)) - 1e-9);
        if costs.redirect_ms <= costs.fetch_by_site_ms + 10.0 {
            assert!(gain(of(6.0, 10.0)) >= gain(of(5.0, 10.0)) - 1e-9);
        }
        let here = of(5.0, 10.0).writer_here(&HOT).expect("it can be");
        let elsewhere = of(5.0, 10.0).writer_elsewhere(&HOT).expect("it can be");
        assert!(here.together_ms <= elsewhere.together_ms);
    }
}

#[test]
fn at_the_break_even_nothing_is_saved_or_lost() {
    for members in [2.0, 3.0, 10.0] {
        let BreakEven::AboveMs(far) = site(members, 40.0)
            .cold_break_even(&COLD)
            .expect("it can be")
        else {
            panic!("a page from a neighbour costs more than one from a home without distance");
        };
        let there = site(members, far).cold(&COLD).expect("it can be");
        assert!((there.alone_ms - there.together_ms).abs() < 1e-6);
    }
    // In the writer's group nothing is fetched at all.
    assert_eq!(site(3.0, 40.0).here_break_even(&HOT), Ok(BreakEven::Always));
}

#[test]
fn members_to_save_are_the_least() {
    for part in [0.0, 0.1, 0.3, 0.5, 0.7] {
        let of = site(1.0, 40.0);
        let Some(members) = of.members_to_save(part, &COLD).expect("it can be") else {
            panic!("{part} can be saved");
        };
        let saved = |members: u64| {
            of.with(members as f64)
                .cold(&COLD)
                .expect("it can be")
                .saved()
        };
        assert!(saved(members) >= part - 1e-9, "{part}: {members}");
        assert!(
            members == 1 || saved(members - 1) < part,
            "{part}: {members}"
        );
    }
    assert_eq!(site(1.0, 40.0).members_to_save(0.999, &COLD), Ok(None));
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let refused = |site: Site| site.cold(&COLD).expect_err("it cannot be").parameter();
    assert_eq!(refused(site(0.5, 40.0)), "members");
    assert_eq!(refused(site(5.0, -1.0)), "round_trip_ms");
    assert_eq!(refused(site(5.0, f64::NAN)), "round_trip_ms");
    let crowd = Hot {
        sharing: 9.0,
        ..HOT
    };
    let told = site(5.0, 40.0)
        .writer_here(&crowd)
        .expect_err("more than there are");
    assert_eq!(
        told.to_string(),
        "sharing cannot be above the 5 members of the site, and is 9"
    );
}
