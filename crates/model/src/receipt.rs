//! Receipts of a home's progress, and the claims that its children rest on them (rule R9).

use crate::{HomeId, Incarnation, Point, Position, ReceiptKey};
use core::fmt;
use serde::{Deserialize, Serialize};

/// A home's own proof that its history had come as far as a point. The home gives it to others, and takes it back in
/// their claims. About 65 bytes travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Receipt {
    /// The home.
    pub home: HomeId,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// How far it was.
    pub point: Point,
    /// What only this home can make.
    proof: ReceiptProof,
}

/// The first 16 bytes of keyed BLAKE3 over the rest of a receipt.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct ReceiptProof([u8; 16]);

/// What a child knows of a home, and what that rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// The newest receipt that the child holds.
    pub receipt: Receipt,
    /// The child's own position.
    pub position: Position,
    /// The clock of the highest stamp that was promised to the child.
    pub clock: u64,
}

/// What a home says of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Verdict {
    /// What the child holds is of this history.
    Known,
    /// The child has to forget all that it holds of the home.
    Forget,
}

impl Receipt {
    /// The home with this key proves that it has come so far.
    pub fn new(home: HomeId, incarnation: Incarnation, point: Point, key: &ReceiptKey) -> Self {
        let proof = prove(home, incarnation, &point, key);
        Receipt {
            home,
            incarnation,
            point,
            proof,
        }
    }

    /// Whether the home with this key made it.
    pub fn is_of(&self, home: HomeId, key: &ReceiptKey) -> bool {
        self.home == home && self.proof == prove(home, self.incarnation, &self.point, key)
    }

    /// Whether it proves more than another one of the same life, or is of another life.
    pub fn is_news_to(&self, known: &Receipt) -> bool {
        let (own, other) = (&self.point, &known.point);
        own.life != other.life || own.mark > other.mark || own.position > other.position
    }
}

fn prove(home: HomeId, incarnation: Incarnation, point: &Point, key: &ReceiptKey) -> ReceiptProof {
    let mut hasher = blake3::Hasher::new_keyed(key.bytes());
    hasher.update(&home.0.to_le_bytes());
    hasher.update(&incarnation.get().to_le_bytes());
    hasher.update(&point.life.counter.to_le_bytes());
    for number in [
        point.life.random,
        point.mark.0,
        point.position.0,
        point.clock,
    ] {
        hasher.update(&number.to_le_bytes());
    }
    let mut proof = [0; 16];
    proof.copy_from_slice(hasher.finalize().as_bytes().split_at(16).0);
    ReceiptProof(proof)
}

impl fmt::Debug for ReceiptProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LifeId, Mark};

    const HOME: HomeId = HomeId(3);

    fn point(mark: u64) -> Point {
        Point {
            life: LifeId {
                counter: 1,
                random: 2,
            },
            mark: Mark(mark),
            position: Position(4),
            clock: 5,
        }
    }

    #[test]
    fn only_the_key_makes_it_and_every_number_counts() {
        let (key, other) = (ReceiptKey::new([1; 32]), ReceiptKey::new([2; 32]));
        let first = Incarnation::default();
        let receipt = Receipt::new(HOME, first, point(3), &key);
        assert!(receipt.is_of(HOME, &key));
        assert!(!receipt.is_of(HOME, &other) && !receipt.is_of(HomeId(4), &key));
        let mut altered = [receipt; 7];
        altered[0].home = HomeId(4);
        altered[1].incarnation = first.next().expect("there are more");
        altered[2].point.life.counter += 1;
        altered[3].point.life.random += 1;
        altered[4].point.mark = Mark(4);
        altered[5].point.position = Position(5);
        altered[6].point.clock += 1;
        for forged in altered {
            assert!(!forged.is_of(forged.home, &key), "{forged:?}");
        }
    }

    #[test]
    fn a_later_mark_or_another_life_is_news() {
        let key = ReceiptKey::new([1; 32]);
        let receipt = |point| Receipt::new(HOME, Incarnation::default(), point, &key);
        let known = receipt(point(3));
        assert!(!known.is_news_to(&known) && !receipt(point(2)).is_news_to(&known));
        assert!(receipt(point(4)).is_news_to(&known));
        let mut other = point(0);
        other.life.random = 9;
        assert!(receipt(other).is_news_to(&known));
    }
}
