//! What goes wrong in a village.

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A kind of fault.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Kind {
            $($(#[$doc])* $name,)*
        }

        impl Kind {
            /// All of them.
            pub const ALL: &[Kind] = &[$(Kind::$name,)*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Kind::$name => stringify!($name),)*
                }
            }
        }
    };
}

kinds! {
    /// A connection of a member is cut.
    MemberCut,
    /// A connection of a redirector with its parent is cut.
    SiteCut,
    /// A child cannot reach its parent for a while.
    Partition,
    /// For a while a connection carries nothing one way, and everything the other way.
    OneWay,
    /// A connection becomes slow for a while.
    SlowLink,
    /// A node takes its inputs slowly for a while.
    SlowNode,
    /// A member does not read for a while: its queue fills, and it may be cut off.
    StopsReading,
    /// A home dies, loses what was not synced, and starts again.
    HomeCrash,
    /// A redirector dies, and starts again knowing nothing.
    SiteCrash,
    /// A member dies; another one starts in its place.
    MemberCrash,
    /// A home's disk is full for a while, or nearly; small batches still go in.
    DiskFull,
    /// A home's disk is full for a while, and refuses what it is given.
    DiskRefuses,
    /// A home's disk is slow for a while.
    SlowDisk,
    /// A home's wall clock jumps.
    ClockJump,
    /// A home's wall clock is too fast or too slow for a while, and stays where that brought it.
    ClockDrift,
    /// A member's cache is emptied.
    Squeeze,
    /// A member turns to another parent.
    Moves,
    /// A commit that has ended comes once more.
    SentAgain,
    /// A process that keeps no rules connects for a while.
    Byzantine,
    /// A node connects to another parent beside its own.
    SecondParent,
    /// A bit of a stored page flips, until what is stored is put back.
    BitFlip,
    /// A node stands still for a while, and its connections with it: it neither reads nor says that
    /// it is there.
    Hangs,
    /// A home is cut off from everybody just after it has told a vote: what it told arrives,
    /// nothing comes back for longer than it waits before it asks (rule 10).
    LeftInDoubt,
}

impl Kind {
    /// Those that can strike in any village, in the order in which they are drawn.
    pub const ANYWHERE: &[Kind] = Self::ALL.split_at(Self::ALL.len() - 1).0;
}
