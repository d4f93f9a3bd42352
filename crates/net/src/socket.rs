//! TCP and Unix-domain sockets as one type, and their options.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use crate::config::{
    KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_PROBES, READ_BYTES, UNANSWERED_MAX,
};
use crate::congestion::Congestion;
use crate::local::Local;

/// A connected socket of either kind.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(Local),
}

/// What TLS reads from: rustls asks for 4 KiB at a time, which would be three system calls for one page.
pub(crate) type Buffered = BufReader<Socket>;
/// An encrypted connection.
pub(crate) type Stream = TlsStream<Buffered>;

impl Socket {
    /// Connects over TCP.
    pub(crate) async fn connect_tcp(
        address: SocketAddr,
        congestion: &Congestion,
    ) -> io::Result<Self> {
        Self::from_tcp(TcpStream::connect(address).await?, congestion)
    }

    /// Connects to the Unix-domain socket at `path`.
    pub(crate) async fn connect_unix(path: &Path) -> io::Result<Self> {
        Local::connect(path).await.map(Self::Unix)
    }

    /// Sets the options every TCP connection gets.
    pub(crate) fn from_tcp(stream: TcpStream, congestion: &Congestion) -> io::Result<Self> {
        // The writer gathers frames itself; the system must not wait for more.
        stream.set_nodelay(true)?;
        let keepalive = TcpKeepalive::new()
            .with_time(KEEPALIVE_IDLE)
            .with_interval(KEEPALIVE_INTERVAL)
            .with_retries(KEEPALIVE_PROBES);
        let socket = SockRef::from(&stream);
        socket.set_tcp_keepalive(&keepalive)?;
        set_unanswered_max(&socket, UNANSWERED_MAX)?;
        congestion.apply(&stream)?;
        Ok(Self::Tcp(stream))
    }

    /// Waits until there is something to read, or nothing more will come. It may say so too early.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.readable().await,
            Self::Unix(local) => local.readable().await,
        }
    }

    pub(crate) fn buffered(self) -> Buffered {
        BufReader::with_capacity(READ_BYTES, self)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn set_unanswered_max(socket: &SockRef<'_>, max: Duration) -> io::Result<()> {
    socket.set_tcp_user_timeout(Some(max))
}

/// Elsewhere the system's own patience and the protocol's heartbeats must do.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn set_unanswered_max(_: &SockRef<'_>, _: Duration) -> io::Result<()> {
    Ok(())
}

/// Calls the same method of whichever socket it is.
macro_rules! either {
    ($self:ident, $socket:ident => $call:expr) => {
        match $self.get_mut() {
            Socket::Tcp($socket) => $call,
            Socket::Unix($socket) => $call,
        }
    };
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, socket => Pin::new(socket).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self, socket => Pin::new(socket).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, socket => Pin::new(socket).poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, socket => Pin::new(socket).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, socket => Pin::new(socket).poll_shutdown(cx))
    }
}
