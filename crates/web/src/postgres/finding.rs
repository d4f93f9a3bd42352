//! What a check has found.

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// It is as it has to be.
    Good,
    /// It costs hits, or holds commits up.
    Warning,
    /// Answers may be stale, or there is no keeper.
    Problem,
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What was looked at, as one word: `wal_level`.
    pub check: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub found: String,
    /// What to do about it. Empty: nothing.
    pub advice: String,
}

impl Finding {
    pub(super) fn good(check: &'static str, found: impl Into<String>) -> Self {
        Finding {
            check,
            severity: Severity::Good,
            found: found.into(),
            advice: String::new(),
        }
    }

    pub(super) fn warning(
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Finding {
            severity: Severity::Warning,
            advice: advice.into(),
            ..Finding::good(check, found)
        }
    }

    pub(super) fn problem(
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Finding {
            severity: Severity::Problem,
            advice: advice.into(),
            ..Finding::good(check, found)
        }
    }
}
