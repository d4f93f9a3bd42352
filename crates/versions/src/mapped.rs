//! A table as a mapped file: the keeper writes it, and proxies on the same host read it. The only file here with unsafe code.
#![allow(unsafe_code)]

use crate::cells::{self, Cells, Writable};
use crate::limits::{CELLS, FORMAT};
use crate::sync::{AtomicU64, Ordering};
use memmap2::{MmapOptions, MmapRaw};
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Tells a table from other files. It has the version of the layout in its last byte.
const MAGIC: u64 = u64::from_le_bytes(*b"thorpvt\x01");

/// A table's length in bytes.
const BYTES: u64 = (CELLS * size_of::<u64>()) as u64;

/// Why a table's file cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum TableError {
    /// The file cannot be opened, made or mapped.
    Io(PathBuf, io::Error),
    /// It is no table, or one of another version of Thorp.
    OtherFormat(PathBuf),
    /// It is shorter or longer than a table: so many bytes.
    Length(PathBuf, u64),
    /// Another keeper writes it.
    InUse(PathBuf),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            TableError::OtherFormat(path) => write!(
                f,
                "{} is no table of this version of Thorp: stop its keeper, delete the file, and start again",
                path.display()
            ),
            TableError::Length(path, found) => write!(
                f,
                "{} has {found} bytes where a table has {BYTES}: stop its keeper, delete the file, and start again",
                path.display()
            ),
            TableError::InUse(path) => {
                write!(
                    f,
                    "another keeper writes {}: a table has one",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for TableError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TableError::Io(_, error) => Some(error),
            _ => None,
        }
    }
}

/// A table that others write.
///
/// Invariant: the mapping is as long as a table. Whoever may write the file must not make it shorter: then a load of what is gone
/// ends the process. So the file belongs into a directory that only its keeper's user may write.
#[derive(Debug)]
pub struct Mapped {
    map: MmapRaw,
}

impl Mapped {
    /// Opens a table to read it.
    ///
    /// # Errors
    ///
    /// See [`TableError`].
    pub fn open(path: &Path) -> Result<Self, TableError> {
        let file = File::open(path).map_err(|error| TableError::Io(path.to_owned(), error))?;
        let table = Mapped::of(path, &file, false)?;
        table.checked(path)
    }

    fn of(path: &Path, file: &File, writes: bool) -> Result<Self, TableError> {
        let io = |error| TableError::Io(path.to_owned(), error);
        let length = file.metadata().map_err(io)?.len();
        if length != BYTES {
            return Err(TableError::Length(path.to_owned(), length));
        }
        let mut options = MmapOptions::new();
        options.len(CELLS * size_of::<u64>());
        let map = match writes {
            true => options.map_raw(file),
            false => options.map_raw_read_only(file),
        };
        let map = map.map_err(io)?;
        Ok(Mapped { map })
    }

    fn checked(self, path: &Path) -> Result<Self, TableError> {
        match self.format().load(Ordering::Acquire) {
            MAGIC => Ok(self),
            _ => Err(TableError::OtherFormat(path.to_owned())),
        }
    }

    fn format(&self) -> &AtomicU64 {
        &self.cells()[FORMAT]
    }

    fn cells(&self) -> &[AtomicU64] {
        let first = self.map.as_ptr().cast::<AtomicU64>();
        // SAFETY: the mapping lives as long as `self`, begins at a page, and has `CELLS` words of 64 bits, of which all bits are valid.
        // Whoever changes them does so by atomic stores. `Mapped` is not `Writable`: nothing stores to a read-only mapping.
        unsafe { std::slice::from_raw_parts(first, CELLS) }
    }
}

impl Cells for Mapped {
    fn load(&self, at: usize) -> u64 {
        cells::load(self.cells(), at)
    }
}

/// A table that this process writes.
///
/// Invariant: it holds the lock on the file, so it is the only one.
#[derive(Debug)]
pub struct Kept {
    table: Mapped,
    /// Its lock is the keeper's.
    _file: File,
}

impl Kept {
    /// Opens a table to write it, and makes it if it is not there.
    ///
    /// # Errors
    ///
    /// See [`TableError`]. What is in an existing file is not changed then.
    pub fn open(path: &Path) -> Result<Self, TableError> {
        let io = |error| TableError::Io(path.to_owned(), error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(io)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => TableError::InUse(path.to_owned()),
            TryLockError::Error(error) => io(error),
        })?;
        if file.metadata().map_err(io)?.len() == 0 {
            file.set_len(BYTES).map_err(io)?;
        }
        let table = Mapped::of(path, &file, true)?;
        // A keeper may have died before it could write more than the length.
        if table.format().load(Ordering::Acquire) == 0 {
            table.format().store(MAGIC, Ordering::Release);
        }
        let table = table.checked(path)?;
        Ok(Kept { table, _file: file })
    }
}

impl Cells for Kept {
    fn load(&self, at: usize) -> u64 {
        self.table.load(at)
    }
}

impl Writable for Kept {
    fn store(&self, at: usize, bits: u64) {
        cells::store(self.table.cells(), at, bits);
    }
}
