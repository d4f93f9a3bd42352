//! A node at one moment, and what it did since the one before.

use crate::commands::node_status::{Source, Status};
use crate::failure::Failure;
use std::time::Instant;

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

impl Snapshot {
    pub(super) fn of(source: &Source) -> Result<Self, Failure> {
        let status = source.look()?;
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::time::Duration;

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
