//! Faults of disks.

use super::Relief;
use crate::disk::Disk;
use crate::failure::Checked;
use crate::time::NodeNo;
use crate::world::World;
use thorp_model::{HomeId, Lack, NodeKind, PageId};
use thorp_protocol::{Home, HomeCommand};

impl World {
    pub(super) fn fill_disk(&mut self, refuses: bool) -> Checked<bool> {
        let Some(no) = self.pick_node(NodeKind::Home) else {
            return Ok(false);
        };
        let node = &self.nodes[no.0];
        let is_nearly_full = |(_, disk): &(HomeId, Disk)| disk.is_nearly_full();
        if !node.room || node.home.as_ref().is_some_and(is_nearly_full) {
            return Ok(false);
        }
        if !refuses && self.fault_prng.percent(50) {
            return self.leave_little(no);
        }
        self.node(no).room = false;
        let ms = self.fault_prng.range(100, 3_000);
        self.relieve_in(ms, Relief::Disk(no));
        if refuses {
            let soon = self.fault_prng.below(ms);
            self.relieve_in(soon, Relief::Refuse(no));
        }
        self.command::<Home>(no, HomeCommand::Lacks(Some(Lack::OF_ALL)))?;
        Ok(true)
    }

    /// So little is left on a disk that single commits do not fit, and the home knows.
    fn leave_little(&mut self, no: NodeNo) -> Checked<bool> {
        let left = self.fault_prng.range(0, 40_000);
        self.set_left(no, Some(left));
        let ms = self.fault_prng.range(100, 3_000);
        self.relieve_in(ms, Relief::Disk(no));
        self.tell_left(no)?;
        Ok(true)
    }

    pub(super) fn set_left(&mut self, no: NodeNo, left: Option<u64>) {
        if let Some((_, disk)) = &mut self.node(no).home {
            disk.set_left(left);
        }
    }

    pub(super) fn slow_disk(&mut self) -> bool {
        let Some(no) = self.pick_node(NodeKind::Home) else {
            return false;
        };
        let sync = self.fault_prng.range(50, 600);
        let ms = self.fault_prng.range(200, 3_000);
        let Some((_, disk)) = &mut self.node(no).home else {
            return false;
        };
        let before = disk.sync_ms_max;
        disk.sync_ms_max = before.max(sync);
        self.relieve_in(
            ms,
            Relief::DiskSpeed {
                node: no,
                sync_ms_max: before,
            },
        );
        true
    }

    /// A bit flips where a page lies, mostly of one that programs use. Often the home starts
    /// again then: what it has in memory is right still.
    pub(super) fn flip_bit(&mut self) -> Checked<bool> {
        let Some(no) = self.pick_node(NodeKind::Home) else {
            return Ok(false);
        };
        let Some((_, disk)) = &mut self.nodes[no.0].home else {
            return Ok(false);
        };
        let pages: Vec<PageId> = disk.pages().collect();
        let Some(page) = self.fault_prng.pick(&pages).copied() else {
            return Ok(false);
        };
        let bit = self.fault_prng.bits() as usize;
        if !disk.flip(page, bit) {
            return Ok(false);
        }
        let now = self.now;
        self.trace
            .line(|| format!("{now:?} a bit of page {page} flips"));
        let ms = self.fault_prng.range(500, 4_000);
        self.relieve_in(ms, Relief::Mend(no));
        if self.fault_prng.percent(60) {
            self.kill(no)?;
            self.plan_restart(no, 300);
        }
        Ok(true)
    }

    /// What is stored is put back from elsewhere. A home that has found it damaged knows of
    /// that when it starts again.
    pub(super) fn mend(&mut self, no: NodeNo) -> Checked {
        if let Some((_, disk)) = &mut self.node(no).home {
            disk.mend();
        }
        if self.nodes[no.0].is_up() {
            self.kill(no)?;
            self.plan_restart(no, 300);
        }
        Ok(())
    }

    pub(super) fn set_full(&mut self, no: NodeNo, full: bool) {
        if let Some((_, disk)) = &mut self.node(no).home {
            disk.full = full;
        }
    }
}
