//! `/begin` and `/end`: an application says by itself when something changes. A listener of its own, and a secret, keep others out.

use super::link::{NotBegun, Requests};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

/// Updates that calls have begun, and that are open. One more is refused.
pub const CALLS_OPEN_MAX: usize = 1_024;

/// Keys of one call.
pub const KEYS_OF_CALL_MAX: usize = 1_024;

/// The body of a call.
const BODY_BYTES_MAX: usize = 64 << 10;

/// Connections at a time. More wait in the system's queue.
const CONNECTIONS_MAX: usize = 64;

/// How long the head of a call may take, and its body.
const HEARD_WITHIN: Duration = Duration::from_secs(10);

/// A shorter secret can be guessed.
const SECRET_BYTES_MIN: usize = 16;

/// Why calls cannot be taken.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CallsError {
    /// The secret is too short, or no line of text.
    Secret,
}

impl fmt::Display for CallsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the secret of calls has to be one line of at least {SECRET_BYTES_MIN} visible ASCII letters"
        )
    }
}

impl std::error::Error for CallsError {}

/// The calls of applications.
pub struct Calls {
    requests: Requests,
    secret: String,
    open: Mutex<BTreeSet<u64>>,
}

/// What `/begin` is told. Without keys, anything may change.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Begin {
    keys: Option<Vec<String>>,
}

/// What `/end` is told.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    update: String,
}

type Answer = (StatusCode, serde_json::Value);

impl Calls {
    /// Takes calls of whoever knows a secret: a line of at least 16 visible ASCII letters.
    ///
    /// # Errors
    ///
    /// The secret is none.
    pub fn new(requests: Requests, secret: &str) -> Result<Self, CallsError> {
        let secret = secret.trim();
        let is_line = secret.bytes().all(|byte| byte.is_ascii_graphic());
        if secret.len() < SECRET_BYTES_MIN || !is_line {
            return Err(CallsError::Secret);
        }
        Ok(Calls {
            requests,
            secret: secret.to_owned(),
            open: Mutex::default(),
        })
    }

    /// Takes calls until it is told to stop.
    pub async fn serve(self, listener: TcpListener, mut stop: watch::Receiver<bool>) {
        let calls = Arc::new(self);
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let calls = Arc::clone(&calls);
            tokio::spawn(async move {
                let answers = service_fn(|request| calls.answer(request));
                let mut builder = http1::Builder::new();
                builder
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEARD_WITHIN);
                let served = builder.serve_connection(TokioIo::new(stream), answers);
                if let Err(error) = served.await {
                    tracing::debug!("a call: {error}");
                }
                drop(place);
            });
        }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let (status, told) = self.take(request).await;
        let mut answer = Response::new(Full::new(Bytes::from(format!("{told}\n"))));
        *answer.status_mut() = status;
        let json = HeaderValue::from_static("application/json");
        answer.headers_mut().insert(header::CONTENT_TYPE, json);
        Ok(answer)
    }

    async fn take(&self, request: Request<Incoming>) -> Answer {
        if !self.knows_secret(request.headers()) {
            let words = "send the secret: Authorization: Bearer SECRET";
            return refused(StatusCode::UNAUTHORIZED, words);
        }
        let path = request.uri().path().to_owned();
        let is_call = path == "/begin" || path == "/end";
        if !is_call || request.method() != Method::POST {
            return refused(StatusCode::NOT_FOUND, "send POST /begin or POST /end");
        }
        let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
        let Ok(Ok(body)) = tokio::time::timeout(HEARD_WITHIN, body).await else {
            let words = "the body is too large, or does not come";
            return refused(StatusCode::BAD_REQUEST, words);
        };
        let body = body.to_bytes();
        match path.as_str() {
            "/begin" => self.begin(&body).await,
            _ => self.end(&body),
        }
    }

    async fn begin(&self, body: &[u8]) -> Answer {
        let begin: Begin = match body.is_empty() {
            true => Begin::default(),
            false => match serde_json::from_slice(body) {
                Ok(begin) => begin,
                Err(error) => return refused(StatusCode::BAD_REQUEST, error),
            },
        };
        if begin
            .keys
            .as_ref()
            .is_some_and(|keys| keys.len() > KEYS_OF_CALL_MAX)
        {
            let words =
                format!("name {KEYS_OF_CALL_MAX} keys at most, or none: then anything may change");
            return refused(StatusCode::BAD_REQUEST, words);
        }
        if !self.has_room() {
            let words = format!("{CALLS_OPEN_MAX} updates are open: end some of them");
            return refused(StatusCode::TOO_MANY_REQUESTS, words);
        }
        match self.requests.begin(begin.keys).await {
            Ok(update) => {
                let Some(life) = self.requests.told_life().await else {
                    let error = NotBegun::NoKeeper;
                    return refused(StatusCode::SERVICE_UNAVAILABLE, error);
                };
                let update = update.leave_open();
                let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                open.insert(update);
                let seconds = life.as_secs();
                let told = json!({ "update": update.to_string(), "seconds": seconds });
                (StatusCode::OK, told)
            }
            Err(error @ NotBegun::TooMany) => refused(StatusCode::TOO_MANY_REQUESTS, error),
            Err(error) => refused(StatusCode::SERVICE_UNAVAILABLE, error),
        }
    }

    fn end(&self, body: &[u8]) -> Answer {
        let update = match serde_json::from_slice::<End>(body) {
            Ok(end) => end.update.parse().ok(),
            Err(error) => return refused(StatusCode::BAD_REQUEST, error),
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // No call ends what another has not begun: those of requests are the proxy's.
        let is_call = update.is_some_and(|update| open.remove(&update));
        match update.is_some_and(|update| is_call && self.requests.end(update)) {
            true => (StatusCode::OK, json!({})),
            false => refused(
                StatusCode::NOT_FOUND,
                "no such update is open: it was ended, or its time has passed",
            ),
        }
    }

    fn has_room(&self) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= CALLS_OPEN_MAX {
            open.retain(|update| self.requests.is_open(*update));
        }
        open.len() < CALLS_OPEN_MAX
    }

    /// Takes as long for a wrong secret as for the right one.
    fn knows_secret(&self, headers: &HeaderMap) -> bool {
        let sent = headers
            .get(header::AUTHORIZATION)
            .map(HeaderValue::as_bytes);
        let sent = sent.and_then(|sent| sent.strip_prefix(b"Bearer "));
        let Some(sent) = sent.filter(|sent| sent.len() == self.secret.len()) else {
            return false;
        };
        let pairs = sent.iter().zip(self.secret.as_bytes());
        pairs.fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
    }
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The secret stays here.
        f.write_str("Calls")
    }
}

fn refused(status: StatusCode, words: impl fmt::Display) -> Answer {
    (status, json!({ "error": words.to_string() }))
}
