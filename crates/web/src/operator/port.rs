//! The operator's listener: the page, `/status`, `/metrics`, `/health` and `/why`. It is on the loopback interface, so only programs of this
//! machine reach it.

use super::address::{Address, parameter};
use super::watched::Watched;
use super::{metrics, page};
use crate::source::Source;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections at a time. More wait in the system's queue.
const CONNECTIONS_MAX: usize = 32;

/// How long the head of a request may take.
const HEAD_WITHIN: Duration = Duration::from_secs(5);

/// How long a connection may live. It has one request.
const CONNECTION_WITHIN: Duration = Duration::from_secs(60);

/// How long the listener waits when the system gives it no connection.
const AFTER_REFUSAL: Duration = Duration::from_millis(100);

/// Sent with each answer. A page of another origin cannot read it, frame it, or run a script in it.
const FIELDS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// A listener that answers whoever is on this machine.
#[derive(Debug)]
pub struct OperatorPort {
    listener: TcpListener,
    address: SocketAddr,
}

/// Why there is no such listener.
#[derive(Debug)]
#[non_exhaustive]
pub enum PortError {
    /// Other machines would reach the address.
    NotLoopback(SocketAddr),
    /// The system does not give it.
    Io(SocketAddr, io::Error),
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortError::NotLoopback(address) => write!(
                f,
                "other machines reach {address}, and it shows what is in the cache: take an address of this machine only, as 127.0.0.1:{}",
                address.port()
            ),
            PortError::Io(address, error) => write!(f, "{address}: {error}"),
        }
    }
}

impl std::error::Error for PortError {}

impl OperatorPort {
    /// Whether it may listen there.
    ///
    /// # Errors
    ///
    /// [`PortError::NotLoopback`].
    pub fn check(address: SocketAddr) -> Result<(), PortError> {
        match address.ip().to_canonical().is_loopback() {
            true => Ok(()),
            false => Err(PortError::NotLoopback(address)),
        }
    }

    /// Listens.
    ///
    /// # Errors
    ///
    /// See [`PortError`].
    pub async fn bind(address: SocketAddr) -> Result<Self, PortError> {
        Self::check(address)?;
        let failed = |error| PortError::Io(address, error);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(OperatorPort { listener, address })
    }

    /// Where it listens, with the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until it is dropped.
    pub async fn serve<V: Source + Send + Sync + 'static>(self, watched: Arc<Watched<V>>) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!("the operator's port: {error}");
                    tokio::time::sleep(AFTER_REFUSAL).await;
                    continue;
                }
            };
            let watched = Arc::clone(&watched);
            tokio::spawn(async move {
                let attended = tokio::time::timeout(CONNECTION_WITHIN, attend(stream, watched));
                if attended.await.is_err() {
                    tracing::debug!("the operator's port: a connection took too long");
                }
                drop(place);
            });
        }
    }
}

async fn attend<V: Source + Send + Sync + 'static>(stream: TcpStream, watched: Arc<Watched<V>>) {
    let answers = service_fn(move |request: Request<Incoming>| {
        let watched = Arc::clone(&watched);
        // It reads files and looks at all entries: beside the threads that answer clients.
        let answered = tokio::task::spawn_blocking(move || answer(&request, &watched));
        async move {
            let answered = answered.await;
            let failed = |_| {
                plain(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "it failed: see its log\n",
                )
            };
            Ok::<_, Infallible>(answered.unwrap_or_else(failed))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answers);
    if let Err(error) = connection.await {
        tracing::debug!("the operator's port: {error}");
    }
}

fn answer<B, V: Source + Send + Sync + 'static>(
    request: &Request<B>,
    watched: &Watched<V>,
) -> Response<Full<Bytes>> {
    if !names_this_machine(request) {
        let words = "ask for 127.0.0.1, [::1] or localhost: a page of another name could read this through your browser\n";
        return plain(StatusCode::MISDIRECTED_REQUEST, words);
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "GET is all there is\n");
    }
    let query = request.uri().query().unwrap_or_default();
    match request.uri().path() {
        "/" => {
            let find = parameter(query, "find").unwrap_or_default();
            let (entries, dropped) = watched.entries(&find, page::SHOWN_MAX);
            let page = page::page(&watched.status(), &find, (&entries, &dropped));
            respond(StatusCode::OK, "text/html; charset=utf-8", page)
        }
        "/style.css" => {
            let style = page::STYLE.to_owned();
            respond(StatusCode::OK, "text/css; charset=utf-8", style)
        }
        "/status" => document(&watched.status()),
        "/health" => healthy(watched),
        "/metrics" => match metrics::text(watched.status()) {
            Ok(text) => respond(StatusCode::OK, metrics::CONTENT_TYPE, text),
            Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
        },
        "/why" => {
            let url = parameter(query, "url");
            match url.as_deref().and_then(Address::parse) {
                Some(address) => document(&watched.at(&address)),
                None => plain(
                    StatusCode::BAD_REQUEST,
                    "ask for /why?url=http://host/path\n",
                ),
            }
        }
        _ => plain(
            StatusCode::NOT_FOUND,
            "/, /status, /metrics, /health, /why?url=http://host/path\n",
        ),
    }
}

fn healthy<V: Source + Send + Sync + 'static>(watched: &Watched<V>) -> Response<Full<Bytes>> {
    match watched.is_well() {
        true => plain(StatusCode::OK, "ok\n"),
        false => plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "away: all requests of routes go to the origin\n",
        ),
    }
}

/// Whether the request was meant for this machine: a page of another host may have sent a browser here under its own name.
fn names_this_machine<B>(request: &Request<B>) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let host = host.to_str().unwrap_or_default().to_ascii_lowercase();
    if let Ok(address) = host.parse::<SocketAddr>() {
        return address.ip().to_canonical().is_loopback();
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => &host,
    };
    ["localhost", "127.0.0.1", "[::1]"].contains(&name)
}

fn document<T: Serialize>(document: &T) -> Response<Full<Bytes>> {
    match serde_json::to_string_pretty(document) {
        Ok(text) => respond(StatusCode::OK, "application/json", text + "\n"),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
    }
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    respond(status, "text/plain; charset=utf-8", text.to_owned())
}

fn respond(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in FIELDS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_under_another_name_is_not_for_this_machine() {
        let named = |host: &str| {
            let request = Request::builder().header("host", host).body(());
            names_this_machine(&request.expect("a request"))
        };
        for host in [
            "127.0.0.1:8081",
            "127.0.0.1",
            "LocalHost:1",
            "[::1]:2",
            "[::1]",
            "127.0.0.2:3",
        ] {
            assert!(named(host), "{host}");
        }
        for host in [
            "evil.example:8081",
            "10.0.0.1:1",
            "localhost.evil.example",
            "127.0.0.1.evil.example:1",
            "",
            "a:localhost",
        ] {
            assert!(!named(host), "{host}");
        }
        let request = Request::builder().body(()).expect("a request");
        assert!(!names_this_machine(&request));
    }

    #[test]
    fn other_machines_reach_no_such_port() {
        let check = |address: &str| OperatorPort::check(address.parse().expect("an address"));
        for address in ["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(check(address).is_ok(), "{address}");
        }
        for address in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1"] {
            let error = check(address).expect_err(address).to_string();
            assert!(error.contains("127.0.0.1:1"), "{error}");
        }
    }
}
