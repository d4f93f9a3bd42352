//! Prints how fast each policy of cooperation replays a trace: `replays TRACE`, with eight clients of 3 % each and four servers of
//! 6 %.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use thorp_plan::evict;
use thorp_plan::replay::{Kind, Knobs, Server, Times, Village, replay};
use thorp_plan::trace::{Dealing, Reading, dealt};

fn main() -> ExitCode {
    let told = std::env::args()
        .nth(1)
        .ok_or("usage: replays TRACE".to_owned());
    match told.and_then(|path| measured(Path::new(&path))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn measured(path: &Path) -> Result<(), String> {
    let trace = Reading::default()
        .file(path)
        .map_err(|error| error.to_string())?;
    let pages = trace.footprint * 6 / 100 + 1;
    let village = Village {
        clients: 8,
        client_pages: pages / 2 + 1,
        servers: vec![
            Server {
                pages,
                busy_most: 1.0
            };
            4
        ],
        home_pages: pages,
        footprint: trace.footprint,
        local: evict::Kind::Lru,
        times: Times::default(),
        seed: 1,
    };
    let clients =
        dealt(&trace, Dealing::Runs { mean: 50.0 }, 8, 1).map_err(|invalid| invalid.to_string())?;
    for kind in Kind::ALL {
        let mut policy = kind
            .policy(&village, &Knobs::default())
            .map_err(|invalid| invalid.to_string())?;
        let start = Instant::now();
        let outcome = replay(&village, &mut *policy, &trace.pages, &clients, &mut |_| {});
        let rate = outcome.requests() as f64 / start.elapsed().as_secs_f64() / 1e6;
        println!(
            "{kind}: {:.1} % without disk, {rate:.1} million requests a second",
            outcome.without_disk() * 100.0
        );
    }
    Ok(())
}
