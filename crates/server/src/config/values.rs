//! Values that are written in a way of their own.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes; written as a number or as a text such as `"256 MiB"` (B, KiB, MiB, GiB or TiB).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bytes(pub u64);

/// A text that is not a number of bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BytesError(String);

const UNITS: [(&str, u32); 5] = [("B", 0), ("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];

impl Bytes {
    /// As a size in memory.
    pub fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for Bytes {
    type Err = BytesError;

    fn from_str(text: &str) -> Result<Self, BytesError> {
        let wrong = || BytesError(text.to_owned());
        let unit_at = text.find(|c: char| !c.is_ascii_digit());
        let (number, unit) = text.split_at(unit_at.unwrap_or(text.len()));
        let unit = unit.trim();
        let known = |(name, _): &&(&str, u32)| unit.eq_ignore_ascii_case(name);
        let shift = match (unit, UNITS.iter().find(known)) {
            ("", _) => 0,
            (_, Some((_, shift))) => *shift,
            (_, None) => return Err(wrong()),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        number.checked_mul(1 << shift).map(Bytes).ok_or_else(wrong)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, shift): &&(&str, u32)| self.0 != 0 && self.0.trailing_zeros() >= *shift;
        match UNITS.iter().rev().find(fits) {
            Some((unit, shift)) => write!(f, "{} {unit}", self.0 >> shift),
            None => write!(f, "{} B", self.0),
        }
    }
}

impl fmt::Display for BytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no number of bytes: write 1048576 or \"1 MiB\"",
            self.0
        )
    }
}

impl std::error::Error for BytesError {}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BytesVisitor)
    }
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of bytes, or a text such as \"256 MiB\"")
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Bytes, E> {
        Ok(Bytes(number))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Bytes, E> {
        let number = u64::try_from(number);
        number
            .map(Bytes)
            .map_err(|_| E::custom("a number of bytes below zero"))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Bytes, E> {
        text.parse().map_err(E::custom)
    }
}

/// Texts that `FromStr` reads, such as addresses.
pub(super) mod texts {
    use super::{Deserialize, Deserializer, FromStr, fmt};
    use serde::de::Error as _;

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
    where
        T: FromStr<Err: fmt::Display>,
        D: Deserializer<'de>,
    {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let parsed = texts.iter().map(|text| text.parse());
        parsed.collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}

/// A text that `FromStr` reads.
pub(super) fn text<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

/// Where a node serves HTTP: `IP:PORT`, or `off`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HttpAt(pub Option<SocketAddr>);

impl FromStr for HttpAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == OFF {
            return Ok(Self(None));
        }
        let wrong = |_| format!("{text:?} is not IP:PORT, as 127.0.0.1:7430, nor {OFF}");
        text.parse().map(|at| Self(Some(at))).map_err(wrong)
    }
}

impl fmt::Display for HttpAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.fmt(f),
            None => f.write_str(OFF),
        }
    }
}

const OFF: &str = "off";

/// `http`, as [`HttpAt`] reads it.
pub(super) fn http_at<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let at = text.parse::<HttpAt>().map_err(D::Error::custom)?;
    Ok(at.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("17 B", 17),
            ("1KiB", 1 << 10),
            ("256 MiB", 256 << 20),
            ("3 gib", 3 << 30),
            ("2 TiB", 2 << 40),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "MiB", "1 MB", "-1", "1.5 GiB", "99999999 TiB"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        for bytes in [0, 1, 1023, 1024, 1536, 5 << 30] {
            let bytes = Bytes(bytes);
            assert_eq!(bytes.to_string().parse(), Ok(bytes));
        }
    }
}
