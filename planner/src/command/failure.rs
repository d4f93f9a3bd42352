//! Why a question has no answer: one line what happened, one line what to do.

use std::fmt;
use std::path::Path;

/// A failure for a person to read, and the exit code that a script reads.
#[derive(Debug)]
pub struct Failure {
    what: String,
    todo: String,
    code: Code,
}

/// What kind of failure it is. The value is the exit code of the command; `thorp plan --help` lists these codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// A file cannot be read or written, or a node's answer is not the status of a site.
    Failed = 1,
    /// The call itself is wrong: a flag, a parameter, a line of a file.
    Usage = 2,
}

impl Failure {
    /// The question cannot be answered. An empty `todo` leaves the second line out.
    pub fn new(what: impl Into<String>, todo: impl Into<String>) -> Self {
        Failure {
            what: what.into(),
            todo: todo.into(),
            code: Code::Failed,
        }
    }

    /// The same, of another kind.
    pub fn with(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// A file that cannot be read or written.
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Self {
        Failure::new(
            format!("{}: {error}", path.display()),
            "check the name and the permissions of the file",
        )
    }

    /// What happened.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// What to do about it; empty where there is nothing to say.
    pub fn todo(&self) -> &str {
        &self.todo
    }

    /// What kind of failure it is.
    pub fn code(&self) -> Code {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        if self.todo.is_empty() {
            return Ok(());
        }
        write!(f, "\n  -> {}", self.todo)
    }
}

impl std::error::Error for Failure {}
