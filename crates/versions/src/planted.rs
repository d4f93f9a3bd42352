//! Bugs that can be planted to show that the simulator's checkers catch them. Without the feature `planted-bugs` there are none: [`is_planted`] is
//! always false, and the guards that it switches off cost nothing.

macro_rules! bugs {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A guard of the web cache that can be switched off.
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
    /// Trap W1: a fill's evidence is read after its answer has come.
    EvidenceAfterAnswer,
    /// Trap W2: the words of an open update are even.
    EvenAtBegin,
    /// Trap W3: the first end of two updates makes their word even.
    FirstEndMakesEven,
    /// Trap W4: the keeper stores the sequence and *stores* before the words.
    SequenceBeforeWords,
    /// Trap W5: a request shares an older fill whose check has failed.
    OlderFillShared,
    /// Trap W6: what an answer itself shows is no dependency when the fill is checked.
    LearnedNotChecked,
    /// Trap W7: the updates of a proxy that is gone are over.
    GoneAreOver,
    /// Trap W7: a keeper that starts does not wait for the proxies of the one before.
    OthersNotAwaited,
    /// Trap W8: a reader does not look how old the beat is.
    BeatNotLookedAt,
    /// Trap W8: commits go on as soon as nobody waits for the keeper any more.
    LetGoAtOnce,
    /// Trap W9: a follower is struck as soon as it is late.
    StruckAtOnce,
    /// Trap W9: a follower that has not acknowledged everything is answered *yes*.
    YesToLateFollower,
    /// Trap W9: a follower counts a beat's age from the answer.
    LeaseFromAnswer,
    /// Trap W9: a follower acknowledges what it has not stored yet.
    AcknowledgedUnstored,
    /// Trap W9: a keeper that starts does not think of the followers of the one before.
    FollowersForgotten,
    /// Trap W10: a table that restarts repeats its numbers under its old generation.
    TableRepeats,
    /// Trap W11: a keeper that has lost its source goes on in its old generation.
    GenerationKept,
    /// Trap W16: a home votes, and the words of the vote stay even.
    VoteLeavesEven,
    /// Trap W20: only a change that no rule names changes *everything*.
    EverythingOnlyUnnamed,
    /// Trap W20: each change changes *unknown*.
    EachChangeUnknown,
    /// Rule W9: a change that no rule names does not change *unknown*.
    UnknownForgotten,
    /// Trap W19: no request waits for the fill of another.
    NobodyJoins,
    /// Trap W21: a reader loads the generation before the beat.
    GenerationFirst,
    /// Trap W22: the short cut does not look at the beat.
    ShortCutWithoutBeat,
    /// Trap W23: the short cut looks at the sequence.
    ShortCutBySequence,
    /// Trap W24: requests join a fill whose check has begun.
    JoinedAfterCheck,
    /// Trap W25: a keeper beats when it hears from its source.
    BeatWhenHeard,
    /// Rule W7: the beat is the time of the answer.
    BeatWhenAnswered,
    /// Trap W26: a keeper believes the name alone.
    ProbeSkipped,
    /// Trap W29: a keeper beats before what was open has ended.
    OldOnesNotAwaited,
    /// Trap W30: a transaction's number is used without its upper half.
    BareNumber,
    /// Trap W31: any answer ends its update.
    AnyAnswerEnds,
    /// Trap W32: the acknowledgement of any keeper counts, and a proxy lists only what is acknowledged.
    DeadAcknowledges,
    /// Trap W32: a request leaves long after its acknowledgement.
    LeavesLate,
    /// Trap W37: fills of before the first beat are of its generation.
    NotRenewed,
    /// Trap W38: a watchdog that wakes takes out any name.
    AnyNameLetGo,
    /// Rule W7: a keeper that stops takes its name out at once.
    LeftAtOnce,
}

#[cfg(feature = "planted-bugs")]
mod switch {
    use super::Bug;
    use std::sync::atomic::{AtomicU8, Ordering};

    static PLANTED: AtomicU8 = AtomicU8::new(u8::MAX);

    /// Plants a bug in this whole process, or none.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.store(bug.map_or(u8::MAX, |bug| bug as u8), Ordering::Relaxed);
    }

    /// Whether a bug is planted.
    pub fn is_planted(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as u8
    }
}

#[cfg(feature = "planted-bugs")]
pub use switch::{is_planted, plant};

/// Whether a bug is planted: never, in a build without the feature.
#[cfg(not(feature = "planted-bugs"))]
pub const fn is_planted(_: Bug) -> bool {
    false
}
