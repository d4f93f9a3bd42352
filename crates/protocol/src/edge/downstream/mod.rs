//! A parent's side of its edges, for one home: who the children are, what they
//! may hold, and how a position is told to each (rules 1, 2, 7, 8).

mod delivery;
mod denials;
mod limits;
mod owners;
mod readership;
mod watch;

pub(crate) use crate::edge::downstream::delivery::{News, Values};
pub use crate::edge::downstream::limits::ChildLimits;

use crate::edge::directory::{ChildNo, Directory, Holder, Notice};
use crate::edge::downstream::delivery::{Steps, news_is_lost, send_step};
use crate::edge::downstream::denials::Denials;
use crate::edge::downstream::owners::Owners;
use crate::edge::downstream::readership::Readership;
use crate::edge::downstream::watch::Watches;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use thorp_model::limits::CHILDREN_MAX;
use thorp_model::planted::Bug;
use thorp_model::{
    Audience, Down, EdgeId, EntryNo, Epoch, FetchRefusal, HomeId, MemberId, NameId, NodeKind, Note,
    Outbox, PageChange, PageId, PageSlots, Peer, Position, Principal, Receipt, Reported, SegmentId,
    Stamp, Step, UpdateId, Verdict, message, planted,
};

/// Closes the edge of a child that breaks the protocol.
pub(crate) fn cut_off<A>(edge: EdgeId, why: &'static str, outbox: &mut Outbox<A>) {
    outbox.note(Note::ChildCutOff);
    outbox.close(edge, why);
}

/// One child's stream of one home.
#[derive(Debug)]
pub(crate) struct Child {
    /// What it is.
    pub kind: NodeKind,
    /// Its process start.
    pub node: MemberId,
    /// Whose rights count for what it gets.
    pub who: Principal,
    /// Whether it is a site that the member of its name carries.
    is_carried: bool,
    /// Its name.
    pub name: String,
    /// This life of its stream.
    pub epoch: Epoch,
    /// How far it has acknowledged.
    pub acked: Position,
    /// How far it was told, at least.
    told: Position,
    no: ChildNo,
    entries: EntryNo,
    /// The last receipt that it was sent.
    vouched: Receipt,
}

/// Where the stream of a child begins.
#[derive(Clone, Debug)]
pub(crate) struct Beginning<'a> {
    /// The parent's position, and what is promised there.
    pub at: (Position, Stamp),
    /// The home's name.
    pub name: &'a str,
    /// The sites on the way to the home, from the home on (rule R2).
    pub sites: Vec<NameId>,
    /// How long ago the parent has heard of the home itself, in milliseconds (foundation 9).
    pub silent_ms: u64,
    /// What the stream rests on (rule R9).
    pub receipt: Receipt,
    /// What was said of the child's claim.
    pub verdict: Verdict,
}

/// All children of a parent, for one home.
#[derive(Debug)]
pub(crate) struct Children {
    home: HomeId,
    by_edge: BTreeMap<EdgeId, Child>,
    by_no: BTreeMap<u16, EdgeId>,
    next_epoch: Epoch,
    limits: ChildLimits,
    /// Children that have no entry numbers left.
    worn_out: BTreeSet<EdgeId>,
    watches: Watches,
    readership: Readership,
    denials: Denials,
    owners: Owners,
    /// Which child may hold which page.
    pub directory: Directory,
}

impl Children {
    /// No children yet. Epochs begin above `epoch`, which no earlier life used.
    pub(crate) fn new(home: HomeId, epoch: Epoch, limits: ChildLimits) -> Self {
        Children {
            home,
            by_edge: BTreeMap::new(),
            by_no: BTreeMap::new(),
            next_epoch: epoch,
            limits,
            worn_out: BTreeSet::new(),
            watches: Watches::default(),
            readership: Readership::default(),
            denials: Denials::default(),
            owners: Owners::default(),
            directory: Directory::default(),
        }
    }

    /// These segments may not be read by every member or carried by every site, all others may (rule R4).
    pub(crate) fn set_readers(&mut self, readers: impl IntoIterator<Item = (SegmentId, Audience)>) {
        self.readership = Readership::of(readers);
    }

    /// Begins a child's stream. False at the limit of children.
    pub(crate) fn begin<A>(
        &mut self,
        edge: EdgeId,
        peer: &Peer,
        beginning: Beginning<'_>,
        outbox: &mut Outbox<A>,
    ) -> bool {
        let at = beginning.at;
        let no = self.free_no();
        let Some(no) = no.filter(|_| self.by_edge.len() < CHILDREN_MAX) else {
            outbox.note(Note::ChildLimited);
            return false;
        };
        self.next_epoch = self.next_epoch.next();
        self.by_no.insert(no.0, edge);
        self.owners.give(no, (peer.node.name(), peer.kind));
        self.by_edge.insert(
            edge,
            Child {
                kind: peer.kind,
                node: peer.node,
                who: Principal {
                    name: peer.node.name(),
                    is_operator: peer.is_operator,
                },
                is_carried: peer.is_carried && !planted::is(Bug::CarriedTakenForSite),
                name: peer.name.clone(),
                epoch: self.next_epoch,
                acked: at.0,
                told: at.0,
                no,
                entries: EntryNo(0),
                vouched: beginning.receipt,
            },
        );
        outbox.note(Note::StreamBegan);
        outbox.down(
            edge,
            Down::Begin(message::Begin {
                home: self.home,
                name: String::from(beginning.name),
                epoch: self.next_epoch,
                position: at.0,
                watermark: at.1,
                silent_ms: u32::try_from(beginning.silent_ms).unwrap_or(u32::MAX),
                readers: match peer.kind {
                    NodeKind::Member => Vec::new(),
                    _ => self.readership.all(),
                },
                sites: beginning.sites,
                receipt: beginning.receipt,
                verdict: beginning.verdict,
            }),
        );
        true
    }

    /// Ends a child's stream. What it held is given up by [`sweep`](Self::sweep).
    pub(crate) fn end(&mut self, edge: EdgeId) {
        let Some(child) = self.by_edge.remove(&edge) else {
            return;
        };
        self.by_no.remove(&child.no.0);
        self.worn_out.remove(&edge);
        self.watches.child_went(edge);
        self.directory.child_went(child.no);
    }

    /// A planted bug: a child's pages are struck, and its stream goes on.
    pub(crate) fn strike_pages(&mut self, edge: EdgeId) {
        if let Some(child) = self.by_edge.get(&edge) {
            self.directory.child_went(child.no);
        }
    }

    /// Strikes children that have gone from some more pages; tells the pages
    /// that no child holds any more. To be called with every input.
    pub(crate) fn sweep(&mut self) -> Vec<PageId> {
        self.directory.sweep(self.limits.swept_pages_max)
    }

    /// Ends all streams.
    pub(crate) fn end_all(&mut self) {
        self.by_edge.clear();
        self.by_no.clear();
        self.worn_out.clear();
        self.watches = Watches::default();
        self.directory = Directory::default();
        self.owners = Owners::default();
    }

    /// A child's stream.
    pub(crate) fn get(&self, edge: EdgeId) -> Option<&Child> {
        self.by_edge.get(&edge)
    }

    /// A child's stream, if a message of this epoch belongs to it (rule 1).
    pub(crate) fn in_epoch<A>(
        &self,
        edge: EdgeId,
        epoch: Epoch,
        outbox: &mut Outbox<A>,
    ) -> Option<&Child> {
        let child = self.by_edge.get(&edge).filter(|c| c.epoch == epoch);
        if child.is_none() {
            outbox.note(Note::OtherEpochDropped);
        }
        child
    }

    /// The edge of a child.
    pub(crate) fn edge_of(&self, node: MemberId) -> Option<EdgeId> {
        self.by_edge
            .iter()
            .find(|(_, child)| child.node == node)
            .map(|(edge, _)| *edge)
    }

    /// Whether a child is a member, and no site.
    pub(crate) fn is_member(&self, edge: EdgeId) -> bool {
        let child = self.get(edge);
        child.is_some_and(|child| child.kind == NodeKind::Member)
    }

    /// Whether a child may be given pages of a segment, as of where its stream stands: a member that
    /// may read it, and a site that may carry it (rule R4).
    pub(crate) fn may_read(&self, edge: EdgeId, segment: SegmentId) -> bool {
        let child = self.get(edge);
        child.is_some_and(|child| self.is_reader(child, segment))
    }

    fn is_reader(&self, child: &Child, segment: SegmentId) -> bool {
        let (readers, site) = (&self.readership, child.who.name);
        match child.kind {
            NodeKind::Member => readers.includes(segment, child.who),
            _ if planted::is(Bug::CarrierNotChecked) => true,
            _ => readers.is_carried_by(segment, site, child.is_carried),
        }
    }

    /// How a child is answered that may not be given a segment. For a member there is no such segment (rule R5). A site
    /// knows each segment that it may not carry.
    pub(crate) fn refusal(&self, edge: EdgeId) -> FetchRefusal {
        match self.is_member(edge) {
            true => FetchRefusal::NoSuchSegment,
            false => FetchRefusal::NotCarried,
        }
    }

    /// A child wanted something of a segment that it may not read.
    pub(crate) fn deny<A>(&mut self, edge: EdgeId, segment: SegmentId, outbox: &mut Outbox<A>) {
        outbox.note(Note::ReadDenied);
        if let Some(child) = self.by_edge.get(&edge) {
            self.denials.count(&child.name, segment);
        }
    }

    /// Who was denied which segment how often, since this was asked last (rule R8).
    pub(crate) fn take_denials(&mut self) -> BTreeMap<(String, SegmentId), u64> {
        self.denials.take()
    }

    /// How many segments not every member may read, or not every site may carry.
    pub(crate) fn restricted(&self) -> usize {
        self.readership.len()
    }

    /// All edges, in order.
    pub(crate) fn edges(&self) -> impl Iterator<Item = EdgeId> + '_ {
        self.by_edge.keys().copied()
    }

    /// The edges of all children of a child's name that are of its kind.
    pub(crate) fn edges_of_name(&self, child: &Child) -> BTreeSet<EdgeId> {
        let numbers = self.owners.numbers((child.node.name(), child.kind));
        let edges = numbers.filter_map(|no| self.by_no.get(&no));
        edges.copied().collect()
    }

    /// How many children there are.
    pub(crate) fn len(&self) -> usize {
        self.by_edge.len()
    }

    /// Whether a child may be entered for a page: not at the limit of its entries (rule 15), or of its name's (rule R7).
    /// The oldest is not struck in its place: it may be on its way in an image that a helper labelled, which only a
    /// position's step can overtake.
    pub(crate) fn has_space(&self, edge: EdgeId, page: PageId) -> bool {
        self.by_edge
            .get(&edge)
            .is_some_and(|child| self.space_for(child) > 0 || self.holds(edge, page))
    }

    /// For how many more pages a child may be entered.
    fn space_for(&self, child: &Child) -> usize {
        if planted::is(Bug::ChildNotLimited) {
            return usize::MAX;
        }
        let of_child = self.directory.held(child.no);
        let of_name = self
            .owners
            .held((child.node.name(), child.kind), &self.directory);
        let limits = &self.limits;
        let own = limits.of_child(child.kind).saturating_sub(of_child);
        own.min(limits.of_name(child.kind).saturating_sub(of_name))
    }

    /// Enters a page for a child under the next number (rule 2): to be called
    /// before its image is taken. None at a limit: no image may be sent.
    pub(crate) fn enter(&mut self, edge: EdgeId, page: PageId, complete: bool) -> Option<EntryNo> {
        let has_space = self.has_space(edge, page);
        let child = self.by_edge.get_mut(&edge)?;
        if child.entries >= self.limits.enterings_max {
            self.worn_out.insert(edge);
            return None;
        }
        if !has_space {
            return None;
        }
        child.entries = child.entries.next();
        let holder = Holder {
            child: child.no,
            complete,
            updates: 0,
            entry: child.entries,
        };
        let entry = child.entries;
        if !planted::is(Bug::SentBeforeEntered) || entry.0 % 4 != 0 {
            self.directory.enter(page, holder);
        }
        Some(entry)
    }

    /// Enters a child for pages that it holds from an earlier stream, all under
    /// the next number, before it is looked at whether they have changed (rule
    /// 13). Returns those that there is no space for: the child has to give them up.
    pub(crate) fn enter_reported(
        &mut self,
        edge: EdgeId,
        pages: &[Reported],
    ) -> Option<(EntryNo, Vec<PageId>)> {
        let child = self.by_edge.get_mut(&edge)?;
        if child.entries >= self.limits.enterings_max {
            self.worn_out.insert(edge);
            return None;
        }
        child.entries = child.entries.next();
        let holder = Holder {
            child: child.no,
            complete: false,
            updates: 0,
            entry: child.entries,
        };
        let mut space = self.by_edge.get(&edge).map(|child| self.space_for(child))?;
        let mut refused = Vec::new();
        for page in pages.iter().map(|reported| reported.page) {
            let is_new = !self.holds(edge, page);
            if is_new && space == 0 {
                refused.push(page);
                continue;
            }
            space -= usize::from(is_new);
            self.directory.enter(page, holder);
        }
        Some((holder.entry, refused))
    }

    /// A child that has no entry numbers left: its edge has to end.
    pub(crate) fn worn_out(&self) -> Option<EdgeId> {
        self.worn_out.first().copied()
    }

    /// Takes an eviction notice. True if nobody below holds the page any more.
    pub(crate) fn evict<A>(
        &mut self,
        edge: EdgeId,
        page: PageId,
        entry: EntryNo,
        outbox: &mut Outbox<A>,
    ) -> bool {
        let Some(child) = self.by_edge.get(&edge) else {
            return false;
        };
        let entry = if planted::is(Bug::LateNoticeStrikes) {
            EntryNo(u32::MAX)
        } else {
            entry
        };
        match self.directory.strike(page, child.no, entry) {
            Notice::Struck => {
                outbox.note(Note::EvictionTaken);
                !self.directory.is_held(page)
            }
            Notice::Late => {
                outbox.note(Note::EvictionIgnored);
                false
            }
            Notice::Absent => false,
        }
    }

    /// Whether a child is entered for a page.
    pub(crate) fn holds(&self, edge: EdgeId, page: PageId) -> bool {
        let child = self.by_edge.get(&edge);
        child.is_some_and(|child| self.directory.holder(page, child.no).is_some())
    }

    /// Whether a child has a page without holes, as far as its parent knows.
    pub(crate) fn holds_complete(&self, edge: EdgeId, page: PageId) -> bool {
        let child = self.by_edge.get(&edge);
        let holder = child.and_then(|child| self.directory.holder(page, child.no));
        holder.is_some_and(|holder| holder.complete)
    }

    /// The number of a child's last entering of a page; zero if it is not entered.
    pub(crate) fn entry(&self, edge: EdgeId, page: PageId) -> EntryNo {
        let child = self.by_edge.get(&edge);
        let holder = child.and_then(|child| self.directory.holder(page, child.no));
        holder.map_or(EntryNo(0), |holder| holder.entry)
    }

    /// Notes whether a child's copy of a page is complete.
    pub(crate) fn set_complete(&mut self, edge: EdgeId, page: PageId, complete: bool) {
        if let Some(child) = self.by_edge.get(&edge) {
            let no = child.no;
            self.directory.set_complete(page, no, complete);
        }
    }

    /// A child that was just entered for a page is to be told the values of so many changes.
    pub(crate) fn tell_updates(&mut self, edge: EdgeId, page: PageId, updates: u8) {
        if let Some(child) = self.by_edge.get(&edge) {
            let no = child.no;
            self.directory.set_updates(page, no, updates);
        }
    }

    /// A child with a complete copy that may help, other than those in `except`.
    pub(crate) fn helper(
        &self,
        page: PageId,
        except: &[EdgeId],
        may_help: impl Fn(&Child) -> bool,
    ) -> Option<EdgeId> {
        let holders = self.directory.holders(page);
        holders
            .filter(|holder| holder.complete)
            .filter_map(|holder| self.by_no.get(&holder.child.0).copied())
            .find(|edge| !except.contains(edge) && self.get(*edge).is_some_and(&may_help))
    }

    /// Takes an acknowledgement; tells the lowest over all children.
    pub(crate) fn ack(&mut self, edge: EdgeId, position: Position) {
        if let Some(child) = self.by_edge.get_mut(&edge) {
            child.acked = child.acked.max(position);
        }
    }

    /// What all children have acknowledged (rule 7).
    pub(crate) fn acknowledged(&self) -> Option<Position> {
        self.by_edge.values().map(|child| child.acked).min()
    }

    // --- Watches ---

    /// Begins or ends a child's watching of a segment. False at the limit.
    pub(crate) fn watch(&mut self, edge: EdgeId, segment: SegmentId, on: bool) -> bool {
        let Some(child) = self.by_edge.get(&edge) else {
            return true;
        };
        if on {
            return self.watches.begin((edge, child.kind), segment);
        }
        self.watches.end(edge, segment);
        true
    }

    /// Ends every child's watching of a segment: each of them learns it.
    pub(crate) fn unwatch<A>(&mut self, segment: SegmentId, outbox: &mut Outbox<A>) {
        let home = self.home;
        for edge in self.watches.end_segment(segment) {
            outbox.down(edge, Down::Unwatched(message::Unwatched { home, segment }));
        }
    }

    /// The segments that children of a child's name watch.
    pub(crate) fn watched_by_name_of(&self, edge: EdgeId) -> BTreeSet<SegmentId> {
        let name = self.by_edge.get(&edge).map(|child| child.who.name);
        let of_name = |(_, child): &(&EdgeId, &Child)| Some(child.who.name) == name;
        let edges = self.by_edge.iter().filter(of_name);
        self.watches.watched_by(edges.map(|(edge, _)| *edge))
    }

    /// How many watches there are, of all children.
    pub(crate) fn watches(&self) -> usize {
        self.watches.len()
    }

    /// The segments that any child watches.
    pub(crate) fn watched(&self) -> BTreeSet<SegmentId> {
        self.watches.watched()
    }

    // --- Delivery ---

    /// Sends a position: to every child what concerns it, as ONE step (rule 1).
    /// The child that the commit came from gets no values: it kept them. Returns pages that a child
    /// held and may not hold any more: perhaps nobody below needs them.
    pub(crate) fn deliver<A>(&mut self, mut news: News, outbox: &mut Outbox<A>) -> Vec<PageId> {
        news.origin = news
            .origin
            .filter(|(edge, _)| self.by_edge.contains_key(edge));
        let mut steps = Steps::new(news.origin.map(|(edge, _)| edge));
        let ended = self.set_readers_at(&news, &mut steps, outbox);
        self.sort(&news, &mut steps, outbox);
        if let Some((update, followers)) = &news.update {
            let may_read = |edge: &&EdgeId| self.may_read(**edge, update.segment);
            let is_told = !planted::is(Bug::SavedNotTold);
            let followers = followers.iter().filter(may_read).filter(|_| is_told);
            followers.for_each(|edge| steps.add_child(*edge));
        }
        for (edge, mut step) in steps.of(self.home, &news) {
            if let Some(child) = self.by_edge.get_mut(&edge) {
                child.told = child.told.max(news.position);
                if child.kind != NodeKind::Member {
                    step.digests = news.digests_of(&step.changes);
                }
            }
            let update = news.update.as_ref();
            let concerns = |(_, followers): &&(UpdateId, BTreeSet<EdgeId>)| {
                step.commit.is_some() || followers.contains(&edge)
            };
            let update = update.filter(concerns).map(|(update, _)| *update);
            send_step(edge, step, update, outbox);
        }
        ended
    }

    /// A position may change who may read or carry: sites learn it, and children that lose the right
    /// lose the pages. Returns these.
    fn set_readers_at<A>(
        &mut self,
        news: &News,
        steps: &mut Steps,
        outbox: &mut Outbox<A>,
    ) -> Vec<PageId> {
        let mut ended = Vec::new();
        for (segment, readers) in &news.readers {
            if self.readership.set(*segment, readers.clone()) {
                ended.extend(self.revoke(*segment, steps, outbox));
                let sites = self
                    .by_edge
                    .iter()
                    .filter(|(_, c)| c.kind != NodeKind::Member);
                sites.for_each(|(edge, _)| steps.add_readers(*edge, *segment, readers));
            }
        }
        ended
    }

    /// Decides what each child gets of a position. The directory follows.
    fn sort<A>(&mut self, news: &News, steps: &mut Steps, outbox: &mut Outbox<A>) {
        let origin = news.origin.map(|(edge, _)| edge);
        for change in &news.changes {
            let (page, silent) = (change.page, change.without_values());
            for edge in self.concerned(page) {
                if planted::is(Bug::InvalidationLost) && news_is_lost(page, steps.len()) {
                    continue;
                }
                match news.values {
                    _ if Some(edge) == origin => {
                        let run = news.run.get(&page).copied().unwrap_or_default();
                        let told = change.with_values_of(run);
                        match steps.has_space(edge, &told) {
                            true => steps.add_update(edge, &told),
                            false => steps.add(edge, &silent),
                        }
                    }
                    Values::ToHolders if self.holds(edge, page) => steps.add(edge, change),
                    Values::ToWhoAsked
                        if silent.makes_holes()
                            && steps.has_space(edge, change)
                            && self.takes_update(edge, page) =>
                    {
                        outbox.note(Note::UpdateTold);
                        steps.add_update(edge, change);
                    }
                    _ => steps.add(edge, &silent),
                }
            }
            self.follow(change, &silent, news, outbox);
        }
    }

    /// The audience of a segment has changed: children that may not have it any more get nothing
    /// newer of it (rule R5). Its pages end for them at this position, and so do their watches.
    fn revoke<A>(
        &mut self,
        segment: SegmentId,
        steps: &mut Steps,
        outbox: &mut Outbox<A>,
    ) -> Vec<PageId> {
        let mut ended = Vec::new();
        let all = self.by_edge.iter();
        let lost = all.filter(|(_, child)| !self.is_reader(child, segment));
        let lost: Vec<(EdgeId, ChildNo)> = lost.map(|(edge, child)| (*edge, child.no)).collect();
        if lost.is_empty() || planted::is(Bug::RevokedKeepsPages) {
            return ended;
        }
        outbox.note(Note::RightLost);
        for page in self.directory.pages_of(segment) {
            for (edge, no) in &lost {
                if self.directory.remove(page, *no) {
                    let slots = PageSlots::Whole;
                    steps.add(*edge, &PageChange { page, slots });
                    ended.push(page);
                }
            }
        }
        let home = self.home;
        for (edge, _) in lost {
            if self.watches.end(edge, segment) {
                outbox.down(edge, Down::Unwatched(message::Unwatched { home, segment }));
            }
        }
        ended
    }

    /// The directory follows a change: who had the page has new holes in it, or holds it no more.
    fn follow<A>(
        &mut self,
        change: &PageChange,
        silent: &PageChange,
        news: &News,
        outbox: &mut Outbox<A>,
    ) {
        let are_lost = news.values == Values::ToWhoAsked && silent.makes_holes();
        if change.slots == PageSlots::Whole {
            outbox.note(Note::WholePageInvalidated);
            self.strike_holders(change.page);
        } else if change.makes_holes() || are_lost {
            let origin = news.origin.and_then(|(edge, _)| self.by_edge.get(&edge));
            self.directory
                .set_incomplete(change.page, origin.map(|child| child.no));
        }
    }

    /// Whether a child asked for the values of one change more of a page; then there is one less.
    fn takes_update(&mut self, edge: EdgeId, page: PageId) -> bool {
        let Some(no) = self.by_edge.get(&edge).map(|child| child.no) else {
            return false;
        };
        let holder = self.directory.holder(page, no);
        let Some(left) = holder.and_then(|holder| holder.updates.checked_sub(1)) else {
            return false;
        };
        self.directory.set_updates(page, no, left);
        true
    }

    /// The children that hold a page or watch its segment.
    fn concerned(&self, page: PageId) -> BTreeSet<EdgeId> {
        let holders = self.directory.holders(page);
        let mut edges: BTreeSet<EdgeId> = holders
            .filter_map(|holder| self.by_no.get(&holder.child.0).copied())
            .collect();
        if !planted::is(Bug::WatchNotTold) {
            edges.extend(self.watches.watchers(page.segment));
        }
        edges
    }

    /// Whether a change of a page goes to a site, which has to know the page's digest (rule R6).
    pub(crate) fn concerns_a_site(&self, page: PageId) -> bool {
        let concerned = self.concerned(page).into_iter();
        let mut children = concerned.filter_map(|edge| self.by_edge.get(&edge));
        children.any(|child| child.kind != NodeKind::Member)
    }

    fn strike_holders(&mut self, page: PageId) {
        let holders: Vec<Holder> = self.directory.holders(page).collect();
        for holder in holders {
            self.directory.remove(page, holder.child);
        }
    }

    /// Sends a receipt to a child, unless it has one that proves as much: what follows rests on it (rule R9).
    pub(crate) fn vouch<A>(&mut self, edge: EdgeId, receipt: Receipt, outbox: &mut Outbox<A>) {
        let child = self.by_edge.get_mut(&edge);
        if let Some(child) = child.filter(|child| receipt.is_news_to(&child.vouched))
            && !planted::is(Bug::AnswersNotVouched)
        {
            child.vouched = receipt;
            outbox.down(edge, Down::Receipt(receipt));
        }
    }

    /// Sends a receipt to each child that has none which proves as much.
    pub(crate) fn vouch_all<A>(&mut self, receipt: Receipt, outbox: &mut Outbox<A>) {
        for edge in self.edges().collect::<Vec<EdgeId>>() {
            self.vouch(edge, receipt, outbox);
        }
    }

    /// Sends every child that nothing more concerns it up to a position.
    pub(crate) fn heartbeat<A>(
        &mut self,
        position: Position,
        watermark: Stamp,
        outbox: &mut Outbox<A>,
    ) {
        for (edge, child) in &mut self.by_edge {
            child.told = child.told.max(position);
            outbox.down(
                *edge,
                Down::Heartbeat(message::Heartbeat {
                    home: self.home,
                    position,
                    watermark,
                }),
            );
        }
    }

    /// An image that comes beside the stream is as of no later than here. A child that nothing concerned for a
    /// while would have to wait for a heartbeat before it may show that (rule 9).
    pub(crate) fn tell_position<A>(
        &mut self,
        edge: EdgeId,
        position: Position,
        watermark: Stamp,
        outbox: &mut Outbox<A>,
    ) {
        let child = self.by_edge.get_mut(&edge);
        let Some(child) = child.filter(|child| child.told < position) else {
            return;
        };
        child.told = position;
        let step = self.empty_step((position, watermark));
        outbox.down(edge, Down::Step(step));
    }

    /// A step that changes nothing.
    fn empty_step(&self, (position, watermark): (Position, Stamp)) -> Step {
        Step {
            home: self.home,
            position,
            stamp: Stamp::default(),
            watermark,
            commit: None,
            executed: None,
            changes: Vec::new(),
            digests: Vec::new(),
            readers: Vec::new(),
        }
    }

    /// An update was refused: these children follow its segment (rule C6).
    pub(crate) fn tell_rejected<A>(
        &mut self,
        update: UpdateId,
        followers: &BTreeSet<EdgeId>,
        at: (Position, Stamp),
        outbox: &mut Outbox<A>,
    ) {
        let may_hear = |edge: &&EdgeId| self.may_read(**edge, update.segment);
        let followers: Vec<&EdgeId> = followers.iter().filter(may_hear).collect();
        for edge in followers {
            let saved = message::Saved {
                update,
                is_executed: false,
                step: self.empty_step(at),
            };
            outbox.down(*edge, Down::Saved(Box::new(saved)));
        }
    }

    /// None only if far more children go than entries are swept.
    fn free_no(&self) -> Option<ChildNo> {
        let mut numbers = (0..u16::MAX).map(ChildNo);
        numbers.find(|no| !self.by_no.contains_key(&no.0) && !self.directory.is_going(*no))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use thorp_model::limits::{ENTERINGS_MAX, PROCESSES_ENTERED_MAX};

    const EDGE: EdgeId = EdgeId(1);
    const PAGE: PageId = PageId::new(1, 7);

    fn with_one_child() -> Children {
        let mut children = Children::new(HomeId(1), Epoch(0), ChildLimits::default());
        assert!(begin(&mut children, EDGE, "anna"));
        children
    }

    fn begin(children: &mut Children, edge: EdgeId, name: &str) -> bool {
        let peer = Peer {
            kind: NodeKind::Member,
            node: MemberId::new(NameId::of(name), edge.0),
            name: String::from(name),
            is_operator: false,
            is_carried: false,
        };
        let beginning = Beginning {
            at: (Position(0), Stamp::default()),
            name: "",
            sites: Vec::new(),
            silent_ms: 0,
            receipt: fixture::receipt(HomeId(1)),
            verdict: Verdict::Known,
        };
        children.begin(edge, &peer, beginning, &mut Outbox::<()>::new())
    }

    #[test]
    fn the_last_entry_numbers_still_rise_and_then_the_edge_ends() {
        let mut children = with_one_child();
        let child = children.by_edge.get_mut(&EDGE).expect("a child");
        child.entries = EntryNo(ENTERINGS_MAX - 2);
        let first = children.enter(EDGE, PAGE, true).expect("a number");
        let last = children.enter(EDGE, PAGE, true).expect("a number");
        assert!(first < last && last < last.next());
        // The notice of the copy before is late, as ever.
        assert!(!children.evict(EDGE, PAGE, first, &mut Outbox::<()>::new()));
        assert!(children.holds(EDGE, PAGE));
        assert_eq!(children.worn_out(), None);
        assert_eq!(children.enter(EDGE, PAGE, true), None);
        assert_eq!(children.worn_out(), Some(EDGE));
        children.end(EDGE);
        assert_eq!(children.sweep(), [PAGE]);
        assert_eq!(children.worn_out(), None);
    }

    #[test]
    fn the_processes_of_a_name_share_its_entries() {
        let mut children = with_one_child();
        children.limits.entries_per_member_max = 2;
        let most = PROCESSES_ENTERED_MAX as u32 * 2;
        let page = |number| PageId::new(1, number);
        for edge in 2..=u64::from(most) {
            assert!(begin(&mut children, EdgeId(edge), "anna"));
        }
        assert!(begin(&mut children, EdgeId(99), "ben"));
        for edge in 1..=u64::from(most) {
            assert!(children.enter(EdgeId(edge), page(1), true).is_some());
        }
        let reported = [1, 2].map(|number| Reported {
            page: page(number),
            as_of: Position(1),
            complete: true,
        });
        let (_, refused) = children.enter_reported(EDGE, &reported).expect("a number");
        assert_eq!(refused, [page(2)]);
        assert_eq!(children.enter(EDGE, page(2), true), None);
        // Another name has its own, and what one process gives up another one may have.
        assert!(children.enter(EdgeId(99), page(2), true).is_some());
        children.end(EdgeId(2));
        assert_eq!(children.enter(EDGE, page(2), true), None);
        assert_eq!(children.sweep(), []);
        assert!(children.enter(EDGE, page(2), true).is_some());
    }

    #[test]
    fn a_child_is_entered_for_so_many_pages() {
        let mut children = with_one_child();
        children.limits.entries_per_member_max = 2;
        let page = |number| PageId::new(1, number);
        assert!(children.enter(EDGE, page(1), true).is_some());
        let held = children.enter(EDGE, page(2), true).expect("space");
        assert_eq!(children.enter(EDGE, page(3), true), None);
        assert!(!children.has_space(EDGE, page(3)));
        // What it holds it may have again.
        let again = children.enter(EDGE, page(2), true).expect("space");
        assert!(held < again);
        assert!(children.evict(EDGE, page(2), again, &mut Outbox::<()>::new()));
        assert!(children.enter(EDGE, page(3), true).is_some());
        assert_eq!(children.worn_out(), None);
    }
}
