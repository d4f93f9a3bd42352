//! The truth: what each home's durable log says, position by position.
//!
//! It is taken from the batches as the disk makes them durable, and replayed
//! into page images (what nodes may hold) and objects (what programs may see).

use crate::failure::{Checked, Failure, demand};
use crate::made_up::is_rogues;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;
use thorp_model::records;
use thorp_model::records::{LogRecord, MemberRecord, OutcomeRecord, SegmentRecord};
use thorp_model::{
    Batch, CommitId, Content, Generation, Image, MemberId, ObjectId, Op, Outcome, Overflow,
    PageChange, PageId, PageNo, PageSlots, Position, Refusal, Registration, SegmentId, Slot,
    SlotSet, Stamp, Table, change,
};

/// What a program sees in a slot.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Object {
    /// The slot's generation; zero if it was never used.
    pub generation: Generation,
    /// The object's bytes, if there is one.
    pub value: Option<Arc<[u8]>>,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            None => write!(f, "{}=-", self.generation),
            Some(value) => {
                let head: Vec<String> = value.iter().take(16).map(|b| format!("{b:02x}")).collect();
                write!(f, "{}={}B:{}", self.generation, value.len(), head.concat())
            }
        }
    }
}

/// One home's truth.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    /// The last durable position.
    pub end: Position,
    /// Every commit that is in the log.
    pub commits: BTreeMap<CommitId, (Position, Stamp)>,
    /// Every commit whose refusal was recorded, and how it was refused.
    pub refused: BTreeMap<CommitId, Refusal>,
    pages: BTreeMap<PageId, Vec<Version>>,
    objects: BTreeMap<ObjectId, Vec<(Position, Object)>>,
    /// Members by their registrations.
    members: BTreeMap<Registration, MemberId>,
    /// Members whose outcomes the home has forgotten: nothing is known of their
    /// commits any more.
    pub forgotten: BTreeSet<MemberId>,
    /// Segments that were removed.
    removed: BTreeSet<SegmentId>,
    /// The stamps of all commits.
    given: BTreeSet<Stamp>,
    /// Two histories of another home may have given one stamp.
    stamps_repeat: bool,
    /// Positions whose stamps are not above all before them.
    behind: BTreeSet<Position>,
    /// The stamp of each position.
    stamps: BTreeMap<Position, Stamp>,
    /// Overflow pages staged ahead of their commits: nothing names them yet.
    staged: BTreeMap<PageId, Image>,
    /// The slots that each position changed, page by page.
    touched: BTreeMap<Position, Vec<(PageId, SlotSet)>>,
    /// The segment that a position removed.
    removed_at: BTreeMap<Position, SegmentId>,
}

/// The member that an operation registers.
fn newcomer(op: &Op) -> Checked<Option<(Registration, MemberId)>> {
    let Op::Put {
        table: Table::Meta,
        key,
        value,
    } = op
    else {
        return Ok(None);
    };
    let Some(registration) = records::member_of(key) else {
        return Ok(None);
    };
    let record: MemberRecord = records::decode(Table::Meta, key, value)
        .map_err(|error| Failure::new("log", error.to_string()))?;
    Ok(Some((registration, record.member)))
}

#[derive(Clone, Debug)]
struct Version {
    position: Position,
    image: Option<Image>,
}

/// The objects of a position that are not as they were before.
pub type Changed = Vec<(ObjectId, Object)>;

impl Oracle {
    /// Takes a batch that has become durable; tells the commits in it.
    pub fn take(&mut self, batch: &Batch) -> Checked<Vec<(LogRecord, Changed)>> {
        let mut commits = Vec::new();
        for op in &batch.ops {
            if let Op::Put {
                table: Table::Log,
                key,
                value,
            } = op
            {
                let record = records::decode_log(key, value)
                    .map_err(|error| Failure::new("log", error.to_string()))?;
                let changed = self.take_record(&record)?;
                commits.push((record, changed));
            }
        }
        let mut newcomers = Vec::new();
        for op in &batch.ops {
            newcomers.extend(newcomer(op)?);
        }
        for op in &batch.ops {
            self.take_registration(op, &newcomers)?;
            self.take_refusal(op)?;
            self.take_removal(op)?;
            self.take_page(op)?;
        }
        Ok(commits)
    }

    fn take_registration(&mut self, op: &Op, newcomers: &[(Registration, MemberId)]) -> Checked {
        self.members.extend(newcomer(op)?);
        if let Op::Delete {
            table: Table::Meta,
            key,
        } = op
        {
            let registration = records::member_of(key);
            let member = registration.and_then(|known| self.members.remove(&known));
            self.forgotten.extend(member);
            member.map_or(Ok(()), |member| self.check_forgotten(member, newcomers))?;
        }
        Ok(())
    }

    /// Rule R2: a name forgets its own registrations, or one of several that another name has.
    fn check_forgotten(&self, member: MemberId, newcomers: &[(Registration, MemberId)]) -> Checked {
        let name = member.name();
        let new = newcomers.iter().map(|(_, newcomer)| newcomer);
        let mut others = new.chain(self.members.values());
        demand!(
            is_rogues(name) || others.any(|other| other.name() == name),
            "registrations",
            "{member:?} is forgotten, the only one of its name, for {newcomers:?}"
        );
        Ok(())
    }

    fn take_refusal(&mut self, op: &Op) -> Checked {
        let Op::Put {
            table: Table::Outcomes,
            key,
            value,
        } = op
        else {
            return Ok(());
        };
        let record: OutcomeRecord = records::decode(Table::Outcomes, key, value)
            .map_err(|error| Failure::new("log", error.to_string()))?;
        if let (Outcome::Refused(refusal), Some((registration, sequence))) =
            (record.outcome, records::pair_of(key))
        {
            let member = self.members.get(&registration).copied();
            let id = member.map(|member| CommitId { member, sequence });
            self.refused.extend(id.map(|id| (id, refusal)));
        }
        Ok(())
    }

    /// A segment that is being removed is gone as of the commit in the same batch.
    fn take_removal(&mut self, op: &Op) -> Checked {
        let Op::Put {
            table: Table::Meta,
            key,
            value,
        } = op
        else {
            return Ok(());
        };
        let Some(segment) = records::segment_of(key) else {
            return Ok(());
        };
        let record: SegmentRecord = records::decode(Table::Meta, key, value)
            .map_err(|error| Failure::new("log", error.to_string()))?;
        if !record.removing || !self.removed.insert(segment) {
            return Ok(());
        }
        let position = self.end;
        self.removed_at.insert(position, segment);
        let of = |page: &&PageId| page.segment == segment;
        let pages: Vec<PageId> = self.pages.keys().filter(of).copied().collect();
        for page in pages {
            let gone = Version {
                position,
                image: None,
            };
            self.pages.entry(page).or_default().push(gone);
        }
        let of = |object: &&ObjectId| object.page.segment == segment;
        let objects: Vec<ObjectId> = self.objects.keys().filter(of).copied().collect();
        for object in objects {
            let history = self.objects.entry(object).or_default();
            history.push((position, Object::default()));
        }
        Ok(())
    }

    /// Whether a page belongs to a segment that was not removed, and is no
    /// overflow page that was given up.
    pub fn is_live(&self, page: PageId) -> bool {
        let last = self.pages.get(&page).and_then(|versions| versions.last());
        let image = last.is_some_and(|version| version.image.is_some());
        image && !self.removed.contains(&page.segment)
    }

    /// What commits after `from` and up to `to` changed of a segment. The end of a segment is
    /// that of its first page.
    pub fn touched(
        &self,
        from: Position,
        to: Position,
        segment: SegmentId,
    ) -> impl Iterator<Item = (Position, PageId, SlotSet)> + '_ {
        let range = (Bound::Excluded(from), Bound::Included(to.max(from)));
        let touched = self.touched.range(range).flat_map(|(position, pages)| {
            let pages = pages.iter();
            pages.map(|(page, slots)| (*position, *page, *slots))
        });
        let ends = self.removed_at.range(range).map(|(position, segment)| {
            let first = PageId::new(segment.0, 0);
            (*position, first, SlotSet::ALL)
        });
        let all = touched.chain(ends);
        all.filter(move |(_, page, _)| page.segment == segment)
    }

    /// Whether a position changed just these slots of a page, or ended it.
    pub fn has_touched(&self, position: Position, page: PageId, slots: SlotSet) -> bool {
        let touched = self.touched.get(&position).into_iter().flatten();
        let ended = self.removed_at.get(&position) == Some(&page.segment);
        (ended && slots == SlotSet::ALL) || touched.into_iter().any(|t| *t == (page, slots))
    }

    /// Whether a segment was removed.
    pub fn is_removed(&self, segment: SegmentId) -> bool {
        self.removed.contains(&segment)
    }

    /// The segments that were removed.
    pub fn removed(&self) -> impl Iterator<Item = SegmentId> + '_ {
        self.removed.iter().copied()
    }

    /// Whether a position's stamp is not above all before it.
    pub fn is_behind(&self, position: Position) -> bool {
        self.behind.contains(&position)
    }

    /// From now on two commits over several homes may have one stamp: another home goes back, or runs twice.
    pub fn let_stamps_repeat(&mut self) {
        self.stamps_repeat = true;
    }

    /// Whether two commits over several homes may have one stamp.
    pub fn lets_stamps_repeat(&self) -> bool {
        self.stamps_repeat
    }

    /// The lowest stamp of a commit above a position, if there is one: those of
    /// transactions over several homes are not in the order of positions (rule 10).
    pub fn stamp_after(&self, position: Position) -> Option<Stamp> {
        let above = self.stamps.range(position.next()..);
        above.map(|(_, stamp)| *stamp).min()
    }

    fn take_record(&mut self, record: &LogRecord) -> Checked<Changed> {
        let position = record.position;
        demand!(
            position == self.end.next(),
            "log",
            "position {position} follows {}",
            self.end
        );
        if self.given.last().is_some_and(|last| *last > record.stamp) {
            self.behind.insert(position);
        }
        demand!(
            self.given.insert(record.stamp) || self.stamps_repeat,
            "stamps",
            "position {position} has stamp {:?}, which another one has",
            record.stamp
        );
        if let Some(id) = record.commit {
            let before = self.commits.insert(id, (position, record.stamp));
            demand!(
                before.is_none(),
                "exactly once",
                "commit {id:?} is at {position} and at {before:?}"
            );
        }
        self.end = position;
        self.stamps.insert(position, record.stamp);
        let touched = record.changes.iter();
        let touched = touched.map(|change| (change.page, change.slot_set()));
        self.touched.insert(position, touched.collect());
        let of_objects = |change: &&PageChange| !change.page.page.is_overflow();
        for change in &record.changes {
            self.apply(change, position, record.stamp);
        }
        let mut changed = Changed::new();
        for change in record.changes.iter().filter(of_objects) {
            self.replay_objects(change, position, &mut changed)?;
        }
        Ok(changed)
    }

    fn apply(&mut self, change: &PageChange, position: Position, stamp: Stamp) {
        let page = change.page;
        let before = self.image(page, position);
        let image = change::apply(&before, change, position, stamp);
        let versions = self.pages.entry(page).or_default();
        versions.push(Version { position, image });
    }

    fn replay_objects(
        &mut self,
        change: &PageChange,
        position: Position,
        changed: &mut Changed,
    ) -> Checked {
        let page = change.page;
        let slots: Vec<Slot> = match &change.slots {
            PageSlots::Some(slots) => slots.iter().map(|(slot, _)| *slot).collect(),
            PageSlots::Whole => {
                let all = ObjectId {
                    page,
                    slot: Slot(0),
                }..=ObjectId {
                    page,
                    slot: Slot(u16::MAX),
                };
                self.objects.range(all).map(|(id, _)| id.slot).collect()
            }
        };
        let image = self.image(page, position);
        for slot in slots {
            let object = ObjectId { page, slot };
            let is = self.resolve(&image, object, position)?;
            if is != self.object(object, position) {
                let history = self.objects.entry(object).or_default();
                history.push((position, is.clone()));
                changed.push((object, is));
            }
        }
        Ok(())
    }

    /// Reads an object out of its page and, if it has them, its overflow pages.
    fn resolve(&self, image: &Image, object: ObjectId, position: Position) -> Checked<Object> {
        let (generation, content) = image.slot(object.slot);
        let value = match content {
            Content::Free => None,
            Content::Value(bytes) => Some(Arc::from(bytes)),
            Content::Overflow(overflow) => Some(self.assemble(object, overflow, position)?),
            Content::Hole => {
                return Err(Failure::new(
                    "log",
                    format!("object {object} is a hole at {position} in the home's own log"),
                ));
            }
        };
        Ok(Object { generation, value })
    }

    fn assemble(&self, object: ObjectId, o: Overflow, position: Position) -> Checked<Arc<[u8]>> {
        let mut bytes = Vec::new();
        for page in o.page_numbers() {
            let page = PageId {
                segment: object.page.segment,
                page,
            };
            match self.image(page, position).content(Slot(0)) {
                Content::Value(chunk) => bytes.extend_from_slice(chunk),
                other => {
                    return Err(Failure::new(
                        "log",
                        format!("overflow page {page} of {object} holds {other:?} at {position}"),
                    ));
                }
            }
        }
        demand!(
            bytes.len() as u64 == o.bytes,
            "log",
            "object {object} has {} of {} bytes at {position}",
            bytes.len(),
            o.bytes
        );
        Ok(bytes.into())
    }

    /// An installed page has to be what the log says. An overflow page that the log does
    /// not know is staged.
    fn take_page(&mut self, op: &Op) -> Checked {
        let Op::Put {
            table: Table::Pages,
            key,
            value,
        } = op
        else {
            return Ok(());
        };
        let image = records::decode_page(key, value)
            .map_err(|error| Failure::new("installed", error.to_string()))?;
        let number: [u8; 8] = key.as_slice().try_into().unwrap_or_default();
        let page = PageId::from_key(u64::from_be_bytes(number));
        if page.page.is_overflow() && !self.pages.contains_key(&page) {
            self.staged.insert(page, image);
            return Ok(());
        }
        let oracle = self.image(page, image.version());
        demand!(
            image.version() <= self.end && oracle == image,
            "installed",
            "page {page} is installed as {image:?}, the log says {oracle:?} (end {})",
            self.end
        );
        Ok(())
    }

    /// A page as of a position; empty if there is none.
    pub fn image(&self, page: PageId, position: Position) -> Image {
        match self.version(page, position) {
            Some(version) => version.image.clone().unwrap_or_else(Image::empty),
            None => match self.staged.get(&page) {
                Some(image) => image.clone(),
                None => Image::empty(),
            },
        }
    }

    fn version(&self, page: PageId, position: Position) -> Option<&Version> {
        let versions = self.pages.get(&page)?;
        let after = versions.partition_point(|version| version.position <= position);
        versions.get(after.checked_sub(1)?)
    }

    /// Where a page was last changed, as of a position.
    pub fn last_change(&self, page: PageId, position: Position) -> Position {
        let version = self.version(page, position);
        version.map_or(Position(0), |version| version.position)
    }

    /// An object as of a position.
    pub fn object(&self, object: ObjectId, position: Position) -> Object {
        self.object_at(object, position).1
    }

    /// An object as of a position, and where it became so.
    pub fn object_at(&self, object: ObjectId, position: Position) -> (Position, Object) {
        let Some(history) = self.objects.get(&object) else {
            return Default::default();
        };
        let after = history.partition_point(|(at, _)| *at <= position);
        match after.checked_sub(1) {
            Some(index) => history[index].clone(),
            None => Default::default(),
        }
    }

    /// The stamps of what an object was as of a position, and of what it became next.
    pub fn stamps_around(
        &self,
        object: ObjectId,
        position: Position,
    ) -> (Option<Stamp>, Option<Stamp>) {
        let history = self.objects.get(&object).map_or(&[][..], Vec::as_slice);
        let after = history.partition_point(|(at, _)| *at <= position);
        let stamp = |index: usize| self.stamps.get(&history.get(index)?.0).copied();
        (after.checked_sub(1).and_then(stamp), stamp(after))
    }

    /// All pages that ever were in the log or staged.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.pages.keys().chain(self.staged.keys()).copied()
    }

    /// All objects that ever were.
    pub fn objects(&self) -> impl Iterator<Item = ObjectId> + '_ {
        self.objects.keys().copied()
    }

    /// The value of a segment's extent object as of a position.
    pub fn extent(&self, page: PageId, position: Position) -> PageNo {
        let first = ObjectId {
            page: PageId {
                page: PageNo(0),
                ..page
            },
            slot: Slot(0),
        };
        let value = self.object(first, position).value;
        let bytes = value.and_then(|value| value.as_ref().try_into().ok());
        PageNo(bytes.map_or(0, u32::from_le_bytes))
    }
}
