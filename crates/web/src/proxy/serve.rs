//! Each request: a hit, a fill, or passed on.

use super::answer::{self, Answer};
use super::building::Budget;
use super::cache::{Asked, Cache, Dependencies, Filling, Next};
use super::growing::{Growing, Grown};
use super::host::{self, Refused};
use super::origin::{self, Origin, OriginError, Outgoing};
use super::plain::Plain;
use super::request::{Coherent, Name, shared_fields};
use super::tunnel::{self, Tunnels};
use crate::clock;
use crate::recipe::Recipe;
use crate::source::{Said, Source};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thorp_versions::Place;
use tokio::sync::oneshot;

/// Beside coherent routes, one part in so many of the memory is for other answers.
const PLAIN_SHARE: u64 = 4;

/// What was done, for `Cache-Status` (RFC 9211).
const HIT: &str = "thorp; hit";
const FILLED: &str = "thorp; fwd=miss; stored";
const NOT_KEPT: &str = "thorp; fwd=miss";
const JOINED: &str = "thorp; fwd=miss; collapsed";
const NO_EVIDENCE: &str = "thorp; fwd=miss; detail=no-evidence";
const UNREADABLE: &str = "thorp; fwd=miss; detail=unreadable-evidence";
const BYPASSED: &str = "thorp; fwd=bypass";
const REFUSED: &str = "thorp; detail=refused";

/// A proxy in front of one origin.
#[derive(Debug)]
pub struct Proxy<V: Source> {
    origin: Arc<Origin>,
    recipe: Arc<Recipe>,
    cache: Cache<Name, Answer, V>,
    /// What the origin's own fields say, for what no route names.
    plain: Arc<Plain>,
    tunnels: Tunnels,
    budget: Budget,
    /// The first part of all its ETags: random, so that no other start makes the same.
    life: u64,
    fills: AtomicU64,
    /// Answers whose fields of homes could not be read.
    unreadable: AtomicU64,
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
                    "{found:?} is no origin: write http://host:port, without a path; several with commas between them"
                )
            }
        }
    }
}

impl std::error::Error for ProxyError {}

impl<V: Source + Send + Sync + 'static> Proxy<V> {
    /// A proxy with an empty cache of so many bytes.
    ///
    /// # Errors
    ///
    /// The origin is no address of a server.
    pub fn new(
        origin: &str,
        recipe: Arc<Recipe>,
        reader: V,
        bytes: u64,
    ) -> Result<Self, ProxyError> {
        let found = Origin::new(origin);
        let origin = found.ok_or_else(|| ProxyError::Origin(origin.to_owned()))?;
        let origin = Arc::new(origin);
        let plain_bytes = match (recipe.caches_others(), recipe.has_routes()) {
            (false, _) => 0,
            (true, true) => bytes / PLAIN_SHARE,
            (true, false) => bytes,
        };
        let budget = Budget::default();
        Ok(Proxy {
            plain: Plain::new(Arc::clone(&origin), plain_bytes, budget.clone()),
            tunnels: Tunnels::default(),
            budget,
            origin,
            cache: Cache::new(reader, bytes - plain_bytes),
            recipe,
            life: crate::random::number(),
            fills: AtomicU64::new(0),
            unreadable: AtomicU64::new(0),
        })
    }

    /// How many answers were not kept because what they say of Thorp homes could not be read.
    pub fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// Answers one request.
    pub async fn answer(self: Arc<Self>, mut request: Request<Incoming>) -> Response<Outgoing> {
        if let Err(Refused(status, words)) = host::settle(&mut request) {
            return told(plain(status, words), REFUSED);
        }
        let route = self.recipe.route(request.uri().path());
        if tunnel::is_wanted(&request) {
            let is_coherent = route.is_some();
            return self.tunnel(request, is_coherent).await;
        }
        let Some(route) = route else {
            let answer = self.plain.answer(request).await;
            return answer.unwrap_or_else(|error| told(failed(&error), NOT_KEPT));
        };
        let Some(coherent) = Coherent::of(&request, route) else {
            return self.pass(request).await;
        };
        let is_head = request.method() == Method::HEAD;
        // A date has no fractions of a second (trap W33).
        request.headers_mut().remove(header::IF_MODIFIED_SINCE);
        let asked = self.cache.arrive(coherent.name);
        if let Some(answer) = self.cache.hit(&asked, clock::now_ms) {
            return told(answer.shaped(request.headers(), is_head), HIT);
        }
        if request.headers().contains_key(header::RANGE) {
            // A part of what is not stored is the origin's to cut.
            return self.pass(request).await;
        }
        let wanted = Wanted {
            path: request.uri().path_and_query().cloned(),
            fields: shared_fields(request.headers(), &coherent.vary),
            dependencies: coherent.dependencies,
            vary: coherent.vary,
        };
        let (answered, status) = self.coherent(asked, wanted).await;
        let answer = match answered {
            Ok(Given::Shared(answer)) => answer.shaped(request.headers(), is_head),
            Ok(Given::Own(answer)) if is_head => answer.map(|_| origin::whole(Bytes::new())),
            Ok(Given::Own(answer)) => answer,
            Err(error) => failed(&error),
        };
        told(answer, status)
    }

    /// Asks the origin for a tunnel.
    async fn tunnel(&self, request: Request<Incoming>, is_coherent: bool) -> Response<Outgoing> {
        let answer = match self.tunnels.open(&self.origin, request).await {
            // The origin wants none.
            Ok(answer) if is_coherent && answer.status() != StatusCode::SWITCHING_PROTOCOLS => {
                own(answer, &self.next_tag())
            }
            Ok(answer) => answer,
            Err(error) => failed(&error),
        };
        told(answer, BYPASSED)
    }

    /// A hit, or a fill, or the fill of another.
    async fn coherent(
        self: &Arc<Self>,
        mut asked: Asked<Name>,
        wanted: Wanted,
    ) -> (Result<Given, OriginError>, &'static str) {
        loop {
            let mut waiting = match self.cache.step(&asked, clock::now_ms) {
                Next::Hit(answer) => return (Ok(Given::Shared(answer)), HIT),
                Next::Fill(filling) => return self.fill_beside(filling, wanted).await,
                Next::Wait(waiting) => waiting,
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
        filling: Filling<Name, Answer, V::Evidence>,
        wanted: Wanted,
    ) -> (Result<Given, OriginError>, &'static str) {
        let proxy = Arc::clone(self);
        let (early, begun) = oneshot::channel();
        let fill = tokio::spawn(async move { proxy.fill(filling, wanted, early).await });
        let filled = tokio::select! {
            // If it has gone to its client, what the task gives back beside it is no answer, also if the task has ended meanwhile.
            biased;
            // It is long or slow, and goes to its client while it comes.
            Ok(own) = begun => return (Ok(Given::Own(own)), NOT_KEPT),
            filled = fill => filled,
        };
        match filled {
            Ok(Ok((given, status))) => (Ok(given), status),
            Ok(Err(error)) => (Err(error), NOT_KEPT),
            Err(error) => (Err(OriginError::Away(error.to_string())), NOT_KEPT),
        }
    }

    async fn fill(
        &self,
        mut filling: Filling<Name, Answer, V::Evidence>,
        wanted: Wanted,
        early: oneshot::Sender<Response<Outgoing>>,
    ) -> Result<(Given, &'static str), OriginError> {
        let answer = self.ask(&mut filling, &wanted).await?;
        let tag = self.next_tag();
        if !answer::may_be_shared(&answer, &wanted.vary) {
            self.cache.land_alone(filling);
            return Ok((Given::Own(own(answer.map(origin::passed), &tag)), NOT_KEPT));
        }
        let (head, body) = answer.into_parts();
        let mut body = Growing::new(body, &self.budget);
        let whole = match body.short().await? {
            Grown::Whole(whole) => Some(whole),
            Grown::More => {
                let client = Response::from_parts(head.clone(), body.for_client());
                // A client that is gone wants nothing. Others may wait.
                let _ = early.send(own(client, &tag));
                body.rest().await?
            }
        };
        let Some(whole) = whole else {
            self.cache.land_alone(filling);
            return Ok((
                Given::Own(Response::new(origin::whole(Bytes::new()))),
                NOT_KEPT,
            ));
        };
        // Clients do not get what the origin says of homes.
        let said = self.cache.said(&filling, &head.headers);
        let answer = Answer::coherent(head.status, head.headers, whole, &tag);
        Ok(self.land(filling, (wanted, said), Arc::new(answer)))
    }

    /// Asks the origin, at another address if the first one fails.
    async fn ask(
        &self,
        filling: &mut Filling<Name, Answer, V::Evidence>,
        wanted: &Wanted,
    ) -> Result<Response<Incoming>, OriginError> {
        let mut tries = self.origin.tries();
        loop {
            let is_last = !tries.are_left();
            let path = wanted.path.as_ref();
            let answer = self.origin.get(&mut tries, path, wanted.fields.clone());
            match answer.await {
                Err(OriginError::Away(why)) if !is_last => {
                    tracing::warn!("another address is tried: {why}");
                }
                answered => return answered,
            }
            self.cache.try_again(filling);
        }
    }

    /// The last byte has come: makes an answer an entry, if its check passes (rule W4).
    fn land(
        &self,
        mut filling: Filling<Name, Answer, V::Evidence>,
        (wanted, said): (Wanted, Said<V::Evidence>),
        answer: Arc<Answer>,
    ) -> (Given, &'static str) {
        let known = match said {
            Said::Nothing => wanted.dependencies,
            Said::On(evidence, places) => {
                filling.rests_on(evidence);
                places
            }
            Said::NoEvidence => {
                self.cache.land_alone(filling);
                return (Given::Shared(answer), NO_EVIDENCE);
            }
            Said::Unreadable => {
                self.cache.land_alone(filling);
                let count = self.unreadable.fetch_add(1, Ordering::Relaxed) + 1;
                tracing::warn!(
                    "fields of homes cannot be read in an answer, which is not kept: {count} so far"
                );
                return (Given::Shared(answer), UNREADABLE);
            }
        };
        // What the answer shows is learned last (rule W4).
        let path = wanted.path.as_ref().map_or("/", PathAndQuery::path);
        let also = self.recipe.also(path, answer.status.as_u16(), &answer.body);
        let dependencies = Dependencies {
            known,
            learned: also.iter().map(|key| Place::of(key)).collect(),
        };
        let is_kept = self
            .cache
            .land(filling, &answer, dependencies, clock::now_ms);
        let status = if is_kept { FILLED } else { NOT_KEPT };
        (Given::Shared(answer), status)
    }

    /// An ETag that no other answer has.
    fn next_tag(&self) -> String {
        let fill = self.fills.fetch_add(1, Ordering::Relaxed);
        format!("\"thorp-{:x}-{fill:x}\"", self.life)
    }

    /// Passes a request to a coherent route on. Its answer is nobody else's.
    async fn pass(&self, request: Request<Incoming>) -> Response<Outgoing> {
        let path = request.uri().path_and_query().cloned();
        let unsafe_name = Name::of(&request).filter(|_| !request.method().is_safe());
        let mut request = request.map(origin::passed);
        if unsafe_name.is_none() {
            request.headers_mut().remove(header::IF_MODIFIED_SINCE);
        }
        answer::drop_fields_of_connection(request.headers_mut());
        let answer = match self.origin.send(path.as_ref(), request).await {
            Ok(answer) => answer.map(origin::passed),
            Err(error) => failed(&error),
        };
        if let Some(name) = unsafe_name {
            self.plain.changed(&name, &answer);
        }
        told(own(answer, &self.next_tag()), BYPASSED)
    }
}

/// What the origin is asked for, and on what its answer rests.
struct Wanted {
    path: Option<PathAndQuery>,
    fields: HeaderMap,
    dependencies: Vec<Place>,
    /// The fields by which the answer may vary.
    vary: Vec<HeaderName>,
}

/// What a client is given.
enum Given {
    Shared(Arc<Answer>),
    Own(Response<Outgoing>),
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

/// An answer of a coherent route that is one client's alone.
fn own(mut answer: Response<Outgoing>, tag: &str) -> Response<Outgoing> {
    answer::make_coherent(answer.headers_mut(), tag);
    answer
}

fn told(mut answer: Response<Outgoing>, status: &'static str) -> Response<Outgoing> {
    let status = HeaderValue::from_static(status);
    answer.headers_mut().append("cache-status", status);
    answer
}
