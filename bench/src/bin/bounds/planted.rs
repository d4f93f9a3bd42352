//! A build that can be broken on purpose.

use thorp_bench::Result;

/// The guard that is switched off in all processes, if one is: they inherit the environment.
pub(crate) fn name() -> Option<String> {
    std::env::var("THORP_PLANTED_BUG").ok()
}

/// Switches off the guard that the environment names, in every core of this process.
#[cfg(feature = "planted-bugs")]
pub(crate) fn from_environment() -> Result<()> {
    use thorp_model::planted::{Bug, plant};
    let Some(name) = name() else { return Ok(()) };
    let bug = Bug::ALL.iter().find(|bug| bug.name() == name);
    plant(Some(*bug.ok_or_else(|| {
        format!("there is no bug called {name}: see crates/model/src/planted.rs")
    })?));
    Ok(())
}

/// There are none.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) fn from_environment() -> Result<()> {
    match name() {
        Some(name) => Err(format!("{name}: build this program with planted-bugs").into()),
        None => Ok(()),
    }
}
