//! The bytes of an object, cut where it refers to others.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use thorp_client::{HomeId, Reference, SegmentId};

/// A part of an object's bytes.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(untagged)]
pub(crate) enum Piece {
    /// Hexadecimal digits.
    Hex(String),
    /// A reference to an object of the dump, or to a place in it.
    To {
        to: u64,
        #[serde(default, skip_serializing_if = "is_zero")]
        offset: u64,
    },
}

impl Piece {
    /// Bytes that it takes in an object, about.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Piece::Hex(digits) => digits.len() / 2,
            Piece::To { .. } => 16,
        }
    }
}

fn is_zero(offset: &u64) -> bool {
    *offset == 0
}

/// The numbers of a segment's objects in its dump.
pub(crate) struct Ids {
    /// How each reference to one of them begins, as the library encodes it.
    beginning: Vec<u8>,
    ids: HashMap<Reference, u64>,
}

impl Ids {
    /// None yet.
    pub(crate) fn of(home: HomeId, segment: SegmentId) -> Result<Ids, postcard::Error> {
        Ok(Ids {
            beginning: postcard::to_allocvec(&(home, segment))?,
            ids: HashMap::new(),
        })
    }

    /// The next object.
    pub(crate) fn add(&mut self, reference: Reference) {
        let id = self.ids.len() as u64 + 1;
        self.ids.insert(reference, id);
    }

    /// The number of an object, whichever place in it a reference names.
    pub(crate) fn get(&self, reference: &Reference) -> Option<u64> {
        let object = Reference {
            offset: 0,
            ..*reference
        };
        self.ids.get(&object).copied()
    }

    pub(crate) fn len(&self) -> u64 {
        self.ids.len() as u64
    }
}

/// Cuts the bytes of an object. A reference is found by its home and segment, and by the object that it names.
pub(crate) fn pieces_of(bytes: &[u8], ids: &Ids) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(found) = find(&bytes[at..], &ids.beginning) {
        at += found;
        let read = postcard::take_from_bytes::<Reference>(&bytes[at..]).ok();
        let named =
            read.and_then(|(reference, rest)| Some((reference, ids.get(&reference)?, rest)));
        let Some((reference, to, rest)) = named else {
            at += 1;
            continue;
        };
        push_hex(&bytes[from..at], &mut pieces);
        pieces.push(Piece::To {
            to,
            offset: reference.offset,
        });
        at = bytes.len() - rest.len();
        from = at;
    }
    push_hex(&bytes[from..], &mut pieces);
    pieces
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

fn push_hex(bytes: &[u8], pieces: &mut Vec<Piece>) {
    if !bytes.is_empty() {
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        pieces.push(Piece::Hex(digits.collect()));
    }
}

/// The bytes of which these are the pieces; `at` says where an object of the dump is. What is wrong with them, for a person.
pub(crate) fn bytes_of(pieces: &[Piece], at: impl Fn(u64) -> Reference) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Hex(digits) => push_digits(digits, &mut bytes)?,
            Piece::To { to, offset } => {
                let reference = Reference {
                    offset: *offset,
                    ..at(*to)
                };
                let encoded = postcard::to_allocvec(&reference);
                bytes.extend(encoded.map_err(|error| error.to_string())?);
            }
        }
    }
    Ok(bytes)
}

fn push_digits(digits: &str, bytes: &mut Vec<u8>) -> Result<(), String> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let value = |digit: u8| char::from(digit).to_digit(16);
    for [high, low] in pairs {
        let byte = value(*high).zip(value(*low));
        let (high, low) = byte.ok_or("a value has something else than hexadecimal digits")?;
        bytes.push((high * 16 + low) as u8);
    }
    match rest {
        [] => Ok(()),
        _ => Err("a value has an odd number of hexadecimal digits".to_owned()),
    }
}

/// What is wrong with a piece of a dump, for a person.
pub(crate) fn check(piece: &Piece) -> Result<(), String> {
    match piece {
        Piece::Hex(digits) => push_digits(digits, &mut Vec::new()),
        Piece::To { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(page: u32, offset: u64) -> Reference {
        let place = "{\"home\":3000000000,\"object\":{\"page\":{\"segment\":7,\"page\":0},\"slot\":1},\"generation\":1,\"offset\":0}";
        let mut reference: Reference = serde_json::from_str(place).unwrap();
        reference.object.page.page.0 = page;
        reference.offset = offset;
        reference
    }

    #[test]
    fn bytes_are_cut_at_references_and_joined_again() {
        let mut ids = Ids::of(reference(0, 0).home, SegmentId(7)).unwrap();
        let objects = [reference(1, 0), reference(1_000, 0)];
        objects.iter().for_each(|object| ids.add(*object));
        let encode = |reference: Reference| postcard::to_allocvec(&reference).unwrap();
        let bytes = [
            &[0xab][..],
            &encode(objects[1]),
            &encode(reference(1, 300)),
            // Not of this dump.
            &encode(reference(2, 0)),
        ]
        .concat();
        let pieces = pieces_of(&bytes, &ids);
        let to = |to, offset| Piece::To { to, offset };
        assert_eq!(
            pieces[..3],
            [Piece::Hex("ab".to_owned()), to(2, 0), to(1, 300)]
        );
        assert_eq!(pieces.len(), 4);
        let at = |id| objects[id as usize - 1];
        assert_eq!(bytes_of(&pieces, at), Ok(bytes));
    }

    #[test]
    fn digits_that_are_none_are_refused() {
        let bytes = |digits: &str| bytes_of(&[Piece::Hex(digits.to_owned())], |_| reference(0, 0));
        assert_eq!(bytes("00fF"), Ok(vec![0, 255]));
        assert!(bytes("0g").unwrap_err().contains("digits"));
        assert!(bytes("012").unwrap_err().contains("odd"));
        assert!(bytes("\u{e4}").is_err());
    }
}
