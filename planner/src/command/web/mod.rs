//! `thorp plan web`: what web caches gain if they cooperate.

mod answer;
mod question;
mod range;
mod said;
mod swept;

use crate::command::failure::Failure;
use crate::command::given::{Given, refused};
use crate::command::shown::Shown;
use clap::Args;
use question::Question;
use serde::Serialize;

/// What `thorp plan web` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    #[command(flatten)]
    parameters: Parameters,
    #[command(flatten)]
    shown: Shown,
}

const HELP: &str = "\
Examples:
  thorp plan web --clients 20000 --caches 4 --between-ms 20
  thorp plan web --clients 5e6 --tree 1:100,10:50,10:10
  thorp plan web --clients 50000 --caches 10 --room-gb 500 --html plan.html
  thorp plan web --sweep alpha=0.6:1.2 --html plan.html";

#[derive(Args, Debug, Default, Serialize)]
struct Parameters {
    /// Clients of all caches together
    #[arg(long, value_name = "N")]
    clients: Option<f64>,
    /// Caches (proxies, sites), each with the same part of the clients
    #[arg(long, value_name = "N")]
    caches: Option<f64>,
    /// Documents that clients may ask for, up to thousands of billions (1e12)
    #[arg(long, value_name = "N")]
    documents: Option<f64>,
    /// How many of them are popular and change as those do
    #[arg(long, value_name = "N")]
    popular_documents: Option<f64>,
    /// How uneven popularity is: the i-th document is asked for as 1/i^alpha (0: all alike; the Web: 0.6 to 1)
    #[arg(long, value_name = "A")]
    alpha: Option<f64>,
    /// Requests of a client in a day
    #[arg(long, value_name = "N")]
    requests_per_day: Option<f64>,
    /// Days between two changes of a popular document, on average (inf: never)
    #[arg(long, value_name = "DAYS")]
    popular_change_days: Option<f64>,
    /// The same for the others
    #[arg(long, value_name = "DAYS")]
    other_change_days: Option<f64>,
    /// How times between changes vary: exponential, pareto, lognormal or regular
    #[arg(long, value_name = "NAME")]
    spacing: Option<String>,
    /// How heavy the tail of pareto is: above 1, heavy below 2
    #[arg(long, value_name = "K")]
    shape: Option<f64>,
    /// How wide lognormal is: the standard deviation of the logarithm
    #[arg(long, value_name = "S")]
    sigma: Option<f64>,
    /// Part of the requests that caches may answer
    #[arg(long, value_name = "PART")]
    cacheable: Option<f64>,
    /// Size of a document, on average
    #[arg(long, value_name = "KB")]
    document_kb: Option<f64>,
    /// A document from its server, until the last byte
    #[arg(long, value_name = "MS")]
    server_ms: Option<f64>,
    /// The same from a client's own cache
    #[arg(long, value_name = "MS")]
    near_ms: Option<f64>,
    /// The same between two caches
    #[arg(long, value_name = "MS")]
    between_ms: Option<f64>,
    /// Room of each cache (inf: for all)
    #[arg(long, value_name = "GB")]
    room_gb: Option<f64>,
    /// What becomes of a copy whose document changed: lingers until it is asked for or put out, or dropped at once
    #[arg(long, value_name = "NAME")]
    stale: Option<String>,
    /// The tree of the hierarchical scheme from the top: for each level, caches below each of the level above, and what a client waits for a hit there [default: 1:BETWEEN,CACHES:NEAR]
    #[arg(long, value_name = "N:MS,…")]
    tree: Option<String>,
    /// Answer for one scheme: hierarchical, hashed, directory, or the best of them
    #[arg(long, value_name = "NAME")]
    scheme: Option<String>,
    /// Vary one of clients, requests-per-day, popular-change-days, other-change-days, alpha and documents over a range
    #[arg(long, value_name = "NAME=FROM:TO")]
    sweep: Option<String>,
}

/// Answers.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let mut given = Given::new::<Options, _>(&options.parameters, options.shown.file(), "web")?;
    let question = Question::of(&mut given)?;
    let mut report = question.report().map_err(|invalid| refused(&invalid))?;
    given.tell(&mut report);
    report.assumptions.extend(question.in_vain);
    for assumed in &mut report.assumptions {
        assumed.value = said::readable(std::mem::take(&mut assumed.value));
    }
    options
        .shown
        .show("What cooperating web caches gain", &report)
}
