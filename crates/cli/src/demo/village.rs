//! The demo's village: a home, sites and members, each a process of this program, on sockets in a directory of their own.

use super::figures::Link;
use super::process::{Interrupted, Process};
use super::progress::Progress;
use super::wire::{Answer, Done, Order};
use crate::commands::status;
use crate::failure::Failure;
use std::borrow::BorrowMut;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thorp_net::NodeRole;

/// What all processes of a demo share.
#[derive(Debug)]
pub(super) struct Village {
    program: PathBuf,
    dir: PathBuf,
    logs: PathBuf,
    one_way_ms: u64,
    interrupted: Interrupted,
}

/// A home or a site.
#[derive(Debug)]
pub(super) struct Node {
    process: Process,
    /// Where it listens.
    pub(super) address: String,
    http: String,
}

/// A member, told by lines what to do.
#[derive(Debug)]
pub(super) struct Worker {
    process: Process,
}

impl Village {
    /// Sockets and data go to `dir`, logs to `logs`.
    pub(super) fn new(
        dir: &Path,
        logs: &Path,
        round_trip_ms: u64,
        interrupted: &Interrupted,
    ) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|error| {
            Failure::new(format!("this program is not to be found: {error}"), "")
        })?;
        Ok(Village {
            program,
            dir: dir.to_owned(),
            logs: logs.to_owned(),
            one_way_ms: round_trip_ms / 2,
            interrupted: interrupted.clone(),
        })
    }

    /// Starts the home, which makes the village's authority. What it sends to the `far` ones is delayed.
    pub(super) fn home(&self, far: &[String]) -> Result<Node, Failure> {
        self.home_with(far, &[])
    }

    /// The same with more flags.
    pub(super) fn home_with(&self, far: &[String], more: &[String]) -> Result<Node, Failure> {
        let delays: Vec<String> = far
            .iter()
            .map(|child| format!("--link-delay={child}={}", self.one_way_ms))
            .collect();
        let mut arguments = vec!["home", "--name", HOME];
        arguments.extend(delays.iter().chain(more).map(String::as_str));
        self.node("home", &arguments)
    }

    /// Starts a site. What it sends to the home is delayed, what it sends to its members is not.
    pub(super) fn site(&self, name: &str, home: &Node) -> Result<Node, Failure> {
        self.site_with(name, home, SITE_MEMORY)
    }

    /// A site with so many bytes of memory for pages.
    pub(super) fn site_with(
        &self,
        name: &str,
        home: &Node,
        memory: usize,
    ) -> Result<Node, Failure> {
        let memory = ["--cache-bytes".to_owned(), memory.to_string()];
        self.site_at(name, &home.address, &memory)
    }

    /// A site that reaches the home at an address, with more flags.
    pub(super) fn site_at(&self, name: &str, home: &str, more: &[String]) -> Result<Node, Failure> {
        self.identity(NodeRole::Site, name)?;
        let (delay, home) = (self.one_way_ms.to_string(), format!("{HOME}={home}"));
        let mut arguments = vec!["site", "--name", name, "--home", &home];
        arguments.extend(["--link-delay-ms", &delay]);
        arguments.extend(more.iter().map(String::as_str));
        self.node(name, &arguments)
    }

    /// Starts a member beside its parent, with more flags.
    pub(super) fn member(
        &self,
        name: &str,
        parent: &Node,
        more: &[String],
    ) -> Result<Worker, Failure> {
        self.identity(NodeRole::Member, name)?;
        let mut worker = self.worker_with(name, parent, more)?;
        worker.joined()?;
        Ok(worker)
    }

    /// Starts members, all at once, and waits until they have joined. `far` ones play a wide-area link to their parent.
    pub(super) fn workers(
        &self,
        names: &[String],
        parent: &Node,
        far: bool,
    ) -> Result<Vec<Worker>, Failure> {
        let mut workers = Vec::new();
        for name in names {
            self.identity(NodeRole::Member, name)?;
            workers.push(self.worker(name, parent, far)?);
        }
        for worker in &mut workers {
            worker.joined()?;
        }
        Ok(workers)
    }

    /// Starts one node that joins as a member. It may be in the village elsewhere, too.
    pub(super) fn guest(
        &self,
        role: NodeRole,
        name: &str,
        parent: &Node,
    ) -> Result<Worker, Failure> {
        self.identity(role, name)?;
        let mut worker = self.worker(name, parent, false)?;
        worker.joined()?;
        Ok(worker)
    }

    /// Prints what the home has recorded about rights.
    pub(super) fn audit(&self, operator: &str, home: &Node) -> Result<Vec<String>, Failure> {
        let identity = self.dir.join(operator).join(IDENTITY);
        let arguments = [
            "audit".to_owned(),
            HOME.to_owned(),
            format!("--via={}", home.address),
            format!("--identity={}", identity.display()),
        ];
        let process = self.start("audit", &arguments)?;
        let (status, lines) = process.finish(START_TIMEOUT)?;
        if !status.success() {
            return Err(Failure::new(
                format!("thorp audit ended with {status}"),
                "look at its log",
            ));
        }
        Ok(lines)
    }

    fn worker(&self, name: &str, parent: &Node, far: bool) -> Result<Worker, Failure> {
        let delay = if far { self.one_way_ms } else { 0 };
        self.worker_with(name, parent, &[format!("--link-delay-ms={delay}")])
    }

    fn worker_with(&self, name: &str, parent: &Node, more: &[String]) -> Result<Worker, Failure> {
        let identity = self.dir.join(name).join(IDENTITY);
        let mut arguments = vec![
            "demo-member".to_owned(),
            name.to_owned(),
            format!("--via={}", parent.address),
            format!("--identity={}", identity.display()),
        ];
        arguments.extend_from_slice(more);
        Ok(Worker {
            process: self.start(name, &arguments)?,
        })
    }

    fn node(&self, name: &str, arguments: &[&str]) -> Result<Node, Failure> {
        let address = format!("unix:{}", self.dir.join(format!("{name}.sock")).display());
        let mut all: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        let dir = self.dir.join(name).display().to_string();
        let own = [
            "--dir",
            &dir,
            "--listen",
            &address,
            "--http",
            "127.0.0.1:0",
            UNTIL_STDIN,
        ];
        all.extend(own.map(ToOwned::to_owned));
        let mut process = self.start(name, &all)?;
        let end = Instant::now() + START_TIMEOUT;
        loop {
            let line = process.line(end.saturating_duration_since(Instant::now()))?;
            // The last line of a start, printed when everything listens.
            if let Some(http) = line.strip_prefix(READY) {
                return Ok(Node {
                    process,
                    address,
                    http: http.trim().to_owned(),
                });
            }
        }
    }

    fn identity(&self, role: NodeRole, name: &str) -> Result<(), Failure> {
        let authority = thorp_net::CertificateAuthority::find(self.dir.join("home"));
        let out = self.dir.join(name).join(IDENTITY);
        thorp_net::issue(authority, out, role, name)
            .map(|_| ())
            .map_err(|error| Failure::new(error.to_string(), "run the demo again"))
    }

    fn start(&self, name: &str, arguments: &[String]) -> Result<Process, Failure> {
        let log = self.logs.join(format!("{name}.log"));
        Process::start(name, &self.program, arguments, &log, &self.interrupted)
    }
}

impl Node {
    /// What has crossed this node's edges towards its children so far: of the home, the wide-area links.
    pub(super) fn links_below(&self) -> Result<Link, Failure> {
        status::links_below(&self.http, HTTP_TIMEOUT)
    }

    /// Ends it as a service manager would.
    pub(super) fn stop(self) -> Result<(), Failure> {
        self.process.stop()
    }
}

impl Worker {
    /// Gives an order; the answers come by [`Worker::answer`].
    pub(super) fn order(&mut self, order: &Order) -> Result<(), Failure> {
        let line = serde_json::to_string(order)
            .map_err(|error| Failure::new(format!("an order cannot be written: {error}"), ""))?;
        self.process.tell(&line)
    }

    /// Leaves the village: it does so when there are no more orders.
    pub(super) fn stop(self) -> Result<(), Failure> {
        let name = self.process.name().to_owned();
        match self.process.finish(LEAVE_TIMEOUT)? {
            (status, _) if status.success() => Ok(()),
            (status, _) => Err(Failure::new(
                format!("{name} ended with {status}"),
                "look at its log",
            )),
        }
    }

    /// Waits until it has joined.
    fn joined(&mut self) -> Result<(), Failure> {
        match self.answer(START_TIMEOUT)? {
            Answer::Joined => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    fn answer(&mut self, timeout: Duration) -> Result<Answer, Failure> {
        let line = self.process.line(timeout)?;
        self.understand(&line)
    }

    fn answer_now(&mut self) -> Result<Option<Answer>, Failure> {
        match self.process.line_now()? {
            Some(line) => self.understand(&line).map(Some),
            None => Ok(None),
        }
    }

    fn understand(&self, line: &str) -> Result<Answer, Failure> {
        let name = self.process.name();
        match serde_json::from_str(line) {
            Ok(Answer::Failed { why }) => Err(Failure::new(format!("{name}: {why}"), "")),
            Ok(answer) => Ok(answer),
            Err(_) => Err(Failure::new(format!("{name} said {line:?}"), "")),
        }
    }

    fn unexpected(&self, answer: &Answer) -> Failure {
        Failure::new(format!("{} answered {answer:?}", self.process.name()), "")
    }
}

/// Gives each worker its order, all at once, and waits for all of them.
pub(super) fn together(
    workers: &mut [impl BorrowMut<Worker>],
    orders: &[Order],
    progress: &mut Progress,
) -> Result<Vec<Done>, Failure> {
    order_all(workers, orders)?;
    await_all(workers, progress)
}

/// Gives each worker its order.
pub(super) fn order_all(
    workers: &mut [impl BorrowMut<Worker>],
    orders: &[Order],
) -> Result<(), Failure> {
    let mut each = workers.iter_mut().zip(orders);
    each.try_for_each(|(worker, order)| worker.borrow_mut().order(order))
}

/// Waits until each worker has done what it was ordered.
pub(super) fn await_all(
    workers: &mut [impl BorrowMut<Worker>],
    progress: &mut Progress,
) -> Result<Vec<Done>, Failure> {
    let end = Instant::now() + WORK_TIMEOUT;
    let mut done: Vec<Option<Done>> = workers.iter().map(|_| None).collect();
    while done.iter().any(Option::is_none) {
        for (worker, place) in workers.iter_mut().zip(&mut done) {
            take_answers(worker.borrow_mut(), place, progress)?;
        }
        if Instant::now() >= end {
            let what = format!("the members took longer than {WORK_TIMEOUT:?}");
            return Err(Failure::new(
                what,
                "look at their logs, and at the load of this machine",
            ));
        }
        std::thread::sleep(LOOK);
    }
    Ok(done.into_iter().flatten().collect())
}

/// Takes what a worker has said, up to the end of its work.
fn take_answers(
    worker: &mut Worker,
    place: &mut Option<Done>,
    progress: &mut Progress,
) -> Result<(), Failure> {
    while place.is_none() {
        match worker.answer_now()? {
            None => return Ok(()),
            Some(Answer::Progress { what }) => {
                progress.at(&format!("{}: {what}", worker.process.name()));
            }
            Some(Answer::Done(done)) => *place = Some(*done),
            Some(other) => return Err(worker.unexpected(&other)),
        }
    }
    Ok(())
}

/// The home's name.
pub(super) const HOME: &str = "alps";
/// What a home or site prints when it is ready, before its HTTP address.
pub(crate) const READY: &str = "ready, http ";
const IDENTITY: &str = crate::commands::home::IDENTITY_DIR;
const UNTIL_STDIN: &str = "--until-stdin-closes";
/// Nothing: then every page that a neighbour has comes from the neighbour, and waiting for the site is waiting for the
/// home.
const SITE_MEMORY: usize = 0;
const START_TIMEOUT: Duration = Duration::from_secs(20);
const LEAVE_TIMEOUT: Duration = Duration::from_secs(15);
const WORK_TIMEOUT: Duration = Duration::from_secs(240);
const HTTP_TIMEOUT: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(2);
