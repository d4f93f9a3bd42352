//! The runtime of a member: the threads and the event loop that drive its state machine, and what the program's threads
//! share with that loop.
//!
//! [`MemberRuntime`] starts and ends all of it. [`Shared`] is what both sides have: the page cache, the requests under
//! way, the prefetcher, the counters. [`Requests`] carries a request to the loop and gives back a [`RequestFuture`],
//! which resolves to its [`Completion`].

mod asked;
mod block_on;
mod completion;
mod counters;
mod early_commit;
mod early_places;
mod event_loop;
mod held_lock;
mod homes;
mod join_settings;
mod locks;
mod log_disk;
mod member_host;
mod member_runtime;
mod naming;
mod node_id;
mod pending_requests;
mod prefetch;
mod pulls;
mod request_sender;
mod requests;
mod session_state;
mod shared;
mod staged_tokens;
mod worker;

pub(crate) use asked::Asked;
pub(crate) use block_on::block_on;
pub(crate) use completion::{Completion, Fetched};
pub(crate) use counters::Ending;
pub(crate) use early_commit::EarlyCommit;
pub(crate) use held_lock::HeldLock;
pub(crate) use homes::KnownHome;
pub(crate) use member_runtime::MemberRuntime;
pub(crate) use node_id::random_bits;
pub(crate) use pending_requests::{LateOutcome, RequestKind};
pub(crate) use pulls::Pull;
pub(crate) use requests::{Followed, RequestFuture, Requests};
pub(crate) use shared::Shared;
pub(crate) use staged_tokens::StagedTokens;
pub(crate) use worker::Worker;
