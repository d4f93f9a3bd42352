//! Where the table of a keeper is: a file of one line, which its keeper holds locked.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The file's first words. The last one is the version of its form.
const HEAD: &str = "thorp table 1:";

/// More is no address.
const LINE_BYTES_MAX: u64 = 256;

/// What a table is about: a hash of its keeper's name and of what its recipe says of rows. A reader with other terms would wait for other
/// keys than the keeper changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms(pub u64);

impl Terms {
    /// The terms of a text.
    pub fn of(text: &str) -> Self {
        Terms(xxhash_rust::xxh3::xxh3_64(text.as_bytes()))
    }

    /// The terms of the table that the Thorp home of this name writes.
    pub fn of_home(name: &str) -> Self {
        Terms::of(&format!("thorp home {name}"))
    }
}

/// Where a table is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The keeper's process.
    pub process: u32,
    /// The memory, among the keeper's open files.
    pub descriptor: u32,
    /// Random, and in the table too: another process may get the numbers above later.
    pub id: u64,
}

/// Why a table cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum TableError {
    /// The file with the address cannot be opened or written, or the memory cannot be had.
    Io(PathBuf, io::Error),
    /// There is no address: no keeper has started, or it has stopped.
    NotThere(PathBuf),
    /// The keeper of that address is gone.
    Gone(PathBuf),
    /// The keeper runs as another user.
    OtherUser(PathBuf),
    /// The file has no address, or one of another version of Thorp.
    OtherFormat(PathBuf),
    /// The keeper has another name or another recipe.
    OtherTerms(PathBuf),
    /// Another keeper has the file.
    InUse(PathBuf),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            TableError::NotThere(path) => {
                write!(f, "{} names no keeper: start one", path.display())
            }
            TableError::Gone(path) => write!(
                f,
                "the keeper that {} names is gone: start one",
                path.display()
            ),
            TableError::OtherUser(path) => write!(
                f,
                "the keeper that {} names runs as another user: run both as the same one",
                path.display()
            ),
            TableError::OtherFormat(path) => write!(
                f,
                "{} names no table of this version of Thorp: stop its keeper, delete the file, and start again",
                path.display()
            ),
            TableError::OtherTerms(path) => write!(
                f,
                "the keeper that {} names has another name or another recipe: start both with the same ones",
                path.display()
            ),
            TableError::InUse(path) => write!(
                f,
                "another keeper has {}: stop it, or give this one another file",
                path.display()
            ),
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

impl Address {
    /// The address in a file.
    ///
    /// # Errors
    ///
    /// There is none, or the file cannot be read.
    pub fn read(path: &Path) -> Result<Self, TableError> {
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => TableError::NotThere(path.to_owned()),
            _ => TableError::Io(path.to_owned(), error),
        })?;
        let mut line = Vec::new();
        let read = file.take(LINE_BYTES_MAX).read_to_end(&mut line);
        read.map_err(|error| TableError::Io(path.to_owned(), error))?;
        match Address::parse(&line) {
            Some(address) => Ok(address),
            None if line.is_empty() => Err(TableError::NotThere(path.to_owned())),
            None => Err(TableError::OtherFormat(path.to_owned())),
        }
    }

    /// The file for an address, with the lock of its keeper.
    pub(crate) fn lock(path: &Path) -> Result<File, TableError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let opened = options.mode(0o600).open(path);
        let file = opened.map_err(|error| TableError::Io(path.to_owned(), error))?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => TableError::InUse(path.to_owned()),
            TryLockError::Error(error) => TableError::Io(path.to_owned(), error),
        })?;
        match Address::read(path) {
            Err(TableError::OtherFormat(_)) if !is_half(&file) => {
                Err(TableError::OtherFormat(path.to_owned()))
            }
            Err(error @ TableError::Io(..)) => Err(error),
            _ => Ok(file),
        }
    }

    /// Writes it in place of what is there.
    pub(crate) fn write(&self, file: &File) -> io::Result<()> {
        let Address {
            process,
            descriptor,
            id,
        } = self;
        let line = format!("{HEAD} {process} {descriptor} {id:016x}\n");
        file.set_len(0)?;
        file.write_all_at(line.as_bytes(), 0)
    }

    /// Where the system shows the memory, as long as the keeper's process has it.
    pub(crate) fn place(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", self.process, self.descriptor))
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
        let mut words = line.strip_prefix(HEAD)?.split_ascii_whitespace();
        let address = Address {
            process: words.next()?.parse().ok()?,
            descriptor: words.next()?.parse().ok()?,
            id: u64::from_str_radix(words.next()?, 16).ok()?,
        };
        words.next().is_none().then_some(address)
    }
}

/// Whether a file is the beginning of an address: somebody has cut it short.
fn is_half(file: &File) -> bool {
    let mut head = [0; HEAD.len()];
    let read = file.read_at(&mut head, 0).unwrap_or_default();
    HEAD.as_bytes().starts_with(&head[..read])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_whole_line() {
        let line = b"thorp table 1: 7 12 00000000000000ff\n";
        let address = Address {
            process: 7,
            descriptor: 12,
            id: 255,
        };
        assert_eq!(Address::parse(line), Some(address));
        for length in 0..line.len() {
            assert_eq!(Address::parse(&line[..length]), None, "{length}");
        }
        assert_eq!(Address::parse(b"thorp table 2: 7 12 ff\n"), None);
        assert_eq!(Address::parse(b"thorp table 1: 7 12 ff 3\n"), None);
    }
}
