//! What was checked, what came of it, and what to do.

use crate::commands::{say, say_json};
use crate::failure::Failure;
use serde_json::Value;
use std::collections::BTreeMap;

/// What came of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It is as it should be.
    Ok,
    /// It works, and somebody should look at it.
    Warning,
    /// It does not work.
    Problem,
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub(super) struct Check {
    /// Its kind, as `address`.
    what: &'static str,
    verdict: Verdict,
    found: String,
    advice: Vec<String>,
    /// Numbers for programs.
    figures: BTreeMap<&'static str, Value>,
}

/// What could not be looked at, and why.
#[derive(Clone, Debug)]
struct NotChecked {
    what: &'static str,
    why: String,
}

/// All checks, in the order in which they are shown.
#[derive(Debug, Default)]
pub(super) struct Checks {
    all: Vec<Check>,
    not_checked: Vec<NotChecked>,
    is_json: bool,
}

impl Check {
    pub(super) fn ok(what: &'static str, found: impl Into<String>) -> Self {
        Self::new(what, Verdict::Ok, found.into())
    }

    pub(super) fn warning(
        what: &'static str,
        found: impl Into<String>,
        todo: impl Into<String>,
    ) -> Self {
        Self::new(what, Verdict::Warning, found.into()).or(todo)
    }

    pub(super) fn problem(
        what: &'static str,
        found: impl Into<String>,
        todo: impl Into<String>,
    ) -> Self {
        Self::new(what, Verdict::Problem, found.into()).or(todo)
    }

    fn new(what: &'static str, verdict: Verdict, found: String) -> Self {
        Check {
            what,
            verdict,
            found,
            advice: Vec::new(),
            figures: BTreeMap::new(),
        }
    }

    /// One more thing that can be done.
    pub(super) fn or(mut self, todo: impl Into<String>) -> Self {
        let todo = todo.into();
        if !todo.is_empty() {
            self.advice.push(todo);
        }
        self
    }

    /// A number for programs.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.figures.insert(name, value.into());
        self
    }

    #[cfg(test)]
    pub(super) fn first_word(&self) -> &'static str {
        self.verdict.word()
    }

    /// Others give some of the words: a control character among them would make up lines, or command the terminal.
    pub(super) fn lines(&self) -> Vec<String> {
        let clean = |text: &str| text.replace(char::is_control, " ");
        let first = format!(
            "{:<9}{}: {}",
            self.verdict.word(),
            self.what,
            clean(&self.found)
        );
        let advice = self
            .advice
            .iter()
            .map(|todo| format!("  -> {}", clean(todo)));
        std::iter::once(first).chain(advice).collect()
    }

    fn as_json(&self) -> serde_json::Value {
        serde_json::json!({
            "check": self.what,
            "result": self.verdict.word(),
            "found": self.found,
            "advice": self.advice,
            "figures": self.figures,
        })
    }
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Problem => "problem",
        }
    }
}

impl Checks {
    pub(super) fn new(is_json: bool) -> Self {
        Checks {
            is_json,
            ..Self::default()
        }
    }

    /// Adds a check. A person sees it at once: a later one may take long.
    pub(super) fn add(&mut self, check: Check) -> Result<(), Failure> {
        if !self.is_json {
            say(&check.lines().join("\n"))?;
        }
        self.all.push(check);
        Ok(())
    }

    pub(super) fn add_all(
        &mut self,
        checks: impl IntoIterator<Item = Check>,
    ) -> Result<(), Failure> {
        checks.into_iter().try_for_each(|check| self.add(check))
    }

    /// Something could not be looked at.
    pub(super) fn skip(
        &mut self,
        what: &'static str,
        why: impl Into<String>,
    ) -> Result<(), Failure> {
        let why = why.into();
        if !self.is_json {
            say(&format!("{:<9}{what}: not checked: {why}", "-"))?;
        }
        self.not_checked.push(NotChecked { what, why });
        Ok(())
    }

    pub(super) fn count(&self, verdict: Verdict) -> usize {
        let all = self.all.iter();
        all.filter(|check| check.verdict == verdict).count()
    }

    /// What could not be looked at.
    pub(super) fn not_checked(&self) -> Vec<&'static str> {
        self.not_checked.iter().map(|it| it.what).collect()
    }

    /// The one document, for a program.
    pub(super) fn print(&self) -> Result<(), Failure> {
        let not_checked = self.not_checked.iter();
        let not_checked =
            not_checked.map(|it| serde_json::json!({"check": it.what, "why": it.why}));
        say_json(&serde_json::json!({
            "good": self.count(Verdict::Problem) == 0,
            "problems": self.count(Verdict::Problem),
            "warnings": self.count(Verdict::Warning),
            "checks": self.all.iter().map(Check::as_json).collect::<Vec<_>>(),
            "not_checked": not_checked.collect::<Vec<_>>(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_a_line_and_below_it_what_to_do() {
        let check =
            Check::warning("key", "others can read \u{1b}it", "chmod 600 it").or("or move it");
        assert_eq!(
            check.lines(),
            [
                "warning  key: others can read  it",
                "  -> chmod 600 it",
                "  -> or move it"
            ]
        );
        assert_eq!(Check::ok("key", "good").lines(), ["ok       key: good"]);
        assert!(Check::problem("key", "gone", "").advice.is_empty());
    }
}
