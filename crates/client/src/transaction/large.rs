//! Large objects: staged ahead of the commit, read page by page (foundation 3).
//!
//! Overflow pages are never given again (trap 12): a page that a head names holds the value of that head or nothing. So
//! the head, which is in the read set, answers for all of them, and the pages need no place there. A transaction that
//! reads 64 MiB carries one slot as evidence.

use super::Transaction;
use crate::limits::{LARGE_WINDOW, RETRY_PAUSE, STAGE_WINDOW};
use crate::runtime::{Completion, Fetched, RequestFuture, Requests, StagedTokens};
use crate::{Error, Reference, Result, Session};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thorp_model::limits::{OBJECT_BYTES_MAX, OVERFLOW_CHUNK_BYTES, STAGE_PAGES_MAX};
use thorp_model::{
    Blob, CallError, CallRequest, CallResponse, Content, HomeId, Image, ObjectId, Overflow, PageId,
    PageNo, Place, Registration, SegmentId, Slot,
};
use thorp_protocol::Response;

impl Transaction {
    /// A large object's bytes.
    pub(super) async fn assemble(&mut self, at: &Reference, overflow: Overflow) -> Result<Vec<u8>> {
        self.check_head(at, overflow)?;
        let mut whole = Vec::with_capacity(overflow.bytes as usize);
        self.visit_pages(at, overflow, 0..overflow.pages, |_, chunk| {
            whole.extend_from_slice(chunk);
            Ok(())
        })
        .await?;
        Ok(whole)
    }

    /// A part of a large object's bytes.
    pub(super) async fn read_part(
        &mut self,
        at: &Reference,
        overflow: Overflow,
        from: u64,
        len: usize,
    ) -> Result<Vec<u8>> {
        self.check_head(at, overflow)?;
        let end = from.saturating_add(len as u64).min(overflow.bytes);
        if from >= end {
            return Ok(Vec::new());
        }
        let chunk_bytes = OVERFLOW_CHUNK_BYTES as u64;
        let first = from / chunk_bytes;
        let pages = first as u32..end.div_ceil(chunk_bytes) as u32;
        let mut part = Vec::with_capacity((end - from) as usize);
        self.visit_pages(at, overflow, pages, |index, chunk| {
            let begin = u64::from(index) * chunk_bytes;
            let start = from.saturating_sub(begin).min(chunk.len() as u64) as usize;
            let stop = (end - begin).min(chunk.len() as u64) as usize;
            part.extend_from_slice(&chunk[start..stop]);
            Ok(())
        })
        .await?;
        Ok(part)
    }

    /// Visits the chunks of some of a large object's pages in order, with many of them on their way at a time. Each half
    /// of a megabyte may take as long as a read may wait.
    pub(super) async fn visit_pages(
        &mut self,
        at: &Reference,
        overflow: Overflow,
        pages: Range<u32>,
        mut visit: impl FnMut(u32, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let segment = at.object.page.segment;
        let place = |index: u32| place_in(at.home, segment, overflow, index);
        let mut window: VecDeque<Option<RequestFuture>> = VecDeque::new();
        let mut asked = pages.start;
        for index in pages.clone() {
            while asked < pages.end && window.len() < LARGE_WINDOW {
                let due = self.session.page_due(window.len());
                window.push_back(self.ask_for(place(asked), due)?);
                asked += 1;
            }
            let due = self.fetch_due();
            let image = match window.pop_front().flatten() {
                Some(wait) => self.arrived(wait, place(index), due).await?,
                None => self.cached_or_fetched(place(index), due).await?,
            };
            let chunk = chunk_of(&image, overflow, index).map_err(|bad| self.bad_chunk(at, bad))?;
            visit(index, chunk)?;
        }
        Ok(())
    }

    /// A head comes from another machine: what it says must fit together before it is believed.
    pub(super) fn check_head(&self, at: &Reference, overflow: Overflow) -> Result<()> {
        let pages = overflow.bytes.div_ceil(OVERFLOW_CHUNK_BYTES as u64);
        if overflow.bytes > OBJECT_BYTES_MAX || pages != u64::from(overflow.pages) {
            return Err(Error::damaged(format!(
                "the head of large object {} is damaged: {} bytes in {} pages",
                self.shared.naming().object(at),
                overflow.bytes,
                overflow.pages
            )));
        }
        Ok(())
    }

    /// What is wrong with a page of a large object, for the program.
    fn bad_chunk(&self, at: &Reference, bad: BadChunk) -> Error {
        match bad {
            BadChunk::Ended => self.torn(at),
            BadChunk::OtherLength { index, bytes } => Error::damaged(format!(
                "page {index} of large object {} has {bytes} bytes, which is not what its head says",
                self.shared.naming().object(at)
            )),
        }
    }

    /// Requests a page, if it is not cached. None: there is nothing to wait for, or it is requested later.
    fn ask_for(&self, place: Place, due: Instant) -> Result<Option<RequestFuture>> {
        if self.shared.cache.image(place).is_some() {
            return Ok(None);
        }
        match self.shared.requests.fetch(place, due) {
            Ok(wait) => Ok(Some(wait)),
            Err(error) if error.is_retryable() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn arrived(&mut self, wait: RequestFuture, place: Place, due: Instant) -> Result<Image> {
        let since = Instant::now();
        if let Fetched::Page(source) = wait.await.fetched()? {
            self.shared.counters.waited_for_page(since, source);
        }
        self.cached_or_fetched(place, due).await
    }

    async fn cached_or_fetched(&mut self, place: Place, due: Instant) -> Result<Image> {
        loop {
            if let Some(image) = self.shared.cache.image(place)
                && image.is_complete()
            {
                return Ok(image);
            }
            self.fetch(place, due).await?;
        }
    }
}

/// Why a page of a large object is not what its head leads to.
#[derive(Debug, PartialEq, Eq)]
enum BadChunk {
    /// The object was changed meanwhile.
    Ended,
    OtherLength {
        index: u32,
        bytes: usize,
    },
}

fn chunk_of(image: &Image, overflow: Overflow, index: u32) -> Result<&[u8], BadChunk> {
    let Content::Value(chunk) = image.content(Slot(0)) else {
        return Err(BadChunk::Ended);
    };
    let rest = overflow.bytes - u64::from(index) * OVERFLOW_CHUNK_BYTES as u64;
    match chunk.len() as u64 == rest.min(OVERFLOW_CHUNK_BYTES as u64) {
        true => Ok(chunk),
        false => Err(BadChunk::OtherLength {
            index,
            bytes: chunk.len(),
        }),
    }
}

pub(super) fn place_in(home: HomeId, segment: SegmentId, overflow: Overflow, index: u32) -> Place {
    let page = PageNo(overflow.first.0.saturating_add(index));
    Place {
        home,
        page: PageId { segment, page },
    }
}

/// What a large value is staged from.
pub(super) trait Source {
    /// How many bytes there are.
    fn bytes(&self) -> u64;

    /// The chunks from this one on, at most so many. What was shown before may be asked for again.
    fn chunks(&mut self, first: usize, count: usize) -> Result<Vec<Blob>>;
}

impl Source for &[u8] {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }

    fn chunks(&mut self, first: usize, count: usize) -> Result<Vec<Blob>> {
        let chunks = <[u8]>::chunks(self, OVERFLOW_CHUNK_BYTES);
        Ok(chunks.skip(first).take(count).map(Blob::from).collect())
    }
}

/// Large values on their way ahead of a commit.
pub(super) struct Staged {
    requests: Arc<Requests>,
    pub(super) home: HomeId,
    registration: Registration,
    pub(super) tokens: Arc<StagedTokens>,
    pub(super) values: HashMap<ObjectId, Overflow>,
}

impl Staged {
    /// Nothing to stage.
    pub(super) fn none(requests: &Arc<Requests>, home: HomeId) -> Self {
        Staged {
            requests: Arc::clone(requests),
            home,
            registration: Registration::default(),
            tokens: Arc::new(StagedTokens::new(Arc::clone(&requests.sender), home)),
            values: HashMap::new(),
        }
    }

    /// Asks the home under which registration it knows this member.
    pub(super) async fn register(&mut self, due: Instant) -> Result<()> {
        match self
            .requests
            .call(self.home, CallRequest::Register(None), due)
            .await?
        {
            CallResponse::Registered(registration) => self.registration = registration,
            _ => return Err(Error::invalid("the home answered something else")),
        }
        Ok(())
    }

    /// Stages one value: pieces in order, a few of them on their way at a time. Each may take as long as a commit may.
    /// Gives where the value lies; no value if it has no bytes.
    pub(super) async fn stage(
        &mut self,
        segment: SegmentId,
        mut source: impl Source,
        session: Session,
    ) -> Result<Option<Overflow>> {
        let token = self.requests.sender.next_id().0;
        self.tokens.add(token);
        let piece_bytes = OVERFLOW_CHUNK_BYTES * STAGE_PAGES_MAX;
        let pieces = source.bytes().div_ceil(piece_bytes as u64) as usize;
        let mut window: VecDeque<RequestFuture> = VecDeque::new();
        let (mut asked, mut done, mut value) = (0, 0, None);
        while done < pieces {
            while asked < pieces && window.len() < STAGE_WINDOW {
                let request = self.piece(segment, token, &mut source, asked)?;
                let due = session.piece_due(window.len());
                window.push_back(self.requests.begin_call(self.home, request, due)?);
                asked += 1;
            }
            let Some(wait) = window.pop_front() else {
                break;
            };
            let completion = wait.await;
            if is_crowded(&completion) {
                return Err(Error::busy(STAGED_PAUSE));
            }
            match completion.called()? {
                Some(CallResponse::Staged(overflow)) => {
                    value = Some(overflow);
                    done += 1;
                }
                Some(_) => return Err(Error::invalid("the home answered something else")),
                None => {
                    // Pieces are taken in order only: the ones after it were in vain.
                    for wait in window.drain(..) {
                        let _ = wait.await;
                    }
                    asked = done;
                    let due = session.commit_due();
                    self.requests.pause(RETRY_PAUSE, due).await?;
                }
            }
        }
        Ok(value)
    }

    fn piece(
        &self,
        segment: SegmentId,
        token: u64,
        source: &mut impl Source,
        piece: usize,
    ) -> Result<CallRequest> {
        let first = piece * STAGE_PAGES_MAX;
        Ok(CallRequest::Stage {
            segment,
            registration: self.registration,
            token,
            bytes: source.bytes(),
            index: first as u32,
            chunks: source.chunks(first, STAGE_PAGES_MAX)?,
        })
    }
}

/// Whether the home keeps as many values of this member as it does: other transactions' go with their commits.
fn is_crowded(completion: &Completion) -> bool {
    matches!(
        completion,
        Completion::Response(Response::Called(Err(CallError::TooMany)))
    )
}

/// How long to wait while the home keeps too many staged values.
const STAGED_PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{Draft, Generation, ImageEdit, Position, Stamp};

    fn len_of(image: &Image, bytes: u64) -> Result<usize, BadChunk> {
        let overflow = Overflow {
            bytes,
            first: PageNo::OVERFLOW_FIRST,
            pages: 1,
        };
        chunk_of(image, overflow, 0).map(<[u8]>::len)
    }

    #[test]
    fn an_ended_overflow_page_dooms_the_reader_and_is_no_damage() {
        assert_eq!(len_of(&Image::empty(), 5), Err(BadChunk::Ended));
        let mut edit = ImageEdit::default();
        edit.set(Slot(0), Generation(1), Draft::Value(b"hello".to_vec()));
        let image = edit.finish(Position(3), Stamp::default());
        assert_eq!(len_of(&image, 5), Ok(5));
        let other = BadChunk::OtherLength { index: 0, bytes: 5 };
        assert_eq!(len_of(&image, 6), Err(other));
    }
}
