//! A build that can be broken on purpose: for programs that judge what a village did, and must reject it.

use thorp_model::planted as protocol;
use thorp_versions as tables;

/// Plants the bug that the environment names, in every core of this process, or in its tables for web caches.
pub(crate) fn from_environment() {
    let Ok(name) = std::env::var("THORP_PLANTED_BUG") else {
        return;
    };
    let of_protocol = protocol::Bug::ALL.iter().find(|bug| bug.name() == name);
    let of_tables = tables::Bug::ALL.iter().find(|bug| bug.name() == name);
    if of_protocol.is_none() && of_tables.is_none() {
        eprintln!("THORP_PLANTED_BUG: there is no bug called {name}");
        std::process::exit(2);
    }
    eprintln!("planted: {name}. This build is for tests that must fail.");
    protocol::plant(of_protocol.copied());
    tables::plant(of_tables.copied());
}
