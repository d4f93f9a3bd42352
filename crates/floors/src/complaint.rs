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
    /// What the check looked at, with counts.
    pub(crate) seen: String,
    pub(crate) complaints: Vec<Complaint>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_names_place_fault_and_remedy() {
        let complaint = Complaint::new(("a.rs", 7), "it leaks", "close it");
        assert_eq!(complaint.to_string(), "a.rs:7: it leaks -> close it");
    }
}
