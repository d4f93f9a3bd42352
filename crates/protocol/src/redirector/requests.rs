//! What came from below, went up, and is not answered: commits and calls.

use crate::edge::admission::UnderWay;
use crate::edge::pending_writes::PendingWrites;
use crate::edge::reply_routes::ReplyRoutes;
use crate::edge::send_window::SendWindow;
use crate::redirector::Outbox;
use crate::redirector::proxy::Proxy;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::{CALLS_PER_NAME_MAX, COMMITS_PER_NAME_MAX};
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallId, CommitId, CommitRequest, Down, EdgeId, HomeId, MemberId, Millis, NameId,
    NodeKind, Note, Outcome, Peer, Refusal, Up, message, planted,
};

/// What a commit is charged beside its reads and writes.
const COMMIT_CHARGE: usize = 64;

/// Commits and calls of children whose answers are to come. Each has at least one live edge that
/// it came up. The send window also counts the ones whose children went: they are on their way
/// still.
#[derive(Debug)]
pub(super) struct PassedRequests {
    /// Which children a commit came from, until it is answered.
    commits: BTreeMap<(HomeId, CommitId), ReplyRoutes>,
    /// The edges that a call came up, until it is answered: a child that came
    /// again asks again, and its old edge may bring the same call later still.
    calls: BTreeMap<(CallId, EdgeId), HomeId>,
    window: SendWindow,
}

impl PassedRequests {
    /// Nothing went up; an edge may carry so many bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        PassedRequests {
            commits: BTreeMap::new(),
            calls: BTreeMap::new(),
            window: SendWindow::new(bytes_max),
        }
    }

    pub(super) fn commits(&self) -> usize {
        self.commits.len()
    }

    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Bytes on their way up.
    pub(super) fn bytes(&self) -> usize {
        self.window.bytes()
    }

    /// What a member has under way to one home. It counts a commit over several homes once, so it
    /// never has more at any of them than its limit; and it speaks only for itself.
    pub(super) fn commits_of(&self, member: MemberId, edge: EdgeId, home: HomeId) -> UnderWay {
        let id = |sequence| CommitId { member, sequence };
        let own = (home, id(u64::MIN))..=(home, id(u64::MAX));
        let own = self.commits.range(own);
        UnderWay {
            commits: own.filter(|(_, from)| from.last() == Some(edge)).count(),
            calls: 0,
        }
    }

    /// The calls that a child has under way, to all homes.
    pub(super) fn calls_of(&self, edge: EdgeId) -> UnderWay {
        let own = self.calls.keys().filter(|(_, from)| *from == edge);
        UnderWay {
            commits: 0,
            calls: own.count(),
        }
    }

    /// Whether all members of a name have as many commits under way to a home as they may (rule R7).
    fn has_all_commits_of(&self, name: NameId, home: HomeId) -> bool {
        let id = |random, sequence| CommitId {
            member: MemberId::new(name, random),
            sequence,
        };
        let own = (home, id(u64::MIN, u64::MIN))..=(home, id(u64::MAX, u64::MAX));
        let own = self.commits.range(own).count();
        own >= COMMITS_PER_NAME_MAX && !planted::is(Bug::ProcessesNotCounted)
    }

    /// Whether the calls of a name that a site below passes on are as many as they leave free of what the site may have (rule
    /// R7).
    fn has_all_calls_below(&self, edge: EdgeId, name: NameId) -> bool {
        let below = self.calls.keys().filter(|(_, from)| *from == edge);
        let (own, all) = below.fold((0, 0), |(own, all), (call, _)| {
            (own + usize::from(call.member.name() == name), all + 1)
        });
        let free = CALLS_PER_NAME_MAX.saturating_sub(all);
        own >= free && !planted::is(Bug::ProcessesNotCounted)
    }

    /// Whether all members of a name have as many calls under way as they may.
    fn has_all_calls_of(&self, name: NameId) -> bool {
        let id = |random, number| CallId {
            member: MemberId::new(name, random),
            number,
        };
        let first = (id(u64::MIN, u64::MIN), EdgeId(u64::MIN));
        let last = (id(u64::MAX, u64::MAX), EdgeId(u64::MAX));
        let own = self.calls.range(first..=last).count();
        own >= CALLS_PER_NAME_MAX && !planted::is(Bug::ProcessesNotCounted)
    }

    /// Whether a commit is under way to a home.
    pub(super) fn has_commit(&self, home: HomeId, id: CommitId) -> bool {
        self.commits.contains_key(&(home, id))
    }

    /// Whether a commit may go up.
    pub(super) fn has_space_for_commit(
        &self,
        bytes: usize,
        is_on: impl Fn(HomeId) -> bool,
    ) -> bool {
        self.window.has_space_for_commit(bytes, is_on) || planted::is(Bug::ChildNotLimited)
    }

    /// Whether a call may go up.
    pub(super) fn has_space_for_call(&self, bytes: usize, is_on: impl Fn(HomeId) -> bool) -> bool {
        bytes == 0
            || self.window.has_space_for_staging(bytes, is_on)
            || planted::is(Bug::ChildNotLimited)
    }

    /// A commit of a child goes up.
    pub(super) fn commit_sent(&mut self, home: HomeId, id: CommitId, edge: EdgeId, bytes: usize) {
        self.decision_sent(home, id, edge);
        self.window.commit_sent(home, id, bytes);
    }

    /// A decision of a child goes up: its outcome is the reply, also where the vote went another way.
    pub(super) fn decision_sent(&mut self, home: HomeId, id: CommitId, edge: EdgeId) {
        self.commits.entry((home, id)).or_default().came_by(edge);
    }

    /// A call of a child goes up.
    pub(super) fn call_sent(&mut self, call: CallId, home: HomeId, edge: EdgeId, bytes: usize) {
        self.calls.insert((call, edge), home);
        self.window.call_sent(call, home, bytes);
    }

    /// A home has voted: the edges that want to know.
    pub(super) fn voted(&mut self, home: HomeId, id: CommitId) -> impl Iterator<Item = EdgeId> {
        self.window.commit_answered(home, id);
        self.came_by(home, id)
    }

    /// The edges that a commit came up by, which has not ended.
    pub(super) fn came_by(&self, home: HomeId, id: CommitId) -> impl Iterator<Item = EdgeId> {
        let from = self.commits.get(&(home, id));
        from.into_iter().flat_map(ReplyRoutes::iter)
    }

    /// A commit has ended at a home: the edges that it came up.
    pub(super) fn commit_ended(&mut self, home: HomeId, id: CommitId) -> ReplyRoutes {
        self.window.commit_answered(home, id);
        self.commits.remove(&(home, id)).unwrap_or_default()
    }

    /// A call is answered: the edges that it came up.
    pub(super) fn call_answered(&mut self, call: CallId) -> Vec<EdgeId> {
        self.window.call_answered(call);
        let came_by = (call, EdgeId(0))..=(call, EdgeId(u64::MAX));
        let came_by = self.calls.extract_if(came_by, |_, _| true);
        came_by.map(|((_, edge), _)| edge).collect()
    }

    /// A child's edge is gone. What it sent stays on its way up: the edges that are left get the
    /// outcome.
    pub(super) fn child_went(&mut self, edge: EdgeId) {
        self.commits.retain(|_, from| {
            from.went(edge);
            from.last().is_some()
        });
        self.calls.retain(|(_, from), _| *from != edge);
    }

    /// A home's stream begins: no answer comes for what went up before.
    pub(super) fn stream_began(&mut self, home: HomeId) {
        self.window.forget_home(home);
    }

    /// A home's stream has ended: the members ask again for the answers that are lost with it.
    pub(super) fn stream_ended(&mut self, home: HomeId) {
        self.commits.retain(|(of, _), _| *of != home);
        self.calls.retain(|_, of| *of != home);
        self.window.forget_home(home);
    }
}

/// Passes commits, decisions and calls of children up, and their answers down.
///
/// What a home cannot be sent is lost, as if it had been lost on the way: the member asks again when the stream begins.
#[derive(Debug)]
pub(super) struct Forwarder<'a> {
    pub(super) below: &'a BTreeMap<EdgeId, Peer>,
    pub(super) homes: &'a mut BTreeMap<HomeId, Proxy>,
    pub(super) passed: &'a mut PassedRequests,
    pub(super) pending_writes: &'a mut PendingWrites,
}

impl Forwarder<'_> {
    /// Passes a commit on, as what it came as, and keeps what it writes (rule 8). The evidence is
    /// the member's own: nobody on the way rewrites it (rule 4).
    pub(super) fn commit(
        &mut self,
        edge: EdgeId,
        (mut request, as_sent): (CommitRequest, impl FnOnce(CommitRequest) -> Up),
        outbox: &mut Outbox,
    ) {
        let id = request.id;
        let home = request.home();
        let of_member = self.commits_of_member(edge, home);
        if of_member.is_some_and(UnderWay::has_all_commits) {
            outbox.note(Note::ChildLimited);
            return refuse_busy(edge, home, id, outbox);
        }
        if self.passed.has_all_commits_of(id.member.name(), home) {
            outbox.note(Note::NameLimited);
            return refuse_busy(edge, home, id, outbox);
        }
        let Some(proxy) = self.homes.get(&home) else {
            return refuse_busy(edge, home, id, outbox);
        };
        // Without the home the commit is lost, as if it had been lost on the
        // way: the member asks for its outcome when the stream begins again.
        let Some(up) = proxy.up.edge else {
            return;
        };
        let bytes = request.bytes() + COMMIT_CHARGE;
        let is_on = |of| self.stream_edge(of) == Some(up);
        if !self.passed.has_space_for_commit(bytes, is_on) {
            outbox.note(Note::ChildLimited);
            return refuse_busy(edge, home, id, outbox);
        }
        if planted::is(Bug::EvidenceRewritten) {
            request.part.evidence = proxy.up.position;
        }
        self.pending_writes.put(id, &request.part, outbox);
        self.passed.commit_sent(home, id, edge, bytes);
        outbox.up(up, as_sent(request));
    }

    /// The delivery of what is decided is this child's reply, also where the vote went another
    /// way. What is lost here has none: the homes find out by themselves (rule 10).
    pub(super) fn decide(&mut self, edge: EdgeId, decide: message::Decide, outbox: &mut Outbox) {
        let (home, commit) = (decide.home, decide.commit);
        if !self.passed.has_commit(home, commit) {
            let of_member = self.commits_of_member(edge, home);
            if of_member.is_some_and(UnderWay::has_all_answers) {
                return outbox.note(Note::ChildLimited);
            }
        }
        if self.pass_up(home, Up::Decide(decide), outbox) {
            self.passed.decision_sent(home, commit, edge);
        }
    }

    /// What a member has under way to one home. A site is not limited: it has limited each
    /// member below it.
    fn commits_of_member(&self, edge: EdgeId, home: HomeId) -> Option<UnderWay> {
        let peer = self.below.get(&edge).filter(|_| self.is_member(edge))?;
        Some(self.passed.commits_of(peer.node, edge, home))
    }

    fn is_member(&self, edge: EdgeId) -> bool {
        let peer = self.below.get(&edge);
        peer.is_some_and(|peer| peer.kind == NodeKind::Member)
    }

    /// Without the home the message is lost; the member sends
    /// it again when the stream begins. False then.
    pub(super) fn pass_up(&self, home: HomeId, message: Up, outbox: &mut Outbox) -> bool {
        let up = self.stream_edge(home);
        if let Some(up) = up {
            outbox.up(up, message);
        }
        up.is_some()
    }

    /// Passes a call on. False if it does not go up.
    pub(super) fn call(
        &mut self,
        edge: EdgeId,
        message: message::Call,
        outbox: &mut Outbox,
    ) -> bool {
        let (call, home) = (message.call, message.home);
        let bytes = message.request.staged_bytes();
        let up = self.stream_edge(home);
        let is_on = |of| self.stream_edge(of) == up;
        let name = call.member.name();
        let is_name_limited = self.passed.has_all_calls_of(name)
            || (!self.is_member(edge) && self.passed.has_all_calls_below(edge, name));
        let is_limited = self.is_member(edge) && self.passed.calls_of(edge).has_all_calls();
        if is_name_limited || is_limited || !self.passed.has_space_for_call(bytes, is_on) {
            outbox.note(match is_name_limited {
                true => Note::NameLimited,
                false => Note::ChildLimited,
            });
            let result = Err(CallError::Busy);
            let busy = Down::CallResult(message::CallResult { home, call, result });
            outbox.down(edge, busy);
            return false;
        }
        // Without the home the call is lost; it is made again when the stream begins.
        if let Some(up) = up {
            self.passed.call_sent(call, home, edge, bytes);
            outbox.up(up, Up::Call(message));
        }
        up.is_some()
    }

    fn stream_edge(&self, home: HomeId) -> Option<EdgeId> {
        self.homes.get(&home)?.up.edge
    }

    /// A vote answers what was sent up; it goes to every child that the commit came from (rule 10).
    pub(super) fn voted(&mut self, voted: &message::Voted, outbox: &mut Outbox) {
        let edges: Vec<EdgeId> = self.passed.voted(voted.home, voted.commit).collect();
        for edge in edges {
            self.answer(voted.home, edge, Down::Voted(voted.clone()), outbox);
        }
    }

    /// The answer to a commit follows: whoever sent it learns that (rule C2).
    pub(super) fn withheld(&mut self, withheld: &message::Withheld, outbox: &mut Outbox) {
        let (home, commit) = (withheld.home, withheld.commit);
        let edges: Vec<EdgeId> = self.passed.came_by(home, commit).collect();
        for edge in edges {
            self.answer(home, edge, Down::Withheld(withheld.clone()), outbox);
        }
    }

    /// An outcome that has no delivery: forwarded, never applied (rule 11).
    pub(super) fn outcome(
        &mut self,
        home: HomeId,
        commit: CommitId,
        outcome: &Outcome,
        outbox: &mut Outbox,
    ) {
        self.pending_writes.drop_commit(home, commit);
        for edge in self.passed.commit_ended(home, commit).iter() {
            self.answer(
                home,
                edge,
                Down::outcome(home, commit, outcome.clone()),
                outbox,
            );
        }
    }

    /// An answer of a home goes to a child, behind the receipt that it rests on (rule R9).
    fn answer(&mut self, home: HomeId, edge: EdgeId, answer: Down, outbox: &mut Outbox) {
        if let Some(proxy) = self.homes.get_mut(&home) {
            proxy.vouch(edge, outbox);
        }
        outbox.down(edge, answer);
    }

    /// The result of a call goes to every edge that the call came up.
    pub(super) fn call_result(
        &mut self,
        now: Millis,
        result: &message::CallResult,
        outbox: &mut Outbox,
    ) {
        for edge in self.passed.call_answered(result.call) {
            let mut result = result.clone();
            if let Some((proxy, peer)) = self.homes.get_mut(&result.home).zip(self.below.get(&edge))
                && !proxy.writing().answered(now, (edge, peer), &result, outbox)
            {
                result.result = Err(CallError::TooMany);
            }
            self.answer(result.home, edge, Down::CallResult(result), outbox);
        }
    }
}

fn refuse_busy(edge: EdgeId, home: HomeId, commit: CommitId, outbox: &mut Outbox) {
    outbox.note(Note::RefusedBusy);
    let refused = Outcome::Refused(Refusal::busy());
    outbox.down(edge, Down::outcome(home, commit, refused));
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: HomeId = HomeId(1);
    const CHILD: EdgeId = EdgeId(1);
    const OTHER: EdgeId = EdgeId(2);
    const MEMBER: MemberId = MemberId(7);

    fn commit(sequence: u64) -> CommitId {
        CommitId {
            member: MEMBER,
            sequence,
        }
    }

    #[test]
    fn a_commit_that_came_twice_counts_for_the_last_edge() {
        let mut passed = PassedRequests::new(100);
        passed.commit_sent(HOME, commit(1), CHILD, 10);
        passed.commit_sent(HOME, commit(1), OTHER, 10);
        assert_eq!(passed.commits_of(MEMBER, CHILD, HOME).commits, 0);
        assert_eq!(passed.commits_of(MEMBER, OTHER, HOME).commits, 1);
        let edges: Vec<EdgeId> = passed.voted(HOME, commit(1)).collect();
        assert_eq!(edges, [CHILD, OTHER]);
        assert_eq!(passed.bytes(), 0);
    }

    #[test]
    fn all_members_of_a_name_have_one_share() {
        let mut passed = PassedRequests::new(usize::MAX);
        let name = NameId(7);
        for number in 0..COMMITS_PER_NAME_MAX as u64 {
            assert!(!passed.has_all_commits_of(name, HOME));
            let id = CommitId {
                member: MemberId::new(name, number % 99),
                sequence: number,
            };
            passed.commit_sent(HOME, id, EdgeId(number % 99), 0);
        }
        assert!(passed.has_all_commits_of(name, HOME));
        assert!(!passed.has_all_commits_of(name, HomeId(2)), "another home");
        assert!(!passed.has_all_commits_of(NameId(8), HOME), "another name");
        for number in 0..CALLS_PER_NAME_MAX as u64 {
            assert!(!passed.has_all_calls_of(name));
            let call = CallId {
                member: MemberId::new(name, number % 99),
                number,
            };
            passed.call_sent(call, HOME, EdgeId(number % 99), 0);
        }
        assert!(passed.has_all_calls_of(name) && !passed.has_all_calls_of(NameId(8)));
    }

    #[test]
    fn what_a_child_sent_that_went_is_on_its_way_still() {
        let mut passed = PassedRequests::new(100);
        let call = CallId {
            member: MEMBER,
            number: 1,
        };
        passed.commit_sent(HOME, commit(1), CHILD, 10);
        passed.call_sent(call, HOME, CHILD, 5);
        passed.child_went(CHILD);
        assert_eq!((passed.commits(), passed.calls()), (0, 0));
        assert_eq!(passed.bytes(), 15);
        assert!(passed.call_answered(call).is_empty());
        assert!(passed.commit_ended(HOME, commit(1)).last().is_none());
        assert_eq!(passed.bytes(), 0);
    }
}
