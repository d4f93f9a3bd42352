//! The note: the number of the last acknowledged group, in a file of its own.
//!
//! It is written after each group was synced and before it is acknowledged,
//! and is synced itself only when it is made: that costs about a microsecond, it survives the
//! end of the process, and after a power failure it is at worst too low. So
//! it is a floor: a store that has come less far has lost something.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The note of an open store.
#[derive(Debug)]
pub(crate) struct Note {
    file: File,
}

impl Note {
    /// Opens the note of `dir` for writing. One that is missing or unreadable is made, durably: a store
    /// without a note has no proof that it lacks nothing (rule R9).
    pub(crate) fn open_or_made(dir: &Path, group: u64) -> io::Result<Note> {
        let is_there = read(dir)?.is_some();
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(dir.join(NAME))?;
        let note = Note { file };
        if !is_there {
            note.write(group)?;
            note.file.sync_all()?;
            File::open(dir)?.sync_all()?;
        }
        Ok(note)
    }

    /// Notes that a group was made durable.
    pub(crate) fn write(&self, group: u64) -> io::Result<()> {
        // Two places in turn: a write torn by a power failure spoils one only.
        let at = (group % 2) * ENTRY_BYTES as u64;
        self.file.write_all_at(&entry(group), at)
    }
}

/// The group noted in `dir`; none if there is no readable note.
pub(crate) fn read(dir: &Path) -> io::Result<Option<u64>> {
    let bytes = match std::fs::read(dir.join(NAME)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let (entries, _) = bytes.as_chunks::<ENTRY_BYTES>();
    Ok(entries.iter().filter_map(group).max())
}

/// The name of the note.
pub(crate) const NAME: &str = "thorp-note";

const ENTRY_BYTES: usize = 12;

fn entry(group: u64) -> [u8; ENTRY_BYTES] {
    let mut entry = [0; ENTRY_BYTES];
    entry[..8].copy_from_slice(&group.to_le_bytes());
    let sum = crc32fast::hash(&entry[..8]);
    entry[8..].copy_from_slice(&sum.to_le_bytes());
    entry
}

fn group(bytes: &[u8; ENTRY_BYTES]) -> Option<u64> {
    let (told, _) = bytes.split_first_chunk::<8>()?;
    let group = u64::from_le_bytes(*told);
    (entry(group) == *bytes).then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_readable_entry_counts() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), None);
        let note = Note::open_or_made(dir.path(), 0).unwrap();
        assert_eq!(read(dir.path()).unwrap(), Some(0));
        for group in 1..=5 {
            note.write(group).unwrap();
            assert_eq!(read(dir.path()).unwrap(), Some(group));
        }
        let mut bytes = std::fs::read(dir.path().join(NAME)).unwrap();
        bytes[12] ^= 1;
        std::fs::write(dir.path().join(NAME), bytes).unwrap();
        assert_eq!(read(dir.path()).unwrap(), Some(4));
    }
}
