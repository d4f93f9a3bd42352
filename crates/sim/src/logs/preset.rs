//! The presets that sessions of mixed villages choose among, and what each excludes.

use std::time::Duration;
use thorp_model::{AccessMode, Consistency, Failures, Moment, SessionKind};

/// The bound in time of `bounded`.
pub(super) const BOUND: Duration = Duration::from_millis(300);

/// Its bound in changes.
pub(super) const MODS: u32 = 2;

/// What goes wrong where consistency is weak.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Anomaly {
    /// It read what was never saved.
    DirtyRead,
    /// It wrote an object after somebody whose write it had not seen there.
    LostUpdate,
    /// Of two sessions each read what the other one wrote, as of before, and both wrote.
    WriteSkew,
    /// What was answered before it opened is missing.
    StaleRead,
    /// It saw a part of what another session wrote at once.
    FracturedRead,
    /// It saw a write, and not what the writer had seen or written before.
    CausalReversal,
    /// An earlier session of its program saw more of an object.
    NonMonotonicRead,
    /// What its own program had written before is missing.
    MissedOwnWrite,
    /// A write was answered, was not rejected, and is nowhere in the end.
    LostAfterSaved,
    /// A write counts twice.
    AppliedTwice,
}

impl Anomaly {
    /// The ten that are judged, in the order of the table.
    pub(crate) const ALL: [Anomaly; 10] = [
        Anomaly::DirtyRead,
        Anomaly::LostUpdate,
        Anomaly::WriteSkew,
        Anomaly::StaleRead,
        Anomaly::FracturedRead,
        Anomaly::CausalReversal,
        Anomaly::NonMonotonicRead,
        Anomaly::MissedOwnWrite,
        Anomaly::LostAfterSaved,
        Anomaly::AppliedTwice,
    ];

    /// As the table and the counts of campaigns call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Anomaly::DirtyRead => "dirty read",
            Anomaly::LostUpdate => "lost update",
            Anomaly::WriteSkew => "write skew",
            Anomaly::StaleRead => "stale read",
            Anomaly::FracturedRead => "fractured read",
            Anomaly::CausalReversal => "causal reversal",
            Anomaly::NonMonotonicRead => "non-monotonic read",
            Anomaly::MissedOwnWrite => "missed own write",
            Anomaly::LostAfterSaved => "lost after saved",
            Anomaly::AppliedTwice => "applied twice",
        }
    }
}

/// A preset, by its place in [`Consistency::PRESETS`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Preset(usize);

impl Preset {
    /// The nine presets, in the order of [`Consistency::PRESETS`].
    pub(crate) fn all() -> impl Iterator<Item = Preset> {
        (0..Consistency::PRESETS.len()).map(Preset)
    }

    /// The one of a number that was drawn.
    pub(super) fn drawn(number: u64) -> Preset {
        Preset(number as usize % Consistency::PRESETS.len())
    }

    /// As a program writes it.
    pub(crate) fn name(self) -> &'static str {
        Consistency::PRESETS[self.0].0
    }

    /// What a session of it asks for. Who wants a bound has to name one: in time, or in changes.
    pub(super) fn consistency(self, in_time: bool) -> Consistency {
        let (name, preset) = Consistency::PRESETS[self.0];
        match name {
            "bounded" if in_time => preset.with_time(BOUND).hard(),
            "bounded" => preset.with_mods(MODS).hard(),
            _ => preset,
        }
    }

    /// Whether no session of this preset ever sees it.
    pub(crate) fn excludes(self, anomaly: Anomaly) -> bool {
        let consistency = self.consistency(true);
        let is_of_one_moment = consistency.isolation() != Moment::Access;
        let is_committed = !is_tentative(&consistency);
        match anomaly {
            Anomaly::LostAfterSaved | Anomaly::AppliedTwice | Anomaly::MissedOwnWrite => true,
            Anomaly::LostUpdate | Anomaly::WriteSkew => is_strong(&consistency),
            Anomaly::StaleRead => {
                consistency.kind() != SessionKind::Serializable && consistency.is_hard()
            }
            Anomaly::DirtyRead | Anomaly::NonMonotonicRead => is_committed,
            Anomaly::CausalReversal => is_committed && is_of_one_moment,
            Anomaly::FracturedRead => is_of_one_moment,
        }
    }
}

/// Whether it shows updates that their home has not executed.
pub(super) fn is_tentative(consistency: &Consistency) -> bool {
    matches!(consistency.failures(), Failures::Optimistic { .. })
}

/// Whether what it has read is current when it writes.
pub(super) fn is_strong(consistency: &Consistency) -> bool {
    consistency.kind() != SessionKind::Visit || is_locking(consistency)
}

/// Whether it is a visit that holds a lock.
pub(super) fn is_locking(consistency: &Consistency) -> bool {
    let is_lock = matches!(
        consistency.mode(),
        AccessMode::ReadLock | AccessMode::WriteLock
    );
    is_lock && consistency.kind() == SessionKind::Visit
}
