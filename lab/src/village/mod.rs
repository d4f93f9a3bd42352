//! A village of real processes over a network of the laboratory: a home, sites, and members that obey.

mod process;

pub use process::Process;

use crate::Outcome;
use crate::net::Wan;
use crate::stop::Stop;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// The port that homes and sites listen at: each has an address of its own.
const PORT: u16 = 7401;
/// And who answers bare questions.
const BARE_PORT: u16 = 7402;
/// The name of the home, as in `thorp://alps/..`.
pub const HOME: &str = "alps";
/// The segment with OO7's module.
pub const SEGMENT: &str = "thorp://alps/oo7";
/// The longest that a start takes.
const START: Duration = Duration::from_secs(60);
/// The longest that one piece of work takes: the slowest peer goes through a small module in half an hour, over 40 ms.
const WORK: Duration = Duration::from_secs(3 * 3600);

/// Where the programs are.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `thorp`.
    pub thorp: PathBuf,
    /// `thorp-lab-worker`.
    pub worker: PathBuf,
}

/// How a member behaves.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Bytes of its cache.
    pub cache_bytes: usize,
    /// Pages fetched with one that is waited for, at most.
    pub fetch_ahead: Option<usize>,
    /// Validates at the home also what was only read.
    pub strict: bool,
}

/// Whether a site remembers pages itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SiteMemory {
    /// As BuddyCache's redirector: every page comes from a neighbour or from the home.
    None,
    /// As much as a site has that nobody has told otherwise.
    Usual,
}

/// A village. Its processes end with it, and its files go.
pub struct Village<'a> {
    wan: &'a Wan,
    programs: Programs,
    stop: Stop,
    // Processes before the directory that they write into.
    sites: Vec<Process>,
    home: Option<Process>,
    dir: TempDir,
}

impl<'a> Village<'a> {
    /// Starts the home in the namespace of that spoke.
    pub fn start(wan: &'a Wan, spoke: &str, programs: &Programs, stop: &Stop) -> Outcome<Self> {
        let mut village = Village {
            wan,
            programs: programs.clone(),
            stop: stop.clone(),
            sites: Vec::new(),
            home: None,
            dir: TempDir::with_prefix("thorp-lab-")?,
        };
        let dir = village.path(HOME).display().to_string();
        let arguments = ["home", "--name", HOME, "--dir", &dir];
        village.home = Some(village.server(spoke, HOME, &arguments)?);
        Ok(village)
    }

    /// Starts a site in the namespace of that spoke, below the home.
    pub fn site(&mut self, spoke: &str, home: &str, memory: SiteMemory) -> Outcome<()> {
        let name = format!("site-{spoke}");
        let identity = self.identity("site", &name)?;
        let above = format!("{HOME}={}", self.address(home)?);
        let dir = self.path(&format!("{name}-dir")).display().to_string();
        let mut arguments = vec![
            "site",
            "--name",
            &name,
            "--dir",
            &dir,
            "--identity",
            &identity,
            "--home",
            &above,
        ];
        if memory == SiteMemory::None {
            arguments.extend(["--cache-bytes", "0"]);
        }
        let site = self.server(spoke, &name, &arguments)?;
        self.sites.push(site);
        Ok(())
    }

    /// Ends all sites, with what they remember. Their members should have gone before.
    pub fn end_sites(&mut self) {
        self.sites.clear();
    }

    fn server(&self, spoke: &str, name: &str, arguments: &[&str]) -> Outcome<Process> {
        let listen = format!("0.0.0.0:{PORT}");
        let common = ["--listen", &listen, "--http", "off", "--until-stdin-closes"];
        let arguments: Vec<String> = [arguments, &common]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect();
        let namespace = self.wan.namespace(spoke)?;
        let logs = self.dir.path();
        let mut server = Process::start(
            namespace,
            name,
            &self.programs.thorp,
            &arguments,
            logs,
            &self.stop,
        )?;
        server.hear("ready", START)?;
        Ok(server)
    }

    /// A member in the namespace of a spoke, joined at the home or site of another one.
    pub fn member(&self, spoke: &str, at: &str, name: &str, manner: Manner) -> Outcome<Process> {
        let mut arguments = vec![
            "--via".to_owned(),
            self.address(at)?,
            "--identity".to_owned(),
            self.identity("member", name)?,
            "--name".to_owned(),
            name.to_owned(),
            "--segment".to_owned(),
            SEGMENT.to_owned(),
            "--cache-bytes".to_owned(),
            manner.cache_bytes.to_string(),
        ];
        if let Some(pages) = manner.fetch_ahead {
            arguments.extend(["--fetch-ahead".to_owned(), pages.to_string()]);
        }
        if manner.strict {
            arguments.push("--strict".to_owned());
        }
        let namespace = self.wan.namespace(spoke)?;
        let logs = self.dir.path();
        let worker = &self.programs.worker;
        let mut member = Process::start(namespace, name, worker, &arguments, logs, &self.stop)?;
        member.hear("{\"ready\"", START)?;
        Ok(member)
    }

    /// Somebody who answers each question with a page, in the namespace of a spoke: nothing of Thorp is above the transport.
    pub fn answerer(&self, spoke: &str) -> Outcome<Process> {
        let listen = self.address_at(spoke, BARE_PORT)?;
        self.bare(spoke, "answerer", ["answer", "--listen", &listen])
    }

    /// Somebody who asks that one.
    pub fn asker(&self, spoke: &str, at: &str, name: &str) -> Outcome<Process> {
        let to = self.address_at(at, BARE_PORT)?;
        self.bare(spoke, name, ["ask", "--to", &to])
    }

    fn bare(&self, spoke: &str, name: &str, words: [&str; 3]) -> Outcome<Process> {
        let mut arguments: Vec<String> = words.map(str::to_owned).to_vec();
        arguments.extend(["--identity".to_owned(), self.identity("member", name)?]);
        let namespace = self.wan.namespace(spoke)?;
        let (worker, logs) = (&self.programs.worker, self.dir.path());
        let mut process = Process::start(namespace, name, worker, &arguments, logs, &self.stop)?;
        process.hear("{\"ready\"", START)?;
        Ok(process)
    }

    fn address(&self, spoke: &str) -> Outcome<String> {
        self.address_at(spoke, PORT)
    }

    fn address_at(&self, spoke: &str, port: u16) -> Outcome<String> {
        Ok(format!(
            "tcp://{}:{port}",
            self.wan.namespace(spoke)?.address()
        ))
    }

    /// The directory of a certificate, which is made if it is not there.
    fn identity(&self, role: &str, name: &str) -> Outcome<String> {
        let out = self.path(&format!("{name}-identity"));
        if out.is_dir() {
            return Ok(out.display().to_string());
        }
        let made = Command::new(&self.programs.thorp)
            .args(["invite", name, "--role", role, "--dir"])
            .arg(self.path(HOME))
            .arg("--out")
            .arg(&out)
            .output()?;
        if !made.status.success() {
            let why = String::from_utf8_lossy(&made.stderr);
            return Err(format!("no certificate for {name}: {}", why.trim()).into());
        }
        Ok(out.display().to_string())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Where what went wrong may be told.
    pub fn logs(&self) -> &Path {
        self.dir.path()
    }
}

/// Tells all of them the same at once, and waits for every answer.
pub fn together(members: &mut [Process], order: impl Fn(usize) -> String) -> Outcome<Vec<Value>> {
    for (number, member) in members.iter_mut().enumerate() {
        member.tell(&order(number))?;
    }
    members.iter_mut().map(answer).collect()
}

/// The answer of one.
pub fn answer(member: &mut Process) -> Outcome<Value> {
    let line = member.line(WORK)?;
    let answer: Value = serde_json::from_str(&line)?;
    match answer.get("error") {
        Some(why) => Err(format!("a member could not do it: {why}").into()),
        None => Ok(answer),
    }
}
