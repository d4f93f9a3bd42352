//! Changes of damaged pages. They cannot be installed, and in the MOB they would
//! keep the log from ever being trimmed at their position. So they get a record
//! of their own, and are applied when the page can be read again (decision 6).

use super::pages::Pages;
use super::records::{self, AsideRecord, Modified};
use crate::ids::{PageId, Position};
use crate::storage::{Op, Table};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// What was set aside, by page. A page is listed as long as it has a record,
/// also when its changes are back in the MOB.
#[derive(Debug, Default)]
pub(super) struct Aside {
    pages: BTreeMap<PageId, Vec<Modified>>,
}

impl Aside {
    /// Pages with a record.
    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether a page has a record.
    pub(super) fn has(&self, page: PageId) -> bool {
        self.pages.contains_key(&page)
    }

    /// Whether a page's change at a position was set aside.
    pub(super) fn has_change(&self, page: PageId, position: Position) -> bool {
        let last = self.pages.get(&page).and_then(|changes| changes.last());
        last.is_some_and(|last| position <= last.position)
    }

    /// Takes a record from the store, when the home starts.
    pub(super) fn recover(&mut self, page: PageId, record: AsideRecord) {
        self.pages.insert(page, record.changes);
    }

    /// A page is about to have a record.
    pub(super) fn list(&mut self, page: PageId) {
        self.pages.entry(page).or_default();
    }

    /// The changes of a page.
    pub(super) fn changes(&self, page: PageId) -> &[Modified] {
        self.pages.get(&page).map_or(&[], Vec::as_slice)
    }

    /// Adds changes, later than those that are there.
    pub(super) fn add(&mut self, page: PageId, changes: Vec<Modified>) {
        self.pages.entry(page).or_default().extend(changes);
    }

    /// Takes out the changes of a page; it stays listed.
    pub(super) fn take(&mut self, page: PageId) -> Vec<Modified> {
        let changes = self.pages.get_mut(&page);
        changes.map(core::mem::take).unwrap_or_default()
    }

    /// The record of a page goes: with its image, or with the page.
    pub(super) fn forget(&mut self, page: PageId) {
        self.pages.remove(&page);
    }
}

impl Pages {
    /// The operation that removes a page's record, if it has one.
    pub(super) fn no_more_aside(&self, page: PageId) -> Option<Op> {
        self.aside
            .has(page)
            .then(|| records::delete(Table::Meta, records::aside_key(page)))
    }

    /// The operation that sets a damaged page's durable changes aside; none if
    /// the page is not damaged, or has none.
    pub(super) fn begin_aside(&mut self, page: PageId, durable: Position) -> Option<Op> {
        let changes = self.changes_of_damaged(page, durable);
        if changes.is_empty() {
            return None;
        }
        let changes = [self.aside.changes(page), &changes].concat();
        self.aside.list(page);
        let key = records::aside_key(page);
        Some(records::put(Table::Meta, key, &AsideRecord { changes }))
    }
}
