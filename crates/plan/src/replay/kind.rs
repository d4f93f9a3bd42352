//! The policies by name.

use super::aged::Aged;
use super::alone::Alone;
use super::balanced::Balanced;
use super::central::Central;
use super::direct::Direct;
use super::global_lru::GlobalLru;
use super::gms::{Epochs, Gms};
use super::greedy::Greedy;
use super::hashed::Hashed;
use super::ideal::Ideal;
use super::n_chance::NChance;
use super::weighted::Weighted;
use super::{Policy, Village};
use crate::{Invalid, fraction};
use std::fmt;
use std::str::FromStr;

/// A policy of cooperation; the module says what each does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// No cooperation.
    Alone,
    /// Direct client cooperation.
    Direct,
    /// Greedy forwarding.
    Greedy,
    /// Centrally coordinated.
    Central,
    /// N-chance forwarding.
    NChance,
    /// Hash-distributed.
    Hashed,
    /// Weighted LRU.
    Weighted,
    /// GMS.
    Gms,
    /// The load-balanced family.
    Balanced,
    /// Global LRU, with ages that are always known.
    GlobalLru,
    /// One LRU that holds nothing twice: cannot be had.
    Ideal,
}

/// What policies can be told.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Knobs {
    /// N-chance: how often the last copy of a page is sent on.
    pub chances: u8,
    /// Central and hashed: the part of each client's memory that is for all.
    pub shared: f64,
    /// GMS and balanced: how long an epoch is at most (T), in milliseconds.
    pub epoch_ms: f64,
    /// GMS and balanced: the part of all pages that counts as the oldest (M).
    pub oldest: f64,
    /// Balanced: the load balancing rate b.
    pub balance: f64,
}

/// N = 2 and 80 % as Dahlin and others simulated; the epochs are our choice, and so is b, which the thesis leaves open.
impl Default for Knobs {
    fn default() -> Self {
        Knobs {
            chances: 2,
            shared: 0.8,
            epoch_ms: 1000.0,
            oldest: 0.05,
            balance: 0.5,
        }
    }
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 11] = [
        Kind::Alone,
        Kind::Direct,
        Kind::Greedy,
        Kind::Central,
        Kind::NChance,
        Kind::Hashed,
        Kind::Weighted,
        Kind::Gms,
        Kind::Balanced,
        Kind::GlobalLru,
        Kind::Ideal,
    ];

    /// The policy for a village.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with what cannot be.
    pub fn policy(self, village: &Village, knobs: &Knobs) -> Result<Box<dyn Policy>, Invalid> {
        village.check()?;
        fraction("shared", knobs.shared)?;
        let shared = (village.client_pages as f64 * knobs.shared).round() as usize;
        let epochs = || Epochs::new(village, knobs.epoch_ms, knobs.oldest);
        Ok(match self {
            Kind::Alone => Box::new(Alone::new(village)),
            Kind::Direct => Box::new(Direct::new(village)),
            Kind::Greedy => Box::new(Greedy::new(village)),
            Kind::Central => Box::new(Central::new(village, shared)),
            Kind::NChance => Box::new(NChance::new(village, knobs.chances)),
            Kind::Hashed => Box::new(Hashed::new(village, shared)),
            Kind::Weighted => Box::new(Weighted::new(village)),
            Kind::Gms => Box::new(Aged::new(village, Gms::new(village, epochs()?))),
            Kind::Balanced => {
                let balanced = Balanced::new(village, epochs()?, knobs.balance)?;
                Box::new(Aged::new(village, balanced))
            }
            Kind::GlobalLru => Box::new(Aged::new(village, GlobalLru)),
            Kind::Ideal => Box::new(Ideal::new(village)),
        })
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Alone => "alone",
            Kind::Direct => "direct",
            Kind::Greedy => "greedy",
            Kind::Central => "central",
            Kind::NChance => "n-chance",
            Kind::Hashed => "hashed",
            Kind::Weighted => "weighted",
            Kind::Gms => "gms",
            Kind::Balanced => "balanced",
            Kind::GlobalLru => "global-lru",
            Kind::Ideal => "ideal",
        }
    }

    /// What it is called in tables.
    pub fn title(self) -> &'static str {
        match self {
            Kind::Alone => "each alone",
            Kind::Direct => "direct client cooperation",
            Kind::Greedy => "greedy forwarding",
            Kind::Central => "centrally coordinated",
            Kind::NChance => "N-chance forwarding",
            Kind::Hashed => "hash-distributed",
            Kind::Weighted => "weighted LRU",
            Kind::Gms => "GMS",
            Kind::Balanced => "load-balanced GMS",
            Kind::GlobalLru => "global LRU",
            Kind::Ideal => "ideal: one LRU, nothing twice",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Kind::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| format!("{text} is none of {}", Kind::ALL.map(Kind::name).join(", ")))
    }
}
