//! Decides for every packet whether it arrives, and when. No clock, no device: what it is told is all it knows.
//!
//! ```text
//! sender ─ up: rate, queue ─► between: loss, delay, jitter, a pair's rate ─► down: rate, queue ─► receiver
//! ```

use super::delay_queue::DelayQueue;
use super::line::Line;
use super::link::{Link, Path};
use super::loss::Loss;
use super::packet::{self, OnWire};
use super::plan::Plan;
use super::statistics::{Count, Statistics, together};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use thorp_model::Xoshiro256;

/// What is on its way is held in memory; beyond this (two seconds of a gigabit) it is dropped.
const HELD_BYTES_MAX: usize = 256 << 20;

pub(super) struct Router {
    spokes: Vec<Spoke>,
    /// From each to each, by sender and then receiver.
    ways: Vec<Way>,
    queue: DelayQueue<Crossing>,
    held_bytes: usize,
    queue_max: Duration,
    dice: Xoshiro256,
    strays: u64,
    pub(super) refused: u64,
}

struct Spoke {
    name: String,
    address: Ipv4Addr,
    link: Link,
    up: Line,
    down: Line,
}

#[derive(Default)]
struct Way {
    pair: Link,
    path: Path,
    between: Line,
    loss: Loss,
    cut: bool,
    /// When the last packet reaches the far end: none overtakes it.
    last: Option<Instant>,
    count: Count,
}

/// A frame on its way.
#[derive(Debug)]
pub(super) struct Crossing {
    from: usize,
    pub(super) to: usize,
    leg: Leg,
    pub(super) frame: Box<[u8]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leg {
    /// On the long way.
    Between,
    /// On the receiver's line.
    Down,
}

impl Router {
    pub(super) fn new(plan: &Plan) -> Self {
        let spokes: Vec<_> = plan
            .spokes
            .iter()
            .map(|spoke| Spoke {
                name: spoke.name.clone(),
                address: spoke.address,
                link: spoke.link,
                up: Line::default(),
                down: Line::default(),
            })
            .collect();
        let ways = (0..spokes.len() * spokes.len())
            .map(|_| Way::default())
            .collect();
        let mut router = Router {
            spokes,
            ways,
            queue: DelayQueue::new(),
            held_bytes: 0,
            queue_max: plan.queue,
            dice: Xoshiro256::new(plan.seed),
            strays: 0,
            refused: 0,
        };
        for pair in &plan.pairs {
            let ends = (router.index(&pair.ends.0), router.index(&pair.ends.1));
            let (Some(a), Some(b)) = ends else { continue };
            router.ask_pair(a, b, pair.link);
            router.ask_pair(b, a, pair.link);
        }
        router.find_paths();
        router
    }

    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.spokes.iter().position(|spoke| spoke.name == name)
    }

    pub(super) fn ask_spoke(&mut self, spoke: usize, link: Link) {
        self.spokes[spoke].link = link;
        self.find_paths();
    }

    pub(super) fn spoke_link(&self, spoke: usize) -> Link {
        self.spokes[spoke].link
    }

    /// One way.
    pub(super) fn ask_pair(&mut self, from: usize, to: usize, link: Link) {
        self.way(from, to).pair = link;
        self.find_paths();
    }

    pub(super) fn pair_link(&mut self, from: usize, to: usize) -> Link {
        self.way(from, to).pair
    }

    pub(super) fn path(&mut self, from: usize, to: usize) -> Path {
        self.way(from, to).path
    }

    /// One way. What is on its way arrives all the same, as it would behind a cable that is cut.
    pub(super) fn cut(&mut self, from: usize, to: usize, cut: bool) {
        self.way(from, to).cut = cut;
    }

    /// Both ways between this spoke and every other.
    pub(super) fn cut_off(&mut self, spoke: usize, cut: bool) {
        for other in 0..self.spokes.len() {
            self.cut(spoke, other, cut);
            self.cut(other, spoke, cut);
        }
    }

    /// Whether large segments may cross whole everywhere: a device knows one answer for all it sends to.
    pub(super) fn carries_whole_segments(&self) -> bool {
        let spokes = self.spokes.len();
        let between = |at: &usize| at / spokes != at % spokes;
        (0..self.ways.len())
            .filter(between)
            .all(|at| self.ways[at].path.carries_whole_segments())
    }

    fn way(&mut self, from: usize, to: usize) -> &mut Way {
        &mut self.ways[from * self.spokes.len() + to]
    }

    fn find_paths(&mut self) {
        for from in 0..self.spokes.len() {
            for to in 0..self.spokes.len() {
                let way = &mut self.ways[from * self.spokes.len() + to];
                way.path = Path::between(&self.spokes[from].link, &self.spokes[to].link, &way.pair);
            }
        }
    }

    /// Takes what a spoke has sent.
    pub(super) fn accept(&mut self, now: Instant, from: usize, frame: &[u8]) {
        let to = packet::destination(frame).and_then(|address| self.at(address));
        let Some(to) = to.filter(|to| *to != from) else {
            self.strays += 1;
            return;
        };
        let size = packet::on_wire(frame);
        if let Some(arrives) = self.fate(now, from, to, size) {
            self.held_bytes += frame.len();
            self.queue.put(
                arrives,
                Crossing {
                    from,
                    to,
                    leg: Leg::Between,
                    frame: frame.into(),
                },
            );
        }
    }

    fn at(&self, address: Ipv4Addr) -> Option<usize> {
        self.spokes
            .iter()
            .position(|spoke| spoke.address == address)
    }

    /// When it reaches the receiver's line, if it does.
    fn fate(&mut self, now: Instant, from: usize, to: usize, size: OnWire) -> Option<Instant> {
        let full = self.held_bytes > HELD_BYTES_MAX;
        let way = &mut self.ways[from * self.spokes.len() + to];
        way.count.segments += 1;
        way.count.packets += size.packets;
        way.count.bytes += size.bytes;
        if way.cut {
            way.count.cut_off += size.packets;
            return None;
        }
        let up = &mut self.spokes[from].up;
        let sent = up
            .send(now, size.bytes, way.path.rate_up, self.queue_max)
            .filter(|_| !full);
        let crossed = sent.and_then(|at| {
            way.between
                .send(at, size.bytes, way.path.rate_between, self.queue_max)
        });
        let Some(left) = crossed else {
            way.count.overflowed += size.packets;
            return None;
        };
        // Behind the lines: what vanishes on the long way has occupied the sender's line all the same.
        if way.loss.strikes(&way.path, &mut self.dice) {
            way.count.lost += size.packets;
            return None;
        }
        let arrives = left + way.path.delay + way.path.jitter.mul_f64(self.dice.unit());
        let arrives = way.last.map_or(arrives, |last| last.max(arrives));
        way.last = Some(arrives);
        Some(arrives)
    }

    /// When [`Router::release`] has something next.
    pub(super) fn next(&self) -> Option<Instant> {
        self.queue.next()
    }

    /// Gives what is due, one after another.
    pub(super) fn release(&mut self, now: Instant) -> Option<Crossing> {
        while let Some((due, crossing)) = self.queue.take(now) {
            if let Some(crossing) = self.reach(now, due, crossing) {
                return Some(crossing);
            }
        }
        None
    }

    /// Goes over to the receiver's line, if it has a rate; gives what is at its end.
    fn reach(&mut self, now: Instant, due: Instant, mut crossing: Crossing) -> Option<Crossing> {
        let Crossing { from, to, leg, .. } = crossing;
        let way = &mut self.ways[from * self.spokes.len() + to];
        if leg == Leg::Between && way.path.rate_down.is_some() {
            let size = packet::on_wire(&crossing.frame);
            let down = &mut self.spokes[to].down;
            match down.send(due, size.bytes, way.path.rate_down, self.queue_max) {
                Some(at) => {
                    crossing.leg = Leg::Down;
                    self.queue.put(at, crossing);
                }
                None => {
                    way.count.overflowed += size.packets;
                    self.held_bytes -= crossing.frame.len();
                }
            }
            return None;
        }
        way.count.lateness.add(now - due);
        self.held_bytes -= crossing.frame.len();
        Some(crossing)
    }

    pub(super) fn statistics(&self) -> Statistics {
        let spokes = self.spokes.len();
        let name = |at: usize| self.spokes[at].name.as_str();
        let sent = self
            .ways
            .iter()
            .enumerate()
            .filter(|(_, way)| way.count.packets > 0);
        Statistics {
            pairs: sent
                .map(|(at, way)| way.count.told(name(at / spokes), name(at % spokes)))
                .collect(),
            punctuality: together(self.ways.iter().map(|way| &way.count)),
            on_the_way: self.queue.len(),
            strays: self.strays,
            refused: self.refused,
            ..Statistics::default()
        }
    }

    pub(super) fn forget_statistics(&mut self) {
        self.ways
            .iter_mut()
            .for_each(|way| way.count = Count::default());
        (self.strays, self.refused) = (0, 0);
    }
}

#[cfg(test)]
#[path = "router_tests.rs"]
mod tests;
