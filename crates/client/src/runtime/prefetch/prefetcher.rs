//! Requests the pages that the policy chooses.

use super::counts::PrefetchCounts;
use super::policy::PrefetchPolicy;
use crate::head_page::{EXTENT_SLOT, HEAD_PAGE};
use crate::runtime::homes::Homes;
use crate::runtime::request_sender::RequestSender;
use std::sync::Arc;
use std::time::Duration;
use thorp_cache::{Cache, ReadSet};
use thorp_model::{Content, PageId, PageNo, Place, Reference};
use thorp_protocol::Request;

/// Tells the policy what the program reads and what the site sends, and requests the pages that the policy chooses. It
/// requests no page that is cached without holes.
pub(crate) struct Prefetcher {
    policy: PrefetchPolicy,
    cache: Arc<Cache>,
    homes: Arc<Homes>,
    sender: Arc<RequestSender>,
}

impl Prefetcher {
    pub(in crate::runtime) fn new(
        pages_max: usize,
        cache: Arc<Cache>,
        homes: Arc<Homes>,
        sender: Arc<RequestSender>,
    ) -> Self {
        Prefetcher {
            policy: PrefetchPolicy::new(pages_max),
            cache,
            homes,
            sender,
        }
    }

    /// Requests a page that no thread waits for, and does not count it.
    pub(crate) fn prefetch(&self, place: Place) {
        if !self.is_here(place) {
            self.request([place]);
        }
    }

    /// Requests the pages of objects that the program will read.
    pub(crate) fn named(&self, references: &[Reference]) {
        let mut last = None;
        for reference in references {
            let place = place_of(reference);
            // References that are neighbours are often of one page.
            if last != Some(place) {
                self.named_page(place);
                last = Some(place);
            }
        }
    }

    fn named_page(&self, place: Place) {
        if self.policy.is_on() && !self.is_here(place) && self.homes.is_known(place.home) {
            self.policy.named(place);
            self.request([place]);
        }
    }

    /// A value that was read refers to these objects.
    pub(crate) fn referred(&self, references: &[Reference]) {
        let places = references.iter().map(place_of);
        let chosen = self.policy.referred(places, |place| self.is_here(place));
        let known = |place: &Place| self.homes.is_known(place.home);
        self.request(chosen.into_iter().filter(known));
    }

    /// The site sent a hint.
    pub(in crate::runtime) fn hinted(&self, likely: &[Place]) {
        self.request(self.policy.hinted(likely, |place| self.is_here(place)));
    }

    /// A prefetched page is fetched for a neighbour, too.
    pub(in crate::runtime) fn joined(&self, place: Place) {
        self.request(self.policy.joined(place, |place| self.is_here(place)));
    }

    /// A page has arrived.
    pub(in crate::runtime) fn arrived(&self, place: Place) {
        self.request(self.policy.arrived(place, |place| self.is_here(place)));
    }

    /// A thread waits for a page: requests the pages that are likely to be wanted after it.
    pub(crate) fn missed(&self, place: Place, reads: &ReadSet) {
        if !self.policy.is_on() || place.page.page.is_overflow() {
            return;
        }
        let is_read = |place| reads.image(place).is_some();
        let extent = self.extent(place);
        let is_here = |place| self.is_here(place);
        self.request(self.policy.missed(place, extent, is_read, is_here));
    }

    /// A page that a thread waited for came after this time.
    pub(crate) fn came(&self, place: Place, after: Duration) {
        self.policy.came(place, after);
    }

    /// A transaction with these reads has ended.
    pub(crate) fn ended(&self, reads: &ReadSet) {
        let pages = |home| {
            let pages = reads.reads(home);
            pages.map(move |(page, _)| Place { home, page })
        };
        let read = reads.homes().flat_map(pages);
        let is_read = |place| reads.image(place).is_some();
        self.policy.ended(read, is_read);
    }

    /// Whether a page was prefetched, and is not known to have been read.
    pub(crate) fn is_open(&self, place: Place) -> bool {
        self.policy.is_open(place)
    }

    pub(crate) fn counts(&self) -> PrefetchCounts {
        self.policy.counts()
    }

    fn request(&self, places: impl IntoIterator<Item = Place>) {
        for place in places {
            self.sender.try_send(Request::Prefetch(place));
        }
    }

    /// The first page of a segment that holds nothing. If the head page is not here, it is requested, too.
    fn extent(&self, of: Place) -> Option<PageNo> {
        let page = PageId {
            page: HEAD_PAGE,
            ..of.page
        };
        let head = Place { page, ..of };
        let image = self.cache.image(head);
        if let Some(Content::Value(bytes)) = image.as_ref().map(|image| image.content(EXTENT_SLOT))
        {
            return bytes.try_into().ok().map(u32::from_le_bytes).map(PageNo);
        }
        self.prefetch(head);
        None
    }

    fn is_here(&self, place: Place) -> bool {
        let image = self.cache.image(place);
        image.is_some_and(|image| image.is_complete())
    }
}

fn place_of(reference: &Reference) -> Place {
    Place {
        home: reference.home,
        page: reference.object.page,
    }
}
