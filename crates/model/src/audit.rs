//! What a home records about the use and the want of rights (rule R8).
//!
//! The records are objects of the segment [`AUDIT_PATH`], which the home writes itself: a ring of
//! [`AUDIT_RECORDS_MAX`]. Only operators may read it, and whom they let.

use crate::history::{HowOpened, Incarnation};
use crate::ids::{CommitId, NameId, PageId, PageNo, Position, SegmentId, Slot};
use crate::message::Ruling;
use crate::rights::Right;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// The path of the segment with a home's audit records. Paths that begin with a full stop are the
/// home's own.
pub const AUDIT_PATH: &str = ".audit";

/// Records in a page, whatever is in them.
const PER_PAGE: u32 = 32;
/// Bytes of a path, and of a name, in a record: the rest is cut off.
const PATH_BYTES_MAX: usize = 96;
const NAME_BYTES_MAX: usize = 40;
/// Pages of the ring, after the segment's first one.
pub const AUDIT_PAGES: u32 = 31;
/// Records of the ring: the oldest is written over.
pub const AUDIT_RECORDS_MAX: u32 = AUDIT_PAGES * PER_PAGE;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum AuditEvent {
    /// A request was refused, because it needs a right that its sender has not.
    Denied {
        /// The right that it needs.
        right: Right,
    },
    /// A rights list was changed.
    RightsChanged,
    /// An operator ended a vote in doubt (rule R7). It concerns no segment.
    DoubtSettled {
        /// The commit of the vote.
        commit: CommitId,
        /// How the operator ended it.
        ruling: Ruling,
    },
    /// An operator opened the home (rule R9). This and the following concern no segment.
    Opened {
        /// How.
        how: HowOpened,
        /// The incarnation since then.
        incarnation: Incarnation,
        /// The counter of the last life before.
        life: u32,
        /// From which position the home goes on.
        position: Position,
    },
    /// A node brought this home's own receipt of another history, and the home closed (rule R9).
    OtherHistory {
        /// The incarnation of that history.
        incarnation: Incarnation,
        /// The counter of the life that the receipt names.
        life: u32,
        /// The position that it names.
        position: Position,
    },
    /// A node claimed to hold what nothing proves (rule R9).
    ClaimUnproven,
    /// A caller was turned away at the door (rule R1).
    TurnedAway {
        /// Why.
        why: WhyTurnedAway,
        /// Where it called from, of an IPv6 address the first 64 bits; none if it called by a Unix-domain socket, or if
        /// several addresses are counted together.
        from: Option<IpAddr>,
    },
}

/// Why a caller does not get in, as far as its certificate and its greeting show.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum WhyTurnedAway {
    /// It showed no certificate, or none that can be read.
    NoCertificate,
    /// No authority of this village has signed its certificate.
    OtherVillage,
    /// Its certificate is over.
    Expired,
    /// Its certificate is not good yet.
    NotYetValid,
    /// The authority has revoked its certificate.
    Revoked,
    /// Its certificate names no role, or no id of the home.
    NoRole,
    /// It greets as what its certificate does not say: another name, role or process.
    Greeting,
}

impl WhyTurnedAway {
    /// What is wrong, for people.
    pub fn words(self) -> &'static str {
        match self {
            WhyTurnedAway::NoCertificate => "no certificate",
            WhyTurnedAway::OtherVillage => "the certificate is of another village",
            WhyTurnedAway::Expired => "the certificate has expired",
            WhyTurnedAway::NotYetValid => "the certificate is not good yet",
            WhyTurnedAway::Revoked => "the certificate is revoked",
            WhyTurnedAway::NoRole => "the certificate names no role",
            WhyTurnedAway::Greeting => "the greeting is not what the certificate says",
        }
    }

    /// What is wrong, for programs.
    pub fn word(self) -> &'static str {
        match self {
            WhyTurnedAway::NoCertificate => "no_certificate",
            WhyTurnedAway::OtherVillage => "other_village",
            WhyTurnedAway::Expired => "expired",
            WhyTurnedAway::NotYetValid => "not_yet_valid",
            WhyTurnedAway::Revoked => "revoked",
            WhyTurnedAway::NoRole => "no_role",
            WhyTurnedAway::Greeting => "greeting",
        }
    }
}

/// A caller that a home has turned away at the door.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TurnedAway {
    /// Why.
    pub why: WhyTurnedAway,
    /// As [`AuditEvent::TurnedAway`] has it.
    pub from: Option<IpAddr>,
    /// The name that its certificate proves.
    pub name: Option<String>,
}

/// One record. Equal ones are counted instead of repeated.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AuditRecord {
    /// Counts the records of the home, from 1: the place in the ring follows from it.
    pub number: u64,
    /// What happened.
    pub event: AuditEvent,
    /// Who did it.
    pub who: NameId,
    /// The name, if the home knows it.
    pub name: String,
    /// The site that reported it or brought the request; none if it came by an edge of its own.
    pub site: Option<String>,
    /// The segment; number 0 if the event concerns none.
    pub segment: SegmentId,
    /// The path of the segment at that time.
    pub path: String,
    /// The position of the home when it happened last.
    pub position: Position,
    /// The wall clock of the home then, in milliseconds since 1970.
    pub wall_ms: u64,
    /// How often it has happened.
    pub count: u64,
}

impl AuditRecord {
    /// Where the record with a number lies.
    pub fn place(segment: SegmentId, number: u64) -> (PageId, Slot) {
        let index = (number % u64::from(AUDIT_RECORDS_MAX)) as u32;
        let page = PageId {
            segment,
            page: PageNo(1 + index / PER_PAGE),
        };
        (page, Slot((index % PER_PAGE) as u16))
    }

    /// The bytes of its object. Long names and paths are cut: every record fits in its place.
    pub fn to_bytes(&self) -> Vec<u8> {
        let path_bytes_max = match self.event {
            AuditEvent::Denied { .. } | AuditEvent::RightsChanged => PATH_BYTES_MAX,
            // There is no segment, and something else is in its place.
            AuditEvent::DoubtSettled { .. }
            | AuditEvent::Opened { .. }
            | AuditEvent::OtherHistory { .. }
            | AuditEvent::ClaimUnproven
            | AuditEvent::TurnedAway { .. } => 0,
        };
        let cut = AuditRecord {
            name: beginning(&self.name, NAME_BYTES_MAX),
            site: self.site.as_deref().map(|s| beginning(s, NAME_BYTES_MAX)),
            path: beginning(&self.path, path_bytes_max),
            ..self.clone()
        };
        // Encoding into memory fails for no value of this type.
        postcard::to_allocvec(&cut).unwrap_or_default()
    }

    /// Reads an object's bytes; none if they are no record.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        match postcard::take_from_bytes::<AuditRecord>(bytes) {
            Ok((record, [])) => Some(record),
            _ => None,
        }
    }
}

/// The first bytes of a text, whole characters only.
fn beginning(text: &str, bytes_max: usize) -> String {
    String::from(&text[..text.floor_char_boundary(bytes_max)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::MemberId;
    use crate::limits::{IMAGE_HEADER_BYTES, PAGE_BYTES, SLOT_ENTRY_BYTES};

    #[test]
    fn records_lie_in_a_ring_after_the_first_page() {
        let place = |number| AuditRecord::place(SegmentId(3), number);
        assert_eq!(place(0), (PageId::new(3, 1), Slot(0)));
        assert_eq!(place(u64::from(PER_PAGE)), (PageId::new(3, 2), Slot(0)));
        let last = u64::from(AUDIT_RECORDS_MAX) - 1;
        assert_eq!(place(last).0, PageId::new(3, AUDIT_PAGES));
        assert_eq!(place(last + 1), place(0));
    }

    #[test]
    fn a_record_is_read_as_it_is_written() {
        let record = AuditRecord {
            number: 7,
            event: AuditEvent::Denied { right: Right::Read },
            who: NameId::of("ben"),
            name: String::from("ben"),
            site: Some(String::from("office")),
            segment: SegmentId(2),
            path: String::from("plans"),
            position: Position(12),
            wall_ms: 1_795_000_000_000,
            count: 3,
        };
        let bytes = record.to_bytes();
        assert_eq!(AuditRecord::parse(&bytes), Some(record));
        assert_eq!(AuditRecord::parse(&bytes[1..]), None);
    }

    #[test]
    fn a_page_holds_its_records_whatever_is_in_them() {
        let long = "ä".repeat(300);
        let denied = AuditEvent::Denied {
            right: Right::Admin,
        };
        let settled = AuditEvent::DoubtSettled {
            commit: CommitId {
                member: MemberId(u128::MAX),
                sequence: u64::MAX,
            },
            ruling: Ruling::Abort,
        };
        let incarnation = Incarnation::new(4_095).expect("the last one");
        let (life, position) = (u32::MAX, Position(u64::MAX));
        let opened = AuditEvent::Opened {
            how: HowOpened::Moved,
            incarnation,
            life,
            position,
        };
        let met = AuditEvent::OtherHistory {
            incarnation,
            life,
            position,
        };
        let away = AuditEvent::TurnedAway {
            why: WhyTurnedAway::Greeting,
            from: Some(IpAddr::from([u8::MAX; 16])),
        };
        let changed = AuditEvent::RightsChanged;
        for event in [
            denied,
            changed,
            settled,
            opened,
            met,
            AuditEvent::ClaimUnproven,
            away,
        ] {
            let record = AuditRecord {
                number: u64::MAX,
                event,
                who: NameId(u64::MAX),
                name: long.clone(),
                site: Some(long.clone()),
                segment: SegmentId(u32::MAX),
                path: long.clone(),
                position: Position(u64::MAX),
                wall_ms: u64::MAX,
                count: u64::MAX,
            };
            let bytes = record.to_bytes();
            let each = bytes.len() + SLOT_ENTRY_BYTES;
            assert!(
                each * PER_PAGE as usize + IMAGE_HEADER_BYTES <= PAGE_BYTES,
                "{event:?}: {each}"
            );
            let read = AuditRecord::parse(&bytes);
            assert_eq!(read.map(|read| read.event), Some(event));
        }
    }
}
