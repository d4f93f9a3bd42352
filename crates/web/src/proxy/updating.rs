//! Unsafe requests where requests are the source: each is an update, from before it is forwarded until its whole final answer has come.

use super::answer::{drop_fields_of_connection, says_its_end};
use super::building::Budget;
use super::origin::{BodyError, Origin, OriginError, Outgoing, Tries};
use super::upload::{self, NoUpload, Upload};
use crate::requests::{NotBegun, Requests, Update};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{self, HeaderMap};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use thorp_versions::{Bug, is_planted};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Parts of an answer that wait for its client.
const PARTS_WAITING: usize = 16;

/// How long a client may take for the next part. Then its answer is cut, and the proxy awaits the rest without it.
const TAKES_WITHIN: Duration = Duration::from_secs(30);

/// Forwards unsafe requests.
#[derive(Clone, Debug)]
pub(crate) struct Updating {
    requests: Requests,
    origin: Arc<Origin>,
    uploads: Budget,
    /// Another recipe is in force, or about to be: the keys that the one of this proxy names for a request may not be those of the next.
    yields: Arc<AtomicBool>,
}

/// Why there is no answer of the origin.
#[derive(Debug)]
pub(crate) enum NotUpdated {
    /// The request was not forwarded.
    NotBegun(NotBegun),
    /// Its body did not come, so it was not forwarded.
    NoUpload(NoUpload),
    /// The origin has not answered.
    Origin(OriginError),
}

/// A request that is an update, and what it changes.
struct Changing {
    head: Parts,
    keys: Option<Vec<String>>,
}

impl Updating {
    pub(crate) fn new(requests: Requests, origin: Arc<Origin>) -> Self {
        Updating {
            requests,
            origin,
            uploads: upload::budget(),
            yields: Arc::default(),
        }
    }

    /// The same of the proxy that takes the place of this one: the limits stay limits.
    pub(crate) fn of(&self, origin: Arc<Origin>) -> Self {
        Updating {
            requests: self.requests.clone(),
            origin,
            uploads: self.uploads.clone(),
            yields: Arc::default(),
        }
    }

    /// Another recipe takes the place of this one's. What begins here from now on may change anything, and so may all that is open, until it
    /// is over. The next recipe may have other keys for it.
    ///
    /// # Errors
    ///
    /// No keeper has noted that. Then all stays as it is.
    pub(crate) async fn yields(&self) -> Result<(), NotBegun> {
        self.yields.store(true, Ordering::SeqCst);
        let covered = self.requests.cover().await;
        if covered.is_err() {
            self.yields.store(false, Ordering::SeqCst);
        }
        covered
    }

    /// Forwards a request that changes these keys, or nobody knows which. Once it is forwarded, its update goes on whatever becomes of the
    /// client: the origin may be at work on it.
    pub(crate) async fn forward(
        &self,
        request: Request<Incoming>,
        keys: Option<Vec<String>>,
    ) -> Result<Response<Outgoing>, NotUpdated> {
        let (mut head, body) = request.into_parts();
        drop_fields_of_connection(&mut head.headers);
        head.headers.remove(header::EXPECT);
        let upload = Upload::read(body, &self.uploads).await;
        let upload = upload.map_err(NotUpdated::NoUpload)?;
        let update = self.begin(keys.clone()).await?;
        let (says, answer) = oneshot::channel();
        let changing = Changing { head, keys };
        tokio::spawn(self.clone().attend(changing, upload, update, says));
        let away = || OriginError::Away(String::from("the proxy has given up"));
        answer
            .await
            .unwrap_or_else(|_| Err(NotUpdated::Origin(away())))
    }

    async fn begin(&self, keys: Option<Vec<String>>) -> Result<Update, NotUpdated> {
        let is_known = keys.is_some();
        let mut begun = self.requests.begin(keys).await;
        // One that began before this look is covered.
        if is_known && begun.is_ok() && self.yields.load(Ordering::SeqCst) {
            begun = self.requests.begin(None).await;
        }
        begun.map_err(NotUpdated::NotBegun)
    }

    /// Sends the request, and reads its answer to the end.
    async fn attend(
        self,
        changing: Changing,
        upload: Upload,
        update: Update,
        says: oneshot::Sender<Result<Response<Outgoing>, NotUpdated>>,
    ) {
        let (answer, update) = match self.send(changing, upload, update).await {
            Ok(answered) => answered,
            // The client may be gone.
            Err(error) => return drop(says.send(Err(error))),
        };
        let is_final = is_final(answer.status());
        let (head, body) = answer.into_parts();
        let says_its_end = body.is_end_stream() || says_its_end(&head.headers);
        let (client, parts) = mpsc::channel(PARTS_WAITING);
        let _ = says.send(Ok(Response::from_parts(head, Piped(parts).boxed())));
        let life = self.requests.life();
        drain(body, client, update, (is_final && says_its_end, life)).await;
    }

    /// Sends the request. If an address fails, the next one gets it, as far as it may be sent twice: as an update of its own.
    async fn send(
        &self,
        changing: Changing,
        upload: Upload,
        mut update: Update,
    ) -> Result<(Response<Incoming>, Update), NotUpdated> {
        let mut tries = self.origin.tries();
        let may_repeat = changing.head.method.is_idempotent() && upload.is_empty();
        let mut body = upload.boxed();
        loop {
            let is_last = !may_repeat || !tries.are_left();
            update.forwards().map_err(NotUpdated::NotBegun)?;
            let error = match self.send_once(&mut tries, &changing.head, body).await {
                // Nobody has asked for a tunnel. Its update lingers.
                Ok(answer) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => {
                    let words = String::from("it turns to another protocol");
                    return Err(NotUpdated::Origin(OriginError::Away(words)));
                }
                Ok(answer) => return Ok((answer, update)),
                Err(error) => error,
            };
            match &error {
                // Nothing of it has left.
                OriginError::NotReached(_) => update.end(),
                // The origin may be at work on it: it lingers.
                OriginError::Away(_)
                | OriginError::Slow
                | OriginError::Busy
                | OriginError::Shared(_) => drop(update),
            }
            if is_last || matches!(error, OriginError::Slow) {
                return Err(NotUpdated::Origin(error));
            }
            tracing::warn!("another address is tried: {error}");
            update = self.begin(changing.keys.clone()).await?;
            body = super::origin::whole(Bytes::new());
        }
    }

    async fn send_once(
        &self,
        tries: &mut Tries,
        head: &Parts,
        body: Outgoing,
    ) -> Result<Response<Incoming>, OriginError> {
        let mut request = Request::new(body);
        *request.method_mut() = Method::clone(&head.method);
        *request.headers_mut() = HeaderMap::clone(&head.headers);
        let path = head.uri.path_and_query();
        self.origin.send_to(tries, path, request).await
    }
}

/// Whether an answer of this status ends its update.
pub fn ends_update(status: u16) -> bool {
    StatusCode::from_u16(status).is_ok_and(is_final)
}

/// Whether nothing comes after such an answer. After the others the application may work on (trap W31). Gateways have statuses of their own
/// from 500 on, so only those that an application gives are final there.
fn is_final(status: StatusCode) -> bool {
    let open = [StatusCode::ACCEPTED, StatusCode::REQUEST_TIMEOUT];
    let of_applications = [
        StatusCode::INTERNAL_SERVER_ERROR,
        StatusCode::NOT_IMPLEMENTED,
        StatusCode::HTTP_VERSION_NOT_SUPPORTED,
    ];
    match status.as_u16() {
        _ if is_planted(Bug::AnyAnswerEnds) => true,
        200..500 => !open.contains(&status),
        _ => of_applications.contains(&status),
    }
}

/// Reads an answer to its end, also if its client is gone or slow. Only then the update ends, if the answer is final and says where it ends.
/// Otherwise, and if the origin goes on for longer than a request lives, it lingers.
async fn drain(
    mut body: Incoming,
    client: mpsc::Sender<Part>,
    update: Update,
    (is_final, life): (bool, Duration),
) {
    let end = Instant::now() + life;
    let mut client = Some(client);
    let mut update = Some(update);
    loop {
        let frame = match update.is_some() {
            false => body.frame().await,
            true => match tokio::time::timeout_at(end, body.frame()).await {
                Ok(frame) => frame,
                Err(_) => {
                    update = None;
                    continue;
                }
            },
        };
        let Some(frame) = frame else {
            if let Some(update) = update.filter(|_| is_final) {
                update.end();
            }
            give(&mut client, Part::End).await;
            return;
        };
        match frame {
            Ok(frame) => give(&mut client, Part::Frame(frame)).await,
            Err(error) => return give(&mut client, Part::Cut(error.into())).await,
        }
        if client.is_none() && update.is_none() {
            // Nobody wants the rest.
            return;
        }
    }
}

async fn give(client: &mut Option<mpsc::Sender<Part>>, part: Part) {
    if let Some(there) = client
        && there.send_timeout(part, TAKES_WITHIN).await.is_err()
    {
        *client = None;
    }
}

/// What the client of an answer gets next.
enum Part {
    Frame(Frame<Bytes>),
    End,
    Cut(BodyError),
}

/// The client's end of an answer.
struct Piped(mpsc::Receiver<Part>);

impl Body for Piped {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.0.poll_recv(context).map(|part| match part {
            Some(Part::Frame(frame)) => Some(Ok(frame)),
            Some(Part::End) => None,
            Some(Part::Cut(error)) => Some(Err(error)),
            // An end without a word is a cut, too.
            None => Some(Err("the client was too slow".into())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_some_answers_the_application_may_work_on() {
        for status in [200, 204, 303, 400, 404, 409, 500, 501] {
            assert!(is_final(StatusCode::from_u16(status).expect("a status")));
        }
        for status in [101, 202, 408, 502, 503, 504, 520, 524, 599, 999] {
            assert!(!is_final(StatusCode::from_u16(status).expect("a status")));
        }
    }
}
