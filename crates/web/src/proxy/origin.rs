//! The application behind the proxy.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::Incoming;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{HeaderMap, Method, Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::fmt;
use std::time::Duration;

/// The body of an answer to a client.
pub(crate) type Outgoing = BoxBody<Bytes, BodyError>;

/// Why a body ends too early.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

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
        let mut request = Request::new(whole(Bytes::new()));
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
