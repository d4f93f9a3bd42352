//! What a check reports.

use std::fmt;

/// A place that breaks a promise of the house.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Complaint {
    pub(crate) file: String,
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) wrong: String,
    /// What to do about it.
    pub(crate) remedy: String,
}

impl Complaint {
    pub(crate) fn new(
        (file, line): (&str, usize),
        wrong: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            file: file.to_owned(),
            line,
            wrong: wrong.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            wrong,
            remedy,
        } = self;
        write!(f, "{file}:{line}: {wrong} -> {remedy}")
    }
}

/// The result of one check.
pub(crate) struct Verdict {
    /// What the check is called.
    pub(crate) check: &'static str,
    /// What it looked at, and how much of it there is. A check that finds nothing to look at is broken.
    pub(crate) seen: Vec<(&'static str, usize)>,
    /// What is in today's knots, for a check that excuses some. The house is to have none.
    pub(crate) knots: Option<(&'static str, usize)>,
    pub(crate) complaints: Vec<Complaint>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.seen.iter().chain(&self.knots);
        let counts: Vec<String> = counts.map(|(of, count)| format!("{count} {of}")).collect();
        let complaints = self.complaints.len();
        write!(
            f,
            "{}: {}: {complaints} complaints",
            self.check,
            counts.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_names_place_fault_and_remedy() {
        let complaint = Complaint::new(("a.rs", 7), "it leaks", "close it");
        assert_eq!(complaint.to_string(), "a.rs:7: it leaks -> close it");
    }

    #[test]
    fn a_verdict_is_one_line_with_counts() {
        let verdict = Verdict {
            check: "pipes",
            seen: vec![("pipes", 7), ("valves", 2)],
            knots: Some(("bent today", 1)),
            complaints: vec![],
        };
        let line = "pipes: 7 pipes, 2 valves, 1 bent today: 0 complaints";
        assert_eq!(verdict.to_string(), line);
    }
}
