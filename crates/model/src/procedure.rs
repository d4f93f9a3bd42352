//! What a home does to an object without telling the writer what was there (rule C8).

use crate::blob::Blob;
use crate::limits::INLINE_VALUE_BYTES_MAX;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::fmt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A built-in procedure. Only the home runs it for good: it takes what is there then, so two that come at once both count.
///
/// It gives the same for the same, everywhere. Numbers, sets and maps are encoded as `postcard` does: an `i64`, a set of
/// strings or byte strings, and a map from such to such.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Procedure {
    /// Adds to a number.
    Add(i64),
    /// Leaves the greater number.
    Max(i64),
    /// Adds bytes to the end of the object's own.
    Append(Blob),
    /// Puts an element into a set, if it is not there.
    Insert(Blob),
    /// Takes an element out of a set, if it is there.
    Remove(Blob),
    /// Puts an entry into a map, if none has its key.
    PutIfAbsent {
        /// The key.
        key: Blob,
        /// The value.
        value: Blob,
    },
    /// Puts an entry into a map, and replaces the one of its key.
    Put {
        /// The key.
        key: Blob,
        /// The value.
        value: Blob,
    },
    /// Puts an entry into a map. It cannot run if its key has another value there.
    PutNew {
        /// The key.
        key: Blob,
        /// The value.
        value: Blob,
    },
    /// Puts an entry into a map. If its key has another value there, that stays, and the entry gets the other key.
    PutBeside {
        /// The key.
        key: Blob,
        /// The key that it gets if the first one is taken. What is there is replaced.
        beside: Blob,
        /// The value.
        value: Blob,
    },
}

/// Why a procedure did nothing. Its text says what it met.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum NotRun {
    /// The object is no number.
    NoNumber,
    /// The sum is no number of 64 bits.
    NumberTooLarge,
    /// The object is no set.
    NoSet,
    /// The object is no map.
    NoMap,
    /// More than [`INLINE_VALUE_BYTES_MAX`] bytes would be in the object, or are.
    TooLarge,
    /// The key has another value in the map.
    KeyTaken,
}

impl Procedure {
    /// What it makes of the object's bytes.
    ///
    /// # Errors
    ///
    /// [`NotRun`]: these are not what it works on, or would be too many.
    pub fn run(&self, before: &[u8]) -> Result<Vec<u8>, NotRun> {
        let after = match self {
            Procedure::Add(more) => {
                let sum = number(before)?.checked_add(*more);
                encode(&sum.ok_or(NotRun::NumberTooLarge)?)?
            }
            Procedure::Max(other) => encode(&number(before)?.max(*other))?,
            Procedure::Append(bytes) => [before, bytes.bytes()].concat(),
            Procedure::Insert(element) => {
                let mut set = set(before)?;
                set.insert(element.bytes().to_vec());
                encode(&set)?
            }
            Procedure::Remove(element) => {
                let mut set = set(before)?;
                set.remove(element.bytes());
                encode(&set)?
            }
            Procedure::PutIfAbsent { key, value } => {
                let mut map = map(before)?;
                let entry = map.entry(key.bytes().to_vec());
                entry.or_insert_with(|| value.bytes().to_vec());
                encode(&map)?
            }
            Procedure::Put { key, value } => {
                let mut map = map(before)?;
                map.insert(key.bytes().to_vec(), value.bytes().to_vec());
                encode(&map)?
            }
            Procedure::PutNew { key, value } => {
                let mut map = map(before)?;
                if is_taken(&map, key, value) {
                    return Err(NotRun::KeyTaken);
                }
                map.insert(key.bytes().to_vec(), value.bytes().to_vec());
                encode(&map)?
            }
            Procedure::PutBeside { key, beside, value } => {
                let mut map = map(before)?;
                let key = match is_taken(&map, key, value) {
                    true => beside,
                    false => key,
                };
                map.insert(key.bytes().to_vec(), value.bytes().to_vec());
                encode(&map)?
            }
        };
        match after.len() <= INLINE_VALUE_BYTES_MAX {
            true => Ok(after),
            false => Err(NotRun::TooLarge),
        }
    }

    /// Bytes that it brings, for limits.
    pub fn bytes(&self) -> usize {
        match self {
            Procedure::Add(_) | Procedure::Max(_) => size_of::<i64>(),
            Procedure::Append(bytes) | Procedure::Insert(bytes) | Procedure::Remove(bytes) => {
                bytes.bytes().len()
            }
            Procedure::PutIfAbsent { key, value }
            | Procedure::Put { key, value }
            | Procedure::PutNew { key, value } => key.bytes().len() + value.bytes().len(),
            Procedure::PutBeside { key, beside, value } => {
                key.bytes().len() + beside.bytes().len() + value.bytes().len()
            }
        }
    }
}

impl fmt::Display for NotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotRun::NoNumber => "the object is no number",
            NotRun::NumberTooLarge => "the sum is too large for a number",
            NotRun::NoSet => "the object is no set",
            NotRun::NoMap => "the object is no map",
            NotRun::TooLarge => "the object is too large for a procedure, or would be",
            NotRun::KeyTaken => "the key has another value in the map",
        })
    }
}

fn number(bytes: &[u8]) -> Result<i64, NotRun> {
    whole(bytes).ok_or(NotRun::NoNumber)
}

fn set(bytes: &[u8]) -> Result<BTreeSet<Vec<u8>>, NotRun> {
    whole(bytes).ok_or(NotRun::NoSet)
}

/// A map of a program, as `postcard` has it.
type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn map(bytes: &[u8]) -> Result<Map, NotRun> {
    whole(bytes).ok_or(NotRun::NoMap)
}

fn is_taken(map: &Map, key: &Blob, value: &Blob) -> bool {
    let there = map.get(key.bytes());
    there.is_some_and(|there| there != value.bytes())
}

/// A value that takes all of the bytes.
fn whole<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Some(value),
        _ => None,
    }
}

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, NotRun> {
    // Fails only for want of memory.
    postcard::to_allocvec(value).map_err(|_| NotRun::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn of<T: Serialize>(value: &T) -> Vec<u8> {
        postcard::to_allocvec(value).unwrap()
    }

    fn blob(text: &str) -> Blob {
        Blob::from(text.as_bytes())
    }

    #[test]
    fn numbers_are_added_and_compared() {
        assert_eq!(Procedure::Add(-3).run(&of(&1_i64)), Ok(of(&-2_i64)));
        assert_eq!(Procedure::Max(7).run(&of(&1_i64)), Ok(of(&7_i64)));
        assert_eq!(Procedure::Max(-7).run(&of(&1_i64)), Ok(of(&1_i64)));
        let most = Procedure::Add(1).run(&of(&i64::MAX));
        assert_eq!(most, Err(NotRun::NumberTooLarge));
        for no_number in [&b""[..], b"\x80", b"\x01\x01"] {
            let added = Procedure::Add(1).run(no_number);
            assert_eq!(added, Err(NotRun::NoNumber), "{no_number:?}");
        }
    }

    #[test]
    fn sets_and_maps_are_those_of_programs() {
        let names = BTreeSet::from(["anna", "carl"]);
        let more = Procedure::Insert(blob("ben")).run(&of(&names)).unwrap();
        assert_eq!(more, of(&BTreeSet::from(["anna", "ben", "carl"])));
        assert_eq!(
            Procedure::Insert(blob("ben")).run(&more),
            Ok(more.clone()),
            "it is there already"
        );
        assert_eq!(Procedure::Remove(blob("ben")).run(&more), Ok(of(&names)));
        assert_eq!(
            Procedure::Remove(blob("dora")).run(&more),
            Ok(more.clone()),
            "it was not there"
        );
        let map = BTreeMap::from([("a", "1")]);
        let put = |key, value| Procedure::PutIfAbsent {
            key: blob(key),
            value: blob(value),
        };
        let two = BTreeMap::from([("a", "1"), ("b", "2")]);
        assert_eq!(put("b", "2").run(&of(&map)), Ok(of(&two)));
        assert_eq!(put("a", "2").run(&of(&map)), Ok(of(&map)));
        assert_eq!(
            Procedure::Insert(blob("x")).run(b"\xff\xff"),
            Err(NotRun::NoSet)
        );
        assert_eq!(put("a", "2").run(b"\x05"), Err(NotRun::NoMap));
    }

    #[test]
    fn a_new_entry_meets_what_has_its_key() {
        let before = of(&BTreeMap::from([("a", "1")]));
        let (key, beside) = (|| blob("a"), || blob("a~7.1"));
        let new = |value| Procedure::PutNew {
            key: key(),
            value: blob(value),
        };
        assert_eq!(new("2").run(&before), Err(NotRun::KeyTaken));
        assert_eq!(new("1").run(&before), Ok(before.clone()), "it is the same");
        assert_eq!(
            new("1").run(&of(&BTreeMap::<&str, &str>::new())),
            Ok(before.clone())
        );
        let put = Procedure::Put {
            key: key(),
            value: blob("2"),
        };
        assert_eq!(put.run(&before), Ok(of(&BTreeMap::from([("a", "2")]))));
        let put_beside = |value| Procedure::PutBeside {
            key: key(),
            beside: beside(),
            value: blob(value),
        };
        let both = of(&BTreeMap::from([("a", "1"), ("a~7.1", "2")]));
        assert_eq!(put_beside("2").run(&before), Ok(both.clone()));
        assert_eq!(put_beside("2").run(&both), Ok(both), "it runs twice");
        assert_eq!(put_beside("1").run(&before), Ok(before));
        assert_eq!(new("1").run(b"\x05"), Err(NotRun::NoMap));
        assert_eq!(put_beside("2").bytes(), 1 + 5 + 1);
    }

    #[test]
    fn no_object_outgrows_its_page() {
        let append = |count: usize| Procedure::Append(Blob::from(vec![7; count]));
        assert_eq!(append(2).run(b"abc"), Ok(b"abc\x07\x07".to_vec()));
        let full = append(INLINE_VALUE_BYTES_MAX).run(b"").unwrap();
        assert_eq!(append(1).run(&full), Err(NotRun::TooLarge));
        // Lengths that others make up take no memory.
        let lies = [0xff, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(Procedure::Insert(blob("x")).run(&lies), Err(NotRun::NoSet));
    }
}
