//! Each request: a hit, a fill, or passed on.

use super::answer::{self, Answer};
use super::audit::{self, Audit, COMPARES_WITHIN, Found, Fresh, Share};
use super::building::Budget;
use super::cache::{Asked, Cache, Dependencies, Filling, Next};
use super::growing::{Growing, Grown};
use super::host::{self, Refused};
use super::origin::{self, Origin, OriginError, Outgoing};
use super::places::Places;
use super::plain::Plain;
use super::request::{Coherent, Name, shared_fields};
use super::tally::{Bypassed, Refused as NotKept, Tally};
use super::tunnel::{self, Tunnels};
use crate::clock;
use crate::recipe::Recipe;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thorp_versions::{Place, Versions};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Beside coherent routes, one part in so many of the memory is for other answers.
const PLAIN_SHARE: u64 = 4;

/// What was done, for `Cache-Status` (RFC 9211).
const HIT: &str = "thorp; hit";
const FILLED: &str = "thorp; fwd=miss; stored";
const NOT_KEPT: &str = "thorp; fwd=miss";
const JOINED: &str = "thorp; fwd=miss; collapsed";
const BYPASSED: &str = "thorp; fwd=bypass";
const REFUSED: &str = "thorp; detail=refused";

/// A proxy in front of one origin.
#[derive(Debug)]
pub struct Proxy<V> {
    origin: Arc<Origin>,
    recipe: Arc<Recipe>,
    cache: Cache<Name, Answer, V>,
    /// What the origin's own fields say, for what no route names.
    plain: Arc<Plain>,
    shares: Shares,
    /// The first part of all its ETags: random, so that no other start makes the same.
    life: u64,
    fills: AtomicU64,
}

/// What a proxy has in common with the one that takes its place: limits stay limits, and counts go on.
#[derive(Clone, Debug, Default)]
struct Shares {
    tunnels: Tunnels,
    places: Places,
    budget: Budget,
    tally: Arc<Tally>,
    audit: Arc<Audit>,
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

impl<V: Versions + Send + Sync + 'static> Proxy<V> {
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
        Self::sharing(Shares::default(), (origin, recipe), reader, bytes)
    }

    /// A proxy that takes the place of this one, with an empty cache.
    ///
    /// # Errors
    ///
    /// As [`Proxy::new`].
    pub fn successor(
        &self,
        origin: &str,
        recipe: Arc<Recipe>,
        reader: V,
        bytes: u64,
    ) -> Result<Self, ProxyError> {
        Self::sharing(self.shares.clone(), (origin, recipe), reader, bytes)
    }

    fn sharing(
        shares: Shares,
        (origin, recipe): (&str, Arc<Recipe>),
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
        shares.budget.allow(bytes);
        Ok(Proxy {
            plain: Plain::new(Arc::clone(&origin), plain_bytes, shares.budget.clone()),
            shares,
            origin,
            cache: Cache::new(reader, bytes - plain_bytes),
            recipe,
            life: crate::random::number(),
            fills: AtomicU64::new(0),
        })
    }

    /// The answers of routes.
    pub(crate) fn cache(&self) -> &Cache<Name, Answer, V> {
        &self.cache
    }

    /// The answers that no route names.
    pub(crate) fn plain(&self) -> &Plain {
        &self.plain
    }

    /// What it does by.
    pub(crate) fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// What became of requests.
    pub(crate) fn tally(&self) -> &Tally {
        &self.shares.tally
    }

    /// Where its origin is.
    pub(crate) fn origins(&self) -> Vec<String> {
        self.origin.addresses()
    }

    /// From now on this share of the hits is compared with the origin.
    pub fn audit(&self, share: Share) {
        self.shares.audit.take(share);
    }

    /// What that has found.
    pub(crate) fn audited(&self) -> Found {
        self.shares.audit.found()
    }

    /// Gives its memory back: another one takes its place. Requests that it has begun go on.
    pub(crate) fn retire(&self) {
        self.cache.clear();
        self.plain.clear();
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
        let coherent = match Coherent::of(&request, route) {
            Ok(coherent) => coherent,
            Err(why) => return self.pass(request, why).await,
        };
        let is_head = request.method() == Method::HEAD;
        // A date has no fractions of a second (trap W33).
        request.headers_mut().remove(header::IF_MODIFIED_SINCE);
        let asked = self.cache.arrive(coherent.name);
        let missed = match self.cache.hit(&asked, clock::now_ms) {
            Ok(answer) => {
                self.tally().hit();
                if let Some(place) = self.shares.audit.hit() {
                    let fields = shared_fields(request.headers(), &coherent.vary);
                    let served = (asked.into_name(), Arc::clone(&answer));
                    tokio::spawn(Arc::clone(&self).compare(served, fields, place));
                }
                return told(answer.shaped(request.headers(), is_head), HIT);
            }
            Err(missed) => missed,
        };
        if request.headers().contains_key(header::RANGE) {
            // A part of what is not stored is the origin's to cut.
            return self.pass(request, Bypassed::Range).await;
        }
        let wanted = Wanted {
            path: request.uri().path_and_query().cloned(),
            fields: shared_fields(request.headers(), &coherent.vary),
            dependencies: coherent.dependencies,
            vary: coherent.vary,
        };
        let (answered, status) = self.coherent(asked, wanted).await;
        match status {
            HIT => self.tally().hit(),
            _ => self.tally().missed.count(missed),
        }
        let answer = match answered {
            Ok(Given::Shared(answer)) => answer.shaped(request.headers(), is_head),
            Ok(Given::Own(answer)) if is_head => answer.map(|_| origin::whole(Bytes::new())),
            Ok(Given::Own(answer)) => answer,
            Err(error) => failed(&error),
        };
        told(answer, status)
    }

    /// Compares a hit with what the origin answers now. Only while no data behind it have changed can a difference be a mistake.
    async fn compare(
        self: Arc<Self>,
        (name, hit): (Name, Arc<Answer>),
        fields: HeaderMap,
        place: OwnedSemaphorePermit,
    ) {
        let audit = Arc::clone(&self.shares.audit);
        let asked = tokio::time::timeout(COMPARES_WITHIN, self.fresh(&name, fields)).await;
        let fresh = match asked {
            Ok(Ok(fresh)) if !fresh.status.is_server_error() => fresh,
            Ok(_) | Err(_) => return audit.failed(),
        };
        if !self.cache.is_valid(&name, &hit, clock::now_ms) {
            return audit.changed();
        }
        // Long bodies are compared beside the threads that answer clients.
        let compared = tokio::task::spawn_blocking(move || {
            let path = name.path_and_query();
            let path = path.split('?').next().unwrap_or(path);
            let route = self.recipe.route(path);
            let noise = route.map_or(&[][..], |(route, _)| route.noise());
            let address = format!("{}{}", name.host(), name.path_and_query());
            audit.compared(&address, audit::difference(noise, &hit, &fresh));
            drop(place);
        });
        if let Err(error) = compared.await {
            tracing::error!("audit: {error}");
        }
    }

    /// What the origin answers now, as for an answer that others may have.
    async fn fresh(&self, name: &Name, fields: HeaderMap) -> Result<Fresh, OriginError> {
        let path: Option<PathAndQuery> = name.path_and_query().parse().ok();
        let mut tries = self.origin.tries();
        let answer = self.origin.get(&mut tries, path.as_ref(), fields).await?;
        let (head, body) = answer.into_parts();
        let mut body = Growing::new(body, &self.shares.budget);
        let body = match body.short().await? {
            Grown::Whole(whole) => Some(whole),
            Grown::More => body.rest().await?,
        };
        Ok(Fresh {
            status: head.status,
            headers: head.headers,
            body,
        })
    }

    /// Asks the origin for a tunnel.
    async fn tunnel(&self, request: Request<Incoming>, is_coherent: bool) -> Response<Outgoing> {
        let answer = match self.shares.tunnels.open(&self.origin, request).await {
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
            if let Some(status) = waiting.failed() {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
                return (Err(OriginError::Shared(status)), NOT_KEPT);
            }
            if let Some(answer) = self.cache.waited(&mut asked, &waiting) {
                self.tally().joined();
                return (Ok(Given::Shared(answer)), JOINED);
            }
        }
    }

    /// Fills in a task of its own: others wait for it, whatever becomes of this client.
    async fn fill_beside(
        self: &Arc<Self>,
        mut filling: Filling<Name, Answer>,
        wanted: Wanted,
    ) -> (Result<Given, OriginError>, &'static str) {
        let turn = match self.shares.places.turn().await {
            Ok(turn) => turn,
            Err(error) => {
                self.cache.land_failed(filling, error.status().as_u16());
                return (Err(error), NOT_KEPT);
            }
        };
        // It may have waited: its evidence is of now (rule W3).
        self.cache.try_again(&mut filling);
        let proxy = Arc::clone(self);
        let (early, begun) = oneshot::channel();
        let fill = tokio::spawn(async move {
            let filled = proxy.fill(filling, wanted, early).await;
            drop(turn);
            if filled.is_err() {
                proxy.tally().refused.count(NotKept::Failed);
            }
            filled
        });
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
        mut filling: Filling<Name, Answer>,
        wanted: Wanted,
        early: oneshot::Sender<Response<Outgoing>>,
    ) -> Result<(Given, &'static str), OriginError> {
        let answer = match self.ask(&mut filling, &wanted).await {
            Ok(answer) => answer,
            Err(error) => {
                self.cache.land_failed(filling, error.status().as_u16());
                return Err(error);
            }
        };
        let tag = self.next_tag();
        if let Some(why) = answer::refusal(&answer, &wanted.vary) {
            self.tally().refused.count(why);
            match origin::is_failure(answer.status()) {
                true => self.cache.land_failed(filling, answer.status().as_u16()),
                false => self.cache.land_alone(filling),
            }
            return Ok((Given::Own(own(answer.map(origin::passed), &tag)), NOT_KEPT));
        }
        let (head, body) = answer.into_parts();
        let mut body = Growing::new(body, &self.shares.budget);
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
            self.tally().refused.count(NotKept::Large);
            self.cache.land_alone(filling);
            return Ok((
                Given::Own(Response::new(origin::whole(Bytes::new()))),
                NOT_KEPT,
            ));
        };
        let answer = Answer::coherent(head.status, head.headers, whole, &tag);
        Ok(self.land(filling, wanted, Arc::new(answer)))
    }

    /// Asks the origin, at another address if the first one fails.
    async fn ask(
        &self,
        filling: &mut Filling<Name, Answer>,
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
        filling: Filling<Name, Answer>,
        wanted: Wanted,
        answer: Arc<Answer>,
    ) -> (Given, &'static str) {
        // What the answer shows is learned last (rule W4).
        let path = wanted.path.as_ref().map_or("/", PathAndQuery::path);
        let also = self.recipe.also(path, answer.status.as_u16(), &answer.body);
        let dependencies = Dependencies {
            known: wanted.dependencies,
            learned: also.iter().map(|key| Place::of(key)).collect(),
        };
        let landed = self
            .cache
            .land(filling, &answer, dependencies, clock::now_ms);
        let status = match landed {
            Ok(()) => FILLED,
            Err(denied) => {
                self.tally().refused.count(denied.into());
                NOT_KEPT
            }
        };
        (Given::Shared(answer), status)
    }

    /// An ETag that no other answer has.
    fn next_tag(&self) -> String {
        let fill = self.fills.fetch_add(1, Ordering::Relaxed);
        format!("\"thorp-{:x}-{fill:x}\"", self.life)
    }

    /// Passes a request to a coherent route on. Its answer is nobody else's.
    async fn pass(&self, request: Request<Incoming>, why: Bypassed) -> Response<Outgoing> {
        self.tally().bypassed.count(why);
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
    plain(error.status(), &error.to_string())
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
