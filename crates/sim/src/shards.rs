//! A campaign in pieces: each tells how far it is, and can be kept.

use crate::Story;
use crate::campaign::{Villages, run_seeds};
use crate::checkpoint::Checkpoint;
use crate::counts::Counts;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Instant;

/// Seeds of one piece: half a minute on one processor.
const PIECE_SEEDS: u64 = 250;

/// Some seeds, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Seeds {
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u64,
}

/// What one of several machines does: the K-th of N.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    own: u64,
    all: u64,
}

impl Default for Shard {
    fn default() -> Self {
        Shard { own: 1, all: 1 }
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/');
        let parsed = numbers.and_then(|(own, all)| Some((own.parse().ok()?, all.parse().ok()?)));
        match parsed {
            Some((own, all)) if (1..=all).contains(&own) => Ok(Shard { own, all }),
            _ => Err("a shard is K/N, such as 2/4, with K from 1 to N".into()),
        }
    }
}

/// Which seeds to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    seeds: Seeds,
    shard: Shard,
}

impl Plan {
    /// So many seeds from the first on, or what is one machine's of them.
    pub fn new(first: u64, count: u64, shard: Shard) -> Self {
        let seeds = Seeds { first, count };
        Plan { seeds, shard }
    }

    /// The pieces, from the first on.
    pub fn pieces(self) -> impl Iterator<Item = Seeds> {
        let Plan { seeds, shard } = self;
        let pieces = (shard.own - 1..seeds.count.div_ceil(PIECE_SEEDS)).step_by(shard.all as usize);
        pieces.map(move |piece| Seeds {
            first: seeds.first.saturating_add(piece * PIECE_SEEDS),
            count: PIECE_SEEDS.min(seeds.count - piece * PIECE_SEEDS),
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from {}", self.seeds.first)?;
        match self.shard {
            Shard { all: 1, .. } => Ok(()),
            Shard { own, all } => write!(f, " (shard {own} of {all})"),
        }
    }
}

/// How far a campaign is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Seeds that held, kept ones included.
    pub held: u64,
    /// All seeds of the plan.
    pub seeds: u64,
    /// Seconds since it went on.
    pub seconds: f64,
}

/// What came of a campaign.
#[derive(Debug)]
pub struct Ran {
    /// What was counted, kept pieces included.
    pub counts: Counts,
    /// Seconds that it took, those of kept pieces included.
    pub seconds: f64,
    /// The story that failed, if one did.
    pub failed: Option<Story>,
}

/// Runs the pieces of a plan that are not kept yet, until a seed fails.
///
/// # Errors
///
/// What held cannot be kept.
pub fn run(
    villages: Villages,
    plan: Plan,
    jobs: u64,
    mut kept: Option<&mut Checkpoint>,
    tell: &mut dyn FnMut(&Progress),
) -> io::Result<Ran> {
    let begun = Instant::now();
    let mut ran = Ran {
        counts: Counts::default(),
        seconds: 0.0,
        failed: None,
    };
    let seeds = plan.pieces().map(|piece| piece.count).sum();
    for piece in plan.pieces() {
        if let Some(held) = kept.as_ref().and_then(|kept| kept.piece(piece)) {
            ran.counts.add(&held.counts);
            ran.seconds += held.seconds;
            continue;
        }
        let piece_begun = Instant::now();
        let campaign = run_seeds(villages, piece.first, piece.count, jobs);
        let seconds = piece_begun.elapsed().as_secs_f64();
        ran.counts.add(&campaign.counts);
        ran.seconds += seconds;
        ran.failed = campaign.failed;
        if ran.failed.is_some() {
            break;
        }
        if let Some(kept) = &mut kept {
            kept.keep(piece, seconds, campaign.counts)?;
        }
        tell(&Progress {
            held: ran.counts.seeds,
            seeds,
            seconds: begun.elapsed().as_secs_f64(),
        });
    }
    Ok(ran)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_share_all_seeds() {
        let shards = ["1/3", "2/3", "3/3"].map(|text| text.parse::<Shard>());
        let mut pieces: Vec<Seeds> = Vec::new();
        for shard in shards {
            let shard = shard.expect("a shard");
            pieces.extend(Plan::new(7, 1_110, shard).pieces());
        }
        pieces.sort_by_key(|piece| piece.first);
        let firsts: Vec<u64> = pieces.iter().map(|piece| piece.first).collect();
        assert_eq!(firsts, [7, 257, 507, 757, 1_007]);
        assert_eq!(pieces.iter().map(|piece| piece.count).sum::<u64>(), 1_110);
        assert_eq!(
            pieces,
            Plan::new(7, 1_110, Shard::default())
                .pieces()
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_shard_has_to_be_one_of_its_number() {
        for text in ["", "1", "0/2", "3/2", "a/b", "1/0"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
