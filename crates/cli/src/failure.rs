//! What a command says when it cannot do what was asked: one line what happened, one line what to do.

use crate::text;
use std::fmt;
use std::path::Path;
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
    /// A home or a site was not reached.
    Unreachable = 4,
    /// What was named is not there.
    NotThere = 5,
    /// Refused after all retries: others were busy there.
    Refused = 6,
    /// It may have been done.
    OutcomeUnknown = 7,
    /// The node may not do that.
    NoRight = 8,
    /// A home has gone back in time.
    WentBack = 9,
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

    /// The same with one more thing that has to do with it.
    pub(crate) fn and(mut self, what: impl fmt::Display) -> Self {
        self.what = format!("{}; {what}", self.what);
        self
    }

    /// A file that cannot be read or written.
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Self {
        Failure::new(
            format!("{}: {error}", path.display()),
            "check the name and the permissions of the file",
        )
    }

    /// What has happened.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// What can be done, a line each.
    pub(crate) fn advice(&self) -> impl Iterator<Item = &str> {
        let lines = self.todo.split("\n  -> ");
        lines.filter(|line| !line.is_empty())
    }

    /// The same for a program: kind, exit code, message, and what can be done.
    pub(crate) fn as_json(&self) -> serde_json::Value {
        let advice: Vec<&str> = self.advice().collect();
        serde_json::json!({
            "error": {
                "kind": self.code.word(),
                "code": self.code as u8,
                "message": self.what,
                "advice": advice,
            }
        })
    }

    /// The exit code.
    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// A failure of which everything has been told but the exit code.
    pub(crate) fn told(code: Code) -> Self {
        Failure::new("", "").with(code)
    }

    /// Tells it on standard error, as a document or in lines.
    pub(crate) fn tell(&self, json: bool) {
        if self.what.is_empty() {
            return;
        }
        // Nothing is left to do if even that cannot be written.
        let _ = match json {
            true => text::error_document(&self.as_json()),
            false => text::error(&self.to_string()),
        };
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
        Failure::new(error.to_string(), error.advice()).with(Code::of(error.kind()))
    }
}

impl Code {
    fn word(self) -> &'static str {
        match self {
            Code::Failed => "failed",
            Code::Usage => "usage",
            Code::Wrong => "wrong",
            Code::Unreachable => "unreachable",
            Code::NotThere => "not_there",
            Code::Refused => "refused",
            Code::OutcomeUnknown => "outcome_unknown",
            Code::NoRight => "no_right",
            Code::WentBack => "went_back",
        }
    }

    /// That with which a process of this program has ended. It has no others, but if it panics.
    pub(crate) fn of_process(code: i32) -> Self {
        let is_it = |known: &Code| *known as i32 == code;
        Code::ALL.into_iter().find(is_it).unwrap_or(Code::Failed)
    }

    const ALL: [Code; 9] = [
        Code::Failed,
        Code::Usage,
        Code::Wrong,
        Code::Unreachable,
        Code::NotThere,
        Code::Refused,
        Code::OutcomeUnknown,
        Code::NoRight,
        Code::WentBack,
    ];

    fn of(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::BadName => Code::Usage,
            ErrorKind::DataDamaged => Code::Wrong,
            ErrorKind::HomeUnreachable => Code::Unreachable,
            ErrorKind::NotFound | ErrorKind::Gone => Code::NotThere,
            ErrorKind::Conflict | ErrorKind::Busy { .. } | ErrorKind::LockLost => Code::Refused,
            ErrorKind::OutcomeUnknown(_) | ErrorKind::OutcomeLost => Code::OutcomeUnknown,
            ErrorKind::NoRight => Code::NoRight,
            ErrorKind::HomeWentBack => Code::WentBack,
            _ => Code::Failed,
        }
    }
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Self {
        let code = match error {
            JoinError::Context(error) => return error.into(),
            JoinError::Address(_) => Code::Usage,
            JoinError::Unreachable(_) => Code::Unreachable,
            _ => Code::Failed,
        };
        Failure::new(error.to_string(), error.advice()).with(code)
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
    use thorp_client::Identity;

    #[test]
    fn two_lines_what_happened_and_what_to_do() {
        let failure = Failure::from(JoinError::Unreachable("connection refused".into()));
        let text = failure.to_string();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("connection refused"));
        assert!(text.contains("-> "));
        assert_eq!(failure.code, Code::Unreachable);
    }

    #[test]
    fn codes_are_those_that_the_help_lists() {
        let of = |kind| Code::of(kind) as u8;
        let retry_after = std::time::Duration::ZERO;
        assert_eq!(of(ErrorKind::Full), 1);
        assert_eq!(of(ErrorKind::BadName), 2);
        assert_eq!(of(ErrorKind::DataDamaged), 3);
        assert_eq!(of(ErrorKind::HomeUnreachable), 4);
        assert_eq!((of(ErrorKind::NotFound), of(ErrorKind::Gone)), (5, 5));
        assert_eq!(
            (of(ErrorKind::Conflict), of(ErrorKind::Busy { retry_after })),
            (6, 6)
        );
        assert_eq!(of(ErrorKind::OutcomeLost), 7);
        assert_eq!(of(ErrorKind::NoRight), 8);
        assert_eq!(of(ErrorKind::HomeWentBack), 9);
    }

    /// The variants of an enum, as its source declares them.
    fn declared(name: &str) -> Vec<&'static str> {
        let source = include_str!("../../client/src/error.rs");
        let (_, body) = source.split_once(&format!("pub enum {name} {{\n")).unwrap();
        let (body, _) = body.split_once("\n}\n").unwrap();
        let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
        let variants = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
        let word = |line: &'static str| line.split(|c: char| !c.is_alphanumeric()).next();
        variants.filter_map(word).collect()
    }

    /// The rows of a table of `docs/errors.md`: the first cell without its backticks, and the last one.
    fn rows(head: &str) -> Vec<(&'static str, &'static str)> {
        let page = include_str!("../../../docs/errors.md");
        let (_, table) = page.split_once(&format!("| `{head}` |")).unwrap();
        let rows = table.lines().skip(2).take_while(|line| !line.is_empty());
        let cells = rows.map(|row| row.trim_matches('|').split('|'));
        let ends = cells.map(|mut cells| (cells.next().unwrap(), cells.next_back().unwrap()));
        ends.map(|(name, code)| (name.trim().trim_matches('`'), code.trim()))
            .collect()
    }

    fn kinds() -> Vec<ErrorKind> {
        let retry_after = std::time::Duration::ZERO;
        let commit = "00000000000000000000000000000001:1".parse().unwrap();
        vec![
            ErrorKind::Conflict,
            ErrorKind::Busy { retry_after },
            ErrorKind::Full,
            ErrorKind::HomeUnreachable,
            ErrorKind::OutcomeUnknown(commit),
            ErrorKind::OutcomeLost,
            ErrorKind::LockLost,
            ErrorKind::HomeWentBack,
            ErrorKind::Gone,
            ErrorKind::NotFound,
            ErrorKind::AlreadyExists,
            ErrorKind::TooLarge,
            ErrorKind::BadName,
            ErrorKind::Invalid,
            ErrorKind::NoRight,
            ErrorKind::Closed,
            ErrorKind::DataDamaged,
            ErrorKind::Aborted,
        ]
    }

    #[test]
    fn the_page_of_errors_has_each_kind_with_its_exit_code() {
        let of = |kind: ErrorKind| {
            let shown = format!("{kind:?}");
            let name = shown.split(|c: char| !c.is_alphanumeric()).next();
            (name.unwrap().to_owned(), (Code::of(kind) as u8).to_string())
        };
        let kinds: Vec<_> = kinds().into_iter().map(of).collect();
        let names: Vec<&str> = kinds.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, declared("ErrorKind"));
        let rows = rows("ErrorKind");
        let kinds: Vec<_> = kinds
            .iter()
            .map(|(name, code)| (&**name, &**code))
            .collect();
        assert_eq!(rows, kinds);
    }

    /// A context that is not there, and one that is not whole, have other codes.
    fn ways_not_to_join() -> Vec<JoinError> {
        let nowhere = || std::path::PathBuf::from("/nowhere");
        let failed = || std::io::Error::other("");
        let no_context = ContextError::NotThere {
            name: String::new(),
            known: Vec::new(),
        };
        let half_a_context = ContextError::Incomplete {
            name: String::new(),
            missing: nowhere(),
        };
        vec![
            JoinError::Address(String::new()),
            JoinError::Identity(Identity::load(nowhere()).unwrap_err()),
            JoinError::NoMember(a_site()),
            JoinError::NoSite {
                name: String::new(),
                found: String::new(),
            },
            JoinError::Listen {
                address: String::new(),
                error: thorp_net::Error::Lost,
            },
            JoinError::Unreachable(String::new()),
            JoinError::Trace {
                file: nowhere(),
                error: failed(),
            },
            JoinError::Limit(String::new()),
            JoinError::Log(thorp_store::LogError::Foreign {
                dir: nowhere(),
                what: String::new(),
            }),
            JoinError::Context(half_a_context),
            JoinError::Context(no_context),
            JoinError::System(failed()),
        ]
    }

    /// The name in the certificate of a site.
    fn a_site() -> thorp_net::CertifiedName {
        let dir = tempfile::tempdir().unwrap();
        let (ca, site) = (dir.path().join("ca"), dir.path().join("site"));
        thorp_net::CertificateAuthority::init(&ca).unwrap();
        let site = thorp_net::issue(&ca, &site, thorp_net::NodeRole::Site, "valley").unwrap();
        site.certified().clone()
    }

    /// The name of the variant: what it prints are words.
    fn name_of(error: &JoinError) -> &'static str {
        match error {
            JoinError::Address(_) => "Address",
            JoinError::Identity(_) => "Identity",
            JoinError::NoMember(_) => "NoMember",
            JoinError::NoSite { .. } => "NoSite",
            JoinError::Listen { .. } => "Listen",
            JoinError::Unreachable(_) => "Unreachable",
            JoinError::Trace { .. } => "Trace",
            JoinError::Limit(_) => "Limit",
            JoinError::Log(_) => "Log",
            JoinError::Context(_) => "Context",
            JoinError::System(_) => "System",
            _ => "one without a name here",
        }
    }

    #[test]
    fn the_page_of_errors_has_each_way_not_to_join() {
        let mut found: Vec<(&str, String)> = Vec::new();
        for error in ways_not_to_join() {
            let name = name_of(&error);
            let code = (Failure::from(error).code as u8).to_string();
            match found.last_mut().filter(|(before, _)| *before == name) {
                Some((_, codes)) => *codes += &format!(", {code}"),
                None => found.push((name, code)),
            }
        }
        let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, declared("JoinError"));
        let found: Vec<_> = found
            .iter()
            .map(|(name, codes)| (*name, &**codes))
            .collect();
        assert_eq!(rows("JoinError"), found);
    }

    #[test]
    fn the_page_of_exit_codes_has_each_with_its_word() {
        let page = include_str!("../../../docs/exit-codes-and-json.md");
        let rows = page.lines().filter_map(|line| {
            let (code, rest) = line.strip_prefix("| ")?.split_once(" | `")?;
            let (word, _) = rest.split_once("` | ")?;
            Some((code.parse().ok()?, word))
        });
        let codes = Code::ALL.map(|code| (code as u8, code.word()));
        assert_eq!(rows.collect::<Vec<_>>(), codes);
    }
}
