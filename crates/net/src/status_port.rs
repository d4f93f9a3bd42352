//! The port on which a node shows how it is: bytes of HTTP instead of frames, plain or by TLS.
//!
//! Silent callers must not keep others out there either, so callers have their [`Places`](crate::places::Places) by the
//! address that they come from, as at a [`Listener`](crate::Listener) (threat 20).

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::config::{
    CONNECT_TIMEOUT, HANDSHAKE_TIMEOUT, STATUS_CALLERS_KNOWN_MAX, STATUS_CALLERS_MAX,
};
use crate::doorway::{Doorway, Place};
use crate::handshake::within;
use crate::places::Origin;
use crate::{CertifiedName, Error, Identity};

/// Listens for whoever wants to know how a node is.
#[derive(Debug)]
pub struct StatusPort {
    listener: TcpListener,
    identity: Option<Identity>,
    doorway: Arc<Doorway>,
}

/// A caller of a [`StatusPort`]. It holds one of [`STATUS_CALLERS_MAX`] places until it is dropped.
#[derive(Debug)]
pub struct StatusCaller {
    socket: TcpStream,
    identity: Option<Identity>,
    place: StatusPlace,
}

/// The place of a caller of a [`StatusPort`]. A newer caller may take it until the caller has asked something.
#[derive(Debug)]
pub struct StatusPlace(Place);

/// A connection of a [`StatusPort`].
pub type StatusStream = Box<dyn Duplex>;

/// Bytes in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

impl StatusPort {
    /// Listens on a bound socket. With an identity every caller needs a certificate of the village.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn new(bound: StdListener, identity: Option<&Identity>) -> io::Result<Self> {
        bound.set_nonblocking(true)?;
        Ok(Self {
            listener: TcpListener::from_std(bound)?,
            identity: identity.cloned(),
            doorway: Arc::new(Doorway::new(STATUS_CALLERS_MAX, STATUS_CALLERS_KNOWN_MAX)),
        })
    }

    /// The next caller. It waits until there is a place for that one.
    ///
    /// # Errors
    ///
    /// What the system says; it may be called again.
    pub async fn accept(&self) -> io::Result<StatusCaller> {
        let (socket, address) = self.listener.accept().await?;
        let place = self.doorway.enter(Origin::of(address)).await;
        Ok(StatusCaller {
            socket,
            identity: self.identity.clone(),
            place: StatusPlace(place),
        })
    }
}

impl StatusCaller {
    /// The caller's stream, and its certificate if the port asks for one.
    ///
    /// # Errors
    ///
    /// [`Error`]: the handshake failed, or the caller has lost its place.
    pub async fn greet(self) -> Result<(StatusStream, Option<CertifiedName>, StatusPlace), Error> {
        let Self {
            socket,
            identity,
            mut place,
        } = self;
        let Some(identity) = identity else {
            return Ok((Box::new(socket), None, place));
        };
        let acceptor = TlsAcceptor::from(Arc::clone(&identity.credentials().server));
        let shaking = async {
            let accepted = acceptor.accept(socket).await;
            accepted.map_err(|error| Error::from_tls("TLS", error))
        };
        let stream = tokio::select! {
            biased;
            shaken = within(HANDSHAKE_TIMEOUT, "TLS", shaking) => shaken?,
            () = place.lost() => return Err(Error::Displaced),
        };
        // After every handshake: a resumed one asks nothing of the certificate (rule R1).
        let standing = identity.accept(stream.get_ref().1.peer_certificates())?;
        let certified = standing.certified.clone();
        Ok((Box::new(stream), Some(certified), place))
    }
}

impl StatusPlace {
    /// The caller has asked something: it keeps its place. False if it has lost it.
    pub fn keep(&self) -> bool {
        self.0.complete()
    }

    /// Waits until a newer caller takes the place. May be given up and called again.
    pub async fn lost(&mut self) {
        self.0.lost().await;
    }
}

/// Calls a [`StatusPort`] that asks for certificates. What answers must be a home or a site of the village.
///
/// # Errors
///
/// [`Error`].
pub async fn call_status_port(
    address: SocketAddr,
    identity: &Identity,
) -> Result<StatusStream, Error> {
    let connecting = async {
        let connected = TcpStream::connect(address).await;
        connected.map_err(Error::io("connecting"))
    };
    let socket = within(CONNECT_TIMEOUT, "connecting", connecting).await?;
    // For session tickets only: a certificate names a role and a node, and no host.
    let name = ServerName::from(address.ip());
    let connector = TlsConnector::from(Arc::clone(&identity.credentials().client));
    let shaking = async {
        let connected = connector.connect(name, socket).await;
        connected.map_err(|error| Error::from_tls("TLS", error))
    };
    let stream = within(HANDSHAKE_TIMEOUT, "TLS", shaking).await?;
    let standing = identity.accept(stream.get_ref().1.peer_certificates())?;
    let certified = &standing.certified;
    if !certified.role().is_parent() {
        return Err(Error::WrongName {
            expected: "a home or a site".to_owned(),
            found: certified.to_string(),
        });
    }
    Ok(Box::new(stream))
}
