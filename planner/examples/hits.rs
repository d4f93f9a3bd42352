//! Prints how many requests of a trace each policy misses: `hits TRACE CAPACITY...`. For comparing with other simulators
//! (`scripts/plan_compare.sh`), and for measuring how fast this one is.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use thorp_plan::evict::Kind;
use thorp_plan::trace::Reading;

fn main() -> ExitCode {
    let mut told = std::env::args().skip(1);
    let Some(path) = told.next() else {
        eprintln!("usage: hits TRACE CAPACITY...");
        return ExitCode::FAILURE;
    };
    let trace = match Reading::default().file(Path::new(&path)) {
        Ok(trace) => trace,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    eprintln!(
        "{} requests for {} pages",
        trace.pages.len(),
        trace.footprint
    );
    for capacity in told.filter_map(|capacity| capacity.parse().ok()) {
        for kind in Kind::ALL {
            let start = Instant::now();
            let hits = kind.hits(&trace.pages, capacity, trace.footprint);
            let rate = trace.pages.len() as f64 / start.elapsed().as_secs_f64() / 1e6;
            println!("{kind} {capacity} {}", trace.pages.len() as u64 - hits);
            eprintln!("{kind} of {capacity}: {rate:.1} million requests a second");
        }
    }
    ExitCode::SUCCESS
}
