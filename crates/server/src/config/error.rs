//! What is wrong with a configuration.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// What is wrong with a configuration.
#[derive(Debug)]
pub enum ConfigError {
    /// The file cannot be read.
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It is not the TOML that was expected: a key that does not exist, a value of another kind. The error names key and line.
    Toml {
        /// Which file; empty if it was no file.
        path: PathBuf,
        /// What is wrong.
        error: Box<toml::de::Error>,
    },
    /// Something must be said and is not.
    Missing {
        /// The key.
        key: &'static str,
        /// An example.
        example: &'static str,
    },
    /// A value that cannot be.
    Value {
        /// The key.
        key: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Toml { path, error } if path.as_os_str().is_empty() => {
                write!(f, "the configuration: {error}")
            }
            Self::Toml { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Missing { key, example } => {
                write!(f, "`{key}` is not set; for example:\n{example}")
            }
            Self::Value { key, why } => write!(f, "`{key}`: {why}"),
        }
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { error, .. } => Some(error),
            Self::Toml { error, .. } => Some(error),
            Self::Missing { .. } | Self::Value { .. } => None,
        }
    }
}
