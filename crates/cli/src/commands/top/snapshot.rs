//! A node at one moment, and what it did since the one before.

use crate::commands::status::{not_a_node, operators_only};
use crate::failure::Failure;
use crate::http;
use serde::Deserialize;
use std::path::Path;
use std::time::{Duration, Instant};
use thorp_net::Identity;

/// What a node tells of itself. What an older or newer one does not tell is left out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    pub(super) role: String,
    pub(super) name: String,
    pub(super) village: String,
    pub(super) version: String,
    pub(super) uptime_s: u64,
    pub(super) health: Health,
    pub(super) homes: Vec<Home>,
    pub(super) children: Vec<Child>,
    pub(super) pages: Pages,
    pub(super) up: Traffic,
    pub(super) down: Traffic,
    pub(super) storage: Option<Storage>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Health {
    pub(super) ok: bool,
    pub(super) reasons: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Home {
    pub(super) name: String,
    pub(super) position: u64,
    pub(super) connected: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Child {
    pub(super) edge: u64,
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) homes: Vec<AtHome>,
    pub(super) queued_bytes: u64,
    pub(super) traffic: Traffic,
    pub(super) connected_s: u64,
    pub(super) stuck: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AtHome {
    pub(super) lag: u64,
}

/// Requests for pages.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pages {
    from_memory: u64,
    redirected: u64,
    joined: u64,
    from_parent: u64,
    from_disk: u64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Traffic {
    bytes_sent: u64,
    bytes_received: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Storage {
    pub(super) bytes: u64,
    pub(super) limit_bytes: Option<u64>,
    pub(super) room: bool,
    pub(super) lack: Option<Lack>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Lack {
    pub(super) free_bytes: u64,
    pub(super) needed_bytes: u64,
}

/// A node at one moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) at: Instant,
    pub(super) status: Status,
}

/// What a node did in each second between two moments.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Rates {
    /// Commits at its homes, as far as they have come here.
    pub(super) commits: f64,
    /// Pages that were asked for.
    pub(super) pages: f64,
    /// Bytes to and from children.
    pub(super) bytes_down: f64,
    /// Bytes to and from parents.
    pub(super) bytes_up: f64,
}

/// Where to ask, and as whom.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) node: String,
    identity: Option<Identity>,
    timeout: Duration,
}

impl Source {
    pub(super) fn new(
        node: String,
        identity: Option<&Path>,
        timeout: Duration,
    ) -> Result<Self, Failure> {
        let identity = identity.map(Identity::load).transpose();
        let identity = identity.map_err(|error| {
            let todo = "give the directory of an operator's certificate and key";
            Failure::new(error.to_string(), todo)
        })?;
        if identity.is_none() && node.starts_with(http::HTTPS) {
            return Err(operators_only(&node));
        }
        Ok(Source {
            node,
            identity,
            timeout,
        })
    }

    pub(super) fn look(&self) -> Result<Snapshot, Failure> {
        let body = match &self.identity {
            Some(operator) => http::get_as(operator, &self.node, PATH, self.timeout),
            None => http::get(&self.node, PATH, self.timeout),
        }?;
        let status = serde_json::from_str(&body).map_err(|error| not_a_node(&error))?;
        Ok(Snapshot {
            at: Instant::now(),
            status,
        })
    }
}

impl Rates {
    /// Counts that fell are those of another process: it has begun anew.
    pub(super) fn between(before: &Snapshot, now: &Snapshot) -> Self {
        let seconds = now.at.duration_since(before.at).as_secs_f64();
        if seconds <= 0. {
            return Rates::default();
        }
        let (old, new) = (&before.status, &now.status);
        let rate = |old: u64, new: u64| new.saturating_sub(old) as f64 / seconds;
        let commits = new.homes.iter().filter_map(|home| {
            let mut known = old.homes.iter();
            let same = known.find(|known| known.name == home.name)?;
            Some(rate(same.position, home.position))
        });
        Rates {
            commits: commits.sum(),
            pages: rate(old.pages.all(), new.pages.all()),
            bytes_down: rate(old.down.both(), new.down.both()),
            bytes_up: rate(old.up.both(), new.up.both()),
        }
    }
}

impl Pages {
    pub(super) fn all(&self) -> u64 {
        self.near() + self.from_parent + self.from_disk
    }

    /// Those that cost nothing further up.
    pub(super) fn near(&self) -> u64 {
        self.from_memory + self.redirected + self.joined
    }
}

impl Traffic {
    pub(super) fn both(&self) -> u64 {
        self.bytes_sent + self.bytes_received
    }
}

impl Child {
    pub(super) fn lag(&self) -> u64 {
        self.homes.iter().map(|at| at.lag).max().unwrap_or(0)
    }
}

const PATH: &str = "/status";

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A home at a position that has served so many bytes.
    pub(in super::super) fn snapshot(at: Instant, position: u64, bytes: u64) -> Snapshot {
        let status = serde_json::json!({
            "role": "home",
            "name": "alps",
            "version": "0.1.0",
            "health": {"ok": true, "reasons": []},
            "homes": [{"name": "alps", "position": position, "connected": true}],
            "children": [{"name": "an\u{1b}na", "kind": "member", "connected_s": 3}],
            "pages": {"from_memory": 3, "from_disk": 1},
            "down": {"bytes_sent": bytes},
            "storage": {"bytes": 4096, "limit_bytes": 8192, "room": true},
        });
        Snapshot {
            at,
            status: serde_json::from_value(status).unwrap(),
        }
    }

    #[test]
    fn rates_are_those_of_the_time_between() {
        let begin = Instant::now();
        let later = begin + Duration::from_secs(2);
        let (old, new) = (snapshot(begin, 10, 1000), snapshot(later, 30, 5000));
        let rates = Rates::between(&old, &new);
        assert_eq!((rates.commits, rates.bytes_down), (10., 2000.));
        assert_eq!((rates.pages, rates.bytes_up), (0., 0.));
        let began_anew = Rates::between(&new, &snapshot(later + Duration::from_secs(1), 5, 0));
        assert_eq!(began_anew, Rates::default());
        assert_eq!(Rates::between(&new, &new), Rates::default());
    }
}
