//! A table as mapped memory: the keeper writes it, and proxies on the same host read it. The only file here with unsafe code.
#![allow(unsafe_code)]

use crate::address::{Address, TableError, Terms};
use crate::cells::{self, Cells, Writable};
use crate::limits::{CELLS, FORMAT, ID, TERMS};
use crate::sync::AtomicU64;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create,
};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Tells a table from other memory. It has the version of the layout in its last byte.
const MAGIC: u64 = u64::from_le_bytes(*b"thorpvt\x02");

/// A table's length in bytes.
const BYTES: u64 = (CELLS * size_of::<u64>()) as u64;

/// Nobody makes the memory shorter or longer, and nobody but its keeper writes it. Without the first one, a load of what was cut off
/// would end the reader's process.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::FUTURE_WRITE)
    .union(SealFlags::SEAL);

/// A table that another process writes.
///
/// Invariant: the memory is as long as a table, and sealed: it stays so. It lives as long as this, whatever becomes of its keeper.
#[derive(Debug)]
pub struct Mapped {
    map: MmapRaw,
    address: Address,
    /// The number of the memory, among all files without a name.
    inode: u64,
}

impl Mapped {
    /// Opens the table whose address is in a file.
    ///
    /// # Errors
    ///
    /// See [`TableError`].
    pub fn open(path: &Path, terms: Terms) -> Result<Self, TableError> {
        let address = Address::read(path)?;
        let file = opened(&address, path)?;
        let other = || TableError::OtherFormat(path.to_owned());
        let io = |error| TableError::Io(path.to_owned(), error);
        // What is not sealed is no table: the process has ended, and its number is another's.
        let seals = fcntl_get_seals(&file).map_err(|_| other())?;
        let metadata = file.metadata().map_err(io)?;
        if !seals.contains(SEALS) || metadata.len() != BYTES {
            return Err(other());
        }
        let map = options().map_raw_read_only(&file).map_err(io)?;
        let inode = metadata.ino();
        let table = Mapped {
            map,
            address,
            inode,
        };
        match [FORMAT, ID, TERMS].map(|at| table.load(at)) {
            [MAGIC, id, _] if id != address.id => Err(TableError::Gone(path.to_owned())),
            [MAGIC, _, of] if of != terms.0 => Err(TableError::OtherTerms(path.to_owned())),
            [MAGIC, ..] => Ok(table),
            _ => Err(other()),
        }
    }

    /// Where it was found.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Whether its keeper's process still has it. It may hang.
    pub fn is_kept(&self) -> bool {
        let there = fs::metadata(self.address.place());
        there.is_ok_and(|memory| memory.ino() == self.inode)
    }
}

impl Cells for Mapped {
    fn load(&self, at: usize) -> u64 {
        cells::load(words(&self.map), at)
    }
}

/// A table that this process writes.
///
/// Invariant: it holds the lock on the file with its address, so no other keeper has that file.
#[derive(Debug)]
pub struct Kept {
    map: MmapRaw,
    /// Readers open it by its number.
    _memory: File,
    /// Its lock is the keeper's.
    file: File,
}

impl Kept {
    /// Makes a table, and writes its address to a file. The id is random: no other table has it.
    ///
    /// # Errors
    ///
    /// See [`TableError`]. A file that holds something else is not changed.
    pub fn make(path: &Path, terms: Terms, id: u64) -> Result<Self, TableError> {
        let io = |error| TableError::Io(path.to_owned(), error);
        let file = Address::lock(path)?;
        let memory = sealed_later().map_err(io)?;
        let map = options().map_raw(&memory).map_err(io)?;
        fcntl_add_seals(&memory, SEALS).map_err(|error| io(error.into()))?;
        let table = Kept {
            map,
            _memory: memory,
            file,
        };
        for (at, bits) in [(TERMS, terms.0), (ID, id), (FORMAT, MAGIC)] {
            table.store(at, bits);
        }
        let address = Address {
            process: std::process::id(),
            descriptor: table._memory.as_raw_fd().unsigned_abs(),
            id,
        };
        address.write(&table.file).map_err(io)?;
        Ok(table)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // What is left there names a process that has no such table any more, and readers see that.
        let _ = self.file.set_len(0);
    }
}

impl Cells for Kept {
    fn load(&self, at: usize) -> u64 {
        cells::load(words(&self.map), at)
    }
}

impl Writable for Kept {
    fn store(&self, at: usize, bits: u64) {
        cells::store(words(&self.map), at, bits);
    }
}

/// Memory as long as a table, which has no name, and may still be mapped to be written.
fn sealed_later() -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = memfd_create("thorp table", flags)?;
    ftruncate(&memory, BYTES)?;
    Ok(File::from(memory))
}

fn options() -> MmapOptions {
    let mut options = MmapOptions::new();
    options.len(CELLS * size_of::<u64>());
    options
}

fn words(map: &MmapRaw) -> &[AtomicU64] {
    let first = map.as_ptr().cast::<AtomicU64>();
    // SAFETY: the mapping lives as long as the borrow, begins at a page, and has `CELLS` words of 64 bits, of which all bits are valid. Its
    // memory is sealed: it does not become shorter, and only the keeper's mapping is written, by atomic stores. A reader's table is not
    // `Writable`: nothing stores to its read-only mapping.
    unsafe { std::slice::from_raw_parts(first, CELLS) }
}

/// The memory at an address.
fn opened(address: &Address, path: &Path) -> Result<File, TableError> {
    let opened = OpenOptions::new().read(true).open(address.place());
    opened.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => TableError::OtherUser(path.to_owned()),
        _ => TableError::Gone(path.to_owned()),
    })
}
