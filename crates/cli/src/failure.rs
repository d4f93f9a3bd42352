//! What a command says when it cannot do what was asked: one line what happened, one line what to do.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use thorp_client::{ContextError, Error, ErrorKind, JoinError};

/// A failure to be told to a person, and the exit code that tells it to a script.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    todo: String,
    code: Code,
}

/// Exit codes; `thorp --help` lists them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    /// It could not be done.
    Failed = 1,
    /// The call itself is wrong, as clap says it.
    Usage = 2,
    /// What was checked is not as it should be.
    Wrong = 3,
    /// Nobody answered.
    Unreachable = 4,
}

impl Failure {
    /// It could not be done.
    pub(crate) fn new(what: impl Into<String>, todo: impl Into<String>) -> Self {
        Failure {
            what: what.into(),
            todo: todo.into(),
            code: Code::Failed,
        }
    }

    /// The same with another exit code.
    pub(crate) fn with(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// The same with one more thing that can be done.
    pub(crate) fn or(mut self, todo: impl fmt::Display) -> Self {
        self.todo = match self.todo.is_empty() {
            true => todo.to_string(),
            false => format!("{}\n  -> {todo}", self.todo),
        };
        self
    }

    /// A file that cannot be read or written.
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Self {
        Failure::new(
            format!("{}: {error}", path.display()),
            "check the name and the permissions of the file",
        )
    }

    /// For the end of the process.
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.code as u8)
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

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = Failure::new(error.to_string(), advice(error.kind()));
        match error.kind() {
            ErrorKind::HomeUnreachable => failure.with(Code::Unreachable),
            ErrorKind::DataDamaged => failure.with(Code::Wrong),
            _ => failure,
        }
    }
}

fn advice(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Conflict | ErrorKind::Busy { .. } => "others were busy there: try again",
        ErrorKind::Full => "free some room at the home (`thorp rm`), or raise its --limit-bytes",
        ErrorKind::HomeUnreachable => "look at it with `thorp status`, and try again",
        ErrorKind::OutcomeUnknown(_) => "look whether it was done before trying again",
        ErrorKind::Gone => "`thorp inspect SEGMENT --objects` tells which there are",
        ErrorKind::Invalid => {
            "a segment is thorp://HOME/path, an object in it thorp://HOME/path#PAGE.SLOT.GENERATION"
        }
        ErrorKind::NotFound => "`thorp ls` tells what there is",
        ErrorKind::AlreadyExists => "take another name, or use what is there",
        ErrorKind::TooLarge => "do it in smaller pieces",
        ErrorKind::DataDamaged => "run `thorp check` on the home's directory",
        ErrorKind::NoRight => "ask whoever runs the home",
        _ => "",
    }
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Self {
        let (todo, code) = match error {
            JoinError::Context(error) => return error.into(),
            JoinError::Address(_) => (
                "give one with --via (or THORP_VIA): tcp://host:port or unix:/path.sock",
                Code::Usage,
            ),
            JoinError::Identity(_) => (
                "give a directory that `thorp invite` made with --identity (or THORP_IDENTITY)",
                Code::Failed,
            ),
            JoinError::NoMember(_) => (
                "give its directory with --identity (or THORP_IDENTITY); `thorp home` prints one for this machine when it starts",
                Code::Failed,
            ),
            JoinError::Unreachable(_) => (
                "check that it runs there, and that --identity is of the same village",
                Code::Unreachable,
            ),
            _ => ("", Code::Failed),
        };
        Failure::new(error.to_string(), todo).with(code)
    }
}

impl From<ContextError> for Failure {
    fn from(error: ContextError) -> Self {
        let failure = Failure::new(error.to_string(), error.advice());
        match error {
            ContextError::NotSaid { .. }
            | ContextError::NotThere { .. }
            | ContextError::BadName { .. }
            | ContextError::NoDirectory => failure.with(Code::Usage),
            _ => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_lines_what_happened_and_what_to_do() {
        let failure = Failure::from(JoinError::Unreachable("connection refused".into()));
        let text = failure.to_string();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("connection refused"));
        assert!(text.contains("-> "));
        assert_eq!(failure.code, Code::Unreachable);
    }
}
