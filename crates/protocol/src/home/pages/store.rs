//! A home's pages: installed images in memory, the modified-object buffer (MOB)
//! above them, and what is accepted but not yet durable above that.
//!
//! ```text
//! store: installed image      version i
//! MOB:   changes above i      (also in the log; replayed when the page is loaded)
//! memory: [durable image, image after the next accepted commit, ..., tip]
//! ```

use crate::home::pages::quarantine::Quarantine;
use crate::home::{HomeAction, Outbox};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use thorp_model::limits::{INSTALL_PAGES_MAX, INSTALL_PAGES_MIN, MOB_FULL_TIMES};
use thorp_model::records::{Modified, QuarantineRecord};
use thorp_model::{
    Image, Op, PageChange, PageId, PageSlots, Position, SegmentId, Stamp, Table, change, records,
};

#[derive(Debug, Default)]
struct HomePage {
    /// The durable image, then one for each accepted commit that changed the
    /// page. Empty if the page is not in memory; an image is `None` if the page is gone.
    versions: VecDeque<(Position, Option<Image>)>,
    /// Changes above the installed image.
    mob: Vec<Modified>,
    loading: bool,
    /// Something was installed while the page was being loaded: what comes may be older.
    load_again: bool,
    damaged: bool,
    used: u64,
}

/// All pages of a home that are in memory or modified.
#[derive(Debug)]
pub(in crate::home) struct Pages {
    pages: BTreeMap<PageId, HomePage>,
    by_use: BTreeSet<(u64, PageId)>,
    by_first_change: BTreeSet<(Position, PageId)>,
    /// What was set aside of damaged pages.
    pub(in crate::home) quarantine: Quarantine,
    /// Changes up to here may have left the MOB, for pages that were installed or set aside:
    /// often long before everything below is installed.
    left_mob: Position,
    uses: u64,
    image_bytes: usize,
    mob_bytes: usize,
    cache_bytes: usize,
    mob_bytes_high: usize,
    install_pages_max: usize,
}

/// What is to be written when a page is installed.
#[derive(Debug)]
pub(in crate::home) struct Installable {
    /// The page.
    pub(in crate::home) page: PageId,
    /// Its durable image; `None` if it is gone.
    pub(in crate::home) image: Option<Image>,
}

const CHANGE_BYTES: usize = 64;

/// What a version is charged beside its bytes: also the absence of a page is kept.
const VERSION_BYTES: usize = 256;

impl Pages {
    /// Keeps images up to a number of bytes, beside those that must be kept.
    pub(in crate::home) fn new(cache_bytes: usize, mob_bytes_high: usize) -> Self {
        Pages {
            pages: BTreeMap::new(),
            by_use: BTreeSet::new(),
            by_first_change: BTreeSet::new(),
            quarantine: Quarantine::default(),
            left_mob: Position(0),
            uses: 0,
            image_bytes: 0,
            mob_bytes: 0,
            cache_bytes,
            mob_bytes_high,
            install_pages_max: INSTALL_PAGES_MAX,
        }
    }

    /// Whether a page's image is in memory.
    pub(in crate::home) fn is_loaded(&self, page: PageId) -> bool {
        self.pages
            .get(&page)
            .is_some_and(|p| !p.versions.is_empty())
    }

    /// Whether a page's image is on its way from the store.
    pub(in crate::home) fn is_loading(&self, page: PageId) -> bool {
        self.pages.get(&page).is_some_and(|p| p.loading)
    }

    /// Whether a page's image is in memory, and has changes that are not installed.
    pub(in crate::home) fn is_modified(&self, page: PageId) -> bool {
        let known = self.pages.get(&page);
        known.is_some_and(|p| !p.versions.is_empty() && !p.mob.is_empty())
    }

    /// Whether what is stored for the page is damaged.
    pub(in crate::home) fn is_damaged(&self, page: PageId) -> bool {
        self.pages.get(&page).is_some_and(|p| p.damaged)
    }

    /// The image with every accepted commit; an empty one for a page that is gone.
    pub(in crate::home) fn tip(&mut self, page: PageId) -> Option<Image> {
        self.touch(page);
        let versions = &self.pages.get(&page)?.versions;
        Some(versions.back()?.1.clone().unwrap_or_else(Image::empty))
    }

    /// The image with every durable commit.
    pub(in crate::home) fn durable(&mut self, page: PageId) -> Option<Image> {
        self.touch(page);
        let versions = &self.pages.get(&page)?.versions;
        Some(versions.front()?.1.clone().unwrap_or_else(Image::empty))
    }

    /// The same for a page that is in memory and not gone. It does not count as a use.
    pub(in crate::home) fn durable_image(&self, page: PageId) -> Option<&Image> {
        self.pages.get(&page)?.versions.front()?.1.as_ref()
    }

    /// Whether a page may have changed above a position, as far as its image, its
    /// changes and what is installed tell. `installed` is where the log begins:
    /// single pages may be installed above it, of which nothing is known any more.
    pub(in crate::home) fn may_have_changed(
        &self,
        page: PageId,
        as_of: Position,
        installed: Position,
    ) -> bool {
        if !self.quarantine.changes(page).is_empty() {
            return true;
        }
        let installed = installed.max(self.left_mob);
        let Some(entry) = self.pages.get(&page) else {
            return as_of < installed;
        };
        if let Some((position, image)) = entry.versions.back() {
            // When a page that is gone went, its image cannot tell.
            return image.is_none() || *position > as_of;
        }
        let last = entry.mob.last().map(|modified| modified.position);
        entry.damaged || last.unwrap_or(installed).max(installed) > as_of
    }

    /// Asks the store for a page, if it is not in memory and not on its way.
    pub(in crate::home) fn load(&mut self, page: PageId, outbox: &mut Outbox) {
        if self.begin_load(page) {
            outbox.act(HomeAction::Load(page));
        }
    }

    /// Whether a page has to be asked of the store; true only once.
    fn begin_load(&mut self, page: PageId) -> bool {
        let entry = self.pages.entry(page).or_default();
        let begin = entry.versions.is_empty() && !entry.loading && !entry.damaged;
        entry.loading |= begin;
        begin
    }

    /// A page that was never written: nothing is to be loaded for it.
    pub(in crate::home) fn put_fresh(&mut self, page: PageId) {
        if !self.is_loaded(page) {
            self.put_base(page, None, Position(0));
        }
    }

    /// The store's answer. False if it must be asked again.
    pub(in crate::home) fn loaded(
        &mut self,
        page: PageId,
        base: Option<Image>,
        durable: Position,
    ) -> bool {
        let Some(entry) = self.pages.get_mut(&page) else {
            return true;
        };
        if core::mem::take(&mut entry.load_again) {
            return false;
        }
        entry.loading = false;
        if entry.versions.is_empty() {
            self.put_base(page, base, durable);
        }
        true
    }

    /// The store's answer was damaged.
    pub(in crate::home) fn load_failed(&mut self, page: PageId) {
        let entry = self.pages.entry(page).or_default();
        entry.loading = false;
        entry.damaged = true;
    }

    fn put_base(&mut self, page: PageId, base: Option<Image>, durable: Position) {
        self.take_back(page);
        let entry = self.pages.entry(page).or_default();
        let floor = base.as_ref().map_or(Position(0), Image::version);
        let (mut position, mut image) = (floor, base);
        let mut versions = VecDeque::new();
        for modified in entry.mob.iter().filter(|m| m.position > floor) {
            if modified.position > durable {
                versions.push_back((position, image.clone()));
            }
            image = after(image.as_ref(), modified);
            position = modified.position;
        }
        versions.push_back((position, image));
        self.image_bytes += bytes_of(&versions);
        entry.versions = versions;
        self.touch(page);
    }

    /// Takes an accepted change; the page is loaded, or it is gone as a whole.
    pub(in crate::home) fn accept(&mut self, change: PageChange, position: Position, stamp: Stamp) {
        let page = change.page;
        let modified = Modified {
            position,
            stamp,
            change,
        };
        let entry = self.pages.entry(page).or_default();
        if let Some((_, tip)) = entry.versions.back() {
            let image = after(tip.as_ref(), &modified);
            self.image_bytes += charge(image.as_ref());
            entry.versions.push_back((position, image));
        }
        self.push_mob(page, modified);
    }

    /// Takes a change from the log when the home starts, after what was set aside.
    pub(in crate::home) fn recover(
        &mut self,
        change: PageChange,
        position: Position,
        stamp: Stamp,
    ) {
        let page = change.page;
        if self.quarantine.has_change(page, position) {
            return;
        }
        self.push_mob(
            page,
            Modified {
                position,
                stamp,
                change,
            },
        );
    }

    fn push_mob(&mut self, page: PageId, modified: Modified) {
        let entry = self.pages.entry(page).or_default();
        self.mob_bytes += modified.change.bytes() + CHANGE_BYTES;
        if entry.mob.is_empty() {
            self.by_first_change.insert((modified.position, page));
        }
        entry.mob.push(modified);
    }

    /// Bytes of a page's newest image: what a commit that changed it keeps in
    /// memory until it is durable.
    pub(in crate::home) fn tip_bytes(&self, page: PageId) -> usize {
        let tip = self.pages.get(&page).and_then(|p| p.versions.back());
        tip.map_or(0, |(_, image)| charge(image.as_ref()))
    }

    /// A commit became durable: older images of its pages are not needed.
    pub(in crate::home) fn made_durable(&mut self, page: PageId, position: Position) {
        let Some(entry) = self.pages.get_mut(&page) else {
            return;
        };
        while entry.versions.get(1).is_some_and(|(p, _)| *p <= position) {
            if let Some((_, image)) = entry.versions.pop_front() {
                self.image_bytes -= charge(image.as_ref());
            }
        }
    }

    /// The same, with another most for what one batch installs.
    pub(in crate::home) fn installing_at_most(self, install_pages_max: usize) -> Self {
        Pages {
            install_pages_max,
            ..self
        }
    }

    /// Bytes of modified objects.
    pub(in crate::home) fn mob_bytes(&self) -> usize {
        self.mob_bytes
    }

    /// Whether installation has fallen so far behind that nothing more is accepted.
    pub(in crate::home) fn mob_is_full(&self) -> bool {
        self.mob_bytes > self.mob_bytes_high.saturating_mul(MOB_FULL_TIMES)
    }

    /// How many pages one installation takes: the more there is above the mark, the more. There is
    /// one at a time, and each waits for all the commits before it.
    pub(in crate::home) fn install_pages(&self) -> usize {
        let high = self.mob_bytes_high.max(1);
        let excess = self.mob_bytes.saturating_sub(high);
        let more = self.install_pages_max.saturating_sub(INSTALL_PAGES_MIN);
        let most = high.saturating_mul(MOB_FULL_TIMES - 1);
        INSTALL_PAGES_MIN + (excess.min(most) as u128 * more as u128 / most as u128) as usize
    }

    /// Whether so much is modified that it should be installed.
    pub(in crate::home) fn mob_is_high(&self) -> bool {
        self.mob_bytes >= self.mob_bytes_high
    }

    /// Bytes of images in memory.
    pub(in crate::home) fn image_bytes(&self) -> usize {
        self.image_bytes
    }

    /// Pages known.
    pub(in crate::home) fn len(&self) -> usize {
        self.pages.len()
    }

    /// The pages that were modified first, up to `durable`.
    pub(in crate::home) fn oldest_modified(&self, count: usize, durable: Position) -> Vec<PageId> {
        self.by_first_change
            .iter()
            .take_while(|(first, _)| *first <= durable)
            .take(count)
            .map(|(_, page)| *page)
            .collect()
    }

    /// The position below which everything would be installed if these pages were.
    pub(in crate::home) fn installed_without(
        &self,
        pages: &[PageId],
        durable: Position,
    ) -> Position {
        let rest = self
            .by_first_change
            .iter()
            .find(|(_, page)| !pages.contains(page));
        let first = rest.map_or(Position(u64::MAX), |(first, _)| *first);
        durable.min(Position(first.0 - 1))
    }

    /// What to write for a page; `None` if it has to be loaded first.
    pub(in crate::home) fn installable(&self, page: PageId) -> Option<Installable> {
        let entry = self.pages.get(&page)?;
        if let Some((_, image)) = entry.versions.front() {
            return Some(Installable {
                page,
                image: image.clone(),
            });
        }
        // A page that ended needs no image: it goes whatever it was.
        let last = entry.mob.last()?;
        (last.change.slots == PageSlots::Whole).then_some(Installable { page, image: None })
    }

    /// The changes of a damaged page in the MOB.
    fn changes_of_damaged(&self, page: PageId, durable: Position) -> Vec<Modified> {
        let damaged = self.pages.get(&page).filter(|entry| entry.damaged);
        let changes = damaged.into_iter().flat_map(|entry| &entry.mob);
        changes.filter(|m| m.position <= durable).cloned().collect()
    }

    /// The operation that removes a page's record, if it has one.
    pub(in crate::home) fn no_more_aside(&self, page: PageId) -> Option<Op> {
        self.quarantine
            .has(page)
            .then(|| records::delete(Table::Meta, records::quarantine_key(page)))
    }

    /// The operation that sets a damaged page's durable changes aside; none if
    /// the page is not damaged, or has none.
    pub(in crate::home) fn begin_aside(&mut self, page: PageId, durable: Position) -> Option<Op> {
        let changes = self.changes_of_damaged(page, durable);
        if changes.is_empty() {
            return None;
        }
        let changes = [self.quarantine.changes(page), &changes].concat();
        self.quarantine.list(page);
        let key = records::quarantine_key(page);
        Some(records::put(
            Table::Meta,
            key,
            &QuarantineRecord { changes },
        ))
    }

    /// A damaged page's changes up to a position have a record: they leave the MOB.
    pub(in crate::home) fn set_aside(&mut self, page: PageId, position: Position) {
        let changes = self.changes_of_damaged(page, position);
        self.quarantine.add(page, changes);
        self.leave_mob(page, position);
    }

    /// A page can be read: what was set aside is to be installed again. The
    /// record stays until it is.
    fn take_back(&mut self, page: PageId) {
        if self.quarantine.changes(page).is_empty() {
            return;
        }
        let later = match self.pages.get_mut(&page) {
            Some(entry) => core::mem::take(&mut entry.mob),
            None => Vec::new(),
        };
        if let Some(first) = later.first() {
            self.by_first_change.remove(&(first.position, page));
        }
        let bytes = |m: &Modified| m.change.bytes() + CHANGE_BYTES;
        self.mob_bytes -= later.iter().map(bytes).sum::<usize>();
        for modified in self.quarantine.take(page).into_iter().chain(later) {
            self.push_mob(page, modified);
        }
    }

    /// A page was installed as of a position: its changes up to there are done.
    pub(in crate::home) fn installed(&mut self, page: PageId, position: Position) {
        self.quarantine.forget(page);
        self.leave_mob(page, position);
    }

    fn leave_mob(&mut self, page: PageId, position: Position) {
        // What a segment had that was removed is gone in any case.
        if position < Position(u64::MAX) {
            self.left_mob = self.left_mob.max(position);
        }
        let Some(entry) = self.pages.get_mut(&page) else {
            return;
        };
        let first = entry.mob.first().map(|m| m.position);
        let (done, rest): (Vec<_>, Vec<_>) = core::mem::take(&mut entry.mob)
            .into_iter()
            .partition(|m| m.position <= position);
        entry.mob = rest;
        entry.load_again |= entry.loading;
        // A page that ended is gone from the store, whatever was wrong with it.
        entry.damaged &= done
            .last()
            .is_none_or(|m| m.change.slots != PageSlots::Whole);
        let next = entry.mob.first().map(|m| m.position);
        self.mob_bytes -= done
            .iter()
            .map(|m| m.change.bytes() + CHANGE_BYTES)
            .sum::<usize>();
        if let Some(first) = first {
            self.by_first_change.remove(&(first, page));
        }
        if let Some(next) = next {
            self.by_first_change.insert((next, page));
        }
        self.forget_if_gone(page);
        self.forget_if_empty(page);
    }

    /// Drops everything of a segment that was removed.
    pub(in crate::home) fn forget_segment(&mut self, segment: SegmentId) {
        let range = PageId::new(segment.0, 0)..=PageId::new(segment.0, u32::MAX);
        let pages: Vec<PageId> = self.pages.range(range).map(|(page, _)| *page).collect();
        for page in pages {
            self.leave_mob(page, Position(u64::MAX));
            if let Some(entry) = self.pages.get_mut(&page) {
                entry.damaged = false;
            }
            self.unload(page);
        }
    }

    /// Gives up images that were not used for long, until they keep within the limit.
    /// What is `needed` stays: a commit that waits for several pages would never
    /// find all of them.
    pub(in crate::home) fn shrink(&mut self, needed: impl Fn(PageId) -> bool) {
        let mut kept = Vec::new();
        while self.image_bytes > self.cache_bytes {
            let Some((used, page)) = self.by_use.pop_first() else {
                break;
            };
            let pinned = self.pages.get(&page).is_some_and(|p| p.versions.len() > 1);
            if pinned || needed(page) {
                kept.push((used, page));
            } else {
                self.unload(page);
            }
        }
        self.by_use.extend(kept);
    }

    fn unload(&mut self, page: PageId) {
        let Some(entry) = self.pages.get_mut(&page) else {
            return;
        };
        self.image_bytes -= bytes_of(&entry.versions);
        self.by_use.remove(&(entry.used, page));
        entry.versions.clear();
        self.forget_if_empty(page);
    }

    /// A page that ended has no image that could ever be given up for its bytes.
    fn forget_if_gone(&mut self, page: PageId) {
        let gone = self.pages.get(&page).is_some_and(|p| {
            p.mob.is_empty() && p.versions.len() == 1 && p.versions[0].1.is_none()
        });
        if gone {
            self.unload(page);
        }
    }

    fn forget_if_empty(&mut self, page: PageId) {
        let empty = self
            .pages
            .get(&page)
            .is_some_and(|p| p.versions.is_empty() && p.mob.is_empty() && !p.loading && !p.damaged);
        if empty {
            self.pages.remove(&page);
        }
    }

    fn touch(&mut self, page: PageId) {
        if let Some(entry) = self.pages.get_mut(&page)
            && !entry.versions.is_empty()
        {
            self.by_use.remove(&(entry.used, page));
            self.uses += 1;
            entry.used = self.uses;
            self.by_use.insert((entry.used, page));
        }
    }
}

fn bytes_of(versions: &VecDeque<(Position, Option<Image>)>) -> usize {
    let images = versions.iter().map(|(_, image)| image.as_ref());
    images.map(charge).sum()
}

fn charge(image: Option<&Image>) -> usize {
    VERSION_BYTES + image.map_or(0, |image| image.bytes().len())
}

fn after(image: Option<&Image>, modified: &Modified) -> Option<Image> {
    let empty;
    let base = match image {
        Some(image) => image,
        None => {
            empty = Image::empty();
            &empty
        }
    };
    change::apply(base, &modified.change, modified.position, modified.stamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_was_installed_beyond_the_beginning_of_the_log_may_have_changed() {
        let (changed, log_begins) = (PageId::new(1, 3), Position(5));
        let mut pages = Pages::new(0, 0);
        pages.recover(
            PageChange {
                page: changed,
                slots: PageSlots::Some(Vec::new()),
            },
            Position(14),
            Stamp::default(),
        );
        assert!(pages.may_have_changed(changed, Position(13), log_begins));
        assert!(!pages.may_have_changed(changed, Position(14), log_begins));
        // Its change is gone from the MOB, and the log is not trimmed so far.
        pages.installed(changed, Position(14));
        assert!(pages.may_have_changed(changed, Position(13), log_begins));
        assert!(!pages.may_have_changed(changed, Position(14), log_begins));
    }
}
