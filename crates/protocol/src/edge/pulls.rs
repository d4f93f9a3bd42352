//! Pulls under way: which children were asked how far their logs are, and what they have named (rule C3).

use crate::edge::debts::Debts;
use crate::edge::leases::Leases;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::{PULL_HEADS_MAX, PULL_HEADS_OF_MEMBER_MAX, PULLS_MAX};
use thorp_model::message::Heads;
use thorp_model::planted::Bug;
use thorp_model::{LogHead, MemberId, Millis, NameId, SegmentId, planted};

/// One pull. `O` is whoever gets its answer.
#[derive(Debug)]
pub(crate) struct Pull<O> {
    pub(crate) origin: O,
    pub(crate) segments: Vec<SegmentId>,
    begun: Millis,
    /// It is answered then, whoever is awaited.
    due: Option<Millis>,
    /// Until then it is not known who may hold a lease.
    quiet_until: Millis,
    /// Names below that have lost the right to write (rule R5).
    void: Vec<(SegmentId, NameId)>,
    /// The children that may have written.
    asked: BTreeMap<MemberId, Asked>,
}

/// A child that was asked.
#[derive(Debug)]
struct Asked {
    /// The last question. An answer to an earlier one may be from before a writer came.
    question: u64,
    /// The logs that the child has named in answer to that.
    named: Option<Vec<LogHead>>,
}

/// The pulls of one home that a parent has under way.
///
/// Invariant: a pull is open until each child that held a lease, or was granted one since, has answered and what it named is saved,
/// or its lease has ended. No two questions have one number.
#[derive(Debug)]
pub(crate) struct Pulls<O> {
    last: u64,
    last_question: u64,
    open: BTreeMap<u64, Pull<O>>,
    debts: Debts,
}

/// Children whose leases were over before they had answered, and since when they owed.
pub(crate) type Over = BTreeSet<(MemberId, Millis)>;

impl<O> Default for Pulls<O> {
    fn default() -> Self {
        Pulls {
            last: 0,
            last_question: 0,
            open: BTreeMap::new(),
            debts: Debts::default(),
        }
    }
}

/// What a pull asks about.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Wanted {
    pub(crate) segments: Vec<SegmentId>,
    /// Names below that have lost the right to write (rule R5).
    pub(crate) void: Vec<(SegmentId, NameId)>,
}

impl Wanted {
    /// Whether nobody waits for a member: it has lost the right wherever it holds a lease.
    fn leaves_out(&self, member: MemberId, leases: &Leases, now: Millis) -> bool {
        let segments = self.segments.iter();
        let mut held = segments.filter(|of| leases.until(member, &[**of], now).is_some());
        held.all(|of| self.void.contains(&(*of, member.name())))
    }
}

/// A question that goes to a child.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Question {
    pub(crate) child: MemberId,
    pub(crate) number: u64,
    pub(crate) wanted: Wanted,
}

impl<O> Pull<O> {
    /// All logs that the children have named.
    pub(crate) fn heads(&self) -> BTreeSet<LogHead> {
        let named = self.asked.values().filter_map(|asked| asked.named.as_ref());
        named.flatten().copied().collect()
    }

    /// Asks a child, or asks it anew.
    fn ask(&mut self, child: MemberId, last_question: &mut u64) -> Question {
        *last_question += 1;
        let question = *last_question;
        let named = None;
        self.asked.insert(child, Asked { question, named });
        Question {
            child,
            number: question,
            wanted: Wanted {
                segments: self.segments.clone(),
                void: self.void.clone(),
            },
        }
    }

    /// Nobody waits any more. Whoever has not answered still owes it.
    fn leave(&self, debts: &mut Debts, now: Millis, leases: &Leases) {
        for (child, asked) in &self.asked {
            let said = (asked.question, asked.named.as_ref());
            debts.keep((*child, &self.segments), (self.begun, now), said, leases);
        }
    }

    /// A child that is awaited.
    pub(crate) fn awaits(&self) -> Option<MemberId> {
        self.asked.keys().next().copied()
    }

    /// Until when nobody knows who may hold a lease.
    pub(crate) fn quiet_until(&self) -> Millis {
        self.quiet_until
    }
}

impl<O> Pulls<O> {
    /// A pull begins: these children are asked. Above the most that may be open, the oldest one is given up: its origin waits until
    /// leases end.
    pub(crate) fn begin(
        &mut self,
        now: Millis,
        origin: O,
        wanted: Wanted,
        (due, quiet_until): (Option<Millis>, Millis),
        (leases, is_member): (&Leases, impl Fn(MemberId) -> bool),
    ) -> Vec<Question> {
        self.last += 1;
        if self.open.len() >= PULLS_MAX
            && let Some((_, oldest)) = self.open.pop_first()
        {
            oldest.leave(&mut self.debts, now, leases);
        }
        let mut holders = leases.holders(&wanted.segments, now);
        holders.retain(|child| !is_member(*child) || !wanted.leaves_out(*child, leases, now));
        let Wanted { segments, void } = wanted;
        let mut begun = Pull {
            origin,
            begun: now,
            due,
            quiet_until,
            void,
            asked: BTreeMap::new(),
            segments,
        };
        if planted::is(Bug::PullJoined) {
            let is_asked = |child: &MemberId| {
                self.open
                    .values()
                    .any(|pull| pull.asked.contains_key(child))
            };
            holders.retain(|child| !is_asked(child));
        }
        let holders = holders.into_iter();
        let questions = holders.map(|child| begun.ask(child, &mut self.last_question));
        let questions = questions.collect();
        self.open.insert(self.last, begun);
        questions
    }

    /// A child holds leases from now on, or for longer. A writer that has turned may hold one by this way, and may have held one
    /// before a restart of this node: open pulls ask the child anew, behind the grant.
    pub(crate) fn granted(&mut self, child: MemberId, segments: &[SegmentId]) -> Vec<Question> {
        let open = self.open.values_mut();
        let concerned = open.filter(|pull| pull.segments.iter().any(|of| segments.contains(of)));
        let questions = concerned.map(|pull| pull.ask(child, &mut self.last_question));
        questions.collect()
    }

    /// These names have lost the right to write in a segment: a child that waits for them is asked anew, without them (rule R5).
    pub(crate) fn revoked(
        &mut self,
        children: &[MemberId],
        segment: SegmentId,
        void: &[(SegmentId, NameId)],
    ) -> Vec<Question> {
        let mut questions = Vec::new();
        for pull in self.open.values_mut() {
            if !pull.segments.contains(&segment) {
                continue;
            }
            pull.void.retain(|(of, _)| *of != segment);
            pull.void.extend(void);
            for child in children {
                let asked = pull.asked.get(child);
                if asked.is_some_and(|asked| asked.named.is_none()) {
                    questions.push(pull.ask(*child, &mut self.last_question));
                }
            }
        }
        questions
    }

    /// A child has come by a new edge: what it has not answered is asked again.
    pub(crate) fn came(&mut self, child: MemberId) -> Vec<Question> {
        let waits = |pull: &&mut Pull<O>| {
            let asked = pull.asked.get(&child);
            asked.is_some_and(|asked| asked.named.is_none())
        };
        let open = self.open.values_mut().filter(waits);
        let questions = open.map(|pull| pull.ask(child, &mut self.last_question));
        let mut questions: Vec<Question> = questions.collect();
        let owed = self.debts.ask_again(child, &mut self.last_question);
        questions.extend(owed.into_iter().map(|(number, segments)| Question {
            child,
            number,
            wanted: Wanted {
                segments,
                void: Vec::new(),
            },
        }));
        questions
    }

    /// A child has named the logs below it. Only its answer to the last question counts. A member speaks for its own logs, and
    /// nobody names segments of which it was not asked. Who names too many has not answered.
    pub(crate) fn answered(&mut self, child: MemberId, is_member: bool, said: Heads) {
        let most = match is_member {
            true => PULL_HEADS_OF_MEMBER_MAX,
            false => PULL_HEADS_MAX,
        };
        if said.heads.len() > most {
            return;
        }
        let mut heads = said.heads;
        heads.retain(|head| !is_member || head.log.name() == child.name());
        self.debts.answered(child, said.pull, &heads);
        let open = self.open.values_mut();
        let mut asked = open.filter_map(|pull| Some((&pull.segments, pull.asked.get_mut(&child)?)));
        if let Some((segments, asked)) = asked.find(|(_, asked)| asked.question == said.pull) {
            heads.retain(|head| segments.contains(&head.segment));
            asked.named.get_or_insert(heads);
        }
        if is_member {
            self.bound_name(child);
        }
    }

    /// All process starts of a name together name as many logs as one member may. The start that exceeds that has not answered.
    fn bound_name(&mut self, child: MemberId) {
        let name = child.name();
        for pull in self.open.values_mut() {
            let starts = MemberId::new(name, u64::MIN)..=MemberId::new(name, u64::MAX);
            let named = pull
                .asked
                .range(starts)
                .filter_map(|(_, asked)| asked.named.as_ref());
            let named: usize = named.map(Vec::len).sum();
            if named > PULL_HEADS_OF_MEMBER_MAX
                && let Some(asked) = pull.asked.get_mut(&child)
            {
                asked.named = None;
            }
        }
    }

    /// Awaits nobody whose lease has ended, or who has answered and whose logs are saved. Returns the pulls that wait for
    /// nothing more, also not for what else stands against each, and whose leases were over meanwhile.
    pub(crate) fn take_done(
        &mut self,
        now: Millis,
        leases: &Leases,
        is_saved: impl Fn(&LogHead) -> bool,
        is_free: impl Fn(&Pull<O>) -> bool,
    ) -> (Vec<Pull<O>>, Over) {
        let mut over = self.debts.settle(now, leases, &is_saved);
        for open in self.open.values_mut() {
            if open.quiet_until <= now {
                open.quiet_until = Millis(0);
            }
            let (segments, begun) = (&open.segments, open.begun);
            open.asked.retain(|child, asked| {
                let is_open = |heads: &Vec<LogHead>| heads.iter().any(|head| !is_saved(head));
                let holds = leases.until(*child, segments, now).is_some();
                let owes = asked.named.as_ref().is_none_or(is_open);
                if owes && !holds && leases.is_over(*child, segments, now) {
                    over.insert((*child, begun));
                }
                holds && owes
            });
        }
        let is_done =
            |pull: &mut Pull<O>| pull.asked.is_empty() && pull.quiet_until <= now && is_free(pull);
        let done = self.open.extract_if(.., |_, pull| is_done(pull));
        (done.map(|(_, pull)| pull).collect(), over)
    }

    /// The pulls in which every child has answered, or whose lease has ended; and whose leases were over before they answered.
    pub(crate) fn take_named(&mut self, now: Millis, leases: &Leases) -> (Vec<Pull<O>>, Over) {
        let mut over = self.debts.settle(now, leases, |_| true);
        for open in self.open.values_mut() {
            let (segments, begun) = (&open.segments, open.begun);
            open.asked.retain(|child, asked| {
                let holds = leases.until(*child, segments, now).is_some();
                let owes = asked.named.is_none();
                if owes && !holds && leases.is_over(*child, segments, now) {
                    over.insert((*child, begun));
                }
                holds || !owes
            });
        }
        let is_named = |pull: &mut Pull<O>| pull.asked.values().all(|asked| asked.named.is_some());
        let done = self.open.extract_if(.., |_, pull| is_named(pull));
        (done.map(|(_, pull)| pull).collect(), over)
    }

    /// The pulls that are answered now, whoever is awaited.
    pub(crate) fn take_due(&mut self, now: Millis, leases: &Leases) -> Vec<Pull<O>> {
        let is_due = |pull: &mut Pull<O>| pull.due.is_some_and(|due| due <= now);
        let due = self.open.extract_if(.., |_, pull| is_due(pull));
        let due: Vec<_> = due.map(|(_, pull)| pull).collect();
        for pull in &due {
            pull.leave(&mut self.debts, now, leases);
        }
        due
    }

    /// Since when a child owes an answer about one of these segments.
    pub(crate) fn owes_since(&self, child: MemberId, segments: &[SegmentId]) -> Option<Millis> {
        let open = self.open.values();
        let of_these = |pull: &&Pull<O>| pull.segments.iter().any(|of| segments.contains(of));
        let owes = open.filter(|pull| pull.asked.contains_key(&child) && of_these(pull));
        let owes = owes.map(|pull| pull.begun);
        owes.chain(self.debts.since(child, segments)).min()
    }

    /// Gives up the pulls of origins that are gone.
    pub(crate) fn retain(&mut self, now: Millis, leases: &Leases, keep: impl Fn(&O) -> bool) {
        let gone = self.open.extract_if(.., |_, pull| !keep(&pull.origin));
        for (_, pull) in gone {
            pull.leave(&mut self.debts, now, leases);
        }
    }

    /// Whoever began the pulls begins them anew. Debts stay, and numbers go on: a late answer is none to a question from here on.
    pub(crate) fn restart(&mut self, now: Millis, leases: &Leases) {
        self.retain(now, leases, |_| false);
    }

    /// When it is to be looked at next for the sake of time alone. Whoever looks awaits none of which the time is over.
    pub(crate) fn deadline(&self, leases: &Leases) -> Option<Millis> {
        let of_pull = |pull: &Pull<O>| {
            let ends = pull.asked.keys();
            let start = Millis(0);
            let ends = ends.filter_map(|child| leases.until(*child, &pull.segments, start));
            let quiet = (pull.quiet_until > start).then_some(pull.quiet_until);
            ends.chain(quiet).chain(pull.due).min()
        };
        self.open.values().filter_map(of_pull).min()
    }

    /// How many there are, of those that count.
    pub(crate) fn count(&self, counts: impl Fn(&O) -> bool) -> usize {
        let open = self.open.values();
        open.filter(|pull| counts(&pull.origin)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::{HomeId, LogId, NameId};

    const ONE: SegmentId = SegmentId(1);
    const TWO: SegmentId = SegmentId(2);
    const CHILD: MemberId = MemberId(7);
    const OTHER: MemberId = MemberId(8);

    fn wanted() -> Wanted {
        Wanted {
            segments: vec![ONE],
            void: vec![],
        }
    }

    /// All are members.
    fn all(_: MemberId) -> bool {
        true
    }

    fn head(number: u64) -> LogHead {
        LogHead {
            log: LogId(CHILD),
            segment: ONE,
            number,
        }
    }

    fn leased() -> Leases {
        let mut leases = Leases::default();
        assert!(leases.grant(CHILD, &[ONE], Millis(100)));
        leases
    }

    fn said(question: u64, heads: Vec<LogHead>) -> Heads {
        Heads {
            home: HomeId(1),
            pull: question,
            heads,
        }
    }

    fn done(pulls: &mut Pulls<u8>, now: u64, leases: &Leases, saved: u64) -> usize {
        let is_saved = |head: &LogHead| head.number <= saved;
        pulls
            .take_done(Millis(now), leases, is_saved, |_| true)
            .0
            .len()
    }

    #[test]
    fn a_pull_waits_for_what_holders_of_leases_have_named() {
        let (mut pulls, leases) = (Pulls::default(), leased());
        let asked = pulls.begin(Millis(0), 1, wanted(), (None, Millis(0)), (&leases, all));
        assert_eq!(asked.len(), 1);
        assert_eq!(done(&mut pulls, 1, &leases, 0), 0);
        let again = pulls.came(CHILD);
        assert_eq!(again.len(), 1, "by a new edge it is asked again");
        pulls.answered(CHILD, true, said(asked[0].number, vec![]));
        assert_eq!(done(&mut pulls, 1, &leases, 9), 0, "that answer is old");
        pulls.answered(OTHER, true, said(again[0].number, vec![]));
        pulls.answered(CHILD, true, said(again[0].number, vec![head(3)]));
        assert_eq!(pulls.came(CHILD), []);
        assert_eq!(done(&mut pulls, 2, &leases, 2), 0);
        assert_eq!(pulls.owes_since(CHILD, &[ONE]), Some(Millis(0)));
        assert_eq!(pulls.owes_since(CHILD, &[TWO]), None, "of others it may");
        assert_eq!(done(&mut pulls, 2, &leases, 3), 1);
        assert_eq!(pulls.owes_since(CHILD, &[ONE]), None);
    }

    /// An attack: whoever names what it does not have lets readers wait for it.
    #[test]
    fn a_member_names_only_its_own_logs_in_the_segments_that_were_asked_for() {
        let (mut pulls, leases) = (Pulls::default(), leased());
        let asked = pulls.begin(Millis(0), 1, wanted(), (None, Millis(0)), (&leases, all));
        let others = LogHead {
            log: LogId(MemberId::new(NameId(9), 1)),
            ..head(u64::MAX)
        };
        let elsewhere = LogHead {
            segment: TWO,
            ..head(u64::MAX)
        };
        let many = vec![head(3); PULL_HEADS_OF_MEMBER_MAX + 1];
        pulls.answered(CHILD, true, said(asked[0].number, many));
        assert_eq!(done(&mut pulls, 1, &leases, 9), 0, "too many are no answer");
        let named = vec![others, elsewhere, head(3)];
        pulls.answered(CHILD, true, said(asked[0].number, named));
        assert_eq!(done(&mut pulls, 1, &leases, 2), 0);
        assert_eq!(done(&mut pulls, 1, &leases, 3), 1);
    }

    /// An attack: a member that answers nothing lets its site keep each pull until its lease ends.
    #[test]
    fn the_oldest_pull_makes_room() {
        let (mut pulls, leases) = (Pulls::default(), leased());
        for pull in 0..PULLS_MAX as u64 + 5 {
            pulls.begin(Millis(0), pull, wanted(), (None, Millis(0)), (&leases, all));
        }
        assert_eq!(pulls.count(|_| true), PULLS_MAX);
        assert_eq!(pulls.count(|origin| *origin < 5), 0);
    }

    #[test]
    fn a_pull_waits_for_nobody_whose_lease_has_ended() {
        let (mut pulls, leases) = (Pulls::default(), leased());
        pulls.begin(Millis(0), 1, wanted(), (None, Millis(0)), (&leases, all));
        assert_eq!(pulls.deadline(&leases), Some(Millis(100)));
        assert_eq!(done(&mut pulls, 99, &leases, 0), 0);
        assert_eq!(done(&mut pulls, 100, &leases, 0), 1);
        // Nobody holds one from now on.
        let none = pulls.begin(Millis(100), 2, wanted(), (None, Millis(0)), (&leases, all));
        assert_eq!((none.len(), done(&mut pulls, 100, &leases, 0)), (0, 1));
    }

    /// An attack: a writer answers nothing. Each reader gives up before the lease ends, and nobody waits in between.
    #[test]
    fn a_debt_outlives_the_patience_of_readers() {
        let (mut pulls, mut leases) = (Pulls::default(), leased());
        pulls.begin(
            Millis(0),
            1,
            wanted(),
            (Some(Millis(9)), Millis(0)),
            (&leases, all),
        );
        assert_eq!(pulls.take_due(Millis(9), &leases).len(), 1);
        pulls.begin(Millis(10), 2, wanted(), (None, Millis(0)), (&leases, all));
        pulls.retain(Millis(11), &leases, |_| false);
        assert_eq!(pulls.owes_since(CHILD, &[ONE]), Some(Millis(0)));
        assert_eq!(
            pulls.came(CHILD).len(),
            1,
            "by a new edge it is asked again"
        );
        let (_, over) = pulls.take_done(Millis(100), &leases, |_| true, |_| true);
        assert!(over.contains(&(CHILD, Millis(0))));
        leases.sweep(Millis(100));
        assert_eq!(pulls.owes_since(CHILD, &[ONE]), None);
    }

    #[test]
    fn after_a_restart_a_pull_asks_those_who_come_back() {
        let mut pulls = Pulls::default();
        let mut leases = Leases::default();
        pulls.begin(
            Millis(0),
            1,
            wanted(),
            (Some(Millis(50)), Millis(60)),
            (&leases, all),
        );
        assert_eq!(done(&mut pulls, 10, &leases, 0), 0);
        leases.grant(CHILD, &[ONE], Millis(100));
        assert_eq!(pulls.granted(CHILD, &[ONE]).len(), 1);
        assert_eq!(done(&mut pulls, 60, &leases, 0), 0);
        assert_eq!(pulls.take_due(Millis(60), &leases).len(), 1);
    }

    /// A member that was revoked is not awaited, a site of its name is: others may be below that.
    #[test]
    fn a_pull_leaves_out_members_that_may_not_write() {
        let leases = leased();
        let void = Wanted {
            void: vec![(ONE, CHILD.name())],
            ..wanted()
        };
        let mut pulls = Pulls::default();
        let when = (None, Millis(0));
        let asked = pulls.begin(Millis(0), 1, void.clone(), when, (&leases, all));
        assert_eq!(asked, []);
        let asked = pulls.begin(Millis(0), 2, void, when, (&leases, |_| false));
        assert_eq!(asked.len(), 1);
        let asked = pulls.begin(Millis(0), 3, wanted(), when, (&leases, all));
        assert_eq!(asked.len(), 1);
    }

    /// An attack: starts of one name that name many logs each.
    #[test]
    fn starts_of_one_name_together_name_as_many_logs_as_one_may() {
        let start = |random| MemberId::new(NameId(7), random);
        let mut leases = Leases::default();
        for random in 1..=2 {
            assert!(leases.grant(start(random), &[ONE], Millis(100)));
        }
        let mut pulls = Pulls::default();
        let when = (None, Millis(0));
        let asked = pulls.begin(Millis(0), 1, wanted(), when, (&leases, all));
        let logs = |of: MemberId, count: u64| {
            let head = |random| LogHead {
                log: LogId(MemberId::new(of.name(), random)),
                segment: ONE,
                number: 1,
            };
            (0..count).map(head).collect::<Vec<_>>()
        };
        let most = PULL_HEADS_OF_MEMBER_MAX as u64;
        let (first, second) = (asked[0].clone(), asked[1].clone());
        pulls.answered(
            first.child,
            true,
            said(first.number, logs(first.child, most)),
        );
        pulls.answered(
            second.child,
            true,
            said(second.number, logs(second.child, 1)),
        );
        let (named, _) = pulls.take_named(Millis(1), &leases);
        assert!(named.is_empty(), "the second start owes its answer");
        pulls.answered(second.child, true, said(second.number, vec![]));
        assert_eq!(pulls.take_named(Millis(1), &leases).0.len(), 1);
    }
}
