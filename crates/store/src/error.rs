//! Why a store could not be opened.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use thorp_model::limits::INCARNATIONS_MAX;

/// Why a store could not be opened. The message says what to do about it.
/// Nothing that was stored has been changed, unless it is [`OpenError::Damaged`]
/// and only the engine could find out, having cut off a journal by then.
#[derive(Debug)]
pub enum OpenError {
    /// There is no such directory, or it is empty, and it was not to be made.
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// There are files, but not those of a store.
    NotAStore {
        /// The directory.
        dir: PathBuf,
        /// What was found there.
        found: String,
    },
    /// A later version of Thorp has written this store.
    NewerFormat {
        /// The directory.
        dir: PathBuf,
        /// The format version of the store.
        found: u32,
        /// The highest format version that this program reads.
        known: u32,
    },
    /// The store belongs to an engine that this program does not have.
    OtherEngine {
        /// The directory.
        dir: PathBuf,
        /// The engine named by the marker.
        engine: String,
    },
    /// The marker file cannot be read as one.
    DamagedMarker {
        /// The marker file.
        file: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// A process has the store open.
    InUse {
        /// The directory.
        dir: PathBuf,
    },
    /// The operating system does not permit it.
    Denied {
        /// The file or directory.
        path: PathBuf,
    },
    /// The volume has no space for what opening must write.
    Full {
        /// The file or directory.
        path: PathBuf,
    },
    /// Nothing speaks against its history: there is nothing to confirm.
    NotClosed {
        /// The directory.
        dir: PathBuf,
    },
    /// It was opened as restored more often than it can be.
    NoIncarnations {
        /// The directory.
        dir: PathBuf,
    },
    /// Something that was stored is missing or is not what was written.
    Damaged {
        /// The directory.
        dir: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// Reading or writing failed in another way.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
}

impl OpenError {
    /// The error for what the operating system said about a path.
    pub(crate) fn io(path: &Path, error: io::Error) -> OpenError {
        let path = path.to_path_buf();
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                OpenError::Denied { path }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => OpenError::Full { path },
            _ => OpenError::Io { path, error },
        }
    }

    pub(crate) fn damaged(dir: &Path, detail: impl Into<String>) -> OpenError {
        OpenError::Damaged {
            dir: dir.to_path_buf(),
            detail: detail.into(),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Missing { dir } => write!(
                f,
                "no store at {}: check the path, or start with a new, empty directory",
                dir.display()
            ),
            OpenError::NotAStore { dir, found } => write!(
                f,
                "{} is not a Thorp store (it holds {found}): give an empty directory or that of a store",
                dir.display()
            ),
            OpenError::NewerFormat { dir, found, known } => write!(
                f,
                "the store at {} has format {found}, this program knows up to {known}: use a newer thorp",
                dir.display()
            ),
            OpenError::OtherEngine { dir, engine } => write!(
                f,
                "the store at {} was written with the engine `{engine}`, which this program does not have",
                dir.display()
            ),
            OpenError::DamagedMarker { file, detail } => write!(
                f,
                "the marker {} is damaged ({detail}): restore this one file from a backup",
                file.display()
            ),
            OpenError::InUse { dir } => write!(
                f,
                "the store at {} is in use by another process: stop that one first",
                dir.display()
            ),
            OpenError::Denied { path } => write!(
                f,
                "no permission for {}: it must be readable and writable for the user that runs thorp",
                path.display()
            ),
            OpenError::Full { path } => write!(
                f,
                "no room on the volume of {}: free some and open the store again",
                path.display()
            ),
            OpenError::NotClosed { dir } => write!(
                f,
                "the store at {} is not closed: nothing was changed",
                dir.display()
            ),
            OpenError::NoIncarnations { dir } => write!(
                f,
                "the store at {} has had all of its {INCARNATIONS_MAX} incarnations: copy its objects into a new home",
                dir.display()
            ),
            OpenError::Damaged { dir, detail } => write!(
                f,
                "the store at {} is damaged ({detail}): `thorp check` tells more, a backup brings it back",
                dir.display()
            ),
            OpenError::Io { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
