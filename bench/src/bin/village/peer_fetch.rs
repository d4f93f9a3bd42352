//! How long a page takes that a neighbour has, against a request and an answer of the same sizes.
//!
//! A home 20 ms away (so that what comes from it shows), a site without memory, one member there that has all pages, and
//! this process, which wants them one at a time: all processes of their own. The other side of the ratio is 64 bytes up and
//! 8 KiB down over the same transport, between two processes. Then the same with a site that has the pages in its memory.

use std::time::{Duration, Instant};
use thorp_bench::Result;
use thorp_bench::figure::{Figure, median};
use thorp_bench::process::Process;
use thorp_bench::roles::{Asker, ECHO};
use thorp_bench::samples::Samples;
use thorp_bench::village::{HOME, Village, fill};
use thorp_client::{Member, Reference};
use thorp_net::driver::runtime;
use tokio::runtime::Runtime;

const ROUNDS: usize = 7;
const PAGES_PER_ROUND: u32 = 300;
const HOME_MS: u64 = 20;
const QUESTION_BYTES: usize = 64;
const ANSWER_BYTES: usize = 8192;
const TARGET: f64 = 4.0;

/// Medians of one kind, round by round.
#[derive(Default)]
struct Medians {
    fetch: Vec<f64>,
    ask: Vec<f64>,
}

/// Asks over the bare transport.
struct Bare {
    asker: Asker,
    runtime: Runtime,
    _echo: Process,
}

/// With so many pages in a round.
pub(crate) fn measure(pages: Option<u32>) -> Result<()> {
    let pages = pages.unwrap_or(PAGES_PER_ROUND) as usize;
    let village = Village::new(&[("bare", HOME_MS), ("standby", HOME_MS)])?;
    let firsts = {
        let writer = village.member(HOME, "writer")?;
        let segment = writer.create("thorp://alps/pages")?;
        fill(&writer, &segment, pages * ROUNDS)?
    };
    let mut bare = Bare::new(&village)?;
    for (site, cache_bytes) in [("bare", 0), ("standby", 1 << 30)] {
        let _site = village.site(site, cache_bytes, HOME_MS)?;
        let dir = village.path("").display().to_string();
        let _neighbour = Process::start("reader", &[&dir, site, "thorp://alps/pages"])?;
        let member = village.member(site, "wanting")?;
        let medians = rounds(&member, &mut bare, &firsts, pages)?;
        let spent = member.stats();
        let expected = firsts.len() as u64;
        let came = (spent.from_peers, spent.through_site);
        let (who, right) = match cache_bytes {
            0 => ("a neighbour", came == (expected, 0)),
            _ => ("the site's memory", came == (0, expected)),
        };
        if !right {
            return Err(format!("the pages did not come from {who}: {spent:?}").into());
        }
        medians.print(who);
    }
    Ok(())
}

fn rounds(member: &Member, bare: &mut Bare, all: &[Reference], each: usize) -> Result<Medians> {
    let mut medians = Medians::default();
    for pages in all.chunks(each) {
        let (mut fetches, mut asks) = (Samples::default(), Samples::default());
        // In turn, so that whatever else the machine does falls on both alike.
        for page in pages {
            fetches.push(fetch(member, page)?);
            asks.push(bare.ask()?);
        }
        let fetch = fetches.micros(0.5);
        if fetch >= 1e3 * (2 * HOME_MS) as f64 {
            return Err(format!("{fetch} us: that is the way to the home").into());
        }
        medians.fetch.push(fetch);
        medians.ask.push(asks.micros(0.5));
    }
    Ok(medians)
}

fn fetch(member: &Member, object: &Reference) -> Result<Duration> {
    let mut tx = member.begin(member.session());
    let begun = Instant::now();
    tx.read(object)?;
    let took = begun.elapsed();
    tx.commit()?;
    Ok(took)
}

impl Bare {
    fn new(village: &Village) -> Result<Self> {
        let dir = village.path("");
        village.identity(ECHO)?;
        let bytes = ANSWER_BYTES.to_string();
        let echo = Process::start("echo", &[&dir.display().to_string(), &bytes, "0"])?;
        let runtime = runtime()?;
        let asker = runtime.block_on(Asker::dial(&dir, 0))?;
        Ok(Bare {
            asker,
            runtime,
            _echo: echo,
        })
    }

    fn ask(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        let answer = self.runtime.block_on(self.asker.ask(QUESTION_BYTES))?;
        let took = begun.elapsed();
        if answer.len() != ANSWER_BYTES {
            return Err("the echo answered something else".into());
        }
        Ok(took)
    }
}

impl Medians {
    fn print(self, who: &str) {
        let ratios = self.fetch.iter().zip(&self.ask);
        let ratio = median(ratios.map(|(fetch, ask)| fetch / ask).collect());
        Figure::new("peer_fetch")
            .with(
                "figure",
                format!("a page from {who} against a request of the same size"),
            )
            .with("p50_us", median(self.fetch))
            .with("request_p50_us", median(self.ask))
            .at_most("ratio", ratio, TARGET);
    }
}
