//! A node that attacks again and again, until it is quiet.

use super::attack::{Attack, Target, ToParent};
use super::denials::Denials;
use super::eyes::Eyes;
use super::floods::Floods;
use super::futures::Futures;
use super::impostor::Impostor;
use super::limits::Limits;
use super::parents_words::ParentsWords;
use super::replays::{Replays, claim_all};
use super::reports::Reports;
use super::torn::Torn;
use super::votes::Votes;
use crate::forger::Forger;
use std::collections::BTreeMap;
use std::convert::Infallible;
use thorp_model::{
    CallId, CallRequest, Direction, Down, EdgeId, Event, Message, Millis, Now, StateMachine, Up,
    Xoshiro256, message,
};

/// Milliseconds between two attacks of a node, at least and at most.
const GAP_MS: (u64, u64) = (100, 1_500);

/// Of a hundred attacks of a node, those that are of the kind that it likes best.
const FAVOURITE_PERCENT: u64 = 50;

/// Calls that it makes for itself have numbers above all others.
const OWN_CALLS: u64 = 1 << 40;

/// The node.
pub struct Hostile {
    prng: Xoshiro256,
    eyes: Eyes,
    attacks: Vec<Box<dyn Attack>>,
    favourite: usize,
    forger: Forger,
    next: Millis,
    is_quiet: bool,
    calls: u64,
    struck: BTreeMap<&'static str, u64>,
}

impl Hostile {
    /// A node that knows what it sees.
    pub(crate) fn new(mut prng: Xoshiro256, eyes: Eyes) -> Self {
        let mut attacks: Vec<Box<dyn Attack>> = vec![
            Box::new(Floods::default()),
            Box::new(Impostor),
            Box::new(Futures::default()),
            Box::new(Reports::default()),
            Box::new(Replays::default()),
            Box::new(Limits::default()),
            Box::new(Torn),
            Box::new(ParentsWords),
        ];
        attacks.push(match eyes.is_site {
            true => Box::new(Denials),
            false => Box::new(Votes::default()),
        });
        let favourite = prng.index(attacks.len());
        Hostile {
            prng,
            eyes,
            attacks,
            favourite,
            forger: Forger::default(),
            next: Now::MONO_FIRST,
            is_quiet: false,
            calls: OWN_CALLS,
            struck: BTreeMap::new(),
        }
    }

    /// From now on it sends nothing more.
    pub(crate) fn be_quiet(&mut self) {
        self.is_quiet = true;
    }

    /// How often it has attacked, by kind.
    pub(crate) fn struck(&self) -> &BTreeMap<&'static str, u64> {
        &self.struck
    }

    fn attack(&mut self, now: Now, outbox: &mut ToParent) {
        if self.is_quiet || now.mono < self.next {
            return;
        }
        self.next = now.mono.plus(self.prng.range(GAP_MS.0, GAP_MS.1));
        let streams = self.eyes.streams();
        let Some((edge, home, epoch)) = self.prng.pick(&streams).copied() else {
            return;
        };
        let at = Target {
            now,
            edge,
            home,
            epoch,
        };
        let index = match self.prng.percent(FAVOURITE_PERCENT) {
            true => self.favourite,
            false => self.prng.index(self.attacks.len()),
        };
        let before = outbox.actions.len();
        let attack = &mut self.attacks[index];
        attack.strike(at, &self.eyes, &mut self.prng, outbox);
        if outbox.actions.len() > before {
            *self.struck.entry(attack.name()).or_default() += 1;
        }
    }

    fn hear(&mut self, now: Now, edge: EdgeId, message: &Down, outbox: &mut ToParent) {
        self.forger.hear(message);
        self.eyes.see(edge, message);
        match message {
            Down::Begin(begin) => self.introduce(now, edge, begin, outbox),
            Down::End(_) => claim_all(edge, &self.eyes, &mut self.prng, outbox),
            Down::Redirect(redirect) => {
                if let Some(peer) = self.forger.forge(redirect, &mut self.prng) {
                    *self.struck.entry("attack: wrong images").or_default() += 1;
                    outbox.up(edge, Up::Peer(peer));
                }
            }
            _ => {}
        }
    }

    /// It registers like everybody else, looks what there is, and fetches some pages.
    fn introduce(&mut self, now: Now, edge: EdgeId, begin: &message::Begin, outbox: &mut ToParent) {
        let home = begin.home;
        let delegation = self.eyes.delegation(now, home, begin.sites.clone());
        let list = CallRequest::List {
            prefix: String::new(),
            after: String::new(),
        };
        for request in [CallRequest::Register(Some(delegation)), list] {
            self.calls += 1;
            let call = CallId {
                member: self.eyes.member,
                number: self.calls,
            };
            outbox.up(
                edge,
                Up::Call(message::Call {
                    call,
                    home,
                    request,
                }),
            );
        }
        for segment in self.eyes.segments(home) {
            for page in 1..=4 {
                outbox.up(
                    edge,
                    Up::Fetch(message::Fetch {
                        home,
                        epoch: begin.epoch,
                        page: thorp_model::PageId::new(segment.0, page),
                        attempt: thorp_model::Attempt(self.calls + u64::from(page)),
                        peers: true,
                        ahead: false,
                        updates: 0,
                    }),
                );
            }
        }
    }
}

impl StateMachine for Hostile {
    type Command = Infallible;
    type Action = Infallible;

    fn handle(&mut self, now: Now, event: Event<Infallible>, outbox: &mut ToParent) {
        if self.is_quiet {
            return;
        }
        match event {
            Event::Connected {
                edge,
                direction: Direction::Up,
                ..
            } => claim_all(edge, &self.eyes, &mut self.prng, outbox),
            Event::Disconnected { edge } => self.eyes.lose(edge),
            Event::Received {
                edge,
                message: Message::Down(message),
            } => self.hear(now, edge, &message, outbox),
            Event::Tick => self.attack(now, outbox),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Millis> {
        (!self.is_quiet).then_some(self.next)
    }
}
