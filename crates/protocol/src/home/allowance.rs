//! How much each child may have under way at the home (rule 15).

use crate::edge::admission::UnderWay;
use crate::edge::downstream::Children;
use crate::home::Outbox;
use crate::home::admission::Admission;
use crate::home::commit::parking::Parking;
use crate::home::name_limits::NameLimits;
use thorp_model::limits::{CALLS_UNDER_WAY_MAX, COMMITS_UNDER_WAY_MAX};
use thorp_model::planted::Bug;
use thorp_model::{EdgeId, NameId, Note, planted};

/// Judges what members have under way: what waits for the disk, and what waits for pages. A site
/// asks for all that are below it, and has limited each of them: a home limits only members, and names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance<'a> {
    pub(super) children: &'a Children,
    pub(super) admission: &'a Admission,
    pub(super) parking: &'a Parking,
    pub(super) per_name: &'a NameLimits,
}

impl Allowance<'_> {
    /// Whether a member, or all members of its name together, have as many commits under way as they may. Those of a name
    /// count by whatever edge they come (rule R7).
    pub(super) fn has_all_commits(
        &self,
        (edge, name): (EdgeId, NameId),
        outbox: &mut Outbox,
    ) -> bool {
        let parked = self.parking.of_name(name);
        let most = (self.per_name.commits_max as u64).saturating_sub(parked);
        let limits = (COMMITS_UNDER_WAY_MAX as u64, most);
        let is_shared = self.admission.commits().allows(name, 1, limits);
        self.is_name_limited(is_shared, outbox)
            || self.is_limited(edge, UnderWay::has_all_commits, outbox)
    }

    /// Whether a member waits for more answers than its commits can have.
    pub(super) fn has_all_answers(&self, edge: EdgeId) -> bool {
        self.is_member(edge) && self.under_way(edge).has_all_answers()
    }

    /// Whether a member, or all members of its name together, have as many calls under way as they may.
    pub(super) fn has_all_calls(
        &self,
        (edge, name): (EdgeId, NameId),
        outbox: &mut Outbox,
    ) -> bool {
        let limits = (CALLS_UNDER_WAY_MAX as u64, self.per_name.calls_max as u64);
        let is_shared = self.admission.calls().allows(name, 1, limits);
        self.is_name_limited(is_shared, outbox)
            || self.is_limited(edge, UnderWay::has_all_calls, outbox)
    }

    fn is_name_limited(&self, is_shared: bool, outbox: &mut Outbox) -> bool {
        let is_limited = !is_shared && !planted::is(Bug::ProcessesNotCounted);
        if is_limited {
            outbox.note(Note::NameLimited);
        }
        is_limited
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

    /// The most commits, and the most calls, that one name has under way, without what waits for pages.
    pub(super) fn most_of_a_name(&self) -> UnderWay {
        UnderWay {
            commits: self.admission.commits().most() as usize,
            calls: self.admission.calls().most() as usize,
        }
    }

    /// The most commits, and the most calls, that one member has under way.
    pub(super) fn most_under_way(&self) -> UnderWay {
        let members = self.children.edges().filter(|edge| self.is_member(*edge));
        let under_way = members.map(|edge| self.under_way(edge));
        under_way.fold(UnderWay::default(), UnderWay::most)
    }
}
