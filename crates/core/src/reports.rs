//! A child's report of what it holds to a new parent, in pieces of which a
//! bounded number is under way (rule 13).

use crate::door::Out;
use crate::ids::{EdgeId, Epoch, HomeId, PageId, ReportNo};
use crate::limits::{REPORT_PAGES_MAX, REPORTS_UNDER_WAY_MAX};
use crate::message::{Reported, Up};
use crate::note::Note;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

/// Pieces on their way up. `S` is whose pages they are.
#[derive(Debug)]
pub(crate) struct Reports<S> {
    waiting: VecDeque<Piece<S>>,
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

impl<S> Reports<S> {
    pub(crate) fn new() -> Self {
        Reports {
            waiting: VecDeque::new(),
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
        self.waiting.iter().chain(self.under_way.values())
    }

    /// Adds a piece that is no larger than one may be.
    pub(crate) fn push(&mut self, whose: S, pages: Vec<Reported>) {
        self.waiting.push_back(Piece { whose, pages });
    }

    /// Sends what may be under way.
    pub(crate) fn send(&mut self, home: HomeId, edge: EdgeId, epoch: Epoch, out: &mut Out) {
        while self.under_way.len() < REPORTS_UNDER_WAY_MAX {
            let Some(piece) = self.waiting.pop_front() else {
                return;
            };
            self.last = self.last.next();
            let report = self.last;
            let pages = piece.pages.clone();
            self.under_way.insert(report, piece);
            out.note(Note::ReportSent);
            out.up(
                edge,
                Up::Report {
                    home,
                    epoch,
                    report,
                    pages,
                },
            );
        }
    }
}

impl<S: Clone> Reports<S> {
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
