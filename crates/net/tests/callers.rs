//! Callers that say nothing, and a member that gets in beside them (threats to a listener before the greeting).
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, not their helpers"
)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{Village, any, at_home, at_member};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use thorp_net::{Address, Config, Connection, Limits, Listener, dial};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsConnector;

/// What a caller does before it says nothing more.
#[derive(Clone)]
enum Call {
    Connect,
    /// And sends the first byte of TLS.
    OneByte,
    /// And shows a good certificate.
    Tls(Arc<ClientConfig>),
}

trait Stream: AsyncRead + Unpin + Send {}

impl<S: AsyncRead + Unpin + Send> Stream for S {}

impl Call {
    async fn connect(&self, address: &Address) -> std::io::Result<Box<dyn Stream>> {
        let (host, port) = match address {
            Address::Unix(path) => return Ok(Box::new(UnixStream::connect(path).await?)),
            Address::Tcp { host, port } => (host.as_str(), *port),
        };
        let mut stream = TcpStream::connect((host, port)).await?;
        match self {
            Self::Connect => {}
            Self::OneByte => stream.write_all(b"\x16").await?,
            Self::Tls(config) => {
                let name = ServerName::try_from("alps.thorp").unwrap();
                let connector = TlsConnector::from(Arc::clone(config));
                return Ok(Box::new(connector.connect(name, stream).await?));
            }
        }
        Ok(Box::new(stream))
    }
}

/// Callers that hold their connections, and call again whenever they are hung up on.
struct Flood {
    calls: Arc<AtomicUsize>,
    _callers: JoinSet<()>,
}

impl Flood {
    fn new(address: &Address, callers: usize, call: &Call) -> Self {
        let calls = Arc::<AtomicUsize>::default();
        let mut set = JoinSet::new();
        for _ in 0..callers {
            let (address, call, calls) = (address.clone(), call.clone(), Arc::clone(&calls));
            set.spawn(async move {
                loop {
                    if let Ok(mut stream) = call.connect(&address).await {
                        calls.fetch_add(1, Ordering::Relaxed);
                        let _ = stream.read_to_end(&mut Vec::new()).await;
                    }
                    tokio::task::yield_now().await;
                }
            });
        }
        Self {
            calls,
            _callers: set,
        }
    }

    /// Waits until so many calls more were made.
    async fn calls(&self, more: usize) {
        let until = self.calls.load(Ordering::Relaxed) + more;
        while self.calls.load(Ordering::Relaxed) < until {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// A home that lets everybody in.
async fn home(village: &Village, address: &Address, limits: Limits) -> (Address, JoinHandle<()>) {
    let config = Config {
        limits,
        ..at_home()
    };
    let mut listener = Listener::bind(address, &village.home, config)
        .await
        .unwrap();
    let address = listener.address().clone();
    let task = tokio::spawn(async move {
        let mut connections: Vec<Connection> = Vec::new();
        loop {
            if let Ok(incoming) = listener.accept().await {
                connections.push(incoming.accept(b"").unwrap());
            }
        }
    });
    (address, task)
}

/// A member calls, once, and gets in.
async fn gets_in(village: &Village, address: &Address) {
    let mut config = at_member();
    // A program waits no longer than this to join.
    config.limits.handshake_timeout = Duration::from_secs(5);
    let addresses = [address.clone()];
    dial(&addresses, &village.member, Some("alps"), b"", &config)
        .await
        .unwrap();
}

/// The attack: more silent connections than a listener has places, from the member's own address, held and renewed. Before,
/// the member had to wait behind all of them, ten seconds for each 64.
#[tokio::test]
async fn a_member_gets_in_beside_silent_callers_of_its_own_address() {
    let village = Village::new();
    for address in [any(), village.unix()] {
        for call in [Call::Connect, Call::OneByte] {
            let (address, home) = home(&village, &address, Limits::default()).await;
            let flood = Flood::new(&address, 300, &call);
            flood.calls(300).await;
            for _ in 0..3 {
                gets_in(&village, &address).await;
                // All of the flood goes on meanwhile.
                flood.calls(100).await;
            }
            home.abort();
            let _ = home.await;
        }
    }
}

/// The attack: with a certificate, callers that do not greet take all places. They are as silent as those above.
#[tokio::test]
async fn a_member_gets_in_beside_callers_that_never_greet() {
    const HANDSHAKES_MAX: usize = 64;
    let village = Village::new();
    let limits = Limits {
        handshakes_max: HANDSHAKES_MAX,
        ..Limits::default()
    };
    let (address, _home) = home(&village, &any(), limits).await;
    let call = Call::Tls(Arc::new(village.raw_member()));
    let flood = Flood::new(&address, HANDSHAKES_MAX, &call);
    flood.calls(HANDSHAKES_MAX).await;
    for _ in 0..3 {
        gets_in(&village, &address).await;
        flood.calls(HANDSHAKES_MAX / 2).await;
    }
}

/// A site whose members come back all at once, from one address: nobody of them is dropped.
#[tokio::test]
async fn many_members_of_one_address_get_in_at_once() {
    const MEMBERS: usize = 300;
    let village = Arc::new(Village::new());
    let (address, _home) = home(&village, &any(), Limits::default()).await;
    let mut members = JoinSet::new();
    for _ in 0..MEMBERS {
        let (village, address) = (Arc::clone(&village), address.clone());
        members.spawn(async move {
            let dialed = dial(&[address], &village.member, None, b"", &at_member()).await;
            dialed.map(drop)
        });
    }
    let mut dropped = Vec::new();
    while let Some(dialed) = members.join_next().await {
        dropped.extend(dialed.unwrap().err());
    }
    assert!(
        dropped.is_empty(),
        "{} of {MEMBERS}: {}",
        dropped.len(),
        dropped[0]
    );
}
