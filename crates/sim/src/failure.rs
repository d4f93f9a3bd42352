//! What a checker finds wrong.

use std::fmt;

/// Something that must hold and does not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The checker that found it.
    pub checker: &'static str,
    /// What it found.
    pub detail: String,
}

impl Failure {
    /// A checker's finding.
    pub fn new(checker: &'static str, detail: impl Into<String>) -> Self {
        Failure {
            checker,
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.checker, self.detail)
    }
}

impl std::error::Error for Failure {}

/// Nothing, or what is wrong.
pub type Checked<T = ()> = Result<T, Failure>;

/// Ends a check with a finding unless a condition holds.
macro_rules! demand {
    ($condition:expr, $checker:literal, $($detail:tt)+) => {
        if !$condition {
            return Err($crate::failure::Failure::new($checker, format!($($detail)+)));
        }
    };
}

pub(crate) use demand;
