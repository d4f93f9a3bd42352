//! Values staged ahead of their commits (foundation 3), and how they go when no
//! commit will name them.

use crate::edge::shares::Shares;
use crate::home::segments::Segments;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use thorp_model::limits::{
    OBJECT_BYTES_MAX, OVERFLOW_CHUNK_BYTES, PAGE_BYTES, STAGE_PAGES_MAX, STAGED_ENDED_MAX,
};
use thorp_model::records::StagedRecord;
use thorp_model::{
    Blob, CallError, CommitRequest, Draft, Generation, ImageEdit, Mark, Millis, NameId, NewValue,
    Now, Op, Overflow, PageId, PageNo, Position, Registration, SegmentId, Slot, Stamp, Table,
    WriteOp, records,
};

/// All staged values.
#[derive(Debug, Default)]
pub(super) struct Staging {
    values: BTreeMap<(Registration, u64), StagedRecord>,
    /// The batch with the last piece of each value that was staged in this life of the home.
    written: BTreeMap<(Registration, u64), Mark>,
    /// The first page of each value, and how many they are.
    pages: BTreeMap<(SegmentId, PageNo), u32>,
    /// When each member that has values was last heard of.
    touched: BTreeMap<Registration, Millis>,
    /// The same, who was silent longest first.
    by_touch: BTreeSet<(Millis, Registration)>,
    /// The last tokens of each member that have ended in this life of the home. A piece that comes late, by a way that the
    /// member has left, must not begin a value that nobody will name or give up.
    ended: BTreeMap<Registration, VecDeque<u64>>,
    /// Whose the values of each member are.
    names: BTreeMap<Registration, NameId>,
    /// Pages that the values of each name take, also those that are still to come (rule R7).
    shares: Shares<NameId>,
    /// Pages that are still to come.
    coming: u64,
}

impl Staging {
    /// Takes a staged value in: a new one, one of which there is more, or one
    /// from the store. Its member was heard of now.
    pub(super) fn insert(
        &mut self,
        (registration, name): (Registration, Option<NameId>),
        token: u64,
        record: StagedRecord,
        now: Now,
    ) {
        let first = (record.segment, record.overflow.first);
        self.pages.insert(first, record.overflow.pages);
        if let Some(name) = name {
            self.names.insert(registration, name);
        }
        if let Some(before) = self.values.insert((registration, token), record) {
            self.uncount(registration, before);
        }
        self.shares.take(
            self.names.get(&registration).copied(),
            u64::from(record.overflow.pages),
        );
        self.coming += u64::from(record.to_come());
        self.touched.entry(registration).or_insert(now.mono);
        self.touch(registration, now);
    }

    fn uncount(&mut self, registration: Registration, record: StagedRecord) {
        let name = self.names.get(&registration).copied();
        self.shares
            .give_back(name, u64::from(record.overflow.pages));
        self.coming -= u64::from(record.to_come());
    }

    /// Pages that the values of a name take.
    pub(super) fn pages_of(&self, name: NameId) -> u64 {
        self.shares.of(name)
    }

    /// Bytes of the pages of all values that are still to come.
    pub(super) fn coming_bytes(&self) -> u64 {
        self.coming.saturating_mul(PAGE_BYTES as u64)
    }

    /// A member was heard of. Matters only if it has values.
    pub(super) fn touch(&mut self, registration: Registration, now: Now) {
        if let Some(touched) = self.touched.get_mut(&registration) {
            self.by_touch.remove(&(*touched, registration));
            *touched = now.mono;
            self.by_touch.insert((now.mono, registration));
        }
    }

    /// A value of a member that has not been heard of for so long, and may go.
    fn untouched(
        &self,
        now: Now,
        silent_ms_max: u64,
        may_go: impl Fn(Registration) -> bool,
    ) -> Option<(Registration, u64)> {
        let is_silent = |touched: Millis| now.mono.since(touched) >= silent_ms_max;
        let mut silent = self
            .by_touch
            .iter()
            .take_while(|(touched, _)| is_silent(*touched));
        let (_, registration) = *silent.find(|(_, registration)| may_go(*registration))?;
        let all = (registration, 0)..=(registration, u64::MAX);
        self.values.range(all).map(|(key, _)| *key).next()
    }

    /// Whether a page belongs to a value that no commit has named.
    pub(super) fn has(&self, page: PageId) -> bool {
        let up_to = (page.segment, PageNo(0))..=(page.segment, page.page);
        let nearest = self.pages.range(up_to).next_back();
        nearest.is_some_and(|((_, first), pages)| page.page.0 - first.0 < *pages)
    }

    /// A staged value by its token.
    pub(super) fn get(&self, registration: Registration, token: u64) -> Option<StagedRecord> {
        self.values.get(&(registration, token)).copied()
    }

    /// A value's pages are in the store when this batch is.
    pub(super) fn written_with(&mut self, registration: Registration, token: u64, mark: Mark) {
        self.written.insert((registration, token), mark);
    }

    /// Whether a value's pages are in the store for certain: until then whoever reads them may
    /// find nothing, and nothing would be kept as what they are. No member that waits for its
    /// answers names it sooner.
    pub(super) fn is_durable(&self, registration: Registration, token: u64, durable: Mark) -> bool {
        let written = self.written.get(&(registration, token));
        written.is_none_or(|mark| *mark <= durable)
    }

    /// A wholly staged value by its pages; tells its token.
    pub(super) fn find(&self, registration: Registration, overflow: Overflow) -> Option<u64> {
        let all = (registration, 0)..=(registration, u64::MAX);
        self.values
            .range(all)
            .find(|(_, staged)| staged.overflow == overflow && staged.have == overflow.pages)
            .map(|((_, token), _)| *token)
    }

    /// No piece is taken any more under a token.
    pub(super) fn end(&mut self, registration: Registration, token: u64) {
        let ended = self.ended.entry(registration).or_default();
        if ended.contains(&token) {
            return;
        }
        if ended.len() >= STAGED_ENDED_MAX {
            ended.pop_front();
        }
        ended.push_back(token);
    }

    /// Whether a token has ended.
    pub(super) fn has_ended(&self, registration: Registration, token: u64) -> bool {
        let ended = self.ended.get(&registration);
        ended.is_some_and(|ended| ended.contains(&token))
    }

    /// Forgets a value, and takes no more of it.
    pub(super) fn remove(
        &mut self,
        registration: Registration,
        token: u64,
    ) -> Option<StagedRecord> {
        let record = self.values.remove(&(registration, token))?;
        self.uncount(registration, record);
        self.end(registration, token);
        self.written.remove(&(registration, token));
        self.pages.remove(&(record.segment, record.overflow.first));
        let all = (registration, 0)..=(registration, u64::MAX);
        if self.values.range(all).next().is_none()
            && let Some(touched) = self.touched.remove(&registration)
        {
            self.names.remove(&registration);
            self.by_touch.remove(&(touched, registration));
        }
        Some(record)
    }

    /// The values of a member.
    pub(super) fn of(&self, registration: Registration) -> Vec<u64> {
        let all = (registration, 0)..=(registration, u64::MAX);
        self.values
            .range(all)
            .map(|((_, token), _)| *token)
            .collect()
    }

    /// Drops a value with its pages.
    pub(super) fn drop_value(&mut self, registration: Registration, token: u64, ops: &mut Vec<Op>) {
        let Some(staged) = self.remove(registration, token) else {
            return;
        };
        for page in staged.overflow.page_numbers().take(staged.have as usize) {
            let page = PageId {
                segment: staged.segment,
                page,
            };
            ops.push(records::delete(Table::Pages, records::page_key(page)));
        }
        let key = records::pair_key(registration, token);
        ops.push(records::delete(Table::Staged, key));
    }

    /// Drops the values that a commit named that has ended without them, but for those that are
    /// taken.
    pub(super) fn drop_named(
        &mut self,
        request: &CommitRequest,
        is_taken: impl Fn(Overflow) -> bool,
        ops: &mut Vec<Op>,
    ) {
        let registration = request.registration;
        for overflow in named_by(request) {
            if !is_taken(overflow)
                && let Some(token) = self.find(registration, overflow)
            {
                self.drop_value(registration, token, ops);
            }
        }
    }

    /// Drops all values of a member that is forgotten.
    pub(super) fn drop_all(&mut self, registration: Registration, ops: &mut Vec<Op>) {
        for token in self.of(registration) {
            self.drop_value(registration, token, ops);
        }
        self.ended.remove(&registration);
    }

    /// Drops a value of a member that will not come back for it, by all appearances, one at a time:
    /// it may have many pages. No operations if there is none.
    pub(super) fn expire(
        &mut self,
        now: Now,
        silent_ms_max: u64,
        may_go: impl Fn(Registration) -> bool,
    ) -> Vec<Op> {
        let mut ops = Vec::new();
        if let Some((registration, token)) = self.untouched(now, silent_ms_max, may_go) {
            self.drop_value(registration, token, &mut ops);
        }
        ops
    }

    /// Values staged.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

/// The staged values that a commit names.
pub(super) fn named_by(request: &CommitRequest) -> impl Iterator<Item = Overflow> + '_ {
    let ops = request.part.writes.iter().flat_map(|page| &page.slots);
    ops.filter_map(|(_, op)| match op {
        WriteOp::Create { value, .. } | WriteOp::Write { value, .. } => match value {
            NewValue::Staged(overflow) => Some(*overflow),
            NewValue::Inline(_) => None,
        },
        WriteOp::Patch { .. } | WriteOp::Delete { .. } | WriteOp::Apply { .. } => None,
    })
}

/// Whether no child may read a page yet. Overflow pages are staged beside the stream (foundation
/// 3): a child that took an image before a commit names them would never learn of that.
pub(super) fn is_not_named_yet(segments: &Segments, staging: &Staging, page: PageId) -> bool {
    !segments.has_given(page) || staging.has(page)
}

/// One piece of a value to stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub(super) segment: SegmentId,
    pub(super) registration: Registration,
    pub(super) token: u64,
    pub(super) bytes: u64,
    pub(super) index: u32,
    pub(super) chunks: &'a [Blob],
}

impl Piece<'_> {
    /// Checks a piece's own numbers; returns how many pages the whole value takes.
    pub(super) fn check(&self) -> Result<u32, CallError> {
        if self.bytes == 0 || self.bytes > OBJECT_BYTES_MAX || self.chunks.len() > STAGE_PAGES_MAX {
            return Err(CallError::Invalid);
        }
        let pages = self.bytes.div_ceil(OVERFLOW_CHUNK_BYTES as u64) as u32;
        for (chunk, number) in self.chunks.iter().zip(u64::from(self.index)..) {
            let rest = self
                .bytes
                .saturating_sub(number * OVERFLOW_CHUNK_BYTES as u64);
            if chunk.bytes().len() as u64 != rest.min(OVERFLOW_CHUNK_BYTES as u64) || rest == 0 {
                return Err(CallError::Invalid);
            }
        }
        Ok(pages)
    }

    /// Puts the staged pages straight to their place: no transaction can name them before the commit
    /// does, whose version and stamp stand in the head.
    pub(super) fn put(&self, staged: &StagedRecord, ops: &mut Vec<Op>) {
        for (chunk, number) in self.chunks.iter().zip(self.index..) {
            let mut edit = ImageEdit::default();
            let value = Draft::Value(chunk.bytes().to_vec());
            edit.set(Slot(0), Generation(1), value);
            let page = PageId {
                segment: staged.segment,
                page: PageNo(staged.overflow.first.0 + number),
            };
            let image = edit.finish(Position(0), Stamp::default());
            ops.push(records::put_page(page, &image));
        }
        let key = records::pair_key(self.registration, self.token);
        ops.push(records::put(Table::Staged, key, staged));
    }
}
