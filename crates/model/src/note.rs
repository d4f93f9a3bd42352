//! What a state machine notes for metrics, logs and the simulator's counts: one name for
//! each branch of a rule.

macro_rules! notes {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Something that happened. Each is a branch of a rule.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Note {
            $($(#[$doc])* $name,)*
        }

        impl Note {
            /// All of them.
            pub const ALL: &[Note] = &[$(Note::$name,)*];

            /// Its name, for counts.
            pub fn name(self) -> &'static str {
                match self {
                    $(Note::$name => stringify!($name),)*
                }
            }
        }
    };
}

notes! {
    /// Rule 1: a stream began.
    StreamBegan,
    /// Rule 1: a stream ended.
    StreamEnded,
    /// Rule 1: a message of another epoch was dropped.
    OtherEpochDropped,
    /// Rule 1: another parent began a stream of a home whose stream is live.
    SecondParentUnheard,
    /// Rule R9: a node forgot what it held of a home that has gone back.
    Forgot,
    /// Rule R9: a home met a claim that nothing proves, or that an operator has left behind.
    ClaimNotKnown,
    /// Rule R9: a home met a receipt of another history, and closed.
    OtherHistoryMet,
    /// Rule R9: a site asked the home about the claim of a node below.
    ClaimPassed,
    /// Rule 2: an edge had no entry numbers left, and ended.
    EdgeWornOut,
    /// Rule 1: a child came again while its old edge was there, which was closed.
    CameAgain,
    /// Rule 2: an eviction notice struck a page.
    EvictionTaken,
    /// Rule 2: an eviction notice was late and was ignored.
    EvictionIgnored,
    /// Rule 2: a whole page was invalidated.
    WholePageInvalidated,
    /// Rule 2: a redirector gave up a page of its whole subtree.
    SubtreeEvicted,
    /// Rule 3: values of the overlay are shown before they are delivered.
    OwnShown,
    /// Rule 14: values are shown before their commit is answered.
    EarlyShown,
    /// Rule 14: they are to be, and cannot be.
    EarlyNotShown,
    /// Rule 14: they are shown no more: the commit was refused, or will be, or it cannot be heard when it has to be.
    EarlyWithdrawn,
    /// Rule 14: a commit waits for an earlier one of its program, over which it writes, and which is not shown any more.
    EarlyWaited,
    /// Rule 3: a hole was made.
    HoleMade,
    /// Rule 5: a reader asked for a watermark.
    WatermarkAsked,
    /// Rule 6: a commit was accepted.
    CommitAccepted,
    /// Rule 10: another home is to be asked, and there is no way to it.
    OtherHomeWanted,
    /// Rule 10: a vote was decided by the news that its member told.
    DecidedByMember,
    /// Rule 5: a strict read-only transaction was validated at the home.
    ReadOnlyValidated,
    /// Rule 6: refused, because an object that was read changed.
    RefusedConflict,
    /// Rule 6: refused on page grounds, below the validation floor.
    RefusedOnPageGrounds,
    /// Rule 6: accepted below the validation floor, because the page is old enough.
    AcceptedOnPageGrounds,
    /// Rule 6: the validation floor rose.
    FloorRose,
    /// Rule 6: refused, because the home has too much to do.
    RefusedBusy,
    /// Rule 6: refused, because the store is full.
    RefusedFull,
    /// Rule R7: something was taken out of the room that a home keeps back on a full store.
    RoomTaken,
    /// Rule 6: refused, because it builds on a refused one.
    RefusedBuiltOn,
    /// Rule 6: refused as unknown.
    RefusedUnknown,
    /// Rule 6: refused, because the request cannot be right.
    RefusedInvalid,
    /// Rule R4: refused, because the member lacks a right.
    RefusedNoRight,
    /// Rule R4: a child asked for something that it may not read.
    ReadDenied,
    /// Rule R5: a position took the right to read from children.
    RightLost,
    /// Rule R6: a page was not asked of a neighbour, because its digest is not known.
    DigestUnknown,
    /// Rule R6: a helper's image was older than the page.
    OldImageDropped,
    /// Rule R6: a helper's image was not the page that the home has.
    WrongImageDropped,
    /// Rule 6: a commit waited for its pages to be loaded.
    CommitParked,
    /// Rule 7: tables were trimmed to the acknowledged position.
    TrimmedToAcknowledged,
    /// Rule 8: kept values were delivered.
    UpdateDelivered,
    /// Rule 8: values that were not kept: an invalidation was delivered.
    InvalidationDelivered,
    /// Rule 8: a home told values, as they were asked for with the page.
    UpdateTold,
    /// Rule 8: an invalidated page was asked for again before anybody below did.
    Refetched,
    /// Rule 8: somebody below asked for a page that was refetched.
    RefetchUsed,
    /// Rule 8: nobody did before it changed again, or went.
    RefetchWasted,
    /// Rule 8: kept values were dropped at their limit.
    KeptDropped,
    /// Rule 9: a page was served from a redirector's own memory.
    ServedFromMemory,
    /// Rule 9: a request was redirected to a helper.
    Redirected,
    /// Rule 9: a helper sent its image.
    HelperAnswered,
    /// Rule 9: a helper had no complete image.
    HelperRefused,
    /// Rule 9: a request joined one that was in flight.
    FetchJoined,
    /// Rule 9: a page was asked of the parent.
    FetchSent,
    /// Rule 9: a child was told what is likely to be wanted next.
    Hinted,
    /// Rule 9: a child was told that what it asked for ahead is fetched for a neighbour, too.
    JoinedAhead,
    /// Rule 9: a page was asked for ahead of those below, because it is likely to be wanted next.
    FetchedAhead,
    /// Rule 9: somebody below asked for a page that was asked for ahead.
    AheadUsed,
    /// Rule 9: nobody did before it went, or before many others were asked for ahead.
    AheadWasted,
    /// Rule 9: an image came beside the stream and was brought to the position.
    PeerImageTaken,
    /// Rule 9: a home sent its own image beside its stream.
    ImageBeside,
    /// Rule 9: the stream overtook an image that came beside it, and made holes in it.
    ImageOvertaken,
    /// Rule 9: an image waited until the stream had come as far.
    PeerImageWaited,
    /// Rule 9: an image of another attempt was dropped.
    OtherAttemptDropped,
    /// Rule 9: a request was asked again: for an answer in the stream, or because it was refused as
    /// one that nobody waits for, and somebody does now.
    FetchAskedAgain,
    /// Rule 9: kept messages overflowed.
    KeptOverflowed,
    /// A home loaded a page from disk.
    PageLoaded,
    /// What is stored of a page was found damaged.
    PageDamaged,
    /// Rule 10: a home voted for its part of a transaction over several homes.
    Voted,
    /// Rule 10: a part was refused before it was voted for.
    VotedNo,
    /// Rule 10: refused, because it conflicts with a vote in doubt.
    RefusedInDoubt,
    /// Rule 10: a vote became a commit.
    VoteCommitted,
    /// Rule 10: a vote came to nothing.
    VoteAborted,
    /// Rule 10: a decision waited for pages or for room.
    DecisionWaited,
    /// Rule 10: a home in doubt asked another one.
    InDoubtAsked,
    /// Rule 10: a home in doubt found the outcome out by itself.
    InDoubtResolved,
    /// Rule 10: a decision was not heeded, because the votes cannot have come to it.
    DecisionDisbelieved,
    /// Rule 10: a decision would move the clock too far: the other homes are asked.
    DecisionDoubted,
    /// Rule R7: an operator ended a vote in doubt.
    DoubtSettled,
    /// Rule R7: what a member decides, or how another home ended its part, is not how the vote ended here.
    EndedOtherwise,
    /// Rule 10: every home has heard of an outcome, and the vote was forgotten.
    VoteSettled,
    /// Rule 11: a remembered outcome was told.
    OutcomeRemembered,
    /// Rule 11: an unknown id was refused for ever.
    UnknownRecorded,
    /// Rule 11: a request below the window was not executed.
    BelowWindow,
    /// Rule 11: a lost answer was asked for.
    OutcomeAsked,
    /// Rule 12: a clock reservation was made.
    ClockReserved,
    /// Foundation 1: an object was spilled into an overflow page.
    ObjectSpilled,
    /// Foundation 1: an object that its commit did not change, to make room.
    ObjectMoved,
    /// Rule C8: a procedure ran on an object.
    ProcedureRun,
    /// Foundation 3: a large value was committed.
    LargeCommitted,
    /// Foundation 6: pages were installed and the log trimmed.
    Installed,
    /// Foundation 6: the changes of a damaged page were set aside.
    SetAside,
    /// Rule 13: a child said nothing for too long, and was struck.
    ChildSilent,
    /// Rule 13: a parent said nothing for too long, and was given up: another one
    /// should be dialled.
    ParentSilent,
    /// Rule 13: a piece of a report was sent to a new parent.
    ReportSent,
    /// Rule 13: a page that was reported is as it was.
    PageUnchanged,
    /// Rule 13: a page that was reported has changed, and is dropped.
    PageChanged,
    /// Rule 13: a redirector answered for a page out of its own memory.
    ResynchronisedFromMemory,
    /// Rule 13: everything that was reported is resynchronised.
    Resynchronised,
    /// Rule 13: an outcome was held back until everything was resynchronised.
    OutcomeHeldBack,
    /// Rule 15: a child was cut off for breaking a limit or the protocol.
    ChildCutOff,
    /// Rule 15: a request of a child was refused at its limit.
    ChildLimited,
    /// Rule R7: something was refused to a name that has its share.
    NameLimited,
    /// Rule R2: a request was dropped: its member has not signed that it may come this way.
    NotDelegated,
    /// Rule R2: a delegation was not taken.
    DelegationNotTaken,
    /// Rule 11: a member was registered.
    Registered,
    /// Rule 11: a member was forgotten.
    RegistrationForgotten,
    /// Foundation 3: a value was dropped because its member was not heard of.
    StagedExpired,
    /// Rule 11: a piece of a value came when that had ended; it begins none anew.
    StagedTooLate,
    /// Rule R9: an operator opened a closed home. Its next life begins.
    Confirmed,
    /// Rule C6: a log has made an update durable.
    UpdateKept,
    /// Rule C6: a member shows an update of another log.
    UpdateShown,
    /// Rule C7: an update of another log is not shown, because it may be saved already.
    UpdateNotShown,
    /// Rule C7: a home executed an update.
    UpdateSaved,
    /// Rule C7: an update came again that its home has executed or refused.
    UpdateKnown,
    /// Rule C7: an update came before an earlier one of its log.
    UpdateNotYet,
    /// Rule C7: a home refused an update, and has taken its number.
    UpdateRefused,
    /// Rule C4: a node granted a lease, or gave it more time.
    LeaseGranted,
    /// Rule C4: a lease ended while a pull waited for its holder.
    LeaseEnded,
    /// A lease to write is void, because its member has lost the right (rule R5).
    LeaseVoid,
    /// A home wants leases to write back (rule C1).
    LeaseRecalled,
    /// Rule C5: a home granted a lock.
    LockGranted,
    /// Rule C5: a lock was given back, or its time was over, or its holder lost the right.
    LockEnded,
    /// Rule C5: a home refused a commit because a session holds a lock.
    RefusedLocked,
    /// Rule C5: a home refused a commit because the lock that it names is over.
    RefusedLockLost,
    /// Rule C2: a home told a member that the answer to its commit follows.
    AnswerWithheld,
    /// Rule C2: all who had to see what an answer tells have seen it, or their leases are over.
    AnswerReleased,
    /// Rule C2: an answer that was awaited for a reader's lease went out when that was over.
    ReaderNotAwaited,
    /// Rule C2: a child said how far it shows the stream.
    SeenTold,
    /// Rule C1: a node granted a read lease, or gave it more time.
    ReadLeaseGranted,
    /// Rule C1: a home granted no read lease, because of a writer, a vote in doubt, or a debt.
    ReadLeaseDenied,
    /// Rule C2: a hard read needed no message, because of a read lease.
    ReadUnderLease,
    /// Rule C3: a home answered a pull.
    PullAnswered,
    /// Rule C3: a pull went to a node that may have written.
    PullPassed,
}
