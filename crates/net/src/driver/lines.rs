//! Log lines that others can cause: only so many for each of them.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Counts log lines for each key: at most [`LINES_MAX`] in each minute, and [`KEYS_MAX`] keys in each minute. So a caller
/// that fails again and again does not fill the disk.
#[derive(Debug)]
pub(crate) struct Lines<K> {
    max: usize,
    minute: Option<Instant>,
    by_key: HashMap<K, usize>,
    /// Lines that were not written since the last that was.
    left_out: u64,
}

/// So many lines are missing before this one. For its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LeftOut(u64);

impl<K: Hash + Eq> Lines<K> {
    pub(crate) fn new() -> Self {
        Self::of(LINES_MAX)
    }

    /// So many for each key in a minute.
    pub(crate) fn of(max: usize) -> Self {
        Self {
            max,
            minute: None,
            by_key: HashMap::new(),
            left_out: 0,
        }
    }

    /// Whether to write a line about `key`; if so, how many lines about anybody were left out since the last one.
    pub(crate) fn write(&mut self, now: Instant, key: K) -> Option<LeftOut> {
        let is_over = |began: Instant| now.saturating_duration_since(began) >= MINUTE;
        if self.minute.is_none_or(is_over) {
            self.minute = Some(now);
            self.by_key.clear();
        }
        let has_space = self.by_key.len() < KEYS_MAX;
        let lines = match self.by_key.get_mut(&key) {
            Some(lines) => lines,
            None if has_space => self.by_key.entry(key).or_default(),
            None => {
                self.left_out += 1;
                return None;
            }
        };
        if *lines >= self.max {
            self.left_out += 1;
            return None;
        }
        *lines += 1;
        Some(LeftOut(std::mem::take(&mut self.left_out)))
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            lines => write!(f, " ({lines} such lines were left out before this one)"),
        }
    }
}

const MINUTE: Duration = Duration::from_secs(60);
/// Log lines about one key in a minute.
const LINES_MAX: usize = 5;
/// Keys that have log lines in one minute.
const KEYS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_few_lines_in_a_minute_and_takes_none_from_another() {
        let (mut lines, start) = (Lines::new(), Instant::now());
        let written = (0..1000).filter(|_| lines.write(start, 1).is_some());
        assert_eq!(written.count(), LINES_MAX);
        // The next line says how many are missing.
        assert_eq!(
            lines.write(start, 2),
            Some(LeftOut(1000 - LINES_MAX as u64))
        );
        assert_eq!(
            lines.write(start + MINUTE - Duration::from_millis(1), 1),
            None
        );
        let left_out = lines.write(start + MINUTE, 1).unwrap();
        assert_eq!(
            left_out.to_string(),
            " (1 such lines were left out before this one)"
        );
        let none = lines.write(start + MINUTE, 1).unwrap();
        assert_eq!(none.to_string(), "");
    }

    #[test]
    fn the_keys_are_bounded_too() {
        let (mut lines, start) = (Lines::new(), Instant::now());
        let written = (0..10_000).filter(|key| lines.write(start, *key).is_some());
        assert_eq!(written.count(), KEYS_MAX);
        assert_eq!(lines.by_key.len(), KEYS_MAX);
        assert!(lines.write(start + MINUTE, 9_999).is_some());
    }
}
