//! Answers that are stored while they go to their client.

use super::owned;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// Bodies that are being built, and those that are on their way to clients though the cache has dropped them, have at most so many bytes
/// together. While they have more, answers pass through, not stored.
const BUILDING_BYTES_MAX: u64 = 128 << 20;

/// The bytes of all bodies in memory, with those in the cache.
#[derive(Clone, Default, Debug)]
pub(crate) struct Budget(Arc<Bodies>);

#[derive(Default, Debug)]
struct Bodies {
    bytes: AtomicU64,
    /// How many the cache may have.
    cached_max: AtomicU64,
}

impl Budget {
    /// The cache may have so many bytes from now on.
    pub(crate) fn allow(&self, cached_max: u64) {
        self.0.cached_max.store(cached_max, Ordering::Relaxed);
    }

    /// A part of it, with nothing in it yet.
    pub(crate) fn share(&self) -> Share {
        Share {
            budget: self.clone(),
            bytes: AtomicU64::new(0),
        }
    }

    fn has_room_for(&self, bytes: u64) -> bool {
        let cached_max = self.0.cached_max.load(Ordering::Relaxed);
        bytes <= BUILDING_BYTES_MAX.saturating_add(cached_max)
    }
}

/// The part of it that one body has. It comes back when this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
    bytes: AtomicU64,
}

impl Share {
    /// Takes more. False: there is no more.
    pub(crate) fn grow(&self, bytes: u64) -> bool {
        let before = self.budget.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.budget.has_room_for(before + bytes)
    }

    /// Another part of the same budget, with nothing in it yet.
    pub(crate) fn another(&self) -> Share {
        self.budget.share()
    }

    /// What it has.
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether all bodies together have room still.
    pub(crate) fn has_room(&self) -> bool {
        let bytes = self.budget.0.bytes.load(Ordering::Relaxed);
        self.budget.has_room_for(bytes)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let bytes = &self.budget.0.bytes;
        bytes.fetch_sub(self.bytes(), Ordering::Relaxed);
    }
}

/// What becomes of a whole body.
type Finish = Box<dyn FnOnce(Bytes) + Send + Sync>;

/// A body on its way from the origin to a client. Once all of it has passed, it is stored; if it is cut, it is not.
pub(crate) struct Building {
    rest: Incoming,
    copy: Option<Copy>,
}

struct Copy {
    parts: Vec<Bytes>,
    share: Share,
    bytes_max: u64,
    finish: Finish,
}

impl Building {
    /// A body of at most so many bytes, and what becomes of it. A longer one passes through.
    pub(crate) fn new(rest: Incoming, budget: &Budget, bytes_max: u64, finish: Finish) -> Self {
        let copy = Copy {
            parts: Vec::new(),
            share: budget.share(),
            bytes_max,
            finish,
        };
        let is_short = rest.size_hint().lower() <= bytes_max;
        let mut building = Building {
            rest,
            copy: is_short.then_some(copy),
        };
        building.finish_at_end();
        building
    }

    fn take(&mut self, data: &Bytes) {
        let Some(copy) = &mut self.copy else {
            return;
        };
        let length = data.len() as u64;
        let has_room = copy.share.grow(length) && copy.share.bytes() <= copy.bytes_max;
        copy.parts.push(data.clone());
        if !has_room {
            self.copy = None;
        }
    }

    /// A server does not ask for more than a body with a known length has.
    fn finish_at_end(&mut self) {
        if self.rest.is_end_stream() {
            self.finish();
        }
    }

    fn finish(&mut self) {
        if let Some(copy) = self.copy.take() {
            let share = copy.share.another();
            (copy.finish)(owned::body(&copy.parts, share));
        }
    }
}

impl Body for Building {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.rest).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.take(data);
                }
                self.finish_at_end();
            }
            Poll::Ready(Some(Err(_))) => self.copy = None,
            Poll::Ready(None) => self.finish(),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.rest.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_comes_back() {
        let budget = Budget::default();
        let first = budget.share();
        assert!(first.grow(BUILDING_BYTES_MAX - 1));
        let second = budget.share();
        assert!(second.grow(1) && !second.grow(1));
        drop(second);
        drop(first);
        assert_eq!(budget.0.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_dropped_answer_counts_until_its_last_reader_has_it() {
        let budget = Budget::default();
        budget.allow(10);
        let room = budget.share();
        assert!(room.grow(BUILDING_BYTES_MAX));
        let stored = owned::body(&[Bytes::from("0123456789")], room.another());
        assert!(room.has_room());
        let reader = stored.slice(2..);
        drop(stored);
        assert!(!room.grow(1));
        drop(reader);
        assert!(room.has_room());
    }
}
