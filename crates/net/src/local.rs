//! Unix-domain sockets that are woken only by what they wait for.
//!
//! The system tells whoever watches such a socket for room to write that there is room each time the peer has read
//! something, not only after there was none: a wake-up for every message sent. So room is watched for
//! only while there is none, through a second descriptor of the same socket.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream as System;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::UnixStream;

/// A connected Unix-domain socket.
#[derive(Debug)]
pub(crate) struct Local {
    socket: AsyncFd<System>,
    /// While the system's buffer is full.
    room: Option<AsyncFd<System>>,
}

impl Local {
    pub(crate) async fn connect(path: &Path) -> io::Result<Self> {
        Self::new(UnixStream::connect(path).await?)
    }

    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        let socket = watch(stream.into_std()?, Interest::READABLE)?;
        Ok(Self { socket, room: None })
    }

    /// Waits until there is something to read.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await.map(drop)
    }

    /// Writes what fits, or waits for room.
    fn poll_write_with(
        &mut self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(&mut &System) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if let Some(room) = &self.room {
                // It ends here, so there is no readiness to clear.
                let _ = ready!(room.poll_write_ready(cx))?;
                self.room = None;
            }
            match write(&mut self.socket.get_ref()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let again = self.socket.get_ref().try_clone()?;
                    self.room = Some(watch(again, Interest::WRITABLE)?);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return Poll::Ready(written),
            }
        }
    }
}

fn watch(socket: System, interest: Interest) -> io::Result<AsyncFd<System>> {
    #[allow(
        unsafe_code,
        reason = "the runtime cannot see that a type owns its descriptor"
    )]
    // SAFETY: a socket of the standard library owns its descriptor and never changes it; the runtime has the socket until it
    // has ended watching.
    let watched = unsafe { AsyncFd::register_with_interest(socket, interest) };
    watched.map_err(|error| error.into_parts().1)
}

impl AsyncRead for Local {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buffer.initialize_unfilled();
        loop {
            let mut guard = ready!(self.socket.poll_read_ready(cx))?;
            match guard.try_io(|socket| socket.get_ref().read(room)) {
                // Something new wakes it again.
                Err(_would_block) => {}
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Ok(Ok(bytes)) => {
                    if 0 < bytes && bytes < room.len() {
                        // The system's buffer is empty: to ask it again would be a call for nothing.
                        guard.clear_ready();
                    }
                    buffer.advance(bytes);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for Local {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .poll_write_with(cx, |socket| socket.write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .poll_write_with(cx, |socket| socket.write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.socket.get_ref().shutdown(Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn pair() -> (Local, Local) {
        let (one, other) = UnixStream::pair().unwrap();
        (Local::new(one).unwrap(), Local::new(other).unwrap())
    }

    #[tokio::test]
    async fn more_than_the_systems_buffer_goes_through_whole() {
        let (mut one, mut other) = pair();
        let sent: Vec<u8> = (0..8 << 20).map(|n: u32| (n % 251) as u8).collect();
        let copy = sent.clone();
        let writing = tokio::spawn(async move {
            one.write_all(&copy).await.unwrap();
            assert!(one.room.is_none());
            one.shutdown().await.unwrap();
            one
        });
        let mut received = Vec::new();
        other.read_to_end(&mut received).await.unwrap();
        assert!(received == sent);
        // The other direction is still open.
        let mut one = writing.await.unwrap();
        other.write_all(b"thanks").await.unwrap();
        drop(other);
        let mut thanks = String::new();
        one.read_to_string(&mut thanks).await.unwrap();
        assert_eq!(thanks, "thanks");
    }

    #[tokio::test]
    async fn room_is_watched_for_only_while_there_is_none() {
        let (mut one, mut other) = pair();
        let mut bytes = 0;
        let block = [7; 4096];
        let full = std::future::poll_fn(|cx| {
            loop {
                match Pin::new(&mut one).poll_write(cx, &block) {
                    Poll::Ready(written) => bytes += written.unwrap(),
                    Poll::Pending => return Poll::Ready(one.room.is_some()),
                }
            }
        });
        assert!(full.await);
        let mut read = vec![0; bytes];
        other.read_exact(&mut read).await.unwrap();
        one.write_all(&block).await.unwrap();
        assert!(one.room.is_none());
    }

    #[tokio::test]
    async fn a_peer_that_is_gone_is_an_error() {
        let (mut one, other) = pair();
        drop(other);
        let error = one.write_all(b"hello").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
