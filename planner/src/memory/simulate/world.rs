//! One run.

use super::super::network::{Group, Network};
use super::Service;
use super::agenda::Agenda;
use fastrand::Rng;
use std::collections::VecDeque;

/// How long a run is.
pub(super) struct Plan {
    /// Before this nothing is measured.
    pub(super) warm_up_s: f64,
    pub(super) measured_s: f64,
    pub(super) service: Service,
    /// Rates of putpages that come by themselves, by class; none if they come with getpages.
    pub(super) independent_per_s: Option<Vec<f64>>,
}

/// What a run saw.
pub(super) struct Run {
    pub(super) measured_s: f64,
    /// By class.
    pub(super) getpages: Vec<Times>,
    pub(super) putpages: Times,
    /// How long the nodes of each group served, together.
    busy_s: Vec<f64>,
}

/// Requests that were answered, and how long they took together.
#[derive(Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) count: u64,
    total_s: f64,
}

impl Times {
    pub(super) fn mean_s(&self) -> f64 {
        self.total_s / self.count.max(1) as f64
    }
}

impl Run {
    pub(super) fn all(&self) -> Times {
        let both = |a: Times, b: &Times| Times {
            count: a.count + b.count,
            total_s: a.total_s + b.total_s,
        };
        self.getpages.iter().fold(Times::default(), both)
    }

    pub(super) fn utilisation(&self, group: usize, nodes: &Group) -> f64 {
        self.busy_s[group] / (self.measured_s * f64::from(nodes.nodes))
    }
}

enum Event {
    /// A machine of this class has thought.
    Asks { class: usize },
    /// Putpages of a class that come by themselves.
    Puts { class: usize },
    /// A node has served the first of its queue.
    Served { node: usize },
}

struct Node {
    group: usize,
    queue: VecDeque<Request>,
}

#[derive(Clone, Copy)]
struct Request {
    class: usize,
    is_getpage: bool,
    sent_s: f64,
}

/// Machines of a class are alike: which of them asks makes no difference, so none has a name.
struct World<'a> {
    network: &'a Network,
    plan: &'a Plan,
    rng: Rng,
    agenda: Agenda<Event>,
    nodes: Vec<Node>,
    run: Run,
}

/// Simulates until everything is measured.
pub(super) fn run(network: &Network, plan: &Plan, seed: u64) -> Run {
    let mut world = World::new(network, plan, seed);
    let end_s = plan.warm_up_s + plan.measured_s;
    while let Some((now_s, event)) = world.agenda.next() {
        if now_s >= end_s {
            break;
        }
        match event {
            Event::Asks { class } => world.asks(now_s, class),
            Event::Puts { class } => world.puts(now_s, class),
            Event::Served { node } => world.served(now_s, node),
        }
    }
    world.run
}

impl<'a> World<'a> {
    fn new(network: &'a Network, plan: &'a Plan, seed: u64) -> Self {
        let nodes = network.groups.iter().enumerate();
        let nodes = nodes.flat_map(|(group, of)| {
            (0..of.nodes).map(move |_| Node {
                group,
                queue: VecDeque::new(),
            })
        });
        let mut world = World {
            network,
            plan,
            rng: Rng::with_seed(seed),
            agenda: Agenda::new(),
            nodes: nodes.collect(),
            run: Run {
                measured_s: plan.measured_s,
                getpages: vec![Times::default(); network.classes.len()],
                putpages: Times::default(),
                busy_s: vec![0.0; network.groups.len()],
            },
        };
        for (class, of) in network.classes.iter().enumerate() {
            (0..of.machines).for_each(|_| world.thinks(0.0, class));
            world.puts_later(0.0, class);
        }
        world
    }

    fn thinks(&mut self, now_s: f64, class: usize) {
        let mean_s = self.network.classes[class].think_s;
        let for_s = self.exponential(mean_s);
        self.agenda.add(now_s + for_s, Event::Asks { class });
    }

    fn asks(&mut self, now_s: f64, class: usize) {
        self.send(now_s, class, true);
        if self.plan.independent_per_s.is_some() {
            return;
        }
        let mean = self.network.classes[class].putpages_per_getpage;
        let more = self.rng.f64() < mean.fract();
        (0..mean as u64 + u64::from(more)).for_each(|_| self.send(now_s, class, false));
    }

    fn puts(&mut self, now_s: f64, class: usize) {
        self.send(now_s, class, false);
        self.puts_later(now_s, class);
    }

    fn puts_later(&mut self, now_s: f64, class: usize) {
        let rates = self.plan.independent_per_s.as_ref();
        let Some(&per_s) = rates.and_then(|rates| rates.get(class)) else {
            return;
        };
        if per_s > 0.0 {
            let after_s = self.exponential(1.0 / per_s);
            self.agenda.add(now_s + after_s, Event::Puts { class });
        }
    }

    fn send(&mut self, now_s: f64, class: usize, is_getpage: bool) {
        let node = self.route(class);
        self.nodes[node].queue.push_back(Request {
            class,
            is_getpage,
            sent_s: now_s,
        });
        if self.nodes[node].queue.len() == 1 {
            self.serve(now_s, node);
        }
    }

    fn route(&mut self, class: usize) -> usize {
        let mut left = self.rng.f64();
        let mut first = 0;
        let mut last = 0;
        let routes = self.network.classes[class].routing.iter();
        for (&to, group) in routes.zip(&self.network.groups) {
            let nodes = group.nodes as usize;
            let share = to * nodes as f64;
            if left < share {
                return first + ((left / to) as usize).min(nodes - 1);
            }
            left -= share;
            if to > 0.0 {
                last = first + nodes - 1;
            }
            first += nodes;
        }
        // The probabilities sum to a hair less than 1.
        last
    }

    /// Begins with the first of a queue.
    fn serve(&mut self, now_s: f64, node: usize) {
        let Some(request) = self.nodes[node].queue.front().copied() else {
            return;
        };
        let number = self.nodes[node].group;
        let group = &self.network.groups[number];
        let mean_s = match request.is_getpage {
            true => group.getpage_s,
            false => group.putpage_s,
        };
        let for_s = match self.plan.service {
            Service::Exponential => self.exponential(mean_s),
            Service::Fixed => mean_s,
        };
        let until_s = now_s + for_s;
        self.run.busy_s[number] += self.measured_part(now_s, until_s);
        self.agenda.add(until_s, Event::Served { node });
    }

    /// How much of a time is measured.
    fn measured_part(&self, from_s: f64, until_s: f64) -> f64 {
        let start_s = self.plan.warm_up_s;
        let end_s = start_s + self.plan.measured_s;
        (until_s.min(end_s) - from_s.max(start_s)).max(0.0)
    }

    fn served(&mut self, now_s: f64, node: usize) {
        if let Some(request) = self.nodes[node].queue.pop_front() {
            if now_s >= self.plan.warm_up_s {
                self.record(now_s, request);
            }
            if request.is_getpage {
                self.thinks(now_s, request.class);
            }
        }
        self.serve(now_s, node);
    }

    fn record(&mut self, now_s: f64, request: Request) {
        let times = match request.is_getpage {
            true => &mut self.run.getpages[request.class],
            false => &mut self.run.putpages,
        };
        times.count += 1;
        times.total_s += now_s - request.sent_s;
    }

    fn exponential(&mut self, mean_s: f64) -> f64 {
        // Never the logarithm of 0: what is drawn is below 1.
        -mean_s * (1.0 - self.rng.f64()).ln()
    }
}
