//! Each request: a hit, a fill, or passed on.

use super::answer::{self, Answer};
use super::cache::{Asked, Cache, Dependencies, Filling, Step};
use super::origin::{self, Origin, OriginError, Outgoing, Received};
use super::request::{Coherent, Name, shared_fields};
use crate::clock;
use crate::recipe::Recipe;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use thorp_versions::{Cells, Place, Reader};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

/// Connections of clients at a time. More wait in the system's queue.
const CONNECTIONS_MAX: usize = 4_096;

/// How long a client may take to send the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// What was done, for `Cache-Status` (RFC 9211).
const HIT: &str = "thorp; hit";
const FILLED: &str = "thorp; fwd=miss; stored";
const NOT_KEPT: &str = "thorp; fwd=miss";
const JOINED: &str = "thorp; fwd=miss; collapsed";
const BYPASSED: &str = "thorp; fwd=bypass";

/// A proxy in front of one origin.
#[derive(Debug)]
pub struct Proxy<C> {
    origin: Origin,
    recipe: Arc<Recipe>,
    cache: Cache<Name, Answer, C>,
    /// The first part of all its ETags: random, so that no other start makes the same.
    life: u64,
    fills: AtomicU64,
}

/// Why there is no proxy.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ProxyError {
    /// The origin is no `http://host:port`.
    Origin(String),
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProxyError::Origin(found) => {
                write!(
                    f,
                    "{found:?} is no origin: write http://host:port, without a path"
                )
            }
        }
    }
}

impl std::error::Error for ProxyError {}

impl<C: Cells + Send + Sync + 'static> Proxy<C> {
    /// A proxy with an empty cache of so many bytes.
    ///
    /// # Errors
    ///
    /// The origin is no address of a server.
    pub fn new(
        origin: &str,
        recipe: Arc<Recipe>,
        reader: Reader<C>,
        bytes: u64,
    ) -> Result<Self, ProxyError> {
        let address = origin.parse::<Uri>().ok();
        let found = address.as_ref().and_then(Origin::new);
        let origin = found.ok_or_else(|| ProxyError::Origin(origin.to_owned()))?;
        Ok(Proxy {
            origin,
            recipe,
            cache: Cache::new(reader, bytes),
            life: crate::random::number(),
            fills: AtomicU64::new(0),
        })
    }

    /// Answers one request.
    pub async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Outgoing> {
        if let Some(refused) = refused(&request) {
            return refused;
        }
        let Some(coherent) = Coherent::of(&request, &self.recipe) else {
            return self.pass(request).await;
        };
        let asked = self.cache.arrive(coherent.name);
        let is_head = request.method() == Method::HEAD;
        let known = request.headers().get(header::IF_NONE_MATCH).cloned();
        let wanted = Wanted {
            path: request.uri().path_and_query().cloned(),
            fields: shared_fields(request.headers()),
            dependencies: coherent.dependencies,
        };
        let (answered, status) = self.coherent(asked, wanted).await;
        let mut answer = match answered {
            Ok(Given::Shared(answer)) if answer.is_known(known.as_ref()) => {
                let mut unchanged = Response::from(answer.as_ref().clone());
                *unchanged.status_mut() = StatusCode::NOT_MODIFIED;
                *unchanged.body_mut() = origin::whole(Bytes::new());
                unchanged
            }
            Ok(Given::Shared(answer)) => Response::from(answer.as_ref().clone()),
            Ok(Given::Own(answer)) => answer,
            Err(error) => failed(&error),
        };
        if is_head {
            // The length stays that of the whole answer.
            let length = answer.body().size_hint().exact();
            if let Some(length) = length.filter(|_| answer.status() != StatusCode::NOT_MODIFIED) {
                answer
                    .headers_mut()
                    .insert(header::CONTENT_LENGTH, HeaderValue::from(length));
            }
            *answer.body_mut() = origin::whole(Bytes::new());
        }
        tell(answer.headers_mut(), status);
        answer
    }

    /// A hit, or a fill, or the fill of another.
    async fn coherent(
        self: &Arc<Self>,
        mut asked: Asked<Name>,
        wanted: Wanted,
    ) -> (Result<Given, OriginError>, &'static str) {
        loop {
            let mut waiting = match self.cache.step(&asked, clock::now_ms) {
                Step::Hit(answer) => return (Ok(Given::Shared(answer)), HIT),
                Step::Fill(filling) => return self.fill_beside(filling, wanted).await,
                Step::Wait(waiting) => waiting,
            };
            waiting.over().await;
            if let Some(answer) = self.cache.waited(&mut asked, &waiting) {
                return (Ok(Given::Shared(answer)), JOINED);
            }
        }
    }

    /// Fills in a task of its own: others wait for it, whatever becomes of this client.
    async fn fill_beside(
        self: &Arc<Self>,
        filling: Filling<Name, Answer>,
        wanted: Wanted,
    ) -> (Result<Given, OriginError>, &'static str) {
        let proxy = Arc::clone(self);
        let filled = tokio::spawn(async move { proxy.fill(filling, wanted).await }).await;
        match filled {
            Ok(Ok((given, status))) => (Ok(given), status),
            Ok(Err(error)) => (Err(error), NOT_KEPT),
            Err(error) => (Err(OriginError::Away(error.to_string())), NOT_KEPT),
        }
    }

    async fn fill(
        &self,
        filling: Filling<Name, Answer>,
        wanted: Wanted,
    ) -> Result<(Given, &'static str), OriginError> {
        let tag = self.next_tag();
        let answer = self.origin.get(wanted.path.as_ref(), wanted.fields).await?;
        if !answer::may_be_shared(&answer) {
            self.cache.land_alone(filling);
            let mut own = answer.map(BodyExt::boxed);
            answer::make_coherent(own.headers_mut(), &tag);
            return Ok((Given::Own(own), NOT_KEPT));
        }
        let (mut head, body) = answer.into_parts();
        let body = match origin::read(body).await? {
            Received::Whole(body) => body,
            Received::Long(body) => {
                self.cache.land_alone(filling);
                answer::make_coherent(&mut head.headers, &tag);
                return Ok((Given::Own(Response::from_parts(head, body)), NOT_KEPT));
            }
        };
        let answer = Arc::new(Answer::coherent(head.status, head.headers, body, &tag));
        // What the answer shows is learned last (rule W4).
        let path = wanted.path.as_ref().map_or("/", PathAndQuery::path);
        let also = self.recipe.also(path, &answer.body);
        let dependencies = Dependencies {
            known: wanted.dependencies,
            learned: also.iter().map(|key| Place::of(key)).collect(),
        };
        let is_kept = self
            .cache
            .land(filling, &answer, dependencies, clock::now_ms);
        let status = if is_kept { FILLED } else { NOT_KEPT };
        Ok((Given::Shared(answer), status))
    }

    /// An ETag that no other answer has.
    fn next_tag(&self) -> String {
        let fill = self.fills.fetch_add(1, Ordering::Relaxed);
        format!("\"thorp-{:x}-{fill:x}\"", self.life)
    }

    /// Passes a request on. Its answer is nobody else's.
    async fn pass(&self, request: Request<Incoming>) -> Response<Outgoing> {
        let path = request.uri().path_and_query().cloned();
        let is_coherent = self.recipe.route(request.uri().path()).is_some();
        let mut request = request.map(BodyExt::boxed);
        answer::drop_fields_of_connection(request.headers_mut());
        let mut answer = match self.origin.send(path.as_ref(), request).await {
            Ok(answer) => answer.map(BodyExt::boxed),
            Err(error) => failed(&error),
        };
        match is_coherent {
            true => {
                answer::make_coherent(answer.headers_mut(), &self.next_tag());
            }
            false => answer::drop_fields_of_connection(answer.headers_mut()),
        }
        tell(answer.headers_mut(), BYPASSED);
        answer
    }
}

/// What the origin is asked for, and on what its answer rests.
struct Wanted {
    path: Option<PathAndQuery>,
    fields: HeaderMap,
    dependencies: Vec<Place>,
}

/// What a client is given.
enum Given {
    Shared(Arc<Answer>),
    Own(Response<Outgoing>),
}

impl From<Answer> for Response<Outgoing> {
    fn from(answer: Answer) -> Self {
        let mut response = Response::new(origin::whole(answer.body));
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        response
    }
}

/// A request that no origin gets: two hosts would let it and the cache mean different ones.
fn refused<B>(request: &Request<B>) -> Option<Response<Outgoing>> {
    let hosts = request.headers().get_all(header::HOST).iter().count();
    match request.method() {
        _ if hosts > 1 => Some(plain(StatusCode::BAD_REQUEST, "a request names one host")),
        &Method::CONNECT | &Method::TRACE => {
            let words = "the proxy makes no tunnels and no traces";
            Some(plain(StatusCode::METHOD_NOT_ALLOWED, words))
        }
        _ => None,
    }
}

/// The origin has not answered.
fn failed(error: &OriginError) -> Response<Outgoing> {
    tracing::warn!("{error}");
    let status = match error {
        OriginError::Away(_) => StatusCode::BAD_GATEWAY,
        OriginError::Slow => StatusCode::GATEWAY_TIMEOUT,
    };
    plain(status, &error.to_string())
}

/// An answer of the proxy's own.
fn plain(status: StatusCode, words: &str) -> Response<Outgoing> {
    let mut response = Response::new(origin::whole(Bytes::from(format!("{words}\n"))));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

fn tell(headers: &mut HeaderMap, status: &'static str) {
    headers.append("cache-status", HeaderValue::from_static(status));
}

/// Serves clients until it is told to stop. Answers that have begun go on.
///
/// # Errors
///
/// The listener fails.
pub async fn serve<C: Cells + Send + Sync + 'static>(
    listener: TcpListener,
    proxy: Arc<Proxy<C>>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return Ok(());
        };
        let stream = tokio::select! {
            accepted = listener.accept() => accepted?.0,
            () = stopped(&mut stop) => return Ok(()),
        };
        let _ = stream.set_nodelay(true);
        let proxy = Arc::clone(&proxy);
        let mut stop = stop.clone();
        tokio::spawn(async move {
            let answers = service_fn(move |request| {
                let proxy = Arc::clone(&proxy);
                async move { Ok::<_, Infallible>(proxy.answer(request).await) }
            });
            let mut builder = http1::Builder::new();
            builder
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_WITHIN);
            let connection = builder.serve_connection(TokioIo::new(stream), answers);
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stopped(&mut stop) => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!("a client's connection: {error}");
            }
            drop(place);
        });
    }
}

/// Returns when it is time to stop, also if nobody is left to say so.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
