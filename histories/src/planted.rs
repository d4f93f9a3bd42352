//! A bug that is planted in members, too.

use crate::Outcome;

/// Plants it in every core of this process.
#[cfg(feature = "planted-bugs")]
pub(crate) fn plant(name: &str) -> Outcome<()> {
    use thorp_model::planted::{Bug, plant};
    let bug = Bug::ALL.iter().find(|bug| bug.name() == name);
    plant(Some(*bug.ok_or_else(|| {
        format!("there is no bug called {name}: see crates/model/src/planted.rs")
    })?));
    Ok(())
}

/// There are none.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) fn plant(name: &str) -> Outcome<()> {
    Err(format!("{name}: this program has to be built with planted-bugs, as thorp has").into())
}
