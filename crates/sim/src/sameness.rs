//! Whether a build behaves as an earlier one did: the digests of many seeds,
//! kept in a file with one line for each seed.

use crate::{Mode, Options, run};
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The digests of seeds, ascending by seed.
pub type Digests = Vec<(u64, u64)>;

/// Runs seeds on several threads.
///
/// # Errors
///
/// The seeds that fail: what they do is nothing to keep.
pub fn digests(first: u64, seeds: u64, jobs: u64) -> Result<Digests, Vec<u64>> {
    let next = AtomicU64::new(first);
    let end = first.saturating_add(seeds);
    let found = Mutex::new((Digests::new(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let seed = next.fetch_add(1, Ordering::Relaxed)
                    && seed < end
                {
                    let trace = Mode::Digest;
                    let story = run(seed, Options { trace });
                    if let Ok(mut found) = found.lock() {
                        match story.result {
                            Ok(()) => found.0.push((seed, story.hash)),
                            Err(_) => found.1.push(seed),
                        }
                    }
                }
            });
        }
    });
    let (mut digests, mut failed) = found.into_inner().unwrap_or_default();
    digests.sort_unstable();
    failed.sort_unstable();
    if failed.is_empty() {
        Ok(digests)
    } else {
        Err(failed)
    }
}

/// The text of a file of digests.
pub fn format(digests: &Digests) -> String {
    let mut text = String::new();
    for (seed, hash) in digests {
        let _ = writeln!(text, "{seed} {hash:016x}");
    }
    text
}

/// Reads a file of digests.
///
/// # Errors
///
/// A line is not a seed and a hash; the error names the line.
pub fn parse(text: &str) -> Result<Digests, String> {
    let line = |(number, line): (usize, &str)| {
        let pair = line.split_once(' ');
        let parsed = pair.and_then(|(seed, hash)| {
            Some((seed.parse().ok()?, u64::from_str_radix(hash, 16).ok()?))
        });
        parsed.ok_or_else(|| format!("line {}: not a seed and a hash: {line}", number + 1))
    };
    text.lines().enumerate().map(line).collect()
}

/// The seeds of `now` that `before` has another digest of, or none.
pub fn changed(before: &Digests, now: &Digests) -> Vec<u64> {
    let same = |(seed, hash): &(u64, u64)| {
        let at = before.binary_search_by_key(seed, |(seed, _)| *seed);
        at.is_ok_and(|at| before[at].1 == *hash)
    };
    let changed = now.iter().filter(|pair| !same(pair));
    changed.map(|(seed, _)| *seed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let digests = vec![(1, 0xff), (2, u64::MAX)];
        assert_eq!(parse(&format(&digests)), Ok(digests));
        let error = parse("1 ff\n2").expect_err("no hash");
        assert!(error.starts_with("line 2"), "{error}");
    }

    #[test]
    fn a_seed_with_another_digest_is_named() {
        let before = vec![(1, 10), (2, 20)];
        assert_eq!(changed(&before, &before), Vec::<u64>::new());
        let now = vec![(1, 10), (2, 21), (3, 30)];
        assert_eq!(changed(&before, &now), [2, 3]);
    }
}
