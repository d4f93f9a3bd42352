//! Hearing callers: the handshakes run side by side, and only so many at once. Who has to make place when more callers come, is
//! said by [`Places`](crate::places::Places).

use std::fmt;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use socket2::SockRef;
use thorp_model::TurnedAway;
use tokio::io::AsyncBufReadExt;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::server::TlsStream as ServerStream;
use tokio_rustls::{TlsAcceptor, TlsStream};

use crate::config::ACCEPT_PAUSE;
use crate::doorway::{Doorway, Place};
use crate::handshake::{self, within};
use crate::intake::Quota;
use crate::lanes::{Registry, Token};
use crate::local::Local;
use crate::places::Origin;
use crate::socket::{Buffered, Socket, Stream};
use crate::{
    Address, Config, Congestion, Connection, Error, Identity, NodeRole, Peer, Role, announce,
};

/// Hears callers on one address. Dropping it stops hearing; connections that were accepted live on.
#[derive(Debug)]
pub struct Listener {
    address: Address,
    arrivals: mpsc::Receiver<Result<Incoming, AcceptError>>,
    hearing: AbortHandle,
    /// The socket's file, taken away at the end.
    file: Option<SocketFile>,
}

/// A caller past TLS and its greeting, waiting to be accepted or rejected. Dropping it hangs up. It holds one of the places of
/// [`Limits::handshakes_max`](crate::Limits::handshakes_max) until it is decided on.
#[derive(Debug)]
pub struct Incoming {
    stream: Stream,
    peer: Peer,
    config: Arc<Config>,
    connections: Arc<Registry>,
    origin: Origin,
    place: Place,
}

/// A caller that did not get through the handshake, or a refusal of the system to accept. The listener goes on.
#[derive(Debug)]
pub struct AcceptError {
    /// Where the caller is; empty if nobody got as far.
    pub address: String,
    /// What it is counted by.
    pub(crate) origin: Option<Origin>,
    /// What an audit says of it; none if it is not the caller's certificate that is wrong.
    pub(crate) away: Option<Box<TurnedAway>>,
    /// What went wrong.
    pub error: Error,
}

impl Listener {
    /// Listens on `address`. A Unix-domain socket's file gets permissions 0600; one that is left over from a dead process
    /// is replaced.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the system refuses, among others because another process listens there.
    pub async fn bind(
        address: &Address,
        identity: &Identity,
        config: Config,
    ) -> Result<Self, Error> {
        let (bound, address) = bind(address).await.map_err(Error::io("listening"))?;
        let file = match &bound {
            Bound::Unix(_, file) => Some(file.clone()),
            Bound::Tcp(_) => None,
        };
        let (silent_max, max, known_max) = (
            config.limits.silent_callers_max.clamp(1, PLACES_MAX),
            config.limits.handshakes_max.clamp(1, PLACES_MAX),
            config.limits.handshakes_known_max.min(PLACES_MAX),
        );
        let (arrived, arrivals) = mpsc::channel(max + known_max);
        let door = Door {
            identity: identity.clone(),
            config: Arc::new(config),
            arrived,
            silent: Arc::new(Doorway::new(silent_max, 0)),
            doorway: Arc::new(Doorway::new(max, known_max)),
            connections: Arc::default(),
        };
        let hearing = tokio::spawn(door.keep(bound)).abort_handle();
        Ok(Self {
            address,
            arrivals,
            hearing,
            file,
        })
    }

    /// Where it listens, with the port that the system chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The next caller. May be given up and called again without losing anybody.
    ///
    /// # Errors
    ///
    /// [`AcceptError`] concerns one caller (or one refusal of the system): note it, and call again.
    pub async fn accept(&mut self) -> Result<Incoming, AcceptError> {
        let ended = || AcceptError {
            address: String::new(),
            origin: None,
            away: None,
            error: Error::CutOff,
        };
        self.arrivals.recv().await.unwrap_or_else(|| Err(ended()))
    }
}

impl Incoming {
    /// Who calls.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// What the caller is counted by.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// Lets the caller in. `hello` goes before the first frame. Does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::HelloTooLong`]; the caller is hung up on then.
    pub fn accept(self, hello: &[u8]) -> Result<Connection, Error> {
        self.accept_in(hello, None)
    }

    /// The same; what the caller sends is counted in a common space, by all its sockets from their first byte.
    pub(crate) fn accept_in(self, hello: &[u8], quota: Option<Quota>) -> Result<Connection, Error> {
        let answer = handshake::acceptance(&self.config, hello)?;
        let connection = Connection::start(self.stream, self.peer, &self.config, answer);
        if let Some(quota) = quota {
            connection.count_in(quota);
        }
        if let Some(token) = connection.token {
            let of = &connection.peer().certified;
            self.connections.insert(token, of, connection.lanes());
        }
        Ok(connection)
    }

    /// It is a further socket of a connection that is there.
    fn join(self) {
        let token = Token::from_hello(&self.peer.hello);
        let of = token.and_then(|token| self.connections.find(token, &self.peer.certified));
        let answer = handshake::acceptance(&self.config, &[]);
        let (Some(lanes), Ok(answer)) = (of, answer) else {
            return self.reject("this is a lane of no connection");
        };
        // One that there is no room for is hung up on.
        lanes.join(self.stream, answer);
    }

    /// An end of a connection that is there has shown a new certificate.
    fn prove(self) {
        let token = Token::from_hello(&self.peer.hello);
        let of = token.and_then(|token| self.connections.find(token, &self.peer.certified));
        let answer = handshake::acceptance(&self.config, &[]);
        let (Some(lanes), Ok(answer)) = (of, answer) else {
            return self.reject("this is a proof for no connection");
        };
        lanes.stand_by(self.peer.standing.clone());
        self.dismiss(answer);
    }

    fn is_authority(&self) -> bool {
        self.peer.certified.role() == NodeRole::Authority
    }

    /// The authority announces what is no longer accepted. It is durable before the answer.
    fn announce(self, identity: &Identity) {
        match announce::take(identity, &self.peer.hello) {
            Ok(()) => self.answer(&[]),
            Err(error) => self.reject(&format!("the announcement is not taken: {error}")),
        }
    }

    /// Turns the caller away, telling it why (the first 4 KiB of it). Does not wait.
    pub fn reject(self, reason: &str) {
        let words = handshake::rejection(&self.config, reason);
        self.dismiss(words);
    }

    /// Answers the greeting with this, and hangs up.
    pub(crate) fn answer(self, hello: &[u8]) {
        match handshake::acceptance(&self.config, hello) {
            Ok(answer) => self.dismiss(answer),
            Err(error) => self.reject(&error.to_string()),
        }
    }

    /// Says so, and hangs up.
    fn dismiss(self, words: Vec<u8>) {
        let (stream, mut place) = (self.stream, self.place);
        place.turn_away();
        tokio::spawn(async move {
            tokio::select! {
                () = handshake::farewell(stream, &words) => {}
                () = place.lost() => {}
            }
        });
    }
}

/// What the hearing task and the handshakes share.
#[derive(Clone)]
struct Door {
    identity: Identity,
    config: Arc<Config>,
    arrived: mpsc::Sender<Result<Incoming, AcceptError>>,
    /// Of callers until their first byte: they cost a socket each.
    silent: Arc<Doorway>,
    /// Of callers in their handshake: they cost memory and processor time.
    doorway: Arc<Doorway>,
    connections: Arc<Registry>,
}

/// A connection that the system has made.
struct Caller {
    socket: Socket,
    address: String,
    origin: Origin,
}

/// A caller that has sent something, with its place among the silent ones until it has one for its handshake.
type Spoken = (Caller, Place);

/// A handshake that failed. The owner hears of it first; then the peer is let go gently.
struct Failed {
    error: Error,
    /// Whose certificate of this village the caller has shown.
    name: Option<String>,
    farewell: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Door {
    async fn keep(self, bound: Bound) {
        let (spoke, spoken) = mpsc::channel(SPOKEN_MAX);
        // Ends with this task, so no caller outlives the listener.
        let mut callers = JoinSet::new();
        callers.spawn(self.clone().admit(spoken));
        loop {
            while callers.try_join_next().is_some() {}
            match bound.accept(&self.config.limits.congestion).await {
                Ok(caller) => {
                    let place = self.silent.enter(caller.origin).await;
                    callers.spawn(self.clone().listen(caller, place, spoke.clone()));
                }
                Err(error) => {
                    let error = Error::Io {
                        during: "accepting",
                        source: error,
                    };
                    self.report(String::new(), None, error.into());
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Waits for the first byte of a caller.
    async fn listen(self, caller: Caller, mut place: Place, spoke: mpsc::Sender<Spoken>) {
        let limits = &self.config.limits;
        let (after, during) = (
            limits.first_byte_time_max.min(limits.handshake_timeout),
            "the first byte",
        );
        let byte = async { caller.socket.readable().await.map_err(Error::io(during)) };
        let heard = tokio::select! {
            biased;
            byte = within(after, during, byte) => byte,
            () = place.lost() => Err(Error::Displaced),
        };
        let heard = heard.and_then(|()| match place.complete() {
            true => Ok(()),
            false => Err(Error::Displaced),
        });
        match heard {
            // Fails only at the end of the listener.
            Ok(()) => drop(spoke.send((caller, place)).await),
            Err(error) => self.report(caller.address, Some(caller.origin), error.into()),
        }
    }

    /// Gives callers places for their handshakes, in the order of their first bytes.
    async fn admit(self, mut spoken: mpsc::Receiver<Spoken>) {
        let mut handshakes = JoinSet::new();
        while let Some((caller, silent)) = spoken.recv().await {
            while handshakes.try_join_next().is_some() {}
            let place = self.doorway.enter(caller.origin).await;
            drop(silent);
            handshakes.spawn(self.clone().receive(caller, place));
        }
    }

    async fn receive(self, caller: Caller, mut place: Place) {
        let Caller {
            socket,
            address,
            origin,
        } = caller;
        let shaken = tokio::select! {
            // Whose greeting has come with this turn gets in.
            biased;
            shaken = self.in_time(self.shake_hands(socket, address.clone())) => shaken,
            () = place.lost() => Err(Error::Displaced.into()),
        };
        let shaken = shaken.and_then(|shaken| match place.complete() {
            true => Ok(shaken),
            false => Err(Error::Displaced.into()),
        });
        match shaken {
            Ok((stream, peer)) => {
                let incoming = Incoming {
                    stream,
                    peer,
                    config: Arc::clone(&self.config),
                    connections: Arc::clone(&self.connections),
                    origin,
                    place,
                };
                match incoming.peer.role {
                    Role::LANE => incoming.join(),
                    Role::PROOF => incoming.prove(),
                    Role::AUTHORITY if incoming.is_authority() => incoming.announce(&self.identity),
                    // Fails only if the listener was dropped: then nobody wants to know.
                    _ => drop(self.arrived.send(Ok(incoming)).await),
                }
            }
            Err(mut failed) => {
                let farewell = failed.farewell.take();
                self.report(address, Some(origin), failed);
                if let Some(farewell) = farewell {
                    tokio::select! {
                        () = farewell => {}
                        () = place.lost() => {}
                    }
                }
            }
        }
    }

    /// Bounds TLS and greetings together.
    async fn in_time<T>(
        &self,
        shaking: impl Future<Output = Result<T, Failed>>,
    ) -> Result<T, Failed> {
        let after = self.config.limits.handshake_timeout;
        let during = "the handshake";
        let timeout = Error::Timeout { during, after };
        let shaken = tokio::time::timeout(after, shaking).await;
        shaken.unwrap_or_else(|_| Err(timeout.into()))
    }

    async fn shake_hands(&self, socket: Socket, address: String) -> Result<(Stream, Peer), Failed> {
        let mut socket = socket.buffered();
        self.first_byte("the first byte", &mut socket).await?;
        let acceptor = TlsAcceptor::from(Arc::clone(&self.identity.credentials().server));
        let accepting = acceptor.accept(socket).into_fallible();
        let mut stream = accepting.await.map_err(|(error, socket)| Failed {
            error: Error::from_tls("TLS", error),
            name: None,
            farewell: Some(Box::pin(handshake::farewell(socket, &[]))),
        })?;
        // Also a caller that has shown its certificate is silent if it does not greet.
        self.first_byte("the first byte of the greeting", &mut stream)
            .await?;
        match self.hear(&mut stream, address).await {
            Ok(peer) => Ok((TlsStream::Server(stream), peer)),
            Err(error) => {
                let words = error.words_for_peer();
                let words = words.map(|words| handshake::rejection(&self.config, &words));
                let words = words.unwrap_or_default();
                let shown = stream.get_ref().1.peer_certificates();
                let name = self.identity.name_shown(shown);
                let farewell = async move { handshake::farewell(stream, &words).await };
                Err(Failed {
                    error,
                    name,
                    farewell: Some(Box::pin(farewell)),
                })
            }
        }
    }

    /// Waits for a byte, and leaves it where it is. A caller that is silent is let go soon, without words.
    async fn first_byte(
        &self,
        during: &'static str,
        stream: &mut (impl AsyncBufReadExt + Unpin),
    ) -> Result<(), Error> {
        let after = self.config.limits.first_byte_time_max;
        let byte = async {
            stream
                .fill_buf()
                .await
                .map_err(|error| Error::from_tls(during, error))
        };
        // How a stream that ends here has ended is said where it is read.
        within(after, during, byte).await.map(drop)
    }

    async fn hear(
        &self,
        stream: &mut ServerStream<Buffered>,
        address: String,
    ) -> Result<Peer, Error> {
        // After every handshake: a resumed one asks nothing of the certificate (rule R1).
        let shown = stream.get_ref().1.peer_certificates();
        let standing = self.identity.accept(shown)?;
        let greeting = handshake::hear(stream, &self.config).await?;
        Ok(Peer {
            address,
            certified: standing.certified.clone(),
            standing,
            role: greeting.role,
            hello: greeting.hello,
            round_trip: None,
        })
    }

    /// The owner hears of a failure if it listens: it need not, and nobody waits for that.
    fn report(&self, address: String, origin: Option<Origin>, failed: Failed) {
        let Failed { error, name, .. } = failed;
        let away = error.turns_away().map(|why| {
            let from = origin.and_then(Origin::network);
            Box::new(TurnedAway { why, from, name })
        });
        let failed = AcceptError {
            address,
            origin,
            away,
            error,
        };
        let _ = self.arrived.try_send(Err(failed));
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self {
            error,
            name: None,
            farewell: None,
        }
    }
}

enum Bound {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// A socket's file, told apart from one that somebody else has put in its place since.
#[derive(Debug, Clone)]
struct SocketFile {
    path: PathBuf,
    inode: (u64, u64),
}

impl Bound {
    async fn accept(&self, congestion: &Congestion) -> io::Result<Caller> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok(Caller {
                    socket: Socket::from_tcp(stream, congestion)?,
                    address: format!("tcp://{address}"),
                    origin: Origin::of(address),
                })
            }
            Self::Unix(listener, file) => {
                let (stream, _) = listener.accept().await?;
                Ok(Caller {
                    socket: Socket::Unix(Local::new(stream)?),
                    address: format!("unix:{}", file.path.display()),
                    origin: Origin::Machine,
                })
            }
        }
    }
}

async fn bind(address: &Address) -> io::Result<(Bound, Address)> {
    match address {
        Address::Tcp { host, port } => {
            let listener = TcpListener::bind((host.as_str(), *port)).await?;
            SockRef::from(&listener).listen(BACKLOG)?;
            let port = listener.local_addr()?.port();
            Ok((
                Bound::Tcp(listener),
                Address::Tcp {
                    host: host.clone(),
                    port,
                },
            ))
        }
        Address::Unix(path) => {
            let listener = bind_unix(path)?;
            SockRef::from(&listener).listen(BACKLOG)?;
            // Whoever connects before this line still has to show a certificate.
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
            let file = SocketFile {
                path: path.clone(),
                inode: inode(path)?,
            };
            Ok((Bound::Unix(listener, file), address.clone()))
        }
    }
}

fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_dead_socket(path) => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}

/// Whether it is a socket that nobody listens on. Only then may it be taken away.
fn is_dead_socket(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && std::os::unix::net::UnixStream::connect(path).is_err_and(refused)
}

fn inode(path: &Path) -> io::Result<(u64, u64)> {
    let file = std::fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino()))
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.hearing.abort();
        if let Some(file) = &self.file
            && inode(&file.path).is_ok_and(|inode| inode == file.inode)
        {
            // A file that stays is replaced by the next listener.
            let _ = std::fs::remove_file(&file.path);
        }
    }
}

/// Connections that the system makes and keeps until this process takes them. The runtime's own number is lower: then those
/// above it are not even made, and their programs have to try again.
const BACKLOG: i32 = 1024;
/// More places have no use.
const PLACES_MAX: usize = 1 << 16;
/// Callers that have sent something and wait for a place; the others wait with theirs.
const SPOKEN_MAX: usize = 16;

impl fmt::Display for AcceptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = if self.address.is_empty() {
            "a caller"
        } else {
            &self.address
        };
        write!(f, "{address}: {}", self.error)
    }
}

impl std::error::Error for AcceptError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
