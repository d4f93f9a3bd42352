//! Stamps and positions from the future (rules 5, 10 and 12).

use super::attack::{Attack, Target, ToParent};
use super::eyes::{Eyes, nothing};
use thorp_model::{
    CallId, CallRequest, CommitId, Position, Registration, Stamp, Up, Xoshiro256, message,
};

/// Wants homes to go ahead, and acknowledges what is to come.
#[derive(Default)]
pub(crate) struct Futures {
    sent: u64,
}

/// Its numbers lie above those of other attacks.
const FIRST: u64 = 1 << 20;

impl Attack for Futures {
    fn name(&self) -> &'static str {
        "attack: stamps from the future"
    }

    fn strike(&mut self, at: Target, eyes: &Eyes, prng: &mut Xoshiro256, outbox: &mut ToParent) {
        let Target {
            edge, home, epoch, ..
        } = at;
        self.sent += 1;
        let number = FIRST + self.sent;
        let after = stamp(at, prng);
        let position = [eyes.position(home).next(), Position(u64::MAX)][prng.index(2)];
        let member = eyes.member;
        let id = CommitId {
            member,
            sequence: number,
        };
        let registration = eyes.registration(home).unwrap_or(Registration(1));
        let mut commit = nothing(id, registration, home);
        (commit.after, commit.part.evidence) = (after, position);
        outbox.up(edge, Up::Commit(commit));
        outbox.up(
            edge,
            Up::Call(message::Call {
                call: CallId { member, number },
                home,
                request: CallRequest::Watermark { at_least: after },
            }),
        );
        outbox.up(
            edge,
            Up::Ack(message::Ack {
                home,
                epoch,
                position,
            }),
        );
    }
}

/// A second, half a minute, ten minutes, a year ahead, or the last one.
fn stamp(at: Target, prng: &mut Xoshiro256) -> Stamp {
    let ahead_ms = [1_000, 30_000, 600_000, 31_536_000_000][prng.index(4)];
    let wall = at.now.wall.plus(ahead_ms);
    let clock = match prng.below(5) {
        0 => u64::MAX,
        _ => wall.0 << 16,
    };
    Stamp {
        clock,
        home: at.home,
    }
}
