//! Background work of a home: folding the MOB into page images, trimming the
//! log (foundation 6), and removing the pages of removed segments.

use crate::home::pages::store::Installable;
use crate::home::{Home, Outbox};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use thorp_model::limits::{INSTALL_PAGES_MAX, INSTALL_PAGES_MIN, MOB_FULL_TIMES};
use thorp_model::planted::Bug;
use thorp_model::{
    Mark, Note, Op, PageChange, PageId, PageNo, PageSlots, Position, SegmentId, Table, planted,
    records,
};

/// One in so many of the log records that a batch may trim is worth a batch of its own.
const TRIM_WORTH: u64 = 16;

/// An installation that is on its way to the disk.
#[derive(Debug)]
pub(in crate::home) struct Installing {
    mark: Mark,
    pages: Vec<PageId>,
    /// Damaged pages whose changes are set aside.
    quarantine: Vec<PageId>,
    /// The pages are installed, or set aside, as of here.
    position: Position,
    /// The log is trimmed to here.
    installed: Position,
}

/// A removal that is on its way to the disk.
#[derive(Debug)]
pub(in crate::home) struct Removing {
    mark: Mark,
    segment: SegmentId,
    /// The next page to remove; none if this was the last batch.
    next: Option<PageNo>,
}

impl Home {
    pub(in crate::home) fn housekeep(&mut self, outbox: &mut Outbox) {
        self.install(outbox);
        self.trim(outbox);
        self.remove_pages(outbox);
        // After the installation: what was loaded for it would go before it is used.
        let (to_install, parking, votes) = (&self.to_install, &self.parking, &self.tables.votes);
        let needed = |page| to_install.contains(&page) || parking.needs(page) || votes.needs(page);
        self.tables.pages.shrink(needed);
    }

    /// Installs the pages that were modified first, one batch at a time. Those that have to be
    /// loaded for it are installed when they are there: by the next time they would be out of
    /// memory again, and hold the log for ever.
    fn install(&mut self, outbox: &mut Outbox) {
        if self.installing.is_some() {
            return;
        }
        let position = self.log.durable();
        let wanted = if self.wants_to_install() {
            self.tables
                .pages
                .oldest_modified(self.install_pages(), position)
        } else {
            self.loaded_to_install()
        };
        let (mut pages, mut quarantine) = (Vec::new(), Vec::new());
        let mut ops = Vec::new();
        for page in wanted {
            if let Some(installable) = self.tables.pages.installable(page) {
                ops.push(install_op(&installable));
                ops.extend(self.tables.pages.no_more_aside(page));
                self.to_install.remove(&page);
                pages.push(page);
            } else if let Some(op) = self.tables.pages.begin_aside(page, position) {
                outbox.note(Note::SetAside);
                ops.push(op);
                self.to_install.remove(&page);
                quarantine.push(page);
            } else {
                self.to_install.insert(page);
                self.tables.pages.load(page, outbox);
            }
        }
        if ops.is_empty() {
            return;
        }
        let done = [&pages[..], &quarantine].concat();
        let installed = self
            .tables
            .pages
            .installed_without(&done, position)
            .min(Position(self.installed.0 + self.config.log_trim_max))
            .max(self.installed);
        self.trim_to(installed, &mut ops);
        outbox.note(Note::Installed);
        self.log.append_own_work(ops, outbox);
        self.installing = Some(Installing {
            mark: self.log.last_mark(),
            pages,
            quarantine,
            position,
            installed,
        });
    }

    /// Much is modified, or the log is long: one old change holds all records that follow, also
    /// those of transactions that changed nothing here (rule 10).
    fn wants_to_install(&self) -> bool {
        let records = (self.log.durable().0 - self.installed.0) as usize;
        self.tables.pages.mob_bytes() >= self.config.mob_bytes_high
            || records >= self.config.log_records_high
    }

    /// The pages that were loaded in order to be installed, once all of them are there.
    fn loaded_to_install(&mut self) -> Vec<PageId> {
        if planted::is(Bug::ColdPagesHoldTheLog) {
            self.to_install.clear();
        }
        let pages = &self.tables.pages;
        if self.to_install.iter().any(|page| pages.is_loading(*page)) {
            return Vec::new();
        }
        let there = core::mem::take(&mut self.to_install).into_iter();
        there.filter(|page| pages.is_modified(*page)).collect()
    }

    /// The more there is above the mark, the more goes by one batch: there is one
    /// at a time, and each waits for all the commits before it.
    fn install_pages(&self) -> usize {
        let high = self.config.mob_bytes_high.max(1);
        let excess = self.tables.pages.mob_bytes().saturating_sub(high);
        let more = INSTALL_PAGES_MAX - INSTALL_PAGES_MIN;
        let most = high.saturating_mul(MOB_FULL_TIMES - 1);
        INSTALL_PAGES_MIN + (excess.min(most) as u128 * more as u128 / most as u128) as usize
    }

    /// Trims the log as far as everything is installed: one installation may
    /// leave more behind it than one batch should delete.
    fn trim(&mut self, outbox: &mut Outbox) {
        let installed = self.tables.pages.installed_without(&[], self.log.durable());
        let most = self.config.log_trim_max;
        let enough = self.installed.0 + (most / TRIM_WORTH).max(1);
        if self.installing.is_some()
            || installed.0 < enough
            || planted::is(Bug::TrimmedOnlyWithPages)
        {
            return;
        }
        let installed = installed.min(Position(self.installed.0 + most));
        let mut ops = Vec::new();
        self.trim_to(installed, &mut ops);
        self.log.append_own_work(ops, outbox);
        self.installing = Some(Installing {
            mark: self.log.last_mark(),
            pages: Vec::new(),
            quarantine: Vec::new(),
            position: installed,
            installed,
        });
    }

    fn trim_to(&self, installed: Position, ops: &mut Vec<Op>) {
        for trimmed in self.installed.0 + 1..=installed.0 {
            let key = records::log_key(Position(trimmed));
            ops.push(records::delete(Table::Log, key));
        }
        let key = records::INSTALLED_KEY.to_vec();
        ops.push(records::put(Table::Meta, key, &installed));
    }

    /// What was written is durable: its changes leave the MOB.
    pub(in crate::home) fn end_install(&mut self) {
        let durable = self.log.durable_mark();
        if let Some(done) = self.installing.take_if(|i| i.mark <= durable) {
            for page in &done.pages {
                self.tables.pages.installed(*page, done.position);
            }
            for page in &done.quarantine {
                self.tables.pages.set_aside(*page, done.position);
            }
            self.installed = done.installed;
        }
        if let Some(removing) = self.removing.as_ref()
            && removing.mark <= durable
            && removing.next.is_none()
        {
            self.tables.segments.end_removal(removing.segment);
            self.removable.remove(&removing.segment);
            self.removing = None;
        }
    }

    /// The invalidations that tell the end of a segment to those who hold its pages.
    pub(in crate::home) fn whole_segment(&mut self, segment: SegmentId) -> Vec<PageChange> {
        self.tables.pages.forget_segment(segment);
        self.removable.insert(segment);
        // Also to those who watch it and hold nothing of it: by its first page.
        let first = PageId::new(segment.0, 0);
        let held = self.children.directory.pages_of(segment).into_iter();
        let pages: BTreeSet<PageId> = held.chain([first]).collect();
        let ended = pages.into_iter().map(|page| PageChange {
            page,
            slots: PageSlots::Whole,
        });
        ended.collect()
    }

    fn remove_pages(&mut self, outbox: &mut Outbox) {
        let (mut segment, from) = match (&self.removing, self.removable.first()) {
            (None, Some(segment)) => (*segment, PageNo(0)),
            (Some(r), _) if r.mark <= self.log.durable_mark() => match r.next {
                Some(next) => (r.segment, next),
                None => return,
            },
            _ => return,
        };
        if planted::is(Bug::RemovalsMixed) {
            segment = self.removable.first().copied().unwrap_or(segment);
        }
        let most = self.config.pages_removed_max;
        let pages = self.tables.segments.pages_to_remove(segment, from, most);
        let mut ops = Vec::new();
        for page in &pages {
            let page = PageId {
                segment,
                page: *page,
            };
            ops.push(records::delete(Table::Pages, records::page_key(page)));
            ops.extend(self.tables.pages.no_more_aside(page));
            self.tables.pages.quarantine.forget(page);
        }
        let last = pages.len() < most as usize;
        if last {
            ops.push(records::delete(Table::Meta, records::segment_key(segment)));
        }
        self.log.append_own_work(ops, outbox);
        self.removing = Some(Removing {
            mark: self.log.last_mark(),
            segment,
            next: (!last).then(|| pages.last().map_or(PageNo(0), |page| page.next())),
        });
    }
}

fn install_op(installable: &Installable) -> Op {
    match &installable.image {
        Some(image) => records::put_page(installable.page, image),
        None => {
            let key = records::page_key(installable.page);
            records::delete(Table::Pages, key)
        }
    }
}
