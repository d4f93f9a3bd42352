//! What is shown of a node: as lines, as a document, and on the screen.

use super::snapshot::{Rates, Snapshot};
use crate::commands::node_status::{Child, Status, Storage};
use crate::text::{Side, Table, bytes, percent};
use std::collections::VecDeque;

/// A node over the last minute.
#[derive(Debug)]
pub(super) struct View {
    pub(super) node: String,
    pub(super) last: Option<Snapshot>,
    pub(super) rates: Rates,
    /// Commits a second, the newest last.
    pub(super) commits: VecDeque<u64>,
    /// Why it does not answer now.
    pub(super) lost: Option<String>,
}

impl View {
    pub(super) fn of(node: &str) -> Self {
        View {
            node: node.to_owned(),
            last: None,
            rates: Rates::default(),
            commits: VecDeque::new(),
            lost: None,
        }
    }

    pub(super) fn add(&mut self, snapshot: Snapshot) {
        if let Some(before) = &self.last {
            self.rates = Rates::between(before, &snapshot);
            if self.commits.len() == SECONDS {
                self.commits.pop_front();
            }
            // The graph multiplies it.
            let commits = self.rates.commits.round() as u64;
            self.commits.push_back(commits.min(u64::from(u32::MAX)));
        }
        self.lost = None;
        self.last = Some(snapshot);
    }

    /// Above the tables.
    pub(super) fn head(&self) -> Vec<String> {
        let Some(Snapshot { status, .. }) = &self.last else {
            let node = &self.node;
            let why = self.lost.as_deref().unwrap_or("waiting for an answer");
            return vec![clean(&format!("{node}: {why}"))];
        };
        let children = match status.children.len() {
            1 => "1 child".to_owned(),
            count => format!("{count} children"),
        };
        let mut lines = vec![format!("{}, {children}", status.headline())];
        if let Some(why) = &self.lost {
            lines.push(format!("{NO_ANSWER}: {why}"));
        }
        lines.extend(status.reasons_and_homes());
        lines.extend(status.storage.as_ref().map(Storage::line));
        lines.push(self.per_second(status));
        lines.iter().map(|line| clean(line)).collect()
    }

    fn per_second(&self, status: &Status) -> String {
        let Rates {
            commits,
            pages,
            bytes_down,
            bytes_up,
        } = self.rates;
        let near = percent(status.pages.near(), status.pages.all());
        let bytes = |rate: f64| bytes(rate.round() as u64);
        let mut line = format!(
            "a second: {commits:.0} commits, {pages:.0} pages ({near} of all from near), {} below",
            bytes(bytes_down)
        );
        if status.role != "home" {
            line += &format!(", {} above", bytes(bytes_up));
        }
        line
    }

    /// Who is connected below.
    pub(super) fn children(&self) -> Vec<[String; COLUMNS]> {
        let children = self.last.iter().flat_map(|last| &last.status.children);
        children.map(row).collect()
    }

    /// As lines.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = self.head();
        let children = self.children();
        if !children.is_empty() {
            let mut table = Table::new(&HEADINGS);
            for child in children {
                table.row(child.to_vec());
            }
            lines.push(String::new());
            lines.push(table.render());
        }
        lines
    }

    pub(super) fn as_json(&self) -> serde_json::Value {
        let empty = Status::default();
        let status = self.last.as_ref().map_or(&empty, |last| &last.status);
        let storage = status.storage.as_ref().map(|storage| {
            serde_json::json!({
                "bytes": storage.bytes,
                "limit_bytes": storage.limit_bytes,
                "room": storage.room,
                "free_bytes": storage.lack.as_ref().map(|lack| lack.free_bytes),
                "needed_bytes": storage.lack.as_ref().map(|lack| lack.needed_bytes),
            })
        });
        let homes = status.homes.iter().map(|home| {
            serde_json::json!({
                "name": home.name,
                "position": home.position,
                "connected": home.connected,
            })
        });
        let children = status.children.iter().map(|child| {
            serde_json::json!({
                "edge": child.edge,
                "name": child.name,
                "kind": child.kind,
                "connected_s": child.connected_s,
                "lag": child.lag(),
                "queued_bytes": child.queued_bytes,
                "bytes": child.traffic.both(),
                "stuck": child.stuck,
            })
        });
        serde_json::json!({
            "node": self.node,
            "role": status.role,
            "name": status.name,
            "village": status.village,
            "version": status.version,
            "uptime_s": status.uptime_s,
            "well": status.health.ok,
            "reasons": status.health.reasons,
            "homes": homes.collect::<Vec<_>>(),
            "children": children.collect::<Vec<_>>(),
            "storage": storage,
            "pages": status.pages.all(),
            "pages_near": status.pages.near(),
            "commits_per_second": self.rates.commits,
            "pages_per_second": self.rates.pages,
            "bytes_down_per_second": self.rates.bytes_down,
            "bytes_up_per_second": self.rates.bytes_up,
        })
    }
}

fn row(child: &Child) -> [String; COLUMNS] {
    [
        clean(&child.name),
        clean(&child.kind),
        child.connected(),
        child.lag().to_string(),
        bytes(child.queued_bytes),
        bytes(child.traffic.both()),
        child.state(),
    ]
}

/// Others give names: a control character among them would command the terminal.
fn clean(text: &str) -> String {
    text.replace(char::is_control, "?")
}

pub(super) const COLUMNS: usize = 7;
pub(super) const HEADINGS: [(&str, Side); COLUMNS] = [
    ("child", Side::Left),
    ("kind", Side::Left),
    ("connected", Side::Right),
    ("lag", Side::Right),
    ("queued", Side::Right),
    ("traffic", Side::Right),
    ("", Side::Left),
];
/// It has answered before.
pub(super) const NO_ANSWER: &str = "NO ANSWER";
/// How many seconds are shown of what is gone.
const SECONDS: usize = 120;

#[cfg(test)]
mod tests {
    use super::super::snapshot::tests::snapshot;
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn lines_have_the_node_its_rates_and_its_children() {
        let begin = Instant::now();
        let mut view = View::of("127.0.0.1:7430");
        assert_eq!(view.lines(), ["127.0.0.1:7430: waiting for an answer"]);
        view.add(snapshot(begin, 10, 0));
        view.add(snapshot(begin + Duration::from_secs(1), 25, 2048));
        assert_eq!(view.commits, [15]);
        let lines = view.lines().join("\n");
        for words in [
            "home alps: well, up 0 s, version 0.1.0, 1 child",
            "home alps at position 25",
            "store: 4.0 KiB of at most 8.0 KiB",
            "a second: 15 commits, 0 pages (75.0% of all from near), 2.0 KiB below",
            "an?na",
        ] {
            assert!(lines.contains(words), "{words}: {lines}");
        }
        view.lost = Some("nothing came".to_owned());
        assert!(view.lines().join("\n").contains("NO ANSWER: nothing came"));
    }
}
