//! A configuration printed as TOML.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use thorp_net::Address;
use thorp_server::{Bytes, ChildDelay, HttpAt, HttpFor, LinkLimits, LogConfig, LogFormat};

/// TOML of what homes and sites share.
pub(super) struct Toml(pub(super) String);

impl Toml {
    pub(super) fn text(&mut self, key: &str, value: &str) {
        // A JSON string is a TOML string.
        let quoted = serde_json::Value::from(value).to_string();
        let _ = writeln!(self.0, "{key} = {quoted}");
    }

    pub(super) fn path(&mut self, key: &str, value: Option<&Path>) {
        if let Some(path) = value {
            self.text(key, &path.display().to_string());
        }
    }

    pub(super) fn listen(
        &mut self,
        listen: &[Address],
        (http, whom): (Option<SocketAddr>, HttpFor),
    ) {
        self.addresses("listen", listen);
        self.text("http", &HttpAt(http).to_string());
        self.text("http_for", whom.as_str());
    }

    pub(super) fn number(&mut self, key: &str, value: u64) {
        let _ = writeln!(self.0, "{key} = {value}");
    }

    pub(super) fn flag(&mut self, key: &str, value: bool) {
        let _ = writeln!(self.0, "{key} = {value}");
    }

    pub(super) fn size(&mut self, key: &str, value: Bytes) {
        self.text(key, &value.to_string());
    }

    pub(super) fn texts(&mut self, key: &str, all: &[String]) {
        let _ = writeln!(self.0, "{key} = {}", serde_json::Value::from(all));
    }

    pub(super) fn addresses(&mut self, key: &str, all: &[Address]) {
        let texts: Vec<String> = all.iter().map(ToString::to_string).collect();
        let _ = writeln!(self.0, "{key} = {}", serde_json::Value::from(texts));
    }

    pub(super) fn table(&mut self, name: &str) {
        let _ = writeln!(self.0, "\n{name}");
    }

    pub(super) fn log(&mut self, log: &LogConfig) {
        self.table("[log]");
        self.text("level", &log.level);
        let format = match log.format {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        };
        self.text("format", format);
    }

    pub(super) fn link(&mut self, link: &LinkLimits, delays: &[ChildDelay]) {
        self.table("[link]");
        self.size("queue", link.queue);
        self.number("queue_frames_max", link.queue_frames_max as u64);
        self.size("inbox", link.inbox);
        self.number("frame_progress_ms_max", link.frame_progress_ms_max);
        self.number("edges_max", link.edges_max as u64);
        self.number("silent_callers_max", link.silent_callers_max as u64);
        self.number("handshakes_max", link.handshakes_max as u64);
        self.number("handshakes_known_max", link.handshakes_known_max as u64);
        self.number("first_byte_ms_max", link.first_byte_ms_max);
        self.number("flush_ms_max", link.flush_ms_max);
        self.number("alive_ms", link.alive_ms);
        self.number("alive_missed_max", u64::from(link.alive_missed_max));
        self.number("lanes", link.lanes as u64);
        self.number("threads", link.threads as u64);
        self.text("congestion", &link.congestion.to_string());
        for delay in delays {
            self.table("[[child_delay]]");
            self.text("child", &delay.child);
            self.number("one_way_ms", delay.one_way_ms);
        }
    }
}
