//! The application behind the proxy, at one address or at several.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::{Body, Incoming};
use hyper::header;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The body of an answer to a client.
pub(crate) type Outgoing = BoxBody<Bytes, BodyError>;

/// Why a body ends too early.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// An answer of at most so many bytes is stored.
pub(crate) const STORED_BYTES_MAX: usize = 8 << 20;

/// How long the origin may take to begin an answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

/// How long a connection to it may take.
const CONNECTS_WITHIN: Duration = Duration::from_secs(5);

/// Connections that wait for the next request, at each address ...
const IDLE_CONNECTIONS_MAX: usize = 256;

/// ... and how long.
const IDLE_FOR: Duration = Duration::from_secs(30);

/// What a connection to it has in memory of an answer, and of what is sent to it.
const BUFFER_BYTES_MAX: usize = 128 << 10;

/// An address that failed is asked last for so many milliseconds.
const FAILED_FOR_MS: u64 = 2_000;

/// Addresses that one request tries.
const TRIES_MAX: usize = 3;

/// Where the origin is, and connections to it.
#[derive(Debug)]
pub(crate) struct Origin {
    places: Vec<Place>,
    /// Requests take turns.
    turn: AtomicUsize,
    client: Client<HttpConnector, Outgoing>,
}

#[derive(Debug)]
struct Place {
    authority: Authority,
    /// When it failed last, in milliseconds since the machine started.
    failed_ms: AtomicU64,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum OriginError {
    /// There is no connection to it: nothing of the request has left.
    NotReached(String),
    /// It cannot be reached, or has ended its answer too early.
    Away(String),
    /// It does not answer in time.
    Slow,
    /// Too many others ask it.
    Busy,
    /// It has failed with this status for another request, for which this one has waited.
    Shared(StatusCode),
}

impl fmt::Display for OriginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OriginError::NotReached(why) | OriginError::Away(why) => {
                write!(f, "the origin: {why}")
            }
            OriginError::Slow => write!(
                f,
                "the origin has not answered for {} seconds",
                ANSWERS_WITHIN.as_secs()
            ),
            OriginError::Shared(status) => write!(
                f,
                "the origin has just failed for another request: {status}"
            ),
            OriginError::Busy => write!(
                f,
                "the origin is asked for too much at once: try again later"
            ),
        }
    }
}

impl OriginError {
    /// Whether another address of the application may do better.
    pub(crate) fn is_of_address(&self) -> bool {
        matches!(self, OriginError::NotReached(_) | OriginError::Away(_))
    }

    /// What clients get.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            OriginError::NotReached(_) | OriginError::Away(_) => StatusCode::BAD_GATEWAY,
            OriginError::Slow => StatusCode::GATEWAY_TIMEOUT,
            OriginError::Busy => StatusCode::SERVICE_UNAVAILABLE,
            OriginError::Shared(status) => *status,
        }
    }
}

/// Whether an answer says that the origin fails.
pub(crate) fn is_failure(status: StatusCode) -> bool {
    matches!(status.as_u16(), 500 | 502 | 503 | 504)
}

/// The addresses that one request may try, the best first.
#[derive(Debug)]
pub(crate) struct Tries(std::vec::IntoIter<usize>);

impl Origin {
    /// An origin at `http://host:port`, or at several such addresses with commas between them. None: one is of another kind.
    pub(crate) fn new(addresses: &str) -> Option<Self> {
        let places = addresses.split(',').map(str::trim).map(Place::new);
        let places = places.collect::<Option<Vec<Place>>>()?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECTS_WITHIN));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_FOR)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .http1_max_buf_size(BUFFER_BYTES_MAX)
            .build(connector);
        Some(Origin {
            places,
            turn: AtomicUsize::new(0),
            client,
        })
    }

    /// Where it is.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let places = self.places.iter();
        places
            .map(|place| format!("http://{}", place.authority))
            .collect()
    }

    /// The addresses for one more request: each has its turn, and one that failed a moment ago comes last.
    pub(crate) fn tries(&self) -> Tries {
        let count = self.places.len();
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % count;
        let mut order: Vec<usize> = (0..count).map(|step| (first + step) % count).collect();
        let now_ms = crate::clock::now_ms();
        order.sort_by_key(|place| self.places[*place].has_failed(now_ms));
        order.truncate(TRIES_MAX);
        Tries(order.into_iter())
    }

    /// Asks for an answer that others may have, at the next address.
    pub(crate) async fn get(
        &self,
        tries: &mut Tries,
        path_and_query: Option<&PathAndQuery>,
        fields: HeaderMap,
    ) -> Result<Response<Incoming>, OriginError> {
        let mut request = Request::new(whole(Bytes::new()));
        *request.headers_mut() = fields;
        self.send_to(tries, path_and_query, request).await
    }

    /// Passes a request on. If an address fails, the next one gets it, as far as it may be sent twice.
    pub(crate) async fn send(
        &self,
        path_and_query: Option<&PathAndQuery>,
        mut request: Request<Outgoing>,
    ) -> Result<Response<Incoming>, OriginError> {
        let mut tries = self.tries();
        let may_repeat = request.method().is_idempotent() && request.body().is_end_stream();
        while may_repeat && tries.are_left() {
            let again = copy(&request);
            match self.send_to(&mut tries, path_and_query, request).await {
                Err(error) if error.is_of_address() => {
                    tracing::warn!("another address is tried: {error}");
                }
                answered => return answered,
            }
            request = again;
        }
        self.send_to(&mut tries, path_and_query, request).await
    }

    /// Passes a request on to the next address alone.
    pub(crate) async fn send_to(
        &self,
        tries: &mut Tries,
        path_and_query: Option<&PathAndQuery>,
        mut request: Request<Outgoing>,
    ) -> Result<Response<Incoming>, OriginError> {
        let place = tries.0.next().and_then(|place| self.places.get(place));
        let place =
            place.ok_or_else(|| OriginError::NotReached(String::from("it has no address")))?;
        let path = path_and_query.map_or("/", PathAndQuery::as_str);
        let uri = Uri::builder()
            .scheme(Scheme::HTTP)
            .authority(place.authority.clone());
        let uri = uri.path_and_query(path).build();
        *request.uri_mut() = uri.map_err(|error| OriginError::NotReached(error.to_string()))?;
        *request.version_mut() = Version::HTTP_11;
        let may_switch = request.headers().contains_key(header::UPGRADE);
        let answer = tokio::time::timeout(ANSWERS_WITHIN, self.client.request(request));
        let answered = match answer.await {
            Ok(Err(error)) if is_of_client(&error) => {
                // It says nothing of the origin.
                return Err(OriginError::Away(reasons(&error)));
            }
            Ok(answered) => answered.map_err(|error| match error.is_connect() {
                true => OriginError::NotReached(reasons(&error)),
                false => OriginError::Away(reasons(&error)),
            }),
            Err(_) => Err(OriginError::Slow),
        };
        place.note(answered.is_ok());
        match answered {
            Ok(answer) if answer.status().is_informational() && !may_switch => {
                let words = "it turns to another protocol, and nobody has asked for that";
                Err(OriginError::Away(String::from(words)))
            }
            answered => answered,
        }
    }
}

impl Tries {
    /// Whether there is another address after the next one.
    pub(crate) fn are_left(&self) -> bool {
        self.0.len() > 1
    }
}

impl Place {
    fn new(address: &str) -> Option<Self> {
        let address = address.parse::<Uri>().ok()?;
        let is_plain = address.scheme() == Some(&Scheme::HTTP)
            && address.path() == "/"
            && address.query().is_none();
        let authority = address.authority().filter(|_| is_plain)?.clone();
        Some(Place {
            authority,
            failed_ms: AtomicU64::new(0),
        })
    }

    fn note(&self, is_well: bool) {
        let failed_ms = if is_well { 0 } else { crate::clock::now_ms() };
        self.failed_ms.store(failed_ms, Ordering::Relaxed);
    }

    fn has_failed(&self, now_ms: u64) -> bool {
        let failed_ms = self.failed_ms.load(Ordering::Relaxed);
        failed_ms > 0 && now_ms < failed_ms.saturating_add(FAILED_FOR_MS)
    }
}

/// Whether it is the client's body that was cut.
fn is_of_client(error: &(dyn std::error::Error + 'static)) -> bool {
    let is_own = error.downcast_ref::<hyper::Error>();
    is_own.is_some_and(hyper::Error::is_user) || error.source().is_some_and(is_of_client)
}

/// A request without a body, once more.
fn copy(request: &Request<Outgoing>) -> Request<Outgoing> {
    let mut again = Request::new(whole(Bytes::new()));
    *again.method_mut() = Method::clone(request.method());
    *again.headers_mut() = request.headers().clone();
    again
}

/// A body that is here.
pub(crate) fn whole(body: Bytes) -> Outgoing {
    Full::new(body).map_err(|never| match never {}).boxed()
}

/// A body that comes, as it comes.
pub(crate) fn passed(body: Incoming) -> Outgoing {
    body.map_err(Into::into).boxed()
}

/// An error with what is behind it.
pub(crate) fn reasons(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        words = format!("{words}: {error}");
        source = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::body::Frame;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    /// A body that is cut after its first part.
    struct Cut(bool);

    impl Body for Cut {
        type Data = Bytes;
        type Error = BodyError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
            Poll::Ready(Some(match std::mem::replace(&mut self.0, true) {
                false => Ok(Frame::data(Bytes::from("begun"))),
                true => Err("it is cut".into()),
            }))
        }
    }

    #[test]
    fn addresses_take_turns_and_one_that_failed_comes_last() {
        let origin =
            Origin::new("http://a:1, http://b:2,http://c:3,http://d:4").expect("an origin");
        let order = |origin: &Origin| origin.tries().0.collect::<Vec<_>>();
        assert_eq!(order(&origin), [0, 1, 2]);
        assert_eq!(order(&origin), [1, 2, 3]);
        origin.places[2].note(false);
        assert_eq!(order(&origin), [3, 0, 1]);
        origin.places[2].note(true);
        assert_eq!(order(&origin), [3, 0, 1]);
        assert_eq!(order(&origin), [0, 1, 2]);
    }

    #[tokio::test]
    async fn a_clients_cut_body_is_no_failure_of_the_origin() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        let origin = Origin::new(&format!("http://{address}")).expect("an origin");
        let mut request = Request::new(Cut(false).boxed());
        *request.method_mut() = Method::POST;
        assert!(origin.send(None, request).await.is_err());
        assert!(!origin.places[0].has_failed(crate::clock::now_ms()));
        drop((origin, listener));
        let origin = Origin::new(&format!("http://{address}")).expect("an origin");
        let request = Request::new(whole(Bytes::new()));
        assert!(origin.send(None, request).await.is_err());
        assert!(origin.places[0].has_failed(crate::clock::now_ms()));
    }

    #[test]
    fn an_address_is_of_a_server_alone() {
        for address in [
            "",
            "http://a/path",
            "http://a,ftp://b",
            "https://a",
            "http://a?b",
            "a:1",
        ] {
            assert!(Origin::new(address).is_none(), "{address}");
        }
    }
}
