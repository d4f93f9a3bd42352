//! A child's side of an edge, for one home: where it stands in the stream, and
//! the pages that are on their way (rules 1 and 9).

mod fetching;
mod overtaken;
mod parent;

pub(crate) use crate::edge::upstream::fetching::{Fetched, Want};

use crate::edge::upstream::fetching::Fetches;
use crate::edge::upstream::parent::Parent;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use thorp_model::limits::SITES_ON_WAY_MAX;
use thorp_model::planted::Bug;
use thorp_model::{
    Claim, Down, EdgeId, EntryNo, Epoch, HomeId, Image, Millis, NameId, Note, Outbox, PageChange,
    PageId, PeerImage, Position, Receipt, SegmentId, Stamp, Up, message, planted,
};

/// One home's stream as a child sees it. `W` is who waits for a page.
#[derive(Debug)]
pub(crate) struct Upstream<W> {
    /// Whose stream.
    pub home: HomeId,
    /// The home's name.
    pub name: String,
    /// The sites on the way to the home, from the home on (rule R2).
    pub sites: Vec<NameId>,
    /// The edge it comes down on, while it is live.
    pub edge: Option<EdgeId>,
    /// Whether the parent has children that can help (it is a redirector).
    pub helpers: bool,
    /// Whether the home itself may answer beside its stream, by sockets of its own (rule 9).
    pub images_beside: bool,
    /// What this node's knowledge of the home rests on; none before a first stream (rule R9).
    receipt: Option<Receipt>,
    /// Which life of the stream.
    pub epoch: Epoch,
    /// How far it was applied.
    pub position: Position,
    /// What was promised.
    pub watermark: Stamp,
    /// What the parent has sent in this epoch. A new parent may stand
    /// behind where the old one was: see [`Upstream::lags`].
    sent: Progress,
    /// Whether this node stays where it is, whatever is told: it holds pages that
    /// are not resynchronised (rule 13).
    held: bool,
    /// A stream has ended while this node was held. What was answered in it is not here.
    ended_held: bool,
    /// When the home itself was last heard of, here or by the parent.
    pub heard: Millis,
    /// The position that was last acknowledged.
    acked: Position,
    /// The pages that are on their way.
    fetches: Fetches<W>,
    /// Edges that have another stream of the home, which is not listened to. As
    /// many as there are parents.
    unheard: BTreeMap<EdgeId, Epoch>,
}

/// How far a stream has come in one epoch. Each part only rises.
#[derive(Clone, Copy, Default, Debug)]
struct Progress {
    position: Position,
    /// What is promised there.
    watermark: Stamp,
    /// When the home itself was last heard of.
    heard: Millis,
}

impl<W> Upstream<W> {
    /// A stream that has not begun.
    pub(crate) fn new(home: HomeId) -> Self {
        Upstream {
            home,
            name: String::new(),
            sites: Vec::new(),
            edge: None,
            helpers: false,
            images_beside: false,
            receipt: None,
            epoch: Epoch(0),
            position: Position(0),
            watermark: Stamp::default(),
            sent: Progress::default(),
            held: false,
            ended_held: false,
            heard: Millis(0),
            acked: Position(0),
            fetches: Fetches::new(),
            unheard: BTreeMap::new(),
        }
    }

    /// The stream begins: what was on its way under another epoch is asked anew.
    /// A node that is `held` goes on with [`Upstream::release`].
    pub(crate) fn begin<A>(
        &mut self,
        edge: EdgeId,
        begin: message::Begin,
        held: bool,
        now: Millis,
        outbox: &mut Outbox<A>,
    ) {
        self.edge = Some(edge);
        self.unheard.remove(&edge);
        self.name = begin.name;
        self.sites = begin.sites;
        self.sites.truncate(SITES_ON_WAY_MAX);
        self.take_receipt(begin.receipt);
        self.epoch = begin.epoch;
        self.sent = Progress {
            position: begin.position,
            watermark: begin.watermark,
            heard: now.before(u64::from(begin.silent_ms)),
        };
        self.acked = begin.position;
        self.held = held;
        self.ended_held &= held;
        self.go_on();
        self.fetches.begin(now, self.parent(), outbox);
    }

    /// The stream is gone for now. Another parent's can take its place, but not
    /// in the middle: what it told was dropped. So its edge is closed, and when
    /// it is there again, its streams begin (rule 1).
    pub(crate) fn end<A>(&mut self, outbox: &mut Outbox<A>) {
        self.edge = None;
        self.ended_held |= self.held && !planted::is(Bug::EndedStreamStands);
        self.held = false;
        for edge in core::mem::take(&mut self.unheard).into_keys() {
            outbox.close(edge, "its stream of a home is wanted from the beginning");
        }
    }

    /// An edge is gone. True if the stream went with it.
    pub(crate) fn lost(&mut self, edge: EdgeId) -> bool {
        self.unheard.remove(&edge);
        self.edge == Some(edge)
    }

    /// Whether a message is one of this stream, or begins it: two parents of one
    /// home stand at different places. A second parent's stream is left alone,
    /// and so is its edge: other homes may be on it (rule 1).
    pub(crate) fn hears<A>(
        &mut self,
        edge: EdgeId,
        message: &Down,
        outbox: &mut Outbox<A>,
    ) -> bool {
        if self.edge == Some(edge) || planted::is(Bug::SecondParentTaken) {
            return true;
        }
        match (self.edge, message) {
            (None, Down::Begin(_)) => return true,
            (Some(_), Down::Begin(message::Begin { epoch, .. })) => {
                outbox.note(Note::SecondParentUnheard);
                self.unheard.insert(edge, *epoch);
            }
            (_, Down::End(_)) => {
                self.unheard.remove(&edge);
            }
            (_, Down::Heartbeat(message::Heartbeat { position, .. }))
                if self.unheard.contains_key(&edge) =>
            {
                outbox.note(Note::OtherEpochDropped);
                self.acknowledge_unheard(edge, *position, outbox);
            }
            _ => outbox.note(Note::OtherEpochDropped),
        }
        false
    }

    // --- Receipts (rule R9) ---

    /// What this node holds of the home, and what that rests on.
    pub(crate) fn claim(&self) -> Option<Claim> {
        self.receipt.map(|receipt| Claim {
            receipt,
            position: self.position,
            clock: self.watermark.clock,
        })
    }

    /// The newest receipt that came.
    pub(crate) fn receipt(&self) -> Option<Receipt> {
        self.receipt
    }

    /// A receipt has come, or a stream has begun with one.
    pub(crate) fn take_receipt(&mut self, receipt: Receipt) {
        let is_news = self.receipt.is_none_or(|known| receipt.is_news_to(&known));
        if is_news && receipt.home == self.home {
            self.receipt = Some(receipt);
        }
    }

    /// Whether a claim is of the very life that this stream belongs to: nothing of a life is lost while it runs.
    pub(crate) fn is_of_this_life(&self, claim: &Claim) -> bool {
        self.receipt.is_some_and(|own| {
            own.point.life == claim.receipt.point.life
                && own.incarnation == claim.receipt.incarnation
        })
    }

    /// Whether an operator has opened the home again since this node's last stream.
    pub(crate) fn is_reopened(&self, begin: &message::Begin) -> bool {
        let own = self.receipt.map(|own| own.incarnation);
        own.is_some_and(|own| begin.receipt.incarnation > own)
    }

    /// The home has gone back: where this node stood is no place in the home's history.
    pub(crate) fn forget(&mut self) {
        self.receipt = None;
        self.position = Position(0);
        self.watermark = Stamp::default();
        self.heard = Millis(0);
        self.acked = Position(0);
        self.held = false;
        self.ended_held = false;
    }

    /// Nothing is held by a stream that is left alone, so nothing of it is missing here: its
    /// parent may trim its tables as if it had no such child (rule 7).
    fn acknowledge_unheard<A>(&self, edge: EdgeId, position: Position, outbox: &mut Outbox<A>) {
        if let Some(epoch) = self.unheard.get(&edge).copied() {
            let home = self.home;
            outbox.up(
                edge,
                Up::Ack(message::Ack {
                    home,
                    epoch,
                    position,
                }),
            );
        }
    }

    /// The stream has come as far as a position.
    pub(crate) fn advance(&mut self, position: Position) {
        self.sent.position = self.sent.position.max(position);
        self.go_on();
    }

    /// Everything is resynchronised: this node stands where its parent does.
    pub(crate) fn release(&mut self) {
        self.held = false;
        self.ended_held = false;
        self.go_on();
    }

    /// Whether all that was answered in the streams so far is here: nothing of them was left out because pages were not resynchronised
    /// when a stream ended (rules C3 and 13).
    pub(crate) fn stands(&self) -> bool {
        !self.held && !self.ended_held
    }

    /// Whether this node waits until its pages are resynchronised.
    pub(crate) fn is_held(&self) -> bool {
        self.held
    }

    /// The parent may have lost the home for longer than this node had, and be
    /// behind: what either has heard holds, for the position is the higher of
    /// both (foundation 9).
    fn go_on(&mut self) {
        if self.held && !planted::is(Bug::HalfResynchronised) {
            return;
        }
        self.position = self.position.max(self.sent.position);
        self.watermark = self.watermark.max(self.sent.watermark);
        self.heard = self.heard.max(self.sent.heard);
    }

    /// The same, and what is promised there.
    pub(crate) fn advance_promised(&mut self, position: Position, watermark: Stamp) {
        self.sent.watermark = self.sent.watermark.max(watermark);
        self.advance(position);
    }

    /// The home itself was heard of: its heartbeat came. What a parent sends out
    /// of its own memory says nothing of that (foundation 9).
    pub(crate) fn beaten(&mut self, heartbeat: &message::Heartbeat, now: Millis) {
        self.sent.heard = now;
        self.advance_promised(heartbeat.position, heartbeat.watermark);
    }

    /// Whether the parent has not come as far as this node was before. What it
    /// sends is older than what the node vouches for, and is shown by nobody
    /// until the parent has passed that (rule 13).
    pub(crate) fn lags(&self) -> bool {
        self.sent.position < self.position
    }

    /// What is promised where the parent stands, which is where its next step is: a parent that
    /// lags has not promised there what this node has heard further down.
    pub(crate) fn promised(&self) -> Stamp {
        if self.lags() {
            self.sent.watermark
        } else {
            self.watermark
        }
    }

    /// Answers a redirected request with what this node holds of the page, as of where
    /// its stream has come. No image sends the parent to another helper (rule 9).
    pub(crate) fn help<A>(
        &self,
        edge: EdgeId,
        redirect: message::Redirect,
        image: Option<Image>,
        outbox: &mut Outbox<A>,
    ) {
        outbox.note(if image.is_some() {
            Note::HelperAnswered
        } else {
            Note::HelperRefused
        });
        outbox.up(
            edge,
            Up::Peer(PeerImage {
                home: redirect.home,
                page: redirect.page,
                requester: redirect.requester,
                epoch: redirect.epoch,
                attempt: redirect.attempt,
                entry: redirect.entry,
                position: self.position,
                image,
            }),
        );
    }

    /// Acknowledges that this node's subtree has applied the stream up to a position (rule 7).
    pub(crate) fn acknowledge<A>(&mut self, applied: Position, outbox: &mut Outbox<A>) {
        if let Some(edge) = self.edge
            && self.acked < applied
        {
            self.acked = applied;
            let ack = message::Ack {
                home: self.home,
                epoch: self.epoch,
                position: applied,
            };
            outbox.up(edge, Up::Ack(ack));
        }
    }

    /// Sends the notice that this node's subtree has given up a page (rule 2).
    pub(crate) fn evict<A>(&self, page: PageId, entry: EntryNo, outbox: &mut Outbox<A>) {
        if let Some(edge) = self.edge {
            let evict = message::Evict {
                home: self.home,
                epoch: self.epoch,
                page,
                entry,
            };
            outbox.up(edge, Up::Evict(evict));
        }
    }

    /// Asks the parent for the changes of a segment from now on, or no longer (rule 15).
    pub(crate) fn watch<A>(&self, segment: SegmentId, on: bool, outbox: &mut Outbox<A>) {
        if let Some(edge) = self.edge {
            let watch = message::Watch {
                home: self.home,
                epoch: self.epoch,
                segment,
                on,
            };
            outbox.up(edge, Up::Watch(watch));
        }
    }

    /// Passes a message of a node below on, as it is.
    pub(crate) fn pass<A>(&self, message: Up, outbox: &mut Outbox<A>) {
        if let Some(edge) = self.edge {
            outbox.up(edge, message);
        }
    }

    // --- Pages on their way ---

    /// Sets how many messages are kept for a page that is on its way.
    pub(crate) fn limit_kept_changes(&mut self, max: usize) {
        self.fetches.kept_changes_max = max;
    }

    /// Whether a page is on its way.
    pub(crate) fn is_fetching(&self, page: PageId) -> bool {
        self.fetches.is_fetching(page)
    }

    /// Pages on their way.
    pub(crate) fn fetches(&self) -> usize {
        self.fetches.len()
    }

    /// Of them those that nobody waits for.
    pub(crate) fn fetches_ahead(&self) -> usize {
        self.fetches.ahead()
    }

    /// How many pages are asked for in the stream, next time.
    pub(crate) fn overtaken(&self) -> usize {
        self.fetches.overtaken()
    }

    /// Who waits for pages.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &W> {
        self.fetches.waiting()
    }

    /// Who waits for a page, the first first.
    pub(crate) fn waiting_for(&self, page: PageId) -> impl ExactSizeIterator<Item = &W> {
        self.fetches.waiting_for(page)
    }

    /// Forgets those who wait no more.
    pub(crate) fn retain_waiting(&mut self, keep: impl FnMut(&W) -> bool) {
        self.fetches.retain_waiting(keep);
    }

    /// Asks for a page, or joins a request that is in flight.
    pub(crate) fn ask<A>(
        &mut self,
        page: PageId,
        want: Want,
        waiter: W,
        now: Millis,
        outbox: &mut Outbox<A>,
    ) {
        let parent = self.parent();
        self.fetches.ask(page, want, waiter, now, parent, outbox);
    }

    /// Asks for a page that nobody waits for, unless it is on its way.
    pub(crate) fn ask_ahead<A>(
        &mut self,
        page: PageId,
        updates: u8,
        now: Millis,
        outbox: &mut Outbox<A>,
    ) {
        let parent = self.parent();
        self.fetches.ask_ahead(page, updates, now, parent, outbox);
    }

    /// Keeps what the stream says of pages that are on their way.
    pub(crate) fn keep<A>(
        &mut self,
        at: (Position, Stamp),
        changes: &[PageChange],
        now: Millis,
        outbox: &mut Outbox<A>,
    ) {
        let parent = self.parent();
        self.fetches.keep(at, changes, now, parent, outbox);
    }

    /// Takes an answer that came in the stream: it is as of the stream's place.
    pub(crate) fn take_in_stream<A>(
        &mut self,
        response: message::FetchResponse,
        outbox: &mut Outbox<A>,
    ) -> Option<Fetched<W>> {
        self.advance_promised(response.position, response.watermark);
        let parent = self.parent();
        self.fetches.take_in_stream(response, parent, outbox)
    }

    /// Takes an image that came beside the stream.
    pub(crate) fn take_peer<A>(
        &mut self,
        peer: PeerImage,
        now: Millis,
        outbox: &mut Outbox<A>,
    ) -> Option<Fetched<W>> {
        let parent = self.parent();
        self.fetches.take_peer(peer, now, parent, outbox)
    }

    /// The images that the stream has caught up with.
    pub(crate) fn caught_up<A>(&mut self, now: Millis, outbox: &mut Outbox<A>) -> Vec<Fetched<W>> {
        let parent = self.parent();
        self.fetches.caught_up(now, parent, outbox)
    }

    /// The parent has entered the page and its image was not taken.
    pub(crate) fn drop_entered(&mut self, page: PageId, entry: EntryNo) {
        self.fetches.drop_entered(page, entry);
    }

    /// Entries at the parent whose images were dropped.
    pub(crate) fn take_strays(&mut self) -> Vec<(PageId, EntryNo)> {
        self.fetches.take_strays()
    }

    /// Asks again for what takes too long.
    pub(crate) fn tick<A>(&mut self, now: Millis, outbox: &mut Outbox<A>) {
        let parent = self.parent();
        self.fetches.tick(now, parent, outbox);
    }

    /// When [`Upstream::tick`] is wanted.
    pub(crate) fn deadline(&self) -> Option<Millis> {
        self.fetches.deadline(self.parent())
    }

    /// What a fetch depends on.
    fn parent(&self) -> Parent {
        Parent {
            home: self.home,
            edge: self.edge,
            epoch: self.epoch,
            helpers: self.helpers,
            images_beside: self.images_beside,
            position: self.position,
            sent: self.sent.position,
            is_apart: self.lags() || self.held,
        }
    }
}
