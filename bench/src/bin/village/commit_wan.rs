//! How long a small commit takes over a link with a round trip of 40 ms, against that round trip and one sync.
//!
//! The home is another process; both ends delay what they send by 20 ms. In turn with each commit, 1 KiB is appended to a
//! file on the same volume and synced, and a request goes over a bare link with the same delays.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};
use thorp_bench::Result;
use thorp_bench::figure::Figure;
use thorp_bench::process::Process;
use thorp_bench::roles::{Asker, ECHO};
use thorp_bench::samples::Samples;
use thorp_bench::village::{HOME, Village};
use thorp_client::Member;
use thorp_net::driver::runtime;

const COMMITS: u32 = 150;
const ONE_WAY_MS: u64 = 20;
const OBJECT_BYTES: usize = 200;
/// About what the home's store appends for such a commit.
const APPENDED_BYTES: usize = 1024;
/// A sync must not have to make the file longer, nor has the store's journal to.
const FILE_BYTES: u64 = 16 << 20;

/// With so many commits.
pub(crate) fn measure(count: Option<u32>) -> Result<()> {
    let village = Village::new(&[("far", ONE_WAY_MS)])?;
    let config = village.config(HOME, "far")?;
    let member = Member::join(config.link_delay(Duration::from_millis(ONE_WAY_MS)))?;
    let segment = member.create("thorp://alps/small")?;
    let object = member.transact(|tx| tx.create(&segment, [0; OBJECT_BYTES]))?;
    let mut file = File::create(village.path("synced"))?;
    file.set_len(FILE_BYTES)?;
    file.sync_all()?;

    village.identity(ECHO)?;
    let (dir, delay) = (village.path(""), ONE_WAY_MS.to_string());
    let _echo = Process::start("echo", &[&dir.display().to_string(), "64", &delay])?;
    let runtime = runtime()?;
    let mut asker = runtime.block_on(Asker::dial(&dir, ONE_WAY_MS))?;

    let (mut commits, mut syncs, mut links) = Default::default();
    for number in 0..count.unwrap_or(COMMITS) {
        let mut tx = member.begin(member.session());
        tx.write(&object, [number as u8; OBJECT_BYTES])?;
        timed(&mut commits, || Ok(tx.commit().map(|_| ())?))?;
        timed(&mut syncs, || {
            file.write_all(&[number as u8; APPENDED_BYTES])?;
            Ok(file.sync_data()?)
        })?;
        let asking = asker.ask(APPENDED_BYTES);
        timed(&mut links, || runtime.block_on(asking).map(|_| ()))?;
    }
    print(commits, syncs, links);
    Ok(())
}

fn timed(samples: &mut Samples, what: impl FnOnce() -> Result<()>) -> Result<()> {
    let begun = Instant::now();
    what()?;
    samples.push(begun.elapsed());
    Ok(())
}

fn print(mut commits: Samples, mut syncs: Samples, mut links: Samples) {
    let ms = |samples: &mut Samples| samples.micros(0.5) / 1e3;
    let (commit, sync, link) = (ms(&mut commits), ms(&mut syncs), ms(&mut links));
    let round_trip = (2 * ONE_WAY_MS) as f64;
    let figure = |what: &str| {
        let figure = Figure::new("commit_wan").with("figure", what);
        let figure = figure.with("p50_ms", commit).with("sync_p50_ms", sync);
        figure.with("link_p50_ms", link)
    };
    figure("p50 beyond a round trip of 40 ms and one sync, in ms")
        .with("ratio", commit / (round_trip + sync))
        .at_most("beyond_ms", commit - round_trip - sync, 1.0);
    figure("p50 beyond the bare link's round trip and one sync, in ms")
        .with("ratio", commit / (link + sync))
        .at_most("beyond_ms", commit - link - sync, 1.0);
}
