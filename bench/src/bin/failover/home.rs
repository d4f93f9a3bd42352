//! A home is killed with so many commits in its log, and started again.

use std::thread;
use std::time::Instant;
use thorp_bench::Result;
use thorp_bench::figure::{Figure, median};
use thorp_bench::village::{HOME, Village};
use thorp_model::limits::{ALIVE_MISSED_MAX, ALIVE_MS};

const LENGTHS: [usize; 4] = [0, 2_000, 10_000, 40_000];
const WRITERS: usize = 16;
const OBJECT_BYTES: usize = 200;
/// A home that is back within it was not missed for longer than one that was only silent.
const USUAL_LIMIT_S: f64 = (ALIVE_MS * ALIVE_MISSED_MAX as u64) as f64 / 1e3;

pub(crate) fn killed(rounds: usize) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for length in LENGTHS {
        let (mut opened, mut first) = (Vec::new(), Vec::new());
        for round in 1..=rounds {
            eprintln!("  round {round} of {rounds}: a log of {length} commits");
            let (open, commit) = recovered(length)?;
            opened.push(open);
            first.push(commit);
        }
        let (open, commit) = (median(opened), median(first));
        let figure = Figure::new("failover").with("figure", "home_killed");
        figure
            .with("commits_in_log", length)
            .with("open_ms", open)
            .with("first_commit_ms", commit)
            .with("rounds", rounds)
            .at_most("open_s", open / 1e3, USUAL_LIMIT_S);
        lines.push(format!(
            "home_killed    | {length:6} commits in the log: listens after {open:.0} ms, the first commit after {commit:.0} ms"
        ));
    }
    Ok(lines)
}

/// From starting the process: until it listens, and until a member that was there before has committed; in milliseconds.
fn recovered(length: usize) -> Result<(f64, f64)> {
    let mut village = Village::new(&[])?;
    let member = village.member(HOME, "writer")?;
    let segment = member.create("thorp://alps/written")?;
    let objects = member.transact(|tx| {
        let made = (0..WRITERS).map(|_| tx.create(&segment, [0; OBJECT_BYTES]));
        made.collect::<thorp_client::Result<Vec<_>>>()
    })?;
    thread::scope(|scope| {
        let writers = objects.iter().map(|object| {
            let member = &member;
            scope.spawn(move || -> Result<()> {
                for number in 0..length / WRITERS {
                    member.transact(|tx| tx.write(object, [number as u8; OBJECT_BYTES]))?;
                }
                Ok(())
            })
        });
        let writers: Vec<_> = writers.collect();
        let mut ended = writers.into_iter().map(|writer| writer.join());
        ended.try_for_each(|ended| ended.map_err(|_| "a writer panicked")?)
    })?;
    village.kill_home();
    let begun = Instant::now();
    village.start_home()?;
    let opened = begun.elapsed();
    member.transact(|tx| tx.write(&objects[0], [1; OBJECT_BYTES]))?;
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    Ok((ms(opened), ms(begun.elapsed())))
}
