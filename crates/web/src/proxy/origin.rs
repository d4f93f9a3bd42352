//! The application behind the proxy.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full, combinators::BoxBody};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{HeaderMap, Method, Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// The body of an answer to a client.
pub(crate) type Outgoing = BoxBody<Bytes, hyper::Error>;

/// An answer of at most so many bytes is stored.
pub(crate) const STORED_BYTES_MAX: usize = 8 << 20;

/// How long the origin may take to begin an answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

/// Where the origin is, and connections to it.
#[derive(Debug)]
pub(crate) struct Origin {
    authority: Authority,
    client: Client<HttpConnector, Outgoing>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum OriginError {
    /// It cannot be reached, or has ended its answer too early.
    Away(String),
    /// It does not answer in time.
    Slow,
}

impl fmt::Display for OriginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OriginError::Away(why) => write!(f, "the origin: {why}"),
            OriginError::Slow => write!(
                f,
                "the origin has not answered for {} seconds",
                ANSWERS_WITHIN.as_secs()
            ),
        }
    }
}

/// What the origin has sent.
pub(crate) enum Received {
    /// All of it.
    Whole(Bytes),
    /// It is too long to be stored: what has come, and what still comes.
    Long(Outgoing),
}

impl Origin {
    /// An origin at `http://host:port`. None: it is another kind of address.
    pub(crate) fn new(address: &Uri) -> Option<Self> {
        let is_plain = address.scheme() == Some(&Scheme::HTTP)
            && address.path() == "/"
            && address.query().is_none();
        let authority = address.authority().filter(|_| is_plain)?.clone();
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(ANSWERS_WITHIN));
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Some(Origin { authority, client })
    }

    /// Asks for an answer that others may have.
    pub(crate) async fn get(
        &self,
        path_and_query: Option<&PathAndQuery>,
        fields: HeaderMap,
    ) -> Result<Response<Incoming>, OriginError> {
        let mut request = Request::new(Empty::new().map_err(|never| match never {}).boxed());
        *request.method_mut() = Method::GET;
        *request.headers_mut() = fields;
        self.send(path_and_query, request).await
    }

    /// Passes a request on.
    pub(crate) async fn send(
        &self,
        path_and_query: Option<&PathAndQuery>,
        mut request: Request<Outgoing>,
    ) -> Result<Response<Incoming>, OriginError> {
        let path = path_and_query.map_or("/", PathAndQuery::as_str);
        let uri = Uri::builder()
            .scheme(Scheme::HTTP)
            .authority(self.authority.clone());
        let uri = uri.path_and_query(path).build();
        *request.uri_mut() = uri.map_err(|error| OriginError::Away(error.to_string()))?;
        let answer = tokio::time::timeout(ANSWERS_WITHIN, self.client.request(request));
        let answer = answer.await.map_err(|_| OriginError::Slow)?;
        answer.map_err(|error| OriginError::Away(reasons(&error)))
    }
}

/// Reads a body as far as it may be stored.
pub(crate) async fn read(mut body: Incoming) -> Result<Received, OriginError> {
    let mut parts = Vec::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| OriginError::Away(reasons(&error)))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        length += data.len();
        parts.push(data);
        if length > STORED_BYTES_MAX {
            let begun = Bytes::from(parts.concat());
            return Ok(Received::Long(Begun { begun, rest: body }.boxed()));
        }
    }
    Ok(Received::Whole(Bytes::from(parts.concat())))
}

/// A body whose first part is here.
struct Begun {
    begun: Bytes,
    rest: Incoming,
}

impl Body for Begun {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let begun = std::mem::take(&mut self.begun);
        match begun.is_empty() {
            true => Pin::new(&mut self.rest).poll_frame(context),
            false => Poll::Ready(Some(Ok(Frame::data(begun)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.begun.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// A body that is here.
pub(crate) fn whole(body: Bytes) -> Outgoing {
    Full::new(body).map_err(|never| match never {}).boxed()
}

/// An error with what is behind it.
fn reasons(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        words = format!("{words}: {error}");
        source = error.source();
    }
    words
}
