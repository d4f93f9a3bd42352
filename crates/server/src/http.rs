//! `/metrics`, `/health` and `/status`, on a thread of their own: they answer also when the loop does not.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tracing::{debug, warn};

use crate::error::ServerError;
use crate::metrics;
use crate::status::{Health, Status, Watched};

/// The thread that serves HTTP; dropping it ends it.
pub(crate) struct Http {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Connections at one time; more wait in the system's backlog.
const CONNECTIONS_MAX: usize = 32;
/// Longest time for the head of a request.
const HEAD_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest life of a connection.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(120);
/// Between looks that nobody asked for, so that it is known since when a child is stuck.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Pause after the system refused to accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Http {
    /// Listens, and serves from a thread of its own.
    pub(crate) fn start<W: Watched>(address: SocketAddr, watched: W) -> Result<Self, ServerError> {
        let failed = |error| ServerError::Http { address, error };
        let listener = StdListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let runtime = thorp_net::driver::runtime().map_err(failed)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    // Told or dropped, it means the same.
                    _ = stopped => {}
                    ended = serve(listener, Arc::new(watched)) => {
                        if let Err(error) = ended {
                            warn!("HTTP has ended: {error}");
                        }
                    }
                }
            });
        };
        let thread = thread::Builder::new().name("thorp-http".to_owned());
        let thread = thread.spawn(serve).map_err(failed)?;
        Ok(Self {
            address: bound,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens, with the port that the system chose.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It fails only if it panicked, which has been printed.
            let _ = thread.join();
        }
    }
}

async fn serve<W: Watched>(listener: StdListener, watched: Arc<W>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let watching = Arc::clone(&watched);
    tokio::spawn(async move {
        loop {
            watching.look().await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let watched = Arc::clone(&watched);
                tokio::spawn(async move {
                    let served = connection(stream, watched);
                    let _ = tokio::time::timeout(CONNECTION_TIME_MAX, served).await;
                    drop(place);
                });
            }
            Err(error) => {
                warn!("HTTP: accepting: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    Ok(())
}

async fn connection<W: Watched>(stream: TcpStream, watched: Arc<W>) {
    let service = service_fn(|request| {
        let watched = Arc::clone(&watched);
        async move { Ok::<_, Infallible>(answer(&request, &*watched).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        debug!("HTTP: {error}");
    }
}

async fn answer<W: Watched>(request: &Request<Incoming>, watched: &W) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "GET is all there is\n");
    }
    match request.uri().path() {
        "/metrics" => scraped(watched.look().await),
        "/health" => healthy(&watched.look().await.health),
        "/status" => told(&watched.look().await),
        _ => plain(StatusCode::NOT_FOUND, "/metrics, /health, /status\n"),
    }
}

fn scraped(status: Status) -> Response<Full<Bytes>> {
    match metrics::text(status) {
        Ok(text) => respond(StatusCode::OK, metrics::CONTENT_TYPE, text),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
    }
}

fn healthy(health: &Health) -> Response<Full<Bytes>> {
    if health.ok {
        return plain(StatusCode::OK, "ok\n");
    }
    let reasons = health.reasons.join("\n");
    plain(StatusCode::SERVICE_UNAVAILABLE, &format!("{reasons}\n"))
}

fn told(status: &Status) -> Response<Full<Bytes>> {
    match serde_json::to_string_pretty(status) {
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
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
