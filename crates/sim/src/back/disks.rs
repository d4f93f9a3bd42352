//! Disks: batches become durable in time, and a crash loses what is not.

use super::truth;
use super::world::World;
use crate::failure::{Checked, Failure};
use crate::time::{Local, NodeNo};
use thorp_model::records::{decode_page, page_key};
use thorp_model::{Batch, Mark, PageId, Table};
use thorp_protocol::LoadResult;

/// A home writes a batch.
pub(super) fn append(world: &mut World, no: NodeNo, batch: Batch) {
    let Some(store) = &mut world.node(no).store else {
        return;
    };
    store.disk.append(batch);
    if !store.disk.syncing {
        store.disk.syncing = true;
        plan_sync(world, no);
    }
}

fn plan_sync(world: &mut World, no: NodeNo) {
    let (share, delay) = (world.prng.bits(), world.prng.bits());
    let now = world.now;
    let Some(store) = &world.nodes[no.0].store else {
        return;
    };
    // An engine syncs what has gathered, or a part of it.
    let pending = store.disk.pending().max(1) as u64;
    let batches = 1 + (share % (pending * 2)).min(pending - 1) as usize;
    let at = now.plus_us(200 + delay % (store.disk.sync_ms_max * 1000));
    world.plan_local(no, at, Local::Sync { batches });
}

/// A disk finishes a sync.
pub(super) fn sync(world: &mut World, no: NodeNo, batches: usize) -> Checked {
    let Some(store) = &mut world.node(no).store else {
        return Ok(());
    };
    let mark: Option<Mark> = store.disk.mark_of(batches);
    let branch = store.branch;
    let synced = store.disk.sync(batches);
    let more = store.disk.pending() > 0;
    store.disk.syncing = more;
    truth::durable(world, branch, &synced)?;
    if let Some(mark) = mark {
        let at = world.now.plus_us(world.prng.below(2_000));
        world.plan_local(no, at, Local::SyncTold(mark));
    }
    if more {
        plan_sync(world, no);
    }
    Ok(())
}

/// What a disk answers to a read.
pub(super) fn read(world: &mut World, no: NodeNo, page: PageId) -> Checked<LoadResult> {
    let mut prng = world.prng.fork();
    let key = page_key(page);
    let Some(store) = &mut world.node(no).store else {
        return Err(Failure::new("driver", "only homes have disks"));
    };
    let stored = store.disk.read(&mut prng, Table::Pages, &key);
    let stored = stored.map_err(|_| Failure::new("disk", "no bit was flipped"))?;
    let image = stored.map(|value| decode_page(&key, &value)).transpose();
    let image = image.map_err(|error| Failure::new("disk", error.to_string()))?;
    Ok(LoadResult::Found(image))
}

/// The power goes: some of what is not durable happens to be, the rest is lost.
pub(super) fn crash(world: &mut World, no: NodeNo) -> Checked {
    let share = world.prng.bits();
    let Some(store) = &mut world.node(no).store else {
        return Ok(());
    };
    let survive = share as usize % (store.disk.pending() + 1);
    let branch = store.branch;
    let survivors = store.disk.crash(survive);
    truth::durable(world, branch, &survivors)
}
