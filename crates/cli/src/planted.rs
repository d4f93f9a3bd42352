//! A build that can be broken on purpose: for programs that judge what a village did, and must reject it.

use thorp_model::planted::{Bug, plant};

/// Plants the bug that the environment names, in every core of this process.
pub(crate) fn from_environment() {
    let Ok(name) = std::env::var("THORP_PLANTED_BUG") else {
        return;
    };
    let Some(bug) = Bug::ALL.iter().find(|bug| bug.name() == name) else {
        eprintln!("THORP_PLANTED_BUG: there is no bug called {name}");
        std::process::exit(2);
    };
    eprintln!("planted: {name}. This build is for tests that must fail.");
    plant(Some(*bug));
}
