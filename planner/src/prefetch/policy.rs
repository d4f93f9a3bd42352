//! Who is fetched when, and who makes room.

use serde::Serialize;

/// What decides on fetches.
///
/// Room is made by longest forward distance as far as hints tell it, and by least recent use of what they do not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// What it is called.
    pub name: &'static str,
    /// Whether it hears hints. Without them it is demand fetching with LRU.
    pub hears_hints: bool,
    /// When pages are prefetched into local memory.
    pub local: Rule,
    /// Whether they are prefetched from global memory too, or only from disk.
    pub from_global: bool,
    /// Whether pages are prefetched from the disks of memory servers into global memory, aggressively.
    pub into_global: bool,
    /// Whether forestall looks past pages that are on their way into global memory, to those that the node's own disk could read.
    /// By the text it waits for the first page that misses, wherever that is.
    pub looks_past: bool,
}

/// When a missing page is prefetched into local memory. Each asks for a page there whose next reference is later (*do no harm*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Rule {
    /// Not at all.
    Never,
    /// When it is needed within the time that its fetch takes (TIP2's prefetch horizon: Patterson et al. 95).
    FixedHorizon,
    /// As soon as a link or disk is free (Cao et al. 95: optimal fetching, optimal replacement, do no harm, first opportunity).
    Aggressive,
    /// When the missing pages up to some page take at least the time until that one is needed (Kimbrel et al. 96b; the *local
    /// prefetch predicate* of section 4.2.2).
    Forestall,
}

impl Policy {
    /// Demand fetching, LRU in both memories: what GMS does.
    pub const DEMAND_LRU: Policy = Policy {
        name: "demand, LRU",
        hears_hints: false,
        local: Rule::Never,
        from_global: false,
        into_global: false,
        looks_past: false,
    };

    /// Demand fetching, longest forward distance in both memories: what Belady's MIN is to one memory, GLFD is to two.
    pub const DEMAND_MIN: Policy = Policy {
        name: "demand, GLFD",
        hears_hints: true,
        ..Policy::DEMAND_LRU
    };

    /// A fixed horizon into local memory.
    pub const FIXED_HORIZON: Policy = Policy {
        name: "fixed horizon",
        local: Rule::FixedHorizon,
        from_global: true,
        ..Policy::DEMAND_MIN
    };

    /// Aggressive into local memory.
    pub const AGGRESSIVE: Policy = Policy {
        name: "aggressive",
        local: Rule::Aggressive,
        ..Policy::FIXED_HORIZON
    };

    /// Forestall into local memory. Global memory has only what was evicted.
    pub const FORESTALL: Policy = Policy {
        name: "forestall",
        local: Rule::Forestall,
        ..Policy::FIXED_HORIZON
    };

    /// Aggressive into both memories.
    pub const AGGRESSIVE_TWICE: Policy = Policy {
        name: "aggressive, both",
        into_global: true,
        ..Policy::AGGRESSIVE
    };

    /// Chapter 4's: aggressive from disk into global memory, forestall into local memory, room by GLFD.
    pub const HYBRID: Policy = Policy {
        name: "hybrid",
        into_global: true,
        ..Policy::FORESTALL
    };

    /// The hybrid that does not wait for pages on their way into global memory before it uses the node's own disk.
    pub const HYBRID_PAST: Policy = Policy {
        name: "hybrid, looking past",
        looks_past: true,
        ..Policy::HYBRID
    };

    /// Forestall from disk only; pages in global memory wait until they are demanded (figure 4.4, second curve from below).
    pub const FORESTALL_DISK: Policy = Policy {
        name: "forestall, disk only",
        from_global: false,
        ..Policy::FORESTALL
    };

    /// The hybrid whose pages in global memory wait until they are demanded (figure 4.4, second curve from above).
    pub const HYBRID_DISK: Policy = Policy {
        name: "hybrid, no global to local",
        from_global: false,
        ..Policy::HYBRID
    };

    /// Those that are compared, the simple ones first.
    pub const ALL: [Policy; 8] = [
        Policy::DEMAND_LRU,
        Policy::DEMAND_MIN,
        Policy::FIXED_HORIZON,
        Policy::AGGRESSIVE,
        Policy::FORESTALL,
        Policy::AGGRESSIVE_TWICE,
        Policy::HYBRID,
        Policy::HYBRID_PAST,
    ];

    /// Those of figure 4.4, from its lowest curve to its highest, which is one of the last two.
    pub const OF_FIGURE_4_4: [Policy; 6] = [
        Policy::DEMAND_LRU,
        Policy::FORESTALL_DISK,
        Policy::FORESTALL,
        Policy::HYBRID_DISK,
        Policy::HYBRID,
        Policy::HYBRID_PAST,
    ];
}
