//! Who has written an update, and which node keeps it under which number (rule C7).

use crate::ids::{HomeId, MemberId, NameId, SegmentId};
use crate::message::PageWrites;
use crate::signing::{self, Proof, SignedText};
use crate::update::UpdateId;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// What a member states of an update that it gives to the log of another name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct AuthorText<'a> {
    /// Its form, [`AUTHORSHIP_VERSION`].
    pub version: u8,
    /// The home of the segment.
    pub home: HomeId,
    /// The only segment that it writes to.
    pub segment: SegmentId,
    /// Whose log is to keep it.
    pub log: NameId,
    /// Who writes it, and as what.
    pub by: Author,
    /// What it writes.
    pub writes: &'a [PageWrites],
}

/// What the node states that has custody of an update.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct CustodyText<'a> {
    /// Its form, [`AUTHORSHIP_VERSION`].
    pub version: u8,
    /// The home of the segment.
    pub home: HomeId,
    /// The update. Its number is the log's to give.
    pub update: UpdateId,
    /// Who has written it, if that is not the log's own member.
    pub by: Option<Author>,
    /// What it writes.
    pub writes: &'a [PageWrites],
}

/// The member that has written an update, and how often it had given one to a log before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Author {
    /// The member.
    pub member: MemberId,
    /// Rises with each update that this member gives away.
    pub sequence: u64,
}

/// An author, with the proof that the update is its own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Authorship {
    /// Who has written it.
    pub by: Author,
    /// The author's signature of the [`AuthorText`].
    pub proof: Proof,
}

/// The form of [`AuthorText`] and [`CustodyText`].
pub const AUTHORSHIP_VERSION: u8 = 1;

impl SignedText for AuthorText<'_> {
    fn by(&self) -> NameId {
        self.by.member.name()
    }

    fn signed_bytes(&self, village: &str) -> Vec<u8> {
        signing::bytes_of(b"thorp update\0", village, self)
    }
}

impl SignedText for CustodyText<'_> {
    fn by(&self) -> NameId {
        self.update.log.name()
    }

    fn signed_bytes(&self, village: &str) -> Vec<u8> {
        signing::bytes_of(b"thorp custody\0", village, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::LogId;

    fn author() -> Author {
        let member = MemberId::new(NameId::of("anna"), 7);
        Author {
            member,
            sequence: 3,
        }
    }

    fn text() -> AuthorText<'static> {
        AuthorText {
            version: AUTHORSHIP_VERSION,
            home: HomeId(1),
            segment: SegmentId(2),
            log: NameId::of("office"),
            by: author(),
            writes: &[],
        }
    }

    fn custody() -> CustodyText<'static> {
        let update = UpdateId {
            log: LogId(MemberId::new(NameId::of("office"), 1)),
            segment: SegmentId(2),
            number: 4,
        };
        CustodyText {
            version: AUTHORSHIP_VERSION,
            home: HomeId(1),
            update,
            by: None,
            writes: &[],
        }
    }

    #[test]
    fn what_an_author_signs_differs_with_each_part() {
        let next = Author {
            sequence: 4,
            ..author()
        };
        let others = [
            AuthorText {
                home: HomeId(2),
                ..text()
            },
            AuthorText {
                segment: SegmentId(3),
                ..text()
            },
            AuthorText {
                log: NameId::of("valley"),
                ..text()
            },
            AuthorText { by: next, ..text() },
        ];
        let signed = text().signed_bytes("0123");
        for other in others {
            assert_ne!(other.signed_bytes("0123"), signed, "{other:?}");
        }
        assert_ne!(text().signed_bytes("0124"), signed);
    }

    #[test]
    fn what_a_log_signs_differs_with_the_number_and_the_author() {
        let signed = custody().signed_bytes("0123");
        let mut other = custody();
        other.update.number = 5;
        assert_ne!(other.signed_bytes("0123"), signed);
        let mut other = custody();
        other.by = Some(author());
        assert_ne!(other.signed_bytes("0123"), signed);
        assert!(!signed.starts_with(b"thorp update"));
    }
}
