//! The member: a program's way in.

mod audit;
mod conflict_thread;
mod doubts;
mod history;
mod lost_parts;
mod segments;
mod transact;

pub use audit::{AuditEntry, AuditEvent};
pub use lost_parts::{AskedHome, LostPart, LostParts};

use conflict_thread::ConflictThread;

use crate::runtime::{KnownHome, LateOutcome, MemberRuntime, Shared, block_on};
use crate::status::{HomeStatus, LogStatus, SiteStatus};
use crate::trace::Recorder;
use crate::{
    CommitId, Committed, Error, ErrorKind, JoinConfig, JoinError, Outcome, Reference, Result,
    Session, Stats,
};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use thorp_model::{Doubt, HomeId, Incarnation, KnownHistory, Note, Refusal, Ruling, Stamp};
use thorp_net::driver::now;

/// A program that has joined. Cheap to clone, usable from any thread; when the last clone (and the last segment,
/// transaction and watch) is dropped, it leaves.
///
/// ```
/// use thorp_client::{JoinConfig, Member};
/// # let village = thorp_testing::Village::new();
/// # let home = village.home("alps");
/// # let (address, identity) = (home.address(), village.member("me"));
///
/// let member = Member::join(JoinConfig::new(address).identity(identity))?;
/// let notes = member.open_or_create("thorp://alps/notes")?;
/// let note = member.transact(|tx| tx.create(&notes, "buy cheese"))?;
/// assert_eq!(member.format(&note)?, "thorp://alps/notes#1.0.1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Member {
    runtime: Arc<MemberRuntime>,
    session: Session,
}

impl Member {
    /// Joins, and waits until the site or home has answered.
    ///
    /// # Errors
    ///
    /// [`JoinError`] says which part of the configuration is wrong, or that nobody answered within its
    /// [`join_timeout`](JoinConfig::join_timeout).
    pub fn join(config: JoinConfig) -> Result<Member, JoinError> {
        block_on(Self::join_async(config))
    }

    /// As [`Member::join`].
    ///
    /// # Errors
    ///
    /// As [`Member::join`].
    pub async fn join_async(config: JoinConfig) -> Result<Member, JoinError> {
        let runtime = MemberRuntime::start(&config).await?;
        let runtime = Arc::new(runtime);
        if let Some(asked) = runtime
            .take_asked()
            .filter(|_| config.conflicts.has_routine())
        {
            let conflicts = config.conflicts.clone();
            ConflictThread::start(conflicts, Arc::downgrade(&runtime), asked)
                .map_err(JoinError::System)?;
        }
        runtime.joined(config.join_timeout).await?;
        Ok(Member {
            runtime,
            session: config.session,
        })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.runtime.shared
    }

    /// The records of a home's audit, the oldest first: the last 992. Only operators may read them, and whom they let.
    ///
    /// # Errors
    ///
    /// As [`Member::open`] and [`Member::transact`]; [`NotFound`](crate::ErrorKind::NotFound) also if this member may not
    /// read the audit, or the home has recorded nothing yet.
    pub fn audit(&self, home: &str) -> Result<Vec<AuditEntry>> {
        audit::read(self, home)
    }

    /// The votes in doubt at a home, the oldest first: their transactions are over several homes, and the home does not
    /// know how they ended. What they touched is locked. This is for operators that have joined at the home itself.
    ///
    /// # Errors
    ///
    /// As [`Member::open`]; [`NoRight`](ErrorKind::NoRight) to others, and by way of a site.
    pub fn doubts(&self, home: &str) -> Result<Vec<Doubt>> {
        block_on(self.doubts_async(home))
    }

    /// As [`Member::doubts`].
    ///
    /// # Errors
    ///
    /// As [`Member::doubts`].
    pub async fn doubts_async(&self, home: &str) -> Result<Vec<Doubt>> {
        doubts::list(self, self.home(home).await?).await
    }

    /// The transactions over several homes that lost a part, as far as a home and the others remember them: a home that
    /// has gone back in time has lost parts that others have. Nothing is changed. This is for operators that have joined at
    /// the home itself, which asks the other homes.
    ///
    /// # Errors
    ///
    /// As [`Member::doubts`]. A home that is not reached is no error: the result names it.
    pub fn lost_parts(&self, home: &str) -> Result<LostParts> {
        block_on(self.lost_parts_async(home))
    }

    /// As [`Member::lost_parts`].
    ///
    /// # Errors
    ///
    /// As [`Member::lost_parts`].
    pub async fn lost_parts_async(&self, home: &str) -> Result<LostParts> {
        let id = self.home(home).await?;
        lost_parts::Inquirer::new(self, (home, id)).run().await
    }

    /// Ends a vote in doubt at a home, because another home of its transaction is gone for ever. If that home did decide,
    /// and otherwise, the transaction stands at one home and not at the other: nothing repairs that. The home records who
    /// did it in its audit. Returns how the vote has ended there, which may be otherwise, if it was not in doubt any more.
    ///
    /// # Errors
    ///
    /// As [`Member::doubts`]; [`NotFound`](ErrorKind::NotFound) if the home knows nothing of the commit,
    /// [`Full`](ErrorKind::Full) if its store has no space for the outcome and its record.
    pub fn settle_doubt(&self, home: &str, commit: CommitId, ruling: Ruling) -> Result<Outcome> {
        block_on(self.settle_doubt_async(home, commit, ruling))
    }

    /// As [`Member::settle_doubt`].
    ///
    /// # Errors
    ///
    /// As [`Member::settle_doubt`].
    pub async fn settle_doubt_async(
        &self,
        home: &str,
        commit: CommitId,
        ruling: Ruling,
    ) -> Result<Outcome> {
        doubts::settle(self, self.home(home).await?, commit, ruling).await
    }

    /// What a home knows of its own history, and why it is closed, if it is. This is for operators that have joined at the
    /// home itself.
    ///
    /// # Errors
    ///
    /// As [`Member::doubts`].
    pub fn history(&self, home: &str) -> Result<KnownHistory> {
        block_on(self.history_async(home))
    }

    /// As [`Member::history`].
    ///
    /// # Errors
    ///
    /// As [`Member::doubts`].
    pub async fn history_async(&self, home: &str) -> Result<KnownHistory> {
        history::known(self, self.home(home).await?).await
    }

    /// Opens a closed home as one that goes on from an older state; `apart` as a copy for a test. What was committed after
    /// that state is lost, and rights that were revoked after it are back. `seen` is the incarnation of
    /// [`Member::history`]: a home that somebody has opened since is not opened again. The home begins anew, and the member
    /// waits for that. Returns the incarnation of the home then.
    ///
    /// # Errors
    ///
    /// As [`Member::doubts`]; [`Invalid`](ErrorKind::Invalid) if the home is not closed.
    pub fn confirm(&self, home: &str, seen: Incarnation, apart: bool) -> Result<Incarnation> {
        block_on(self.confirm_async(home, seen, apart))
    }

    /// As [`Member::confirm`].
    ///
    /// # Errors
    ///
    /// As [`Member::confirm`].
    pub async fn confirm_async(
        &self,
        home: &str,
        seen: Incarnation,
        apart: bool,
    ) -> Result<Incarnation> {
        history::confirm(self, self.home(home).await?, seen, apart).await
    }

    /// How transactions of [`Member::transact`] behave: as [`JoinConfig::session`] set it.
    pub fn session(&self) -> Session {
        self.session
    }

    /// The outcome of a commit that ended with [`OutcomeUnknown`](ErrorKind::OutcomeUnknown). It waits as long as a
    /// commit would. The member remembers the last 256 such outcomes, whatever else it commits meanwhile.
    ///
    /// # Errors
    ///
    /// [`OutcomeUnknown`](ErrorKind::OutcomeUnknown) still, [`OutcomeLost`](ErrorKind::OutcomeLost) if this member sent
    /// the commit and does not keep its outcome, [`NotFound`](ErrorKind::NotFound) if it did not send the commit, and
    /// [`Closed`](ErrorKind::Closed).
    pub fn outcome(&self, id: CommitId) -> Result<Outcome> {
        block_on(self.outcome_async(id))
    }

    /// As [`Member::outcome`].
    ///
    /// # Errors
    ///
    /// As [`Member::outcome`].
    pub async fn outcome_async(&self, id: CommitId) -> Result<Outcome> {
        let due = self.session.commit_due();
        let mut outcomes = self.shared().requests.pending.outcomes();
        loop {
            outcomes.mark_unchanged();
            match self.shared().requests.pending.late(id) {
                LateOutcome::Ended(outcome, by) => {
                    if let thorp_model::Outcome::Committed { stamp, .. } = outcome {
                        self.shared().session.raise_floor(stamp);
                    }
                    return Ok(outcome_of(self.shared(), id, outcome, by));
                }
                LateOutcome::Pending => {}
                LateOutcome::NotKept => {
                    let words = format!(
                        "the outcome of commit {id} was given or is not kept any more: look before you run it again"
                    );
                    return Err(Error::new(ErrorKind::OutcomeLost, words));
                }
                LateOutcome::NotSent => {
                    let words = format!("commit {id} is none that this member has sent");
                    return Err(Error::new(ErrorKind::NotFound, words));
                }
            }
            if self.shared().requests.is_closed() {
                return Err(Error::closed());
            }
            if !self.shared().requests.changed(&mut outcomes, due).await? {
                let words = format!("the outcome of commit {id} is not known yet: ask again later");
                return Err(Error::new(ErrorKind::OutcomeUnknown(id), words));
            }
        }
    }

    /// Requests the pages of objects that the program will read soon, and does not wait. It suits programs that know
    /// the structure of their objects, and read what one refers to. The objects may be of several homes.
    ///
    /// It never fails, and promises nothing. A page that is cached, or on its way, is not requested. Left out are pages
    /// of unknown homes and pages that do not exist. At most half of the requests that a member may have under way
    /// ([`FETCHES_MAX`](thorp_model::limits::FETCHES_MAX)) are prefetches, and a busy parent refuses these first. A
    /// read of a page that was left out waits as usual. Too many prefetches push out of the cache what is read;
    /// [`Stats::ahead_wasted`] counts them.
    pub fn prefetch(&self, references: &[Reference]) {
        self.shared().prefetcher.named(references);
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        let shared = self.shared();
        let (totals, mut stats) = (shared.cache.totals(), Stats::default());
        shared.counters.fill(&mut stats);
        stats.cached_reads = totals.reads;
        stats.misses = totals.misses;
        (stats.old_images, stats.behind) = (totals.old_images, totals.behind);
        stats.doomed = totals.doomed;
        stats.not_recorded = shared.recorder.as_ref().map_or(0, Recorder::lost);
        stats.cached_pages = shared.cache.pages() as u64;
        stats.cached_bytes = shared.cache.bytes() as u64;
        let ahead = shared.prefetcher.counts();
        (stats.ahead, stats.ahead_used, stats.ahead_wasted) =
            (ahead.requested, ahead.used, ahead.wasted);
        stats.ahead_hinted = ahead.hinted;
        if let Some(handle) = shared.requests.sender.handle() {
            stats.traffic = handle.totals().up;
            stats.fetches = handle.notes().get(Note::FetchSent);
        }
        stats
    }

    /// Where this member has joined, and what it carries for its neighbours ([`SiteOfMembers`](crate::SiteOfMembers)).
    pub fn site(&self) -> SiteStatus {
        self.runtime.site()
    }

    /// What is in the log of this member, and how old the oldest update is that its home has not executed. None: it has no log,
    /// or was closed.
    pub fn log(&self) -> Option<LogStatus> {
        block_on(self.log_async())
    }

    /// As [`Member::log`].
    pub async fn log_async(&self) -> Option<LogStatus> {
        let handle = self.shared().requests.sender.handle()?;
        let looking = handle.inspect(|member| member.in_log(now().mono));
        looking.await.flatten().map(LogStatus::from)
    }

    /// The homes that this member knows.
    pub fn homes(&self) -> Vec<HomeStatus> {
        let cache = &self.shared().cache;
        let homes = self.shared().homes.all().into_iter();
        let status = |home: KnownHome| HomeStatus {
            id: home.id,
            reachable: home.edge.is_some(),
            position: cache.position(home.id),
            silent: Duration::from_millis(
                now().mono.since(cache.heard(home.id).unwrap_or_default()),
            ),
            clock: wall(cache.watermark(home.id)),
            name: home.name,
            incarnation: home.incarnation.get(),
            reopened: home.reopened,
        };
        homes.map(status).collect()
    }

    /// Leaves, and waits for that. Every later call on any clone fails with [`Closed`](ErrorKind::Closed). A commit
    /// that was sent goes on at the home. Leaving blocks the thread for some milliseconds; so does dropping the last
    /// clone.
    ///
    /// If a transaction over several homes has just ended, or one with a large value was given up, leaving takes one more
    /// round trip, until the homes know. That is [`JoinConfig::leave_timeout`] at most. A process that ends without leaving
    /// leaves this to the homes, which ask each other.
    pub fn close(&self) {
        self.runtime.stop();
    }
}

/// The time in a stamp; the lowest stamp has none.
fn wall(stamp: Stamp) -> Option<SystemTime> {
    let since_1970 = Duration::from_millis(stamp.wall().0);
    match since_1970.is_zero() {
        true => None,
        false => UNIX_EPOCH.checked_add(since_1970),
    }
}

fn outcome_of(
    shared: &Shared,
    id: CommitId,
    outcome: thorp_model::Outcome,
    by: Option<HomeId>,
) -> Outcome {
    match outcome {
        thorp_model::Outcome::Committed { position, stamp } => Outcome::Committed(Committed {
            id: Some(id),
            position: by.map(|_| position),
            stamp: Some(stamp),
        }),
        thorp_model::Outcome::Refused(refusal @ Refusal::Busy { .. }) => {
            Outcome::Refused(Error::new(ErrorKind::Conflict, refusal.to_string()))
        }
        thorp_model::Outcome::Refused(refusal) => Outcome::Refused(shared.refused(by, refusal)),
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("homes", &self.homes())
            .finish_non_exhaustive()
    }
}
