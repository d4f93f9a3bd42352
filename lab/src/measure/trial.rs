//! Measures pair after pair: first in calm, then what goes through at most.

use super::{Finding, Protocol, Record, datagrams, round_trips, throughput};
use crate::Outcome;
use crate::net::{Namespace, Path, Punctuality, Wan};
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

/// Measures every pair of the network's spokes, from the earlier in the plan to the later. Stopped, it gives what it has.
pub fn run(
    wan: &Wan,
    effort: Effort,
    stop: &Stop,
    progress: &mut dyn FnMut(&str),
) -> Outcome<Record> {
    let record = Record {
        plan: wan.plan().clone(),
        settings: wan.settings()?,
        round_trips: Vec::new(),
        datagrams: Vec::new(),
        throughput: Vec::new(),
        findings: Vec::new(),
        calm: Punctuality::default(),
        statistics: wan.controls().statistics()?,
        imprecision: wan.imprecision().map(str::to_owned),
        cut_short: false,
    };
    let mut trial = Trial {
        effort,
        stop,
        progress,
        record,
    };
    let ways = ways(wan)?;
    ways.iter().try_for_each(|way| trial.calm(way))?;
    trial.record.calm = wan.controls().statistics()?.punctuality;
    ways.iter().try_for_each(|way| trial.flow(way))?;
    trial.record.statistics = wan.controls().statistics()?;
    trial.record.cut_short = stop.is_set();
    Ok(trial.record)
}

/// A pair, in the direction in which it is measured.
struct Way<'a> {
    from: &'a Namespace,
    to: &'a Namespace,
    there: Path,
    back: Path,
    /// A there and back takes no longer, if the machine is not far behind.
    longest: Duration,
}

fn ways(wan: &Wan) -> Outcome<Vec<Way<'_>>> {
    let (all, mut ways) = (wan.namespaces(), Vec::new());
    for (at, from) in all.iter().enumerate() {
        for to in &all[at + 1..] {
            let there = wan.controls().path(from.spoke(), to.spoke())?;
            let back = wan.controls().path(to.spoke(), from.spoke())?;
            let longest =
                there.delay + back.delay + there.jitter + back.jitter + wan.plan().queue * 2;
            ways.push(Way {
                from,
                to,
                there,
                back,
                longest: longest + Duration::from_millis(200),
            });
        }
    }
    Ok(ways)
}

impl Way<'_> {
    fn name(&self) -> String {
        format!("{} -> {}", self.from.spoke(), self.to.spoke())
    }

    /// As in a file of samples.
    fn key(&self) -> String {
        format!("{},{}", self.from.spoke(), self.to.spoke())
    }

    /// The delays, and of the jitter what it adds in the middle.
    fn round_trip(&self) -> Duration {
        self.there.delay + self.back.delay + (self.there.jitter + self.back.jitter) / 2
    }

    /// What of a rate is to arrive, in Mbit/s: of UDP, what of it is not lost behind the line.
    fn carried(&self, rate: Rate, protocol: Protocol) -> f64 {
        let mbit = rate.bits() as f64 / 1e6;
        match protocol {
            Protocol::Tcp => mbit,
            Protocol::Udp => mbit * (1.0 - self.there.loss),
        }
    }
}

struct Trial<'a> {
    effort: Effort,
    stop: &'a Stop,
    progress: &'a mut dyn FnMut(&str),
    record: Record,
}

impl Trial<'_> {
    fn calm(&mut self, way: &Way) -> Outcome<()> {
        self.round_trips(way, Protocol::Tcp)?;
        self.round_trips(way, Protocol::Udp)?;
        self.datagrams(way)
    }

    fn flow(&mut self, way: &Way) -> Outcome<()> {
        self.throughput(way, Protocol::Tcp, self.effort.flow)?;
        self.throughput(way, Protocol::Udp, self.effort.flow / 2)
    }

    fn round_trips(&mut self, way: &Way, protocol: Protocol) -> Outcome<()> {
        let (count, stop) = (self.effort.round_trips, self.stop);
        if stop.is_set() || count == 0 {
            return Ok(());
        }
        self.tell(way, &format!("{count} round trips, {protocol}"));
        let samples = match protocol {
            Protocol::Tcp => round_trips::tcp(way.from, way.to, count, stop)?,
            Protocol::Udp => round_trips::udp(way.from, way.to, count, way.longest, stop)?,
        };
        let finding =
            Finding::of_round_trips(&way.name(), protocol, way.round_trip(), &samples, count);
        self.record.findings.push(finding);
        self.record
            .round_trips
            .extend(samples.into_iter().map(|sample| (way.key(), sample)));
        Ok(())
    }

    fn datagrams(&mut self, way: &Way) -> Outcome<()> {
        let (count, stop) = (self.effort.datagrams, self.stop);
        if stop.is_set() || count == 0 {
            return Ok(());
        }
        self.tell(way, &format!("{count} datagrams"));
        let sent = datagrams::send(way.from, way.to, count, way.there.rate(), way.longest, stop)?;
        let finding = Finding::of_datagrams(&way.name(), way.there.loss, way.there.burst, &sent);
        self.record.findings.push(finding);
        self.record
            .datagrams
            .extend(sent.into_iter().map(|datagram| (way.key(), datagram)));
        Ok(())
    }

    /// Without a rate UDP would only tell how fast the machine is.
    fn throughput(&mut self, way: &Way, protocol: Protocol, time: Duration) -> Outcome<()> {
        let rate = way.there.rate();
        if self.stop.is_set() || time.is_zero() || (protocol == Protocol::Udp && rate.is_none()) {
            return Ok(());
        }
        self.tell(
            way,
            &format!("{} s of {protocol}, as much as goes", time.as_secs_f64()),
        );
        let samples = match (protocol, rate) {
            (Protocol::Udp, Some(rate)) => {
                throughput::udp(way.from, way.to, rate, time, self.stop)?
            }
            _ => throughput::tcp(way.from, way.to, time, self.stop)?,
        };
        let asked = rate.map(|rate| way.carried(rate, protocol));
        let finding = Finding::of_throughput(&way.name(), protocol, asked, &samples);
        self.record.findings.push(finding);
        self.record
            .throughput
            .extend(samples.into_iter().map(|sample| (way.key(), sample)));
        // What is still on its way would disturb what is measured next.
        self.stop.sleep(way.longest);
        Ok(())
    }

    fn tell(&mut self, way: &Way, what: &str) {
        (self.progress)(&format!("{}: {what}", way.name()));
    }
}
