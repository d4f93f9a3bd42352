//! Takes values that are staged ahead of their commits (foundation 3), as far as the shares of names and the store's space
//! allow it (rule R7).

use crate::home::Outbox;
use crate::home::log::Log;
use crate::home::log::queue::OnDurable;
use crate::home::staging::Piece;
use crate::home::tables::Tables;
use crate::home::usage::{Numbers, limited};
use alloc::vec::Vec;
use thorp_model::limits::STAGED_PER_MEMBER_MAX;
use thorp_model::records::StagedRecord;
use thorp_model::{CallError, CallResponse, Note, Now, Op, Principal, Purpose, Registration};

type Called = Result<CallResponse, CallError>;

/// Takes pieces of values, and forgets values.
///
/// What it changes is in the log before its answer is.
#[derive(Debug)]
pub(super) struct Stager<'a> {
    pub(super) log: &'a mut Log,
    pub(super) tables: &'a mut Tables,
}

impl Stager<'_> {
    /// Takes a piece of a value, which its member may write.
    pub(super) fn stage(
        &mut self,
        now: Now,
        who: Principal,
        piece: &Piece<'_>,
        outbox: &mut Outbox,
    ) -> Called {
        let pages = piece.check()?;
        // Its pages, and the records of the value and of the segment.
        let bytes = piece.chunks.iter().map(|chunk| chunk.bytes().len()).sum();
        let asked = self.log.ask_space(bytes, piece.chunks.len() + 2);
        asked.map_err(CallError::Full)?;
        let mut ops = Vec::new();
        let mut staged = match self.tables.staging.get(piece.registration, piece.token) {
            Some(staged) => staged,
            // Page numbers are given only to what begins: they are never given again.
            None if piece.index > 0 || piece.chunks.is_empty() => return Err(CallError::Invalid),
            None if self
                .tables
                .staging
                .has_ended(piece.registration, piece.token) =>
            {
                outbox.note(Note::StagedTooLate);
                return Err(CallError::Invalid);
            }
            None => self.begin_stage(who, piece, (pages, &mut ops), outbox)?,
        };
        let end = piece.index + piece.chunks.len() as u32;
        if staged.overflow.bytes != piece.bytes || piece.index > staged.have {
            return Err(CallError::Invalid);
        }
        if end > staged.have {
            staged.have = end;
            piece.put(&staged, &mut ops);
            let whose = (piece.registration, Some(who.name));
            self.tables.staging.insert(whose, piece.token, staged, now);
            self.log
                .append_ops(Purpose::NewData, ops, OnDurable::Nothing, outbox);
            self.tables
                .staging
                .written_with(piece.registration, piece.token, self.log.last_mark());
        }
        Ok(CallResponse::Staged(staged.overflow))
    }

    fn begin_stage(
        &mut self,
        who: Principal,
        piece: &Piece<'_>,
        (pages, ops): (u32, &mut Vec<Op>),
        outbox: &mut Outbox,
    ) -> Result<StagedRecord, CallError> {
        if self.tables.staging.of(piece.registration).len() >= STAGED_PER_MEMBER_MAX {
            return Err(CallError::TooMany);
        }
        let used = (who.name, piece.segment);
        let judged = self.tables.check_numbers(used, (Numbers::Overflow, pages));
        judged.map_err(|share| limited(share, outbox))?;
        let judged = self.tables.check_space(who, u64::from(pages), self.log);
        judged.map_err(|share| limited(share, outbox))?;
        // A value that cannot end would fill the store until it is refused, and nobody could commit meanwhile.
        let coming = self.tables.staging.coming_bytes();
        let whole = (piece.bytes as usize, pages as usize + 2);
        let asked = self.log.ask_space_beside(coming, whole);
        asked.map_err(CallError::Full)?;
        let overflow = self
            .tables
            .segments
            .give_overflow(piece.segment, piece.bytes, pages)
            .ok_or(CallError::TooMany)?;
        ops.extend(self.tables.segments.put(piece.segment));
        let usage = &mut self.tables.usage;
        ops.extend(usage.give_numbers(used, Numbers::Overflow, pages));
        Ok(StagedRecord {
            segment: piece.segment,
            overflow,
            have: 0,
        })
    }

    /// Forgets a value that no vote in doubt names.
    pub(super) fn unstage(
        &mut self,
        registration: Registration,
        token: u64,
        outbox: &mut Outbox,
    ) -> Called {
        let staged = self.tables.staging.get(registration, token);
        if staged.is_some_and(|s| self.tables.votes.name_staged(registration, s.overflow)) {
            return Err(CallError::Busy);
        }
        let mut ops = Vec::new();
        self.tables
            .staging
            .drop_value(registration, token, &mut ops);
        match ops.is_empty() {
            // Its pieces may be on their way yet.
            true => self.tables.staging.end(registration, token),
            false => self
                .log
                .append_ops(Purpose::Housekeeping, ops, OnDurable::Nothing, outbox),
        }
        Ok(CallResponse::Unstaged)
    }
}
