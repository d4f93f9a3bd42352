//! A child's report of what it holds to a new parent, in pieces of which a
//! bounded number is under way (rule 13). A redirector reports for many: each in its turn.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::ops::Bound;
use thorp_model::limits::{REPORT_PAGES_MAX, REPORTS_UNDER_WAY_MAX};
use thorp_model::{EdgeId, Epoch, HomeId, Note, Outbox, PageId, ReportNo, Reported, Up, message};

/// Whose pages a piece has.
pub(crate) trait Owned {
    /// The child that reported them; none, if they are this node's own.
    fn child(&self) -> Option<EdgeId>;
}

impl Owned for () {
    fn child(&self) -> Option<EdgeId> {
        None
    }
}

/// Pieces on their way up. `S` is whose pages they are.
#[derive(Debug)]
pub(crate) struct Reports<S> {
    /// What waits, of each owner in order.
    waiting: BTreeMap<Option<EdgeId>, VecDeque<Piece<S>>>,
    /// Whose piece was sent last: the next owner's turn is next.
    turn: Option<EdgeId>,
    under_way: BTreeMap<ReportNo, Piece<S>>,
    last: ReportNo,
    pages_max: usize,
}

/// A piece of a report.
#[derive(Debug)]
pub(crate) struct Piece<S> {
    pub(crate) whose: S,
    pub(crate) pages: Vec<Reported>,
}

impl<S: Owned> Reports<S> {
    pub(crate) fn new() -> Self {
        Reports {
            waiting: BTreeMap::new(),
            turn: None,
            under_way: BTreeMap::new(),
            last: ReportNo(0),
            pages_max: REPORT_PAGES_MAX,
        }
    }

    /// Sets how many pages a piece has.
    pub(crate) fn limit(&mut self, pages_max: usize) {
        self.pages_max = pages_max.clamp(1, REPORT_PAGES_MAX);
    }

    /// Forgets everything: the stream has ended, and no answer comes.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.under_way.clear();
    }

    /// Whether everything is answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    /// All pieces that are not answered.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &Piece<S>> {
        let waiting = self.waiting.values().flatten();
        waiting.chain(self.under_way.values())
    }

    /// A child has gone: what waits of it is asked of nobody.
    pub(crate) fn child_went(&mut self, child: EdgeId) {
        self.waiting.remove(&Some(child));
    }

    /// Adds a piece that is no larger than one may be.
    pub(crate) fn push(&mut self, whose: S, pages: Vec<Reported>) {
        let waiting = self.waiting.entry(whose.child()).or_default();
        waiting.push_back(Piece { whose, pages });
    }

    /// The next piece: of the owner after the one whose turn it was, or one with a huge report
    /// would hold all others back.
    fn next(&mut self) -> Option<Piece<S>> {
        let later = (Bound::Excluded(self.turn), Bound::Unbounded);
        let mut owners = self.waiting.range(later).chain(self.waiting.iter());
        let owner = owners.next().map(|(owner, _)| *owner)?;
        self.turn = owner;
        let pieces = self.waiting.get_mut(&owner)?;
        let piece = pieces.pop_front();
        if pieces.is_empty() {
            self.waiting.remove(&owner);
        }
        piece
    }

    /// Sends what may be under way.
    pub(crate) fn send<A>(
        &mut self,
        home: HomeId,
        edge: EdgeId,
        epoch: Epoch,
        outbox: &mut Outbox<A>,
    ) {
        while self.under_way.len() < REPORTS_UNDER_WAY_MAX {
            let Some(piece) = self.next() else {
                return;
            };
            self.last = self.last.next();
            let report = self.last;
            let pages = piece.pages.clone();
            self.under_way.insert(report, piece);
            outbox.note(Note::ReportSent);
            outbox.up(
                edge,
                Up::Report(message::Report {
                    home,
                    epoch,
                    report,
                    pages,
                }),
            );
        }
    }
}

impl<S: Owned + Clone> Reports<S> {
    /// A piece is answered, but for its open pages.
    pub(crate) fn answered(&mut self, report: ReportNo, open: &[PageId]) -> Option<Piece<S>> {
        let mut piece = self.under_way.remove(&report)?;
        if !open.is_empty() {
            let open: BTreeSet<PageId> = open.iter().copied().collect();
            let is_open = |reported: &Reported| open.contains(&reported.page);
            let (rest, pages): (Vec<Reported>, Vec<Reported>) =
                piece.pages.into_iter().partition(is_open);
            piece.pages = pages;
            if !rest.is_empty() {
                let whose = piece.whose.clone();
                self.under_way.insert(report, Piece { whose, pages: rest });
            }
        }
        Some(piece)
    }

    /// Adds pages, in as many pieces as it takes.
    pub(crate) fn push_all(&mut self, whose: S, pages: &[Reported]) {
        for piece in pages.chunks(self.pages_max) {
            self.push(whose.clone(), piece.to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Owned, Reports};
    use thorp_model::limits::REPORTS_UNDER_WAY_MAX;
    use thorp_model::{EdgeId, Epoch, HomeId, Outbox, PageId, Position, ReportNo, Reported};

    #[derive(Clone, PartialEq, Eq, Debug)]
    struct Child(u64);

    impl Owned for Child {
        fn child(&self) -> Option<EdgeId> {
            Some(EdgeId(self.0))
        }
    }

    fn push(reports: &mut Reports<Child>, child: u64) {
        let reported = Reported {
            page: PageId::new(1, 1),
            as_of: Position(1),
            complete: true,
        };
        reports.push_all(Child(child), &[reported]);
    }

    /// Answers for the piece that was sent first, and sends what may follow: whose it is.
    fn next(reports: &mut Reports<Child>, report: u64) -> Child {
        let answered = reports.answered(ReportNo(report), &[]);
        assert!(answered.is_some());
        let before = reports.last;
        reports.send(HomeId(1), EdgeId(0), Epoch(1), &mut Outbox::<()>::new());
        assert_eq!(reports.last, before.next());
        reports.under_way[&reports.last].whose.clone()
    }

    #[test]
    fn a_huge_report_holds_no_other_back() {
        let mut reports = Reports::new();
        for _ in 0..2 * REPORTS_UNDER_WAY_MAX {
            push(&mut reports, 1);
        }
        reports.send(HomeId(1), EdgeId(0), Epoch(1), &mut Outbox::<()>::new());
        assert_eq!(reports.under_way.len(), REPORTS_UNDER_WAY_MAX);
        for child in [2, 2, 3, 0] {
            push(&mut reports, child);
        }
        let turns = (1..=6).map(|report| next(&mut reports, report).0);
        assert!(turns.eq([2, 3, 0, 1, 2, 1]));
        // Who has gone is asked about no more.
        reports.child_went(EdgeId(1));
        assert!(reports.waiting.is_empty());
    }
}
