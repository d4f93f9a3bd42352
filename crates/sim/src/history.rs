//! What programs did and were told.

use crate::oracle::Object;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use thorp_model::{
    CallId, CommitId, CommitRequest, HomeId, MemberId, ObjectId, Outcome, PageNo, Part,
    Participant, Position, SegmentId, Stamp,
};
use thorp_session::OwnCommits;

/// What a transaction saw: the value of each object at its first reading.
pub type Seen = BTreeMap<(HomeId, ObjectId), Object>;

/// A transaction that was handed to its member to be committed.
#[derive(Debug)]
pub struct Asked {
    /// Which member process.
    pub member: MemberId,
    /// What it did.
    pub parts: Vec<Part>,
    /// In which history of its home each part was read (rule R9).
    pub histories: Vec<u64>,
    /// What it saw.
    pub seen: Seen,
    /// What had been acknowledged to anybody when it began.
    pub acknowledged: BTreeMap<HomeId, Position>,
    /// Whether it was spoiled on purpose, or builds on one that was refused: it
    /// must be refused.
    pub wrong: bool,
    /// What it stands above (rule 5).
    pub after: Stamp,
    /// The commits that it names as those it builds on (rule 14).
    pub depends_on: Vec<(HomeId, CommitId)>,
    /// What it makes of objects, if that is known without looking.
    pub writes: Written,
    /// Which session asked, and how many times it had before.
    pub asker: (u32, u64),
}

/// What objects hold once they are written; none if that depends on what they held.
pub type Written = BTreeMap<(HomeId, ObjectId), Option<Object>>;

impl Asked {
    /// Whether a request that names these homes is its own; over one home it names none.
    fn is_over(&self, with: &[Participant]) -> bool {
        let named = |home| with.iter().any(|participant| participant.home == home);
        match &self.parts[..] {
            [_] => with.is_empty(),
            parts => parts.len() == with.len() && parts.iter().all(|part| named(part.home)),
        }
    }
}

/// A transaction that only read and stands at a stamp, without a message (rule 5).
#[derive(Debug)]
pub struct Reader {
    /// Where it stands.
    pub stamp: Stamp,
    /// What it read, each as of its evidence.
    pub seen: Vec<(HomeId, ObjectId, Position)>,
}

/// Everything programs did and were told.
#[derive(Debug, Default)]
pub struct History {
    /// Asked of a member, and not yet seen on its way.
    waiting: Vec<Rc<Asked>>,
    /// The last requests on their way.
    pub requests: VecDeque<CommitRequest>,
    /// Every commit by its id, once it was seen on its way.
    pub sent: BTreeMap<CommitId, Rc<Asked>>,
    /// Those that their program was shown before they were answered (rule 14).
    pub shown: BTreeMap<CommitId, Rc<Asked>>,
    /// The commits that each request names at its home: those over which it writes, too.
    names: BTreeMap<(CommitId, HomeId), Vec<CommitId>>,
    /// The last commit of each session that is in the log and wrote an object.
    last_written: BTreeMap<(u32, HomeId, ObjectId), u64>,
    /// Commits over several homes of processes that keep no rules.
    joint_of_rogues: BTreeSet<CommitId>,
    /// The commits whose outcomes calls ask for.
    pub outcome_calls: BTreeMap<CallId, BTreeSet<CommitId>>,
    /// What programs were told.
    pub told: BTreeMap<CommitId, Outcome>,
    /// The commits whose programs were told that nobody knows how they ended.
    forgotten: BTreeSet<CommitId>,
    /// The highest position of each home that any program was told.
    pub acknowledged: BTreeMap<HomeId, Position>,
    /// Transactions that only read.
    pub readers: Vec<Reader>,
    /// Segments that somebody asked to remove.
    pub removals: BTreeSet<(HomeId, SegmentId)>,
    /// Values staged, by the first of their overflow pages.
    pub staged: BTreeMap<(HomeId, SegmentId, PageNo), Arc<[u8]>>,
}

/// Requests kept, to be sent once more.
const REQUESTS_KEPT: usize = 100;

impl History {
    /// A program asks its member to commit.
    pub fn ask(&mut self, asked: Rc<Asked>) {
        self.waiting.push(asked);
    }

    /// A transaction may name the values that were staged at a home.
    pub fn stage(&mut self, home: HomeId, values: &BTreeMap<(SegmentId, PageNo), Arc<[u8]>>) {
        for ((segment, page), value) in values {
            let key = (home, *segment, *page);
            self.staged.entry(key).or_insert_with(|| value.clone());
        }
    }

    /// A member sends a commit on its way. False if no program asked for it, or
    /// if it is not what was sent under this id before.
    pub fn send(&mut self, request: &CommitRequest) -> bool {
        let names = (request.id, request.home());
        self.names.insert(names, request.depends_on.clone());
        if let Some(asked) = self.sent.get(&request.id) {
            return asked.parts.contains(&request.part);
        }
        // Two transactions may do the same at one home, and only one of them something elsewhere.
        let matching = |asked: &Rc<Asked>| {
            asked.member == request.id.member
                && asked.is_over(&request.with)
                && asked.parts.contains(&request.part)
        };
        let Some(index) = self.waiting.iter().position(matching) else {
            return false;
        };
        let asked = self.waiting.remove(index);
        self.sent.insert(request.id, asked);
        if self.requests.len() == REQUESTS_KEPT {
            self.requests.pop_front();
        }
        self.requests.push_back(request.clone());
        true
    }

    /// The commits that a request names at a home.
    pub fn names(&self, id: CommitId, home: HomeId) -> &[CommitId] {
        self.names.get(&(id, home)).map_or(&[], Vec::as_slice)
    }

    /// All commits on which one of these rests at a home, and these, in the order in which they were asked for.
    pub fn chain(
        &self,
        home: HomeId,
        of: impl Iterator<Item = CommitId>,
    ) -> BTreeMap<CommitId, Rc<Asked>> {
        let mut chain = BTreeMap::new();
        let mut open: Vec<CommitId> = of.collect();
        while let Some(id) = open.pop() {
            let asked = self.shown.get(&id).or_else(|| self.sent.get(&id));
            let Some(asked) = asked.filter(|_| !chain.contains_key(&id)) else {
                continue;
            };
            let here = asked.depends_on.iter().filter(|(of, _)| *of == home);
            open.extend(here.map(|(_, id)| *id));
            open.extend(self.names(id, home));
            chain.insert(id, Rc::clone(asked));
        }
        chain
    }

    /// A commit is in the log. One that wrote the same object, that the same session made later, and that is in the log
    /// already, if it went on before this one was answered.
    pub fn take_place(&mut self, home: HomeId, id: CommitId) -> Option<ObjectId> {
        let asked = Rc::clone(self.sent.get(&id)?);
        let (session, order) = asked.asker;
        let mut overtaken = None;
        for (_, object) in asked.writes.keys().filter(|(of, _)| *of == home) {
            let last = self.last_written.entry((session, home, *object));
            let last = last.or_insert(order);
            if *last > order && self.shown.contains_key(&id) {
                overtaken = Some(*object);
            }
            *last = order.max(*last);
        }
        overtaken
    }

    /// A process that keeps no rules sends a commit.
    pub fn rogue_sends(&mut self, request: &CommitRequest) {
        if request.with.len() > 1 {
            self.joint_of_rogues.insert(request.id);
        }
    }

    /// Whether a commit is one over several homes.
    pub fn is_joint(&self, id: CommitId) -> bool {
        let asked = self.sent.get(&id);
        asked.is_some_and(|asked| asked.parts.len() > 1) || self.joint_of_rogues.contains(&id)
    }

    /// A program was told how its commit ended, which is in the logs at these positions.
    pub fn tell(
        &mut self,
        id: CommitId,
        asked: &Rc<Asked>,
        outcome: &Outcome,
        positions: &BTreeMap<HomeId, Position>,
    ) {
        self.waiting.retain(|waiting| !Rc::ptr_eq(waiting, asked));
        self.told.insert(id, outcome.clone());
        if let Outcome::Committed { position, .. } = outcome {
            for part in &asked.parts {
                let position = positions.get(&part.home).unwrap_or(position);
                let known = self.acknowledged.entry(part.home).or_default();
                *known = (*known).max(*position);
            }
        }
    }

    /// A program was told that nobody knows how its commit ended.
    pub fn forget_outcome(&mut self, id: CommitId) {
        self.forgotten.insert(id);
    }

    /// A member died: what it had not sent never will be.
    pub fn forget_member(&mut self, member: MemberId) {
        self.waiting.retain(|asked| asked.member != member);
    }
}

/// What a program knows of its own commits.
impl OwnCommits for History {
    fn is_open(&self, id: CommitId) -> bool {
        let is_answered = self.told.contains_key(&id) || self.forgotten.contains(&id);
        self.shown.contains_key(&id) && !is_answered
    }

    fn stamp(&self, id: CommitId) -> Stamp {
        match self.told.get(&id) {
            Some(Outcome::Committed { stamp, .. }) if self.shown.contains_key(&id) => *stamp,
            _ => Stamp::default(),
        }
    }
}
