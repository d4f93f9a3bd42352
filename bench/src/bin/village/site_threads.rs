//! How many pages a second a site gives its members out of its memory, with one thread and with two: eight members, each of
//! which wants one page after the other.
//!
//! All are processes of this machine: where it has no more processors than the members fill, a second thread of the site can
//! bring nothing, and is to cost hardly anything.

use std::thread;
use std::time::Instant;
use thorp_bench::Result;
use thorp_bench::figure::{Figure, median};
use thorp_bench::village::{HOME, Village, fill};
use thorp_client::{Member, Reference};

const ROUNDS: usize = 5;
const MEMBERS: usize = 8;
const PAGES: usize = 400;
const THREADS: [usize; 2] = [1, 2];

/// With so many pages for each member in a round.
pub(crate) fn measure(pages: Option<u32>) -> Result<()> {
    let pages = pages.map_or(PAGES, |pages| pages as usize);
    let names = THREADS.map(|threads| format!("of-{threads}"));
    let delays = names.each_ref().map(|name| (name.as_str(), 0));
    let village = Village::new(&delays)?;
    let firsts = {
        let writer = village.member(HOME, "writer")?;
        let segment = writer.create("thorp://alps/pages")?;
        fill(&writer, &segment, pages * ROUNDS)?
    };
    let mut sites = Vec::new();
    for (name, threads) in names.iter().zip(THREADS) {
        sites.push(village.site_with(name, 1 << 30, 0, &threads.to_string())?);
        read(&village.member(name, "first")?, &firsts)?;
    }
    let mut rates = [Vec::new(), Vec::new()];
    // In turn, so that whatever else the machine does falls on both alike.
    for round in firsts.chunks(pages) {
        for (rates, name) in rates.iter_mut().zip(&names) {
            rates.push(rate(&village, name, round)?);
        }
    }
    let [one, two] = rates.map(median);
    Figure::new("site_threads")
        .with(
            "figure",
            "pages a second out of a site's memory to eight members, two threads against one",
        )
        .with("processors", thread::available_parallelism()?.get() as f64)
        .with("one_per_s", one)
        .with("two_per_s", two)
        .at_least("ratio", two / one, 0.9);
    Ok(())
}

/// Pages a second to all members, who are new: they have nothing.
fn rate(village: &Village, site: &str, pages: &[Reference]) -> Result<f64> {
    let join = |number: usize| village.member(site, &format!("member-{number}"));
    let members = (0..MEMBERS).map(join).collect::<Result<Vec<Member>>>()?;
    let begun = Instant::now();
    thread::scope(|scope| {
        let read =
            |member| scope.spawn(move || read(member, pages).map_err(|error| error.to_string()));
        let reading: Vec<_> = members.iter().map(read).collect();
        let mut ended = reading.into_iter().map(|reading| reading.join());
        ended.try_for_each(|ended| ended.unwrap_or_else(|_| Err("a reader panicked".to_owned())))
    })?;
    Ok((MEMBERS * pages.len()) as f64 / begun.elapsed().as_secs_f64())
}

fn read(member: &Member, pages: &[Reference]) -> Result<()> {
    for page in pages {
        let mut tx = member.begin(member.session());
        tx.read(page)?;
        tx.commit()?;
    }
    Ok(())
}
