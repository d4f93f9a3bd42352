//! Names, counts and times of the protocol, each a type of its own.

use crate::limits::SLOTS_MAX;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// Declares a number that must not be mistaken for another.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        pub struct $name(pub $inner);

        impl $name {
            /// The next one. Saturates: numbers of 64 bits are not counted that
            /// far, and what ends before those of 32 bits do is said where they are given.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

number! {
    /// A home's id, fixed when its data directory is made (foundation 4).
    HomeId(u32)
}
number! {
    /// A segment of a home.
    SegmentId(u32)
}
number! {
    /// A page's number in its segment. Numbers from [`PageNo::SYSTEM_FIRST`] are system pages, and those from
    /// [`PageNo::OVERFLOW_FIRST`] overflow pages.
    PageNo(u32)
}
/// A slot of a page, below [`crate::limits::SLOTS_MAX`]; decoding checks it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Slot(pub u16);

impl TryFrom<u16> for Slot {
    type Error = &'static str;

    fn try_from(slot: u16) -> Result<Self, Self::Error> {
        if slot < SLOTS_MAX {
            Ok(Slot(slot))
        } else {
            Err("a slot beyond the last of a page")
        }
    }
}

impl From<Slot> for u16 {
    fn from(slot: Slot) -> u16 {
        slot.0
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

number! {
    /// How often a slot was given to a new object. Zero is a slot never used.
    Generation(u32)
}
number! {
    /// A home's log sequence number, one for each commit. Zero is before the first.
    Position(u64)
}
number! {
    /// One life of a home's stream down one edge, chosen by the parent.
    Epoch(u64)
}
number! {
    /// The number of an entering of a page for a child, rising within an epoch (rule 2),
    /// which ends before the numbers do ([`crate::limits::ENTERINGS_MAX`]). Directories
    /// are full of them, so they are short.
    EntryNo(u32)
}
number! {
    /// One try of a child to get a page (rule 9).
    Attempt(u64)
}
number! {
    /// One piece of a child's report of its pages to a new parent (rule 13).
    ReportNo(u64)
}
number! {
    /// A member's registration at a home: what a forgotten incarnation may no longer use (rule 11).
    Registration(u64)
}
number! {
    /// A connection, as the driver of a state machine names it. Never used twice.
    EdgeId(u64)
}
number! {
    /// A request of the program to its member; the answer carries it back.
    RequestId(u64)
}

impl PageNo {
    /// The first page of the overflow area. Overflow pages are never reused, so
    /// that a head kept while its pages are gone can name no newer content (trap 12).
    pub const OVERFLOW_FIRST: PageNo = PageNo(1 << 31);

    /// The first system page (foundation 2). System pages hold what a segment keeps of itself, such as the nodes of its
    /// named roots. No scan visits them.
    pub const SYSTEM_FIRST: PageNo = PageNo(1 << 30);

    /// Whether this is an overflow page.
    pub fn is_overflow(self) -> bool {
        self >= Self::OVERFLOW_FIRST
    }

    /// Whether this is a system page.
    pub fn is_system(self) -> bool {
        (Self::SYSTEM_FIRST..Self::OVERFLOW_FIRST).contains(&self)
    }

    /// Whether a program's objects may lie there.
    pub fn is_of_objects(self) -> bool {
        self < Self::SYSTEM_FIRST
    }

    /// The system page that is granted with a page of objects.
    pub fn system(self) -> PageNo {
        PageNo(self.0 | Self::SYSTEM_FIRST.0)
    }

    /// The page of objects with which a system page is granted. Any other page is its own.
    fn granted_with(self) -> PageNo {
        match self.is_system() {
            true => PageNo(self.0 & !Self::SYSTEM_FIRST.0),
            false => self,
        }
    }

    /// Whether a home that has granted the pages below `granted` has granted this one, too. It grants no overflow page.
    pub fn is_granted(self, granted: PageNo) -> bool {
        !self.is_overflow() && self.granted_with() < granted
    }
}

/// A page of a home: the unit of transfer and of directories.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PageId {
    /// The segment.
    pub segment: SegmentId,
    /// Its page.
    pub page: PageNo,
}

impl PageId {
    /// Names a page.
    pub const fn new(segment: u32, page: u32) -> Self {
        PageId {
            segment: SegmentId(segment),
            page: PageNo(page),
        }
    }

    /// One number that sorts as the page does.
    pub fn key(self) -> u64 {
        (u64::from(self.segment.0) << 32) | u64::from(self.page.0)
    }

    /// The page of a [`PageId::key`].
    pub fn from_key(key: u64) -> Self {
        Self::new((key >> 32) as u32, key as u32)
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.segment, self.page)
    }
}

impl fmt::Debug for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A page of one of several homes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The home.
    pub home: HomeId,
    /// Its page.
    pub page: PageId,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.home, self.page)
    }
}

/// An object of a home: the unit of conflict.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectId {
    /// Its page.
    pub page: PageId,
    /// Its slot there.
    pub slot: Slot,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.page, self.slot)
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

number! {
    /// A delegation of a member: each has a higher number than all before it (rule R2).
    DelegationNo(u64)
}
/// A node's name, as ids carry it: the first 64 bits of BLAKE3 of the name (rule R1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct NameId(pub u64);

impl NameId {
    /// The id of a name.
    pub fn of(name: &str) -> Self {
        let digest = blake3::hash(name.as_bytes());
        let [a, b, c, d, e, f, g, h, ..] = *digest.as_bytes();
        NameId(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }
}

impl fmt::Display for NameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for NameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{self}")
    }
}

/// One process start of a node, so also its incarnation (foundation 4). The first 64 bits are its
/// name's, the others are random: no node can take the id of another name (rule R1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct MemberId(pub u128);

impl MemberId {
    /// The process start of the node with this name that drew these random bits.
    pub fn new(name: NameId, random: u64) -> Self {
        MemberId(u128::from(name.0) << 64 | u128::from(random))
    }

    /// The name that the id belongs to.
    pub fn name(self) -> NameId {
        NameId((self.0 >> 64) as u64)
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl fmt::Debug for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{:x}", self.0)
    }
}

/// A commit's id: (member, incarnation, sequence), used once (rule 11).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CommitId {
    /// Member and incarnation.
    pub member: MemberId,
    /// Counts the commits of that incarnation, from 1.
    pub sequence: u64,
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.member, self.sequence)
    }
}

impl FromStr for CommitId {
    type Err = NoCommitId;

    fn from_str(text: &str) -> Result<Self, NoCommitId> {
        let (member, sequence) = text.split_once(':').ok_or(NoCommitId)?;
        let member = u128::from_str_radix(member, 16).map_err(|_| NoCommitId)?;
        let sequence = sequence.parse().map_err(|_| NoCommitId)?;
        Ok(CommitId {
            member: MemberId(member),
            sequence,
        })
    }
}

/// A text names no commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoCommitId;

impl fmt::Display for NoCommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a commit is named MEMBER:NUMBER, the member in hexadecimal digits")
    }
}

impl core::error::Error for NoCommitId {}

impl fmt::Debug for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:{}", self.member, self.sequence)
    }
}

/// A commit's time, there to order commits of different homes: a hybrid clock
/// (48 bits of milliseconds, 16 of counter), then the home. Compared in that order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Stamp {
    /// Milliseconds since 1970 in the high 48 bits, a counter in the low 16.
    pub clock: u64,
    /// The home that gave it.
    pub home: HomeId,
}

impl Stamp {
    /// The clock value of a wall time.
    pub fn clock_of(wall: Millis) -> u64 {
        wall.0 << 16
    }

    /// The wall time of the clock.
    pub fn wall(self) -> Millis {
        Millis(self.clock >> 16)
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.clock >> 16, self.clock & 0xffff)
    }
}

/// A time in milliseconds: since the driver started (monotone) or since 1970 (wall).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Millis(pub u64);

impl Millis {
    /// This time and so many milliseconds.
    #[must_use]
    pub fn plus(self, millis: u64) -> Millis {
        Millis(self.0.saturating_add(millis))
    }

    /// This time, so many milliseconds earlier.
    #[must_use]
    pub fn before(self, millis: u64) -> Millis {
        Millis(self.0.saturating_sub(millis))
    }

    /// Milliseconds from `earlier` to this time, zero if it is not earlier.
    pub fn since(self, earlier: Millis) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Debug for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

/// What a driver knows of time when it hands over an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// Never goes back in one process; for timers. Begins no lower than
    /// [`Now::MONO_FIRST`].
    pub mono: Millis,
    /// May jump; only stamps and the ends of delegations use it.
    pub wall: Millis,
}

impl Now {
    /// What a monotone clock shows when it begins: a parent tells of a silence
    /// that may be longer than the process has run, and when that began must be
    /// a time, too.
    pub const MONO_FIRST: Millis = Millis(u32::MAX as u64 + 1);
}

/// A machine-independent name of an object or a place in it:
/// `thorp://HOME/path#PAGE.SLOT.GENERATION[+OFFSET]`, in the compact form that
/// is stored in objects: home and segment by id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Reference {
    /// The home.
    pub home: HomeId,
    /// The object.
    pub object: ObjectId,
    /// Which object of that slot: one deleted and created anew differs.
    pub generation: Generation,
    /// A place in the object, in bytes; zero is the object itself.
    pub offset: u64,
}

impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}.{}", self.home, self.object, self.generation)?;
        if self.offset != 0 {
            write!(f, "+{}", self.offset)?;
        }
        Ok(())
    }
}

/// The kind of a node, told when it connects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, PartialOrd, Ord)]
pub enum NodeKind {
    /// Owns segments.
    Home,
    /// Directory and proxy of a site.
    Redirector,
    /// A program's client library.
    Member,
}

/// Who is at the other end of an edge.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Peer {
    /// What it is.
    pub kind: NodeKind,
    /// Its process start: random bits, like a member's id.
    pub node: MemberId,
    /// Its name.
    pub name: String,
    /// Whether it has the role operator: then it may do everything (rule R3).
    pub is_operator: bool,
    /// Whether it is a site that the member of its name carries. Such a site may have what that member may read (rule R4).
    pub is_carried: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_id_belongs_to_one_name() {
        let (anna, ben) = (NameId::of("anna"), NameId::of("ben"));
        assert_ne!(anna, ben);
        let id = MemberId::new(anna, u64::MAX);
        assert_eq!((id.name(), id.0 as u64), (anna, u64::MAX));
        // Both ends of an edge compute it: it must not change (rule R1).
        assert_eq!(alloc::format!("{anna}"), "9b0b94badc64ae45");
    }

    #[test]
    fn a_commit_is_named_by_what_is_printed_of_it() {
        let id = CommitId {
            member: MemberId::new(NameId::of("anna"), 7),
            sequence: 12,
        };
        assert_eq!(alloc::format!("{id}").parse(), Ok(id));
        for wrong in ["", "12", "x:1", "1:x", "1:-1", ":1"] {
            assert_eq!(wrong.parse::<CommitId>(), Err(NoCommitId), "{wrong:?}");
        }
    }
}
