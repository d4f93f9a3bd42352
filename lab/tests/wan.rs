//! A real network between real TCP stacks. Counts and orders only: a time is checked against what it cannot be below.

use lab::Outcome;
use lab::measure::{self, Effort, Protocol, Record};
use lab::net::{Link, Plan, Wan};
use lab::stop::Stop;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

fn link(text: &str) -> Link {
    text.parse().expect(text)
}

fn two(text: &str) -> Wan {
    let plan = Plan::two("site", "home", link(text)).expect("a plan");
    Wan::start(&plan).expect("a network; these tests need root")
}

fn measured(wan: &Wan, round_trips: u32, datagrams: u32) -> Record {
    let effort = Effort {
        round_trips,
        datagrams,
        flow: Duration::from_millis(600),
    };
    measure::run(wan, effort, &Stop::default(), &mut |_| {}).expect("measured")
}

fn arrived(record: &Record) -> usize {
    record
        .datagrams
        .iter()
        .filter(|(_, datagram)| datagram.arrived)
        .count()
}

#[test]
#[ignore = "needs root"]
fn a_link_of_40_ms_is_never_faster_and_loses_nothing() {
    let wan = two("rtt=40ms");
    let record = measured(&wan, 20, 300);
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let of_it = record
            .round_trips
            .iter()
            .filter(|(_, sample)| sample.protocol == protocol);
        let times: Vec<_> = of_it.map(|(_, sample)| sample.took).collect();
        assert_eq!(times.len(), 20, "{protocol}");
        assert!(
            times.iter().all(|took| *took >= Duration::from_millis(40)),
            "{protocol}: {times:?}"
        );
        // One round trip each, not two: the quickest was not sent again.
        let quickest = times.iter().min().expect("samples");
        assert!(
            *quickest < Duration::from_millis(80),
            "{protocol}: {quickest:?}"
        );
    }
    assert_eq!(arrived(&record), 300);
    assert!(
        record
            .throughput
            .iter()
            .map(|(_, sample)| sample.bytes)
            .sum::<u64>()
            > 0
    );
    let statistics = &record.statistics;
    assert!(statistics.whole_segments);
    assert!(
        statistics.pairs.iter().all(|pair| pair.dropped() == 0),
        "{statistics:?}"
    );
}

#[test]
#[ignore = "needs root"]
fn what_is_lost_is_what_the_link_counts() {
    let wan = two("rtt=4ms,loss=10%,burst=3");
    let record = measured(&wan, 0, 2000);
    let lost = 2000 - arrived(&record);
    assert!((80..=400).contains(&lost), "{lost} of 2000");
    assert!(!record.statistics.whole_segments);
    let told = record
        .statistics
        .pairs
        .iter()
        .find(|pair| pair.from == "site")
        .expect("a pair");
    assert!(told.lost >= lost as u64, "{told:?}");
}

#[test]
#[ignore = "needs root"]
fn a_rate_is_not_exceeded() {
    let mut plan = Plan::two("site", "home", link("rtt=4ms,rate=20mbit")).expect("a plan");
    // Short, so that it is full within the test.
    plan.queue = Duration::from_millis(10);
    let wan = Wan::start(&plan).expect("a network");
    let record = measured(&wan, 0, 0);
    assert!(
        record
            .statistics
            .pairs
            .iter()
            .any(|pair| pair.overflowed > 0),
        "{:?}",
        record.statistics
    );
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let of_it = record
            .throughput
            .iter()
            .filter(|(_, sample)| sample.protocol == protocol);
        let (bytes, last) = of_it.fold((0, Duration::ZERO), |(bytes, _), (_, sample)| {
            (bytes + sample.bytes, sample.at)
        });
        assert!(bytes > 0, "{protocol}");
        // A packet more may have been on its way when the clock was read.
        assert!(
            bytes as f64 * 8.0 <= 20e6 * last.as_secs_f64() + 16e3,
            "{protocol}: {bytes} in {last:?}"
        );
    }
}

#[test]
#[ignore = "needs root"]
fn links_are_cut_healed_and_changed_while_it_runs() {
    let wan = two("rtt=2ms");
    let controls = wan.controls();
    controls.cut_way("site", "home", true).expect("cut");
    let home = wan.namespace("home").expect("home");
    let listener = home.within(|| TcpListener::bind((home.address(), 0)));
    let listener = listener.expect("inside").expect("bound");
    let address = listener.local_addr().expect("bound");
    let connect = || {
        let site = wan.namespace("site").expect("site");
        let patience = Duration::from_secs(3);
        site.within(|| TcpStream::connect_timeout(&address, patience))
            .expect("inside")
    };
    assert!(connect().is_err(), "nobody connects over a cut link");
    controls.heal("site", "home").expect("healed");
    assert!(connect().is_ok());
    controls.forget_statistics().expect("forgotten");
    controls
        .adjust_pair("site", "home", &["rtt=30ms"])
        .expect("slower");
    let record = measured(&wan, 5, 100);
    assert!(
        record
            .round_trips
            .iter()
            .all(|(_, sample)| sample.took >= Duration::from_millis(30))
    );
    assert_eq!(arrived(&record), 100);
    controls.adjust_spoke("home", &["loss=1%"]).expect("worse");
    assert!(!controls.statistics().expect("told").whole_segments);
    controls
        .adjust_spoke("home", &["loss=none"])
        .expect("better");
    assert!(controls.statistics().expect("told").whole_segments);
    let nobody = controls
        .cut("site", "ship")
        .expect_err("there is no ship")
        .to_string();
    assert!(nobody.contains("ship"), "{nobody}");
    assert!(controls.cut("site", "site").is_err());
}

#[test]
#[ignore = "needs root"]
fn programs_run_in_their_namespace_and_end_with_the_network() -> Outcome<()> {
    let wan = two("rtt=2ms");
    let home = wan.namespace("home")?;
    let output = home.command("ip")?.args(["-o", "-4", "address"]).output()?;
    let told = String::from_utf8(output.stdout)?;
    assert!(
        told.contains("10.77.0.2/24") && told.contains("127.0.0.1"),
        "{told}"
    );
    let settings = wan.settings()?;
    assert_eq!(settings["home"]["net.ipv4.tcp_slow_start_after_idle"], "0");
    let mut child = home.command("sleep")?.arg("1000").spawn()?;
    let (controls, path) = (
        wan.controls().clone(),
        Path::new("/run/netns").join(home.name()),
    );
    assert!(path.exists());
    drop(wan);
    // Killed: not run to its end.
    assert!(!child.wait()?.success());
    assert!(!path.exists());
    assert!(controls.statistics().is_err(), "a handle does not keep it");
    Ok(())
}

#[test]
#[ignore = "needs root"]
fn the_asked_congestion_control_is_set_and_the_machine_stays_as_it_was() -> Outcome<()> {
    let allowed = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
    let before = allowed()?;
    let mut plan = Plan::two("site", "home", Link::default())?;
    plan.tuning.congestion = Some("reno".to_owned());
    let wan = Wan::start(&plan)?;
    assert_eq!(
        wan.settings()?["site"]["net.ipv4.tcp_congestion_control"],
        "reno"
    );
    plan.tuning.congestion = Some("pigeon".to_owned());
    let why = Wan::start(&plan).err().expect("no pigeons").to_string();
    assert!(why.contains("pigeon"), "{why}");
    assert_eq!(allowed()?, before);
    Ok(())
}
