//! What the parts of Thorp have in common.
//!
//! - **Names and counts**: [`PageId`], [`Position`], [`Stamp`], [`CommitId`] and the like, each a type of its own.
//! - **Pages**: an immutable [`Image`], and the changes that lead from one to the next ([`PageChange`], [`SlotChange`]).
//! - **Messages** on an edge, [`Up`] to the parent and [`Down`] to the child; [`codec`] turns them into bytes.
//! - **Interfaces**: a [`StateMachine`] takes an [`Event`] and fills an [`Outbox`]; a storage engine makes each
//!   [`Batch`] durable ([`Engine`], [`Reader`]).
//! - **Random numbers** that a seed repeats, for tests, the simulator and the workloads ([`Xoshiro256`],
//!   [`SplitMix64`]).
//! - **Limits** of everything, in one place with their units ([`limits`]).
//!
//! Nothing here does I/O, and nothing can: the crate is `no_std`. The state machines themselves are in
//! `thorp-protocol`. `docs/protocol.md` numbers the rules that the code cites, `docs/bytes.md` draws the bytes.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod audience;
mod audit;
mod authorship;
mod blob;
mod carriers;
pub mod change;
pub mod codec;
mod consistency;
mod delegation;
mod digest;
mod history;
mod ids;
mod image;
mod lack;
mod left;
pub mod limits;
mod lock;
mod machine;
pub mod message;
mod name_word;
mod nibble;
mod note;
pub mod planted;
mod privilege;
mod procedure;
mod publish;
mod random;
mod read_key;
mod receipt;
pub mod records;
mod rights;
mod share;
mod signing;
mod slots;
pub mod snapshot;
mod storage;
mod update;

pub use audience::Audience;
pub use audit::{
    AUDIT_PAGES, AUDIT_PATH, AUDIT_RECORDS_MAX, AuditEvent, AuditRecord, TurnedAway, WhyTurnedAway,
};
pub use authorship::{AUTHORSHIP_VERSION, Author, AuthorText, Authorship, CustodyText};
pub use blob::Blob;
pub use carriers::{Carrier, Carriers, NoCarrier};
pub use change::{NewValue, PageChange, PageSlots, SlotChange, SlotSet, WriteOp};
pub use consistency::{
    AccessMode, Consistency, Contradiction, Failures, Moment, NoConsistency, SessionKind,
    UpdateOrder,
};
pub use delegation::{DELEGATION_VERSION, Delegation, DelegationText, NotDelegated};
pub use digest::{PageDigest, PartDigest};
pub use history::{
    Closed, HomeOpened, HowOpened, Incarnation, KnownHistory, LifeEnd, LifeId, Lives, Met,
    Operator, Point, ReceiptKey,
};
pub use ids::{
    Attempt, CommitId, DelegationNo, EdgeId, EntryNo, Epoch, Generation, HomeId, MemberId, Millis,
    NameId, NoCommitId, NodeKind, Now, ObjectId, PageId, PageNo, Peer, Place, Position, Reference,
    Registration, ReportNo, RequestId, SegmentId, Slot, Stamp,
};
pub use image::{Content, Draft, Image, ImageEdit, MalformedImage, Overflow};
pub use lack::{Lack, SpaceBound, people_bytes};
pub use left::{LeftNumbers, LeftRecord, WhyLeft};
pub use lock::{Fence, Lock, LockMode};
pub use machine::{Action, Command, Direction, Event, Outbox, StateMachine};
pub use message::{
    CallError, CallId, CallRequest, CallResponse, CommitRequest, Decision, Doubt, DoubtHome, Down,
    FetchRefusal, FetchResult, HomeNames, InCustody, InvalidCommit, Joint, JointAnswer, JointPart,
    JointQuestion, Message, NotKept, OtherHome, Outcome, PageWrites, Part, Participant, PeerImage,
    Refusal, Reported, Ruling, SegmentInfo, Step, Up,
};
pub use note::Note;
pub use privilege::Privilege;
pub use procedure::{NotRun, Procedure};
pub use publish::{OverlayUpdate, Publish};
pub use random::{SplitMix64, Xoshiro256};
pub use read_key::ReadKey;
pub use receipt::{Claim, Receipt, Verdict};
pub use rights::{
    Access, DamagedRights, NoRightWord, NoSubject, Principal, RIGHTS_SLOT, Readers, Right,
    RightsList, Subject, rights_page,
};
pub use share::Share;
pub use signing::{Certified, NoSigner, NoVerifier, Proof, SignedText, Signer, Verifier};
pub use storage::{Batch, Engine, Mark, Op, Purpose, Reader, Scan, StorageError, Table};
pub use update::{
    LogHead, LogId, LogState, TentativeChange, Update, UpdateId, believed_ms, believed_until,
};
