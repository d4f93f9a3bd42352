//! Plain caching (RFC 9111), for addresses that no route of a recipe names.
//!
//! | part | what it knows |
//! |---|---|
//! | `control` | `Cache-Control` and `CDN-Cache-Control` |
//! | `freshness` | ages and lifetimes |
//! | `selecting` | which requests get the same answer: `Vary`, and what shapes answers unasked |
//! | `entry`, `store` | a stored answer; all of them, and which addresses have been changed |
//! | `fills` | questions that are under way, for clients who want the same |
//! | `verdict` | what to do with a request |
//! | `location` | addresses that an answer names |
//! | `status` | `Cache-Status` |
//!
//! Nothing here is used on a coherent route: what it allows (guesses, answers of before, copies behind the proxy) is what
//! rules W4, W5 and W10 forbid.

mod control;
mod entry;
mod fills;
mod freshness;
mod location;
mod selecting;
mod status;
mod store;
mod verdict;

use self::control::Directives;
use self::entry::{Entry, Head, Times};
use self::fills::{Asking, Fills, Turn, Waited};
use self::freshness::Now;
use self::status::{Done, Then, Why};
use self::store::{Store, Unchanged};
use self::verdict::{Verdict, may_stand_in};
use super::answer::{drop_fields_of_connection, says_its_end};
use super::building::{Budget, Building};
use super::origin::{Origin, OriginError, Outgoing, STORED_BYTES_MAX, is_failure, passed, whole};
use super::request::Name;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Questions beside an answer (`stale-while-revalidate`) at a time. Above that, an answer stays stale a little longer.
const BESIDE_MAX: usize = 64;

/// How often a request waits for others before it asks for itself.
const WAITS_MAX: usize = 3;

/// With such a field a request is none for a cache: what it wants depends on the state at the origin.
const PASSED: [HeaderName; 4] = [
    header::EXPECT,
    header::IF_MATCH,
    header::IF_UNMODIFIED_SINCE,
    header::UPGRADE,
];

/// What a client has or wants a part of. A question of the proxy's own has none of these.
const OF_THE_CLIENT: [HeaderName; 4] = [
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::RANGE,
];

/// A cache that does what the origin's fields say.
#[derive(Debug)]
pub(crate) struct Plain {
    origin: Arc<Origin>,
    store: Store,
    /// Without a byte of memory everything passes through.
    stores: bool,
    budget: Budget,
    fills: Fills,
    /// The addresses about which the origin is being asked beside an answer.
    beside: Mutex<HashSet<Name>>,
}

/// A request to GET or HEAD.
#[derive(Clone, Debug)]
struct Asked {
    is_head: bool,
    name: Name,
    path: Option<PathAndQuery>,
    headers: HeaderMap,
    /// Others may wait for its answer.
    asking: Option<Arc<Asking>>,
}

/// What makes an answer one client's alone, or less than whole. Nobody waits for a request with such a field.
const OF_ONE: [HeaderName; 6] = [
    header::AUTHORIZATION,
    header::CACHE_CONTROL,
    header::COOKIE,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::RANGE,
];

impl Plain {
    /// An empty cache of so many bytes.
    pub(crate) fn new(origin: Arc<Origin>, bytes: u64, budget: Budget) -> Arc<Self> {
        Arc::new(Plain {
            origin,
            store: Store::holding(bytes),
            stores: bytes > 0,
            budget,
            fills: Fills::default(),
            beside: Mutex::default(),
        })
    }

    /// What is stored at an address: the status of each answer, and its bytes.
    pub(crate) fn at(&self, name: &Name) -> Vec<(StatusCode, u64)> {
        self.store.at(name)
    }

    /// How many addresses have answers, their bytes, and how many bytes they may have.
    pub(crate) fn size(&self) -> (usize, u64, u64) {
        let (addresses, bytes) = self.store.size();
        (addresses, bytes, self.store.budget())
    }

    /// Forgets all answers.
    pub(crate) fn clear(&self) {
        self.store.clear();
    }

    /// Answers a request.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        mut request: Request<Incoming>,
    ) -> Result<Response<Outgoing>, OriginError> {
        drop_fields_of_connection(request.headers_mut());
        let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
        let headers = request.headers();
        let is_passed = PASSED.iter().any(|name| headers.contains_key(name));
        // A body shapes the answer, and is in no name.
        let is_plain = is_read && request.body().is_end_stream() && !is_passed;
        let name = match self.stores && is_plain {
            true => Name::of(&request),
            false => None,
        };
        let Some(name) = name else {
            let why = if is_read { Why::Bypass } else { Why::Method };
            return self.pass(request, why).await;
        };
        let (head, _) = request.into_parts();
        let asked = Asked {
            is_head: head.method == Method::HEAD,
            name,
            path: head.uri.path_and_query().cloned(),
            headers: head.headers,
            asking: None,
        };
        self.read(asked).await
    }

    /// Passes a request on. If it may have changed something, nothing of before is used any more.
    async fn pass(
        &self,
        request: Request<Incoming>,
        why: Why,
    ) -> Result<Response<Outgoing>, OriginError> {
        let path = request.uri().path_and_query().cloned();
        let is_safe = request.method().is_safe();
        let name = Name::of(&request);
        let answer = self.origin.send(path.as_ref(), request.map(passed)).await?;
        if let Some(name) = name.filter(|_| !is_safe) {
            self.changed(&name, &answer);
        }
        let mut answer = answer.map(passed);
        finish(&mut answer, Done::Forwarded(why, Then::Passed));
        Ok(answer)
    }

    /// After an answer to an unsafe request: its address, and those that the answer names, may have changed.
    pub(crate) fn changed<B>(&self, name: &Name, answer: &Response<B>) {
        let status = answer.status();
        if !status.is_success() && !status.is_redirection() {
            return;
        }
        self.store.invalidate(name);
        for field in [header::LOCATION, header::CONTENT_LOCATION] {
            let named = answer
                .headers()
                .get(field)
                .and_then(|value| value.to_str().ok());
            if let Some(other) = named.and_then(|named| location::resolve(name, named)) {
                self.store.invalidate(&other);
            }
        }
    }

    async fn read(self: &Arc<Self>, asked: Asked) -> Result<Response<Outgoing>, OriginError> {
        let now = Now::read();
        let (found, is_known) = self.store.get(&asked.name, &asked.headers);
        let is_found = found.is_some();
        let entry = found.filter(|entry| entry.head.is_open_to(&asked.headers));
        let verdict = match &entry {
            Some(entry) => Verdict::of(entry, &asked.headers, now),
            None if is_found => Verdict::Ask(Why::Request),
            None if is_known => Verdict::Ask(Why::VaryMiss),
            None => Verdict::Ask(Why::UriMiss),
        };
        match (verdict, entry) {
            (Verdict::Ask(why), entry) => {
                if Directives::of_request(&asked.headers).only_if_cached {
                    return Ok(refused());
                }
                let will_serve = match why {
                    Why::UriMiss => true,
                    Why::Stale => entry
                        .as_ref()
                        .is_some_and(|entry| entry.head.may_be_fresh()),
                    _ => false,
                };
                if will_serve && self.may_share(&asked) {
                    return self.ask_once(asked, entry, why).await;
                }
                self.ask(asked, entry, why).await
            }
            (verdict, Some(entry)) => {
                if verdict == Verdict::ServeAndAsk {
                    self.ask_beside(&asked, &entry);
                }
                let mut answer = entry.respond(&asked.headers, asked.is_head, now);
                finish(&mut answer, Done::Hit(entry.head.left_ms(now)));
                Ok(answer)
            }
            (_, None) => self.ask(asked, None, Why::UriMiss).await,
        }
    }

    fn may_share(&self, asked: &Asked) -> bool {
        !asked.is_head && !OF_ONE.iter().any(|name| asked.headers.contains_key(name))
    }

    /// Asks the origin, unless somebody else does: then this request may get that answer, or shares that the origin has failed.
    async fn ask_once(
        self: &Arc<Self>,
        mut asked: Asked,
        entry: Option<Arc<Entry>>,
        why: Why,
    ) -> Result<Response<Outgoing>, OriginError> {
        let mut turn = self.fills.join(&asked.name);
        for _ in 0..WAITS_MAX {
            let Turn::Wait(mut other) = turn else {
                break;
            };
            let waited = fills::wait(&mut other).await;
            let now = Now::read();
            let (newer, _) = self.store.get(&asked.name, &asked.headers);
            let is_fresh =
                |entry: &Arc<Entry>| Verdict::of(entry, &asked.headers, now) == Verdict::Serve;
            if let Some(entry) = newer.filter(is_fresh) {
                let mut answer = entry.respond(&asked.headers, asked.is_head, now);
                finish(&mut answer, Done::Forwarded(why, Then::Collapsed));
                return Ok(answer);
            }
            turn = match waited {
                Waited::Failed(status) => return failed_for(&asked, entry, why, status),
                Waited::Ended => Turn::Alone,
                // Its client is slow. One of those who wait asks in its place.
                Waited::InVain => self.fills.replace(&asked.name, &other),
            };
        }
        if let Turn::Ask(asking) = turn {
            asked.asking = Some(Arc::new(asking));
        }
        self.ask(asked, entry, why).await
    }

    /// Asks the origin: about an entry, or for a new answer.
    async fn ask(
        self: &Arc<Self>,
        asked: Asked,
        entry: Option<Arc<Entry>>,
        why: Why,
    ) -> Result<Response<Outgoing>, OriginError> {
        let since = self.store.unchanged(&asked.name);
        let about = entry
            .as_ref()
            .filter(|entry| !asked.is_head && entry.head.has_validator());
        let sent = Now::read();
        let answered = self.send(&asked, about.map(Arc::as_ref)).await;
        let came = Now::read();
        let failed = match &answered {
            Ok(answer) => is_failure(answer.status()).then(|| Some(answer.status())),
            Err(_) => Some(None),
        };
        let shared = match &answered {
            // A client can make an application answer 500, and nobody else shall have that.
            Ok(answer) if answer.status() == StatusCode::INTERNAL_SERVER_ERROR => None,
            Ok(answer) => Some(answer.status()).filter(|status| is_failure(*status)),
            Err(error) => Some(error.status()),
        };
        if let (Some(status), Some(asking)) = (shared, &asked.asking) {
            asking.fails(status);
        }
        let stands_in = entry.as_ref().filter(|entry| may_stand_in(entry, came));
        if let (Some(status), Some(entry)) = (failed, stands_in) {
            let mut answer = entry.respond(&asked.headers, asked.is_head, came);
            finish(&mut answer, Done::Forwarded(why, Then::Kept(status)));
            return Ok(answer);
        }
        let answer = answered?;
        let times = Times { asked: sent, came };
        let Some(entry) = about.filter(|_| answer.status() == StatusCode::NOT_MODIFIED) else {
            let differs = |entry: &Arc<Entry>| entry.differs_from(answer.headers());
            if asked.is_head && answer.status().is_success() && entry.as_ref().is_some_and(differs)
            {
                self.store.invalidate(&asked.name);
            }
            return Ok(self.take(asked, answer, why, (times, since)));
        };
        match entry.updated(answer.headers()) {
            Some(headers) => Ok(self.confirmed(&asked, entry, &headers, why, (times, since))),
            None => {
                // The origin has confirmed another body than the one it was asked about.
                let sent = Now::read();
                let answer = self.send(&asked, None).await?;
                let times = Times {
                    asked: sent,
                    came: Now::read(),
                };
                Ok(self.take(asked, answer, why, (times, since)))
            }
        }
    }

    /// Sends a request of a client, with conditions of the proxy's own if it is about an entry.
    async fn send(
        &self,
        asked: &Asked,
        about: Option<&Entry>,
    ) -> Result<Response<Incoming>, OriginError> {
        let mut request = Request::new(whole(Bytes::new()));
        if asked.is_head {
            *request.method_mut() = Method::HEAD;
        }
        let mut headers = asked.headers.clone();
        if let Some(entry) = about {
            OF_THE_CLIENT.iter().for_each(|name| {
                headers.remove(name);
            });
            let stored = &entry.head.headers;
            for (validator, condition) in [
                (header::ETAG, header::IF_NONE_MATCH),
                (header::LAST_MODIFIED, header::IF_MODIFIED_SINCE),
            ] {
                if let Some(value) = stored.get(validator) {
                    headers.insert(condition, value.clone());
                }
            }
        }
        *request.headers_mut() = headers;
        self.origin.send(asked.path.as_ref(), request).await
    }

    /// A new answer goes to the client, and is stored on the way if it may be.
    fn take(
        self: &Arc<Self>,
        asked: Asked,
        answer: Response<Incoming>,
        why: Why,
        (times, since): (Times, Unchanged),
    ) -> Response<Outgoing> {
        let has_end = answer.body().is_end_stream() || says_its_end(answer.headers());
        let (parts, body) = answer.into_parts();
        let head = match asked.is_head || !has_end {
            true => None,
            false => Head::of(&asked.headers, parts.status, &parts.headers, times),
        };
        let (body, then) = match head {
            Some(head) => {
                let plain = Arc::clone(self);
                let asking = asked.asking;
                let finish = move |body| {
                    let entry = Entry::new(head, body);
                    plain
                        .store
                        .insert(&asked.name, entry, &asked.headers, since);
                    // Now who waits finds it.
                    drop(asking);
                };
                let bytes_max = STORED_BYTES_MAX as u64;
                let building = Building::new(body, &self.budget, bytes_max, Box::new(finish));
                (building.map_err(Into::into).boxed(), Then::Stored)
            }
            None => {
                if asked.asking.is_some() {
                    self.fills.note_alone(&asked.name);
                }
                (passed(body), Then::Passed)
            }
        };
        let mut answer = Response::from_parts(parts, body);
        finish(&mut answer, Done::Forwarded(why, then));
        answer
    }

    /// The origin has confirmed an entry.
    fn confirmed(
        &self,
        asked: &Asked,
        entry: &Entry,
        headers: &HeaderMap,
        why: Why,
        (times, since): (Times, Unchanged),
    ) -> Response<Outgoing> {
        let head = Head::of(&asked.headers, entry.head.status, headers, times);
        let then = Then::Kept(Some(StatusCode::NOT_MODIFIED));
        let mut answer = match head {
            Some(head) => {
                let entry = entry.with(head);
                let answer = entry.respond(&asked.headers, asked.is_head, times.came);
                self.store.insert(&asked.name, entry, &asked.headers, since);
                answer
            }
            // It is the client's alone.
            None => {
                let Directives {
                    no_store, private, ..
                } = Directives::of_answer(headers);
                if no_store || private {
                    self.store.invalidate(&asked.name);
                }
                let mut answer = entry.respond(&asked.headers, asked.is_head, times.came);
                *answer.headers_mut() = headers.clone();
                answer
            }
        };
        finish(&mut answer, Done::Forwarded(why, then));
        answer
    }

    /// Asks the origin about an entry that is served meanwhile.
    fn ask_beside(self: &Arc<Self>, asked: &Asked, entry: &Arc<Entry>) {
        let mut beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        if beside.len() >= BESIDE_MAX || !beside.insert(asked.name.clone()) {
            return;
        }
        drop(beside);
        let (plain, entry) = (Arc::clone(self), Arc::clone(entry));
        let mut asked = asked.clone();
        asked.is_head = false;
        OF_THE_CLIENT.iter().for_each(|name| {
            asked.headers.remove(name);
        });
        tokio::spawn(async move {
            let name = asked.name.clone();
            match plain.ask(asked, Some(entry), Why::Stale).await {
                Ok(answer) => drain(answer.into_body()).await,
                Err(error) => tracing::debug!("beside an answer: {error}"),
            }
            let mut beside = plain.beside.lock().unwrap_or_else(PoisonError::into_inner);
            beside.remove(&name);
        });
    }
}

/// Reads a body that only the cache wants, as far as it may be stored.
async fn drain(mut body: Outgoing) {
    let mut bytes = 0;
    while let Some(Ok(frame)) = body.frame().await {
        bytes += frame.data_ref().map_or(0, Bytes::len);
        if bytes > STORED_BYTES_MAX {
            return;
        }
    }
}

/// The origin has failed for another request, for which this one has waited.
fn failed_for(
    asked: &Asked,
    entry: Option<Arc<Entry>>,
    why: Why,
    status: StatusCode,
) -> Result<Response<Outgoing>, OriginError> {
    let now = Now::read();
    let Some(entry) = entry.filter(|entry| may_stand_in(entry, now)) else {
        return Err(OriginError::Shared(status));
    };
    let mut answer = entry.respond(&asked.headers, asked.is_head, now);
    finish(&mut answer, Done::Forwarded(why, Then::Kept(Some(status))));
    Ok(answer)
}

/// Nothing is stored, and the client wants nothing else.
fn refused() -> Response<Outgoing> {
    let mut answer = Response::new(whole(Bytes::new()));
    *answer.status_mut() = StatusCode::GATEWAY_TIMEOUT;
    finish(&mut answer, Done::Refused);
    answer
}

fn finish(answer: &mut Response<Outgoing>, done: Done) {
    drop_fields_of_connection(answer.headers_mut());
    done.tell(answer.headers_mut());
}
