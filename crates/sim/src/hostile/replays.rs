//! Receipts of other homes, of an earlier point and of other nodes, made-up lives, and nonsense to judge (rule R9).

use super::attack::{Attack, Target, ToParent};
use super::eyes::Eyes;
use thorp_model::{
    Claim, EdgeId, HomeId, Incarnation, LifeId, Mark, Point, Position, Receipt, ReceiptKey, Up,
    Xoshiro256, message,
};

/// Lets homes judge what is nonsense.
#[derive(Default)]
pub(crate) struct Replays {
    question: u64,
}

/// Questions of one strike.
const QUESTIONS: u64 = 10;

impl Attack for Replays {
    fn name(&self) -> &'static str {
        "attack: replayed receipts"
    }

    fn strike(&mut self, at: Target, eyes: &Eyes, prng: &mut Xoshiro256, outbox: &mut ToParent) {
        if !eyes.is_site {
            // A member is judged when it connects.
            return outbox.close(at.edge, "it claims otherwise");
        }
        for _ in 0..QUESTIONS {
            self.question += prng.below(2);
            let Some(claim) = claim(at.home, eyes, prng) else {
                continue;
            };
            let (epoch, question) = (at.epoch, self.question);
            let judge = message::Judge {
                epoch,
                question,
                claim,
            };
            outbox.up(at.edge, Up::Judge(judge));
        }
    }
}

/// What it claims when it connects: nothing, or nonsense of each home.
pub(crate) fn claim_all(edge: EdgeId, eyes: &Eyes, prng: &mut Xoshiro256, outbox: &mut ToParent) {
    let mut claims = Vec::new();
    if prng.percent(70) {
        for home in &eyes.homes {
            claims.extend(claim(*home, eyes, prng).map(|claim| (*home, claim)));
        }
    }
    outbox.claim(edge, claims);
}

/// A claim of a home, which rests on any receipt that there is, or on a made-up one.
fn claim(home: HomeId, eyes: &Eyes, prng: &mut Xoshiro256) -> Option<Claim> {
    let loot = eyes.loot.borrow();
    let mut receipt = match prng.percent(60) {
        true => *prng.pick(&loot)?,
        false => made_up(home, prng),
    };
    match prng.below(4) {
        0 => receipt.point.mark = Mark(prng.bits()),
        1 => receipt.point.clock = u64::MAX,
        // As it is: another home's, an earlier one, or one of another node.
        _ => {}
    }
    let Point {
        position, clock, ..
    } = receipt.point;
    let ahead = Position(position.0.saturating_add(prng.below(100)));
    Some(Claim {
        receipt,
        position: [position, ahead, Position(u64::MAX)][prng.index(3)],
        clock: [clock, 0, u64::MAX][prng.index(3)],
    })
}

/// A life that never was, proven with a key that no home has.
fn made_up(home: HomeId, prng: &mut Xoshiro256) -> Receipt {
    let point = Point {
        life: LifeId {
            counter: prng.below(9) as u32,
            random: prng.bits(),
        },
        mark: Mark(prng.below(500)),
        position: Position(prng.below(500)),
        clock: prng.bits(),
    };
    let incarnation = Incarnation::new(prng.below(3) as u16).unwrap_or_default();
    let key = ReceiptKey::new([200; 32]);
    Receipt::new(home, incarnation, point, &key)
}
