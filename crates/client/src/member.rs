//! The member: a program's way in.

use crate::{
    CommitId, Error, JoinConfig, JoinError, Outcome, Reference, Result, Segment, SegmentEntry,
    Session, Stats, Transaction,
};
use std::time::Duration;
use thorp_core::ids::{HomeId, Position};

/// A program that has joined. Cheap to clone, usable from any thread; when the last clone (and the last segment,
/// transaction and watch) is dropped, it leaves.
#[derive(Clone, Debug)]
pub struct Member {}

/// A home as this member sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HomeStatus {
    /// Its id.
    pub id: HomeId,
    /// Its name, as in `thorp://NAME/..`.
    pub name: String,
    /// Whether its stream is live.
    pub reachable: bool,
    /// How far down the stream the cache is.
    pub position: Position,
    /// How long ago the stream was last heard of.
    pub silent: Duration,
}

impl Member {
    /// Joins, and waits until the site or home has answered.
    pub fn join(config: JoinConfig) -> Result<Member, JoinError> {
        let _ = config;
        Err(JoinError::Unreachable(String::new()))
    }

    /// As [`Member::join`].
    pub async fn join_async(config: JoinConfig) -> Result<Member, JoinError> {
        let _ = config;
        Err(JoinError::Unreachable(String::new()))
    }

    /// Opens a segment: `thorp://HOME/path`.
    pub fn open(&self, name: &str) -> Result<Segment> {
        let _ = name;
        Err(Error::closed())
    }

    /// Makes a segment; fails with [`AlreadyExists`](crate::ErrorKind::AlreadyExists) if there is one.
    pub fn create(&self, name: &str) -> Result<Segment> {
        let _ = name;
        Err(Error::closed())
    }

    /// Opens a segment, and makes it if there is none.
    pub fn open_or_create(&self, name: &str) -> Result<Segment> {
        let _ = name;
        Err(Error::closed())
    }

    /// The segments whose names begin so: `thorp://HOME/beginning-of-path`.
    pub fn list(&self, prefix: &str) -> Result<Vec<SegmentEntry>> {
        let _ = prefix;
        Err(Error::closed())
    }

    /// Removes a segment with all its objects. Removing what is not there is no error.
    pub fn remove(&self, name: &str) -> Result<()> {
        let _ = name;
        Err(Error::closed())
    }

    /// Begins a transaction.
    pub fn begin(&self, session: Session) -> Transaction {
        let _ = session;
        Transaction::new()
    }

    /// Runs a transaction, and again when it conflicts with others, and commits it. What `work` does besides, it may do
    /// several times. An error that `work` returns ends the transaction without effect.
    pub fn transact<T>(&self, work: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        let _ = work;
        Err(Error::closed())
    }

    /// As [`Member::transact`], in a session of its own.
    pub fn transact_with<T>(
        &self,
        session: Session,
        work: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        let _ = (session, work);
        Err(Error::closed())
    }

    /// As [`Member::transact`]: `member.transact_async(async |tx| { .. }).await`.
    pub async fn transact_async<T>(
        &self,
        work: impl AsyncFnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        let _ = work;
        Err(Error::closed())
    }

    /// What became of a commit that ended with [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown).
    pub fn outcome(&self, id: CommitId) -> Result<Outcome> {
        let _ = id;
        Err(Error::closed())
    }

    /// Asks for the pages of these objects, and does not wait.
    pub fn prefetch(&self, references: &[Reference]) {
        let _ = references;
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        Stats::default()
    }

    /// The homes this member has heard of.
    pub fn homes(&self) -> Vec<HomeStatus> {
        Vec::new()
    }

    /// A reference as text: `thorp://HOME/path#PAGE.SLOT.GENERATION[+OFFSET]`.
    pub fn format(&self, reference: &Reference) -> Result<String> {
        let _ = reference;
        Err(Error::closed())
    }

    /// The reference that a text names.
    pub fn parse(&self, text: &str) -> Result<Reference> {
        let _ = text;
        Err(Error::closed())
    }

    /// Leaves, and waits for that. Every later call on any clone fails with [`Closed`](crate::ErrorKind::Closed).
    pub fn close(&self) {}
}
