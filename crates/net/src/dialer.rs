//! Calling another node.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, TlsStream};
use tracing::debug;

use crate::config::ATTEMPTS_MAX;
use crate::handshake::{self, within};
use crate::identity::Standing;
use crate::lanes::Token;
use crate::socket::{Socket, Stream};
use crate::{
    Address, CertifiedName, Config, Connection, Error, Identity, IdentityError, Peer, Role,
};
use rustls::pki_types::{DnsName, ServerName};

/// No address led to the node. In the order they were tried.
#[derive(Debug)]
pub struct DialError {
    /// What was tried, and what went wrong there.
    pub attempts: Vec<(String, Error)>,
}

/// Calls a node: tries every address in turn (and every IP address of a name), [`ATTEMPTS_MAX`] in all, until one answers
/// and accepts. `expect_name` is the name the node must have in its certificate; without it any node of the village
/// will do. `hello` goes with the greeting.
///
/// # Errors
///
/// [`DialError`], with the error of every attempt.
pub async fn dial(
    addresses: &[Address],
    identity: &Identity,
    expect_name: Option<&str>,
    hello: &[u8],
    config: &Config,
) -> Result<Connection, DialError> {
    let caller = Caller {
        identity,
        expect_name,
        hello,
        config,
    };
    let mut attempts = Vec::new();
    for address in addresses {
        let targets = match resolve(address, config).await {
            Ok(targets) => targets,
            Err(error) => {
                attempts.push((address.to_string(), error));
                continue;
            }
        };
        for target in targets {
            if attempts.len() >= ATTEMPTS_MAX {
                return Err(DialError { attempts });
            }
            match caller.call(&target).await {
                Ok(connection) => return Ok(connection),
                Err(error) => attempts.push((target.to_string(), error)),
            }
        }
    }
    Err(DialError { attempts })
}

/// Before an address, for people.
const TCP: &str = "tcp://";

/// One place to connect to.
enum Target {
    Tcp(SocketAddr),
    Unix(std::path::PathBuf),
}

struct Caller<'a> {
    identity: &'a Identity,
    expect_name: Option<&'a str>,
    hello: &'a [u8],
    config: &'a Config,
}

impl Caller<'_> {
    async fn call(&self, target: &Target) -> Result<Connection, Error> {
        let shown = self.identity.credentials().own.serial.clone();
        let (stream, peer) = self.reach(target).await?;
        let mut connection = Connection::start(stream, peer, self.config, Vec::new());
        connection.shown = Some(shown);
        Ok(connection)
    }

    async fn reach(&self, target: &Target) -> Result<(Stream, Peer), Error> {
        let limits = &self.config.limits;
        let began = Instant::now();
        let socket = within(limits.connect_timeout, "connecting", self.connect(target)).await?;
        let round_trip = matches!(target, Target::Tcp(_)).then(|| began.elapsed());
        let shaking = self.shake_hands(socket, target);
        let shaken = within(limits.handshake_timeout, "the handshake", shaking).await;
        let shaken = match (shaken, target) {
            (Err(Error::NotTls), Target::Tcp(address))
                if speaks_http(*address, self.config).await =>
            {
                Err(Error::SpeaksHttp)
            }
            (shaken, _) => shaken,
        };
        shaken.map(|(stream, peer)| (stream, Peer { round_trip, ..peer }))
    }

    async fn connect(&self, target: &Target) -> Result<Socket, Error> {
        let congestion = &self.config.limits.congestion;
        let socket = match target {
            Target::Tcp(address) => Socket::connect_tcp(*address, congestion).await,
            Target::Unix(path) => Socket::connect_unix(path).await,
        };
        socket.map_err(Error::io("connecting"))
    }

    async fn shake_hands(&self, socket: Socket, target: &Target) -> Result<(Stream, Peer), Error> {
        let connector = TlsConnector::from(Arc::clone(&self.identity.credentials().client));
        let name = self.ticket_name(target)?;
        let mut stream = match connector
            .connect(name, socket.buffered())
            .into_fallible()
            .await
        {
            Ok(stream) => stream,
            Err((error, socket)) => {
                // In the background: the listener wants to see TLS's alert, the caller its error.
                tokio::spawn(async move { handshake::farewell(socket, &[]).await });
                return Err(Error::from_tls("TLS", error));
            }
        };
        // After every handshake: a resumed one asks nothing of the certificate (rule R1).
        let shown = stream.get_ref().1.peer_certificates();
        let standing = self.identity.accept(shown)?;
        self.check_name(standing.certified.name())?;
        let greeting = handshake::greet(&mut stream, self.config, self.hello).await?;
        let peer = Peer {
            address: target.to_string(),
            certified: standing.certified.clone(),
            standing,
            role: greeting.role,
            hello: greeting.hello,
            round_trip: None,
        };
        Ok((TlsStream::Client(stream), peer))
    }

    fn check_name(&self, name: &str) -> Result<(), Error> {
        match self.expect_name {
            Some(expected) if !name.eq_ignore_ascii_case(expected) => Err(Error::WrongName {
                expected: expected.to_owned(),
                found: name.to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// What TLS files its tickets for resumption under. It is neither sent nor checked; it only has to differ from node to
    /// node.
    fn ticket_name(&self, target: &Target) -> Result<ServerName<'static>, Error> {
        let file = match (self.expect_name, target) {
            (None, Target::Tcp(address)) => return Ok(ServerName::from(address.ip())),
            (Some(name), _) => name.as_bytes().to_vec(),
            (None, Target::Unix(path)) => path.as_os_str().as_encoded_bytes().to_vec(),
        };
        let digest = crate::crypto::digest(&file).unwrap_or_default();
        let label: String = digest
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let name = DnsName::try_from(format!("n{label}.thorp"));
        name.map(ServerName::DnsName)
            .map_err(|error| Error::Tls(rustls::Error::General(error.to_string())))
    }
}

/// Whether HTTP is spoken at an address where no handshake was possible. People take the one port for the other.
async fn speaks_http(address: SocketAddr, config: &Config) -> bool {
    const QUESTION: &[u8] = b"HEAD / HTTP/1.0\r\n\r\n";
    const ANSWER: &[u8] = b"HTTP/";
    let ask = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(QUESTION).await?;
        let mut begin = [0; ANSWER.len()];
        stream.read_exact(&mut begin).await?;
        Ok::<_, std::io::Error>(begin == ANSWER)
    };
    let asked = tokio::time::timeout(config.limits.connect_timeout.min(HTTP_WITHIN), ask).await;
    matches!(asked, Ok(Ok(true)))
}

/// How long it is waited for.
const HTTP_WITHIN: Duration = Duration::from_secs(1);

impl Connection {
    /// Where the peer is, if it was called over TCP.
    pub(crate) fn remote(&self) -> Option<SocketAddr> {
        self.peer().address.strip_prefix(TCP)?.parse().ok()
    }

    /// Opens further sockets of this connection in the background, up to [`Limits::lanes`](crate::Limits::lanes) in all, if it goes
    /// over TCP and this side has called. [`FrameSender::try_send_unordered`](crate::FrameSender::try_send_unordered) uses them at both ends. It
    /// works without them, also with a peer that wants none.
    pub fn widen(&self, identity: &Identity, config: &Config) {
        let (Some(target), Some(token)) = (self.remote(), self.token) else {
            return;
        };
        let of = self.peer().certified.clone();
        let (identity, lanes) = (identity.clone(), Arc::downgrade(self.lanes()));
        let config = Config {
            role: Role::LANE,
            ..config.clone()
        };
        tokio::spawn(async move {
            let caller = Caller {
                identity: &identity,
                expect_name: Some(of.name()),
                hello: token.as_hello(),
                config: &config,
            };
            for _ in 1..config.limits.lanes {
                let called = caller.reach(&Target::Tcp(target)).await;
                let joined = called.map(|(stream, _)| {
                    let lanes = lanes.upgrade();
                    lanes.is_some_and(|lanes| lanes.join(stream, Vec::new()))
                });
                match joined {
                    Ok(true) => {}
                    // It has ended meanwhile.
                    Ok(false) => return,
                    Err(error) => return debug!(%target, "no further socket: {error}"),
                }
            }
        });
    }
}

/// Shows this side's certificate to the other end of a connection on a socket of its own, and gives what the other end has
/// shown.
pub(crate) async fn show_again(
    (address, peer): (&Address, &CertifiedName),
    token: &Token,
    identity: &Identity,
    config: &Config,
) -> Result<Standing, Error> {
    let config = Config {
        role: Role::PROOF,
        ..config.clone()
    };
    let caller = Caller {
        identity,
        expect_name: Some(peer.name()),
        hello: token.as_hello(),
        config: &config,
    };
    let targets = resolve(address, &config).await?;
    let Some(target) = targets.first() else {
        return Err(Error::Lost);
    };
    let (_stream, found) = caller.reach(target).await?;
    match found.certified == *peer {
        true => Ok(found.standing),
        false => Err(Error::WrongName {
            expected: peer.to_string(),
            found: found.certified.to_string(),
        }),
    }
}

/// Greets a node as the authority, and hears whether it has taken the hello.
pub(crate) async fn greet_as_authority(
    address: &Address,
    identity: &Identity,
    hello: &[u8],
) -> Result<(), DialError> {
    let greeted = ask(address, identity, (Role::AUTHORITY, None), hello);
    greeted.await.map(drop)
}

/// Greets the authority's process; its answer.
pub(crate) async fn ask_authority(
    address: &Address,
    identity: &Identity,
    role: Role,
    hello: &[u8],
) -> Result<Vec<u8>, IdentityError> {
    let authority = CertifiedName::authority();
    let asked = ask(address, identity, (role, Some(authority.name())), hello).await;
    let peer = asked.map_err(|error| IdentityError::Authority {
        why: error.to_string(),
    })?;
    match peer.certified == authority {
        true => Ok(peer.hello),
        false => Err(IdentityError::Authority {
            why: format!("what answers is {}", peer.certified),
        }),
    }
}

/// Greets a node once; who it is, and its answer.
async fn ask(
    address: &Address,
    identity: &Identity,
    (role, expect_name): (Role, Option<&str>),
    hello: &[u8],
) -> Result<Peer, DialError> {
    let config = Config::new(role);
    let caller = Caller {
        identity,
        expect_name,
        hello,
        config: &config,
    };
    let mut attempts = Vec::new();
    match resolve(address, &config).await {
        Err(error) => attempts.push((address.to_string(), error)),
        Ok(targets) => {
            for target in targets {
                match caller.reach(&target).await {
                    Ok((_, peer)) => return Ok(peer),
                    Err(error) => attempts.push((target.to_string(), error)),
                }
            }
        }
    }
    Err(DialError { attempts })
}

async fn resolve(address: &Address, config: &Config) -> Result<Vec<Target>, Error> {
    match address {
        Address::Unix(path) => Ok(vec![Target::Unix(path.clone())]),
        Address::Tcp { host, port } => {
            let lookup = async {
                let found = tokio::net::lookup_host((host.as_str(), *port)).await;
                found.map_err(Error::io("looking up the name"))
            };
            let found =
                within(config.limits.connect_timeout, "looking up the name", lookup).await?;
            Ok(found.take(ATTEMPTS_MAX).map(Target::Tcp).collect())
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{TCP}{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.attempts.is_empty() {
            return f.write_str("no address to call");
        }
        for (number, (address, error)) in self.attempts.iter().enumerate() {
            let separator = if number == 0 { "" } else { "; " };
            write!(f, "{separator}{address}: {error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for DialError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.attempts.last().map(|(_, error)| error as _)
    }
}
