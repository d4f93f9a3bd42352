//! Nothing above the durable end of the log is sent or promised (rule 1), and
//! watermarks are kept (rules 5 and 12).

use crate::failure::{Checked, Failure, demand};
use crate::time::NodeNo;
use crate::world::World;
use thorp_model::{
    Down, HomeId, Message, Position, Publish, Reader, Stamp, StorageError, Table, Up, message,
    records,
};

/// Looks at a message as it is sent.
pub fn sent(world: &mut World, from: NodeNo, message: &Message) -> Checked {
    match message {
        // A rogue may promise what it likes: no parent listens to it.
        Message::Down(_) if world.nodes[from.0].rogue => Ok(()),
        Message::Down(message) => {
            sent_down(world, from, message)?;
            super::told::sent(world, from, message)
        }
        Message::Up(Up::Commit(request)) => {
            if world.nodes[from.0].rogue {
                world.history.rogue_sends(request);
            }
            let is_member = world.nodes[from.0].resident.is_some();
            demand!(
                !is_member || world.commit_sent(request),
                "exactly once",
                "{} sends a commit that no program asked for so: {request:?}",
                world.nodes[from.0].name
            );
            Ok(())
        }
        Message::Up(message) => {
            super::told::asked(world, message);
            Ok(())
        }
        Message::Alive | Message::Claims(_) | Message::Homes(_) => Ok(()),
    }
}

fn sent_down(world: &mut World, from: NodeNo, message: &Down) -> Checked {
    let (home, position) = match message {
        Down::Begin(message::Begin { home, position, .. })
        | Down::Image(message::FetchResponse { home, position, .. })
        | Down::Committed(message::Committed { home, position, .. })
        | Down::Resynchronised(message::Resynchronised { home, position, .. })
        | Down::Heartbeat(message::Heartbeat { home, position, .. }) => (*home, *position),
        Down::Step(step) => (step.home, step.position),
        Down::Peer(peer) => (peer.home, peer.position),
        _ => return Ok(()),
    };
    durable(world, from, home, position)?;
    if let Down::Begin(message::Begin { silent_ms, .. }) = message {
        super::silence::told(world, from, home, *silent_ms)?;
    }
    let watermark = match message {
        Down::Begin(message::Begin { watermark, .. })
        | Down::Image(message::FetchResponse { watermark, .. })
        | Down::Heartbeat(message::Heartbeat { watermark, .. }) => Some(*watermark),
        Down::Step(step) => Some(step.watermark),
        _ => None,
    };
    if let Some(watermark) = watermark {
        promised(world, from, home, position, watermark)?;
    }
    let vouched = match message {
        Down::Committed(message::Committed { stamp, .. }) => Some(*stamp),
        _ => watermark,
    };
    vouched.map_or(Ok(()), |stamp| reserved(world, from, stamp))
}

/// What a home promises, or says of where a reader stands, it does not forget when it starts
/// again (rule 12).
fn reserved(world: &World, from: NodeNo, stamp: Stamp) -> Checked {
    let Some((home, disk)) = &world.nodes[from.0].home else {
        return Ok(());
    };
    let key = records::CLOCK_KEY;
    let wrong = |error: StorageError| Failure::new("disk", error.to_string());
    let value = disk.get(Table::Meta, key).map_err(wrong)?;
    let ceiling = value.map(|value| records::decode::<u64>(Table::Meta, key, &value));
    let ceiling = ceiling.transpose().map_err(wrong)?.unwrap_or_default();
    demand!(
        stamp.clock <= ceiling,
        "ceiling",
        "home {home} vouches for {stamp:?}, and has reserved {:?} durably",
        Stamp {
            clock: ceiling,
            home: *home
        }
    );
    Ok(())
}

/// Looks at what a member publishes to its cache.
pub fn published(world: &mut World, no: NodeNo, publish: &Publish) -> Checked {
    durable(world, no, publish.home, publish.position)?;
    super::silence::published(world, no, publish.home, publish.heard)?;
    promised(world, no, publish.home, publish.position, publish.watermark)
}

fn durable(world: &World, from: NodeNo, home: HomeId, position: Position) -> Checked {
    let end = world.oracles.get(&home).map_or(Position(0), |t| t.end);
    demand!(
        position <= end,
        "durable first",
        "{} tells position {position} of home {home}, whose log is durable to {end}",
        world.nodes[from.0].name
    );
    Ok(())
}

/// Every commit above `position` has a stamp above the watermark.
fn promised(
    world: &mut World,
    from: NodeNo,
    home: HomeId,
    position: Position,
    watermark: Stamp,
) -> Checked {
    let known = world.promised.entry(home).or_default();
    *known = (*known).max(watermark);
    let Some(oracle) = world.oracles.get(&home) else {
        return Ok(());
    };
    let next = oracle.stamp_after(position);
    demand!(
        next.is_none_or(|stamp| stamp > watermark),
        "watermark",
        "{} promises {watermark:?} at {position}, the commit after it has {next:?}",
        world.nodes[from.0].name
    );
    Ok(())
}
