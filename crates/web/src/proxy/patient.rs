//! A client's connection that ends if the client does not take what the proxy has for it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// While the proxy has something for a client, the client takes this many bytes, or all that there is, ...
const TAKES_BYTES_MIN: usize = 64 << 10;

/// ... within this time. Otherwise its connection ends: what waits for it takes memory.
const TAKES_WITHIN: Duration = Duration::from_secs(60);

/// A connection.
#[derive(Debug)]
pub(super) struct Patient<S> {
    stream: S,
    takes_within: Duration,
    /// Something waits for the client.
    lag: Option<Lag>,
}

/// How far a client is behind.
#[derive(Debug)]
struct Lag {
    ends: Pin<Box<Sleep>>,
    taken: usize,
}

impl<S> Patient<S> {
    pub(super) fn new(stream: S) -> Self {
        Patient::within(stream, TAKES_WITHIN)
    }

    fn within(stream: S, takes_within: Duration) -> Self {
        Patient {
            stream,
            takes_within,
            lag: None,
        }
    }

    /// What a write comes to.
    fn written(
        &mut self,
        polled: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match polled {
            Poll::Ready(Ok(bytes)) => {
                self.take(bytes);
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let error = ready!(self.wait(context));
                Poll::Ready(Err(error))
            }
        }
    }

    /// The client has taken so many bytes.
    fn take(&mut self, bytes: usize) {
        if let Some(lag) = &mut self.lag {
            lag.taken += bytes;
            if lag.taken >= TAKES_BYTES_MIN {
                self.lag = None;
            }
        }
    }

    /// The client takes nothing now. Ready: it has taken too little for too long.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let takes_within = self.takes_within;
        let lag = self.lag.get_or_insert_with(|| Lag {
            ends: Box::pin(sleep(takes_within)),
            taken: 0,
        });
        ready!(lag.ends.as_mut().poll(context));
        let words = "it does not take what it has asked for";
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, words))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(polled, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.written(polled, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// All has been written before a flush.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.lag = None;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_ended() {
        let (_client, stream) = duplex(8);
        let mut connection = Patient::within(stream, SHORT);
        connection.write_all(b"fits").await.expect("it fits");
        connection.flush().await.expect("it is sent");
        let ended = connection.write_all(b"does not fit any more").await;
        let error = ended.expect_err("nobody takes it");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_takes_single_bytes_is_ended() {
        let (mut client, stream) = duplex(8);
        let mut connection = Patient::within(stream, SHORT);
        let drips = tokio::spawn(async move {
            while client.read_u8().await.is_ok() {
                tokio::time::sleep(SHORT / 10).await;
            }
        });
        let ended = connection.write_all(&[0; TAKES_BYTES_MIN]).await;
        assert_eq!(
            ended.expect_err("it takes too long").kind(),
            io::ErrorKind::TimedOut
        );
        drop(connection);
        drips.await.expect("it ends");
    }

    #[tokio::test]
    async fn a_client_that_takes_all_is_not_behind() {
        let (mut client, stream) = duplex(8);
        let mut connection = Patient::within(stream, Duration::from_secs(3_600));
        let reads = tokio::spawn(async move {
            let mut all = Vec::new();
            client.read_to_end(&mut all).await.map(|_| all.len())
        });
        connection.write_all(&[0; 100]).await.expect("it is taken");
        connection.flush().await.expect("it is sent");
        assert!(connection.lag.is_none());
        let many = [0; 3 * TAKES_BYTES_MIN];
        connection.write_all(&many).await.expect("it is taken");
        let lag = connection.lag.as_ref();
        assert!(lag.is_none_or(|lag| lag.taken < TAKES_BYTES_MIN));
        drop(connection);
        let read = reads.await.expect("it ends").expect("an end");
        assert_eq!(read, 100 + many.len());
    }
}
