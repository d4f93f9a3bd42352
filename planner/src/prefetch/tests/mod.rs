//! Schedules computed by hand, and what holds for all of them.

mod theorem;

use super::*;

/// Fetches of 2 and 5 for computations of 1, so that all orders of events come up.
fn tiny(local_pages: u32, global_pages: u32, server_disks: u32) -> Hierarchy {
    Hierarchy {
        local_pages,
        global_pages,
        server_disks,
        compute_us: 1,
        global_fetch_us: 2,
        disk_fetch_us: 5,
        issue_us: 0,
    }
}

fn run(hierarchy: &Hierarchy, pages: &[u32], policy: &Policy) -> Outcome {
    simulate(hierarchy, &[Job::hinted(pages)], policy).expect("parameters")[0]
}

#[test]
fn demand_waits_for_each_page_that_is_not_there() {
    // LRU with two local and one global frame. 0, 1 and 2 come from disk; 0 was sent to global memory and comes back for 1.
    let outcome = run(&tiny(2, 1, 0), &[0, 1, 2, 0], &Policy::DEMAND_LRU);
    assert_eq!(outcome.elapsed_us, 4 + 3 * 5 + 2);
    assert_eq!(outcome.stall_us, 17);
    assert_eq!(
        outcome.fetches,
        Fetches {
            demand_disk: 3,
            demand_global: 1,
            ..Fetches::default()
        }
    );
    // With the future told, 1 makes room for 2, and 0 is still there.
    let outcome = run(&tiny(2, 1, 0), &[0, 1, 2, 0], &Policy::DEMAND_MIN);
    assert_eq!((outcome.elapsed_us, outcome.hits), (4 + 3 * 5, 1));
}

#[test]
fn aggressive_prefetching_begins_at_the_first_opportunity() {
    // 0 comes until 5; 1 is fetched from 5 to 10, while 0 is computed with until 6 and used again until 7.
    let outcome = run(&tiny(2, 0, 0), &[0, 0, 1], &Policy::AGGRESSIVE);
    assert_eq!((outcome.elapsed_us, outcome.stall_us), (11, 8));
    assert_eq!((outcome.late, outcome.useless), (1, 0));
    // With one frame, 1 would replace what is needed before: not until 0 is referenced for the last time, at 6.
    let outcome = run(&tiny(1, 0, 0), &[0, 0, 1], &Policy::AGGRESSIVE);
    assert_eq!((outcome.elapsed_us, outcome.stall_us), (12, 9));
}

#[test]
fn the_hybrid_uses_all_channels_at_once() {
    // The node reads 0 until 5, the server 1 until 5. At 5, 1 crosses the link until 7, the node reads 2 and the server 3 until
    // 10; 3 crosses the link from 10 to 12, and is computed with until 13.
    let outcome = run(&tiny(2, 2, 1), &[0, 1, 2, 3], &Policy::HYBRID);
    assert_eq!(outcome.elapsed_us, 13);
    assert_eq!(
        outcome.fetches,
        Fetches {
            demand_disk: 1,
            prefetch_into_global: 2,
            prefetch_global: 2,
            prefetch_disk: 1,
            ..Fetches::default()
        }
    );
    // Where pages in global memory wait until they are demanded, each of the two costs its 2.
    let outcome = run(&tiny(2, 2, 1), &[0, 1, 2, 3], &Policy::HYBRID_DISK);
    assert_eq!(outcome.fetches.demand_global, 2);
}

#[test]
fn the_hybrid_waits_for_what_is_on_its_way_into_global_memory() {
    // Until 5 come 0 to the node, 1 and 2 to the servers, and over the link 1 until 7 and 2 until 9. The servers read 3 and 4 from
    // 5 to 10; 3 misses first, so the node's own disk does not begin 5, which a server then reads from 10 to 15. It crosses the
    // link until 17.
    let outcome = run(&tiny(2, 4, 2), &[0, 1, 2, 3, 4, 5], &Policy::HYBRID);
    assert_eq!(outcome.elapsed_us, 18);
    assert_eq!(
        (
            outcome.fetches.prefetch_disk,
            outcome.fetches.prefetch_into_global
        ),
        (0, 5)
    );
}

#[test]
fn forestall_waits_until_it_has_to_begin() {
    // Twenty references to 0 and then one to 1: the fetch of 5 begins when 5 are left, after 5 + 15 (aggressive: after 5), so
    // that nothing stalls.
    let mut pages = vec![0; 20];
    pages.push(1);
    let outcome = run(&tiny(2, 0, 0), &pages, &Policy::FORESTALL);
    assert_eq!((outcome.stall_us, outcome.late), (5, 0));
    // A page in between that is not in the way of the horizon makes the rule begin earlier: 2 x 5 for two pages at once.
    let mut pages = vec![0; 20];
    pages.extend([1, 2]);
    assert_eq!(run(&tiny(3, 0, 0), &pages, &Policy::FORESTALL).stall_us, 5);
    // A fixed horizon begins 5 before each, and the second stalls for it.
    assert_eq!(
        run(&tiny(3, 0, 0), &pages, &Policy::FIXED_HORIZON).stall_us,
        9
    );
}

#[test]
fn a_rule_becomes_true_within_a_computation() {
    // 1 is needed 10 after the reference to 0; its fetch of 4 has to begin 6 after that, between references.
    let hierarchy = Hierarchy {
        compute_us: 10,
        disk_fetch_us: 4,
        ..tiny(1, 0, 0)
    };
    for policy in [Policy::FORESTALL, Policy::FIXED_HORIZON] {
        assert_eq!(run(&hierarchy, &[0, 1], &policy).stall_us, 4, "{policy:?}");
    }
}

#[test]
fn issuing_costs_whoever_computes() {
    let hierarchy = Hierarchy {
        compute_us: 100,
        issue_us: 3,
        ..tiny(2, 0, 0)
    };
    let outcome = run(&hierarchy, &[0, 1], &Policy::AGGRESSIVE);
    assert_eq!(
        (outcome.issue_us, outcome.elapsed_us),
        (3, 5 + 100 + 3 + 100)
    );
}

#[test]
fn a_process_without_hints_shares_global_memory_with_one_that_tells() {
    let pages: Vec<u32> = (0..6).cycle().take(60).collect();
    let untold = Job {
        hinting: Hinting::NONE,
        ..Job::hinted(&pages)
    };
    let both = simulate(
        &tiny(2, 6, 1),
        &[Job::hinted(&pages), untold],
        &Policy::HYBRID,
    );
    let both = both.expect("parameters");
    assert!(both[0].elapsed_us < both[1].elapsed_us);
    assert_eq!(both[1].fetches.ahead(), 0);
    both.iter().for_each(assert_whole);
}

#[test]
fn wrong_hints_cost_fetches_and_nothing_else_breaks() {
    let mut random = fastrand::Rng::with_seed(9);
    let pages: Vec<u32> = (0..2_000).map(|_| random.u32(..40)).collect();
    for policy in Policy::ALL {
        let useless = [0.0, 0.5].map(|wrong| {
            let hinting = Hinting {
                hinted: 0.9,
                wrong,
                seed: 3,
            };
            let job = Job {
                hinting,
                ..Job::hinted(&pages)
            };
            let outcome = simulate(&tiny(8, 8, 2), &[job], &policy).expect("parameters")[0];
            assert_whole(&outcome);
            outcome.useless
        });
        if policy.local != Rule::Never {
            assert!(useless[1] > useless[0] + 50, "{}: {useless:?}", policy.name);
        }
    }
}

#[test]
fn hints_that_are_all_wrong_bring_nothing() {
    let mut random = fastrand::Rng::with_seed(10);
    for _ in 0..20 {
        let pages: Vec<u32> = (0..500).map(|_| random.u32(..30)).collect();
        let hierarchy = tiny(random.u32(2..=8), random.u32(0..=16), random.u32(0..=2));
        let hinting = Hinting {
            wrong: 1.0,
            seed: 3,
            ..Hinting::COMPLETE
        };
        let job = Job {
            hinting,
            ..Job::hinted(&pages)
        };
        let demand = run(&hierarchy, &pages, &Policy::DEMAND_LRU);
        for policy in Policy::ALL {
            let outcome = simulate(&hierarchy, &[job], &policy).expect("parameters")[0];
            assert_whole(&outcome);
            let said = format!("{} of {hierarchy:?}: {outcome:?} {demand:?}", policy.name);
            assert!(outcome.elapsed_us >= demand.elapsed_us, "{said}");
            assert!(outcome.hits <= demand.hits && outcome.late == 0, "{said}");
        }
    }
}

/// What every outcome adds up to.
fn assert_whole(outcome: &Outcome) {
    assert_eq!(outcome.hits + outcome.waits, outcome.references);
    assert_eq!(
        outcome.elapsed_us,
        outcome.compute_us + outcome.issue_us + outcome.stall_us
    );
    assert!(outcome.late <= outcome.waits.min(outcome.fetches.ahead()));
    assert!(outcome.useless <= outcome.fetches.ahead());
}

/// A drawn instance.
fn drawn(random: &mut fastrand::Rng, pages: u32, references: usize) -> (Hierarchy, Vec<u32>) {
    let global_fetch_us = random.u64(1..=3);
    let hierarchy = Hierarchy {
        local_pages: random.u32(1..=pages.min(3)),
        global_pages: random.u32(0..=pages.min(3)),
        server_disks: random.u32(0..=2),
        compute_us: random.u64(1..=3),
        global_fetch_us,
        disk_fetch_us: global_fetch_us + random.u64(0..=6),
        issue_us: 0,
    };
    let stream: Vec<u32> = (0..references).map(|_| random.u32(..pages)).collect();
    (hierarchy, dense(&stream))
}

#[test]
fn what_holds_for_all_policies_holds_for_drawn_instances() {
    let mut random = fastrand::Rng::with_seed(21);
    for _ in 0..300 {
        let pages = random.u32(1..30);
        let (mut hierarchy, stream) = drawn(&mut random, pages, 200);
        hierarchy.local_pages = random.u32(1..12);
        hierarchy.global_pages = random.u32(0..12);
        let job = Job::hinted(&stream);
        let comparison = compare(&hierarchy, &job, &Policy::ALL).expect("parameters");
        let frames = hierarchy.local_pages as usize;
        let all = frames + hierarchy.global_pages as usize;
        let (local, disk) = (limit::misses(&job, frames), limit::misses(&job, all));
        for (policy, outcome) in &comparison.outcomes {
            assert_whole(outcome);
            let said = format!("{} of {hierarchy:?} {stream:?}", policy.name);
            assert!(outcome.elapsed_us >= comparison.limit_us, "{said}");
            assert!(outcome.fetches.into_local() >= local.len() as u64, "{said}");
            assert!(outcome.fetches.from_disk() >= disk.len() as u64, "{said}");
            // Nothing is prefetched for nothing (section 4.2.3, footnote 2), where each fetch is of the first page that misses.
            let is_in_order = !matches!(policy.local, Rule::Aggressive | Rule::FixedHorizon)
                && !policy.looks_past;
            assert!(outcome.useless == 0 || !is_in_order, "{said}");
        }
        let [_, (_, glfd), ..] = comparison.outcomes[..] else {
            panic!("GLFD is the second");
        };
        assert_eq!(glfd.fetches.demand_disk, disk.len() as u64);
        assert_eq!(glfd.fetches.into_local(), local.len() as u64);
    }
}

#[test]
fn with_room_for_all_there_are_only_cold_misses() {
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..50 {
        let (hierarchy, stream) = drawn(&mut random, 12, 300);
        let distinct = u64::from(stream.iter().max().expect("references") + 1);
        let hierarchy = Hierarchy {
            local_pages: 12,
            global_pages: 12,
            ..hierarchy
        };
        for policy in Policy::ALL {
            let outcome = run(&hierarchy, &stream, &policy);
            assert_eq!(outcome.fetches.from_disk(), distinct, "{}", policy.name);
            assert_eq!(outcome.fetches.into_local(), distinct, "{}", policy.name);
        }
    }
}

#[test]
fn one_memory_and_one_disk_are_those_of_cao() {
    // With one disk and no global memory, aggressive takes at most 1 + F/K times the optimum and is never slower than MIN on
    // demand (Cao et al. 95).
    let mut random = fastrand::Rng::with_seed(8);
    for _ in 0..300 {
        let (hierarchy, stream) = drawn(&mut random, 10, 100);
        let hierarchy = Hierarchy {
            local_pages: random.u32(1..8),
            global_pages: 0,
            ..hierarchy
        };
        let aggressive = run(&hierarchy, &stream, &Policy::AGGRESSIVE);
        let demand = run(&hierarchy, &stream, &Policy::DEMAND_MIN);
        assert!(
            aggressive.elapsed_us <= demand.elapsed_us,
            "{hierarchy:?} {stream:?}"
        );
    }
}

#[test]
fn no_policy_is_faster_than_the_optimum_and_the_limit_is_not_above_it() {
    let mut random = fastrand::Rng::with_seed(13);
    for round in 0..200 {
        let (mut hierarchy, stream) = drawn(&mut random, 4, 7);
        hierarchy.disk_fetch_us = hierarchy.disk_fetch_us.min(hierarchy.global_fetch_us + 3);
        hierarchy.server_disks = hierarchy.server_disks.min(1 + u32::from(round % 8 == 0));
        let job = Job::hinted(&stream);
        let optimum_us = optimum_us(&hierarchy, &job).expect("small enough");
        let comparison = compare(&hierarchy, &job, &Policy::ALL).expect("parameters");
        let said = format!("{hierarchy:?} {stream:?}: {optimum_us}, {comparison:?}");
        assert!(comparison.limit_us <= optimum_us, "{said}");
        for (_, outcome) in &comparison.outcomes {
            assert!(outcome.elapsed_us >= optimum_us, "{said}");
        }
    }
}

#[test]
fn aggressive_is_within_the_bound_of_cao() {
    let mut random = fastrand::Rng::with_seed(17);
    for _ in 0..60 {
        let (hierarchy, stream) = drawn(&mut random, 5, 8);
        let hierarchy = Hierarchy {
            global_pages: 0,
            server_disks: 0,
            compute_us: 1,
            ..hierarchy
        };
        let (frames, fetch) = (hierarchy.local_pages, hierarchy.disk_fetch_us);
        let optimum_us = optimum_us(&hierarchy, &Job::hinted(&stream)).expect("small enough");
        let aggressive_us = run(&hierarchy, &stream, &Policy::AGGRESSIVE).elapsed_us;
        let factor = (1.0 + fetch as f64 / f64::from(frames)).min(2.0);
        assert!(
            aggressive_us as f64 <= factor * optimum_us as f64,
            "{aggressive_us} of {optimum_us}: {hierarchy:?} {stream:?}"
        );
    }
}
