//! Quantities as people write them: `40ms`, `100mbit`, `0.1%`.

use crate::Outcome;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Bits in a second, as they lie on the wire (headers included).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// So many bits in a second; at least one.
    pub fn bits_per_second(bits: u64) -> Self {
        Rate(bits.max(1))
    }

    /// Bits in a second.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// How long so many bytes occupy the wire.
    pub fn time_for(self, bytes: u64) -> Duration {
        let nanos = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no rate: write it like 100mbit, 1gbit or 256kbit");
        let split = text.find(|c: char| c.is_ascii_alphabetic());
        let (number, unit) = text.split_at(split.ok_or_else(bad)?);
        let factor = match unit {
            "bit" => 1.0,
            "kbit" => 1e3,
            "mbit" => 1e6,
            "gbit" => 1e9,
            _ => return Err(bad()),
        };
        let bits = number.parse::<f64>().map_err(|_| bad())? * factor;
        if !(1.0..1e15).contains(&bits) {
            return Err(bad());
        }
        Ok(Rate(bits as u64))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bits if bits >= 1_000_000_000 => write!(f, "{}gbit", bits as f64 / 1e9),
            bits if bits >= 1_000_000 => write!(f, "{}mbit", bits as f64 / 1e6),
            bits if bits >= 1_000 => write!(f, "{}kbit", bits as f64 / 1e3),
            bits => write!(f, "{bits}bit"),
        }
    }
}

/// Reads `40ms`, `250us`, `1.5s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is no time: write it like 40ms, 250us or 1.5s");
    let split = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = text.split_at(split.ok_or_else(bad)?);
    let factor = match unit {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        _ => return Err(bad()),
    };
    let seconds = number.parse::<f64>().map_err(|_| bad())? * factor;
    // An hour is more than any road on this planet takes.
    if !(0.0..=3600.0).contains(&seconds) {
        return Err(bad());
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// Writes a time so that [`duration`] reads it.
pub fn show_duration(time: Duration) -> String {
    match time.as_nanos() {
        nanos if nanos >= 1_000_000_000 => format!("{}s", nanos as f64 / 1e9),
        nanos if nanos >= 1_000_000 => format!("{}ms", nanos as f64 / 1e6),
        nanos => format!("{}us", nanos as f64 / 1e3),
    }
}

/// Reads a share of the whole, `0.1%` or `0.001`.
pub fn share(text: &str) -> Result<f64, String> {
    let bad = || format!("{text:?} is no share: write it like 0.1% or 0.001, at most all of it");
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map_err(|_| bad())? / 100.0,
        None => text.parse().map_err(|_| bad())?,
    };
    if !(0.0..=1.0).contains(&share) {
        return Err(bad());
    }
    Ok(share)
}

/// Reads `key=value`.
pub(crate) fn assignment(text: &str) -> Outcome<(&str, &str)> {
    let parts = text.split_once('=');
    parts.ok_or_else(|| format!("{text:?}: write it like key=value").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        assert_eq!(duration("40ms"), Ok(Duration::from_millis(40)));
        assert_eq!(duration("0.5ms"), Ok(Duration::from_micros(500)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("0us"), Ok(Duration::ZERO));
        for time in ["20ms", "250us", "1.5s", "0us", "2.5ms"] {
            assert_eq!(show_duration(duration(time).expect(time)), time);
        }
    }

    #[test]
    fn a_time_without_a_unit_or_sense_is_refused() {
        for text in [
            "40", "", "ms", "-1ms", "nanms", "4 0ms", "2h", "9999999s", "infs",
        ] {
            let told = duration(text).expect_err(text);
            assert!(told.contains("write it like"), "{told}");
        }
    }

    #[test]
    fn rates_are_read_and_written() {
        for (text, bits) in [
            ("100mbit", 100_000_000),
            ("1gbit", 1_000_000_000),
            ("9600bit", 9600),
        ] {
            assert_eq!(text.parse(), Ok(Rate::bits_per_second(bits)));
        }
        assert_eq!(Rate::bits_per_second(1_500_000).to_string(), "1.5mbit");
        for text in ["100", "0mbit", "-1mbit", "mbit", "1tbit", "infgbit", ""] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_packet_occupies_the_wire_for_its_bits() {
        let rate = Rate::bits_per_second(12_000_000);
        assert_eq!(rate.time_for(1500), Duration::from_millis(1));
    }

    #[test]
    fn shares_are_read() {
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("0.25"), Ok(0.25));
        assert_eq!(share("100%"), Ok(1.0));
        for text in ["101%", "-1%", "2", "much", "nan", ""] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
