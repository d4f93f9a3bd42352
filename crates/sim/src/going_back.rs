//! Homes that go back in time, and what becomes of those who knew them before (rule R9).

use crate::failure::{Checked, demand};
use crate::time::NodeNo;
use crate::world::World;
use thorp_model::HomeId;
use thorp_protocol::{OtherHistory, Reopen};

/// A home has met another history of itself.
pub(crate) fn closed(world: &mut World, no: NodeNo, met: &OtherHistory) -> Checked {
    demand!(
        false,
        "history",
        "{} closes, and its disk never went back: {met:?}",
        world.nodes[no.0].name
    );
    Ok(())
}

/// An operator has opened a home.
pub(crate) fn opened(world: &mut World, no: NodeNo, reopen: &Reopen) -> Checked {
    demand!(
        false,
        "history",
        "{} is opened, and no program here asks for that: {reopen:?}",
        world.nodes[no.0].name
    );
    Ok(())
}

/// A member has forgotten what it held of a home.
pub(crate) fn forgotten(world: &mut World, no: NodeNo, home: HomeId) -> Checked {
    demand!(
        false,
        "history",
        "{} forgets home {home}, whose disk never went back",
        world.nodes[no.0].name
    );
    Ok(())
}
