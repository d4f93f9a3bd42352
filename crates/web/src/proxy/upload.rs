//! The body of an unsafe request: it is here before the request is forwarded, so that no slow client holds an update open.

use super::building::{Budget, Share};
use super::origin::BodyError;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// A body of more bytes is forwarded while it comes.
pub const UPLOAD_BYTES_MAX: usize = 8 << 20;

/// Bodies of all clients that the proxy waits for have at most so many bytes together. With more, they are forwarded while they come.
pub const UPLOADS_BYTES_MAX: u64 = 64 << 20;

/// How long a client may pause inside a body that the proxy waits for ...
const GOES_ON_WITHIN: Duration = Duration::from_secs(30);

/// ... and how long all of it may take.
const COMES_WITHIN: Duration = Duration::from_secs(300);

/// Why a body is not here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoUpload {
    /// The client has ended too early.
    Cut,
    /// The client pauses for too long.
    Slow,
}

/// A body that may be forwarded.
#[derive(Debug)]
pub(crate) struct Upload {
    parts: VecDeque<Bytes>,
    rest: Option<Incoming>,
    /// What is here counts until the origin has it.
    _share: Share,
}

/// The memory for the bodies of all clients. It is none of that in which answers are stored: slow uploads take no room from them.
pub(crate) fn budget() -> Budget {
    Budget::of(UPLOADS_BYTES_MAX)
}

impl Upload {
    /// Reads a body to its end. A large one, or one for which there is no memory, is only begun.
    pub(crate) async fn read(mut body: Incoming, budget: &Budget) -> Result<Self, NoUpload> {
        let end = Instant::now() + COMES_WITHIN;
        let share = budget.share();
        let mut parts = VecDeque::new();
        let mut length = 0;
        while length <= UPLOAD_BYTES_MAX && share.has_room() {
            let until = end.min(Instant::now() + GOES_ON_WITHIN);
            let frame = tokio::time::timeout_at(until, body.frame()).await;
            let frame = frame.map_err(|_| NoUpload::Slow)?;
            let Some(frame) = frame.transpose().map_err(|_| NoUpload::Cut)? else {
                return Ok(Upload {
                    parts,
                    rest: None,
                    _share: share,
                });
            };
            if let Ok(data) = frame.into_data() {
                length += data.len();
                share.grow(data.len() as u64);
                parts.push_back(data);
            }
        }
        Ok(Upload {
            parts,
            rest: Some(body),
            _share: share,
        })
    }

    /// Whether there is none: then the request may be sent again.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.rest.is_none()
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(part) = self.parts.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(part))));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(context).map_err(Into::into),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty()
    }

    /// If all of it is here, its length is known.
    fn size_hint(&self) -> SizeHint {
        let here = self.parts.iter().map(|part| part.len() as u64).sum();
        match &self.rest {
            None => SizeHint::with_exact(here),
            Some(_) => {
                let mut hint = SizeHint::new();
                hint.set_lower(here);
                hint
            }
        }
    }
}
