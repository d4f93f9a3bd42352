//! Connections of clients: HTTP/1.1, and with TLS HTTP/2, too.

use super::door::Door;
use super::patient::Patient;
use super::serve::Proxy;
use super::tls::{HTTP_2, Tls};
use crate::source::Source;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// Connections of clients at a time. More wait in the system's queue.
const CONNECTIONS_MAX: usize = 4_096;

/// How long a client may take to send the head of a request, and how long a connection may be without one.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// How long a handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// Requests at a time on a connection of HTTP/2.
const STREAMS_MAX: u32 = 100;

/// The head of a request on a connection of HTTP/2 has at most so many bytes.
const HEAD_BYTES_MAX: u32 = 32 << 10;

/// What a connection of HTTP/1.1 has in memory of its requests, and of what it writes. A head is longer by one read at most, which is no
/// longer than this. Beyond it the client gets 431.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// What a connection of HTTP/2 may have on its way to the origin, and one request of it.
const CONNECTION_WINDOW_BYTES: u32 = 256 << 10;
const STREAM_WINDOW_BYTES: u32 = 64 << 10;

/// What waits for a client of HTTP/2, for each request.
const SENDING_BYTES_MAX: usize = 64 << 10;

/// How long the proxy waits when the system gives it no connection.
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// Serves clients until it is told to stop. Answers that have begun go on.
///
/// # Errors
///
/// None today: what the system refuses is tried again.
pub async fn serve<V: Source + Send + Sync + 'static>(
    listener: TcpListener,
    proxy: Arc<Proxy<V>>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    serve_door(listener, Arc::new(Door::new(proxy, None)), stop).await
}

/// Serves clients by what stands behind a door at each moment.
///
/// # Errors
///
/// As [`serve`].
pub async fn serve_door<V: Source + Send + Sync + 'static>(
    listener: TcpListener,
    door: Arc<Door<V>>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return Ok(());
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stop) => return Ok(()),
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // The client is gone, or this process has too many files open.
                tracing::warn!("no connection: {error}");
                tokio::time::sleep(AFTER_REFUSAL).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let client = Client {
            door: Arc::clone(&door),
            stop: stop.clone(),
        };
        let tls = door.tls();
        tokio::spawn(async move {
            client.attend(stream, tls).await;
            drop(place);
        });
    }
}

/// One connection.
struct Client<V: Source> {
    door: Arc<Door<V>>,
    stop: watch::Receiver<bool>,
}

impl<V: Source + Send + Sync + 'static> Client<V> {
    async fn attend(self, stream: TcpStream, tls: Option<Tls>) {
        let stream = Patient::new(stream);
        let Some(tls) = tls else {
            return self.http1(stream).await;
        };
        let accepted = tokio::time::timeout(HANDSHAKE_WITHIN, tls.acceptor().accept(stream));
        match accepted.await {
            Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(HTTP_2) => {
                self.http2(stream).await;
            }
            Ok(Ok(stream)) => self.http1(stream).await,
            Ok(Err(error)) => tracing::debug!("a handshake: {error}"),
            Err(_) => tracing::debug!("a handshake takes too long"),
        }
    }

    async fn http1(mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let door = self.door;
        let answers = service_fn(move |request| {
            let proxy = door.proxy();
            async move { Ok::<_, Infallible>(proxy.answer(request).await) }
        });
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .max_buf_size(BUFFER_BYTES_MAX)
            .header_read_timeout(HEAD_WITHIN);
        let connection = builder
            .serve_connection(TokioIo::new(stream), answers)
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopped(&mut self.stop) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!("a client's connection: {error}");
        }
    }

    async fn http2(mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let door = self.door;
        let asked = Arc::new(LastRequest::now());
        let noted = Arc::clone(&asked);
        let answers = service_fn(move |request: Request<Incoming>| {
            noted.note();
            let proxy = door.proxy();
            async move { Ok::<_, Infallible>(proxy.answer(request).await) }
        });
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(HEAD_BYTES_MAX)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .max_send_buf_size(SENDING_BYTES_MAX)
            .keep_alive_interval(HEAD_WITHIN)
            .keep_alive_timeout(HANDSHAKE_WITHIN);
        let connection = builder.serve_connection(TokioIo::new(stream), answers);
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            // Answers that have begun go on.
            () = asked.long_ago() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            () = stopped(&mut self.stop) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!("a client's connection: {error}");
        }
    }
}

/// When the last request came on a connection, in milliseconds since the machine started.
struct LastRequest(AtomicU64);

impl LastRequest {
    fn now() -> Self {
        LastRequest(AtomicU64::new(crate::clock::now_ms()))
    }

    fn note(&self) {
        self.0.store(crate::clock::now_ms(), Ordering::Relaxed);
    }

    /// Returns once no request has come for as long as a client may take for one.
    async fn long_ago(&self) {
        let patience_ms = HEAD_WITHIN.as_millis() as u64;
        loop {
            let since_ms = crate::clock::now_ms().saturating_sub(self.0.load(Ordering::Relaxed));
            if since_ms >= patience_ms {
                return;
            }
            tokio::time::sleep(Duration::from_millis(patience_ms - since_ms)).await;
        }
    }
}

/// Returns when it is time to stop, also if nobody is left to say so.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
