//! Who may do what in the segments of a home (rules R3 and R4).

use crate::edge::shares::Shares;
use crate::home::commit::refusal::NotNow;
use crate::home::groups::{self, Groups};
use crate::home::lists::{is_list_page, list_in, list_of};
use crate::home::segments::Segments;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::records::RightsRecord;
use thorp_model::{
    Access, Audience, CallError, Carriers, InvalidCommit, NameId, ObjectId, Op, PageId, PageWrites,
    Part, Principal, RIGHTS_SLOT, Readers, Refusal, Right, RightsList, SegmentId, Share,
    SlotChange, SlotSet, Table, WriteOp, planted, records,
};

/// The rights list of each segment, at the accepted tip of the log.
///
/// Requests are judged by it. What goes down a stream is judged by what the children of the home
/// were told, at the durable end: a grant that a crash can undo opens nothing yet.
///
/// Invariant: `told` has the sum of what a site is told about each segment, at most, and shares it among those who made the
/// segments. The list of a segment that is being removed is as one that is not there.
#[derive(Debug)]
pub(super) struct Rights {
    lists: BTreeMap<SegmentId, Access>,
    groups: Groups,
    /// Who made each segment, as far as that is known.
    makers: BTreeMap<SegmentId, NameId>,
    told: Shares<NameId>,
    told_max: u64,
}

/// Bytes of what sites are told about the segments of each maker.
type Told = BTreeMap<Option<NameId>, u64>;

/// A segment without a list is from before there were rights.
static WITHOUT_LIST: Access = Access::without_list();

/// What a segment is charged of what sites are told beside its names.
const READERS_ENTRY_BYTES: usize = 16;

/// The segment whose list a new segment begins with.
pub(super) const TEMPLATE_PATH: &str = ".new";

/// The segment in which one has to have *write* in order to make segments.
pub(super) const CREATORS_PATH: &str = ".create";

/// Whether a path is one that only an operator may make a segment at.
pub(super) fn is_operators_path(path: &str) -> bool {
    groups::name_in(path).is_some() || [TEMPLATE_PATH, CREATORS_PATH].contains(&path)
}

impl Rights {
    /// No lists yet. Sites are told so many bytes about the readers of all segments.
    pub(super) fn new(told_max: usize) -> Self {
        Rights {
            lists: BTreeMap::new(),
            groups: Groups::default(),
            makers: BTreeMap::new(),
            told: Shares::default(),
            told_max: told_max as u64,
        }
    }

    /// How many segments have no list: each member may write there.
    pub(super) fn without_list(&self, segments: &Segments) -> usize {
        let without = |segment: &SegmentId| !self.lists.contains_key(segment);
        segments.all().filter(without).count()
    }

    /// Takes a list from the store.
    pub(super) fn recover(
        &mut self,
        segments: &Segments,
        segment: SegmentId,
        record: &RightsRecord,
    ) {
        self.set(segments, segment, Access::of(record.list.bytes()));
    }

    /// An object was changed by an accepted commit. Returns the operation that stores its list, if
    /// it is one.
    pub(super) fn follow(
        &mut self,
        segments: &Segments,
        object: ObjectId,
        change: &SlotChange,
    ) -> Option<Op> {
        let list = list_in(object, change)?;
        let segment = object.page.segment;
        self.set(segments, segment, Access::of(list.bytes()));
        let record = RightsRecord { list: list.clone() };
        let key = records::rights_key(segment);
        Some(records::put(Table::Meta, key, &record))
    }

    /// A name has made a segment. To be called before its list is known.
    pub(super) fn made(&mut self, segment: SegmentId, maker: Option<NameId>) {
        if let Some(maker) = maker {
            self.makers.insert(segment, maker);
        }
    }

    fn set(&mut self, segments: &Segments, segment: SegmentId, list: Access) {
        let Some(record) = segments.get(segment) else {
            return self.forget(segment);
        };
        if let Some(group) = groups::name_in(&record.path) {
            self.groups.found(group, segment);
        }
        self.tell(segment, Some(&list));
        self.groups
            .follow(segment, self.lists.get(&segment), Some(&list));
        self.lists.insert(segment, list);
    }

    /// A segment is removed, and its number is never given again. If it was a group, nobody is in it any more.
    pub(super) fn forget(&mut self, segment: SegmentId) {
        self.tell(segment, None);
        self.groups.follow(segment, self.lists.get(&segment), None);
        self.lists.remove(&segment);
        self.makers.remove(&segment);
    }

    /// After a change of these lists: who may read and carry their segments, and those that name a group whose list it is (rule R4).
    /// A group that was removed is forgotten with this.
    pub(super) fn readers_after(
        &mut self,
        changed: &BTreeSet<SegmentId>,
        removed: Option<SegmentId>,
    ) -> Vec<(SegmentId, Audience)> {
        let mut told = changed.clone();
        for segment in changed.iter().copied().chain(removed) {
            told.extend(self.groups.naming(segment));
        }
        if let Some(removed) = removed {
            self.forget(removed);
            self.groups.end(removed);
            told.remove(&removed);
        }
        let lists = told.into_iter();
        let lists = lists.filter_map(|segment| Some((segment, self.lists.get(&segment)?)));
        lists
            .map(|(segment, list)| (segment, self.resolved(list)))
            .collect()
    }

    /// Who may read and carry each segment.
    pub(super) fn readers(&self) -> impl Iterator<Item = (SegmentId, Audience)> + '_ {
        let lists = self.lists.iter();
        lists.map(|(segment, list)| (*segment, self.resolved(list)))
    }

    /// Who may read and carry by a list, with the nodes in its groups.
    fn resolved(&self, list: &Access) -> Audience {
        Audience {
            readers: self.resolved_readers(list),
            carriers: list.carriers().clone(),
        }
    }

    fn resolved_readers(&self, list: &Access) -> Readers {
        let Readers::Names(mut names) = list.readers() else {
            return Readers::Members;
        };
        for (group, _) in list.groups() {
            match self.group(group).map(Access::readers) {
                Some(Readers::Members) => return Readers::Members,
                Some(Readers::Names(more)) => names.extend(more),
                None => {}
            }
        }
        names.sort_unstable();
        names.dedup();
        Readers::Names(names)
    }

    /// The list that says who is in a group. Groups in it count for nothing.
    fn group(&self, name: &str) -> Option<&Access> {
        self.lists.get(&self.groups.segment(name)?)
    }

    /// The list that the home's operators want new segments to begin with.
    pub(super) fn template(&self, segments: &Segments) -> Option<RightsList> {
        let segment = segments.find(TEMPLATE_PATH)?;
        self.lists.get(&segment).map(Access::to_list)
    }

    /// Whether a principal has a right in a segment, at the accepted tip.
    pub(super) fn may(&self, who: Principal, segment: SegmentId, right: Right) -> bool {
        let access = self.lists.get(&segment).unwrap_or(&WITHOUT_LIST);
        if planted::is(Bug::MembersIgnored) && !who.is_operator {
            return access.own(who.name) >= Some(right);
        }
        if planted::is(Bug::WriteWithoutRead) && right == Right::Read {
            return !access.allows(who, Right::Write) || access.allows(who, Right::Admin);
        }
        let is_in = |(group, held): (&str, Right)| {
            let members = self.group(group);
            held >= right && members.is_some_and(|members| members.allows(who, Right::Read))
        };
        access.allows(who, right) || access.groups().any(is_in)
    }

    /// What sites are told of the segments that a list concerns, at most: as it is, and if that segment had another list, or
    /// were gone.
    fn told_with(&self, segment: SegmentId, list: Option<&Access>) -> (Told, Told) {
        let then = |of: SegmentId| match of == segment {
            true => list,
            false => self.lists.get(&of),
        };
        let concerned: BTreeSet<SegmentId> = self.groups.naming(segment).chain([segment]).collect();
        let (mut before, mut after) = (Told::new(), Told::new());
        for of in concerned {
            let maker = self.makers.get(&of).copied();
            let as_it_is = self.told_bytes_of(of, |of| self.lists.get(&of));
            *before.entry(maker).or_default() += as_it_is as u64;
            *after.entry(maker).or_default() += self.told_bytes_of(of, then) as u64;
        }
        (before, after)
    }

    /// A segment has another list, or is gone.
    fn tell(&mut self, segment: SegmentId, list: Option<&Access>) {
        let (before, after) = self.told_with(segment, list);
        for (maker, bytes) in before {
            self.told.give_back(maker, bytes);
        }
        for (maker, bytes) in after {
            self.told.take(maker, bytes);
        }
    }

    /// Judges what sites would be told if a segment had this list: all together, and of the segments of one maker (rule R7).
    /// A list that tells no more than before is always taken. Who is in a group is not judged by the shares of those who
    /// name it.
    fn check_told(&self, segment: SegmentId, list: &Access) -> Result<(), TooMuchTold> {
        let (before, after) = self.told_with(segment, Some(list));
        let (less, more) = (before.values().sum::<u64>(), after.values().sum::<u64>());
        if more > less && self.told.taken() + (more - less) > self.told_max {
            return Err(TooMuchTold::InAll);
        }
        let maker = self.makers.get(&segment).copied();
        let of_maker = |told: &Told| told.get(&maker).copied().unwrap_or_default();
        let own = of_maker(&after).saturating_sub(of_maker(&before));
        let limits = (self.told_max, u64::MAX);
        let is_shared = maker.is_none_or(|maker| self.told.allows(maker, own, limits));
        match own == 0 || is_shared || planted::is(Bug::ReadersNotShared) {
            true => Ok(()),
            false => Err(TooMuchTold::OfMaker),
        }
    }

    /// Judges the list with which a name is about to make a segment.
    pub(super) fn check_new(&self, maker: Option<NameId>, list: &RightsList) -> Result<(), Share> {
        let list = Access::of(&list.to_bytes());
        let own = self.told_bytes_of(SegmentId(0), |_| Some(&list)) as u64;
        let limits = (self.told_max, u64::MAX);
        let is_shared = maker.is_none_or(|maker| self.told.allows(maker, own, limits));
        match own == 0 || is_shared || planted::is(Bug::ReadersNotShared) {
            true => Ok(()),
            false => Err(Share::Readers),
        }
    }

    /// The most bytes that sites are told about the segments of one maker.
    pub(super) fn most_told(&self) -> usize {
        self.told.most() as usize
    }

    fn told_bytes_of<'a>(
        &self,
        segment: SegmentId,
        list_of: impl Fn(SegmentId) -> Option<&'a Access>,
    ) -> usize {
        let Some(list) = list_of(segment) else {
            return 0;
        };
        let carriers = list.carriers();
        if !list.readers_are_named() {
            return match *carriers == Carriers::ALL_SITES {
                true => 0,
                false => READERS_ENTRY_BYTES + 8 * carriers.names.len(),
            };
        }
        let named_in = |(group, _): (&str, Right)| {
            let members = self.groups.segment(group).and_then(&list_of);
            members.map_or(0, Access::named)
        };
        let in_groups: usize = list.groups().map(named_in).sum();
        READERS_ENTRY_BYTES + 8 * (list.named() + in_groups + carriers.names.len())
    }

    /// Judges a call about a segment. A segment that the caller may not read is as one that is not
    /// there (rule R5).
    pub(super) fn check_call(
        &self,
        segments: &Segments,
        who: Principal,
        segment: SegmentId,
        right: Right,
    ) -> Result<(), CallError> {
        let is_there = segments.get(segment).is_some();
        if !is_there || !self.may(who, segment, Right::Read) {
            return Err(CallError::NoSuchSegment);
        }
        if !self.may(who, segment, right) {
            return Err(CallError::NoRight { right });
        }
        Ok(())
    }

    /// Judges a commit's part (rule R4): it reads what it may read, and writes what it may write. A
    /// segment that is not there and one that is hidden are answered here, and alike (rule R5).
    pub(super) fn check_part(
        &self,
        segments: &Segments,
        who: Principal,
        part: &Part,
        of_several: bool,
    ) -> Result<(), Denied> {
        let read = part.reads.iter().map(|(page, _)| page.segment);
        let written = part.writes.iter().map(|writes| writes.page.segment);
        // Each once: a list with groups takes longer to ask.
        let named: BTreeSet<SegmentId> = read.chain(written.clone()).collect();
        for segment in named {
            let is_there = segments.get(segment).is_some();
            let is_shown = self.may(who, segment, Right::Read);
            if !is_there || !(is_shown || planted::is(Bug::RightsNotChecked)) {
                return Err(Denied {
                    why: InvalidCommit::NoSuchSegment.into(),
                    wanted: is_there.then_some((segment, Right::Read)),
                });
            }
        }
        if planted::is(Bug::RightsNotChecked) {
            return Ok(());
        }
        let may_write = |writes: &&PageWrites| self.may(who, writes.page.segment, Right::Write);
        if let Some(writes) = part.writes.iter().find(|writes| !may_write(writes)) {
            let has_list = writes.slots.iter().any(|(slot, _)| *slot == RIGHTS_SLOT);
            let changes_list = is_list_page(writes.page) && has_list;
            let wanted = if changes_list {
                Right::Admin
            } else {
                Right::Write
            };
            return Err(Denied::want(writes.page.segment, wanted));
        }
        self.check_lists(who, part, of_several)
    }

    /// Judges what a part does to rights lists (rules R3 and R5).
    fn check_lists(&self, who: Principal, part: &Part, of_several: bool) -> Result<(), Denied> {
        let reads_list =
            |(page, slots): &(PageId, SlotSet)| is_list_page(*page) && slots.contains(RIGHTS_SLOT);
        let writes = part.writes.iter().filter(|w| is_list_page(w.page));
        let lists: Vec<(SegmentId, &WriteOp)> = writes
            .flat_map(|w| w.slots.iter().map(|(slot, op)| (w.page.segment, slot, op)))
            .filter(|(_, slot, _)| **slot == RIGHTS_SLOT)
            .map(|(segment, _, op)| (segment, op))
            .collect();
        let touches = !lists.is_empty() || part.reads.iter().any(reads_list);
        if of_several && touches && !planted::is(Bug::RightsInVote) {
            return Err(InvalidCommit::RightsOfSeveral.into());
        }
        for (segment, op) in lists {
            let is_admin = self.may(who, segment, Right::Admin);
            if !is_admin && !planted::is(Bug::ListForWriters) {
                return Err(Denied::want(segment, Right::Admin));
            }
            let list = list_of(op).ok_or(InvalidCommit::BadRights)?;
            let list = Access::of(list.bytes());
            match self.check_told(segment, &list) {
                Ok(()) => {}
                Err(TooMuchTold::InAll) => return Err(InvalidCommit::TooLarge.into()),
                Err(TooMuchTold::OfMaker) => return Err(Denied::share(Share::Readers)),
            }
        }
        Ok(())
    }
}

/// Why a list tells too much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TooMuchTold {
    /// All lists together.
    InAll,
    /// Those of the segments of one maker.
    OfMaker,
}

/// A part that rights forbid.
#[derive(Debug)]
pub(super) struct Denied {
    /// What its sender is answered.
    pub(super) why: NotNow,
    /// The right that it lacks.
    pub(super) wanted: Option<(SegmentId, Right)>,
}

impl Denied {
    fn want(segment: SegmentId, right: Right) -> Self {
        Denied {
            why: NotNow::Refused(Refusal::NoRight { right }),
            wanted: Some((segment, right)),
        }
    }

    fn share(share: Share) -> Self {
        Denied {
            why: NotNow::Refused(Refusal::Share(share)),
            wanted: None,
        }
    }
}

impl From<InvalidCommit> for Denied {
    fn from(reason: InvalidCommit) -> Self {
        Denied {
            why: reason.into(),
            wanted: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use thorp_model::limits::READERS_BYTES_MAX;
    use thorp_model::records::SegmentRecord;
    use thorp_model::{Generation, PageNo, Xoshiro256, rights_page};

    const STAFF: SegmentId = SegmentId(1);
    const PLANS: SegmentId = SegmentId(2);

    fn home(paths: &[(SegmentId, &str)]) -> Segments {
        let mut segments = Segments::default();
        for (id, path) in paths {
            let record = SegmentRecord {
                path: (*path).to_string(),
                granted: PageNo(1),
                extent: PageNo(1),
                overflow: PageNo::OVERFLOW_FIRST,
                removing: false,
            };
            segments.insert(*id, record);
        }
        segments
    }

    fn change(rights: &mut Rights, segments: &Segments, segment: SegmentId, list: &str) {
        let object = ObjectId {
            page: rights_page(segment),
            slot: RIGHTS_SLOT,
        };
        let change = SlotChange::Value {
            generation: Generation(1),
            bytes: list.as_bytes().into(),
        };
        assert!(rights.follow(segments, object, &change).is_some());
    }

    fn may_read(rights: &Rights, name: &str) -> bool {
        let who = Principal {
            name: NameId::of(name),
            is_operator: false,
        };
        rights.may(who, PLANS, Right::Read)
    }

    fn for_names(names: Vec<NameId>) -> Audience {
        Audience {
            readers: Readers::Names(names),
            carriers: Carriers::ALL_SITES,
        }
    }

    fn after(rights: &mut Rights, changed: SegmentId) -> Vec<(SegmentId, Audience)> {
        rights.readers_after(&BTreeSet::from([changed]), None)
    }

    #[test]
    fn segments_from_before_there_were_rights_are_counted_until_they_have_lists() {
        let segments = home(&[(STAFF, "staff"), (PLANS, "plans")]);
        let mut rights = Rights::new(READERS_BYTES_MAX);
        assert_eq!(rights.without_list(&segments), 2);
        change(&mut rights, &segments, PLANS, "read anna\n");
        assert_eq!(rights.without_list(&segments), 1);
    }

    #[test]
    fn a_change_of_a_group_changes_the_readers_of_what_names_it() {
        let segments = home(&[(STAFF, ".group/staff"), (PLANS, "plans")]);
        let mut rights = Rights::new(READERS_BYTES_MAX);
        change(&mut rights, &segments, PLANS, "read @staff\n");
        assert!(!may_read(&rights, "anna"));
        change(&mut rights, &segments, STAFF, "read anna\n");
        assert!(may_read(&rights, "anna") && !may_read(&rights, "ben"));
        let anna = for_names(Vec::from([NameId::of("anna")]));
        let told = [(STAFF, anna.clone()), (PLANS, anna)];
        assert_eq!(after(&mut rights, STAFF), told);
        // A commit that changes no list costs nothing here.
        assert!(rights.readers_after(&BTreeSet::new(), None).is_empty());
        let nobody = for_names(Vec::new());
        let told = rights.readers_after(&BTreeSet::new(), Some(STAFF));
        assert_eq!(told, [(PLANS, nobody)], "the group is no more");
        assert!(!may_read(&rights, "anna"));
    }

    #[test]
    fn a_group_in_a_group_counts_for_nothing() {
        let inner = SegmentId(3);
        let paths = [
            (STAFF, ".group/staff"),
            (PLANS, "plans"),
            (inner, ".group/in"),
        ];
        let segments = home(&paths);
        let mut rights = Rights::new(READERS_BYTES_MAX);
        change(&mut rights, &segments, inner, "read anna\n");
        change(&mut rights, &segments, STAFF, "read @in\n");
        change(&mut rights, &segments, PLANS, "read @staff\n");
        assert!(!may_read(&rights, "anna"));
    }

    /// The names of so many readers.
    fn list_of(readers: usize) -> Access {
        let lines = (0..readers).map(|number| alloc::format!("read a{number}\n"));
        Access::of(lines.collect::<alloc::string::String>().as_bytes())
    }

    /// One name restricts segments, as long as that is allowed. Tells how many there are.
    fn restrict(rights: &mut Rights, maker: NameId, first: u32) -> u32 {
        let list = list_of(200);
        for number in first..first + 10_000 {
            let segment = SegmentId(number);
            let segments = home(&[(segment, "plans")]);
            rights.made(segment, Some(maker));
            if rights.check_told(segment, &list).is_err() {
                return number - first;
            }
            rights.set(&segments, segment, list.clone());
        }
        panic!("it may restrict any number");
    }

    #[test]
    fn the_segments_of_one_name_take_no_more_of_the_readers_than_they_leave_free() {
        let mut rights = Rights::new(READERS_BYTES_MAX);
        let each = READERS_ENTRY_BYTES + 8 * 200;
        let (mallory, anna) = (NameId(7), NameId(8));
        let half = restrict(&mut rights, mallory, 1_000);
        assert_eq!(half as usize, READERS_BYTES_MAX / 2 / each);
        let last = SegmentId(1_000 + half);
        let refused = rights.check_told(last, &list_of(1));
        assert_eq!(refused, Ok(()), "a little is left of its half");
        assert_eq!(
            rights.check_told(last, &list_of(200)),
            Err(TooMuchTold::OfMaker)
        );
        let small = SegmentId(10);
        rights.made(small, Some(mallory));
        rights.set(&home(&[(small, "plans")]), small, list_of(100));
        let new = RightsList::parse(&list_of(80).to_list().to_bytes()).expect("a list");
        assert_eq!(rights.check_new(Some(mallory), &new), Err(Share::Readers));
        assert_eq!(rights.check_new(Some(anna), &new), Ok(()));
        // What tells less is taken, and gives back.
        assert_eq!(rights.check_told(SegmentId(1_000), &list_of(10)), Ok(()));
        rights.forget(SegmentId(1_000));
        assert_eq!(rights.check_told(last, &list_of(200)), Ok(()));
        assert!(restrict(&mut rights, anna, 100_000) * 5 > half * 2);
    }

    /// The sum is kept while lists change in any order. It never falls short of what is told.
    #[test]
    fn what_sites_are_told_is_counted() {
        let paths = [
            (STAFF, ".group/staff"),
            (PLANS, "plans"),
            (SegmentId(3), "notes"),
        ];
        let segments = home(&paths);
        let lists = [
            "",
            "read a\n",
            "read a\nread @staff\n",
            "read @members\n",
            "read @staff\nread @x\n",
            "read @members\ncarry a\n",
            "read @staff\ncarry a\ncarry b\ncarry @sites\n",
        ];
        let (mut rights, mut prng) = (Rights::new(READERS_BYTES_MAX), Xoshiro256::new(7));
        for _ in 0..500 {
            let (segment, list) = (paths[prng.index(3)].0, lists[prng.index(lists.len())]);
            if prng.percent(10) {
                rights.readers_after(&BTreeSet::new(), Some(segment));
            } else {
                change(&mut rights, &segments, segment, list);
            }
            let all = rights.lists.keys();
            let counted = all.map(|of| rights.told_bytes_of(*of, |of| rights.lists.get(&of)));
            assert_eq!(rights.told.taken(), counted.sum::<usize>() as u64);
            let told =
                rights
                    .readers()
                    .map(|(_, audience)| match audience == Audience::EVERYBODY {
                        true => 0,
                        false => READERS_ENTRY_BYTES + 8 * audience.named(),
                    });
            assert!(told.sum::<usize>() as u64 <= rights.told.taken());
        }
    }
}
