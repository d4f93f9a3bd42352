//! The report of a home or a site at `/status`, and the words for it.

use crate::failure::{Code, Failure};
use crate::http;
use crate::text::{bytes, time};
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;
use thorp_net::Identity;

/// Where to ask, as whom, and how long to wait.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) node: String,
    /// Asks by TLS a node that answers operators only.
    pub(crate) operator: Option<Identity>,
    pub(crate) within: Duration,
}

impl Source {
    /// The answer, as it came.
    pub(crate) fn ask(&self) -> Result<String, Failure> {
        let node = &*self.node;
        match &self.operator {
            Some(operator) => http::get_as(operator, node, PATH, self.within),
            None if node.starts_with(http::HTTPS) => Err(operators_only(node)),
            None => http::get(node, PATH, self.within),
        }
    }

    pub(crate) fn look(&self) -> Result<Status, Failure> {
        Status::of(&self.ask()?)
    }
}

/// The certificate and key of an operator, if a directory was named.
pub(crate) fn operator(dir: Option<&Path>) -> Result<Option<Identity>, Failure> {
    let loaded = dir.map(Identity::load).transpose();
    loaded.map_err(|error| {
        let todo = format!("give the directory of an operator's certificate and key; {INVITE}");
        Failure::new(error.to_string(), todo)
    })
}

fn operators_only(node: &str) -> Failure {
    let todo = format!("give an operator's certificate with --identity; {INVITE}");
    Failure::new(format!("{node} answers operators only"), todo).with(Code::Usage)
}

/// The report of a node. A field that an older or newer node does not send is empty. Only the role is required: other
/// servers answer with JSON, too.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Status {
    pub(crate) role: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) village: String,
    #[serde(default)]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) uptime_s: u64,
    #[serde(default)]
    pub(crate) health: Health,
    #[serde(default)]
    pub(crate) homes: Vec<Home>,
    #[serde(default)]
    pub(crate) parents: Vec<Parent>,
    #[serde(default)]
    pub(crate) children: Vec<Child>,
    #[serde(default)]
    pub(crate) pages: Pages,
    #[serde(default)]
    pub(crate) up: Traffic,
    #[serde(default)]
    pub(crate) down: Traffic,
    #[serde(default)]
    pub(crate) storage: Option<Storage>,
    #[serde(default)]
    pub(crate) agreement: Option<Agreement>,
    #[serde(default)]
    pub(crate) privileges: Privileges,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Health {
    pub(crate) ok: bool,
    pub(crate) reasons: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Home {
    pub(crate) name: String,
    pub(crate) position: u64,
    pub(crate) connected: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Parent {
    pub(crate) name: String,
    pub(crate) addresses: Vec<String>,
    pub(crate) connected: bool,
    #[serde(default = "yes")]
    pub(crate) wanted: bool,
    pub(crate) reached_at: Option<String>,
    pub(crate) lost_for_s: Option<u64>,
    pub(crate) why: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Child {
    pub(crate) edge: u64,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) homes: Vec<AtHome>,
    pub(crate) queued_bytes: u64,
    pub(crate) traffic: Traffic,
    pub(crate) connected_s: u64,
    pub(crate) stuck: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AtHome {
    pub(crate) acknowledged: u64,
    pub(crate) lag: u64,
}

/// Requests for pages.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pages {
    pub(crate) from_memory: u64,
    pub(crate) redirected: u64,
    pub(crate) joined: u64,
    pub(crate) from_parent: u64,
    pub(crate) refetched: u64,
    pub(crate) refetches_used: u64,
    pub(crate) refetches_wasted: u64,
    pub(crate) fetched_ahead: u64,
    pub(crate) ahead_used: u64,
    pub(crate) ahead_wasted: u64,
    pub(crate) from_disk: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Traffic {
    pub(crate) bytes_sent: u64,
    pub(crate) frames_sent: u64,
    pub(crate) bytes_received: u64,
    pub(crate) frames_received: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Storage {
    pub(crate) bytes: u64,
    pub(crate) limit_bytes: Option<u64>,
    pub(crate) room: bool,
    pub(crate) lack: Option<Lack>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Lack {
    pub(crate) free_bytes: u64,
    pub(crate) needed_bytes: u64,
}

/// What a home shares with others.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Agreement {
    pub(crate) in_doubt: u64,
    pub(crate) oldest_s: f64,
    pub(crate) waits_for: Vec<WaitsFor>,
    pub(crate) asked: u64,
    pub(crate) resolved_by_member: u64,
    pub(crate) resolved_by_homes: u64,
    pub(crate) resolved_by_operators: u64,
    pub(crate) ended_otherwise: u64,
}

/// What a node has granted to those below, and who waits because of that.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Privileges {
    pub(crate) write_leases: u64,
    pub(crate) read_leases: u64,
    pub(crate) pulls: u64,
    pub(crate) locks: Option<u64>,
    pub(crate) lock_waiters: Option<u64>,
    pub(crate) answers_withheld: Option<u64>,
    pub(crate) writers_waited_s: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WaitsFor {
    pub(crate) home: u32,
    pub(crate) reached: bool,
}

impl Status {
    /// Reads an answer.
    pub(crate) fn of(body: &str) -> Result<Self, Failure> {
        serde_json::from_str(body).map_err(|error| not_a_node(&error))
    }

    /// Who it is, and whether it is well.
    pub(crate) fn headline(&self) -> String {
        let health = match self.health.ok {
            true => "well",
            false => NOT_WELL,
        };
        let up = match self.uptime_s {
            // It is whole seconds.
            seconds @ 0..60 => format!("{seconds} s"),
            seconds => time(Duration::from_secs(seconds)),
        };
        let (role, name, version) = (&self.role, &self.name, &self.version);
        format!("{role} {name}: {health}, up {up}, version {version}")
    }

    /// What is below its headline in any case: why it is not well, and how far its homes are.
    pub(crate) fn reasons_and_homes(&self) -> impl Iterator<Item = String> {
        let reasons = self.health.reasons.iter();
        let reasons = reasons.map(|reason| format!("{NOT_WELL}: {reason}"));
        reasons.chain(self.homes.iter().map(Home::line))
    }
}

impl Home {
    fn line(&self) -> String {
        let state = match self.connected {
            true => String::new(),
            false => format!(", its stream {NO_STREAM}"),
        };
        format!("home {} at position {}{state}", self.name, self.position)
    }
}

impl Child {
    /// Positions that it is behind, of the home where these are most.
    pub(crate) fn lag(&self) -> u64 {
        self.homes.iter().map(|at| at.lag).max().unwrap_or(0)
    }

    pub(crate) fn connected(&self) -> String {
        format!("{} s", self.connected_s)
    }

    /// A word if it needs somebody's look.
    pub(crate) fn state(&self) -> String {
        match self.stuck {
            true => "STUCK".to_owned(),
            false => String::new(),
        }
    }
}

// Whatever answers gives the numbers: their sums may be too large.
impl Pages {
    pub(crate) fn all(&self) -> u64 {
        let near = self.near().saturating_add(self.from_parent);
        near.saturating_add(self.from_disk)
    }

    /// Those that cost nothing further up.
    pub(crate) fn near(&self) -> u64 {
        let others = self.redirected.saturating_add(self.joined);
        self.from_memory.saturating_add(others)
    }
}

impl Traffic {
    pub(crate) fn both(&self) -> u64 {
        self.bytes_sent.saturating_add(self.bytes_received)
    }
}

impl Privileges {
    /// Nothing, at a node that has granted nothing and for which nobody has waited.
    pub(crate) fn line(&self) -> Option<String> {
        let mut parts = Vec::new();
        let mut say = |count: u64, one: &str, several: &str| match count {
            0 => {}
            1 => parts.push(format!("1 {one}")),
            count => parts.push(format!("{count} {several}")),
        };
        say(self.write_leases, "lease to write", "leases to write");
        say(self.read_leases, "lease to read", "leases to read");
        say(self.pulls, "hard read waits", "hard reads wait");
        say(self.locks.unwrap_or(0), "lock", "locks");
        let waiters = self.lock_waiters.unwrap_or(0);
        say(waiters, "session waits for one", "sessions wait for one");
        let withheld = self.answers_withheld.unwrap_or(0);
        say(
            withheld,
            "answer waits for readers",
            "answers wait for readers",
        );
        if let Some(seconds) = self.writers_waited_s.filter(|seconds| *seconds > 0.0) {
            parts.push(format!("writers have waited {seconds:.1} s for readers"));
        }
        let is_some = !parts.is_empty();
        is_some.then(|| format!("privileges: {}", parts.join(", ")))
    }
}

impl Storage {
    pub(crate) fn line(&self) -> String {
        let limit = match self.limit_bytes {
            Some(limit) => format!(" of at most {}", bytes(limit)),
            None => String::new(),
        };
        let room = match &self.lack {
            Some(lack) => {
                let (free, needed) = (bytes(lack.free_bytes), bytes(lack.needed_bytes));
                format!(", {FULL}: {free} free, {needed} needed")
            }
            None if self.room => String::new(),
            None => format!(", {FULL}: no commits are taken"),
        };
        format!("store: {}{limit}{room}", bytes(self.bytes))
    }
}

/// Of a parent, if an older node does not send it.
fn yes() -> bool {
    true
}

pub(crate) fn not_a_node(error: &serde_json::Error) -> Failure {
    let todo = "check that this is the --http address of a home or a site: the last line that it printed when it started";
    Failure::new(format!("the answer is not a node's status: {error}"), todo)
}

pub(crate) const PATH: &str = "/status";
const INVITE: &str = "`thorp invite NAME --role operator --out DIR` makes one";

/// Words in lines that somebody should see.
pub(crate) const NOT_WELL: &str = "NOT WELL";
pub(crate) const FULL: &str = "FULL";
pub(crate) const NO_STREAM: &str = "does not come in";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_without_a_role_is_no_node() {
        for body in ["{}", "{\"name\": \"alps\"}", "[]", "hello"] {
            let failure = Status::of(body).unwrap_err();
            assert!(failure.what().contains("not a node's status"), "{failure}");
        }
        let status = Status::of("{\"role\": \"site\", \"later\": 1}").unwrap();
        assert_eq!(status.headline(), "site : NOT WELL, up 0 s, version ");
    }

    #[test]
    fn privileges_are_told_where_there_are_some() {
        let mut privileges = Privileges::default();
        assert_eq!(privileges.line(), None);
        privileges.write_leases = 2;
        privileges.locks = Some(1);
        privileges.lock_waiters = Some(1);
        privileges.answers_withheld = Some(0);
        privileges.writers_waited_s = Some(1.25);
        let line = "privileges: 2 leases to write, 1 lock, 1 session waits for one, writers have waited 1.2 s for readers";
        assert_eq!(privileges.line().as_deref(), Some(line));
    }

    #[test]
    fn a_store_says_whether_it_is_full() {
        let mut storage = Storage {
            bytes: 4096,
            limit_bytes: Some(8192),
            room: true,
            lack: None,
        };
        assert_eq!(storage.line(), "store: 4.0 KiB of at most 8.0 KiB");
        storage.room = false;
        assert!(storage.line().ends_with(", FULL: no commits are taken"));
        storage.lack = Some(Lack {
            free_bytes: 48 << 20,
            needed_bytes: 52 << 20,
        });
        let words = ", FULL: 48.0 MiB free, 52.0 MiB needed";
        assert!(storage.line().ends_with(words));
    }
}
