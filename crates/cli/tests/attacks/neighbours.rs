//! Two members of one home. Anna has a private segment. Mallory makes a segment that both use.

use crate::common::thorp;
use crate::scene::{Writer, home_with, intrude, join};
use std::fmt::Debug;
use std::process::Command;
use thorp_client::{ErrorKind, Member, Reference, Result, Segment};
use thorp_model::Subject;
use thorp_testing::{HomeProcess, Said, finish};

/// Anna's private segment.
pub(crate) const DIARY: &str = "thorp://alps/diary";

/// The bytes of each object in it.
pub(crate) const ENTRY: &str = "dear diary";

/// The segment that mallory makes. Every member may write in it.
pub(crate) const SHARED: &str = "thorp://alps/shared";

pub(crate) struct Neighbours {
    home: HomeProcess,
    pub(crate) anna: Member,
    pub(crate) mallory: Member,
    /// Mallory once more, without the client library.
    pub(crate) writer: Writer,
    pub(crate) dir: tempfile::TempDir,
}

impl Neighbours {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = home_with(dir.path(), &[("anna", "member"), ("mallory", "member")]);
        let anna = join(dir.path(), "anna", &home.via);
        let mallory = join(dir.path(), "mallory", &home.via);
        let writer = Writer::new(intrude(dir.path(), "mallory", &home.via));
        Neighbours {
            home,
            anna,
            mallory,
            writer,
            dir,
        }
    }

    /// Makes the private segment, with some entries.
    pub(crate) fn diary<const ENTRIES: usize>(&self) -> (Segment, [Reference; ENTRIES]) {
        let diary = self.anna.create(DIARY).unwrap();
        diary.revoke(&Subject::Members).unwrap();
        let opened = self.mallory.open(DIARY);
        assert_eq!(kind_of(opened), ErrorKind::NotFound, "it is private");
        let entries = [(); ENTRIES].map(|()| create(&diary, ENTRY.as_bytes()));
        (diary, entries)
    }

    /// Makes the segment that both use.
    pub(crate) fn shared(&self) -> Segment {
        self.mallory.create(SHARED).unwrap()
    }

    /// What anna reads there.
    pub(crate) fn anna_reads(&self, at: &Reference) -> Result<String> {
        let bytes = self.anna.transact(|tx| tx.read(at).map(<[u8]>::to_vec));
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A command that anna runs.
    pub(crate) fn command_of_anna(&self, words: &[&str]) -> Command {
        let mut command = thorp().command(words);
        command
            .env("THORP_VIA", &self.home.via)
            .env("THORP_IDENTITY", self.dir.path().join("anna"));
        command
    }

    /// Anna runs a command to its end.
    pub(crate) fn anna_runs(&self, words: &[&str]) -> Said {
        finish(self.command_of_anna(words))
    }
}

/// The member of this segment creates an object in it.
pub(crate) fn create(segment: &Segment, bytes: &[u8]) -> Reference {
    let made = segment.member().transact(|tx| tx.create(segment, bytes));
    made.unwrap()
}

/// Why it failed.
pub(crate) fn kind_of<T: Debug>(failed: Result<T>) -> ErrorKind {
    failed.unwrap_err().kind()
}
