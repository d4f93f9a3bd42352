//! Which packets vanish.

use super::link::Path;
use thorp_model::Xoshiro256;

/// The state of one way between two spokes. Bursts are Gilbert's: a good and a bad state, and in the bad one everything vanishes.
#[derive(Debug, Default)]
pub(super) struct Loss {
    bad: bool,
}

impl Loss {
    /// Whether the next packet vanishes.
    pub(super) fn strikes(&mut self, path: &Path, dice: &mut Xoshiro256) -> bool {
        if path.loss <= 0.0 || path.loss >= 1.0 {
            return path.loss >= 1.0;
        }
        let Some(burst) = path.burst else {
            return dice.unit() < path.loss;
        };
        // Leaving with 1/burst makes bursts that long; entering with this makes the bad share of packets the loss asked for.
        let enter = path.loss / (burst * (1.0 - path.loss));
        self.bad = if self.bad {
            dice.unit() >= 1.0 / burst
        } else {
            dice.unit() < enter
        };
        self.bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share lost, and the mean length of a burst.
    fn lose(loss: f64, burst: Option<f64>) -> (f64, f64) {
        const PACKETS: u32 = 200_000;
        let (path, mut dice) = (
            Path {
                loss,
                burst,
                ..Path::default()
            },
            Xoshiro256::new(7),
        );
        let (mut state, mut lost, mut bursts, mut before) = (Loss::default(), 0u32, 0u32, false);
        for _ in 0..PACKETS {
            let strikes = state.strikes(&path, &mut dice);
            lost += u32::from(strikes);
            bursts += u32::from(strikes && !before);
            before = strikes;
        }
        (
            f64::from(lost) / f64::from(PACKETS),
            f64::from(lost) / f64::from(bursts.max(1)),
        )
    }

    fn near(measured: f64, asked: f64) -> bool {
        (measured / asked - 1.0).abs() < 0.1
    }

    #[test]
    fn each_for_itself() {
        let (share, burst) = lose(0.02, None);
        assert!(near(share, 0.02), "{share}");
        assert!(near(burst, 1.0 / 0.98), "{burst}");
    }

    #[test]
    fn in_bursts_of_the_length_asked_for() {
        let (share, burst) = lose(0.02, Some(5.0));
        assert!(near(share, 0.02), "{share}");
        assert!(near(burst, 5.0), "{burst}");
    }

    #[test]
    fn nothing_and_everything() {
        assert_eq!(lose(0.0, Some(5.0)).0, 0.0);
        assert_eq!(lose(1.0, None).0, 1.0);
        assert_eq!(lose(1.0, Some(3.0)).0, 1.0);
    }

    #[test]
    fn a_seed_repeats_what_is_lost() {
        assert_eq!(lose(0.1, Some(2.0)), lose(0.1, Some(2.0)));
    }
}
