//! TLS and HTTP/2 to clients.

use crate::origin::{OwnDoor, Site, answer};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use thorp_versions::Memory;
use thorp_web::{Door, Tls, serve_door};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A proxy with TLS in front of a site's origin.
struct Secure {
    site: Site,
    address: String,
    certificate: CertificateDer<'static>,
    door: Arc<OwnDoor>,
    _stop: watch::Sender<bool>,
}

impl Secure {
    async fn open() -> Secure {
        let site = Site::open(|head| {
            let cookie = head.lines().find(|line| line.starts_with("cookie"));
            answer(
                "Cache-Control: max-age=60\nVary: Cookie",
                cookie.unwrap_or("abc"),
            )
        })
        .await;
        let pair = rcgen::generate_simple_self_signed([String::from("site")]).expect("a pair");
        let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
        let tls = Tls::from_pem(certificate.as_bytes(), key.as_bytes()).expect("a pair");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let proxy = site.proxy(site.origin_address(), "", Arc::new(Memory::new()));
        let (stop, stopped) = watch::channel(false);
        let door = Arc::new(Door::new(proxy, Some(tls)));
        tokio::spawn(serve_door(listener, Arc::clone(&door), stopped));
        Secure {
            site,
            address,
            certificate: pair.cert.der().clone(),
            door,
            _stop: stop,
        }
    }

    async fn connect(&self, protocol: &str) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("a version")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let stream = TcpStream::connect(&self.address)
            .await
            .expect("a connection");
        let name = ServerName::try_from("site").expect("a name");
        let connector = TlsConnector::from(Arc::new(config));
        connector.connect(name, stream).await.expect("a handshake")
    }
}

async fn read(answer: Response<hyper::body::Incoming>) -> (String, String) {
    let status = answer.headers().get("cache-status").cloned();
    let status = status.and_then(|status| status.to_str().map(str::to_owned).ok());
    let body = answer.into_body().collect().await.expect("a body");
    let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    (body, status.unwrap_or_default())
}

#[tokio::test]
async fn http_2_shares_the_cache_and_means_the_same_host() {
    let secure = Secure::open().await;
    let stream = TokioIo::new(secure.connect("h2").await);
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), stream)
        .await
        .expect("a handshake");
    tokio::spawn(connection);
    for status in ["thorp; fwd=uri-miss; stored", "thorp; hit"] {
        let request = Request::get("https://site/").body(Empty::<Bytes>::new());
        let answer = client
            .send_request(request.expect("a request"))
            .await
            .expect("an answer");
        assert_eq!(answer.version(), Version::HTTP_2);
        let (body, found) = read(answer).await;
        assert_eq!(body, "abc");
        assert!(found.starts_with(status), "{found}");
    }
    let head = secure.site.last_head();
    assert!(
        head.starts_with("GET / HTTP/1.1\r\n") && head.contains("host: site\r\n"),
        "{head}"
    );
    // HTTP/2 divides cookies, and the origin reads them in one field.
    let request = Request::get("https://site/")
        .header("cookie", "a=1")
        .header("cookie", "b=2");
    let request = request.body(Empty::<Bytes>::new()).expect("a request");
    let answer = client.send_request(request).await.expect("an answer");
    assert_eq!(read(answer).await.0, "cookie: a=1; b=2");
    // A host beside another authority reaches nobody.
    let asked = secure.site.asked();
    let request = Request::get("https://site/").header("host", "other");
    let request = request.body(Empty::<Bytes>::new()).expect("a request");
    let answer = client.send_request(request).await;
    assert!(!answer.is_ok_and(|answer| answer.status().is_success()));
    assert_eq!(secure.site.asked(), asked);
}

#[tokio::test]
async fn http_1_comes_through_tls_too() {
    let secure = Secure::open().await;
    let mut stream = secure.connect("http/1.1").await;
    let request = b"GET / HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("abc"),
        "{answer}"
    );
}

#[tokio::test]
async fn who_speaks_no_tls_gets_no_answer() {
    let secure = Secure::open().await;
    let mut stream = TcpStream::connect(&secure.address)
        .await
        .expect("a connection");
    let request = b"GET / HTTP/1.1\r\nHost: site\r\n\r\n";
    stream.write_all(request).await.expect("a request");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"));
    assert_eq!(secure.site.asked(), 0);
}

#[tokio::test]
async fn a_new_certificate_is_for_the_next_connection() {
    let mut secure = Secure::open().await;
    let pair = rcgen::generate_simple_self_signed([String::from("site")]).expect("a pair");
    let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
    let next = Tls::from_pem(certificate.as_bytes(), key.as_bytes()).expect("a pair");
    let mut first = secure.connect("http/1.1").await;
    assert!(secure.door.renew_tls(next.clone()));
    // The connection of before goes on.
    let request = b"GET /a HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\r\n";
    first.write_all(request).await.expect("a request");
    let mut answer = String::new();
    first.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.ends_with("abc"), "{answer}");
    secure.certificate = pair.cert.der().clone();
    secure.connect("http/1.1").await;
    // Where clients speak no TLS, a certificate makes them speak none.
    assert!(!secure.site.door().renew_tls(next));
}
