//! What only a parent sends, sent to a parent (rule R1).

use super::attack::{Attack, Target, ToParent};
use super::eyes::Eyes;
use thorp_model::{
    CommitId, Down, MemberId, Outcome, PageId, Position, Refusal, Stamp, Xoshiro256, message,
};

/// Speaks as if it were the home.
#[derive(Default)]
pub(crate) struct ParentsWords;

impl Attack for ParentsWords {
    fn name(&self) -> &'static str {
        "attack: words of a parent"
    }

    fn strike(&mut self, at: Target, eyes: &Eyes, prng: &mut Xoshiro256, outbox: &mut ToParent) {
        let home = at.home;
        let member = prng.pick(&eyes.honest).map(|(member, _)| *member);
        let commit = CommitId {
            member: member.unwrap_or(MemberId(1)),
            sequence: prng.range(1, 300),
        };
        let position = Position(eyes.position(home).0 + 1);
        let clock = prng.bits();
        let stamp = Stamp { clock, home };
        let outcome = match prng.percent(50) {
            true => Outcome::Committed { position, stamp },
            false => Outcome::Refused(Refusal::Unknown),
        };
        let said = match prng.below(4) {
            0 => Down::outcome(home, commit, outcome),
            1 => Down::End(message::End { home }),
            2 => Down::Hint(message::Hint {
                home,
                page: PageId::new(1, 1),
                next: Vec::new(),
            }),
            _ => Down::Heartbeat(message::Heartbeat {
                home,
                position: Position(0),
                watermark: stamp,
            }),
        };
        outbox.down(at.edge, said);
    }
}
