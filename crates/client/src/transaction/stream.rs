//! Large values that pass through: from a file to the home, and from the home to a file. No process on the way keeps
//! the whole of one (foundation 3).

use super::large::{Source, Staged, place_in};
use super::read::{Found, Need};
use super::send::check_staged;
use super::{ObjectAt, Transaction};
use crate::runtime::{StagedTokens, block_on};
use crate::{Error, ErrorKind, Reference, Result, Segment};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use thorp_model::limits::{INLINE_VALUE_BYTES_MAX, OBJECT_BYTES_MAX, OVERFLOW_CHUNK_BYTES};
use thorp_model::{Blob, HomeId, NewValue, Overflow, Place, WriteOp};
use thorp_protocol::MemberCommand;
use thorp_session::Act;

impl Transaction {
    /// As [`Transaction::create`], of all that `source` holds, from its beginning to its end. What is large goes to its
    /// home at once, piece by piece: this process holds about 2 MiB of it. It becomes an object with the commit. Before
    /// that, the transaction can neither read nor change it.
    ///
    /// It blocks while it reads from `source`. An asynchronous program calls it in a thread that may block. Each half
    /// of a megabyte may take as long as the session's [`commit_timeout`](crate::Session::commit_timeout).
    ///
    /// # Errors
    ///
    /// As [`Transaction::create`]; [`Aborted`](crate::ErrorKind::Aborted) if `source` cannot be read, with its error as
    /// the source.
    pub fn create_from<R: Read + Seek>(
        &mut self,
        segment: &Segment,
        source: &mut R,
    ) -> Result<Reference> {
        let mut source = Stream::new(source)?;
        if source.is_small() {
            return self.create(segment, source.all()?);
        }
        let (home, id) = (segment.allocator().home, segment.allocator().segment);
        self.inner
            .begin_creating(home)
            .map_err(|stop| self.stopped(stop))?;
        let value = block_on(self.streamed(home, id, source))?;
        let reference = self.create(segment, Vec::new())?;
        let generation = reference.generation;
        self.prepare(&reference, WriteOp::Create { generation, value })?;
        Ok(reference)
    }

    /// As [`Transaction::write`], of all that `source` holds: see [`Transaction::create_from`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::write`]; [`Aborted`](crate::ErrorKind::Aborted) if `source` cannot be read, with its error as the
    /// source.
    pub fn write_from<R: Read + Seek>(
        &mut self,
        reference: &Reference,
        source: &mut R,
    ) -> Result<()> {
        let mut source = Stream::new(source)?;
        if source.is_small() {
            return self.write(reference, source.all()?);
        }
        self.begin_writing()?;
        // Whatever is wrong with the place is found before anything travels.
        let is_new = self.is_created_here(reference);
        self.write(reference, Vec::new())?;
        let segment = reference.object.page.segment;
        let value = block_on(self.streamed(reference.home, segment, source))?;
        let generation = reference.generation;
        let op = match is_new {
            true => WriteOp::Create { generation, value },
            false => WriteOp::Write { generation, value },
        };
        self.prepare(reference, op)
    }

    /// Writes an object's bytes into `out`, from the reference's offset on, and tells how many these are. Pages of a
    /// large object are fetched a megabyte ahead, and this process keeps no more of them. One that would take more than
    /// a quarter of the cache does not stay there.
    ///
    /// It blocks while it writes into `out`. If it fails, `out` may have got a part. Each half of a megabyte may
    /// take as long as the session's [`fetch_timeout`](crate::Session::fetch_timeout).
    ///
    /// # Errors
    ///
    /// As [`Transaction::read`]; [`Conflict`](crate::ErrorKind::Conflict) if the object is changed meanwhile, and
    /// [`Aborted`](crate::ErrorKind::Aborted) if `out` cannot be written, with its error as the source.
    pub fn read_into(&mut self, reference: &Reference, out: &mut impl Write) -> Result<u64> {
        block_on(self.pass_into(reference, out))
    }

    async fn pass_into(&mut self, reference: &Reference, out: &mut impl Write) -> Result<u64> {
        let found = self.ready_head(reference).await?;
        let Found::Need(Need::Whole(_, overflow)) = found else {
            let bytes = self.show(reference, found)?;
            out.write_all(bytes).map_err(Error::aborted_by)?;
            return Ok(bytes.len() as u64);
        };
        self.check_head(reference, overflow)?;
        if reference.offset > overflow.bytes {
            return Err(Error::invalid(format!(
                "the reference points beyond the end of {}, which has {} bytes",
                self.shared.naming().object(reference),
                overflow.bytes
            )));
        }
        let first = reference.offset / CHUNK_BYTES;
        let mut passed = Passed::new(self, reference, overflow);
        let mut skipped = (reference.offset % CHUNK_BYTES) as usize;
        let pages = first as u32..overflow.pages;
        let visit = |index: u32, chunk: &[u8]| {
            let rest = chunk.get(skipped..).unwrap_or_default();
            skipped = 0;
            passed.add(index);
            out.write_all(rest).map_err(Error::aborted_by)
        };
        let visited = self.visit_pages(reference, overflow, pages, visit).await;
        visited.map(|()| overflow.bytes - reference.offset)
    }

    /// Sends all of a source to a home, ahead of the commit.
    async fn streamed<R: Read + Seek>(
        &mut self,
        home: HomeId,
        segment: thorp_model::SegmentId,
        source: Stream<'_, R>,
    ) -> Result<NewValue> {
        check_staged(self.streams.count(home) + 1)?;
        let session = self.session;
        self.shared.reach(home, session.commit_due()).await?;
        let mut staged = Staged::none(&self.shared.requests, home);
        staged.register(session.commit_due()).await?;
        let value = staged.stage(segment, source, session).await?;
        let value = value.ok_or_else(|| Error::invalid("a large value has bytes"))?;
        self.streams.staged.push(staged);
        Ok(NewValue::Staged(value))
    }

    fn prepare(&mut self, reference: &Reference, op: WriteOp) -> Result<()> {
        let at = ObjectAt::from(reference);
        self.large.remove(&at);
        let prepared = self.inner.prepare(at, op);
        prepared.map_err(|stop| self.stopped(stop))?;
        self.streams.objects.push(at);
        Ok(())
    }

    fn is_created_here(&self, reference: &Reference) -> bool {
        let own = self.inner.writes().get(reference.into());
        matches!(own.map(|own| &own.act), Some(Act::Created(_)))
    }
}

const CHUNK_BYTES: u64 = OVERFLOW_CHUNK_BYTES as u64;

/// The values that a transaction has streamed to homes. They go when it ends without them.
#[derive(Default)]
pub(super) struct Streams {
    staged: Vec<Staged>,
    objects: Vec<ObjectAt>,
}

impl Streams {
    /// How many there are at a home.
    pub(super) fn count(&self, home: HomeId) -> usize {
        let at_home = self.staged.iter().filter(|staged| staged.home == home);
        at_home.count()
    }

    /// Whether an object is one of them.
    pub(super) fn has(&self, object: &ObjectAt) -> bool {
        self.objects.contains(object)
    }

    /// What keeps them at their homes.
    pub(super) fn tokens(&self) -> impl Iterator<Item = Arc<StagedTokens>> + '_ {
        self.staged.iter().map(|staged| Arc::clone(&staged.tokens))
    }

    pub(super) fn clear(&mut self) {
        self.staged.clear();
        self.objects.clear();
    }
}

/// What a program gave to read from.
struct Stream<'a, R> {
    source: &'a mut R,
    bytes: u64,
}

impl<'a, R: Read + Seek> Stream<'a, R> {
    fn new(source: &'a mut R) -> Result<Self> {
        let bytes = source.seek(SeekFrom::End(0)).map_err(Error::aborted_by)?;
        if bytes > OBJECT_BYTES_MAX {
            let words = format!(
                "an object has at most {OBJECT_BYTES_MAX} bytes, and this is one of {bytes}"
            );
            return Err(Error::new(ErrorKind::TooLarge, words));
        }
        Ok(Stream { source, bytes })
    }

    fn is_small(&self) -> bool {
        self.bytes <= INLINE_VALUE_BYTES_MAX as u64
    }

    fn all(&mut self) -> Result<Vec<u8>> {
        self.read(0, self.bytes)
    }

    fn read(&mut self, from: u64, len: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len as usize];
        let read = self.source.seek(SeekFrom::Start(from));
        let read = read.and_then(|_| self.source.read_exact(&mut bytes));
        match read {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let words = "it became shorter while it was read";
                Err(Error::aborted_by(io::Error::new(error.kind(), words)))
            }
            Err(error) => Err(Error::aborted_by(error)),
        }
    }
}

impl<R: Read + Seek> Source for Stream<'_, R> {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn chunks(&mut self, first: usize, count: usize) -> Result<Vec<Blob>> {
        let from = (first as u64).saturating_mul(CHUNK_BYTES).min(self.bytes);
        let end = from.saturating_add(count as u64 * CHUNK_BYTES);
        let bytes = self.read(from, end.min(self.bytes) - from)?;
        Ok(bytes.chunks(OVERFLOW_CHUNK_BYTES).map(Blob::from).collect())
    }
}

/// The pages of a value that was passed on. If it is large for the cache, they leave the cache, some at a time.
struct Passed {
    shared: Arc<crate::runtime::Shared>,
    at: Reference,
    overflow: Overflow,
    is_let_go: bool,
    pages: Vec<Place>,
}

impl Passed {
    fn new(tx: &Transaction, at: &Reference, overflow: Overflow) -> Self {
        let cache_bytes = tx.shared.cache.bytes_max() as u64;
        Passed {
            shared: Arc::clone(&tx.shared),
            at: *at,
            overflow,
            is_let_go: overflow.bytes > cache_bytes / CACHE_PART,
            pages: Vec::new(),
        }
    }

    fn add(&mut self, index: u32) {
        if !self.is_let_go {
            return;
        }
        let segment = self.at.object.page.segment;
        let place = place_in(self.at.home, segment, self.overflow, index);
        self.pages.push(place);
        if self.pages.len() >= LET_GO_AT_ONCE {
            self.let_go();
        }
    }

    fn let_go(&mut self) {
        let pages = std::mem::take(&mut self.pages);
        if let Some(handle) = self.shared.requests.sender.handle()
            && !pages.is_empty()
        {
            // A loop that is gone holds no pages.
            let _ = handle.command(MemberCommand::Evict(pages));
        }
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// The part of the cache that a value may take and stay there when it was passed on.
const CACHE_PART: u64 = 4;

/// Pages that leave the cache at once.
const LET_GO_AT_ONCE: usize = 64;
