//! What had to hold, told as it is found.

use super::figures::Check;
use crate::commands::say;
use crate::failure::Failure;

/// What was checked.
pub(super) struct Checks {
    pub(super) all: Vec<Check>,
    /// A person reads along.
    is_told: bool,
}

impl Checks {
    pub(super) fn new(is_told: bool) -> Self {
        Checks {
            all: Vec::new(),
            is_told,
        }
    }

    /// Prints what is no check to a person.
    pub(super) fn tell(&self, line: &str) -> Result<(), Failure> {
        match self.is_told {
            true => say(line),
            false => Ok(()),
        }
    }

    /// Prints a check with what was seen.
    pub(super) fn check(&mut self, good: bool, what: &str, seen: &str) -> Result<(), Failure> {
        let verdict = if good { "holds" } else { "WRONG" };
        self.all.push(Check {
            name: what.to_owned(),
            good,
            detail: seen.to_owned(),
        });
        self.tell(&format!("  {verdict}  {what}\n         seen: {seen}"))
    }
}
