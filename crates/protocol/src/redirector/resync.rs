//! A redirector between a child that reports its pages and the homes, and a
//! child itself: what it has in its own memory is reported like anything else
//! (rule 13).

use crate::edge::downstream::Children;
use crate::edge::reports::{Owned, Reports};
use crate::edge::upstream::Upstream;
use crate::redirector::Outbox;
use crate::redirector::digests::Digests;
use crate::redirector::standby::Images;
use crate::redirector::waiter::Waiter;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use thorp_model::limits::{REPORT_PAGES_MAX, REPORTS_UNDER_WAY_MAX};
use thorp_model::planted::Bug;
use thorp_model::{
    Down, EdgeId, EntryNo, Note, PageDigest, PageId, Position, ReportNo, Reported, message, planted,
};

/// Whose pages a piece of a report has.
#[derive(Clone, Debug)]
pub(super) enum Whose {
    /// This node's own memory.
    Own,
    /// A child's: what was asked above of its piece.
    Child(Piece),
}

impl Owned for Whose {
    fn child(&self) -> Option<EdgeId> {
        match self {
            Whose::Own => None,
            Whose::Child(piece) => Some(piece.edge),
        }
    }
}

/// A child's piece of which some pages were asked for above.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    edge: EdgeId,
    report: ReportNo,
    entry: EntryNo,
}

/// Answers the reports of children, and reports this node's own memory.
///
/// A child is entered for the pages that it reports before anything is looked at (rule 2). All children together have no
/// more pages reported above than `reported_max`.
#[derive(Debug)]
pub(super) struct Resync<'a> {
    pub(super) up: &'a mut Upstream<Waiter>,
    pub(super) children: &'a mut Children,
    pub(super) images: &'a mut Images,
    pub(super) digests: &'a mut Digests,
    pub(super) reports: &'a mut Reports<Whose>,
    pub(super) reported_max: usize,
}

impl Resync<'_> {
    /// A child reports pages. This node enters the child for all of them. Then it compares those
    /// that lie in its memory, and asks the parent about the others. It asks as of the position at
    /// which this child's copy is right: another child's copy says nothing of it. It answers at once
    /// for what it knows: the child heeds nothing that the stream says of a page before its answer.
    /// A page that the child may not read any more has changed, for it (rule R4).
    pub(super) fn report(
        &mut self,
        edge: EdgeId,
        message: &message::Report,
        outbox: &mut Outbox,
    ) -> Result<(), &'static str> {
        let report = message.report;
        let may_read = |page: &Reported| self.children.may_read(edge, page.page.segment);
        let (pages, hidden): (Vec<Reported>, Vec<Reported>) =
            message.pages.iter().partition(|page| may_read(page));
        if message.pages.len() > REPORT_PAGES_MAX {
            return Err("more pages in a report than may be");
        }
        if self.reports_of(edge) >= REPORTS_UNDER_WAY_MAX {
            return Err("more reports than may be under way");
        }
        let Some((entry, mut changed)) = self.children.enter_reported(edge, &pages) else {
            return Ok(());
        };
        let limits = !changed.is_empty();
        changed.extend(hidden.iter().map(|reported| reported.page));
        let mut asked = Vec::new();
        let (mut space, mut limited) = (self.report_space(edge), limits);
        for reported in &pages {
            match self.is_as_it_was(reported) {
                _ if changed.contains(&reported.page) => {}
                Some(true) => self.found_unchanged(edge, reported),
                Some(false) => changed.push(reported.page),
                // What there is no space for is given up in vain, which does no harm.
                None if space == 0 => {
                    limited = true;
                    changed.push(reported.page);
                }
                None => {
                    space -= 1;
                    asked.push(*reported);
                }
            }
        }
        if limited {
            outbox.note(Note::ChildLimited);
        }
        let piece = Piece {
            edge,
            report,
            entry,
        };
        if asked.len() < message.pages.len() {
            let open: Vec<PageId> = asked.iter().map(|reported| reported.page).collect();
            let other: BTreeSet<PageId> = changed.iter().chain(&open).copied().collect();
            let same = pages.iter().map(|reported| reported.page);
            let same = same.filter(|page| !other.contains(page));
            let digests = same.filter_map(|page| Some((page, self.digests.get(page)?)));
            let digests = digests.collect();
            outbox.note(Note::ResynchronisedFromMemory);
            self.answer_report(&piece, (changed, open), digests, outbox);
        }
        if !asked.is_empty() {
            self.reports.push(Whose::Child(piece), asked);
            self.send_reports(outbox);
        }
        Ok(())
    }

    fn reports_of(&self, edge: EdgeId) -> usize {
        self.pieces_of(edge).count()
    }

    fn pieces_of(&self, edge: EdgeId) -> impl Iterator<Item = &[Reported]> {
        let pieces = self.reports.pieces();
        let own = pieces.filter(move |piece| piece.whose.child() == Some(edge));
        own.map(|piece| &piece.pages[..])
    }

    /// For how many more pages of a child the parent may be asked: a child has no more than it
    /// leaves free, so there is always space for one that reports little.
    fn report_space(&self, edge: EdgeId) -> usize {
        let of_child: usize = self.pieces_of(edge).map(<[Reported]>::len).sum();
        let free = self.reported_max.saturating_sub(reported(self.reports));
        (free.saturating_sub(of_child)).div_ceil(2)
    }

    /// Whether a child's copy is as it was, if this node's own copy tells. A page that has ended
    /// is empty and of no version: it does not tell when. A child that was ahead of this node has
    /// to wait for the home's word: so its answer finds it no longer ahead.
    fn is_as_it_was(&self, reported: &Reported) -> Option<bool> {
        if planted::is(Bug::VersionsIgnored) {
            return Some(true);
        }
        let own = self.images.peek(reported.page)?;
        let has_ended = own.slots() == 0;
        let is_ahead = reported.as_of > self.up.position;
        (!is_ahead && !has_ended).then(|| own.version() <= reported.as_of)
    }

    /// Whether a child that reported a page is entered for it still. Where it stood further on than this node, the
    /// stream may have said meanwhile that the page ended, which the child knew: that struck it (rule 2).
    fn is_entered(&self, edge: EdgeId, page: PageId) -> bool {
        self.children.holds(edge, page) || planted::is(Bug::StruckSaidSame)
    }

    /// From now on it can help its neighbours.
    fn found_unchanged(&mut self, edge: EdgeId, reported: &Reported) {
        if reported.complete {
            self.children.set_complete(edge, reported.page, true);
        }
    }

    fn answer_report(
        &mut self,
        piece: &Piece,
        (changed, open): (Vec<PageId>, Vec<PageId>),
        known: Vec<(PageId, PageDigest)>,
        outbox: &mut Outbox,
    ) {
        if self.children.get(piece.edge).is_none() {
            return;
        }
        let digests = match self.children.is_member(piece.edge) {
            true => Vec::new(),
            false => known,
        };
        outbox.down(
            piece.edge,
            Down::Resynchronised(message::Resynchronised {
                home: self.up.home,
                report: piece.report,
                entry: piece.entry,
                position: self.up.position,
                changed,
                open,
                digests,
            }),
        );
    }

    /// Under a new parent nothing of this node's own memory is shown before it is known to be
    /// as it was.
    pub(super) fn report_own(&mut self, as_of: Position, outbox: &mut Outbox) {
        self.reports.clear();
        let own = self.images.doubt();
        let own = own.into_iter().map(|(page, complete)| Reported {
            page,
            as_of,
            complete,
        });
        let own: Vec<Reported> = own.collect();
        self.reports.push_all(Whose::Own, &own);
        self.send_reports(outbox);
    }

    fn send_reports(&mut self, outbox: &mut Outbox) {
        if let Some(edge) = self.up.edge {
            let (home, epoch) = (self.up.home, self.up.epoch);
            self.reports.send(home, edge, epoch, outbox);
        }
    }

    /// The parent has answered for a piece: this node's own, or a child's, which gets the answer.
    pub(super) fn settle_report(&mut self, answer: message::Resynchronised, outbox: &mut Outbox) {
        let message::Resynchronised {
            changed,
            open,
            digests,
            position,
            ..
        } = answer;
        let Some(piece) = self.reports.answered(answer.report, &open) else {
            return outbox.note(Note::OtherEpochDropped);
        };
        for reported in &piece.pages {
            self.up.drop_entered(reported.page, answer.entry);
        }
        let is_changed: BTreeSet<PageId> = changed.iter().copied().collect();
        let (gone, same): (Vec<Reported>, Vec<Reported>) = piece
            .pages
            .iter()
            .partition(|reported| is_changed.contains(&reported.page));
        match piece.whose {
            Whose::Own => self.settle_own(&gone, &same, outbox),
            // Unchanged up to where the parent stands, and this node stands further down: the child
            // would believe it up to there. A page that is given up in vain does no harm.
            Whose::Child(piece) if self.up.lags() && !planted::is(Bug::WordFromBehindPassed) => {
                let all = gone.iter().chain(&same).map(|reported| reported.page);
                let answer = (all.collect(), open);
                self.answer_report(&piece, answer, Vec::new(), outbox);
            }
            Whose::Child(piece) => {
                let mut changed = changed;
                for reported in &same {
                    if self.is_entered(piece.edge, reported.page) {
                        self.found_unchanged(piece.edge, reported);
                    } else {
                        changed.push(reported.page);
                    }
                }
                self.take_digests(&same, &digests, position);
                self.answer_report(&piece, (changed, open), digests, outbox);
            }
        }
        self.send_reports(outbox);
    }

    /// What the parent vouches for of pages that have not changed. It says nothing of others (rule R6).
    fn take_digests(
        &mut self,
        same: &[Reported],
        digests: &[(PageId, PageDigest)],
        position: Position,
    ) {
        let same: BTreeSet<PageId> = same.iter().map(|reported| reported.page).collect();
        let own = digests.iter().filter(|(page, _)| same.contains(page));
        own.for_each(|(page, digest)| self.digests.set(*page, position, *digest));
    }

    fn settle_own(&mut self, gone: &[Reported], same: &[Reported], outbox: &mut Outbox) {
        for reported in gone {
            outbox.note(Note::PageChanged);
            self.images.drop_doubted(reported.page);
        }
        for reported in same {
            outbox.note(Note::PageUnchanged);
            self.images.trust(reported.page);
            if let Some(image) = self.images.peek(reported.page) {
                self.digests
                    .set_image(reported.page, self.up.position, image);
            }
        }
    }
}

/// Pages that were reported and not answered.
pub(super) fn reported(reports: &Reports<Whose>) -> usize {
    let pieces = reports.pieces();
    pieces.map(|piece| piece.pages.len()).sum()
}
