//! What can be wrong with contexts.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why it is not known where to join, or as whom.
#[derive(Debug)]
#[non_exhaustive]
pub enum ContextError {
    /// Neither a flag, nor a variable, nor a current context says it.
    NotSaid {
        /// What is missing, as `no site or home was named`.
        what: &'static str,
        /// The flag that would say it.
        flag: &'static str,
        /// The variable that would.
        variable: &'static str,
        /// The contexts that could be chosen.
        known: Vec<String>,
    },
    /// There is no context of this name.
    NotThere {
        /// The name that was asked for.
        name: String,
        /// Those that are there.
        known: Vec<String>,
    },
    /// No context can have this name.
    BadName {
        /// What was given as a name.
        name: String,
    },
    /// There is a context, and something that it needs is gone.
    Incomplete {
        /// The context.
        name: String,
        /// What is not there.
        missing: PathBuf,
    },
    /// No variable says where the user's configuration is.
    NoDirectory,
    /// A file that cannot be read or written.
    File {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A file that is not as it should be.
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl ContextError {
    /// What the user can do about it.
    pub fn advice(&self) -> String {
        match self {
            Self::NotSaid {
                flag,
                variable,
                known,
                ..
            } => {
                let direct = format!("give {flag}, or set {variable}");
                match known.is_empty() {
                    true => format!(
                        "{direct}; `thorp dev` starts a village here, `thorp join TOKEN` joins one, and both make a context that says it"
                    ),
                    false => format!(
                        "{direct}; or choose a context with `thorp context use NAME`: {}",
                        known.join(", ")
                    ),
                }
            }
            Self::NotThere { known, .. } if known.is_empty() => {
                "there are no contexts: `thorp dev` and `thorp join TOKEN` make some".to_owned()
            }
            Self::NotThere { known, .. } => format!("there are: {}", known.join(", ")),
            Self::BadName { .. } => {
                "take letters, digits, hyphens, underscores and full stops, 64 at most".to_owned()
            }
            Self::Incomplete { name, .. } => format!(
                "remove it with `thorp context rm {name}`, and make it again as it was made: with `thorp dev` or `thorp join TOKEN`"
            ),
            Self::NoDirectory => "set HOME, or THORP_CONFIG to a directory for contexts".to_owned(),
            Self::File { .. } => "check the name and the permissions of the file".to_owned(),
            Self::Malformed { .. } => {
                "mend it, or remove the context with `thorp context rm NAME`".to_owned()
            }
        }
    }
}

impl fmt::Display for ContextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSaid { what, .. } => f.write_str(what),
            Self::NotThere { name, .. } => write!(f, "there is no context {name}"),
            Self::BadName { name } => write!(f, "{name:?} is no name for a context"),
            Self::Incomplete { name, missing } => {
                write!(
                    f,
                    "context {name} needs {}, which is not there",
                    missing.display()
                )
            }
            Self::NoDirectory => f.write_str("no variable says where the user's configuration is"),
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Malformed { path, why } => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl std::error::Error for ContextError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { error, .. } => Some(error),
            _ => None,
        }
    }
}
