//! What goes wrong, one thing after the other.

use crate::village::{PATIENCE, SILENCE, Village};
use crate::{Options, Outcome};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};
use thorp_model::Xoshiro256;

/// Between two faults.
const CALM_MS_MAX: u64 = 1_500;
/// Nobody is given up for what lasts so long.
const SHORT_MS_MAX: u64 = 600;
/// What lasts so much longer than silence is allowed to has been noticed.
const LONGER_MS_MAX: u64 = 500;

/// How often each fault happened.
#[derive(Default, Clone)]
pub(crate) struct Tally(pub(crate) BTreeMap<&'static str, u64>);

/// Whom it strikes.
#[derive(Clone, Copy)]
enum Whom {
    Home,
    /// The site that is a process of its own.
    Site,
    Member,
    /// The member that carries its site's redirector.
    Carrier,
}

#[derive(Clone, Copy)]
enum Fault {
    /// `kill -9`.
    Kill(Whom),
    /// It stands still for a moment.
    Stop(Whom),
    /// It stands still for so long that its neighbours give it up.
    Outlast(Whom),
    /// A link is cut, and refuses for a while.
    Cut,
}

/// All of these happen before any of them happens more often than it is named here: so a run need not be long to have them all.
const DECK: [Fault; 17] = [
    Fault::Kill(Whom::Home),
    Fault::Kill(Whom::Home),
    Fault::Kill(Whom::Site),
    Fault::Kill(Whom::Site),
    Fault::Kill(Whom::Member),
    Fault::Kill(Whom::Carrier),
    Fault::Stop(Whom::Home),
    Fault::Stop(Whom::Site),
    Fault::Stop(Whom::Member),
    Fault::Stop(Whom::Carrier),
    Fault::Outlast(Whom::Home),
    Fault::Outlast(Whom::Site),
    Fault::Outlast(Whom::Member),
    Fault::Outlast(Whom::Carrier),
    Fault::Cut,
    Fault::Cut,
    Fault::Cut,
];

/// Until enough transactions are committed, and everything has gone wrong once. Then all is mended.
pub(crate) fn strike_until_done(
    village: &mut Village,
    options: &Options,
    dice: &mut Xoshiro256,
) -> Outcome<Tally> {
    let mut tally = Tally::default();
    let mut deck = Vec::new();
    let (mut seen, mut since) = (0, Instant::now());
    while village.committed() < options.transactions || !tally.is_whole(options) {
        if village.committed() > seen {
            (seen, since) = (village.committed(), Instant::now());
        }
        if since.elapsed() > PATIENCE {
            return Err(format!("nothing commits any more, after {seen} transactions").into());
        }
        thread::sleep(Duration::from_millis(dice.below(CALM_MS_MAX)));
        if !options.calm {
            let fault = draw(&mut deck, dice);
            strike(village, fault, dice)?;
            *tally.0.entry(fault.name()).or_default() += 1;
        }
    }
    Ok(tally)
}

fn draw(deck: &mut Vec<Fault>, dice: &mut Xoshiro256) -> Fault {
    if deck.is_empty() {
        deck.extend(DECK);
    }
    deck.swap_remove(dice.index(deck.len()))
}

fn strike(village: &mut Village, fault: Fault, dice: &mut Xoshiro256) -> Outcome<()> {
    let short = Duration::from_millis(dice.below(SHORT_MS_MAX));
    let long = SILENCE + Duration::from_millis(dice.below(LONGER_MS_MAX));
    match fault {
        Fault::Kill(Whom::Home) => kill_node(village, village.a_home(dice), short / 2),
        Fault::Kill(Whom::Site) => kill_node(village, village.site(), short / 2),
        Fault::Kill(Whom::Member) => village.replace_worker(village.a_mortal(dice)),
        Fault::Kill(Whom::Carrier) => village.replace_worker(village.carrier()),
        Fault::Stop(whom) => stop(village, whom, short, dice),
        Fault::Outlast(whom) => stop(village, whom, long, dice),
        Fault::Cut => {
            let link = &village.links()[dice.index(village.links().len())];
            link.cut();
            thread::sleep(short);
            link.mend();
            Ok(())
        }
    }
}

fn kill_node(village: &mut Village, node: usize, pause: Duration) -> Outcome<()> {
    village.kill(node);
    thread::sleep(pause);
    village.start_again(node)
}

fn stop(village: &Village, whom: Whom, pause: Duration, dice: &mut Xoshiro256) -> Outcome<()> {
    let process = match whom {
        Whom::Home => village.node(village.a_home(dice)),
        Whom::Site => village.node(village.site()),
        Whom::Member => Some(village.worker(dice.index(village.workers()))),
        Whom::Carrier => Some(village.worker(village.carrier())),
    };
    let process = process.ok_or("it does not run")?;
    process.signal(Signal::STOP);
    thread::sleep(pause);
    process.signal(Signal::CONT);
    Ok(())
}

impl Fault {
    fn name(self) -> &'static str {
        match self {
            Fault::Kill(Whom::Home) => "homes killed",
            Fault::Kill(Whom::Site) => "sites killed",
            Fault::Kill(Whom::Member) => "members killed",
            Fault::Kill(Whom::Carrier) => "carriers killed",
            Fault::Stop(Whom::Home) => "homes stopped",
            Fault::Stop(Whom::Site) => "sites stopped",
            Fault::Stop(Whom::Member) => "members stopped",
            Fault::Stop(Whom::Carrier) => "carriers stopped",
            Fault::Outlast(Whom::Home) => "homes stopped for long",
            Fault::Outlast(Whom::Site) => "sites stopped for long",
            Fault::Outlast(Whom::Member) => "members stopped for long",
            Fault::Outlast(Whom::Carrier) => "carriers stopped for long",
            Fault::Cut => "links cut",
        }
    }
}

impl Tally {
    fn is_whole(&self, options: &Options) -> bool {
        options.calm || self.missing().is_none()
    }

    /// What should have happened and did not.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        let all = DECK.iter().map(|fault| fault.name());
        all.into_iter().find(|name| !self.0.contains_key(name))
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0.iter().map(|(name, count)| format!("{count} {name}"));
        let all: Vec<String> = all.collect();
        match all.is_empty() {
            true => f.write_str("faults: none"),
            false => write!(f, "faults: {}", all.join(", ")),
        }
    }
}
