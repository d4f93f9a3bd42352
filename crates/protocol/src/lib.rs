//! The protocol of Thorp: the state machines of home, redirector and member, without I/O.
//!
//! A program that only wants to use Thorp takes the crate `thorp-client`. This crate is for whoever changes the protocol, or
//! drives it over something other than sockets.
//!
//! # The machines
//!
//! - [`Home`] owns segments. It orders their commits, makes them durable, and sends its children what concerns them.
//! - [`Redirector`] is a site's directory of pages, and the site's proxy to the homes.
//! - [`Member`] takes part in the protocol for one program: it fetches pages, follows the homes' streams, and sends commits.
//!
//! Home and redirector are parents, redirector and member are children. What both ends of an edge have in common is written
//! once, in `edge`: the directory, the streams, admission, the send window, liveness, and resynchronisation.
//!
//! # How to drive a machine
//!
//! Each machine is a [`thorp_model::StateMachine`]. Its driver does the same for all three roles:
//!
//! 1. It hands in one [`thorp_model::Event`]: an edge that is there or gone, a message, a tick, or a command of the role
//!    ([`HomeCommand`], [`MemberCommand`]; a redirector has none).
//! 2. It carries out what is in the [`thorp_model::Outbox`], in order: messages to send, edges to close, notes to count, and
//!    the actions of the role ([`HomeAction`], [`MemberAction`]).
//! 3. It hands in a tick when the machine's `deadline` has come.
//!
//! `net::driver` does so with sockets, the simulator with simulated time. Here is a driver with neither. Its home has an empty
//! disk that is never slow. Its member learns by the home's stream that the home is there:
//!
//! ```
//! use thorp_model::{
//!     Action, Direction, EdgeId, Event, HomeId, MemberId, Millis, NodeKind, Now, Outbox, Peer, Reader, Scan, StateMachine,
//!     StorageError, Table,
//! };
//! use thorp_protocol::{Home, HomeAction, HomeCommand, HomeConfig, Member, MemberAction, MemberConfig};
//!
//! struct EmptyDisk;
//! impl Reader for EmptyDisk {
//!     fn get(&self, _: Table, _: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
//!         Ok(None)
//!     }
//!     fn scan(
//!         &self, _: Table, _: &[u8], _: &[u8], _: &mut dyn FnMut(&[u8], &[u8]) -> Scan,
//!     ) -> Result<(), StorageError> {
//!         Ok(())
//!     }
//! }
//!
//! let now = Now { mono: Now::MONO_FIRST, wall: Millis(1_000) };
//! let (alps, desk) = (MemberId(1), MemberId(2));
//! let mut from_home = Outbox::new();
//! let config = HomeConfig::new(HomeId(1), "alps".into(), alps);
//! let mut home = Home::open(config, &EmptyDisk, now, &mut from_home)?;
//!
//! // Each machine gives the edge a name of its own; here both take the same.
//! let edge = EdgeId(1);
//! let peer = |kind, node, name: &str| Peer { kind, node, name: name.into(), is_operator: false, is_carried: false };
//! let below = Event::Connected { edge, direction: Direction::Down, peer: peer(NodeKind::Member, desk, "desk") };
//! home.handle(now, below, &mut from_home);
//!
//! let mut member = Member::new(MemberConfig::new(desk, "desk".into()));
//! let mut from_member = Outbox::new();
//! let above = Event::Connected { edge, direction: Direction::Up, peer: peer(NodeKind::Home, alps, "alps") };
//! member.handle(now, above, &mut from_member);
//!
//! // The member claims what it holds, which is nothing yet. Its stream follows on that.
//! for action in std::mem::take(&mut from_member.actions) {
//!     if let Action::Send(edge, message) = action {
//!         home.handle(now, Event::Received { edge, message }, &mut from_home);
//!     }
//! }
//!
//! // What the home sends when a batch is durable is not in the outbox before.
//! let mut marks = Vec::new();
//! for action in std::mem::take(&mut from_home.actions) {
//!     match action {
//!         Action::Send(_, message) => member.handle(now, Event::Received { edge, message }, &mut from_member),
//!         Action::Role(HomeAction::Append(batch)) => marks.push(batch.mark),
//!         _ => {}
//!     }
//! }
//! for mark in marks {
//!     home.handle(now, Event::Command(HomeCommand::Durable(mark)), &mut from_home);
//! }
//!
//! let began = |action: &Action<MemberAction>| matches!(action, Action::Role(MemberAction::StreamBegan { .. }));
//! assert!(from_member.actions.iter().any(began));
//! # Ok::<(), StorageError>(())
//! ```
//!
//! # What cannot be here
//!
//! No sockets, files, clocks, threads or random numbers: the crate is `no_std` and forbids unsafe code. Whoever drives a
//! machine hands in the time. The same events give the same outbox, so the simulator replays a failure from its seed.
//!
//! # What a machine does with what is wrong
//!
//! A machine never fails as a whole. A peer that breaks a rule loses its edge ([`thorp_model::Action::Close`], with the
//! reason). A request that cannot be granted is refused with a [`thorp_model::Refusal`] or a [`thorp_model::CallError`],
//! which say what the caller can do. A home that finds its disk damaged reports that for the page or refuses to open
//! ([`thorp_model::StorageError`]). Every table is bounded; the bounds are in [`thorp_model::limits`] and in the configuration
//! of each role.
//!
//! # Where to read on
//!
//! `docs/protocol.md` numbers the rules that the code cites, and has a page for each. `docs/traps.md` lists schedules that
//! break a protocol without one of its guards. `docs/architecture.md` shows the parts of each machine, and how a part is
//! told from a view.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod edge;
#[cfg(test)]
mod fixture;
mod home;
mod member;
mod redirector;
pub mod takeover;

pub use edge::directory::{ChildNo, Directory, Holder};
pub use edge::downstream::ChildLimits;
pub use edge::liveness::{AliveLimits, AliveLimitsError};
pub use home::{
    ClockDrift, Doubts, Home, HomeAction, HomeCommand, HomeConfig, HomeHistory, LoadResult,
    NameLimits, OtherHistory, Reopen,
};
pub use member::{
    InLog, Member, MemberAction, MemberCommand, MemberConfig, NotKept, Request, Resolution,
    Response, Source, UpdateInfo,
};
pub use redirector::{ParentNames, Redirector, RedirectorConfig};
