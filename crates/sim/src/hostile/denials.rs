//! Denials that never were (rule R8).

use super::attack::{Attack, Target, ToParent};
use super::eyes::Eyes;
use thorp_model::limits::REPORTED_NAME_BYTES_MAX;
use thorp_model::{SegmentId, Up, Xoshiro256, message};

/// Reports denials of honest names, and of made-up ones.
#[derive(Default)]
pub(crate) struct Denials;

/// Denials of one strike.
const DENIALS: u64 = 100;

impl Attack for Denials {
    fn name(&self) -> &'static str {
        "attack: denials"
    }

    fn strike(&mut self, at: Target, eyes: &Eyes, prng: &mut Xoshiro256, outbox: &mut ToParent) {
        for _ in 0..DENIALS {
            let segments = eyes.segments(at.home);
            let segment = prng.pick(segments).copied();
            let segment = segment.unwrap_or(SegmentId(prng.below(99) as u32));
            let denied = message::Denied {
                home: at.home,
                name: name(eyes, prng),
                segment,
                count: [0, 1, u64::MAX][prng.index(3)],
                site: (prng.index(3) == 0).then(|| name(eyes, prng)),
            };
            outbox.up(at.edge, Up::Denied(denied));
        }
    }
}

fn name(eyes: &Eyes, prng: &mut Xoshiro256) -> String {
    let honest = prng.pick(&eyes.honest).map(|(_, name)| name.clone());
    match prng.below(4) {
        0 => honest.unwrap_or_default(),
        1 => String::new(),
        2 => "n".repeat(REPORTED_NAME_BYTES_MAX + prng.below(2) as usize),
        _ => format!("nobody-{}", prng.below(100_000)),
    }
}
