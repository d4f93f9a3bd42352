//! A home's records: keys and values in each table. Numbers in keys are
//! big-endian, so that they sort.

use crate::{
    Authorship, Blob, CommitId, CommitRequest, DelegationNo, Fence, HomeId, Image, Incarnation,
    LogId, MemberId, NameId, Op, Outcome, Overflow, PageChange, PageId, PageNo, PageWrites, Part,
    Participant, Position, Reader, Receipt, Refusal, Registration, SegmentId, SlotSet, Stamp,
    StorageError, Table, Update, UpdateId,
};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of these records. A home refuses to open later ones; version 1
/// had nothing set aside, version 2 had no rights lists, version 3 had no delegations, version 4 had no shares of names,
/// version 5 had no system pages, version 6 had no refusals of procedures, version 7 had no logs, version 8 had no locks,
/// version 9 had no procedure that met a key that was taken, version 10 had no author of an update that was not proven.
pub const FORMAT_VERSION: u32 = 11;

/// Whether this program can go on from records of a version.
pub fn is_known_format(format: u32) -> bool {
    (1..=FORMAT_VERSION).contains(&format)
}

/// Who the home is: `meta/home`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HomeRecord {
    /// The version of the records.
    pub format: u32,
    /// The home's id.
    pub home: HomeId,
    /// Its name.
    pub name: String,
}

/// Numbers that are never given twice: `meta/next`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NextRecord {
    /// The last segment id given.
    pub segment: SegmentId,
    /// The last registration given.
    pub registration: Registration,
    /// How often the home was opened: streams of different lives differ.
    pub life: u32,
}

impl NextRecord {
    /// All numbers that are given from now on lie above those of earlier incarnations (rule R9).
    pub fn raise_to(&mut self, incarnation: Incarnation) {
        self.segment.0 = self.segment.0.max(incarnation.floor_32());
        self.registration.0 = self.registration.0.max(incarnation.floor_64());
        self.life = self.life.max(incarnation.floor_32());
    }
}

/// What a store changes when an operator opens it as one that has gone back: numbers that are never given twice lie above
/// those of earlier incarnations, and the clock above what the home has promised in the history that it met (rule R9).
/// Nothing in an empty store.
///
/// # Errors
///
/// [`StorageError`]: a record cannot be read.
pub fn reopened(
    store: &dyn Reader,
    incarnation: Incarnation,
    met_clock: u64,
) -> Result<Vec<Op>, StorageError> {
    let Some(stored) = store.get(Table::Meta, NEXT_KEY)? else {
        return Ok(Vec::new());
    };
    let mut next: NextRecord = decode(Table::Meta, NEXT_KEY, &stored)?;
    next.raise_to(incarnation);
    let stored = store.get(Table::Meta, CLOCK_KEY)?;
    let ceiling = stored.map(|stored| decode::<u64>(Table::Meta, CLOCK_KEY, &stored));
    let ceiling = ceiling.transpose()?.unwrap_or_default().max(met_clock);
    Ok(Vec::from([
        put(Table::Meta, NEXT_KEY.to_vec(), &next),
        put(Table::Meta, CLOCK_KEY.to_vec(), &ceiling),
    ]))
}

/// One segment: `meta/segment/ID`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SegmentRecord {
    /// Its path.
    pub path: String,
    /// Pages below this were granted to creators.
    pub granted: PageNo,
    /// Pages below this may hold objects: the value of the extent object.
    pub extent: PageNo,
    /// Overflow pages below this were given.
    pub overflow: PageNo,
    /// Whether it is being removed: its pages go bit by bit.
    pub removing: bool,
}

/// How far the system pages of a segment go: `meta/system/ID` (foundation 2). A segment without any has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SystemRecord {
    /// System pages below this may hold something.
    pub end: PageNo,
}

/// A segment's rights list, as its object has it at the accepted tip: `meta/rights/ID` (rule R3).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RightsRecord {
    /// The object's bytes.
    pub list: Blob,
}

/// Who made a segment, and what each name has used of it: `meta/usage/ID` (rule R7). A segment from before format 5 has
/// none until somebody uses more of it: nobody is known to have made it, or to have written what was there.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct UsageRecord {
    /// Who made the segment. None: the home itself, an operator, or a program from before format 5.
    pub maker: Option<NameId>,
    /// What names have used, ascending.
    pub names: Vec<(NameId, Used)>,
    /// What all other names have used.
    pub others: Used,
}

/// What a name has used of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Used {
    /// Pages that are there because of it.
    pub pages: u32,
    /// Numbers of pages for objects that it was granted.
    pub granted: u32,
    /// Numbers of overflow pages that it was given.
    pub overflow: u32,
}

impl Used {
    /// Adds what another has used.
    pub fn add(&mut self, other: Used) {
        self.pages = self.pages.saturating_add(other.pages);
        self.granted = self.granted.saturating_add(other.granted);
        self.overflow = self.overflow.saturating_add(other.overflow);
    }

    /// Pages and numbers together, to tell who has used the least.
    pub fn sum(self) -> u64 {
        u64::from(self.pages) + u64::from(self.granted) + u64::from(self.overflow)
    }
}

/// How many segments a name has made, also those that are gone: `meta/made/NAME` (rule R7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MadeRecord {
    /// The last one: its id names the incarnation in which they were counted.
    pub last: SegmentId,
    /// How many, in that incarnation.
    pub count: u32,
}

/// Where a log is in a segment: `meta/saved/LOG/SEGMENT` (rule C7).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SavedRecord {
    /// The number of the last update that was executed or refused.
    pub last: u64,
    /// Of these the ones that were refused, ascending, until the log has confirmed that it knows.
    pub refused: Vec<(u64, Refusal)>,
}

/// A home has granted a lease in a segment: `meta/lease/SEGMENT` to write, `meta/readlease/SEGMENT` to read (rule C4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeaseRecord {
    /// The longest that one of them lasts.
    pub lease_ms: u32,
}

/// An update in a log: `meta/update/HOME/LOG/SEGMENT/NUMBER` of the log's own directory (rule C6).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UpdateRecord {
    /// The update.
    pub update: Update,
    /// Why its home has refused it: it is on the list of rejected updates. None: the home has not said.
    pub rejected: Option<Refusal>,
    /// Who has written it, if that is not the log's own member.
    pub author: Option<Authorship>,
}

/// What a log notes of an update for conflict routines: `meta/conflict/HOME/LOG/SEGMENT/NUMBER` of its own directory (rule C6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ConflictRecord {
    /// The home of the update.
    pub home: HomeId,
    /// The update.
    pub id: UpdateId,
    /// How often a routine has sent again what the update writes, the update itself included.
    pub attempts: u32,
    /// Whether it was refused, and no routine has said what becomes of it.
    pub is_open: bool,
}

/// Where the audit of a home is: `meta/audit` (rule R8).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AuditMark {
    /// The number of the last record.
    pub last: u64,
}

/// Which openings are in the audit: `meta/opened` (rules R8 and R9). A store without it has none there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct OpenedMark {
    /// The number of the last one.
    pub last: u64,
}

/// One commit: `log/POSITION`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LogRecord {
    /// Its place in the home's order.
    pub position: Position,
    /// Its stamp.
    pub stamp: Stamp,
    /// Whose it is; none for the home's own.
    pub commit: Option<CommitId>,
    /// What it did, with all values.
    pub changes: Vec<PageChange>,
}

/// One outcome: `outcomes/REGISTRATION/SEQUENCE`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OutcomeRecord {
    /// The outcome.
    pub outcome: Outcome,
}

/// A vote for a part of a transaction over several homes:
/// `meta/vote/REGISTRATION/SEQUENCE` (rule 10).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VoteRecord {
    /// The part and who else takes part.
    #[serde(with = "StoredRequest")]
    pub request: CommitRequest,
    /// The stamp that was voted for.
    pub stamp: Stamp,
    /// How it ended, once that is known. Then nothing is locked any more.
    pub ended: Option<Outcome>,
}

/// A transaction over several homes that has committed: `meta/joint/MEMBER/SEQUENCE` (rule R9).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JointRecord {
    /// The stamp of the part of this home.
    pub stamp: Stamp,
    /// All its homes.
    pub homes: Vec<HomeId>,
}

/// Up to which stamp transactions over several homes may be forgotten: `meta/joints` for all names, and
/// `meta/below/NAME` for one (rule R9).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct BelowRecord {
    /// Up to here.
    pub stamp: Stamp,
}

/// The newest proof of how far another home is: `meta/receipt/NAME` (rule R9).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReceiptRecord {
    /// The proof.
    pub receipt: Receipt,
}

/// A request as votes have it in the store: written out, whatever its form on the wire becomes. So
/// a home goes on from the votes of an earlier program.
#[derive(Serialize, Deserialize)]
#[serde(remote = "CommitRequest")]
struct StoredRequest {
    id: CommitId,
    registration: Registration,
    #[serde(with = "StoredPart")]
    part: Part,
    with: Vec<Participant>,
    depends_on: Vec<CommitId>,
    after: Stamp,
}

/// A part as votes have it in the store.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Part")]
struct StoredPart {
    home: HomeId,
    evidence: Position,
    reads: Vec<(PageId, SlotSet)>,
    writes: Vec<PageWrites>,
    /// It was judged before.
    #[serde(skip)]
    under: Option<Fence>,
}

/// One registered member: `meta/member/REGISTRATION`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MemberRecord {
    /// The member.
    pub member: MemberId,
}

/// Who brought a registered member, if that was not its own edge: `meta/carrier/REGISTRATION` (rule R2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CarrierRecord {
    /// The name of the node whose edge the member registered by.
    pub carrier: NameId,
}

/// The last delegation that was taken of a registered member: `meta/delegation/REGISTRATION` (rule
/// R2). What it allowed does not outlast the life of the home: the member signs anew for each stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DelegationRecord {
    /// Only higher numbers count from now on.
    pub number: DelegationNo,
}

/// One staged value: `staged/REGISTRATION/TOKEN`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StagedRecord {
    /// The segment that the value is for.
    pub segment: SegmentId,
    /// The overflow pages that the value takes.
    pub overflow: Overflow,
    /// How many of them are there.
    pub have: u32,
}

impl StagedRecord {
    /// How many of its pages are not there yet.
    pub fn to_come(&self) -> u32 {
        self.overflow.pages.saturating_sub(self.have)
    }
}

/// One change of one page, above its installed image.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Modified {
    /// The position of the commit.
    pub position: Position,
    /// The stamp of the commit.
    pub stamp: Stamp,
    /// What changed.
    pub change: PageChange,
}

/// Changes that could not be installed, because their page was damaged, and are
/// in the log no more: `meta/aside/PAGE`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QuarantineRecord {
    /// All of them above the page's last good image, in order.
    pub changes: Vec<Modified>,
}

/// `meta/home`.
pub const HOME_KEY: &[u8] = b"home";
/// `meta/log`: whose log a directory is. A home has none.
pub const LOG_OWNER_KEY: &[u8] = b"log";
/// The key of what has left a log although no step of its own said so.
pub const LEFT_KEY: &[u8] = b"left";
/// The key of the audit's mark.
pub const AUDIT_KEY: &[u8] = b"audit";
/// The key of the mark of openings.
pub const OPENED_KEY: &[u8] = b"opened";
/// Up to which stamp transactions over several homes of all names may be forgotten.
pub const JOINTS_KEY: &[u8] = b"joints";
/// `meta/next`.
pub const NEXT_KEY: &[u8] = b"next";
/// `meta/clock`: the reserved ceiling of the clock (rule 12).
pub const CLOCK_KEY: &[u8] = b"clock";
/// `meta/installed`: the log up to here is in the page images.
pub const INSTALLED_KEY: &[u8] = b"installed";
const SEGMENT_PREFIX: &[u8] = b"segment/";
const RIGHTS_PREFIX: &[u8] = b"rights/";
const USAGE_PREFIX: &[u8] = b"usage/";
const SYSTEM_PREFIX: &[u8] = b"system/";
const MADE_PREFIX: &[u8] = b"made/";
const MEMBER_PREFIX: &[u8] = b"member/";
const CARRIER_PREFIX: &[u8] = b"carrier/";
const DELEGATION_PREFIX: &[u8] = b"delegation/";
const ASIDE_PREFIX: &[u8] = b"aside/";
const VOTE_PREFIX: &[u8] = b"vote/";
const JOINT_PREFIX: &[u8] = b"joint/";
const BELOW_PREFIX: &[u8] = b"below/";
const RECEIPT_PREFIX: &[u8] = b"receipt/";
const SAVED_PREFIX: &[u8] = b"saved/";
const LEASE_PREFIX: &[u8] = b"lease/";
const READ_LEASE_PREFIX: &[u8] = b"readlease/";
const LOCK_PREFIX: &[u8] = b"lock/";
const UPDATE_PREFIX: &[u8] = b"update/";
const CONFLICT_PREFIX: &[u8] = b"conflict/";
/// `meta/fence`: the highest number of a lock that was granted (rule C5).
pub const FENCE_KEY: &[u8] = b"fence";

/// The key of where a log is in a segment.
pub fn saved_key(log: LogId, segment: SegmentId) -> Vec<u8> {
    let (log, segment) = (log.0.0.to_be_bytes(), segment.0.to_be_bytes());
    [SAVED_PREFIX, &log[..], &segment[..]].concat()
}

/// The range of all such keys.
pub fn saved_range() -> (Vec<u8>, Vec<u8>) {
    (SAVED_PREFIX.to_vec(), b"saved0".to_vec())
}

/// The log and the segment of such a key.
pub fn saved_of(key: &[u8]) -> Option<(LogId, SegmentId)> {
    let (log, segment) = key.strip_prefix(SAVED_PREFIX)?.split_at_checked(16)?;
    let log = u128::from_be_bytes(log.try_into().ok()?);
    let segment = u32::from_be_bytes(segment.try_into().ok()?);
    Some((LogId(MemberId(log)), SegmentId(segment)))
}

/// The key of the longest lease in a segment.
pub fn lease_key(segment: SegmentId) -> Vec<u8> {
    [LEASE_PREFIX, &segment.0.to_be_bytes()].concat()
}

/// The range of all such keys.
pub fn lease_range() -> (Vec<u8>, Vec<u8>) {
    (LEASE_PREFIX.to_vec(), b"lease0".to_vec())
}

/// The segment of such a key.
pub fn lease_of(key: &[u8]) -> Option<SegmentId> {
    let id = key.strip_prefix(LEASE_PREFIX)?;
    Some(SegmentId(u32::from_be_bytes(id.try_into().ok()?)))
}

/// The key of the longest read lease in a segment.
pub fn read_lease_key(segment: SegmentId) -> Vec<u8> {
    [READ_LEASE_PREFIX, &segment.0.to_be_bytes()].concat()
}

/// The range of all such keys.
pub fn read_lease_range() -> (Vec<u8>, Vec<u8>) {
    (READ_LEASE_PREFIX.to_vec(), b"readlease0".to_vec())
}

/// The segment of such a key.
pub fn read_lease_of(key: &[u8]) -> Option<SegmentId> {
    let id = key.strip_prefix(READ_LEASE_PREFIX)?;
    Some(SegmentId(u32::from_be_bytes(id.try_into().ok()?)))
}

/// The key of a lock that is granted: `meta/lock/FENCE`, with a [`Lock`](crate::Lock).
pub fn lock_key(fence: Fence) -> Vec<u8> {
    [LOCK_PREFIX, &fence.0.to_be_bytes()].concat()
}

/// The range of all such keys.
pub fn lock_range() -> (Vec<u8>, Vec<u8>) {
    (LOCK_PREFIX.to_vec(), b"lock0".to_vec())
}

/// The number in such a key.
pub fn lock_of(key: &[u8]) -> Option<Fence> {
    let fence = key.strip_prefix(LOCK_PREFIX)?;
    Some(Fence(u64::from_be_bytes(fence.try_into().ok()?)))
}

/// The key of an update in a log.
pub fn update_key(home: HomeId, id: UpdateId) -> Vec<u8> {
    key_of_update(UPDATE_PREFIX, home, id)
}

/// The key of what a log notes of an update for conflict routines.
pub fn conflict_key(home: HomeId, id: UpdateId) -> Vec<u8> {
    key_of_update(CONFLICT_PREFIX, home, id)
}

/// The range of all such keys.
pub fn conflict_range() -> (Vec<u8>, Vec<u8>) {
    (CONFLICT_PREFIX.to_vec(), b"conflict0".to_vec())
}

fn key_of_update(prefix: &[u8], home: HomeId, id: UpdateId) -> Vec<u8> {
    let (home, log) = (home.0.to_be_bytes(), id.log.0.0.to_be_bytes());
    let (segment, number) = (id.segment.0.to_be_bytes(), id.number.to_be_bytes());
    [prefix, &home[..], &log[..], &segment[..], &number[..]].concat()
}

/// The range of all updates of a log.
pub fn update_range() -> (Vec<u8>, Vec<u8>) {
    (UPDATE_PREFIX.to_vec(), b"update0".to_vec())
}

/// The key of a segment's record.
pub fn segment_key(segment: SegmentId) -> Vec<u8> {
    [SEGMENT_PREFIX, &segment.0.to_be_bytes()].concat()
}

/// The range of all segments' records.
pub fn segment_range() -> (Vec<u8>, Vec<u8>) {
    (SEGMENT_PREFIX.to_vec(), b"segment0".to_vec())
}

/// The segment of a key.
pub fn segment_of(key: &[u8]) -> Option<SegmentId> {
    let id = key.strip_prefix(SEGMENT_PREFIX)?;
    Some(SegmentId(u32::from_be_bytes(id.try_into().ok()?)))
}

/// The key of a segment's rights list.
pub fn rights_key(segment: SegmentId) -> Vec<u8> {
    [RIGHTS_PREFIX, &segment.0.to_be_bytes()].concat()
}

/// The range of all rights lists.
pub fn rights_range() -> (Vec<u8>, Vec<u8>) {
    (RIGHTS_PREFIX.to_vec(), b"rights0".to_vec())
}

/// The segment of a rights list's key.
pub fn rights_of(key: &[u8]) -> Option<SegmentId> {
    let id = key.strip_prefix(RIGHTS_PREFIX)?;
    Some(SegmentId(u32::from_be_bytes(id.try_into().ok()?)))
}

/// The key of what names have used of a segment.
pub fn usage_key(segment: SegmentId) -> Vec<u8> {
    [USAGE_PREFIX, &segment.0.to_be_bytes()].concat()
}

/// The range of what names have used of all segments.
pub fn usage_range() -> (Vec<u8>, Vec<u8>) {
    (USAGE_PREFIX.to_vec(), b"usage0".to_vec())
}

/// The segment of such a key.
pub fn usage_of(key: &[u8]) -> Option<SegmentId> {
    let id = key.strip_prefix(USAGE_PREFIX)?;
    Some(SegmentId(u32::from_be_bytes(id.try_into().ok()?)))
}

/// The key of how far the system pages of a segment go.
pub fn system_key(segment: SegmentId) -> Vec<u8> {
    [SYSTEM_PREFIX, &segment.0.to_be_bytes()].concat()
}

/// The range of all such keys.
pub fn system_range() -> (Vec<u8>, Vec<u8>) {
    (SYSTEM_PREFIX.to_vec(), b"system0".to_vec())
}

/// The segment of such a key.
pub fn system_of(key: &[u8]) -> Option<SegmentId> {
    let id = key.strip_prefix(SYSTEM_PREFIX)?;
    Some(SegmentId(u32::from_be_bytes(id.try_into().ok()?)))
}

/// The key of how many segments a name has made.
pub fn made_key(name: NameId) -> Vec<u8> {
    [MADE_PREFIX, &name.0.to_be_bytes()].concat()
}

/// The range of all such keys.
pub fn made_range() -> (Vec<u8>, Vec<u8>) {
    (MADE_PREFIX.to_vec(), b"made0".to_vec())
}

/// The name of such a key.
pub fn made_by(key: &[u8]) -> Option<NameId> {
    let id = key.strip_prefix(MADE_PREFIX)?;
    Some(NameId(u64::from_be_bytes(id.try_into().ok()?)))
}

/// The key of who brought a member.
pub fn carrier_key(registration: Registration) -> Vec<u8> {
    [CARRIER_PREFIX, &registration.0.to_be_bytes()].concat()
}

/// The range of all who brought members.
pub fn carrier_range() -> (Vec<u8>, Vec<u8>) {
    (CARRIER_PREFIX.to_vec(), b"carrier0".to_vec())
}

/// The registration of such a key.
pub fn carried_of(key: &[u8]) -> Option<Registration> {
    let id = key.strip_prefix(CARRIER_PREFIX)?;
    Some(Registration(u64::from_be_bytes(id.try_into().ok()?)))
}

/// The key of the last delegation of a member.
pub fn delegation_key(registration: Registration) -> Vec<u8> {
    [DELEGATION_PREFIX, &registration.0.to_be_bytes()].concat()
}

/// The range of all last delegations.
pub fn delegation_range() -> (Vec<u8>, Vec<u8>) {
    (DELEGATION_PREFIX.to_vec(), b"delegation0".to_vec())
}

/// The registration of such a key.
pub fn delegation_of(key: &[u8]) -> Option<Registration> {
    let id = key.strip_prefix(DELEGATION_PREFIX)?;
    Some(Registration(u64::from_be_bytes(id.try_into().ok()?)))
}

/// The key of a member's record.
pub fn member_key(registration: Registration) -> Vec<u8> {
    [MEMBER_PREFIX, &registration.0.to_be_bytes()].concat()
}

/// The range of all members' records.
pub fn member_range() -> (Vec<u8>, Vec<u8>) {
    (MEMBER_PREFIX.to_vec(), b"member0".to_vec())
}

/// The registration of a key.
pub fn member_of(key: &[u8]) -> Option<Registration> {
    let id = key.strip_prefix(MEMBER_PREFIX)?;
    Some(Registration(u64::from_be_bytes(id.try_into().ok()?)))
}

/// The key of what was set aside for a page.
pub fn quarantine_key(page: PageId) -> Vec<u8> {
    [ASIDE_PREFIX, &page.key().to_be_bytes()].concat()
}

/// The range of all that was set aside.
pub fn quarantine_range() -> (Vec<u8>, Vec<u8>) {
    (ASIDE_PREFIX.to_vec(), b"aside0".to_vec())
}

/// The page of a key.
pub fn quarantine_of(key: &[u8]) -> Option<PageId> {
    let page = key.strip_prefix(ASIDE_PREFIX)?;
    Some(PageId::from_key(u64::from_be_bytes(page.try_into().ok()?)))
}

/// The key of a vote.
pub fn vote_key(registration: Registration, sequence: u64) -> Vec<u8> {
    [VOTE_PREFIX, &pair_key(registration, sequence)].concat()
}

/// The registration and the sequence of a vote's key.
pub fn vote_of(key: &[u8]) -> Option<(Registration, u64)> {
    pair_of(key.strip_prefix(VOTE_PREFIX)?)
}

/// The range of all votes.
pub fn vote_range() -> (Vec<u8>, Vec<u8>) {
    (VOTE_PREFIX.to_vec(), b"vote0".to_vec())
}

/// The key of a transaction over several homes.
pub fn joint_key(commit: CommitId) -> Vec<u8> {
    let (member, sequence) = (commit.member.0.to_be_bytes(), commit.sequence.to_be_bytes());
    [JOINT_PREFIX, &member, &sequence].concat()
}

/// The range of all such transactions.
pub fn joint_range() -> (Vec<u8>, Vec<u8>) {
    (JOINT_PREFIX.to_vec(), b"joint0".to_vec())
}

/// The commit of such a key.
pub fn joint_of(key: &[u8]) -> Option<CommitId> {
    let (member, sequence) = key.strip_prefix(JOINT_PREFIX)?.split_at_checked(16)?;
    Some(CommitId {
        member: MemberId(u128::from_be_bytes(member.try_into().ok()?)),
        sequence: u64::from_be_bytes(sequence.try_into().ok()?),
    })
}

/// The key of up to where a name's transactions over several homes may be forgotten.
pub fn below_key(name: NameId) -> Vec<u8> {
    [BELOW_PREFIX, &name.0.to_be_bytes()].concat()
}

/// The range of all such keys.
pub fn below_range() -> (Vec<u8>, Vec<u8>) {
    (BELOW_PREFIX.to_vec(), b"below0".to_vec())
}

/// The name of such a key.
pub fn below_of(key: &[u8]) -> Option<NameId> {
    let name = key.strip_prefix(BELOW_PREFIX)?;
    Some(NameId(u64::from_be_bytes(name.try_into().ok()?)))
}

/// The key of another home's newest receipt.
pub fn receipt_key(name: &str) -> Vec<u8> {
    [RECEIPT_PREFIX, name.as_bytes()].concat()
}

/// The range of all such receipts.
pub fn receipt_range() -> (Vec<u8>, Vec<u8>) {
    (RECEIPT_PREFIX.to_vec(), b"receipt0".to_vec())
}

/// The name of the home of such a key.
pub fn receipt_of(key: &[u8]) -> Option<&str> {
    core::str::from_utf8(key.strip_prefix(RECEIPT_PREFIX)?).ok()
}

/// The key of a commit's log record.
pub fn log_key(position: Position) -> Vec<u8> {
    position.0.to_be_bytes().to_vec()
}

/// The key of a page.
pub fn page_key(page: PageId) -> Vec<u8> {
    page.key().to_be_bytes().to_vec()
}

/// The key of an outcome or of a staged value.
pub fn pair_key(registration: Registration, number: u64) -> Vec<u8> {
    [registration.0.to_be_bytes(), number.to_be_bytes()].concat()
}

/// The two numbers of a [`pair_key`].
pub fn pair_of(key: &[u8]) -> Option<(Registration, u64)> {
    let (first, second) = key.split_at_checked(8)?;
    Some((
        Registration(u64::from_be_bytes(first.try_into().ok()?)),
        u64::from_be_bytes(second.try_into().ok()?),
    ))
}

/// A record as a change of a table. Our own records always encode.
pub fn put<T: Serialize>(table: Table, key: Vec<u8>, record: &T) -> Op {
    let value = postcard::to_allocvec(record).unwrap_or_default();
    debug_assert!(!value.is_empty());
    Op::Put { table, key, value }
}

/// A page image as a change of its table.
pub fn put_page(page: PageId, image: &Image) -> Op {
    Op::Put {
        table: Table::Pages,
        key: page_key(page),
        value: image.bytes().to_vec(),
    }
}

/// The removal of a record.
pub fn delete(table: Table, key: Vec<u8>) -> Op {
    Op::Delete { table, key }
}

/// Reads a record.
pub fn decode<T: DeserializeOwned>(
    table: Table,
    key: &[u8],
    value: &[u8],
) -> Result<T, StorageError> {
    postcard::from_bytes(value).map_err(|error| damaged(table, key, &error.to_string()))
}

/// Reads a log record.
pub fn decode_log(key: &[u8], value: &[u8]) -> Result<LogRecord, StorageError> {
    postcard::from_bytes(value).map_err(|error| damaged(Table::Log, key, &error.to_string()))
}

/// Reads an installed page.
pub fn decode_page(key: &[u8], value: &[u8]) -> Result<Image, StorageError> {
    Image::parse(value).map_err(|error| damaged(Table::Pages, key, &error.to_string()))
}

/// A record that is not what was written.
pub fn damaged(table: Table, key: &[u8], detail: &str) -> StorageError {
    StorageError::Damaged {
        table,
        key: key.to_vec(),
        detail: detail.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Slot;
    use alloc::vec;

    #[test]
    fn numbers_of_the_next_incarnation_lie_above_all_before() {
        let mut next = NextRecord {
            segment: SegmentId(7),
            registration: Registration(9),
            life: 3,
        };
        let same = next;
        next.raise_to(Incarnation::default());
        assert_eq!(next, same);
        let incarnation = Incarnation::default().next().expect("there are more");
        next.raise_to(incarnation);
        assert_eq!(next.segment.0, 1 << 20);
        assert_eq!(next.registration.0, 1 << 52);
        assert_eq!(next.life, 1 << 20);
        next.life += 5;
        let later = next;
        next.raise_to(incarnation);
        assert_eq!(next, later, "numbers never fall");
    }

    /// As it was written when the form on the wire was the same.
    #[test]
    fn votes_are_stored_as_by_earlier_programs() {
        let id = CommitId {
            member: MemberId(7),
            sequence: 9,
        };
        let page = PageId::new(1, 2);
        let read: SlotSet = [Slot(3), Slot(70)].into_iter().collect();
        let stamp = Stamp {
            clock: 500,
            home: HomeId(1),
        };
        let record = VoteRecord {
            request: CommitRequest {
                id,
                registration: Registration(4),
                part: Part {
                    home: HomeId(1),
                    evidence: Position(300),
                    reads: vec![(page, read)],
                    writes: vec![PageWrites {
                        page,
                        slots: vec![],
                    }],
                    under: None,
                },
                with: vec![Participant {
                    home: HomeId(2),
                    registration: Registration(5),
                }],
                depends_on: vec![id],
                after: stamp,
            },
            stamp,
            ended: None,
        };
        let words = vec![1_u64 << 3, 1 << 6];
        let part = (
            1_u32,
            300_u64,
            vec![(page, words)],
            vec![(page, vec![0_u8; 0])],
        );
        let request = (id, 4_u64, part, vec![(2_u32, 5_u64)], vec![id], stamp);
        let earlier = (request, stamp, None::<Outcome>);
        let earlier = postcard::to_allocvec(&earlier).expect("it encodes");
        let key = vote_key(Registration(4), 9);
        let stored = put(Table::Meta, key.clone(), &record);
        let as_earlier = Op::Put {
            table: Table::Meta,
            key: key.clone(),
            value: earlier.clone(),
        };
        assert_eq!(stored, as_earlier);
        assert_eq!(decode(Table::Meta, &key, &earlier), Ok(record));
    }
}
