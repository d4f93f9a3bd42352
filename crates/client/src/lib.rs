//! The client library of Thorp: transactions over shared persistent objects, with a page cache in the program's
//! process.
//!
//! A program joins a village and becomes a *member*. It opens segments by name and works on their objects in
//! transactions:
//!
//! ```
//! use thorp_client::{JoinConfig, Member, Ref};
//! # let village = thorp_testing::Village::new();
//! # let home = village.home("alps");
//! # let (address, identity) = (home.address(), village.member("me"));
//!
//! // The address of a site or a home, such as "127.0.0.1:7402", and the directory that `thorp invite` made.
//! let member = Member::join(JoinConfig::new(address).identity(identity))?;
//! let shop = member.open_or_create("thorp://alps/shop")?;
//! let sold: Ref<u64> = member.transact(|tx| tx.create_typed(&shop, &0))?;
//! let count = member.transact(|tx| {
//!     let count = tx.get(&sold)? + 1;
//!     tx.put(&sold, &count)?;
//!     Ok(count)
//! })?;
//! assert_eq!(count, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The parts
//!
//! - A [`Member`] is this program in the village: its connection to a site or to homes, and its page cache. Clones are
//!   the same member. It leaves when the last clone, segment, transaction and watch is dropped, or with
//!   [`Member::close`]. [`JoinConfig`] has its addresses, its identity and its limits.
//! - A [`Segment`] is a named, growable set of pages of one home: `thorp://HOME/path`. Its *named roots* lead to its
//!   first objects. A [`Reference`] names an object and may be stored in other objects; a [`Ref`] also knows the
//!   object's type.
//! - A [`Transaction`] is serializable and atomic, also over segments of several homes. [`Member::transact`] runs and
//!   commits it, again after a conflict. [`Member::begin`] gives one that the program commits itself. A [`Session`]
//!   sets consistency, staleness, timeouts and attempts.
//! - An *early commit* ([`Transaction::commit_early`], [`Member::transact_early`]) does not wait for the outcome. The
//!   next transactions of this member see what it wrote. The returned [`Pending`] resolves to the outcome.
//! - An *answer* to others ([`Member::answer`]) comes with what it rests on: [`AnswerBasis`]. `thorp web` keeps such answers.
//! - A [`Watch`] ([`Segment::watch`]) delivers which objects of a segment each commit changed.
//! - A [`Visit`] is a session that chooses its consistency. Its updates may go into a log ([`JoinConfig::log`]), and
//!   [`Conflicts`] says what becomes of those that a home refuses.
//! - [`collections`] has data structures over many objects, for example an ordered map.
//!
//! # What waits
//!
//! Every call that may wait has a blocking and an `_async` form. Neither needs a runtime at the caller. The member
//! runs on threads of its own, which all members of a process share: at most one for each processor.
//!
//! | call | waits for |
//! |---|---|
//! | [`Member::join`] | a site or home that answers |
//! | [`Member::open`], [`create`](Member::create), [`list`](Member::list), [`remove`](Member::remove) | a round trip to the home |
//! | [`read`](Transaction::read), [`get`](Transaction::get), [`scan`](Transaction::scan) of cached pages | nothing: no lock, no message |
//! | the same of other pages | a neighbour, the site or the home, which sends the page |
//! | [`write`](Transaction::write), [`put`](Transaction::put), [`delete`](Transaction::delete) | nothing: they stay here until the commit |
//! | [`Transaction::create`] | nothing, or a home that grants pages: 32 at a time |
//! | [`Transaction::commit`] after reads only | nothing; a round trip if the promise of a home lags, or if the session is strict |
//! | [`Transaction::commit`] after writes | until they are durable at each home: a round trip, or several with large objects |
//! | [`Pending::wait`], [`Member::outcome`] | the outcome of a commit |
//! | [`Watch::next`] | a change, as long as the caller wants |
//! | [`Member::close`] and the last drop | some milliseconds; [`JoinConfig::leave_timeout`] at most, if outcomes are open |
//!
//! [`Member::prefetch`] requests pages that the program will read, and waits for none of them.
//!
//! # What fails, and how
//!
//! An [`Error`] has a [kind](ErrorKind), which tells the program what to do. [`Member::join`] fails with a
//! [`JoinError`].
//!
//! - [`Conflict`](ErrorKind::Conflict) and [`Busy`](ErrorKind::Busy): run the transaction again, as
//!   [`Member::transact`] does. So the closure may run several times, and all its other effects happen as often.
//! - [`HomeUnreachable`](ErrorKind::HomeUnreachable): nothing happened; try later. Reads of cached pages go on
//!   meanwhile.
//! - [`OutcomeUnknown`](ErrorKind::OutcomeUnknown): the commit was sent. [`Member::outcome`] gives its outcome later;
//!   do not run the transaction again before that.
//! - [`Aborted`](ErrorKind::Aborted): the program gave up with [`Error::aborted`]. The transaction has no effect.
//!
//! A dropped transaction has no effect. A commit that was sent goes on when its future or its `Pending` is dropped:
//! [below](#cancellation).
//! `docs/unreachable.md` lists what each call does while a home is unreachable.
//!
//! # Cancellation
//!
//! A future of this crate may be dropped before it is ready, for example by a `select!` or a timeout. The member stays
//! as it is, and so do all its other calls. What was sent to a home is not called back.
//!
//! | dropped future | what happens |
//! |---|---|
//! | [`Member::join_async`] | the member leaves again |
//! | [`Member::open_async`], [`list_async`](Member::list_async), [`format_async`](Member::format_async), [`parse_async`](Member::parse_async), [`home_names_async`](Member::home_names_async), [`doubts_async`](Member::doubts_async), [`lost_parts_async`](Member::lost_parts_async), [`history_async`](Member::history_async), [`log_async`](Member::log_async) | nothing: they only read |
//! | [`Member::create_async`], [`open_or_create_async`](Member::open_or_create_async), [`remove_async`](Member::remove_async) | the home may still make or remove the segment |
//! | [`Member::settle_doubt_async`], [`confirm_async`](Member::confirm_async) | the home may still do it: ask with `doubts` or `history` |
//! | [`Member::outcome_async`] | nothing: ask again |
//! | [`Member::transact_async`], [`transact_with_async`](Member::transact_with_async), [`Segment::set_root_async`] | the commit happens if it was sent, and else nothing |
//! | [`Transaction::commit_async`], [`commit_for_answer_async`](Transaction::commit_for_answer_async), [`Member::answer_async`] | the same |
//! | [`Transaction::commit_early_async`], [`Member::transact_early_async`] | the same |
//! | [`Pending::wait_async`] | the commit goes on; [`Member::outcome`] gives its outcome for [`Pending::id`] |
//! | [`Transaction::read_async`], [`read_at_async`](Transaction::read_at_async), [`get_async`](Transaction::get_async), [`size_async`](Transaction::size_async), [`exists_async`](Transaction::exists_async), [`object_at_async`](Transaction::object_at_async), [`root_async`](Transaction::root_async), [`roots_async`](Transaction::roots_async), [`rights_async`](Transaction::rights_async), [`Segment::root_async`] | nothing: the transaction goes on. The page may still come into the cache |
//! | [`Transaction::scan_async`], [`scan_references_async`](Transaction::scan_references_async) | the same; the closure has seen some of the objects |
//! | [`Transaction::create_async`], [`create_near_async`](Transaction::create_near_async), [`create_typed_async`](Transaction::create_typed_async), [`create_typed_near_async`](Transaction::create_typed_near_async), [`patch_async`](Transaction::patch_async), [`set_root_async`](Transaction::set_root_async), [`set_rights_async`](Transaction::set_rights_async) | the transaction goes on without that change |
//! | [`Segment::watch_async`] | the watch ends |
//! | [`Visit::open_async`], [`read_async`](Visit::read_async), [`get_async`](Visit::get_async), [`refresh_async`](Visit::refresh_async) | the visit goes on with the view that it had |
//! | [`Visit::create_async`], [`create_typed_async`](Visit::create_typed_async) | the visit goes on without the object, unless its updates leave at once (`visibility=access`): then it may be there |
//! | [`Visit::publish_async`], [`close_async`](Visit::close_async) | the updates of a home happen if they were sent, and else not. The visit does not have them any more; those of other homes it keeps. With `visibility=access` so do changes of a `TreeMap` |
//! | [`Watch::next_async`] | nothing is missed: the next call gives the changes, or that some were [lost](Changed::lost) |
//! | of [`TreeMap`](collections::TreeMap): `get_async`, `contains_async`, `first_async`, `last_async`, `range_async`, `scan_async`, `scan_down_async`, `len_async`, `is_empty_async` | nothing: they only read |
//! | of [`TreeMap`](collections::TreeMap): `create_async`, `insert_async`, `remove_async`, `clear_async` | the map is as before. The transaction may hold new objects to which nothing refers |
//!
//! Only an [`OutcomeUnknown`](ErrorKind::OutcomeUnknown) and a [`Pending`] name the commit for [`Member::outcome`]. A
//! program that drops the future of a commit does not get its id. If it has to know the outcome, it takes one of these:
//! [`Session::commit_timeout`] or [`Session::deadline`] instead of a timeout of its own, or
//! [`Transaction::commit_early_async`] and the id of the `Pending`. A blocking call cannot be cancelled; its session
//! limits it.
//!
//! # Limits
//!
//! An object has at most 1 GiB ([`OBJECT_BYTES_MAX`](thorp_model::limits::OBJECT_BYTES_MAX)); 100 bytes are usual, and
//! above 8,160 bytes it lies on pages of its own. [`Transaction::create_from`] and [`Transaction::read_into`] pass a
//! large one through without keeping it. A transaction takes in at most 16 homes
//! ([`PARTICIPANTS_MAX`](thorp_model::limits::PARTICIPANTS_MAX)), and one commit at most 12 MiB of reads and writes
//! beside large objects ([`COMMIT_BYTES_MAX`](thorp_model::limits::COMMIT_BYTES_MAX)). [`EARLY_PER_HOME_MAX`] early
//! commits may wait for their outcome at each home. A member watches at most 256 segments, and it caches 256 MiB of
//! pages if [`JoinConfig::cache_bytes`] sets nothing else. What is too large fails as
//! [`TooLarge`](ErrorKind::TooLarge). `docs/limits.md` has all limits that a program meets, `docs/errors.md` each kind
//! of error.
//!
//! # Where to read on
//!
//! `docs/using.md` starts a village, `docs/glossary.md` defines the terms, `docs/protocol.md` has the rules that the
//! code cites by number. The programs in `examples/` show a counter, notes, a graph and a site of members. The crate
//! `thorp-testing` has villages for the tests of programs that use this one. All examples of this documentation run in
//! such a village.
//!
//! Inside: `transaction` and `member` are the calls. `runtime` has the threads and the event loop that drive the
//! member's state machine, and the requests between both sides. `embedded_site` is a redirector in a member's process.

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod addresses;
mod allocator;
#[expect(
    clippy::missing_errors_doc,
    reason = "each type says once how its methods fail"
)]
pub mod collections;
mod config;
mod conflicts;
mod context;
mod due;
mod embedded_site;
mod error;
mod head_page;
mod limits;
mod lock;
mod member;
mod name;
mod outcome;
mod reach;
mod referred;
mod runtime;
mod segment;
mod stats;
mod status;
mod trace;
mod transaction;
mod typed;
mod update;
mod visit;

pub use config::{
    ATTEMPTS_MAX, BACKOFF_MAX, COMMIT_TIMEOUT, FETCH_AHEAD_PAGES, FETCH_TIMEOUT, JOIN_TIMEOUT,
    JoinConfig, LEAVE_TIMEOUT, MAX_STALENESS, Session,
};
pub use conflicts::{ConflictRoutine, Conflicts, Refused, RefusedChange, Resolution};
pub use context::{ChosenBy, Context, ContextError, Contexts, Given, Origin, Origins, Whereabouts};
pub use embedded_site::{HEAL_EVERY, SiteOfMembers};
pub use error::{Error, ErrorKind, JoinError, Result};
pub use limits::{EARLY_PER_HOME_MAX, ROOT_NAME_BYTES_MAX};
pub use member::{AskedHome, AuditEntry, AuditEvent, LostPart, LostParts, Member};
pub use name::{check_object_name, check_prefix, check_segment_name};
pub use outcome::{Committed, Outcome};
pub use reach::OutOfReach;
pub use segment::{Change, Changed, Lost, Segment, SegmentEntry, Watch};
pub use stats::{Stats, Waits};
pub use status::{HomeStatus, LogStatus, SiteStatus};
pub use thorp_model::{
    AccessMode, Carrier, Closed, CommitId, Consistency, Contradiction, DamagedRights, Doubt,
    DoubtHome, Failures, Generation, HomeId, HomeNames, HowOpened, Incarnation, KnownHistory,
    LifeEnd, LifeId, Met, Moment, NameId, NoCommitId, NoConsistency, NotRun, ObjectId, PageId,
    PageNo, Point, Position, Procedure, ReadKey, Reference, Right, RightsList, Ruling, SegmentId,
    SessionKind, Slot, Stamp, Subject, UpdateOrder,
};
pub use thorp_net::{CertifiedName, Congestion, Identity, NodeRole, Traffic};
pub use transaction::{AnswerBasis, BasisAt, EVIDENCE_FIELD, Pending, READS_FIELD, Transaction};
pub use typed::Ref;
pub use update::ObjectUpdate;
pub use visit::{LockNumber, Visit};

// The examples of `thorp-testing` have members, and it stands below this crate. So they run here.
#[cfg(doctest)]
#[doc = include_str!("../../testkit/README.md")]
struct ExamplesOfTesting;
