//! The body of a fill: it is read to its end whatever becomes of its client, who gets it meanwhile.

use super::building::{Budget, Share};
use super::origin::{BodyError, OriginError, Outgoing, STORED_BYTES_MAX, reasons};
use super::owned;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// A body of more bytes goes to its client before all of it has come ...
const SHORT_BYTES: usize = 64 << 10;

/// ... and so does one that takes longer.
const SHORT_WITHIN: Duration = Duration::from_millis(20);

/// A body on its way.
pub(crate) struct Growing {
    rest: Incoming,
    parts: Vec<Bytes>,
    length: usize,
    share: Arc<Share>,
    client: Option<mpsc::UnboundedSender<Part>>,
}

/// What the client of a body gets next.
enum Part {
    Data(Bytes),
    /// All has come.
    End,
    /// It is too long to be stored: what still comes is the client's alone.
    Rest(Incoming),
    /// The origin has ended too early.
    Cut(String),
}

/// How far it has come.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Grown {
    /// All of it is here.
    Whole(Bytes),
    /// More is to come.
    More,
}

impl Growing {
    pub(crate) fn new(rest: Incoming, budget: &Budget) -> Self {
        Growing {
            rest,
            parts: Vec::new(),
            length: 0,
            share: Arc::new(budget.share()),
            client: None,
        }
    }

    /// Reads a body that is short and comes at once.
    pub(crate) async fn short(&mut self) -> Result<Grown, OriginError> {
        let end = Instant::now() + SHORT_WITHIN;
        while self.length <= SHORT_BYTES && self.has_room() {
            let frame = tokio::time::timeout_at(end, self.rest.frame()).await;
            let Ok(frame) = frame else {
                return Ok(Grown::More);
            };
            if !self.take(frame)? {
                return Ok(Grown::Whole(self.whole()));
            }
        }
        Ok(Grown::More)
    }

    /// The body for the client: what has come, and what still comes.
    pub(crate) fn for_client(&mut self) -> Outgoing {
        let (client, parts) = mpsc::unbounded_channel();
        for part in &self.parts {
            // It is below.
            let _ = client.send(Part::Data(part.clone()));
        }
        self.client = Some(client);
        let share = Some(Arc::clone(&self.share));
        Flowing {
            parts,
            rest: None,
            share,
        }
        .boxed()
    }

    /// Reads on. None: it is too long to be stored, and what still comes is the client's alone.
    pub(crate) async fn rest(mut self) -> Result<Option<Bytes>, OriginError> {
        while self.has_room() {
            let frame = self.rest.frame().await;
            match self.take(frame) {
                Ok(true) => {}
                Ok(false) => {
                    self.tell(Part::End);
                    return Ok(Some(self.whole()));
                }
                Err(error) => {
                    self.tell(Part::Cut(error.to_string()));
                    return Err(error);
                }
            }
        }
        if let Some(client) = self.client {
            // A client that is gone wants nothing more.
            let _ = client.send(Part::Rest(self.rest));
        }
        Ok(None)
    }

    fn has_room(&self) -> bool {
        self.length <= STORED_BYTES_MAX && self.share.has_room()
    }

    /// False: that was the end.
    fn take(
        &mut self,
        frame: Option<Result<Frame<Bytes>, hyper::Error>>,
    ) -> Result<bool, OriginError> {
        let Some(frame) = frame else {
            return Ok(false);
        };
        let frame = frame.map_err(|error| OriginError::Away(reasons(&error)))?;
        if let Ok(data) = frame.into_data() {
            self.length += data.len();
            self.share.grow(data.len() as u64);
            self.parts.push(data.clone());
            self.tell(Part::Data(data));
        }
        Ok(true)
    }

    /// Nobody may be there any more.
    fn tell(&self, part: Part) {
        if let Some(client) = &self.client {
            let _ = client.send(part);
        }
    }

    fn whole(&mut self) -> Bytes {
        owned::body(&std::mem::take(&mut self.parts))
    }
}

/// The client's end. What waits here counts for the budget until the client has it, also when the fill has ended.
struct Flowing {
    parts: mpsc::UnboundedReceiver<Part>,
    rest: Option<Incoming>,
    share: Option<Arc<Share>>,
}

impl Body for Flowing {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            if let Some(rest) = &mut self.rest {
                let polled = Pin::new(rest).poll_frame(context);
                return polled.map_err(Into::into);
            }
            return match self.parts.poll_recv(context) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Some(Part::Data(data))) => Poll::Ready(Some(Ok(Frame::data(data)))),
                Poll::Ready(Some(Part::End)) => Poll::Ready(None),
                Poll::Ready(Some(Part::Cut(why))) => Poll::Ready(Some(Err(why.into()))),
                Poll::Ready(Some(Part::Rest(rest))) => {
                    self.rest = Some(rest);
                    self.share = None;
                    continue;
                }
                // An end without a word is a cut, too.
                Poll::Ready(None) => Poll::Ready(Some(Err("the fill has ended".into()))),
            };
        }
    }
}
