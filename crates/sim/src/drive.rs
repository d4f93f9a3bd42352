//! The driver of every machine: hands over events, and does what the outbox says,
//! in its order.

use crate::checks;
use crate::digest::Turn;
use crate::disk::Disk;
use crate::failure::{Checked, Failure, demand};
use crate::role::Role;
use crate::time::{At, Local, NodeNo, Planned};
use crate::world::World;
use thorp_model::records::{decode_page, page_key};
use thorp_model::{
    Action, Batch, Event, HomeId, Mark, NodeKind, Note, Outbox, PageId, SpaceBound, Table,
};
use thorp_protocol::{Home, HomeCommand, LoadResult};

/// Milliseconds until a home that lost its disk is tried again.
const REOPEN_MS_MAX: u64 = 600;

/// What a disk keeps back for changes of rights, deletions and audit records (rule R7), in bytes.
const ROOM_BYTES: u64 = 8_000;

impl World {
    /// Hands an event to a node's machine, does what follows, and looks at the node.
    pub fn handle<R: Role>(&mut self, no: NodeNo, event: Event<R::Command>) -> Checked {
        let now = self.now;
        let node = &self.nodes[no.0];
        let clocks = node.now(now);
        self.trace
            .line(|| format!("{now:?} {} <- {event:?}", node.name));
        self.trace.digest(|digest| digest.event(now, no, &event));
        checks::silence::heard(self, no, &event);
        let mut outbox = Outbox::new();
        let machine = self.node(no).machine.as_mut();
        let Some(machine) = machine.and_then(R::of) else {
            return Ok(());
        };
        machine.handle(clocks, event, &mut outbox);
        self.process::<R>(no, outbox)?;
        self.freshness_settle(no);
        self.plan_tick(no);
        checks::validity::check(self, no)?;
        checks::helpers::check(self, no)?;
        checks::bounds::check(self, no)
    }

    /// Does what an outbox says.
    pub fn process<R: Role>(&mut self, no: NodeNo, outbox: Outbox<R::Action>) -> Checked {
        for action in outbox.actions {
            if !self.nodes[no.0].is_up() {
                break; // Its disk failed it in the middle of the outbox.
            }
            self.trace.digest(|digest| digest.action(&action));
            match action {
                Action::Send(edge, message) => self.send(no, edge, message)?,
                Action::Close(edge, why) => {
                    self.freshness_turned_away();
                    self.close(no, edge, why);
                }
                Action::Note(note) => {
                    let turned_away = [Note::OtherEpochDropped, Note::SecondParentUnheard];
                    if turned_away.contains(&note) {
                        self.freshness_turned_away();
                    }
                    self.counts.noted(note);
                }
                Action::Role(action) => R::act(self, no, action)?,
            }
        }
        Ok(())
    }

    /// Plans the tick that a core asks for.
    pub fn plan_tick(&mut self, no: NodeNo) {
        let now = self.now;
        let node = self.node(no);
        let deadline = node.machine.as_ref().and_then(|m| m.deadline());
        let Some(deadline) = deadline else {
            return;
        };
        // A deadline that has passed is met at the next millisecond.
        let at = node.at(deadline).max(now.plus_ms(1));
        if node.tick_planned.is_none_or(|planned| planned > at) {
            node.tick_planned = Some(at);
            self.plan_local(no, at, Local::Tick);
        }
    }

    /// Something happens at a node that is alive.
    pub fn happen(&mut self, no: NodeNo, local: Local) -> Checked {
        let (now, node) = (self.now, self.node(no));
        if node.hung_until > now {
            let at = node.hung_until;
            if matches!(local, Local::Tick) && node.tick_planned == Some(now) {
                node.tick_planned = Some(at);
            }
            self.plan_local(no, at, local);
            return Ok(());
        }
        match local {
            Local::Tick => self.tick(no),
            Local::Hinted { place } => self.hinted(no, place),
            Local::Dial { parent } => self.dial(no, parent),
            Local::Heal => self.heal_turned(no),
            Local::Sync { batches } => self.sync(no, batches),
            Local::SyncTold(mark) => self.sync_told(no, mark),
            Local::Read(page) => self.read(no, page),
            Local::Step { session, wait } => self.step(no, session, wait),
            Local::Answered { ticket } => self.answered(no, ticket),
            Local::Squeeze => self.squeeze(no),
        }
    }

    fn tick(&mut self, no: NodeNo) -> Checked {
        let now = self.now;
        let node = self.node(no);
        if node.tick_planned != Some(now) {
            return Ok(()); // An earlier one was planned since, and was met.
        }
        node.tick_planned = None;
        let due = node.machine.as_ref().and_then(|m| m.deadline());
        if due.is_some_and(|due| node.at(due) <= now) {
            return self.event(no, Event::Tick);
        }
        self.plan_tick(no);
        Ok(())
    }

    // --- The disk ---

    fn disk(&mut self, no: NodeNo) -> Option<(HomeId, &mut Disk)> {
        let (home, disk) = self.nodes[no.0].home.as_mut()?;
        Some((*home, disk))
    }

    pub(crate) fn append(&mut self, no: NodeNo, batch: Batch) -> Checked {
        let Some((_, disk)) = self.disk(no) else {
            let detail = format!("node {no:?} has no disk to append to");
            return Err(Failure::new("driver", detail));
        };
        let mark = batch.mark;
        if !disk.append(batch) {
            let wrong_estimate = !disk.full;
            if wrong_estimate {
                self.counts.answered("commits that did not fit after all");
            }
            // The contract of the store: after a failure, open it again.
            let now = self.now;
            self.trace
                .line(|| format!("{now:?} batch {mark:?} finds no room"));
            self.kill(no)?;
            let at = self.now.plus_ms(self.prng.range(50, REOPEN_MS_MAX));
            self.agenda.plan(at, Planned::Restart(no));
            return Ok(());
        }
        if !disk.syncing {
            disk.syncing = true;
            self.plan_sync(no);
        }
        Ok(())
    }

    fn plan_sync(&mut self, no: NodeNo) {
        let share = self.prng.bits();
        let delay = self.prng.bits();
        let now = self.now;
        let Some((_, disk)) = self.disk(no) else {
            return;
        };
        // An engine syncs what has gathered, or a part of it.
        let pending = disk.pending().max(1) as u64;
        let batches = 1 + (share % (pending * 2)).min(pending - 1) as usize;
        let at = now.plus_us(200 + delay % (disk.sync_ms_max * 1000).max(1));
        self.plan_local(no, at, Local::Sync { batches });
    }

    fn sync(&mut self, no: NodeNo, batches: usize) -> Checked {
        let Some((home, disk)) = self.disk(no) else {
            return Ok(());
        };
        let mark = disk.mark_of(batches);
        let synced = disk.sync(batches);
        let more = disk.pending() > 0;
        disk.syncing = more;
        checks::commits::durable(self, home, &synced)?;
        if let Some(mark) = mark {
            let at = self.now.plus_us(self.prng.below(2_000));
            self.plan_local(no, at, Local::SyncTold(mark));
        }
        if more {
            self.plan_sync(no);
        }
        Ok(())
    }

    fn sync_told(&mut self, no: NodeNo, mark: Mark) -> Checked {
        self.command::<Home>(no, HomeCommand::Durable(mark))?;
        self.tell_left(no)?;
        if let Some((home, _)) = self.disk(no) {
            let end = match &self.nodes[no.0].machine {
                Some(crate::node::Machine::Home(home)) => home.durable(),
                _ => return Ok(()),
            };
            let now = self.now;
            let told = self.durable_told.entry(home).or_default();
            if told.last().is_none_or(|(_, position)| *position < end) {
                told.push((now, end));
            }
        }
        Ok(())
    }

    /// A disk tells how much more it could take.
    pub fn tell_left(&mut self, no: NodeNo) -> Checked {
        let Some((_, disk)) = self.disk(no) else {
            return Ok(());
        };
        let (left, as_of) = disk.left();
        let free = left.saturating_sub(ROOM_BYTES);
        let room = left;
        self.command::<Home>(
            no,
            HomeCommand::Space {
                free,
                room,
                of: SpaceBound::Limit,
                installs: true,
                as_of,
            },
        )
    }

    fn read(&mut self, no: NodeNo, page: PageId) -> Checked {
        let mut prng = self.prng.fork();
        let Some((_, disk)) = self.disk(no) else {
            return Ok(());
        };
        let key = page_key(page);
        let result = match disk.read(&mut prng, Table::Pages, &key) {
            Ok(stored) => {
                let image = stored.map(|value| decode_page(&key, &value)).transpose();
                let image = image.map_err(|error| Failure::new("disk", error.to_string()))?;
                LoadResult::Found(image)
            }
            Err(_) => LoadResult::Damaged,
        };
        self.command::<Home>(no, HomeCommand::Loaded { page, result })
    }

    // --- Life and death ---

    /// A node dies: its memory is lost, its connections break, its disk keeps
    /// what was synced, and perhaps some more.
    pub fn kill(&mut self, no: NodeNo) -> Checked {
        let now = self.now;
        let node = self.node(no);
        demand!(node.is_up(), "driver", "{} dies twice", node.name);
        node.machine = None;
        node.resident = None;
        node.life += 1;
        let (name, id, kind) = (node.name.clone(), node.id, node.kind);
        self.trace.line(|| format!("{now:?} {name} dies"));
        self.trace
            .digest(|digest| digest.turn(now, Turn::Dies, no.0));
        if kind == NodeKind::Member {
            self.history.forget_member(id);
        }
        self.break_connections(no);
        self.kill_carried(no)?;
        let survive = self.prng.bits();
        if let Some((home, disk)) = self.disk(no) {
            let survive = survive as usize % (disk.pending() + 1);
            let survivors = disk.crash(survive);
            checks::commits::durable(self, home, &survivors)?;
        }
        Ok(())
    }

    /// When a node that dies now is to come back.
    pub fn plan_restart(&mut self, no: NodeNo, ms_max: u64) {
        let at: At = self.now.plus_ms(self.fault_prng.range(1, ms_max));
        self.agenda.plan(at, Planned::Restart(no));
    }
}
