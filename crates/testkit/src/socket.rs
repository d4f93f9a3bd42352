//! Plain sockets of both kinds, for a link.

use std::io;

use thorp_net::Address;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// A connection, by whichever kind of socket.
pub(crate) type Stream = Box<dyn Both>;

/// What a connection can do.
pub(crate) trait Both: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Both for T {}

/// A socket at which others call.
pub(crate) enum Listening {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listening {
    /// Listens at an address. The second one has the port that the system has chosen.
    pub(crate) async fn at(address: &Address) -> io::Result<(Self, Address)> {
        match address {
            Address::Tcp { host, port } => {
                let listener = TcpListener::bind((host.as_str(), *port)).await?;
                let (host, port) = (host.clone(), listener.local_addr()?.port());
                Ok((Self::Tcp(listener), Address::Tcp { host, port }))
            }
            Address::Unix(path) => Ok((Self::Unix(UnixListener::bind(path)?), address.clone())),
        }
    }

    pub(crate) async fn accept(&mut self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => of_tcp(listener.accept().await?.0),
            Self::Unix(listener) => Ok(Box::new(listener.accept().await?.0)),
        }
    }
}

/// Calls an address.
pub(crate) async fn connect(to: &Address) -> io::Result<Stream> {
    match to {
        Address::Tcp { host, port } => of_tcp(TcpStream::connect((host.as_str(), *port)).await?),
        Address::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
    }
}

fn of_tcp(stream: TcpStream) -> io::Result<Stream> {
    // The link itself makes what is sent wait, nothing else does.
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}
