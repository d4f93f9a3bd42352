//! How much each child may have under way at the home (rule 15).

use crate::edge::admission::UnderWay;
use crate::edge::downstream::Children;
use crate::home::Outbox;
use crate::home::admission::Admission;
use crate::home::commit::parking::Parking;
use thorp_model::{EdgeId, Note};

/// Judges what members have under way: what waits for the disk, and what waits for pages. A site
/// asks for all that are below it, and has limited each of them: a home limits only members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance<'a> {
    pub(super) children: &'a Children,
    pub(super) admission: &'a Admission,
    pub(super) parking: &'a Parking,
}

impl Allowance<'_> {
    /// Whether a member has as many commits under way as it may.
    pub(super) fn has_all_commits(&self, edge: EdgeId, outbox: &mut Outbox) -> bool {
        self.is_limited(edge, UnderWay::has_all_commits, outbox)
    }

    /// Whether a member waits for more answers than its commits can have.
    pub(super) fn has_all_answers(&self, edge: EdgeId) -> bool {
        self.is_member(edge) && self.under_way(edge).has_all_answers()
    }

    /// Whether a member has as many calls under way as it may.
    pub(super) fn has_all_calls(&self, edge: EdgeId, outbox: &mut Outbox) -> bool {
        self.is_limited(edge, UnderWay::has_all_calls, outbox)
    }

    fn is_limited(&self, edge: EdgeId, has_all: fn(UnderWay) -> bool, outbox: &mut Outbox) -> bool {
        let is_limited = self.is_member(edge) && has_all(self.under_way(edge));
        if is_limited {
            outbox.note(Note::ChildLimited);
        }
        is_limited
    }

    pub(super) fn is_member(&self, edge: EdgeId) -> bool {
        self.children.is_member(edge)
    }

    fn under_way(&self, edge: EdgeId) -> UnderWay {
        let mut under_way = self.admission.under_way(edge);
        under_way.commits += self.parking.of(edge);
        under_way
    }

    /// The most commits, and the most calls, that one member has under way.
    pub(super) fn most_under_way(&self) -> UnderWay {
        let members = self.children.edges().filter(|edge| self.is_member(*edge));
        let under_way = members.map(|edge| self.under_way(edge));
        under_way.fold(UnderWay::default(), UnderWay::most)
    }
}
