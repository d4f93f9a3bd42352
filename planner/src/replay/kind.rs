//! The policies by name.

use super::aged::Aged;
use super::alone::Alone;
use super::balanced::Balanced;
use super::bytes::Bytes;
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
use crate::{Invalid, evict, fraction};
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

impl Knobs {
    /// What each client has for all, under policies that divide its memory.
    fn shared_pages(&self, village: &Village) -> usize {
        (village.client_pages as f64 * self.shared).round() as usize
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

    /// Refuses a village that cannot be, or would take too much memory under this policy.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with what cannot be.
    pub fn check(self, village: &Village, knobs: &Knobs) -> Result<(), Invalid> {
        village.check()?;
        fraction("shared", knobs.shared)?;
        self.takes(village, knobs).check(self, village)
    }

    /// How many bytes the policy takes when all memories are full, at most.
    pub fn bytes(self, village: &Village, knobs: &Knobs) -> u64 {
        self.takes(village, knobs).all(village.clients)
    }

    fn takes(self, village: &Village, knobs: &Knobs) -> Bytes {
        Bytes::of(self, village, knobs.shared_pages(village))
    }

    /// The policy for a village.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with what cannot be.
    pub fn policy(self, village: &Village, knobs: &Knobs) -> Result<Box<dyn Policy>, Invalid> {
        self.check(village, knobs)?;
        let shared = knobs.shared_pages(village);
        let epochs = || Epochs::new(village, knobs.epoch_ms, knobs.oldest);
        let locals = |kind| village.locals_of(kind, village.client_pages);
        Ok(match self {
            Kind::Alone => Box::new(Alone::new(village)),
            Kind::Direct => Box::new(Direct::new(village)),
            Kind::Greedy => Box::new(Greedy::new(village)),
            Kind::Central => Box::new(Central::new(village, shared)),
            Kind::NChance => Box::new(NChance::new(village, knobs.chances)),
            Kind::Hashed => Box::new(Hashed::new(village, shared)),
            Kind::Weighted => Box::new(Weighted::new(village)),
            Kind::Gms => Box::new(Aged::new(
                village,
                locals(village.local),
                Gms::new(village, epochs()?),
            )),
            Kind::Balanced => Box::new(Aged::new(
                village,
                locals(village.local),
                Balanced::new(village, epochs()?, knobs.balance)?,
            )),
            Kind::GlobalLru => Box::new(Aged::new(village, locals(evict::Kind::Lru), GlobalLru)),
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

    /// What it does, in a line.
    pub fn what(self) -> &'static str {
        match self {
            Kind::Alone => "each member has its own memory, and all have the home's behind it",
            Kind::Direct => {
                "what goes from a member's memory is kept by servers, in a part that is its alone"
            }
            Kind::Greedy => {
                "each keeps what it likes; the home sends a request on to a member that has the page"
            }
            Kind::Central => {
                "part of each member's memory, and all of servers', is one LRU that the home manages"
            }
            Kind::NChance => {
                "as greedy; the last copy of a page that has to go is sent to anybody else, a few times"
            }
            Kind::Hashed => {
                "as central, but a page's number says who keeps it: members ask there, not the home"
            }
            Kind::Weighted => {
                "the copy goes that is cheapest to lose for how long it was not used; knows all memories at any time"
            }
            Kind::Gms => {
                "the last copy of a page is sent to where the oldest pages were when last told"
            }
            Kind::Balanced => {
                "as gms, but servers are chosen by their memory and by how busy they are, too"
            }
            Kind::GlobalLru => {
                "as gms, but it is always known where the oldest page is; knows all memories at any time"
            }
            Kind::Ideal => {
                "one LRU of all memory that holds nothing twice, beside each one's own; cannot be had, and yet no bound"
            }
        }
    }

    /// Why it is not for a client's evictor to say which page goes; `None` where it is.
    pub fn why_no_evictor(self) -> Option<&'static str> {
        match self {
            Kind::Weighted => Some(
                "weighted LRU is itself the order in which pages go, in all memories: by what the loss of a copy costs, for how long it was not used",
            ),
            Kind::GlobalLru => Some(
                "global LRU is itself the order in which pages go: of all memories together the one that was used longest ago",
            ),
            _ => None,
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
