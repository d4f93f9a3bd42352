//! Answers that are stored while they go to their client.

use super::budget::SHORT_BYTES;
pub(crate) use super::budget::{Budget, Share};
use super::owned;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

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
        let has_room = copy.share.grow(length) && copy.share.bytes() <= copy.bytes_max
            || copy.share.bytes() <= SHORT_BYTES as u64;
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
