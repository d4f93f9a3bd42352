//! Bugs that can be planted to show that the simulator's checkers catch them.
//! Without the feature `planted-bugs` there are none: [`is`] is always false
//! and the guards it switches off cost nothing.

macro_rules! bugs {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A guard that can be switched off.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Bug {
            $($(#[$doc])* $name,)*
        }

        impl Bug {
            /// All of them.
            pub const ALL: &[Bug] = &[$(Bug::$name,)*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Bug::$name => stringify!($name),)*
                }
            }
        }
    };
}

bugs! {
    /// Trap 1: a page is given up and running transactions are not told.
    EvictionNotTold,
    /// Trap 3: a helper's image is shown as it comes, without its label.
    LabelIgnored,
    /// Trap 3: an image of an abandoned attempt is taken.
    LateAttemptTaken,
    /// Trap 4: a late eviction notice strikes the new copy.
    LateNoticeStrikes,
    /// Trap 7: a patch is not a read of its slot.
    PatchIsBlind,
    /// Trap 7: a patch fills a hole.
    PatchFillsHole,
    /// Trap 9: a member's position goes on before all its pages are resynchronised.
    HalfResynchronised,
    /// Trap 9: a program hears of its commit before its pages are resynchronised.
    OutcomeTooEarly,
    /// Trap 9: versions are not looked at in resynchronisation.
    VersionsIgnored,
    /// Trap 9: a redirector that stands further down than its parent passes on to a child what
    /// that one says of a page.
    WordFromBehindPassed,
    /// Trap 9: a child that reported a page, and was struck from it before the answer, is told that it is as it was.
    StruckSaidSame,
    /// Trap 9: a redirector whose stream was lost goes on with its old directory.
    OldDirectoryKept,
    /// Trap 9: a child that was struck as silent goes on as if it had not been.
    StruckChildBelieved,
    /// Trap 25: pages that only a running transaction has read are not reported.
    ReadsNotReported,
    /// Trap 10: a commit is told before it is durable.
    ToldBeforeDurable,
    /// Trap 10: a restarted home's clock forgets what it promised.
    CeilingForgotten,
    /// Trap 10: a validated reader is told that it stands above the reserved ceiling.
    ReaderAboveCeiling,
    /// Rule 10: a vote is not logged: a home that restarts has forgotten it.
    VoteForgotten,
    /// Rules 10 and 11: a member is heard that speaks of another's commits.
    OthersHeard,
    /// Rule 10: a vote is kept though every home has heard how it ended.
    VoteKept,
    /// Rule 10: a member is believed at what stamp its transaction is committed.
    DecisionBelieved,
    /// Rule R7: a home votes for a transaction with homes that it does not know.
    ParticipantsBelieved,
    /// Rule R7: a full store refuses a change of rights and a deletion like everything else.
    FullStoreKeepsRights,
    /// Rule R7: a full store installs pages for which it has no room.
    InstalledWithoutRoom,
    /// Rule R7: one name may use up the room that a home keeps back on a full store.
    RoomNotShared,
    /// Rule R7: a name leaves its votes to the homes as often as it likes.
    DoubtsNotCounted,
    /// Rule R7: whoever asks ends a vote in doubt.
    AnybodySettles,
    /// Rule R7: an operator's end of a vote is not logged.
    SettlementNotLogged,
    /// Rule R7: a member goes on showing what is known to be committed, though an operator refused it.
    SettledStaysShown,
    /// Rule R7: a name makes as many segments as the home has places for.
    SegmentsNotShared,
    /// Rule R7: a name fills the whole store.
    SpaceNotShared,
    /// Rule R7: a name gets as many page numbers of a segment as there are.
    NumbersNotShared,
    /// Rule R7: the segments of one name take all that a home tells about readers.
    ReadersNotShared,
    /// Rule R7: one child takes all watches of a site.
    WatchesNotShared,
    /// Rule R7: each process of a name has a share of its own of what is under way.
    ProcessesNotCounted,
    /// Rule 10: what a vote read and wrote is not locked.
    VoteNotLocked,
    /// Rules 3 and 10: what a vote will write is moved for another commit.
    LockedIsMoved,
    /// Rule C8: a procedure runs on what is durable, and not on what was accepted since.
    ProcedureOnDurable,
    /// Rule 10: a watermark goes past a vote in doubt.
    WatermarkPassesVote,
    /// Trap 19: what was read at several homes, or at one whose order is not that of stamps,
    /// stands without what the homes would have to promise.
    WatermarkNotAwaited,
    /// Trap 16: a session goes back behind what it has seen.
    SessionFloorIgnored,
    /// Rule 5: an old image of a page is shown beyond its last position.
    OldImageAfterItsEnd,
    /// Rules 5 and 13: what changed at no known position counts as unchanged up to where the
    /// stream goes on.
    OldImageKeptOverGap,
    /// Rules 4 and 5: what read on as of before a change has the newest position as its evidence.
    BehindTakenForCurrent,
    /// Trap 19: a page tells the stamp of its last change, not the highest that it contains.
    LastStampTold,
    /// Trap 6: the overlay shows values before their place under the stamp of the page below them.
    OwnStampNotTold,
    /// Trap 8: what builds on a commit that was refused is accepted.
    BuiltOnAnything,
    /// Rule 14: a program hears that its commit was refused before the values are hidden.
    RefusedToldFirst,
    /// Rule 14: what is not answered stays, though what it rests on was changed.
    TentativeStays,
    /// Rules 5 and 14: who has read what was not answered stands anywhere, also below the stamp that it got.
    EarlyStampNotKnown,
    /// Rule 14: what stands on a commit by way of others ends with that one's delivery.
    OnlyNamesSeen,
    /// Rule 14: what is not answered stays, though a page that it rests on was given up.
    RestsOnEvicted,
    /// Rule 14: what builds on a commit goes to its home without naming it where it only writes over it.
    WrittenOverNotNamed,
    /// Rules 2 and 14: a reader of what is not answered stands still where a page that it has read was given up.
    OwnReadFrozen,
    /// Rules 2 and 14: a reader that stands still is served what is not answered from an image that it held before.
    OwnServedFrozen,
    /// Rule 14: a commit that is known to be over several homes ends nothing that rests on what it changes.
    KnownEndsNothing,
    /// Rule 14: whoever writes over what a commit wrote is taken to have read what that wrote elsewhere.
    WrittenOverTakenForRead,
    /// Rules 10 and 14: who has read what a commit wrote at one home is taken to know it at another.
    KnownElsewhere,
    /// Rule 14: whoever writes over what several commits wrote is bound to the last of them only.
    WrittenOverLastOnly,
    /// Rule 14: a commit goes ahead of one that its program made before it, and that is not shown any more.
    WithdrawnOvertaken,
    /// Rule 14: a commit over several homes goes to all of them when it is its turn at one.
    OtherHomesAhead,
    /// Rules 3 and 14: a neighbour is sent a page with values that are not answered.
    TentativeSent,
    /// Rule 14: who asked for its commit after what it had read was changed, or refused, is shown.
    ShownTooLate,
    /// Rule 4: whoever names a commit as evidence may have read anything older.
    NamedNotLast,
    /// Rules 4 and 6: an object that the home moved to make room for a commit counts as changed by it: its name excuses what
    /// another did to it before.
    MovedIsChanged,
    /// Trap 11: a home that has waited for long aborts what it voted for.
    VoteTimesOut,
    /// Trap 12: two members can create the same slot.
    CreationNotChecked,
    /// Trap 12: a scan misses a page that was added.
    ExtentNotRaised,
    /// Trap 12: a system page raises the extent, so that each scan goes through a billion pages.
    SystemPageRaisesExtent,
    /// Trap 12: the system pages of a segment stay in the store when it is removed.
    SystemPagesLeft,
    /// Trap 12: generations are not checked: an old reference reaches a new object.
    GenerationNotChecked,
    /// Trap 17: values that were not kept are not invalidated either.
    DroppedNotInvalidated,
    /// Trap 18: requests of a child are never limited.
    ChildNotLimited,
    /// Trap 18: commits that wait for pages are counted, not weighed.
    ParkedBytesNotCounted,
    /// Trap 20: the changes of one position travel as several steps.
    StepSplit,
    /// Trap 21: a second request is joined onto a redirect.
    JoinedOntoRedirect,
    /// Trap 22: notices carry counts of images received, not numbers.
    NoticesCount,
    /// Trap 24: a redirector gives up a page that its members hold.
    OwnCopyOnly,
    /// A new child is not told how long its parent has not heard of the home.
    SilenceNotTold,
    /// An invalidation is lost.
    InvalidationLost,
    /// A page is sent before it is entered.
    SentBeforeEntered,
    /// Rule 9: of an image that was asked for ahead of those who wait for it now, they are not entered.
    AheadNotEntered,
    /// Rule 8: those below are not told of the holes in a page that is asked for above again at once.
    RefetchedNotTold,
    /// An update is applied a second time, at a remembered answer.
    AppliedTwice,
    /// Evidence is rewritten on the way to the redirector's position.
    EvidenceRewritten,
    /// Rule R2: a home that remembers as many members as it may forgets the longest silent one, whose it is.
    OthersForgotten,
    /// Rule R2: a node fills in the values that it kept of a commit, whatever the home executed.
    ContentBelieved,
    /// Trap R23: a home believes whatever point of its history a node claims.
    ClaimsBelieved,
    /// Trap R39: answers of a home carry no receipts, only heartbeats do.
    AnswersNotVouched,
    /// Trap R22: a home that meets another history of itself goes on.
    OtherHistoryIgnored,
    /// Trap R17: a node whose knowledge is of a lost history goes on with it.
    NobodyForgets,
    /// Trap R20: a home executes what rests on an earlier incarnation.
    LeftExecuted,
    /// Trap R42: a home answers another one with a no where its vote may be lost.
    LostIsNo,
    /// Rule 1: a site tells a child which homes there are before the streams that it has.
    HomesToldFirst,
    /// Traps R24 and R38: a site begins a child's stream, whatever the child claims.
    ClaimsNotPassed,
    /// Trap R25: another life is made durable than the one that receipts name.
    LifeNotDurable,
    /// Rule R9: whoever asks opens a closed home.
    AnybodyConfirms,
    /// Rule R9: a call that opens a home does so again when it comes again, whatever the operator has seen.
    ConfirmedTwice,
    /// Trap R26: a home gives a slot's generations again that may have been given in a lost history.
    GenerationsGivenAgain,
    /// Trap R19: a home compares positions and clocks, and no marks.
    MarksNotCompared,
    /// Trap R52: a home that restarts has forgotten the receipts of other homes.
    ReceiptsForgotten,
    /// Trap R53: a home that restarts has forgotten which transactions were over several homes.
    JointsForgotten,
    /// Rule R2: a home takes a request from whatever site brings it.
    SiteBelieved,
    /// Rule R2: a home refuses for ever what comes by a site that the member does not name.
    UndelegatedRecorded,
    /// Rule R2: a home takes a delegation with a lower number than the last one.
    OldDelegationTaken,
    /// Rule R2: a site names only itself on the way to the home, and no site above it.
    UpperSitesNotTold,
    /// Rule R2: a site above other sites takes a request from whichever of them brings it.
    SitesBelowNotChecked,
    /// Outcomes are forgotten: a commit sent again runs again.
    OutcomeForgotten,
    /// The validation floor is ignored: what is not known counts as unchanged.
    FloorIgnored,
    /// A second live parent for the same home is taken.
    SecondParentTaken,
    /// A removal goes by the path that the segment had.
    RemovalByPath,
    /// An answer in the stream settles only the last try for its page.
    OnlyLastTry,
    /// A page out of a parent's memory counts as news of the home.
    MemoryIsNews,
    /// The log is trimmed with installations only, each by a bounded number of records.
    TrimmedOnlyWithPages,
    /// A page that is loaded in order to be installed may go out of memory before it is.
    ColdPagesHoldTheLog,
    /// A removal goes on where another segment's stands.
    RemovalsMixed,
    /// Pages of a removed segment go before its removal was told.
    RemovedEarly,
    /// Changes are told to those who hold the page, and not to those who watch its segment.
    WatchNotTold,
    /// A page that is damaged on disk counts as one that was never written.
    DamagedIsEmpty,
    /// Rule R4: a home looks at no rights.
    RightsNotChecked,
    /// Rule R4: a redirector takes no readers from the beginning of a stream.
    ReadersNotTold,
    /// Rule R4: a redirector checks a request when it comes, and not the image that it gives.
    JoinedNotChecked,
    /// Rule R4: a home looks at rights when a commit comes, and not when it judges it.
    ParkedNotChecked,
    /// Rule R4: a site is given every segment, whoever may carry it.
    CarrierNotChecked,
    /// Rule R4, trap R14: a site above other sites does not look at what they may carry.
    LowerSiteNotChecked,
    /// Rule R4: a site that a member carries counts as one that no member carries.
    CarriedTakenForSite,
    /// Rule R5: a child that loses the right to read keeps its pages.
    RevokedKeepsPages,
    /// Rule R6: a redirector forwards a helper's image, whatever the digest.
    HelpersBelieved,
    /// Rule R6: a redirector sends requests to helpers also for pages whose digest it does not know.
    UnknownRedirected,
    /// Rule R6: an image that is older than the page counts as a wrong one.
    OldImageIsWrong,
    /// Rule R6: version and highest stamp of a page are not in its digest.
    StampNotInDigest,
    /// Rule R6: a node that sent a wrong image is asked to help again.
    WrongHelperAsked,
    /// Rule R5: a transaction over several homes may read and write a rights list.
    RightsInVote,
    /// Rule R3: at a home, whoever may write may not read.
    WriteWithoutRead,
    /// Rule R3: a home ignores what a list gives to all members.
    MembersIgnored,
    /// Rule R3: whoever may write may change the rights list.
    ListForWriters,
    /// Rule 4: a client's commit carries nothing of what it has read.
    SessionReadsOmitted,
    /// Rule 4: a client takes the position of its page cache for evidence, whatever has changed.
    SessionEvidenceAssumed,
    /// Rules 4 and 14: a client's commit does not list the commits that it depends on.
    SessionDependenciesOmitted,
    /// Rule 14: a transaction that only read commits before this program's commits that it has read are answered.
    SessionOwnNotAwaited,
    /// Rule 5: a transaction that only read commits after homes were asked to promise enough, whatever they promised.
    SessionPromiseAssumed,
    /// Rule 5: a client's commit does not carry the highest stamp that it saw.
    SessionStampOmitted,
    /// Rule 5: what several homes have validated stands at the highest stamp that was read, also if one of them could not
    /// move its clock past that.
    SessionFitAssumed,
    /// Trap C3: the step that saves an update goes only to those who hold its page.
    SavedNotTold,
    /// Trap C4: a home executes an update as often as it comes.
    UpdateTakenTwice,
    /// Trap C7: a home takes an update although it lacks an earlier one of its log.
    UpdateNumbersSkipped,
    /// Trap C9: a home forgets a lease with the edge of its holder.
    LeaseEndsWithEdge,
    /// Trap C10: a home that starts again does not wait for leases of its last life.
    LeasesForgotten,
    /// Trap C12: a home answers a pull without asking who may have written.
    WritersNotAsked,
    /// Rule C3: a home answers a pull before it has what the logs have named.
    HeadsNotAwaited,
    /// Trap C26: a member counts its lease from the answer, and without a margin.
    LeaseFromAnswer,
    /// Trap C34: a home forgets what it has refused.
    UpdateRefusalForgotten,
    /// Rule C7: what was on its way when a stream ended is not sent again.
    UpdatesNotSentAgain,
    /// Trap C36: a member goes on before it knows which updates are in its pages.
    FollowNotAwaited,
    /// Rule C7: a member shows an update that its home may have executed.
    LateUpdateShown,
    /// Rule C2: a home answers a change before those have seen it that hold read leases.
    AnswerNotWithheld,
    /// Trap C10: a home that starts again answers although read leases of its last life may be held.
    ReadLeasesForgotten,
    /// Trap C11: a home takes a change for seen when it has sent it.
    SeenWhenSent,
    /// Rule C1: a home grants a read lease where a member may write what it has not seen.
    ReadLeaseBesideWriter,
    /// Rule C2: a site says that all below it have seen a position, and asks nobody.
    SeenForOthers,
    /// Trap C22: a home tells a remembered outcome before its answer may go.
    RememberedNotWithheld,
    /// Trap C22: a home sends an outcome, or that an update is saved, once more before its answer may go.
    ToldAgainNotWithheld,
    /// Trap C21: a home that votes does not say that its answer follows.
    VoteNotWithheld,
    /// Trap C11: a new edge is not asked about what its child was allowed to miss.
    MissedNotAskedAgain,
    /// Trap C30: a home gives more time to a reader that does not say what it has seen.
    SeenDebtForgiven,
    /// Trap C8: a home takes what was written under a lock that is over.
    LockNotNamed,
    /// Trap C29: a home that starts again knows no lock.
    LocksForgotten,
    /// Trap C17: a home grants a lock on what a vote in doubt writes.
    LockBesideVote,
    /// A member whose stream ends before its pages are resynchronised takes itself to stand where that stream was (rule C3).
    EndedStreamStands,
    /// A pull does not wait for a vote in doubt, although its program may have its answer (rule C2).
    PullPastVote,
    /// Rule C5: a home grants a lock where a log may have answered what the home has not seen.
    LockBesideWriter,
    /// Trap C42: a lock lasts although its holder may not write any more.
    LockOutlivesRight,
    /// Trap C42: a home waits for the lease of a holder that may not write any more.
    LeaseOutlivesRight,
    /// Trap C42: a home does not ask a holder that has lost the right, has it back, and believes in its lease.
    RestoredNotAsked,
    /// Rule C1: a member gives a lease back that was recalled, before its home has what it answered under the lease.
    GivesBackTooEarly,
    /// Rule C1: a site gives a lease back that was recalled, although a member below it holds one.
    GivesBackForOthers,
    /// Rule C1: a member whose lease was recalled goes on answering under it.
    AnswersRecalled,
    /// Rule C4: a member that gets no answer from its home goes on answering by its lease.
    PaceNotKept,
    /// Trap C21: a refused commit over several homes is answered only when each home that kept its vote back has answered.
    RefusalWithheld,
    /// Trap C23: a member says that it shows a position while it stands where its old stream ended.
    SeenTooEarly,
    /// Trap C1: a pull does not ask whom another pull has asked already.
    PullJoined,
    /// Trap C2: the age of a pull counts from its answer.
    AgeFromAnswer,
    /// Trap C5: what a log keeps is laid into the images that transactions read.
    UpdateInImage,
    /// Trap C6: all starts of a log have one id, so a start gives numbers that an earlier one has given.
    LogIdKept,
    /// Trap C16: an answer waits for a lease time, whoever holds a read lease.
    AnswerWaitsAlways,
    /// Trap C18: an update is executed although others hold a lock there.
    UpdatePastLock,
    /// Trap C19: whoever stands still is shown an image that is newer.
    NewerThanStanding,
    /// Trap C25: a home takes no answer of a child while a pull of that child waits.
    PullQueued,
    /// Trap C27: a child that has started again counts as the holder of its earlier leases.
    RestartedIsHolder,
    /// Trap C31: a home tells a lock ahead of what was written under the lock before.
    LockBeforeStep,
    /// Trap C32: a visit does not look whether its lock holds.
    LockNotLooked,
    /// Trap C33: a commit that meets the lock of another waits.
    LockedWaits,
    /// Trap C35: a home forgets with a registration how far the log of that member is.
    LogForgotten,
    /// Trap C40: a visit lays the updates of now over its old view.
    OverlayOfNow,
    /// Trap C41: a home takes an update of the log of another.
    OtherLogTaken,
    /// Trap C41: a home believes a site which number a log has given to an update, and what the update writes.
    CustodyBelieved,
    /// Rule C7: a home believes the log of a site who has written an update.
    AuthorBelieved,
    /// Rule C6: the log of a site does not look who has signed what it keeps.
    KeptUnproven,
    /// Rule R4: a site shows what the log of the site keeps, whether or not its author may write there.
    AuthorsNotAsked,
    /// Trap C43: a home that goes on in another incarnation forgets how far the logs are.
    SavedNotKept,
    /// Rule C5: a home that starts again does not look when the locks end that it finds.
    FoundLockNotLooked,
    /// Rule C2: a change that a reader may miss does not count as missed.
    MissedNotCounted,
    /// Rule C5: a program hears of a lock whose time is over already, because its turn came late.
    LateLockTold,
    /// Rule C5: a home that ended a lock does not know so when the call comes again.
    EndedLockForgotten,
    /// Rule C5: a busy home is not asked again to end a lock, or to give up a staged value.
    UnlockNotRepeated,
    /// Rule C5: a lock gets more time, however long others want it.
    WantNotCounted,
    /// Rule C5: who wanted a lock wants it for ever.
    WantNeverForgotten,
    /// Rule C4: what a child owes to a pull ends with that pull.
    DebtForgiven,
}

#[cfg(feature = "planted-bugs")]
mod switch {
    use super::Bug;
    use core::sync::atomic::{AtomicU8, Ordering};

    static PLANTED: AtomicU8 = AtomicU8::new(u8::MAX);

    /// Plants a bug in every state machine of this process, or none.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.store(bug.map_or(u8::MAX, |bug| bug as u8), Ordering::Relaxed);
    }

    /// Whether a bug is planted.
    pub fn is(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as u8
    }
}

#[cfg(feature = "planted-bugs")]
pub use switch::{is, plant};

/// Whether a bug is planted: never, in a build without the feature.
#[cfg(not(feature = "planted-bugs"))]
pub const fn is(_: Bug) -> bool {
    false
}
