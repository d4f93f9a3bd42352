//! What is measured in a village of processes: `cargo run --release -p thorp-bench --bin village -- [FIGURE [SIZE]]`, all of
//! them one after the other if none is named.
//!
//! One program, so that it is linked once: the other processes are this one in other roles.

mod cached_read_public;
mod chain;
mod commit_parallel;
mod commit_wan;
mod peer_fetch;
mod site_threads;

use thorp_bench::{Result, roles};

/// As in the `thorp` command, whose roles are played here.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A measurement; it may be told its size.
type Measure = fn(Option<u32>) -> Result<()>;

const FIGURES: [(&str, Measure); 6] = [
    ("cached_read_public", cached_read_public::measure),
    ("peer_fetch", peer_fetch::measure),
    ("commit_wan", commit_wan::measure),
    ("commit_parallel", commit_parallel::measure),
    ("chain", chain::measure),
    ("site_threads", site_threads::measure),
];

fn main() -> Result<()> {
    if roles::play()? {
        return Ok(());
    }
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next();
    let size = arguments.next().map(|size| size.parse()).transpose()?;
    let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    let figures: Vec<_> = FIGURES.iter().filter(|(name, _)| is_wanted(name)).collect();
    if figures.is_empty() {
        let names: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
        return Err(format!("figures are: {}", names.join(", ")).into());
    }
    figures.iter().try_for_each(|(_, measure)| measure(size))
}
