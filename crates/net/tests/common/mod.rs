//! A village in a temporary directory, and peers that behave badly.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its own part"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustls::client::WantsClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, ConfigBuilder, DigitallySignedStruct, SignatureScheme};
use thorp_model::HomeId;
use thorp_net::{
    Address, Config, Connection, FrameReceiver, FrameSender, Identity, Listener, NodeRole,
    PROTOCOL_VERSION, Role, dial, issue,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A directory that goes away with the test.
pub struct Village {
    pub dir: PathBuf,
    pub home: Identity,
    pub member: Identity,
}

impl Village {
    pub fn new() -> Self {
        static VILLAGES: AtomicU32 = AtomicU32::new(0);
        let number = VILLAGES.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("thorp-net-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let home =
            Identity::open_or_create(dir.join("home"), dir.join("authority"), ("alps", HomeId(1)))
                .unwrap();
        let role = NodeRole::Member;
        let member = issue(dir.join("authority"), dir.join("member"), role, "anna").unwrap();
        Self { dir, home, member }
    }

    pub fn unix(&self) -> Address {
        Address::Unix(self.dir.join("home.sock"))
    }

    /// Two ends of one connection.
    pub async fn connect(
        &self,
        address: &Address,
        home: Config,
        member: Config,
    ) -> (Connection, Connection) {
        let mut listener = Listener::bind(address, &self.home, home).await.unwrap();
        let addresses = [listener.address().clone()];
        let (dialed, accepted) = tokio::join!(
            dial(
                &addresses,
                &self.member,
                Some("alps"),
                b"from anna",
                &member
            ),
            async {
                listener
                    .accept()
                    .await
                    .unwrap()
                    .accept(b"from alps")
                    .unwrap()
            }
        );
        (accepted, dialed.unwrap())
    }

    pub async fn pair(&self) -> [(FrameSender, FrameReceiver); 2] {
        let (home, member) = self.connect(&any(), at_home(), at_member()).await;
        [home.split(), member.split()]
    }

    /// Another node of the village.
    pub fn node(&self, role: NodeRole, name: &str) -> Identity {
        let out = self.dir.join(format!("{role}-{name}"));
        issue(self.dir.join("authority"), out, role, name).unwrap()
    }

    /// A member that speaks TLS but none of our code.
    pub async fn raw(&self, address: &Address) -> TlsStream<TcpStream> {
        connect_raw(address, self.raw_member()).await
    }

    /// How such a member calls.
    pub fn raw_member(&self) -> ClientConfig {
        let dir = self.dir.join("member");
        let certificate = CertificateDer::from_pem_slice(&read(&dir, "node.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_slice(&read(&dir, "node.key")).unwrap();
        self.raw_config()
            .with_client_auth_cert(vec![certificate], key)
            .unwrap()
    }

    /// The same, but it shows no certificate.
    pub async fn anonymous(&self, address: &Address) -> TlsStream<TcpStream> {
        connect_raw(address, self.raw_config().with_no_client_auth()).await
    }

    fn raw_config(&self) -> ConfigBuilder<ClientConfig, WantsClientCert> {
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Careless))
    }
}

/// Does not look at whom it calls.
#[derive(Debug)]
struct Careless;

impl ServerCertVerifier for Careless {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        unreachable!("only TLS 1.3 is offered")
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = ring::default_provider().signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = ring::default_provider().signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

async fn connect_raw(address: &Address, config: ClientConfig) -> TlsStream<TcpStream> {
    let name = ServerName::try_from("alps.thorp").unwrap();
    let stream = tcp(address).await;
    stream.set_nodelay(true).unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap()
}

impl Drop for Village {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn read(dir: &Path, file: &str) -> Vec<u8> {
    std::fs::read(dir.join(file)).unwrap()
}

pub fn any() -> Address {
    "127.0.0.1:0".parse().unwrap()
}

pub fn at_home() -> Config {
    Config::new(Role::HOME)
}

pub fn at_member() -> Config {
    Config::new(Role::MEMBER)
}

pub async fn tcp(address: &Address) -> TcpStream {
    let Address::Tcp { host, port } = address else {
        panic!("not TCP: {address}")
    };
    TcpStream::connect((host.as_str(), *port)).await.unwrap()
}

const VERSION: [u8; 2] = PROTOCOL_VERSION.to_le_bytes();
const MEMBER: u8 = 3;
const HOME: u8 = 1;
/// The greeting of a member without a hello.
pub const GREETING: &[u8] = &greeting(MEMBER, [0, 0]);
/// What a home answers with an empty hello.
pub const ANSWER: &[u8] = &[
    b'T', b'H', b'O', b'R', b'P', HOME, VERSION[0], VERSION[1], 1, 0, 0,
];

/// The greeting of a role that announces a hello of so many bytes, low byte first.
pub const fn greeting(role: u8, hello_bytes: [u8; 2]) -> [u8; 10] {
    let [low, high] = VERSION;
    let [bytes, more] = hello_bytes;
    [b'T', b'H', b'O', b'R', b'P', role, low, high, bytes, more]
}
