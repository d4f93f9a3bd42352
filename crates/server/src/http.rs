//! `/metrics`, `/health` and `/status`, on a thread of their own: they answer also when the loop does not.
//!
//! A port beyond this machine answers only operators, by TLS, unless its configuration opens it to everybody. Process ids
//! are for operators: whoever has one may try to take its place (threat 20).

use std::convert::Infallible;
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
use thorp_net::{
    CertifiedName, Identity, NodeRole, StatusCaller, StatusPlace, StatusPort, StatusStream,
};
use tokio::sync::{Notify, oneshot};
use tracing::{debug, warn};

use crate::config::HttpFor;
use crate::error::ServerError;
use crate::metrics;
use crate::status::{Health, Status, Watched};

/// The thread that serves HTTP; dropping it ends it.
pub(crate) struct Http {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

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
    pub(crate) fn start<W: Watched>(
        (address, whom): (SocketAddr, HttpFor),
        identity: &Identity,
        watched: W,
    ) -> Result<Self, ServerError> {
        let failed = |error| ServerError::Http { address, error };
        let listener = StdListener::bind(address).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let runtime = thorp_net::driver::runtime().map_err(failed)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let identity = (whom == HttpFor::Operators).then_some(identity);
        let port = {
            let _inside = runtime.enter();
            StatusPort::new(listener, identity).map_err(failed)?
        };
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    // Told or dropped, it means the same.
                    _ = stopped => {}
                    () = serve(port, Arc::new(watched)) => {}
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

async fn serve<W: Watched>(port: StatusPort, watched: Arc<W>) {
    let watching = Arc::clone(&watched);
    tokio::spawn(async move {
        loop {
            watching.look().await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
    loop {
        match port.accept().await {
            Ok(caller) => {
                let watched = Arc::clone(&watched);
                tokio::spawn(async move {
                    let served = connection(caller, watched);
                    let _ = tokio::time::timeout(CONNECTION_TIME_MAX, served).await;
                });
            }
            Err(error) => {
                warn!("HTTP: accepting: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection<W: Watched>(caller: StatusCaller, watched: Arc<W>) {
    match caller.greet().await {
        Ok((stream, certified, place)) => {
            one_request(stream, place, Asker(certified), watched).await
        }
        Err(error) => debug!("HTTP: {error}"),
    }
}

/// Serves one request: whoever has another one calls again. Until the head of the request is there, a newer caller may take
/// the place.
async fn one_request<W: Watched>(
    stream: StatusStream,
    mut place: StatusPlace,
    asker: Asker,
    watched: Arc<W>,
) {
    let asked = Notify::new();
    let service = service_fn(|request| {
        asked.notify_one();
        let answered = answer(request, &asker, &*watched);
        async { Ok::<_, Infallible>(answered.await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let served = tokio::select! {
        biased;
        served = serving.as_mut() => served,
        () = asked.notified() => match place.keep() {
            true => serving.await,
            false => return,
        },
        () = place.lost() => return,
    };
    if let Err(error) = served {
        debug!("HTTP: {error}");
    }
}

/// Whoever asks, by its certificate; none where the port asks for none.
struct Asker(Option<CertifiedName>);

impl Asker {
    fn is_operator(&self) -> bool {
        let role = self.0.as_ref().map(CertifiedName::role);
        role == Some(NodeRole::Operator)
    }

    /// Why it is not answered.
    fn refusal(&self) -> Option<String> {
        let certified = self.0.as_ref().filter(|_| !self.is_operator())?;
        Some(format!(
            "this port answers operators, and the certificate is that of {certified}: call with one that was made by `thorp invite NAME \
             --role operator --out DIR`\n"
        ))
    }
}

async fn answer<W: Watched>(
    request: Request<Incoming>,
    asker: &Asker,
    watched: &W,
) -> Response<Full<Bytes>> {
    if let Some(words) = asker.refusal() {
        return plain(StatusCode::FORBIDDEN, &words);
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "GET is all there is\n");
    }
    match request.uri().path() {
        "/metrics" => scraped(watched.look().await),
        "/health" => healthy(&watched.look().await.health),
        "/status" => {
            let mut status = watched.look().await;
            if !asker.is_operator() {
                status.hide_process_ids();
            }
            told(&status)
        }
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
