//! The pages that are on their way: asked for, answered in the stream or beside it, and
//! brought to where the stream stands (rule 9).

use crate::edge::upstream::overtaken::Overtaken;
use crate::edge::upstream::parent::Parent;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::{
    FETCH_RETRY_MS, KEPT_CHANGE_BYTES_MAX, KEPT_CHANGES_MAX, PEER_FETCH_MS_MAX,
};
use thorp_model::planted::Bug;
use thorp_model::{
    Attempt, EntryNo, FetchRefusal, FetchResult, Image, Millis, Note, Outbox, PageChange, PageId,
    PageSlots, PeerImage, Position, Stamp, Up, change, message, planted,
};

/// The pages that are on their way. `W` is who waits for one.
///
/// Invariant: numbers of attempts only rise. An entry at the parent whose image was dropped is with its page while that
/// is on its way, and in `strays` when it is not.
#[derive(Debug)]
pub(super) struct Fetches<W> {
    pages: BTreeMap<PageId, Fetching<W>>,
    attempts: Attempt,
    overtaken: Overtaken,
    /// Entries at the parent whose images were dropped, of pages that are not on
    /// their way: see [`Fetches::take_strays`].
    strays: Vec<(PageId, EntryNo)>,
    /// Messages kept for a page that is on its way.
    pub(super) kept_changes_max: usize,
}

/// A page that is on its way.
#[derive(Debug)]
struct Fetching<W> {
    /// The first try. An answer to an older one belongs to an earlier request for
    /// the page: a neighbour's image may have overtaken it, and have been given up
    /// since under a higher number (rule 2).
    first: Attempt,
    attempt: Attempt,
    asked: Millis,
    peers: bool,
    want: Want,
    /// Whether the last try said that it is ahead.
    was_ahead: bool,
    waiting: Vec<W>,
    /// The highest entry number that came with an image that was dropped.
    entry: EntryNo,
    /// Stream messages of the page since it was asked for.
    kept: Vec<(Position, Stamp, PageChange)>,
    /// Bytes of them.
    kept_bytes: usize,
    /// An image that may not be shown yet.
    arrived: Option<Arrived>,
}

/// How a page is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Want {
    /// Nobody waits for it.
    pub ahead: bool,
    /// Of how many of its next changes the values are wanted, too (rule 8).
    pub updates: u8,
}

/// An image that waits until this node and its parent stand where it may be shown.
#[derive(Debug)]
struct Arrived {
    position: Position,
    entry: EntryNo,
    image: Image,
    beside: bool,
}

/// A request for a page that has ended.
#[derive(Debug)]
pub(crate) struct Fetched<W> {
    /// The page.
    pub page: PageId,
    /// The entering that its image carried.
    pub entry: EntryNo,
    /// Whether it was answered beside the stream: by a neighbour, or by the home itself.
    pub beside: bool,
    /// The image as of the child's position, or why there is none.
    pub result: Result<Image, FetchRefusal>,
    /// Who waited for it.
    pub waiting: Vec<W>,
}

impl<W> Fetches<W> {
    /// Nothing is on its way.
    pub(super) fn new() -> Self {
        Fetches {
            pages: BTreeMap::new(),
            attempts: Attempt(0),
            overtaken: Overtaken::default(),
            strays: Vec::new(),
            kept_changes_max: KEPT_CHANGES_MAX,
        }
    }

    /// A stream begins: what was on its way under another epoch is asked anew. Entries ended with the old epoch.
    pub(super) fn begin<A>(&mut self, now: Millis, parent: Parent, outbox: &mut Outbox<A>) {
        self.strays.clear();
        self.overtaken.clear();
        self.ask_all_again(now, parent, outbox);
    }

    /// Whether a page is on its way.
    pub(super) fn is_fetching(&self, page: PageId) -> bool {
        self.pages.contains_key(&page)
    }

    /// Pages on their way.
    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }

    /// Of them those that nobody waits for.
    pub(super) fn ahead(&self) -> usize {
        let all = self.pages.values();
        all.filter(|fetching| fetching.want.ahead).count()
    }

    /// Who waits for pages.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &W> {
        self.pages.values().flat_map(|fetching| &fetching.waiting)
    }

    /// Who waits for a page, the first first.
    pub(super) fn waiting_for(&self, page: PageId) -> impl ExactSizeIterator<Item = &W> {
        let fetching = self.pages.get(&page);
        fetching
            .map_or(&[][..], |fetching| &fetching.waiting)
            .iter()
    }

    /// Forgets those who wait no more.
    pub(super) fn retain_waiting(&mut self, mut keep: impl FnMut(&W) -> bool) {
        for fetching in self.pages.values_mut() {
            fetching.waiting.retain(&mut keep);
        }
    }

    /// Asks for a page, or joins a request that is in flight. One that is waited for makes another
    /// that was ahead one that is waited for, too: if it is refused for want of space, it is asked anew.
    pub(super) fn ask<A>(
        &mut self,
        page: PageId,
        want: Want,
        waiter: W,
        now: Millis,
        parent: Parent,
        outbox: &mut Outbox<A>,
    ) {
        if let Some(fetching) = self.pages.get_mut(&page) {
            fetching.want.ahead &= want.ahead;
            fetching.waiting.push(waiter);
            return outbox.note(Note::FetchJoined);
        }
        self.ask_first(page, want, alloc::vec![waiter], now, parent, outbox);
    }

    /// Asks for a page that nobody waits for, unless it is on its way.
    pub(super) fn ask_ahead<A>(
        &mut self,
        page: PageId,
        updates: u8,
        now: Millis,
        parent: Parent,
        outbox: &mut Outbox<A>,
    ) {
        if !self.is_fetching(page) {
            let want = Want {
                ahead: true,
                updates,
            };
            self.ask_first(page, want, Vec::new(), now, parent, outbox);
        }
    }

    fn ask_first<A>(
        &mut self,
        page: PageId,
        want: Want,
        waiting: Vec<W>,
        now: Millis,
        parent: Parent,
        outbox: &mut Outbox<A>,
    ) {
        let peers = parent.answers_beside() && !self.overtaken.take(page);
        self.pages.insert(
            page,
            Fetching {
                first: self.attempts.next(),
                attempt: Attempt(0),
                asked: now,
                peers,
                want,
                was_ahead: want.ahead,
                waiting,
                entry: EntryNo(0),
                kept: Vec::new(),
                kept_bytes: 0,
                arrived: None,
            },
        );
        outbox.note(Note::FetchSent);
        self.ask_again(page, peers, now, parent, outbox);
    }

    /// The stream has begun anew: entries ended with the old epoch.
    fn ask_all_again<A>(&mut self, now: Millis, parent: Parent, outbox: &mut Outbox<A>) {
        for fetching in self.pages.values_mut() {
            fetching.entry = EntryNo(0);
            fetching.arrived = None;
        }
        let pages: Vec<PageId> = self.pages.keys().copied().collect();
        for page in pages {
            self.ask_again(page, parent.answers_beside(), now, parent, outbox);
        }
    }

    /// Begins a new attempt; what belongs to an older one is dropped when it comes.
    fn ask_again<A>(
        &mut self,
        page: PageId,
        peers: bool,
        now: Millis,
        parent: Parent,
        outbox: &mut Outbox<A>,
    ) {
        self.attempts = self.attempts.next();
        let Some(fetching) = self.pages.get_mut(&page) else {
            return;
        };
        fetching.attempt = self.attempts;
        fetching.asked = now;
        fetching.peers = peers;
        fetching.was_ahead = fetching.want.ahead;
        fetching.kept.clear();
        fetching.kept_bytes = 0;
        if let Some(dropped) = fetching.arrived.take() {
            fetching.entry = fetching.entry.max(dropped.entry);
        }
        let Want { ahead, updates } = fetching.want;
        if let Some(edge) = parent.edge {
            outbox.up(
                edge,
                Up::Fetch(message::Fetch {
                    home: parent.home,
                    epoch: parent.epoch,
                    page,
                    attempt: self.attempts,
                    peers,
                    ahead,
                    updates,
                }),
            );
        }
    }

    /// Keeps what the stream says of pages that are on their way (bounded).
    pub(super) fn keep<A>(
        &mut self,
        (position, stamp): (Position, Stamp),
        changes: &[PageChange],
        now: Millis,
        parent: Parent,
        outbox: &mut Outbox<A>,
    ) {
        let mut overflowed = Vec::new();
        for change in changes {
            let Some(fetching) = self.pages.get_mut(&change.page) else {
                continue;
            };
            if !fetching.peers && fetching.arrived.is_none() {
                continue;
            }
            fetching.kept_bytes += change.bytes();
            let is_too_much = fetching.kept_bytes > KEPT_CHANGE_BYTES_MAX;
            if is_too_much || fetching.kept.len() >= self.kept_changes_max {
                overflowed.push(change.page);
                continue;
            }
            fetching.kept.push((position, stamp, change.clone()));
        }
        for page in overflowed {
            outbox.note(Note::KeptOverflowed);
            self.ask_again(page, false, now, parent, outbox);
        }
    }

    /// Takes an answer that came in the stream: it is as of the stream's place.
    pub(super) fn take_in_stream<A>(
        &mut self,
        response: message::FetchResponse,
        parent: Parent,
        outbox: &mut Outbox<A>,
    ) -> Option<Fetched<W>> {
        let message::FetchResponse { page, entry, .. } = response;
        let known = self.pages.get_mut(&page);
        // An answer in the stream is as of the stream's place, whichever try it
        // answers: over a slow link the answer to the first try may well come
        // after the second was sent.
        let Some(fetching) = known.filter(|f| f.is_answered_by(response.attempt)) else {
            outbox.note(Note::OtherAttemptDropped);
            self.drop_entered(page, entry);
            return None;
        };
        let result = response.result;
        let is_busy = matches!(result, FetchResult::Refused(FetchRefusal::Busy));
        if is_busy && fetching.was_ahead && !fetching.want.ahead {
            let (peers, asked) = (fetching.peers, fetching.asked);
            outbox.note(Note::FetchAskedAgain);
            self.drop_entered(page, entry);
            self.ask_again(page, peers, asked, parent, outbox);
            return None;
        }
        let result = match result {
            FetchResult::Image(image) if parent.is_apart => {
                outbox.note(Note::PeerImageWaited);
                fetching.arrived = Some(Arrived {
                    position: parent.sent,
                    entry,
                    image,
                    beside: false,
                });
                return None;
            }
            FetchResult::Image(image) => Ok(image),
            FetchResult::Refused(refusal) => Err(refusal),
        };
        let fetching = self.pages.remove(&page)?;
        let entry = entry.max(fetching.entry);
        if result.is_err() {
            self.drop_entered(page, entry);
        }
        Some(Fetched {
            page,
            entry,
            beside: false,
            result,
            waiting: fetching.waiting,
        })
    }

    /// The parent has entered the page and its image was not taken: the next
    /// notice has to carry this number, or the entry would stay (trap 22).
    /// So it is with a page that was reported, until it is known whether it stays.
    pub(super) fn drop_entered(&mut self, page: PageId, entry: EntryNo) {
        if entry == EntryNo(0) {
            return;
        }
        match self.pages.get_mut(&page) {
            Some(fetching) => fetching.entry = fetching.entry.max(entry),
            None => self.strays.push((page, entry)),
        }
    }

    /// Entries at the parent whose images were dropped. The owner keeps the
    /// number with the copy that it holds, or sends a notice if it holds none.
    pub(super) fn take_strays(&mut self) -> Vec<(PageId, EntryNo)> {
        core::mem::take(&mut self.strays)
    }

    /// Takes a helper's image, or the home's own, which came beside the stream. It is shown when
    /// the stream has come as far as its label (rule 9).
    pub(super) fn take_peer<A>(
        &mut self,
        peer: PeerImage,
        now: Millis,
        parent: Parent,
        outbox: &mut Outbox<A>,
    ) -> Option<Fetched<W>> {
        if peer.epoch != parent.epoch || parent.edge.is_none() {
            outbox.note(Note::OtherEpochDropped);
            return None;
        }
        let page = peer.page;
        let late = planted::is(Bug::LateAttemptTaken);
        let known = self.pages.get_mut(&page);
        let Some(fetching) = known.filter(|f| f.attempt == peer.attempt || late) else {
            outbox.note(Note::OtherAttemptDropped);
            self.drop_entered(page, peer.entry);
            return None;
        };
        let Some(image) = peer.image else {
            fetching.entry = fetching.entry.max(peer.entry);
            self.ask_again(page, false, now, parent, outbox);
            return None;
        };
        if peer.position > parent.position {
            outbox.note(Note::PeerImageWaited);
        }
        fetching.arrived = Some(Arrived {
            position: peer.position,
            entry: peer.entry,
            image,
            beside: true,
        });
        self.take_arrived(page, now, parent, outbox)
    }

    /// The images that the stream has caught up with.
    pub(super) fn caught_up<A>(
        &mut self,
        now: Millis,
        parent: Parent,
        outbox: &mut Outbox<A>,
    ) -> Vec<Fetched<W>> {
        let waiting: Vec<PageId> = self
            .pages
            .iter()
            .filter(|(_, fetching)| fetching.arrived.is_some())
            .map(|(page, _)| *page)
            .collect();
        let taken = waiting.into_iter();
        taken
            .filter_map(|page| self.take_arrived(page, now, parent, outbox))
            .collect()
    }

    fn take_arrived<A>(
        &mut self,
        page: PageId,
        now: Millis,
        parent: Parent,
        outbox: &mut Outbox<A>,
    ) -> Option<Fetched<W>> {
        let fetching = self.pages.get(&page)?;
        let arrived = fetching.arrived.as_ref()?;
        let early = arrived.position > parent.position || parent.is_apart;
        if early && !planted::is(Bug::LabelIgnored) {
            return None;
        }
        let (entry, beside) = (arrived.entry, arrived.beside);
        let was_complete = arrived.image.is_complete();
        let Some(image) = brought_up(arrived, &fetching.kept) else {
            // The page was invalidated as a whole meanwhile: nobody is entered for it now.
            self.ask_again(page, false, now, parent, outbox);
            return None;
        };
        outbox.note(Note::PeerImageTaken);
        if was_complete && !image.is_complete() && !parent.helpers {
            outbox.note(Note::ImageOvertaken);
            self.overtaken.note(page);
        }
        let fetching = self.pages.remove(&page)?;
        Some(Fetched {
            page,
            entry: entry.max(fetching.entry),
            beside,
            result: Ok(image),
            waiting: fetching.waiting,
        })
    }

    /// How many pages are asked for in the stream, next time.
    pub(super) fn overtaken(&self) -> usize {
        self.overtaken.len()
    }

    /// Asks again for what takes too long: a lost helper costs one try.
    pub(super) fn tick<A>(&mut self, now: Millis, parent: Parent, outbox: &mut Outbox<A>) {
        if parent.edge.is_none() {
            return;
        }
        let late: Vec<PageId> = self
            .pages
            .iter()
            .filter(|(_, fetching)| now >= fetching.retry_at(parent.helpers))
            .map(|(page, _)| *page)
            .collect();
        for page in late {
            outbox.note(Note::FetchAskedAgain);
            self.ask_again(page, false, now, parent, outbox);
        }
    }

    /// When [`Fetches::tick`] is wanted.
    pub(super) fn deadline(&self, parent: Parent) -> Option<Millis> {
        parent.edge?;
        let asked = self.pages.values();
        asked
            .map(|fetching| fetching.retry_at(parent.helpers))
            .min()
    }
}

impl<W> Fetching<W> {
    fn is_answered_by(&self, attempt: Attempt) -> bool {
        let first = match planted::is(Bug::OnlyLastTry) {
            true => self.attempt,
            false => self.first,
        };
        (first..=self.attempt).contains(&attempt)
    }

    /// A helper may be gone; a home that answers beside its stream is not missed sooner for that.
    fn retry_at(&self, helpers: bool) -> Millis {
        self.asked.plus(if self.peers && helpers {
            PEER_FETCH_MS_MAX
        } else {
            FETCH_RETRY_MS
        })
    }
}

/// An image with the kept messages above its label applied.
fn brought_up(arrived: &Arrived, kept: &[(Position, Stamp, PageChange)]) -> Option<Image> {
    let mut image = arrived.image.clone();
    if planted::is(Bug::LabelIgnored) {
        return Some(image);
    }
    for (position, stamp, change) in kept {
        if *position <= arrived.position {
            continue;
        }
        if change.slots == PageSlots::Whole {
            return None;
        }
        image = change::apply(&image, change, *position, *stamp)?;
    }
    Some(image)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::upstream::Upstream;
    use crate::fixture;
    use alloc::vec;
    use thorp_model::{Action, Blob, EdgeId, Generation, HomeId, Message, Slot, SlotChange};

    const NOW: Millis = Millis(0);

    fn asking(page: PageId) -> Upstream<()> {
        let mut up = Upstream::new(HomeId(1));
        up.images_beside = true;
        let begin = fixture::begin(HomeId(1), "", 1, 10);
        up.begin(EdgeId(1), begin, false, NOW, &mut Outbox::<()>::new());
        up.ask(page, Want::default(), (), NOW, &mut Outbox::<()>::new());
        up
    }

    /// A change whose value has so many bytes, told at a position; what is asked for then, and how.
    fn told(up: &mut Upstream<()>, page: PageId, position: u64, bytes: usize) -> Vec<bool> {
        let value = SlotChange::Value {
            generation: Generation(1),
            bytes: Blob::from(vec![0; bytes]),
        };
        let change = PageChange {
            page,
            slots: PageSlots::Some(vec![(Slot(0), value)]),
        };
        let mut outbox = Outbox::<()>::new();
        let stamp = Stamp::default();
        up.keep((Position(position), stamp), &[change], NOW, &mut outbox);
        let effects = outbox.actions.into_iter();
        let peers = effects.filter_map(|effect| match effect {
            Action::Send(_, Message::Up(Up::Fetch(message::Fetch { peers, .. }))) => Some(peers),
            _ => None,
        });
        peers.collect()
    }

    #[test]
    fn no_more_bytes_are_kept_than_may_be_and_then_it_is_asked_for_in_the_stream() {
        let page = PageId::new(1, 1);
        let mut up = asking(page);
        let part = KEPT_CHANGE_BYTES_MAX / 4;
        for position in 11..15 {
            assert_eq!(told(&mut up, page, position, part), []);
        }
        assert_eq!(told(&mut up, page, 15, part), [false]);
        // The answer comes in the stream: nothing has to be kept.
        for position in 16..30 {
            assert_eq!(told(&mut up, page, position, part), []);
        }
        assert!(up.fetches.pages[&page].kept.is_empty());
        assert_eq!(up.fetches.pages[&page].kept_bytes, 0);
    }
}
