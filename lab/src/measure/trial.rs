//! Measures pair after pair.

use super::{Finding, Protocol, Record, datagrams, round_trips, throughput};
use crate::Outcome;
use crate::net::{Namespace, Path, Wan};
use crate::quantity::Rate;
use crate::stop::Stop;
use std::time::Duration;

/// How much is measured of each pair.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// With TCP, and as many with UDP.
    pub round_trips: u32,
    /// In one direction, to see which arrive.
    pub datagrams: u32,
    /// Of TCP at full speed, and half as much of UDP if a rate is asked for.
    pub flow: Duration,
}

/// A pair under measurement.
struct Way<'a> {
    from: &'a Namespace,
    to: &'a Namespace,
    there: Path,
    back: Path,
}

/// Measures every pair of the network's spokes, from the earlier in the plan to the later. Stopped, it gives what it has.
pub fn run(
    wan: &Wan,
    effort: Effort,
    stop: &Stop,
    progress: &mut dyn FnMut(&str),
) -> Outcome<Record> {
    let mut record = Record {
        plan: wan.plan().clone(),
        settings: wan.settings()?,
        round_trips: Vec::new(),
        datagrams: Vec::new(),
        throughput: Vec::new(),
        findings: Vec::new(),
        statistics: wan.controls().statistics()?,
        imprecision: wan.imprecision().map(str::to_owned),
        cut_short: false,
    };
    for way in ways(wan)? {
        if !stop.is_set() {
            measure(&way, wan.plan().queue, effort, stop, progress, &mut record)?;
        }
    }
    record.cut_short = stop.is_set();
    record.statistics = wan.controls().statistics()?;
    Ok(record)
}

fn ways(wan: &Wan) -> Outcome<Vec<Way<'_>>> {
    let (all, mut ways) = (wan.namespaces(), Vec::new());
    for (at, from) in all.iter().enumerate() {
        for to in &all[at + 1..] {
            let there = wan.controls().path(from.spoke(), to.spoke())?;
            let back = wan.controls().path(to.spoke(), from.spoke())?;
            ways.push(Way {
                from,
                to,
                there,
                back,
            });
        }
    }
    Ok(ways)
}

fn measure(
    way: &Way,
    queue: Duration,
    effort: Effort,
    stop: &Stop,
    progress: &mut dyn FnMut(&str),
    record: &mut Record,
) -> Outcome<()> {
    let (from, to) = (way.from, way.to);
    let name = format!("{} -> {}", from.spoke(), to.spoke());
    let key = format!("{},{}", from.spoke(), to.spoke());
    let patience = way.longest(queue);
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        if stop.is_set() {
            return Ok(());
        }
        progress(&format!(
            "{name}: {} round trips, {protocol}",
            effort.round_trips
        ));
        let samples = match protocol {
            Protocol::Tcp => round_trips::tcp(from, to, effort.round_trips, patience, stop)?,
            Protocol::Udp => round_trips::udp(from, to, effort.round_trips, patience, stop)?,
        };
        record.findings.push(Finding::of_round_trips(
            &name,
            protocol,
            way.round_trip(),
            &samples,
            effort.round_trips,
        ));
        record
            .round_trips
            .extend(samples.into_iter().map(|sample| (key.clone(), sample)));
    }
    if stop.is_set() {
        return Ok(());
    }
    progress(&format!("{name}: {} datagrams", effort.datagrams));
    let sent = datagrams::send(from, to, effort.datagrams, way.there.rate(), patience, stop)?;
    record.findings.push(Finding::of_datagrams(
        &name,
        way.there.loss,
        way.there.burst,
        &sent,
    ));
    record
        .datagrams
        .extend(sent.into_iter().map(|datagram| (key.clone(), datagram)));
    for (protocol, time) in [
        (Protocol::Tcp, effort.flow),
        (Protocol::Udp, effort.flow / 2),
    ] {
        let rate = way.there.rate();
        let samples = match (protocol, rate) {
            _ if stop.is_set() => return Ok(()),
            (Protocol::Tcp, _) => {
                progress(&format!(
                    "{name}: {} s of tcp at full speed",
                    time.as_secs_f64()
                ));
                throughput::tcp(from, to, time, stop)?
            }
            (Protocol::Udp, Some(rate)) => {
                progress(&format!(
                    "{name}: {} s of udp, faster than {rate}",
                    time.as_secs_f64()
                ));
                throughput::udp(from, to, rate, time, stop)?
            }
            (Protocol::Udp, None) => break,
        };
        let asked = rate.map(|rate| carried(rate, protocol, way.there.loss));
        record
            .findings
            .push(Finding::of_throughput(&name, protocol, asked, &samples));
        record
            .throughput
            .extend(samples.into_iter().map(|sample| (key.clone(), sample)));
        // What is still on its way would disturb what is measured next.
        stop.sleep(patience);
    }
    Ok(())
}

/// What of a rate is to arrive, in Mbit/s: of UDP, what of it is not lost behind the line.
fn carried(rate: Rate, protocol: Protocol, loss: f64) -> f64 {
    let mbit = rate.bits() as f64 / 1e6;
    match protocol {
        Protocol::Tcp => mbit,
        Protocol::Udp => mbit * (1.0 - loss),
    }
}

impl Way<'_> {
    /// The delays, and of the jitter what it adds in the middle.
    fn round_trip(&self) -> Duration {
        self.there.delay + self.back.delay + (self.there.jitter + self.back.jitter) / 2
    }

    /// Nothing takes longer, if the machine is not far behind.
    fn longest(&self, queue: Duration) -> Duration {
        let jitter = self.there.jitter + self.back.jitter;
        self.there.delay + self.back.delay + jitter + queue * 2 + Duration::from_millis(200)
    }
}
