//! What members ask of a home beside pages and commits.

use super::commit::extent_value;
use super::effects::Effects;
use super::outcomes::{self, Known};
use super::records::{self, SegmentRecord, StagedRecord};
use super::segments::is_path;
use super::{Home, Then};
use crate::change::{Blob, PageChange, PageSlots};
use crate::door::Out;
use crate::ids::{
    CommitId, EdgeId, Generation, Now, PageId, PageNo, Position, Registration, SegmentId, Slot,
    Stamp,
};
use crate::image::{Draft, ImageEdit};
use crate::limits::{
    OBJECT_BYTES_MAX, OVERFLOW_CHUNK_BYTES, SEGMENTS_MAX, STAGE_PAGES_MAX, STAGED_PER_MEMBER_MAX,
};
use crate::message::{CallError, CallId, Request, Response};
use crate::note::Note;
use crate::planted::{self, Bug};
use crate::storage::{Op, Table};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Segments told by one answer.
const LIST_MAX: usize = 256;

type Called = Result<Response, CallError>;

/// One piece of a value to stage.
struct Piece<'a> {
    segment: SegmentId,
    registration: Registration,
    token: u64,
    bytes: u64,
    index: u32,
    chunks: &'a [Blob],
}

impl Home {
    pub(super) fn call(
        &mut self,
        now: Now,
        edge: EdgeId,
        call: CallId,
        request: Request,
        out: &mut Out,
    ) {
        let is_own = |registration| self.outcomes.registration(call.member) == Some(registration);
        let result = match request {
            Request::Stage { registration, .. } | Request::Unstage { registration, .. }
                if !is_own(registration) =>
            {
                Err(CallError::NotRegistered)
            }
            Request::Watermark { at_least } => {
                return self.asked_for_watermark(now, edge, call, at_least, out);
            }
            Request::Register => self.register(call, out),
            Request::Open { path, create } => self.open_segment(now, &path, create, out),
            Request::List { prefix, after } => {
                let (segments, more) = self.segments.list(&prefix, &after, LIST_MAX);
                Ok(Response::Segments { segments, more })
            }
            Request::Remove { segment } => self.remove_segment(now, segment, out),
            Request::Reserve { segment } => self.reserve(segment, out),
            Request::Stage {
                segment,
                registration,
                token,
                bytes,
                index,
                chunks,
            } => {
                let piece = Piece {
                    segment,
                    registration,
                    token,
                    bytes,
                    index,
                    chunks: &chunks,
                };
                self.stage(now, &piece, out)
            }
            Request::Unstage {
                registration,
                token,
            } => self.unstage(registration, token, out),
            Request::Outcome {
                commit,
                registration,
            } => self.outcome(commit, registration, out),
        };
        // An answer is never ahead of what it rests on.
        self.after_all(Then::Answer(edge, call, result), out);
    }

    /// Asked before what needs room. What makes room is taken also when there is
    /// none: the store keeps a little back for it.
    fn writable(&self) -> Result<(), CallError> {
        if !self.room {
            return Err(CallError::Full);
        }
        Ok(())
    }

    /// Rule 5: what a transaction wants to stand at is promised, if nothing is in doubt below it.
    fn asked_for_watermark(
        &mut self,
        now: Now,
        edge: EdgeId,
        call: CallId,
        at_least: Stamp,
        out: &mut Out,
    ) {
        out.note(Note::WatermarkAsked);
        self.clock.pass(now.wall);
        self.clock.move_up(now.wall, at_least);
        let then = Then::Watermark(edge, call);
        match self.room && self.clock.wants_reserve(now.wall) {
            true => self.append(now, Vec::new(), then, out),
            false => self.after_all(then, out),
        }
    }

    fn register(&mut self, call: CallId, out: &mut Out) -> Called {
        if let Some(registration) = self.outcomes.registration(call.member) {
            return Ok(Response::Registered(registration));
        }
        self.writable()?;
        // What a vote in doubt names has to be there when it is decided.
        let in_doubt = self.votes.registrations_in_doubt();
        let may_go = |silent| !in_doubt.contains(&silent);
        if !self.outcomes.has_room(may_go) {
            return Err(CallError::Busy);
        }
        self.next.registration = self.next.registration.next();
        let registration = self.next.registration;
        let mut ops = alloc::vec![self.put_next()];
        let forgotten = self
            .outcomes
            .register(registration, call.member, &mut ops, may_go);
        if let Some(forgotten) = forgotten {
            out.note(Note::RegistrationForgotten);
            self.discard_staged(forgotten, &mut ops);
        }
        out.note(Note::Registered);
        self.append_ops(ops, Then::Nothing, out);
        Ok(Response::Registered(registration))
    }

    fn outcome(&mut self, id: CommitId, registration: Registration, out: &mut Out) -> Called {
        if let Some(known) = self.vote_outcome(id) {
            out.note(Note::OutcomeRemembered);
            return Ok(known);
        }
        let outcome = match self.outcomes.known(registration, id) {
            Known::Ended(outcome) => {
                out.note(Note::OutcomeRemembered);
                outcome
            }
            Known::BelowWindow => {
                out.note(Note::BelowWindow);
                outcomes::forgotten()
            }
            Known::New => {
                self.writable()?;
                out.note(Note::UnknownRecorded);
                out.note(Note::RefusedUnknown);
                let mut ops = Vec::new();
                self.outcomes
                    .record(registration, id, outcomes::unknown(), &mut ops);
                self.append_ops(ops, Then::Nothing, out);
                outcomes::unknown()
            }
        };
        Ok(Response::Outcome(outcome))
    }

    // --- Segments ---

    fn open_segment(&mut self, now: Now, path: &str, create: bool, out: &mut Out) -> Called {
        if !is_path(path) {
            return Err(CallError::BadPath);
        }
        let known = self.segments.find(path);
        let id = match known {
            Some(id) => id,
            None if create => self.create_segment(now, path.to_string(), out)?,
            None => return Err(CallError::NoSuchSegment),
        };
        let info = self.segments.info(id).ok_or(CallError::NoSuchSegment)?;
        Ok(Response::Segment(info))
    }

    fn create_segment(
        &mut self,
        now: Now,
        path: String,
        out: &mut Out,
    ) -> Result<SegmentId, CallError> {
        self.writable()?;
        if self.mob_is_full() {
            return Err(CallError::Busy);
        }
        if self.segments.len() >= SEGMENTS_MAX {
            return Err(CallError::TooMany);
        }
        self.next.segment = self.next.segment.next();
        let id = self.next.segment;
        let record = SegmentRecord {
            path,
            granted: PageNo(1),
            extent: PageNo(1),
            overflow: PageNo::OVERFLOW_FIRST,
            removing: false,
        };
        self.segments.insert(id, record);
        let first = PageId {
            segment: id,
            page: PageNo(0),
        };
        self.pages.put_fresh(first);
        let extent = alloc::vec![(Slot(0), extent_value(PageNo(1)))];
        let mut effects = Effects::default();
        effects.changes.insert(
            first,
            PageChange {
                page: first,
                slots: PageSlots::Some(extent),
            },
        );
        effects.ops.push(self.put_next());
        effects.ops.extend(self.segments.put(id));
        self.accept(now, effects, None, None, out);
        Ok(id)
    }

    fn remove_segment(&mut self, now: Now, id: SegmentId, out: &mut Out) -> Called {
        #[cfg(feature = "planted-bugs")]
        let id = self.segments.named_as_before(id);
        if self.segments.get(id).is_none() {
            return Ok(Response::Removed);
        }
        if self.votes.lock_segment(id) {
            return Err(CallError::Busy);
        }
        self.segments.begin_removal(id);
        if planted::is(Bug::RemovedEarly) {
            self.removable.insert(id);
        }
        let mut effects = Effects::default();
        effects.ops.extend(self.segments.put(id));
        self.accept(now, effects, None, Some(id), out);
        Ok(Response::Removed)
    }

    fn reserve(&mut self, segment: SegmentId, out: &mut Out) -> Called {
        self.writable()?;
        if self.segments.get(segment).is_none() {
            return Err(CallError::NoSuchSegment);
        }
        let (first, pages) = self.segments.grant(segment).ok_or(CallError::TooMany)?;
        let ops: Vec<Op> = self.segments.put(segment).into_iter().collect();
        self.append_ops(ops, Then::Nothing, out);
        Ok(Response::Extent { first, pages })
    }

    // --- Large values (decision 3) ---

    fn stage(&mut self, now: Now, piece: &Piece<'_>, out: &mut Out) -> Called {
        self.writable()?;
        let pages = check_piece(piece)?;
        if self.segments.get(piece.segment).is_none() {
            return Err(CallError::NoSuchSegment);
        }
        // Its pages, and the records of the value and of the segment.
        let bytes = piece.chunks.iter().map(|chunk| chunk.bytes().len()).sum();
        if !self.left.fits(bytes, piece.chunks.len() + 2) {
            return Err(CallError::Full);
        }
        let mut ops = Vec::new();
        let mut staged = match self.staging.get(piece.registration, piece.token) {
            Some(staged) => staged,
            // Page numbers are given only to what begins: they are never given again.
            None if piece.index > 0 || piece.chunks.is_empty() => return Err(CallError::Invalid),
            None if self.staging.has_ended(piece.registration, piece.token) => {
                out.note(Note::StagedTooLate);
                return Err(CallError::Invalid);
            }
            None => self.begin_stage(piece, pages, &mut ops)?,
        };
        let end = piece.index + piece.chunks.len() as u32;
        if staged.overflow.bytes != piece.bytes || piece.index > staged.have {
            return Err(CallError::Invalid);
        }
        if end > staged.have {
            staged.have = end;
            self.put_chunks(piece, &staged, &mut ops);
            self.staging
                .insert(piece.registration, piece.token, staged, now);
            self.append_ops(ops, Then::Nothing, out);
            self.staging
                .written_with(piece.registration, piece.token, self.mark);
        }
        Ok(Response::Staged(staged.overflow))
    }

    fn begin_stage(
        &mut self,
        piece: &Piece<'_>,
        pages: u32,
        ops: &mut Vec<Op>,
    ) -> Result<StagedRecord, CallError> {
        if self.staging.of(piece.registration).len() >= STAGED_PER_MEMBER_MAX {
            return Err(CallError::TooMany);
        }
        let overflow = self
            .segments
            .give_overflow(piece.segment, piece.bytes, pages)
            .ok_or(CallError::TooMany)?;
        ops.extend(self.segments.put(piece.segment));
        Ok(StagedRecord {
            segment: piece.segment,
            overflow,
            have: 0,
        })
    }

    /// Staged pages go straight to their place: nobody can name them before the
    /// commit does, whose version and stamp stand in the head.
    fn put_chunks(&self, piece: &Piece<'_>, staged: &StagedRecord, ops: &mut Vec<Op>) {
        for (chunk, number) in piece.chunks.iter().zip(piece.index..) {
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
        let key = records::pair_key(piece.registration, piece.token);
        ops.push(records::put(Table::Staged, key, staged));
    }

    fn unstage(&mut self, registration: Registration, token: u64, out: &mut Out) -> Called {
        let staged = self.staging.get(registration, token);
        if staged.is_some_and(|s| self.votes.name_staged(registration, s.overflow)) {
            return Err(CallError::Busy);
        }
        let mut ops = Vec::new();
        self.drop_staged(registration, token, &mut ops);
        match ops.is_empty() {
            // Its pieces may be on their way yet.
            true => self.staging.end(registration, token),
            false => self.append_ops(ops, Then::Nothing, out),
        }
        Ok(Response::Unstaged)
    }
}

/// Checks a piece's own numbers; tells how many pages the whole value takes.
fn check_piece(piece: &Piece<'_>) -> Result<u32, CallError> {
    if piece.bytes == 0 || piece.bytes > OBJECT_BYTES_MAX || piece.chunks.len() > STAGE_PAGES_MAX {
        return Err(CallError::Invalid);
    }
    let pages = piece.bytes.div_ceil(OVERFLOW_CHUNK_BYTES as u64) as u32;
    for (chunk, number) in piece.chunks.iter().zip(u64::from(piece.index)..) {
        let rest = piece
            .bytes
            .saturating_sub(number * OVERFLOW_CHUNK_BYTES as u64);
        if chunk.bytes().len() as u64 != rest.min(OVERFLOW_CHUNK_BYTES as u64) || rest == 0 {
            return Err(CallError::Invalid);
        }
    }
    Ok(pages)
}
