//! Values that no two writes share, so that equal values mean the same write; and what sessions remember of them.

use crate::oracle::Object;
use crate::village::Habits;
use std::sync::Arc;
use thorp_model::{Generation, Slot, Xoshiro256};

/// What a session knows of an object from an earlier transaction.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its generation.
    pub generation: Generation,
    /// Bytes of its value; none if there was no object.
    pub length: Option<usize>,
}

impl Known {
    /// What is remembered of an object.
    pub fn of(object: &Object) -> Self {
        Known {
            generation: object.generation,
            length: object.value.as_ref().map(|value| value.len()),
        }
    }
}

/// Makes values that are unique in a village.
#[derive(Clone, Debug)]
pub struct Maker {
    session: u32,
    count: u32,
}

/// Bytes at the beginning of every value: a balance, then what makes it unique.
pub const HEAD_BYTES: usize = 16;

impl Maker {
    /// The maker of a session with a number of its own.
    pub fn new(session: u32) -> Self {
        Maker { session, count: 0 }
    }

    /// Eight bytes that nobody made before.
    pub fn tag(&mut self) -> [u8; 8] {
        self.count += 1;
        let tag = (u64::from(self.session) << 32) | u64::from(self.count);
        tag.to_le_bytes()
    }

    /// A value without a balance, as long as values are here, in this slot.
    pub fn value(&mut self, habits: &Habits, slot: Slot, prng: &mut Xoshiro256) -> Vec<u8> {
        let (least, most) = (
            HEAD_BYTES as u64,
            habits.value_bytes_max.max(HEAD_BYTES) as u64,
        );
        let length = match (habits.full_pages, prng.percent(50)) {
            // The least takes no more room than what would say where else it is: it is never moved itself.
            (true, _) if slot.0 >= habits.slots => least,
            (true, _) => prng.range(most / 2, most),
            (false, true) => prng.range(least, most.min(64)),
            (false, false) => prng.range(least, most),
        };
        self.value_of(0, length as usize)
    }

    /// A value with a balance, of a given length.
    pub fn value_of(&mut self, balance: u64, length: usize) -> Vec<u8> {
        let tag = self.tag();
        let mut value = balance.to_le_bytes().to_vec();
        value.extend_from_slice(&tag);
        value.resize(length.max(HEAD_BYTES), tag[0]);
        value
    }
}

/// The balance in a value.
pub fn balance(value: &Arc<[u8]>) -> u64 {
    let head = value.get(..8).and_then(|head| head.try_into().ok());
    head.map_or(0, u64::from_le_bytes)
}
