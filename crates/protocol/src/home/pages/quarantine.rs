//! Changes of damaged pages. They cannot be installed, and in the MOB they would
//! keep the log from ever being trimmed at their position. So they get a record
//! of their own, and are applied when the page can be read again (foundation 6).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::records::{Modified, QuarantineRecord};
use thorp_model::{PageId, Position};

/// What was set aside, by page. A page is listed as long as it has a record,
/// also when its changes are back in the MOB.
#[derive(Debug, Default)]
pub(in crate::home) struct Quarantine {
    pages: BTreeMap<PageId, Vec<Modified>>,
}

impl Quarantine {
    /// Pages with a record.
    pub(in crate::home) fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether a page has a record.
    pub(in crate::home) fn has(&self, page: PageId) -> bool {
        self.pages.contains_key(&page)
    }

    /// Whether a page's change at a position was set aside.
    pub(in crate::home) fn has_change(&self, page: PageId, position: Position) -> bool {
        let last = self.pages.get(&page).and_then(|changes| changes.last());
        last.is_some_and(|last| position <= last.position)
    }

    /// Takes a record from the store, when the home starts.
    pub(in crate::home) fn recover(&mut self, page: PageId, record: QuarantineRecord) {
        self.pages.insert(page, record.changes);
    }

    /// A page is about to have a record.
    pub(in crate::home) fn list(&mut self, page: PageId) {
        self.pages.entry(page).or_default();
    }

    /// The changes of a page.
    pub(in crate::home) fn changes(&self, page: PageId) -> &[Modified] {
        self.pages.get(&page).map_or(&[], Vec::as_slice)
    }

    /// Adds changes, later than those that are there.
    pub(in crate::home) fn add(&mut self, page: PageId, changes: Vec<Modified>) {
        self.pages.entry(page).or_default().extend(changes);
    }

    /// Takes out the changes of a page; it stays listed.
    pub(in crate::home) fn take(&mut self, page: PageId) -> Vec<Modified> {
        let changes = self.pages.get_mut(&page);
        changes.map(core::mem::take).unwrap_or_default()
    }

    /// The record of a page goes: with its image, or with the page.
    pub(in crate::home) fn forget(&mut self, page: PageId) {
        self.pages.remove(&page);
    }
}
