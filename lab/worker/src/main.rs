//! A member that obeys: one command a line on standard input, one line of JSON for each on standard output.
//!
//! ```text
//! build SIZE           makes OO7's module in the segment (tiny, small, medium)
//! run KIND [START]     one transaction, again if it conflicts: T1, T2a .. T9, Q1 .. Q8, S1, S2, or W: T2b of one composite
//! runs KIND COUNT      as many; what they count is added up
//! mix COUNT PERCENT SEED  as many, of which about so many in a hundred are W and the others T1
//! objects COUNT BYTES  makes objects of this size in the segment, each on pages of its own
//! fetches FIRST COUNT FLIGHT   reads as many of them, so many at a time, and tells how long each took
//! commits COUNT        changes an object of its own as often, and tells how long each took
//! chain COUNT waiting|early    adds one to a number in as many transactions, each waited for, or none before the last
//! quit
//! ```
//!
//! As `thorp-lab-worker answer` and `ask` it is no member at all ([`bare`]).

mod bare;
mod chain;
mod pieces;
mod work;

use chain::Manner;
use clap::Parser;
use serde_json::json;
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use thorp_client::{JoinConfig, Member, Session};
use thorp_workloads::objects::MemberStore;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A member of a village that does what it is told on standard input
#[derive(Parser, Debug)]
#[command(after_help = HELP)]
struct Options {
    /// The site or home to join, as tcp://HOST:PORT
    #[arg(long, value_name = "ADDR")]
    via: String,
    /// The directory of its certificate
    #[arg(long, value_name = "DIR")]
    identity: String,
    /// Its name
    #[arg(long)]
    name: String,
    /// The segment that it works on, as thorp://HOME/path
    #[arg(long, value_name = "URL")]
    segment: String,
    /// Bytes of its cache
    #[arg(long, default_value_t = 40 << 20)]
    cache_bytes: usize,
    /// Pages that come with one that is waited for, at most
    #[arg(long, default_value_t = thorp_client::FETCH_AHEAD_PAGES)]
    fetch_ahead: usize,
    /// Strict sessions: also what only read is validated at the home
    #[arg(long)]
    strict: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    match bare::obey(&words).unwrap_or_else(|| obey(&Options::parse())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn obey(options: &Options) -> Outcome<()> {
    let config = JoinConfig::new(&options.via)
        .identity(&options.identity)
        .name(&options.name)
        .cache_bytes(options.cache_bytes)
        .fetch_ahead(options.fetch_ahead);
    let member = Member::join(config)?;
    let segment = member.open_or_create(&options.segment)?;
    let session = Session::new()
        .strict(options.strict)
        .attempts_max(ATTEMPTS_MAX);
    let store = MemberStore::new(member, segment, session);
    let mut found = work::Found::default();
    say(&json!({"ready": true}))?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words[..] {
            [] => continue,
            ["quit"] => break,
            ["build", size] => work::build(&store, size),
            ["run", kind] => work::run(&store, &mut found, kind, 0),
            ["run", kind, start] => work::run(&store, &mut found, kind, start.parse()?),
            ["runs", kind, count] => work::runs(&store, &mut found, kind, count.parse()?),
            ["mix", count, percent, seed] => {
                let (count, percent) = (count.parse()?, percent.parse()?);
                work::mix(&store, &mut found, count, percent, seed.parse()?)
            }
            ["objects", count, bytes] => pieces::make(&store, count.parse()?, bytes.parse()?),
            ["fetches", first, count, flight] => {
                pieces::fetches(&store, first.parse()?, count.parse()?, flight.parse()?)
            }
            ["commits", count] => pieces::commits(&store, count.parse()?),
            ["chain", count, "waiting"] => chain::chain(&store, count.parse()?, Manner::Waiting),
            ["chain", count, "early"] => chain::chain(&store, count.parse()?, Manner::Early),
            _ => Err(format!("not a command: {line}").into()),
        };
        let answer = answer.unwrap_or_else(|error| json!({"error": error.to_string()}));
        say(&answer)?;
    }
    Ok(())
}

fn say(answer: &serde_json::Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{answer}")?;
    out.flush()
}

/// Nobody gives up because others were quicker.
const ATTEMPTS_MAX: u32 = 100_000;

const HELP: &str = "\
Commands, one a line: `build tiny|small|medium`, `run T1|T2a|...|T9|Q1|...|Q8|S1|S2|W [START]`,
`runs KIND COUNT`, `mix COUNT PERCENT SEED`, `objects COUNT BYTES`, `fetches FIRST COUNT FLIGHT`, `commits COUNT`, `chain COUNT waiting|early`, `quit`. Each is answered by a
line of JSON: what was counted, how long it took, for what it waited, where pages came from.";
