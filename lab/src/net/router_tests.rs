//! The router in a time of its own.

use super::super::packet::tests::segment;
use super::*;

fn plan(spokes: &[(&str, &str)]) -> Plan {
    let mut plan = Plan::default();
    for (name, link) in spokes {
        plan.add(name, link.parse().expect("a link"))
            .expect("a spoke");
    }
    plan
}

fn router(spokes: &[(&str, &str)]) -> Router {
    Router::new(&plan(spokes))
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A packet of 1500 bytes to the second spoke.
fn full_packet() -> Vec<u8> {
    segment(Ipv4Addr::new(10, 77, 0, 2), 1460, 0)
}

/// When everything that is on its way arrives.
fn arrivals(router: &mut Router) -> Vec<Instant> {
    let mut arrived = Vec::new();
    while let Some(next) = router.next() {
        while router.release(next).is_some() {
            arrived.push(next);
        }
    }
    arrived
}

fn count(router: &Router) -> super::super::statistics::PairStatistics {
    router.statistics().pairs.first().expect("a pair").clone()
}

#[test]
fn a_packet_arrives_after_both_spokes_delays() {
    let (mut router, start) = (router(&[("site", "5ms"), ("home", "15ms")]), Instant::now());
    router.accept(start, 0, &full_packet());
    assert!(router.release(start + ms(19)).is_none());
    let crossing = router.release(start + ms(21)).expect("due");
    assert_eq!(
        (crossing.to, crossing.frame.len()),
        (1, full_packet().len())
    );
    let count = count(&router);
    assert_eq!((count.packets, count.bytes, count.dropped()), (1, 1500, 0));
    assert!(
        (999.0..1001.0).contains(&count.punctuality.late_max_us),
        "{count:?}"
    );
}

#[test]
fn packets_to_nobody_are_counted_as_strays() {
    let (mut router, start) = (router(&[("site", ""), ("home", "")]), Instant::now());
    router.accept(start, 1, &full_packet());
    router.accept(start, 0, &segment(Ipv4Addr::new(10, 77, 0, 9), 0, 0));
    router.accept(start, 0, &[0; 3]);
    assert_eq!(router.next(), None);
    assert_eq!(router.statistics().strays, 3);
}

#[test]
fn both_lines_take_their_time_one_packet_after_another() {
    // A millisecond up, three down: the second packet waits for the receiver's line.
    let slow = [("site", "10ms,rate=12mbit"), ("home", "rate=4mbit")];
    let (mut router, start) = (router(&slow), Instant::now());
    router.accept(start, 0, &full_packet());
    router.accept(start, 0, &full_packet());
    assert_eq!(arrivals(&mut router), [start + ms(14), start + ms(17)]);
}

#[test]
fn a_full_queue_drops_and_counts() {
    let mut plan = plan(&[("site", "rate=12mbit"), ("home", "")]);
    plan.queue = ms(20);
    let (mut router, start) = (Router::new(&plan), Instant::now());
    (0..100).for_each(|_| router.accept(start, 0, &full_packet()));
    assert_eq!(arrivals(&mut router).len(), 21);
    assert_eq!(count(&router).overflowed, 79);
}

#[test]
fn what_arrives_behind_a_slow_line_is_at_most_its_rate() {
    let (mut router, start) = (
        router(&[("site", "20ms"), ("home", "rate=12mbit")]),
        Instant::now(),
    );
    // Twice as fast as the line, for a second.
    (0..2000)
        .for_each(|n| router.accept(start + Duration::from_micros(n * 500), 0, &full_packet()));
    let arrived = arrivals(&mut router);
    let in_a_second = arrived.iter().filter(|at| **at <= start + ms(1020)).count();
    assert!((999..=1001).contains(&in_a_second), "{in_a_second}");
    assert!(count(&router).overflowed > 800);
}

#[test]
fn jitter_spreads_arrivals_and_never_their_order() {
    let (mut router, start) = (
        router(&[("site", "10ms"), ("home", "jitter=5ms")]),
        Instant::now(),
    );
    for n in 0..200u8 {
        let mut packet = full_packet();
        *packet.last_mut().expect("content") = n;
        router.accept(start + ms(20) * u32::from(n / 2), 0, &packet);
    }
    let (mut order, mut waits) = (Vec::new(), Vec::new());
    while let Some(next) = router.next() {
        let crossing = router.release(next).expect("due");
        let n = *crossing.frame.last().expect("content");
        order.push(n);
        waits.push(next - start - ms(20) * u32::from(n / 2));
    }
    assert!(order.is_sorted(), "{order:?}");
    assert!(
        waits.iter().all(|wait| (ms(10)..=ms(15)).contains(wait)),
        "{waits:?}"
    );
    assert!(waits.iter().any(|wait| *wait < ms(12)) && waits.iter().any(|wait| *wait > ms(13)));
}

#[test]
fn loss_takes_its_share_in_one_direction_as_asked() {
    let (mut router, start) = (router(&[("site", ""), ("home", "")]), Instant::now());
    router.ask_pair(0, 1, "loss=5%".parse().expect("a link"));
    let back = segment(Ipv4Addr::new(10, 77, 0, 1), 0, 0);
    for _ in 0..10_000 {
        router.accept(start, 0, &full_packet());
        router.accept(start, 1, &back);
    }
    let statistics = router.statistics();
    assert!(
        (400..=600).contains(&statistics.pairs[0].lost),
        "{statistics:?}"
    );
    assert_eq!(statistics.pairs[1].dropped(), 0);
}

#[test]
fn a_cut_way_carries_nothing_new_until_it_is_healed() {
    let (mut router, start) = (router(&[("site", "10ms"), ("home", "")]), Instant::now());
    router.accept(start, 0, &full_packet());
    router.cut_off(1, true);
    router.accept(start, 0, &full_packet());
    router.cut_off(1, false);
    router.accept(start + ms(1), 0, &full_packet());
    assert_eq!(arrivals(&mut router), [start + ms(10), start + ms(11)]);
    assert_eq!(count(&router).cut_off, 1);
}

#[test]
fn a_changed_link_counts_from_the_next_packet_and_keeps_order() {
    let (mut router, start) = (router(&[("site", "10ms"), ("home", "")]), Instant::now());
    router.accept(start, 0, &full_packet());
    router.ask_spoke(0, "1ms".parse().expect("a link"));
    router.accept(start, 0, &full_packet());
    router.accept(start + ms(20), 0, &full_packet());
    assert_eq!(
        arrivals(&mut router),
        [start + ms(10), start + ms(10), start + ms(21)]
    );
}

#[test]
fn large_segments_cross_whole_while_no_way_forbids_it() {
    let mut router = router(&[("site", "10ms"), ("home", ""), ("other", "rate=1gbit")]);
    assert!(router.carries_whole_segments());
    router.ask_pair(2, 1, "loss=0.1%".parse().expect("a link"));
    assert!(!router.carries_whole_segments());
    router.ask_pair(2, 1, Link::default());
    assert!(router.carries_whole_segments());
    // A spoke's own loss is met only on ways to others.
    router.ask_spoke(2, "rate=10mbit".parse().expect("a link"));
    assert!(!router.carries_whole_segments());
}

#[test]
fn a_seed_repeats_every_arrival() {
    let run = |seed| {
        let mut plan = plan(&[("site", "10ms,loss=10%,burst=3,jitter=4ms"), ("home", "")]);
        plan.seed = seed;
        let (mut router, start) = (Router::new(&plan), Instant::now());
        (0..500).for_each(|n| router.accept(start + ms(n), 0, &full_packet()));
        arrivals(&mut router)
            .into_iter()
            .map(|at| at - start)
            .collect::<Vec<_>>()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn forgotten_statistics_begin_again() {
    let (mut router, start) = (router(&[("site", ""), ("home", "")]), Instant::now());
    router.accept(start, 0, &full_packet());
    router.forget_statistics();
    assert!(router.statistics().pairs.is_empty());
    assert_eq!(arrivals(&mut router).len(), 1, "what is on its way goes on");
}
