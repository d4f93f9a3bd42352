//! What failing costs, or not keeping up, with a home 40 ms away, two sites and ten members, all of them processes.
//!
//! `make failover`, or `cargo run --release -p thorp-bench --bin failover -- [FIGURE] [ROUNDS]`. FIGURE is `site_killed`,
//! `site_stopped`, `member_killed`, `member_slow` or `home_killed`.
//!
//! One line of JSON for each figure, then a table. What runs here ends with this program, however that ends.

mod home;
mod member;
mod overload;
mod site;
mod village;

use thorp_bench::{Result, process, roles};

/// As in the `thorp` command, whose roles are played here.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A figure: how often, and lines of the table come back.
type Measure = fn(usize) -> Result<Vec<String>>;

const FIGURES: [(&str, Measure); 5] = [
    ("site_killed", site::killed),
    ("site_stopped", site::stopped),
    ("member_killed", site::member_killed),
    ("member_slow", overload::slow),
    ("home_killed", home::killed),
];

const ROUNDS: usize = 3;

fn main() -> Result<()> {
    if let Some((role, arguments)) = process::role()
        && role == member::ROLE
    {
        process::end_with_parent()?;
        return member::play(&arguments);
    }
    if roles::play()? {
        return Ok(());
    }
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next();
    let rounds = arguments.next().map(|rounds| rounds.parse()).transpose()?;
    let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    let figures: Vec<_> = FIGURES.iter().filter(|(name, _)| is_wanted(name)).collect();
    if figures.is_empty() {
        let names: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
        return Err(format!("figures are: {}", names.join(", ")).into());
    }
    let mut table = Vec::new();
    for (name, measure) in figures {
        eprintln!("{name}:");
        table.extend(measure(rounds.unwrap_or(ROUNDS))?);
    }
    table.iter().for_each(|line| println!("{line}"));
    Ok(())
}
