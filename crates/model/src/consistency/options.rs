//! The options of a consistency, each with its word.

use alloc::string::String;
use core::fmt;
use core::time::Duration;

/// Which accesses of others may run beside those of a session, and whether it writes (table 1 of the Swarm paper).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AccessMode {
    /// It reads, beside all others.
    Read,
    /// It reads and writes, beside all but those that hold a lock.
    Write,
    /// It reads, and nobody writes meanwhile.
    ReadLock,
    /// It reads and writes, and nobody else writes or holds a lock meanwhile.
    WriteLock,
}

/// In which order others see the updates of a session (rule C8).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UpdateOrder {
    /// Each node shows them as they come. The home's order is final, and no session learns of it.
    Unordered,
    /// All nodes show the home's order in the end.
    Total,
    /// Each update waits for the home, so it never moves.
    Serial,
    /// A blind write has no effect where a later one was first. What counts is the time at which each was made.
    Stamp,
}

/// What a session does about nodes that it does not reach (rule C10).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Failures {
    /// It waits for each node that may have written, or until what that node was granted is over.
    Pessimistic,
    /// It leaves them out, and the answer names them. Neighbours beyond a round trip of this time are left out as well.
    Optimistic {
        /// None: no neighbour is too far.
        cutoff: Option<Duration>,
    },
}

/// Moment the updates of a session leave, or when its view moves on (rule C12).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Moment {
    /// At its close, or as of its opening.
    Session,
    /// At each access.
    Access,
    /// Moment the program says so.
    Manual,
}

/// The words of an option, each with its value.
type Words<T> = &'static [(&'static str, T)];

impl AccessMode {
    pub(super) const WORDS: Words<AccessMode> = &[
        ("rd", AccessMode::Read),
        ("wr", AccessMode::Write),
        ("rdlk", AccessMode::ReadLock),
        ("wrlk", AccessMode::WriteLock),
    ];

    /// Whether it excludes what others do.
    pub fn is_lock(self) -> bool {
        matches!(self, AccessMode::ReadLock | AccessMode::WriteLock)
    }

    /// Whether the session may write.
    pub fn writes(self) -> bool {
        matches!(self, AccessMode::Write | AccessMode::WriteLock)
    }
}

impl UpdateOrder {
    pub(super) const WORDS: Words<UpdateOrder> = &[
        ("none", UpdateOrder::Unordered),
        ("total", UpdateOrder::Total),
        ("serial", UpdateOrder::Serial),
        ("stamp", UpdateOrder::Stamp),
    ];
}

impl Moment {
    pub(super) const WORDS: Words<Moment> = &[
        ("session", Moment::Session),
        ("access", Moment::Access),
        ("manual", Moment::Manual),
    ];
}

impl fmt::Display for AccessMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word_of(Self::WORDS, *self))
    }
}

impl fmt::Display for UpdateOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word_of(Self::WORDS, *self))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word_of(Self::WORDS, *self))
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failures::Pessimistic => f.write_str(PESSIMISTIC),
            Failures::Optimistic { cutoff: None } => f.write_str(OPTIMISTIC),
            Failures::Optimistic { cutoff: Some(time) } => {
                write!(f, "{OPTIMISTIC}:{}", Time(*time))
            }
        }
    }
}

/// What a word stands for.
pub(super) fn of_word<T: Copy>(words: Words<T>, word: &str) -> Option<T> {
    let mut all = words.iter();
    all.find(|(known, _)| *known == word)
        .map(|(_, value)| *value)
}

fn word_of<T: Copy + PartialEq>(words: Words<T>, value: T) -> &'static str {
    let mut all = words.iter();
    all.find(|(_, known)| *known == value)
        .map_or("?", |(word, _)| word)
}

/// All words of an option, for a message.
pub(super) fn all_words<T>(words: Words<T>) -> String {
    let words: alloc::vec::Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    words.join(", ")
}

pub(super) const PESSIMISTIC: &str = "pessimistic";
pub(super) const OPTIMISTIC: &str = "optimistic";

/// A time as it is written in a consistency: a whole number and its unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Time(pub(super) Duration);

/// Units, the largest first, in microseconds.
const UNITS: [(&str, u128); 5] = [
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1000),
    ("us", 1),
];

impl Time {
    /// None: it is not a whole number with a unit. A bare 0 is one.
    pub(super) fn of_text(text: &str) -> Option<Time> {
        let text = text.trim();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().ok()?;
        let unit = unit.trim_start();
        if number == 0 && unit.is_empty() {
            return Some(Time(Duration::ZERO));
        }
        let (_, micros) = UNITS.iter().find(|(word, _)| *word == unit)?;
        let micros = u128::from(number).checked_mul(*micros)?;
        Some(Time(Duration::from_micros(u64::try_from(micros).ok()?)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        if micros == 0 {
            return f.write_str("0");
        }
        let mut fitting = UNITS
            .iter()
            .filter(|(_, unit)| micros.is_multiple_of(*unit));
        let (word, unit) = fitting.next().copied().unwrap_or(("us", 1));
        write!(f, "{}{word}", micros / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_time_is_a_whole_number_and_its_unit() {
        let of = |text: &str| Time::of_text(text).map(|time| time.0);
        assert_eq!(of("10ms"), Some(Duration::from_millis(10)));
        assert_eq!(of(" 100 ms "), Some(Duration::from_millis(100)));
        assert_eq!(of("2min"), Some(Duration::from_secs(120)));
        assert_eq!(of("0"), Some(Duration::ZERO));
        for bad in [
            "",
            "10",
            "ms",
            "-1ms",
            "1.5s",
            "1 fortnight",
            "99999999999999999999h",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
        assert_eq!(of(&alloc::format!("{}h", u64::MAX)), None);
        for text in ["0", "1us", "10ms", "90s", "2min", "24h"] {
            assert_eq!(Time::of_text(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn each_word_stands_for_what_prints_it() {
        for (word, mode) in AccessMode::WORDS {
            assert_eq!(mode.to_string(), *word);
            assert_eq!(of_word(AccessMode::WORDS, word), Some(*mode));
        }
        assert_eq!(of_word(UpdateOrder::WORDS, "random"), None);
        assert_eq!(all_words(Moment::WORDS), "session, access, manual");
    }
}
