//! Nobody says to have heard of a home later than it has, itself or through its
//! parent: how stale a free read may be is counted from there (foundation 9).

use crate::failure::{Checked, demand};
use crate::time::{At, NodeNo};
use crate::world::World;
use thorp_model::{Down, Event, HomeId, Message, Millis, NodeKind, message};

/// What the roundings of two clocks make at most, in microseconds.
const ROUNDING_US: u64 = 2_000;

/// Notes what a node hears of a home.
pub fn heard<C>(world: &mut World, no: NodeNo, event: &Event<C>) {
    let Event::Received {
        message: Message::Down(message),
        ..
    } = event
    else {
        return;
    };
    let (home, silent_ms) = match message {
        Down::Begin(message::Begin {
            home, silent_ms, ..
        }) => (*home, u64::from(*silent_ms)),
        Down::Heartbeat(message::Heartbeat { home, .. }) => (*home, 0),
        _ => return,
    };
    let at = At(world.now.0.saturating_sub(silent_ms * 1000));
    let known = world.heard.entry((no, home)).or_default();
    *known = (*known).max(at);
}

/// Looks at what a site tells a new child.
pub fn told(world: &World, from: NodeNo, home: HomeId, silent_ms: u32) -> Checked {
    if world.nodes[from.0].kind != NodeKind::Redirector {
        return Ok(());
    }
    let at = At(world.now.0.saturating_sub(u64::from(silent_ms) * 1000));
    no_later(world, from, home, at)
}

/// Looks at what a member tells its page cache.
pub fn published(world: &World, no: NodeNo, home: HomeId, heard: Millis) -> Checked {
    no_later(world, no, home, world.nodes[no.0].at(heard))
}

fn no_later(world: &World, no: NodeNo, home: HomeId, at: At) -> Checked {
    let known = world.heard.get(&(no, home)).copied().unwrap_or_default();
    let node = &world.nodes[no.0];
    // How long ago that was, it has counted by its own clock, or takes as counted by that.
    let wrong_us = (world.now.0 - known.0) * node.mono_per_mille.unsigned_abs() / 1000;
    demand!(
        at.0 <= known.0 + ROUNDING_US + wrong_us,
        "silence",
        "{} counts the silence of home {home} from {at:?}; it has heard of it at {known:?}",
        node.name
    );
    Ok(())
}
