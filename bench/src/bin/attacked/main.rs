//! What is left of honest members' commits while a process with one ordinary certificate floods their home, or one without any
//! certificate calls it: `cargo run --release -p thorp-bench --bin attacked -- [ATTACK [ROUNDS]]`, all attacks if none is named.
//!
//! Four members commit at the home, each an object of its own. Calm and attack take turns, so both are of the same minute.
//! Home and attacker are other processes of the same machine: what the attacker's own work takes from the others counts, too.

mod attacks;
mod honest;
mod reads;
mod stream;

use attacks::Attack;
use honest::Members;
use std::thread;
use std::time::Duration;
use thorp_bench::figure::{Figure, median};
use thorp_bench::process::{self, Process};
use thorp_bench::village::{HOME, Village};
use thorp_bench::{Result, roles};
use thorp_net::{CertificateAuthority, NodeRole, issue};

/// As in the `thorp` command, whose roles are played here.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROLE: &str = "attacker";
const ROUNDS: usize = 5;
const SECONDS: Duration = Duration::from_secs(2);
/// After this, an attack is in full swing.
const BEGINNING: Duration = Duration::from_millis(500);
/// Of their rate, honest members keep at least this much.
const TARGET: f64 = 0.5;

fn main() -> Result<()> {
    if let Some((role, arguments)) = process::role()
        && role == ROLE
    {
        process::end_with_parent()?;
        return attacks::play(&arguments);
    }
    if roles::play()? {
        return Ok(());
    }
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next();
    let rounds = arguments.next().map(|rounds| rounds.parse()).transpose()?;
    let is_wanted = |attack: &Attack| wanted.as_deref().is_none_or(|name| name == attack.name());
    let attacks: Vec<Attack> = Attack::ALL.into_iter().filter(is_wanted).collect();
    if attacks.is_empty() {
        return Err(format!("attacks are: {}", Attack::ALL.map(Attack::name).join(", ")).into());
    }
    let village = Village::new(&[])?;
    let mallory = village.path("mallory");
    let authority = CertificateAuthority::find(village.path(""));
    issue(authority, &mallory, NodeRole::Member, "mallory")?;
    let members = Members::join(&village)?;
    for attack in attacks {
        let arguments = [
            attack.name(),
            &mallory.display().to_string(),
            &village.address(HOME),
        ];
        measure(attack, &members, &arguments, rounds.unwrap_or(ROUNDS))?;
    }
    Ok(())
}

fn measure(attack: Attack, members: &Members, arguments: &[&str], rounds: usize) -> Result<()> {
    let (mut calm, mut attacked) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        calm.push(members.rate(SECONDS));
        let attacker = Process::start(ROLE, arguments)?;
        thread::sleep(BEGINNING);
        attacked.push(members.rate(SECONDS));
        drop(attacker);
        thread::sleep(BEGINNING);
    }
    let ratios = attacked
        .iter()
        .zip(&calm)
        .map(|(attacked, calm)| attacked / calm);
    let ratio = median(ratios.collect());
    let figure = Figure::new("attacked")
        .with("attack", attack.name())
        .with("calm_commits_s", median(calm))
        .with("attacked_commits_s", median(attacked));
    figure.at_least("kept", ratio, TARGET);
    Ok(())
}
