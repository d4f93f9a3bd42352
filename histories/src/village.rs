//! The processes: two homes, a site, members; and the links between them.

use crate::dice::Dice;
use crate::link::Link;
use crate::record::Event;
use crate::worker::SLOTS;
use crate::{Options, Outcome, Workload};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use thorp_client::{JoinConfig, Member, Segment};

/// Nothing here takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
pub(crate) const HOMES: [&str; 2] = ["alps", "dale"];
const SITE: &str = "valley";
/// Members below the site, and straight at the homes.
const WORKERS: usize = 6;
const WORKERS_AT_SITE: usize = 4;
const SESSIONS: u64 = 3;
/// Lists that take each other's place.
const GENERATIONS: usize = 100;
const STRICT_PERCENT: u64 = 20;

/// Everything that runs.
pub(crate) struct Village {
    dir: PathBuf,
    thorp: PathBuf,
    bug: Option<String>,
    /// The homes, then the site.
    nodes: Vec<Node>,
    links: Vec<Link>,
    workers: Vec<Worker>,
    keys: String,
    recorded: Arc<Recorded>,
    workload: Workload,
    strict: u64,
    next_process: u64,
    dice: Dice,
}

/// What the workers told.
#[derive(Default)]
struct Recorded {
    events: Mutex<Vec<Event>>,
    ended: AtomicU64,
}

/// A home or the site.
struct Node {
    arguments: Vec<String>,
    running: Option<Running>,
    http: String,
}

/// A process that does not outlive this one.
struct Running {
    child: Child,
    /// It ends when this closes.
    stdin: Option<ChildStdin>,
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
            recorded: Arc::default(),
            workload: options.workload,
            strict: if options.strict { 100 } else { STRICT_PERCENT },
            next_process: 1,
            dice: Dice::new(seed),
        };
        village.start_nodes()?;
        village.keys = village.found()?;
        for number in 0..WORKERS {
            village.start_worker(number)?;
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

    fn start_nodes(&mut self) -> Outcome<()> {
        for (own, other) in [(0, 1), (1, 0)] {
            let way = self.link(&format!("{}-{}", HOMES[own], HOMES[other]), HOMES[other])?;
            let mut arguments = vec!["home".to_owned(), format!("--name={}", HOMES[own])];
            arguments.push(format!("--other-home={}={way}", HOMES[other]));
            if own == 1 {
                let identity = self.path("dale-identity");
                self.invite(HOMES[1], &identity)?;
                arguments.push(format!("--identity={identity}"));
            }
            self.start_node(HOMES[own], arguments)?;
        }
        let identity = self.path("valley-identity");
        self.invite(SITE, &identity)?;
        let mut arguments = vec!["site".to_owned(), format!("--identity={identity}")];
        for home in HOMES {
            let way = self.link(&format!("{SITE}-{home}"), home)?;
            arguments.push(format!("--home={home}={way}"));
        }
        self.start_node(SITE, arguments)?;
        for to in [HOMES[0], HOMES[1], SITE] {
            self.link(&format!("members-{to}"), to)?;
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
        arguments.push("--until-stdin-closes".to_owned());
        let node = Node {
            arguments,
            running: None,
            http: String::new(),
        };
        self.nodes.push(node);
        self.start_again(self.nodes.len() - 1)
    }

    fn invite(&self, name: &str, out: &str) -> Outcome<()> {
        let dir = self.path(HOMES[0]);
        let mut command = Command::new(&self.thorp);
        command.args(["invite", name, "--dir", &dir, "--out", out]);
        match command.stdout(Stdio::null()).status()?.success() {
            true => Ok(()),
            false => Err(format!("{name} was not let in").into()),
        }
    }

    /// How many homes and sites there are.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn links(&self) -> &[Link] {
        &self.links
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Transactions that have ended.
    pub(crate) fn ended(&self) -> u64 {
        self.recorded.ended.load(Ordering::Relaxed)
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

    /// Stops a node, or lets it go on.
    pub(crate) fn signal_node(&self, node: usize, signal: Signal) {
        if let Some(running) = &self.nodes[node].running {
            running.signal(signal);
        }
    }

    pub(crate) fn signal_worker(&self, worker: usize, signal: Signal) {
        self.workers[worker].running.signal(signal);
    }

    /// Kills a member; another one takes its place. What it began may have happened.
    pub(crate) fn replace_worker(&mut self, worker: usize) -> Outcome<()> {
        let Worker {
            running,
            reader,
            number,
        } = self.workers.swap_remove(worker);
        drop(running);
        // What it said before is heard to the end.
        let _ = reader.join();
        self.start_worker(number)
    }

    fn start_worker(&mut self, number: usize) -> Outcome<()> {
        let worker = self.worker(number, SESSIONS, &[])?;
        self.workers.push(worker);
        Ok(())
    }

    fn worker(&mut self, number: usize, sessions: u64, more: &[&str]) -> Outcome<Worker> {
        let via = |to: &str| format!("--via=unix:{}", self.path(&format!("members-{to}.link")));
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("worker").args(more);
        match number < WORKERS_AT_SITE {
            true => command.arg(via(SITE)),
            false => command.args(HOMES.map(via)),
        };
        command.arg(format!("--identity={}", self.path("valley-identity")));
        command.args(["--workload", workload_name(self.workload)]);
        command.arg(format!("--strict={}", self.strict));
        command.arg(format!("--process={}", self.next_process));
        command.arg(format!("--sessions={sessions}"));
        command.arg(format!("--seed={}", self.dice.next()));
        self.next_process += sessions;
        let (mut running, lines) = start(command)?;
        if let Some(stdin) = &mut running.stdin {
            writeln!(stdin, "{}", self.keys)?;
        }
        let recorded = Arc::clone(&self.recorded);
        let reader = thread::spawn(move || lines.iter().for_each(|line| recorded.take(&line)));
        Ok(Worker {
            running,
            reader,
            number,
        })
    }

    /// Makes the objects: every other one of the same home. Their names, as the workers are told.
    fn found(&self) -> Outcome<String> {
        let founder = JoinConfig::new(format!("unix:{}", self.path("valley.sock")));
        let founder = Member::join(founder.identity(self.path("valley-identity")))?;
        let segments = HOMES.map(|home| founder.create(&format!("thorp://{home}/keys")));
        let segments: Vec<Segment> = segments.into_iter().collect::<Result<_, _>>()?;
        let generations = match self.workload {
            Workload::Lists => GENERATIONS,
            Workload::Registers => 1,
        };
        let made = founder.transact(|tx| {
            let keys = 0..SLOTS * generations;
            let made = keys.map(|key| tx.create(&segments[key % segments.len()], Vec::new()));
            made.collect::<Result<Vec<_>, _>>()
        })?;
        let names = made.iter().map(|key| founder.format(key));
        let names: Vec<String> = names.collect::<Result<_, _>>()?;
        Ok(Value::from(names).to_string())
    }

    /// The workers come to an end, and a last one reads everything. What all of them told.
    pub(crate) fn end(mut self) -> Outcome<Vec<Event>> {
        let workers = std::mem::take(&mut self.workers);
        for worker in workers {
            worker.end()?;
        }
        self.await_no_doubt()?;
        self.worker(0, 1, &["--last"])?.end()?;
        let mut events = self
            .recorded
            .events
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut events))
    }

    /// Nothing stays in doubt when everybody is back.
    fn await_no_doubt(&self) -> Outcome<()> {
        let end = Instant::now() + PATIENCE;
        for home in &self.nodes[..HOMES.len()] {
            loop {
                let mut command = Command::new(&self.thorp);
                let status = command.args(["status", &home.http, "--json"]).output()?;
                let status: Value = serde_json::from_slice(&status.stdout)?;
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

impl Recorded {
    fn take(&self, line: &str) {
        // A process that is killed may die within a line.
        let Ok(event) = Event::parse(line) else {
            return;
        };
        self.ended
            .fetch_add(u64::from(event.is_end()), Ordering::Relaxed);
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(event);
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

impl Running {
    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            // It is ours and not waited for: it is there.
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a process, and what it says.
fn start(mut command: Command) -> Outcome<(Running, mpsc::Receiver<String>)> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let running = Running { child, stdin };
    let (sender, lines) = mpsc::channel();
    let stdout = BufReader::new(stdout.ok_or("no standard output")?);
    thread::spawn(move || {
        let mut lines = stdout.lines().map_while(Result::ok);
        lines.try_for_each(|line| sender.send(line).ok())
    });
    Ok((running, lines))
}

fn workload_name(workload: Workload) -> &'static str {
    match workload {
        Workload::Lists => "lists",
        Workload::Registers => "registers",
    }
}
