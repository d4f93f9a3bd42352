//! Room that is kept in a file, for the last writes on a volume that somebody else has filled.
//!
//! A home that starts writes a few bytes before it serves reads: that its life begins, and how far its clock may go. On a
//! volume without a byte free it could not start.

use crate::volume::Volume;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use thorp_model::SplitMix64;

/// The file. It is given up when the volume is full, and made again when there is room.
pub(crate) struct Ballast {
    file: PathBuf,
}

impl Ballast {
    /// That of the store in a directory. Nothing is written yet.
    pub(crate) fn of(dir: &Path) -> Ballast {
        Ballast {
            file: dir.join(NAME),
        }
    }

    /// Makes it if it is not there, and takes no notable part of what is free. Without it the store only starts less surely
    /// on a full volume, so an error is none.
    pub(crate) fn make(&self, volume: Option<Volume>) {
        let has_room = volume.is_some_and(|volume| volume.free > volume.share());
        if has_room && !self.file.exists() && self.write().is_err() {
            let _ = fs::remove_file(&self.file);
        }
    }

    /// Gives its room up if the volume is as good as full. Tells whether it did.
    pub(crate) fn give_up_on(&self, volume: Option<Volume>) -> bool {
        let is_full = volume.is_some_and(|volume| volume.free < FULL_BYTES);
        is_full && fs::remove_file(&self.file).is_ok()
    }

    fn write(&self) -> io::Result<()> {
        // No file system makes it smaller.
        let mut random = SplitMix64::new(1);
        let words = (0..BYTES / 8).flat_map(|_| random.bits().to_le_bytes());
        let mut file = File::create_new(&self.file)?;
        file.write_all(&words.collect::<Vec<_>>())?;
        file.sync_all()
    }
}

/// The name of the file.
pub(crate) const NAME: &str = "thorp-ballast";

/// Its size.
const BYTES: usize = 1 << 20;

/// A volume with less than this free is as good as full.
const FULL_BYTES: u64 = 384 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_given_up_on_a_full_volume_only_and_made_where_there_is_room() {
        let dir = tempfile::tempdir().unwrap();
        let ballast = Ballast::of(dir.path());
        let volume = |free| {
            Some(Volume {
                size: 1 << 30,
                free,
            })
        };
        ballast.make(volume(1 << 20));
        assert!(!ballast.file.exists());
        ballast.make(volume(1 << 29));
        assert_eq!(fs::metadata(&ballast.file).unwrap().len(), BYTES as u64);
        assert!(!ballast.give_up_on(None) && !ballast.give_up_on(volume(FULL_BYTES)));
        assert!(ballast.give_up_on(volume(FULL_BYTES - 1)));
        assert!(!ballast.give_up_on(volume(0)), "it is gone");
    }
}
