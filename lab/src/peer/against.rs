//! The same module, the same traversals, the same link: Thorp and another system, in turn.

use super::told::{chart, table};
use super::{Installed, Order, Peer};
use crate::Outcome;
use crate::experiment::{
    CUT_SHORT, Common, HOME, SITE, Samples, TUNED, built, busy, each, ms, network, set_round_trip,
};
use crate::net::{Link, Wan};
use crate::stop::Stop;
use crate::village::{Process, SiteMemory, Village, answer, together};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;
use tempfile::TempDir;

/// What the experiment is told.
#[derive(Clone, Debug)]
pub struct PeerRun {
    /// What all experiments are.
    pub common: Common,
    /// Against whom.
    pub peer: &'static dyn Peer,
    /// Who read at the same time.
    pub members: usize,
    /// Sets the peer's clients also in manners that take long.
    pub all_manners: bool,
}

/// How often a warm traversal is repeated in a run.
const HOT: u32 = 5;
/// The peer's port.
const PORT: u16 = 7402;
const START: Duration = Duration::from_secs(60);
/// What Thorp is called among the cases.
pub(super) const THORP: &str = "thorp";
/// Thorp without a site.
pub(super) const TUNED_CASE: &str = "thorp, no site";

/// Runs it; tells the table.
pub fn against(told: &PeerRun, stop: &Stop, show: &mut dyn FnMut(&str)) -> Outcome<String> {
    let common = &told.common;
    let round_trip = common.round_trip()?;
    let name = format!("peer-{}", told.peer.name());
    let mut samples = Samples::keep_in(&common.out, &name)?;
    let busy = busy();
    let installed = told
        .peer
        .install(&common.out.join(told.peer.name()), show)?;
    let wan = network(Link::default())?;
    let stage = Stage {
        told,
        wan: &wan,
        installed,
        stop,
        round_trip,
    };
    let mut runs = Vec::new();
    for run in 0..common.repeats {
        runs.extend(told.cases().into_iter().map(|case| (case, run)));
    }
    let whole = each(
        &runs,
        |(case, _)| format!("{}, {} ms: {case}", common.size, ms(round_trip)),
        |(case, run)| stage.one(case, *run, &mut samples),
        stop,
        show,
    )?;
    fs::write(
        common.out.join(format!("{name}.svg")),
        chart(told, &samples).svg(),
    )?;
    let table = table(told, &samples) + &busy;
    Ok(if whole { table } else { table + CUT_SHORT })
}

impl PeerRun {
    /// Thorp first.
    pub(super) fn cases(&self) -> Vec<String> {
        let manners = self.peer.manners();
        let manners = if self.all_manners {
            manners
        } else {
            &manners[..1]
        };
        let peer = manners
            .iter()
            .map(|manner| format!("{}, {manner}", self.peer.name()));
        [THORP.to_owned(), TUNED_CASE.to_owned()]
            .into_iter()
            .chain(peer)
            .collect()
    }
}

struct Stage<'a> {
    told: &'a PeerRun,
    wan: &'a Wan,
    installed: Installed,
    stop: &'a Stop,
    round_trip: Duration,
}

impl Stage<'_> {
    fn one(&self, case: &str, run: usize, samples: &mut Samples) -> Outcome<()> {
        // Modules are made before the home is far.
        set_round_trip(self.wan, Duration::ZERO)?;
        let mut keep = |what: &str, answers: Vec<Value>| {
            answers.iter().enumerate().try_for_each(|(member, answer)| {
                let of = [
                    ("case", json!(case)),
                    ("what", json!(what)),
                    ("run", json!(run)),
                    ("member", json!(member)),
                    ("size", json!(self.told.common.size)),
                    ("round_trip_ms", json!(ms(self.round_trip))),
                ];
                samples.add(&of, answer)
            })
        };
        if [THORP, TUNED_CASE].contains(&case) {
            let mut village = built(&self.told.common, self.wan, self.stop)?;
            let at = if case == THORP { SITE } else { HOME };
            if case == THORP {
                village.site(SITE, HOME, SiteMemory::Usual)?;
            }
            set_round_trip(self.wan, self.round_trip)?;
            let members = self.thorp(&village, at)?;
            return traverse(members, &mut keep);
        }
        let manner = case.split_once(", ").map_or("", |(_, manner)| manner);
        let data = TempDir::with_prefix("thorp-lab-")?;
        let address = format!("{}:{PORT}", self.wan.namespace(HOME)?.address());
        let server = self
            .told
            .peer
            .server(&self.installed, data.path(), &address);
        let mut server = self.start(HOME, "server", &server, &data)?;
        server.hear("ready", START)?;
        let client = self.told.peer.client(&self.installed, manner, &address);
        let mut builder = self.start(HOME, "builder", &client, &data)?;
        builder.hear("{\"ready\"", START)?;
        builder.tell(&format!("build {}", self.told.common.size))?;
        answer(&mut builder)?;
        drop(builder);
        set_round_trip(self.wan, self.round_trip)?;
        let client = |number| {
            let mut client = self.start(SITE, &format!("m{number}"), &client, &data)?;
            client.hear("{\"ready\"", START)?;
            Ok(client)
        };
        let members = (0..self.told.members).map(client).collect::<Outcome<_>>()?;
        traverse(members, &mut keep)
    }

    fn thorp(&self, village: &Village<'_>, at: &str) -> Outcome<Vec<Process>> {
        let start = |number| village.member(SITE, at, &format!("m{number}"), TUNED);
        (0..self.told.members).map(start).collect()
    }

    fn start(&self, spoke: &str, name: &str, order: &Order, data: &TempDir) -> Outcome<Process> {
        let namespace = self.wan.namespace(spoke)?;
        let (program, arguments) = (&order.program, &order.arguments);
        Process::start(namespace, name, program, arguments, data.path(), self.stop)
    }
}

/// Cold, then warm, then one of them changes all parts.
fn traverse(
    mut members: Vec<Process>,
    keep: &mut dyn FnMut(&str, Vec<Value>) -> Outcome<()>,
) -> Outcome<()> {
    keep("T1 cold", together(&mut members, |_| "run T1".to_owned())?)?;
    for _ in 0..HOT {
        keep("T1 hot", together(&mut members, |_| "run T1".to_owned())?)?;
    }
    if let Some(first) = members.first_mut() {
        first.tell("run T2b")?;
        keep("T2b", vec![answer(first)?])?;
    }
    Ok(())
}
