//! The body of a fill: it is read to its end whatever becomes of its client, who gets it meanwhile.

use super::budget::{Budget, SHORT_BYTES, Share};
use super::origin::{BodyError, OriginError, Outgoing, STORED_BYTES_MAX, passed, reasons};
use super::owned;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, Incoming};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// A body of more than [`SHORT_BYTES`] goes to its client before all of it has come, and so does one that takes longer than this.
const SHORT_WITHIN: Duration = Duration::from_millis(20);

/// If nothing of a body comes for so long, it is its client's alone: others do not wait for it any longer.
const PAUSES_FOR: Duration = Duration::from_secs(5);

/// The same counts for a body that has not come as a whole within this time.
const COMES_WITHIN: Duration = Duration::from_secs(30);

/// A body on its way.
pub(crate) struct Growing {
    rest: Outgoing,
    parts: Vec<Bytes>,
    length: usize,
    share: Arc<Share>,
    client: Option<mpsc::UnboundedSender<Part>>,
    trailers: HeaderMap,
}

/// A body that has come, with what follows it.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Whole {
    pub(crate) body: Bytes,
    pub(crate) trailers: HeaderMap,
}

/// What the client of a body gets next.
enum Part {
    Data(Bytes),
    /// All has come.
    End,
    /// It is too long or too slow to be stored: what still comes is the client's alone.
    Rest(Outgoing),
    /// The origin has ended too early.
    Cut(String),
}

/// How far it has come.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Grown {
    /// All of it is here.
    Whole(Whole),
    /// More is to come.
    More,
}

impl Growing {
    pub(crate) fn new(rest: Incoming, budget: &Budget) -> Self {
        Growing::of(passed(rest), budget)
    }

    fn of(rest: Outgoing, budget: &Budget) -> Self {
        Growing {
            rest,
            parts: Vec::new(),
            length: 0,
            share: Arc::new(budget.share()),
            client: None,
            trailers: HeaderMap::new(),
        }
    }

    /// Reads a body that is short and comes at once.
    pub(crate) async fn short(&mut self) -> Result<Grown, OriginError> {
        let end = Instant::now() + SHORT_WITHIN;
        while self.length <= SHORT_BYTES {
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

    /// Reads on. None: it is too long or too slow to be stored, and what still comes is the client's alone.
    pub(crate) async fn rest(self) -> Result<Option<Whole>, OriginError> {
        self.rest_within(COMES_WITHIN, PAUSES_FOR).await
    }

    async fn rest_within(
        mut self,
        all: Duration,
        pause: Duration,
    ) -> Result<Option<Whole>, OriginError> {
        let end = Instant::now() + all;
        while self.has_room() {
            let patience = end.min(Instant::now() + pause);
            let Ok(frame) = tokio::time::timeout_at(patience, self.rest.frame()).await else {
                break;
            };
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

    /// A short body needs no room: each running fill has one of them at most.
    fn has_room(&self) -> bool {
        let is_short = self.length <= SHORT_BYTES;
        is_short || self.length <= STORED_BYTES_MAX && self.share.has_room()
    }

    /// False: that was the end.
    fn take(
        &mut self,
        frame: Option<Result<Frame<Bytes>, BodyError>>,
    ) -> Result<bool, OriginError> {
        let Some(frame) = frame else {
            return Ok(false);
        };
        let frame = frame.map_err(|error| OriginError::Away(reasons(&*error)))?;
        match frame.into_data() {
            Ok(data) => {
                self.length += data.len();
                self.share.grow(data.len() as u64);
                self.parts.push(data.clone());
                self.tell(Part::Data(data));
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    self.trailers = trailers;
                }
            }
        }
        Ok(true)
    }

    /// Nobody may be there any more.
    fn tell(&self, part: Part) {
        if let Some(client) = &self.client {
            let _ = client.send(part);
        }
    }

    fn whole(&mut self) -> Whole {
        let body = owned::body(&std::mem::take(&mut self.parts), self.share.another());
        let trailers = std::mem::take(&mut self.trailers);
        Whole { body, trailers }
    }
}

/// The client's end. What waits here counts for the budget until the client has it, also when the fill has ended.
struct Flowing {
    parts: mpsc::UnboundedReceiver<Part>,
    rest: Option<Outgoing>,
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
                return Pin::new(rest).poll_frame(context);
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

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);
    const SHORT: Duration = Duration::from_millis(5);

    /// A body whose frames a test sends.
    struct Frames(mpsc::UnboundedReceiver<Bytes>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = BodyError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
            let polled = self.0.poll_recv(context);
            polled.map(|data| data.map(|data| Ok(Frame::data(data))))
        }
    }

    fn growing() -> (mpsc::UnboundedSender<Bytes>, Growing) {
        growing_in(&Budget::default())
    }

    fn growing_in(budget: &Budget) -> (mpsc::UnboundedSender<Bytes>, Growing) {
        let (sends, frames) = mpsc::unbounded_channel();
        (sends, Growing::of(Frames(frames).boxed(), budget))
    }

    /// A body without trailers.
    fn alone(body: Bytes) -> Whole {
        let trailers = HeaderMap::new();
        Whole { body, trailers }
    }

    #[tokio::test]
    async fn without_room_a_short_body_is_stored_and_a_long_one_is_not() {
        let budget = Budget::default();
        let others = budget.share();
        assert!(!others.grow(u64::MAX / 2));
        let long = Bytes::from(vec![b'x'; SHORT_BYTES + 1]);
        for (sent, stored) in [(Bytes::from("short"), true), (long, false)] {
            let (origin, mut body) = growing_in(&budget);
            origin.send(sent.clone()).expect("a reader");
            drop(origin);
            let begun = body.short().await.expect("the origin has not failed");
            assert_eq!(begun == Grown::Whole(alone(sent.clone())), stored);
            // So does one that is not here at once.
            let (origin, body) = growing_in(&budget);
            origin.send(sent.clone()).expect("a reader");
            drop(origin);
            let whole = body.rest().await.expect("the origin has not failed");
            assert_eq!(whole, stored.then(|| alone(sent)));
        }
    }

    async fn next(body: &mut Outgoing) -> Option<Bytes> {
        let frame = body.frame().await?.expect("it is not cut");
        frame.into_data().ok()
    }

    #[tokio::test]
    async fn a_body_that_stops_is_its_clients_alone() {
        let (origin, mut body) = growing();
        let mut client = body.for_client();
        origin.send(Bytes::from("first")).expect("a reader");
        let stored = body.rest_within(LONG, SHORT).await;
        assert!(stored.expect("the origin has not failed").is_none());
        origin.send(Bytes::from("second")).expect("a reader");
        drop(origin);
        assert_eq!(next(&mut client).await, Some(Bytes::from("first")));
        assert_eq!(next(&mut client).await, Some(Bytes::from("second")));
        assert_eq!(next(&mut client).await, None);
    }

    #[tokio::test]
    async fn a_body_that_drips_is_its_clients_alone() {
        let (origin, body) = growing();
        let drips = tokio::spawn(async move {
            while origin.send(Bytes::from("x")).is_ok() {
                tokio::time::sleep(SHORT / 5).await;
            }
        });
        let stored = body.rest_within(SHORT, LONG).await;
        assert!(stored.expect("the origin has not failed").is_none());
        // Nobody wants it any more.
        drips.await.expect("it ends");
    }

    #[tokio::test]
    async fn a_body_that_comes_in_time_is_whole() {
        let (origin, body) = growing();
        origin.send(Bytes::from("first")).expect("a reader");
        origin.send(Bytes::from("second")).expect("a reader");
        drop(origin);
        let stored = body.rest_within(LONG, LONG).await;
        assert_eq!(
            stored.expect("the origin has not failed"),
            Some(alone(Bytes::from("firstsecond")))
        );
    }
}
