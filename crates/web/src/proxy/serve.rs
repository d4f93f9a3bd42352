//! Each request: a hit, a fill, or passed on.

use super::answer::{self, Answer};
use super::audit::{self, Audit, COMPARES_WITHIN, Found, Fresh, Share};
use super::building::Budget;
use super::cache::{Asked, Cache, Dependencies, Filling, Next};
use super::growing::{Growing, Grown, Whole};
use super::host::{self, Refused};
use super::origin::{self, Origin, OriginError, Outgoing};
use super::places::Places;
use super::plain::Plain;
use super::request::{Coherent, Name, shared_fields};
use super::tally::{Bypassed, Refused as NotKept, Tally, Updated};
use super::tunnel::{self, Tunnels};
use super::updating::{NotUpdated, Updating};
use super::upload::NoUpload;
use crate::clock;
use crate::key_field::KeyField;
use crate::recipe::Recipe;
use crate::requests::{NotBegun, Requests};
use crate::source::{Said, Source};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::response::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thorp_versions::Place;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

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
const UPDATED: &str = "thorp; fwd=method";
const REFUSED: &str = "thorp; detail=refused";

/// A proxy in front of one origin.
#[derive(Debug)]
pub struct Proxy<V: Source> {
    origin: Arc<Origin>,
    recipe: Arc<Recipe>,
    cache: Cache<Name, Answer, V>,
    /// What the origin's own fields say, for what no route names.
    plain: Arc<Plain>,
    shares: Shares,
    /// Where requests are the source: what becomes of unsafe ones.
    updating: Option<Updating>,
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
        Self::sharing(Shares::default(), (origin, recipe), reader, bytes)
    }

    /// A proxy that takes the place of this one, with an empty cache. If requests are the source, they stay that.
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
        let mut next = Self::sharing(self.shares.clone(), (origin, recipe), reader, bytes)?;
        let updating = self.updating.as_ref();
        next.updating = updating.map(|updating| updating.of(Arc::clone(&next.origin)));
        Ok(next)
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
            updating: None,
            origin,
            cache: Cache::new(reader, bytes - plain_bytes),
            recipe,
            life: crate::random::number(),
            fills: AtomicU64::new(0),
        })
    }

    /// The same with requests as the source: each unsafe one is an update.
    pub fn with_requests(mut self, requests: Requests) -> Self {
        self.updating = Some(Updating::new(requests, Arc::clone(&self.origin)));
        self
    }

    /// Another recipe takes the place of this one's. An update that is open may be known by keys of which the next recipe says nothing. So
    /// until the last of these is over, nothing is stored or served.
    ///
    /// # Errors
    ///
    /// Requests are the source, and no keeper has noted that. Then all stays as it is.
    pub async fn yields(&self) -> Result<(), NotBegun> {
        match &self.updating {
            Some(updating) => updating.yields().await,
            None => Ok(()),
        }
    }

    /// Whether requests are the source.
    pub(crate) fn has_requests(&self) -> bool {
        self.updating.is_some()
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

    /// How many answers were not kept because what they say of Thorp homes could not be read.
    pub fn unreadable(&self) -> u64 {
        self.tally().refused.of(NotKept::Unreadable)
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
        if let Some(updating) = self
            .updating
            .as_ref()
            .filter(|_| !request.method().is_safe())
        {
            let is_coherent = route.is_some();
            return self.update(updating, request, is_coherent).await;
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
            keys_from: coherent.keys_from,
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

    /// Passes an unsafe request on, as an update.
    async fn update(
        &self,
        updating: &Updating,
        request: Request<Incoming>,
        is_coherent: bool,
    ) -> Response<Outgoing> {
        if is_coherent {
            self.tally().bypassed.count(Bypassed::Method);
        }
        let keys = self.recipe.changes(request.uri().path());
        let name = Name::of(&request);
        let forwarded = updating.forward(request, keys).await;
        self.tally().updated.count(became(forwarded.as_ref().err()));
        let mut answer = match forwarded {
            Ok(answer) => answer,
            Err(error) => return not_updated(&error),
        };
        if let Some(name) = name {
            self.plain.changed(&name, &answer);
        }
        if is_coherent {
            return told(own(answer, &self.next_tag()), BYPASSED);
        }
        answer::drop_fields_of_connection(answer.headers_mut());
        told(answer, UPDATED)
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
            body: body.map(|whole| whole.body),
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
        mut filling: Filling<Name, Answer, V::Evidence>,
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
        mut filling: Filling<Name, Answer, V::Evidence>,
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
        // What the answer shows is learned last (rule W4).
        let (learned, mut named) = self.learned(&wanted, &head, &whole);
        // Clients do not get what the origin says of homes.
        let said = self.cache.said(&filling, &head.headers);
        named.extend(self.cache.names(&head.headers));
        let answer = Answer::coherent(head.status, head.headers, whole.body, &tag).naming(named);
        let said = (wanted.dependencies, said, learned);
        Ok(self.land(filling, said, Arc::new(answer)))
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
                Err(error) if !is_last && error.is_of_address() => {
                    tracing::warn!("another address is tried: {error}");
                }
                answered => return answered,
            }
            self.cache.try_again(filling);
        }
    }

    /// On what an answer rests beside what its request says. If its fields do not say it, or name a key that the recipe does not know, it
    /// rests on *everything* (rule W9). Beside it, the keys that its fields name.
    fn learned(
        &self,
        wanted: &Wanted,
        head: &Parts,
        whole: &Whole,
    ) -> (Vec<Place>, Vec<(Place, String)>) {
        let path = wanted.path.as_ref().map_or("/", PathAndQuery::path);
        let also = self.recipe.also(path, head.status.as_u16(), &whole.body);
        let mut places: Vec<Place> = also.iter().map(|key| Place::of(key)).collect();
        if wanted.keys_from.is_empty() {
            return (places, Vec::new());
        }
        let named = KeyField::keys_of(&wanted.keys_from, [&head.headers, &whole.trailers]);
        let Some(keys) = named.filter(|keys| keys.iter().all(|key| self.recipe.may_name(key)))
        else {
            places.push(Place::EVERYTHING);
            return (places, Vec::new());
        };
        let named = keys.into_iter().map(|key| (Place::of(&key), key));
        let named: Vec<_> = named.collect();
        places.extend(named.iter().map(|(place, _)| *place));
        (places, named)
    }

    /// The last byte has come: makes an answer an entry, if its check passes (rule W4).
    fn land(
        &self,
        mut filling: Filling<Name, Answer, V::Evidence>,
        (known, said, learned): (Vec<Place>, Said<V::Evidence>, Vec<Place>),
        answer: Arc<Answer>,
    ) -> (Given, &'static str) {
        let known = match said {
            Said::Nothing => known,
            Said::On(evidence, places) => {
                filling.rests_on(evidence);
                places
            }
            Said::NoEvidence => {
                self.tally().refused.count(NotKept::NoEvidence);
                self.cache.land_alone(filling);
                return (Given::Shared(answer), NO_EVIDENCE);
            }
            Said::Unreadable => {
                self.tally().refused.count(NotKept::Unreadable);
                self.cache.land_alone(filling);
                let count = self.unreadable();
                tracing::warn!(
                    "fields of homes cannot be read in an answer, which is not kept: {count} so far"
                );
                return (Given::Shared(answer), UNREADABLE);
            }
        };
        let dependencies = Dependencies { known, learned };
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
    /// The fields in which the answer names more of them.
    keys_from: Vec<KeyField>,
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

/// What became of an unsafe request.
fn became(error: Option<&NotUpdated>) -> Updated {
    match error {
        None => Updated::Answered,
        Some(NotUpdated::NotBegun(NotBegun::NoKeeper)) => Updated::NoKeeper,
        Some(NotUpdated::NotBegun(NotBegun::TooMany)) => Updated::TooMany,
        Some(NotUpdated::NoUpload(_)) => Updated::Upload,
        Some(NotUpdated::Origin(_)) => Updated::Failed,
    }
}

/// An unsafe request has no answer of the origin's.
fn not_updated(error: &NotUpdated) -> Response<Outgoing> {
    let (status, words) = match error {
        NotUpdated::Origin(error) => return told(failed(error), UPDATED),
        // Nobody would know that it changes something (trap W32).
        NotUpdated::NotBegun(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        NotUpdated::NoUpload(error) => {
            let status = match error {
                NoUpload::Cut => StatusCode::BAD_REQUEST,
                NoUpload::Slow => StatusCode::REQUEST_TIMEOUT,
            };
            (status, String::from("the body of the request has not come"))
        }
    };
    let mut answer = plain(status, &words);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let soon = HeaderValue::from_static("1");
        answer.headers_mut().insert(header::RETRY_AFTER, soon);
    }
    told(answer, REFUSED)
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
