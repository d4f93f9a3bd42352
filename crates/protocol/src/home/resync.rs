//! What became of the pages that a child holds from an earlier stream (rule 13).

use crate::edge::downstream::{Children, cut_off};
use crate::home::Outbox;
use crate::home::commit::changes::Verdict;
use crate::home::log::Log;
use crate::home::tables::Tables;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use thorp_model::limits::REPORT_PAGES_MAX;
use thorp_model::planted::Bug;
use thorp_model::{
    Down, EdgeId, HomeId, Note, PageDigest, PageId, Position, Reported, SlotSet, message, planted,
};

/// Answers a child's report.
#[derive(Debug)]
pub(super) struct Resync<'a> {
    pub(super) home: HomeId,
    pub(super) children: &'a mut Children,
    pub(super) log: &'a Log,
    pub(super) tables: &'a Tables,
    /// The log begins above this position.
    pub(super) installed: Position,
}

impl Resync<'_> {
    /// Enters the child for everything that it reports, then says what has
    /// changed (rule 2): whatever is told later, it hears.
    pub(super) fn report(&mut self, edge: EdgeId, report: &message::Report, outbox: &mut Outbox) {
        let pages = &report.pages;
        if pages.len() > REPORT_PAGES_MAX {
            return cut_off(edge, "more pages in a report than may be", outbox);
        }
        // A page that is not there, or that the child may not read any more, is as one that has changed (rule R4). Nobody
        // is entered for it: reports make the home grow only as far as there are pages (rule 15).
        let may_hold = |page: PageId| self.may_read(edge, page) && self.is_there(page);
        let (pages, hidden): (Vec<Reported>, Vec<Reported>) =
            pages.iter().partition(|page| may_hold(page.page));
        let Some((entry, mut changed)) = self.children.enter_reported(edge, &pages) else {
            return;
        };
        if !changed.is_empty() {
            outbox.note(Note::ChildLimited);
        }
        let stale = pages.iter().filter(|page| self.may_have_changed(page));
        changed.extend(stale.map(|reported| reported.page));
        changed.extend(hidden.iter().map(|reported| reported.page));
        let digests = match self.children.is_member(edge) {
            true => Vec::new(),
            false => self.digests(&pages, &changed),
        };
        outbox.down(
            edge,
            Down::Resynchronised(message::Resynchronised {
                home: self.home,
                report: report.report,
                entry,
                position: self.log.durable(),
                changed,
                open: Vec::new(),
                digests,
            }),
        );
    }

    /// The digests of pages that have not changed and are in memory. Of others a site asks for an image, if it needs one
    /// (rule R6).
    fn digests(&self, pages: &[Reported], changed: &[PageId]) -> Vec<(PageId, PageDigest)> {
        let changed: BTreeSet<PageId> = changed.iter().copied().collect();
        // A copy with holes helps nobody, and a digest costs the time of reading the page.
        let complete = pages.iter().filter(|reported| reported.complete);
        let same = complete.map(|reported| reported.page);
        let same = same.filter(|page| !changed.contains(page));
        let known = |page| {
            let image = self.tables.pages.durable_image(page)?;
            Some((page, PageDigest::of(image)))
        };
        same.filter_map(known).collect()
    }

    /// Whether a page may have changed since a child's copy was right, as far as
    /// is known without a look at the disk. What is accepted and not yet durable
    /// counts: a copy that is given up in vain does no harm.
    fn may_have_changed(&self, reported: &Reported) -> bool {
        let Reported { page, as_of, .. } = *reported;
        if planted::is(Bug::VersionsIgnored) {
            return false;
        }
        if as_of > self.log.durable() {
            return true;
        }
        match self.tables.changes.judge(page, &SlotSet::ALL, as_of, &[]) {
            Verdict::Current => false,
            Verdict::Changed(_) => true,
            Verdict::AskPage => {
                let pages = &self.tables.pages;
                pages.may_have_changed(page, as_of, self.installed)
            }
        }
    }

    fn may_read(&self, edge: EdgeId, page: PageId) -> bool {
        self.children.may_read(edge, page.segment) || planted::is(Bug::RightsNotChecked)
    }

    fn is_there(&self, page: PageId) -> bool {
        let segments = &self.tables.segments;
        segments.get(page.segment).is_some()
            && !segments.is_removing(page.segment)
            && !self.tables.is_not_named_yet(page)
    }
}
