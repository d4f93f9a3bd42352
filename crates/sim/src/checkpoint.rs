//! Long campaigns, kept in a file: each piece that held is a line of JSON in it, so what was
//! stopped goes on where it was, and what several machines did is added up.

use crate::counts::Counts;
use crate::shards::Seeds;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// A piece of a campaign that held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    /// What was run: villages of other code count for nothing.
    pub tree: String,
    /// Its seeds.
    pub seeds: Seeds,
    /// Seconds that it took.
    pub seconds: f64,
    /// What was counted.
    pub counts: Counts,
}

/// The pieces of a campaign, and the file that keeps them.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    tree: String,
    pieces: Vec<Piece>,
    others: usize,
}

impl Checkpoint {
    /// Reads what is kept for this tree; a file that is not there yet keeps nothing.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has a line that is no piece (the last one may be torn).
    pub fn open(path: &Path, tree: &str) -> io::Result<Self> {
        let mut kept = Checkpoint {
            path: path.to_owned(),
            tree: tree.to_owned(),
            pieces: Vec::new(),
            others: 0,
        };
        let lines = match File::open(path) {
            Ok(file) => BufReader::new(file)
                .lines()
                .collect::<io::Result<Vec<_>>>()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        for (number, line) in lines.iter().enumerate() {
            match serde_json::from_str::<Piece>(line) {
                Ok(piece) if piece.tree == tree => kept.pieces.push(piece),
                Ok(_) => kept.others += 1,
                Err(error) => {
                    let (path, number) = (path.display(), number + 1);
                    let why = format!(
                        "{path}, line {number}: {error}; take the line out, or another file"
                    );
                    return Err(io::Error::new(io::ErrorKind::InvalidData, why));
                }
            }
        }
        Ok(kept)
    }

    /// What came of these seeds, if they held already.
    pub fn piece(&self, seeds: Seeds) -> Option<&Piece> {
        self.pieces.iter().find(|piece| piece.seeds == seeds)
    }

    /// Whether these seeds held already.
    pub fn has(&self, seeds: Seeds) -> bool {
        self.piece(seeds).is_some()
    }

    /// Keeps a piece that held.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn keep(&mut self, seeds: Seeds, seconds: f64, counts: Counts) -> io::Result<()> {
        let piece = Piece {
            tree: self.tree.clone(),
            seeds,
            seconds,
            counts,
        };
        let mut line = serde_json::to_string(&piece)?;
        line.push('\n');
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)?;
        file.write_all(line.as_bytes())?;
        file.sync_data()?;
        self.pieces.push(piece);
        Ok(())
    }

    /// With what another file kept of the same tree.
    #[must_use]
    pub fn joined(mut self, other: Checkpoint) -> Self {
        self.others += other.others;
        for piece in other.pieces {
            if !self.has(piece.seeds) {
                self.pieces.push(piece);
            }
        }
        self
    }

    /// Everything that was counted.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for piece in &self.pieces {
            counts.add(&piece.counts);
        }
        counts
    }

    /// Seconds that all the pieces took, one after the other.
    pub fn seconds(&self) -> f64 {
        self.pieces.iter().map(|piece| piece.seconds).sum()
    }

    /// Pieces that villages of other code held.
    pub fn others(&self) -> usize {
        self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: Seeds = Seeds {
        first: 1,
        count: 10,
    };
    const MORE: Seeds = Seeds {
        first: 11,
        count: 5,
    };

    fn counts(seeds: Seeds) -> Counts {
        let mut counts = Counts {
            seeds: seeds.count,
            operations: 7,
            ..Counts::default()
        };
        counts.refused("busy");
        counts
    }

    #[test]
    fn what_held_is_kept_and_added_up() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("campaign");
        let mut kept = Checkpoint::open(&path, "one")?;
        kept.keep(FEW, 2.0, counts(FEW))?;
        kept.keep(MORE, 3.0, counts(MORE))?;
        let again = Checkpoint::open(&path, "one")?;
        assert!(again.has(FEW) && again.has(MORE));
        assert!(!again.has(Seeds {
            first: 11,
            count: 10
        }));
        assert_eq!(again.counts().seeds, 15);
        assert_eq!(again.counts().refusals.get("busy"), Some(&2));
        assert_eq!(again.seconds(), 5.0);
        let other = Checkpoint::open(&path, "two")?;
        assert_eq!((other.counts().seeds, other.others()), (0, 2));
        let both = Checkpoint::open(&path, "one")?.joined(again);
        assert_eq!(both.counts().operations, 14);
        Ok(())
    }

    #[test]
    fn a_line_that_is_no_piece_is_told() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("campaign");
        std::fs::write(&path, "{\n")?;
        let error = Checkpoint::open(&path, "one").expect_err("no piece");
        assert!(error.to_string().contains("line 1"), "{error}");
        Ok(())
    }
}
