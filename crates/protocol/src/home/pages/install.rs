//! Installation: folding the MOB into page images, and trimming the log (foundation 6).

use crate::home::Outbox;
use crate::home::pages::store::{Installable, Pages};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{Mark, Note, Op, PageId, Position, Table, planted, records};

/// One in so many of the log records that a batch may trim is worth a batch of its own.
const TRIM_WORTH: u64 = 16;

/// An installation that is on its way to the disk.
#[derive(Debug)]
struct Installing {
    mark: Mark,
    pages: Vec<PageId>,
    /// Damaged pages whose changes are set aside.
    quarantine: Vec<PageId>,
    /// The pages are installed, or set aside, as of here.
    position: Position,
    /// The log is trimmed to here.
    installed: Position,
}

/// Installs pages and trims the log, one batch at a time.
///
/// Everything up to `installed` is in page images or set aside, and the log begins above it. It
/// rises when a batch is durable, and never beyond the durable end of the log.
#[derive(Debug)]
pub(in crate::home) struct Installer {
    installed: Position,
    installing: Option<Installing>,
    /// Pages that are loaded in order to be installed.
    to_install: BTreeSet<PageId>,
    log_records_high: usize,
    log_trim_max: u64,
}

impl Installer {
    /// Everything up to a position is installed.
    pub(in crate::home) fn new(
        installed: Position,
        log_records_high: usize,
        log_trim_max: u64,
    ) -> Self {
        Installer {
            installed,
            installing: None,
            to_install: BTreeSet::new(),
            log_records_high,
            log_trim_max,
        }
    }

    /// The log begins above this position.
    pub(in crate::home) fn installed(&self) -> Position {
        self.installed
    }

    /// Whether a page has to stay in memory until it is installed.
    pub(in crate::home) fn needs(&self, page: PageId) -> bool {
        self.to_install.contains(&page)
    }

    /// Begins to install the pages that were modified first: what the batch with this mark does;
    /// nothing if no batch is wanted. Pages that have to be loaded are installed when they are
    /// there: by the next time they would be out of memory again, and hold the log for ever. In a
    /// hurry it takes what there is, however little: the store is full (rule R7).
    pub(in crate::home) fn install(
        &mut self,
        pages: &mut Pages,
        (durable, hurries): (Position, bool),
        mark: Mark,
        outbox: &mut Outbox,
    ) -> Vec<Op> {
        let mut ops = Vec::new();
        if self.installing.is_some() {
            return ops;
        }
        let (mut installed, mut quarantine) = (Vec::new(), Vec::new());
        for page in self.wanted(pages, durable, hurries) {
            if let Some(installable) = pages.installable(page) {
                ops.push(install_op(&installable));
                ops.extend(pages.no_more_aside(page));
                self.to_install.remove(&page);
                installed.push(page);
            } else if let Some(op) = pages.begin_aside(page, durable) {
                outbox.note(Note::SetAside);
                ops.push(op);
                self.to_install.remove(&page);
                quarantine.push(page);
            } else {
                self.to_install.insert(page);
                pages.load(page, outbox);
            }
        }
        if ops.is_empty() {
            return ops;
        }
        let done = [&installed[..], &quarantine].concat();
        let trimmed = pages
            .installed_without(&done, durable)
            .min(Position(self.installed.0 + self.log_trim_max))
            .max(self.installed);
        self.trim_to(trimmed, &mut ops);
        outbox.note(Note::Installed);
        self.installing = Some(Installing {
            mark,
            pages: installed,
            quarantine,
            position: durable,
            installed: trimmed,
        });
        ops
    }

    fn wanted(&mut self, pages: &Pages, durable: Position, hurries: bool) -> Vec<PageId> {
        // One old change holds all log records that follow, also those of transactions that changed
        // nothing here (rule 10).
        let records = (durable.0 - self.installed.0) as usize;
        if hurries || pages.mob_is_high() || records >= self.log_records_high {
            pages.oldest_modified(pages.install_pages(), durable)
        } else {
            self.loaded_to_install(pages)
        }
    }

    /// The pages that were loaded in order to be installed, once all of them are there.
    fn loaded_to_install(&mut self, pages: &Pages) -> Vec<PageId> {
        if planted::is(Bug::ColdPagesHoldTheLog) {
            self.to_install.clear();
        }
        if self.to_install.iter().any(|page| pages.is_loading(*page)) {
            return Vec::new();
        }
        let there = core::mem::take(&mut self.to_install).into_iter();
        there.filter(|page| pages.is_modified(*page)).collect()
    }

    /// Trims the log as far as everything is installed: one installation may leave more behind it
    /// than one batch should delete. Returns what the batch with this mark does.
    pub(in crate::home) fn trim(
        &mut self,
        pages: &Pages,
        (durable, hurries): (Position, bool),
        mark: Mark,
    ) -> Vec<Op> {
        let installed = pages.installed_without(&[], durable);
        let worth = if hurries {
            1
        } else {
            (self.log_trim_max / TRIM_WORTH).max(1)
        };
        let enough = self.installed.0 + worth;
        let mut ops = Vec::new();
        if self.installing.is_some()
            || installed.0 < enough
            || planted::is(Bug::TrimmedOnlyWithPages)
        {
            return ops;
        }
        let installed = installed.min(Position(self.installed.0 + self.log_trim_max));
        self.trim_to(installed, &mut ops);
        self.installing = Some(Installing {
            mark,
            pages: Vec::new(),
            quarantine: Vec::new(),
            position: installed,
            installed,
        });
        ops
    }

    fn trim_to(&self, installed: Position, ops: &mut Vec<Op>) {
        for trimmed in self.installed.0 + 1..=installed.0 {
            let key = records::log_key(Position(trimmed));
            ops.push(records::delete(Table::Log, key));
        }
        let key = records::INSTALLED_KEY.to_vec();
        ops.push(records::put(Table::Meta, key, &installed));
    }

    /// Batches up to this one are durable: installed changes leave the MOB.
    pub(in crate::home) fn made_durable(&mut self, durable: Mark, pages: &mut Pages) {
        if let Some(done) = self.installing.take_if(|i| i.mark <= durable) {
            for page in &done.pages {
                pages.installed(*page, done.position);
            }
            for page in &done.quarantine {
                pages.set_aside(*page, done.position);
            }
            self.installed = done.installed;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{PageChange, PageSlots, Stamp};

    const PAGE: PageId = PageId::new(1, 3);

    #[test]
    fn the_log_begins_above_what_is_installed_when_the_batch_is_durable() {
        let mut pages = Pages::new(0, usize::MAX);
        let mut installer = Installer::new(Position(0), 5, 100);
        let change = PageChange {
            page: PAGE,
            slots: PageSlots::Some(Vec::new()),
        };
        pages.put_fresh(PAGE);
        pages.accept(change, Position(3), Stamp::default());
        pages.made_durable(PAGE, Position(3));
        let mut outbox = Outbox::new();
        let mut install = |installer: &mut Installer, pages: &mut Pages, durable| {
            let durable = (Position(durable), false);
            installer.install(pages, durable, Mark(7), &mut outbox)
        };
        assert!(install(&mut installer, &mut pages, 4).is_empty(), "too few");
        let ops = install(&mut installer, &mut pages, 5);
        assert_eq!(ops.len(), 7, "a page, five records and the new beginning");
        let again = install(&mut installer, &mut pages, 5);
        assert!(again.is_empty(), "one at a time");
        installer.made_durable(Mark(6), &mut pages);
        assert_eq!(installer.installed(), Position(0));
        installer.made_durable(Mark(7), &mut pages);
        assert_eq!(installer.installed(), Position(5));
        assert!(!pages.is_modified(PAGE));
    }

    #[test]
    fn a_full_store_installs_and_trims_however_little_there_is() {
        let mut pages = Pages::new(0, usize::MAX);
        let mut installer = Installer::new(Position(0), 1_000, 1_000);
        let slots = PageSlots::Some(Vec::new());
        pages.put_fresh(PAGE);
        pages.accept(
            PageChange { page: PAGE, slots },
            Position(1),
            Stamp::default(),
        );
        pages.made_durable(PAGE, Position(1));
        let mut outbox = Outbox::new();
        let mut install = |installer: &mut Installer, pages: &mut Pages, hurries| {
            let durable = (Position(1), hurries);
            installer
                .install(pages, durable, Mark(1), &mut outbox)
                .len()
        };
        assert_eq!(install(&mut installer, &mut pages, false), 0);
        assert_eq!(install(&mut installer, &mut pages, true), 3);
        installer.made_durable(Mark(1), &mut pages);
        assert_eq!(install(&mut installer, &mut pages, true), 0, "all is done");
        // A position that changed no page.
        let mut trim = |hurries| {
            let durable = (Position(2), hurries);
            installer.trim(&pages, durable, Mark(2)).len()
        };
        assert_eq!((trim(false), trim(true)), (0, 2));
    }

    #[test]
    fn a_page_that_has_to_be_loaded_stays_until_it_is_installed() {
        let mut pages = Pages::new(0, 0);
        let mut installer = Installer::new(Position(0), 1, 100);
        let slots = PageSlots::Some(Vec::new());
        let change = PageChange { page: PAGE, slots };
        pages.recover(change, Position(1), Stamp::default());
        let mut outbox = Outbox::new();
        let ops = installer.install(&mut pages, (Position(1), false), Mark(1), &mut outbox);
        assert!(ops.is_empty() && installer.needs(PAGE));
        pages.loaded(PAGE, None, Position(1));
        let ops = installer.install(&mut pages, (Position(1), false), Mark(1), &mut outbox);
        assert!(!ops.is_empty() && !installer.needs(PAGE));
    }
}
