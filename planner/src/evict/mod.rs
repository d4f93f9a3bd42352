//! Which page of one memory has to go when another one comes: policies that need nothing but their own memory.
//!
//! A policy is an [`Evictor`]: it is told of every request by [`Evictor::touch`], and takes in what it does not hold by
//! [`Evictor::admit`], which says what had to go. All pages have the same size.

mod belady;
mod clock;
mod fifo;
mod lru;
mod lru_at;
mod order;
mod s3fifo;
mod sieve;
mod stack;
#[cfg(test)]
pub(crate) mod tests;
mod tinylfu;

pub(crate) use belady::belady_hits;
use clock::Clock;
use fifo::Fifo;
use lru::Lru;
pub(crate) use lru_at::LruAt;
use s3fifo::S3Fifo;
use sieve::Sieve;
pub(crate) use stack::StackDistances;
use tinylfu::WTinyLfu;

pub(crate) use order::Order;

use std::fmt;
use std::str::FromStr;

/// A memory with a policy that says which page has to go.
pub trait Evictor {
    /// Takes note of a request; true if the page is here.
    fn touch(&mut self, page: u32) -> bool;

    /// Takes in a page that is not here. Returns the page that has to go for it, which may be this one itself.
    fn admit(&mut self, page: u32) -> Option<u32>;

    /// Lets go of the page that is next to go, also if there is room; `None` if nothing is here. [`Evictor::admit`] after it
    /// is the same as [`Evictor::admit`] alone where nothing else fits.
    fn evict(&mut self) -> Option<u32>;

    /// Lets go of a page; true if it was here.
    fn remove(&mut self, page: u32) -> bool;

    /// Whether a page is here.
    fn holds(&self, page: u32) -> bool;

    /// How many pages are here.
    fn len(&self) -> usize;

    /// Whether nothing is here.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Answers a request: true if the page was here; it is taken in if it was not.
    fn request(&mut self, page: u32) -> bool {
        let is_hit = self.touch(page);
        if !is_hit {
            self.admit(page);
        }
        is_hit
    }
}

/// The policies that go by what was, not by what will be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The page that was not used for longest.
    Lru,
    /// The page that has been here for longest.
    Fifo,
    /// The page that has been here for longest, except for those used since the last look.
    Clock,
    /// Three queues: what is asked for once leaves early (Yang and others, 2023).
    S3Fifo,
    /// A hand that sifts out what was not used since its last round (Zhang and others, 2024).
    Sieve,
    /// What is asked for less often than what would have to go for it is not kept (Einziger and others, 2017).
    WTinyLfu,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] = [
        Kind::Lru,
        Kind::Fifo,
        Kind::Clock,
        Kind::S3Fifo,
        Kind::Sieve,
        Kind::WTinyLfu,
    ];

    /// A memory of so many pages (none at all is possible), for pages numbered below `footprint`.
    pub fn memory(self, capacity: usize, footprint: usize) -> Box<dyn Evictor> {
        match self {
            _ if capacity == 0 => Box::new(Nothing),
            Kind::Lru => Box::new(Lru::new(capacity, footprint)),
            Kind::Fifo => Box::new(Fifo::new(capacity, footprint)),
            Kind::Clock => Box::new(Clock::new(capacity, footprint)),
            Kind::S3Fifo => Box::new(S3Fifo::new(capacity, footprint)),
            Kind::Sieve => Box::new(Sieve::new(capacity, footprint)),
            Kind::WTinyLfu => Box::new(WTinyLfu::new(capacity, footprint)),
        }
    }

    /// How many bytes [`Kind::memory`] takes when it is full, at most.
    pub(crate) fn bytes(self, capacity: usize, footprint: usize) -> u64 {
        let (orders, beside) = match self {
            _ if capacity == 0 => (0, 0),
            Kind::Lru | Kind::Fifo => (1, 0),
            Kind::Clock => (1, Clock::PAGE_BYTES),
            Kind::Sieve => (1, Sieve::PAGE_BYTES),
            Kind::S3Fifo => (3, S3Fifo::PAGE_BYTES),
            Kind::WTinyLfu => (3, WTinyLfu::PAGE_BYTES),
        };
        let by_page = orders * Order::PAGE_BYTES + beside;
        let held = capacity.min(footprint) * orders * Order::HELD_BYTES;
        (by_page as u64) * (footprint as u64) + held as u64
    }

    /// How many of these requests are answered by one memory of so many pages.
    pub fn hits(self, pages: &[u32], capacity: usize, footprint: usize) -> u64 {
        match self {
            _ if capacity == 0 => 0,
            Kind::Lru => hits(&mut Lru::new(capacity, footprint), pages),
            Kind::Fifo => hits(&mut Fifo::new(capacity, footprint), pages),
            Kind::Clock => hits(&mut Clock::new(capacity, footprint), pages),
            Kind::S3Fifo => hits(&mut S3Fifo::new(capacity, footprint), pages),
            Kind::Sieve => hits(&mut Sieve::new(capacity, footprint), pages),
            Kind::WTinyLfu => hits(&mut WTinyLfu::new(capacity, footprint), pages),
        }
    }
}

/// How many of these requests a memory answers.
pub(crate) fn hits(memory: &mut impl Evictor, pages: &[u32]) -> u64 {
    pages
        .iter()
        .map(|&page| u64::from(memory.request(page)))
        .sum()
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Lru => "LRU",
            Kind::Fifo => "FIFO",
            Kind::Clock => "CLOCK",
            Kind::S3Fifo => "S3-FIFO",
            Kind::Sieve => "SIEVE",
            Kind::WTinyLfu => "W-TinyLFU",
        })
    }
}

/// As shown, in letters of any size and without hyphens if one likes.
impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |text: &str| text.to_ascii_lowercase().replace('-', "");
        let known = Kind::ALL
            .into_iter()
            .find(|kind| plain(&kind.to_string()) == plain(text));
        known.ok_or_else(|| {
            let names = Kind::ALL.map(|kind| kind.to_string().to_ascii_lowercase());
            format!("{text} is none of {}", names.join(", "))
        })
    }
}

/// A memory without room.
struct Nothing;

impl Evictor for Nothing {
    fn touch(&mut self, _: u32) -> bool {
        false
    }

    fn admit(&mut self, page: u32) -> Option<u32> {
        Some(page)
    }

    fn evict(&mut self) -> Option<u32> {
        None
    }

    fn remove(&mut self, _: u32) -> bool {
        false
    }

    fn holds(&self, _: u32) -> bool {
        false
    }

    fn len(&self) -> usize {
        0
    }
}
