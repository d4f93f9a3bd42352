//! The processes: two homes, a site, members of it and of a site that has no process; and the links between them.
//!
//! ```text
//!  ledge, at the site:                        1 and 2 always, 3 and 4 among each other while it does not answer
//!  ridge, members that carry the redirector:  5, 6, 7, in this order
//!  straight at both homes:                    8 and 9
//! ```

use crate::link::Link;
use crate::lists::{HOMES, SLOTS, segment};
use crate::place::{ALIVE_MISSED_MAX, ALIVE_MS, Place};
use crate::process::{Running, start};
use crate::roster::{CARRIER, PLACES, READS_ONLY, RENEWED, Role, SHORT_LIFE, member, neighbour};
use crate::told::{Ended, Told};
use crate::{Options, Outcome, Workload};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};
use thorp_client::{JoinConfig, Member, Segment};
use thorp_model::Xoshiro256;
use thorp_net::{CertificateAuthority, Grant, Identity, NodeRole};

/// Nothing here takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
pub(crate) const SITE: &str = "valley";
/// What says nothing for so long is given up.
pub(crate) const SILENCE: Duration = Duration::from_millis(ALIVE_MS * ALIVE_MISSED_MAX as u64);
const SESSIONS: u64 = 3;
/// Short, so that few wait long for who was killed; but longer than silence is allowed.
const LEASE_S: u64 = 2;
/// Keys that one transaction makes.
const MADE_AT_ONCE: usize = 600;
const STRICT_PERCENT: u64 = 20;

/// Edges of the homes and of the site: the node, the edge's number there, and the certificate of the child.
pub(crate) type Edges = BTreeSet<(usize, u64, String)>;

/// Everything that runs.
pub(crate) struct Village {
    dir: PathBuf,
    thorp: PathBuf,
    bug: Option<String>,
    /// The homes, then the site.
    nodes: Vec<Node>,
    links: Vec<Link>,
    /// By their number.
    workers: Vec<Worker>,
    keys: String,
    told: Arc<Told>,
    workload: Workload,
    generations: usize,
    strict: u64,
    /// Weak sessions of each member.
    weak: u64,
    next_process: u64,
    dice: Xoshiro256,
}

/// A home or the site.
struct Node {
    arguments: Vec<String>,
    running: Option<Running>,
    http: String,
}

struct Worker {
    running: Running,
    reader: JoinHandle<()>,
    number: usize,
}

impl Village {
    pub(crate) fn start(dir: &Path, options: &Options, seed: u64) -> Outcome<Self> {
        let mut village = Village {
            dir: dir.to_owned(),
            thorp: options.thorp.clone(),
            bug: options.bug.clone(),
            nodes: Vec::new(),
            links: Vec::new(),
            workers: Vec::new(),
            keys: String::new(),
            told: Arc::default(),
            workload: options.workload,
            generations: generations(options),
            strict: if options.strict { 100 } else { STRICT_PERCENT },
            weak: options.weak,
            next_process: 1,
            dice: Xoshiro256::new(seed),
        };
        village.start_nodes(options)?;
        village.keys = village.found()?;
        for number in 0..PLACES.len() {
            let worker = village.start_worker(number)?;
            village.workers.push(worker);
        }
        Ok(village)
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    fn link(&mut self, name: &str, to: &str) -> Outcome<String> {
        let (at, to) = (
            self.path(&format!("{name}.link")),
            self.path(&format!("{to}.sock")),
        );
        let link = Link::start(at.as_ref(), to.as_ref())?;
        let address = link.address().to_owned();
        self.links.push(link);
        Ok(address)
    }

    fn start_nodes(&mut self, options: &Options) -> Outcome<()> {
        // The first home is told of the second one: so it has its certificate before it starts.
        self.ca(&["init", &self.authority()])?;
        let own = self.path(&format!("{}/identity", HOMES[0]));
        self.invite(HOMES[0], &["--role=home"], &own)?;
        for (own, other) in [(0, 1), (1, 0)] {
            let way = self.link(&format!("{}-{}", HOMES[own], HOMES[other]), HOMES[other])?;
            let mut arguments = vec!["home".to_owned(), format!("--name={}", HOMES[own])];
            arguments.push(format!("--other-home={}={way}", HOMES[other]));
            arguments.push(format!("--lease={LEASE_S}"));
            if own == 1 {
                let identity = self.path("dale-identity");
                self.invite(HOMES[1], &["--role=home"], &identity)?;
                arguments.push(format!("--identity={identity}"));
            }
            self.start_node(HOMES[own], arguments)?;
        }
        let identity = self.path("valley-identity");
        self.invite(SITE, &["--role=site"], &identity)?;
        let mut arguments = vec!["site".to_owned(), format!("--identity={identity}")];
        for home in HOMES {
            let way = self.link(&format!("{SITE}-{home}"), home)?;
            arguments.push(format!("--home={home}={way}"));
        }
        self.start_node(SITE, arguments)?;
        for to in [HOMES[0], HOMES[1], SITE] {
            self.link(&format!("members-{to}"), to)?;
        }
        if options.identities {
            self.shorten_first()?;
        }
        (0..PLACES.len()).try_for_each(|number| self.invite_member(number))?;
        let neighbours = (0..PLACES.len()).filter(|number| PLACES[*number].has_neighbours());
        for number in neighbours {
            let name = neighbour(number);
            self.link(&name, &name)?;
            for home in HOMES {
                self.link(&format!("{name}-{home}"), home)?;
            }
        }
        Ok(())
    }

    fn start_node(&mut self, name: &str, mut arguments: Vec<String>) -> Outcome<()> {
        arguments.push(format!("--dir={}", self.path(name)));
        arguments.push(format!(
            "--listen=unix:{}",
            self.path(&format!("{name}.sock"))
        ));
        arguments.push("--http=127.0.0.1:0".to_owned());
        arguments.push(format!("--alive-ms={ALIVE_MS}"));
        arguments.push(format!("--alive-missed-max={ALIVE_MISSED_MAX}"));
        arguments.push("--until-stdin-closes".to_owned());
        let node = Node {
            arguments,
            running: None,
            http: String::new(),
        };
        self.nodes.push(node);
        self.start_again(self.nodes.len() - 1)
    }

    /// The identity of a member, by its number.
    fn identity(&self, number: usize) -> String {
        self.path(&format!("{}-identity", member(number)))
    }

    fn invite(&self, name: &str, flags: &[&str], out: &str) -> Outcome<()> {
        let dir = self.path(HOMES[0]);
        let mut command = Command::new(&self.thorp);
        command
            .args(["invite", name, "--dir", &dir, "--out", out])
            .args(flags);
        match command.stdout(Stdio::null()).status()?.success() {
            true => Ok(()),
            false => Err(format!("{name} was not let in").into()),
        }
    }

    /// A member gets its certificate, or its next one.
    pub(crate) fn invite_member(&self, number: usize) -> Outcome<()> {
        // A member that may carry a redirector needs an identity for that, too.
        let flags: &[&str] = match PLACES[number].has_neighbours() {
            true => &["--with-site"],
            false => &[],
        };
        self.invite(&member(number), flags, &self.identity(number))
    }

    /// One member gets a short first certificate, before anybody else lets it in.
    fn shorten_first(&self) -> Outcome<()> {
        let grant = Grant {
            life: Some(SHORT_LIFE),
            ..Grant::new(NodeRole::Member, member(RENEWED))
        };
        let authority = CertificateAuthority::open(self.authority())?;
        authority.issue(&grant, self.identity(RENEWED))?;
        Ok(())
    }

    fn authority(&self) -> String {
        self.path(&format!("{}/authority", HOMES[0]))
    }

    /// Every node gets its next certificate, if it needs one.
    pub(crate) fn invite_all(&self) -> Outcome<()> {
        let own = self.path(&format!("{}/identity", HOMES[0]));
        self.invite(HOMES[0], &["--role=home"], &own)?;
        self.invite(HOMES[1], &["--role=home"], &self.path("dale-identity"))?;
        self.invite(SITE, &["--role=site"], &self.path("valley-identity"))?;
        let members = self.workers.iter().map(|worker| worker.number);
        members
            .into_iter()
            .try_for_each(|number| self.invite_member(number))
    }

    /// Until when a member's certificate is good.
    pub(crate) fn certificate_ends(&self, number: usize) -> Outcome<SystemTime> {
        Ok(Identity::load(self.identity(number))?.validity().until())
    }

    /// A step of the authority's rotation.
    pub(crate) fn rotate(&self, step: &str) -> Outcome<()> {
        self.ca(&["rotate", step, &self.authority()])
    }

    /// Revokes a member at the homes and at the site.
    pub(crate) fn revoke(&self, number: usize) -> Outcome<()> {
        let nodes = [HOMES[0], HOMES[1], SITE];
        let at = nodes.map(|node| format!("--at=unix:{}", self.path(&format!("{node}.sock"))));
        let (dir, name) = (format!("--dir={}", self.authority()), member(number));
        let arguments = [&at[0], &at[1], &at[2], &dir, &name].map(String::as_str);
        self.ca(&[&["revoke"][..], &arguments].concat())
    }

    fn ca(&self, arguments: &[&str]) -> Outcome<()> {
        let mut command = Command::new(&self.thorp);
        let said = command.arg("ca").args(arguments).output()?;
        match said.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&said.stderr).into()),
        }
    }

    /// A member is killed, and nobody takes its place.
    pub(crate) fn retire(&mut self, number: usize) -> Outcome<()> {
        let at = self
            .workers
            .iter()
            .position(|worker| worker.number == number);
        let worker = self.workers.remove(at.ok_or("it does not run")?);
        drop(worker.running);
        let _ = worker.reader.join();
        Ok(())
    }

    /// Who is connected to the homes and to the site.
    pub(crate) fn edges(&self) -> Outcome<Edges> {
        let mut edges = Edges::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let status = self.status(node)?;
            for child in status["children"].as_array().into_iter().flatten() {
                let certificate = child["certificate"].as_str().unwrap_or_default();
                let edge = child["edge"].as_u64().ok_or("an edge without a number")?;
                edges.insert((number, edge, certificate.to_owned()));
            }
        }
        Ok(edges)
    }

    fn status(&self, node: &Node) -> Outcome<Value> {
        let mut command = Command::new(&self.thorp);
        let status = command.args(["status", &node.http, "--json"]).output()?;
        Ok(serde_json::from_slice(&status.stdout)?)
    }

    /// Waits until so many transactions have committed.
    pub(crate) fn await_commits(&self, transactions: u64) -> Outcome<()> {
        let (mut seen, mut since) = (self.committed(), Instant::now());
        while self.committed() < transactions {
            thread::sleep(Duration::from_millis(100));
            if self.committed() > seen {
                (seen, since) = (self.committed(), Instant::now());
            }
            if since.elapsed() > PATIENCE {
                return Err(format!("nothing commits any more, after {seen} transactions").into());
            }
        }
        Ok(())
    }

    pub(crate) fn a_home(&self, dice: &mut Xoshiro256) -> usize {
        dice.index(HOMES.len())
    }

    pub(crate) fn site(&self) -> usize {
        HOMES.len()
    }

    /// A home or the site.
    pub(crate) fn node(&self, node: usize) -> Option<&Running> {
        self.nodes[node].running.as_ref()
    }

    pub(crate) fn worker(&self, worker: usize) -> &Running {
        &self.workers[worker].running
    }

    /// Who carries the redirector whenever it is there.
    pub(crate) fn carrier(&self) -> usize {
        CARRIER
    }

    /// A member that may be killed.
    pub(crate) fn a_mortal(&self, dice: &mut Xoshiro256) -> usize {
        match self.workload {
            Workload::Lists => dice.index(self.workers.len()),
            Workload::Registers => READS_ONLY[dice.index(READS_ONLY.len())],
        }
    }

    pub(crate) fn links(&self) -> &[Link] {
        &self.links
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Transactions, so far.
    pub(crate) fn committed(&self) -> u64 {
        self.told.committed()
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self, node: usize) {
        self.nodes[node].running = None;
    }

    pub(crate) fn start_again(&mut self, node: usize) -> Outcome<()> {
        let mut command = Command::new(&self.thorp);
        command
            .args(&self.nodes[node].arguments)
            .stderr(Stdio::null());
        if let Some(bug) = &self.bug {
            command.env("THORP_PLANTED_BUG", bug);
        }
        let (running, lines) = start(command)?;
        let node = &mut self.nodes[node];
        node.running = Some(running);
        let end = Instant::now() + PATIENCE;
        loop {
            let line = lines.recv_timeout(end.saturating_duration_since(Instant::now()));
            let line = line.map_err(|_| format!("it does not start: {:?}", node.arguments))?;
            if let Some(http) = line.strip_prefix("ready, http ") {
                http.clone_into(&mut node.http);
                return Ok(());
            }
        }
    }

    /// Kills a member; another one takes its place. What it began may have happened.
    pub(crate) fn replace_worker(&mut self, worker: usize) -> Outcome<()> {
        let Worker {
            running, reader, ..
        } = self.workers.remove(worker);
        drop(running);
        // What it said before is heard to the end.
        let _ = reader.join();
        let next = self.start_worker(worker)?;
        self.workers.insert(worker, next);
        Ok(())
    }

    fn start_worker(&mut self, number: usize) -> Outcome<Worker> {
        self.start_as(Role {
            place: PLACES[number],
            number,
            sessions: SESSIONS,
            is_last: false,
        })
    }

    fn start_as(&mut self, role: Role) -> Outcome<Worker> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("worker")
            .args(role.ways(|name| self.path(name)));
        command.arg(format!("--identity={}", self.identity(role.number)));
        command.args(["--workload", workload_name(self.workload)]);
        command.arg(format!("--strict={}", self.strict));
        command.arg(format!("--process={}", self.next_process));
        command.arg(format!("--sessions={}", role.sessions));
        command.arg(format!("--seed={}", self.dice.bits()));
        match &self.bug {
            _ if role.is_last => command.arg("--last"),
            Some(bug) => command.arg(format!("--bug={bug}")),
            None => &mut command,
        };
        if self.workload == Workload::Registers && READS_ONLY.contains(&role.number) {
            command.arg("--reads-only");
        }
        self.next_process += role.sessions;
        if self.weak > 0 && !role.is_last {
            let log = self.path(&format!("{}-log", member(role.number)));
            command.args([format!("--weak={}", self.weak), format!("--log={log}")]);
            self.next_process += self.weak;
        }
        let (mut running, lines) = start(command)?;
        if let Some(stdin) = &mut running.stdin {
            writeln!(stdin, "{}", self.keys)?;
        }
        let told = Arc::clone(&self.told);
        let reader = thread::spawn(move || lines.iter().for_each(|line| told.take(&line)));
        Ok(Worker {
            running,
            reader,
            number: role.number,
        })
    }

    /// Makes the objects: every other one of the same home. Their names, as the workers are told.
    fn found(&self) -> Outcome<String> {
        let founder = JoinConfig::new(format!("unix:{}", self.path("valley.sock")));
        let founder = Member::join(founder.identity(self.identity(0)))?;
        let segments = (0..SLOTS).map(|slot| founder.create(&segment(slot)));
        let segments: Vec<Segment> = segments.collect::<Result<_, _>>()?;
        let keys: Vec<usize> = (0..SLOTS * self.generations).collect();
        let mut made = Vec::new();
        for keys in keys.chunks(MADE_AT_ONCE) {
            made.extend(founder.transact(|tx| {
                let made = keys.iter();
                let made = made.map(|key| tx.create(&segments[key % SLOTS], Vec::new()));
                made.collect::<Result<Vec<_>, _>>()
            })?);
        }
        let names = made.iter().map(|key| founder.format(key));
        let names: Vec<String> = names.collect::<Result<_, _>>()?;
        Ok(Value::from(names).to_string())
    }

    /// The workers come to an end, and a last one reads everything. What all of them told.
    pub(crate) fn end(mut self) -> Outcome<Ended> {
        let workers = std::mem::take(&mut self.workers);
        for worker in workers {
            worker.end()?;
        }
        self.await_no_doubt()?;
        let last = Role {
            place: Place::Site,
            number: 0,
            sessions: 1,
            is_last: true,
        };
        self.start_as(last)?.end()?;
        Ok(self.told.all())
    }

    /// Nothing stays in doubt when everybody is back.
    fn await_no_doubt(&self) -> Outcome<()> {
        let end = Instant::now() + PATIENCE;
        for home in &self.nodes[..HOMES.len()] {
            loop {
                let status = self.status(home)?;
                if status["agreement"]["in_doubt"] == 0 {
                    break;
                }
                if Instant::now() > end {
                    return Err(format!("in doubt for ever: {}", status["agreement"]).into());
                }
                thread::sleep(Duration::from_millis(100));
            }
        }
        Ok(())
    }
}

impl Worker {
    /// Lets it finish what it is at.
    fn end(mut self) -> Outcome<()> {
        drop(self.running.stdin.take());
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.running.child.try_wait()? {
                let _ = self.reader.join();
                return match status.success() {
                    true => Ok(()),
                    false => Err(format!("worker {} failed", self.number).into()),
                };
            }
            if Instant::now() > end {
                return Err(format!("worker {} does not end", self.number).into());
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Lists take each other's place: enough of them for all that is appended.
fn generations(options: &Options) -> usize {
    match options.workload {
        Workload::Lists if options.weak > 0 => 200 + (options.transactions / 50) as usize,
        Workload::Lists => 20 + (options.transactions / 300) as usize,
        Workload::Registers => 1,
    }
}

fn workload_name(workload: Workload) -> &'static str {
    match workload {
        Workload::Lists => "lists",
        Workload::Registers => "registers",
    }
}
