//! An append of a weak session.

use crate::saying::{nanoseconds, say};
use serde_json::json;

/// It is a transaction of its own, which reads nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Append {
    pub(crate) preset: &'static str,
    pub(crate) session: u64,
    /// Of this append alone.
    pub(crate) process: u64,
    pub(crate) key: usize,
    pub(crate) value: i64,
}

impl Append {
    /// Says that it begins, or how it ended.
    pub(crate) fn tell(&self, what: &str) {
        say(&json!({
            "time": nanoseconds(),
            "type": what,
            "process": self.process,
            "session": self.session,
            "weak": self.preset,
            "value": [["append", self.key, self.value]],
        }));
    }
}
