//! Callers that do not get in, and listeners that are not what was called.
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, not their helpers"
)]

mod common;

use std::time::Duration;

use common::{ANSWER, GREETING, Village, any, at_home, at_member, greeting, tcp};
use thorp_net::{Address, Config, Error, ErrorKind, HELLO_BYTES_MAX, Limits, Listener, Side, dial};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn hasty(config: Config) -> Config {
    let short = Duration::from_millis(100);
    let limits = Limits {
        handshake_timeout: short,
        ..config.limits
    };
    Config { limits, ..config }
}

fn address_of(listener: &TcpListener) -> Address {
    let address = listener.local_addr().unwrap();
    Address::Tcp {
        host: address.ip().to_string(),
        port: address.port(),
    }
}

/// The only error of a dial to one address.
async fn refused(
    village: &Village,
    address: &Address,
    name: Option<&str>,
    config: Config,
) -> Error {
    let error = dial(
        std::slice::from_ref(address),
        &village.member,
        name,
        b"",
        &config,
    )
    .await
    .unwrap_err();
    let mut attempts = error.attempts;
    assert_eq!(attempts.len(), 1);
    attempts.pop().unwrap().1
}

#[tokio::test]
async fn both_sides_learn_who_is_too_old() {
    let village = Village::new();
    for (ours, theirs) in [(1, 3), (3, 1)] {
        let home = Config {
            version: theirs,
            ..at_home()
        };
        let mut listener = Listener::bind(&any(), &village.home, home).await.unwrap();
        let address = listener.address().clone();
        let member = Config {
            version: ours,
            ..at_member()
        };
        let (dialed, heard) =
            tokio::join!(refused(&village, &address, None, member), listener.accept());
        assert_eq!(dialed.kind(), ErrorKind::Misconfigured);
        let old = if ours < theirs {
            "this program"
        } else {
            "the peer"
        };
        let want =
            format!("the home speaks protocol {theirs}, this program speaks {ours}: upgrade {old}");
        assert_eq!(dialed.to_string(), want);
        let heard = heard.unwrap_err();
        assert!(
            heard.address.starts_with("tcp://127.0.0.1:"),
            "{}",
            heard.address
        );
        assert!(matches!(heard.error, Error::Version { .. }), "{heard}");
    }
}

#[tokio::test]
async fn a_caller_is_rejected_with_a_reason() {
    let village = Village::new();
    let mut listener = Listener::bind(&any(), &village.home, at_home())
        .await
        .unwrap();
    let address = listener.address().clone();
    let (dialed, ()) = tokio::join!(
        refused(&village, &address, Some("alps"), at_member()),
        async {
            let incoming = listener.accept().await.unwrap();
            assert_eq!(incoming.peer().certified.to_string(), "member anna");
            incoming.reject("the home is being moved");
        }
    );
    assert!(
        matches!(&dialed, Error::Rejected { reason } if reason == "the home is being moved"),
        "{dialed}"
    );
    let (dialed, ()) = tokio::join!(refused(&village, &address, None, at_member()), async {
        listener
            .accept()
            .await
            .unwrap()
            .reject(&"x".repeat(HELLO_BYTES_MAX + 1));
    });
    assert!(
        matches!(&dialed, Error::Rejected { reason } if reason.len() == HELLO_BYTES_MAX),
        "{dialed}"
    );
}

#[tokio::test]
async fn a_caller_that_is_dropped_is_hung_up_on() {
    let village = Village::new();
    let mut listener = Listener::bind(&any(), &village.home, at_home())
        .await
        .unwrap();
    let address = listener.address().clone();
    let (dialed, _) = tokio::join!(refused(&village, &address, None, at_member()), async {
        drop(listener.accept().await.unwrap());
    });
    assert_eq!(dialed.kind(), ErrorKind::Retry, "{dialed}");
}

#[tokio::test]
async fn the_wrong_node_of_the_right_village_is_named() {
    let village = Village::new();
    let listener = Listener::bind(&any(), &village.home, at_home())
        .await
        .unwrap();
    let error = refused(&village, listener.address(), Some("jura"), at_member()).await;
    assert_eq!(
        error.to_string(),
        "wanted the node jura, but what answered is alps"
    );
}

#[tokio::test]
async fn certificates_of_another_village_are_refused_on_both_sides() {
    let (village, other) = (Village::new(), Village::new());
    let mut listener = Listener::bind(&any(), &other.home, at_home())
        .await
        .unwrap();
    let address = listener.address().clone();
    let (dialed, heard) = tokio::join!(
        refused(&village, &address, None, at_member()),
        listener.accept()
    );
    assert!(
        matches!(
            dialed,
            Error::OtherVillage {
                whose: Side::Theirs,
                villages: Some(_)
            }
        ),
        "{dialed}"
    );
    // Both are named.
    let villages = [village.home.village(), other.home.village()];
    let words = dialed.to_string();
    assert!(
        villages.iter().all(|village| words.contains(village)),
        "{words}"
    );
    let heard = heard.unwrap_err().error;
    assert!(
        matches!(
            heard,
            Error::OtherVillage {
                whose: Side::Ours,
                ..
            }
        ),
        "{heard}"
    );
}

#[tokio::test]
async fn a_caller_of_another_village_learns_why_it_is_refused() {
    let (village, other) = (Village::new(), Village::new());
    // A caller that would trust the listener, but shows a certificate of its own village.
    let mixed = village.dir.join("mixed");
    std::fs::create_dir(&mixed).unwrap();
    std::fs::copy(
        village.dir.join("home/authority.pem"),
        mixed.join("authority.pem"),
    )
    .unwrap();
    for file in ["node.pem", "node.key"] {
        std::fs::copy(other.dir.join("member").join(file), mixed.join(file)).unwrap();
    }
    let error = thorp_net::Identity::load(&mixed).unwrap_err();
    assert!(
        matches!(error, thorp_net::IdentityError::OtherVillage { .. }),
        "{error}"
    );
    // Ours does not even start; so somebody else's program must do it.
    let mut listener = Listener::bind(&any(), &village.home, at_home())
        .await
        .unwrap();
    std::fs::remove_dir_all(village.dir.join("member")).unwrap();
    std::fs::rename(&mixed, village.dir.join("member")).unwrap();
    let mut raw = village.raw(listener.address()).await;
    let _ = raw.write_all(GREETING).await;
    let error = raw.read_to_end(&mut Vec::new()).await.unwrap_err();
    assert!(error.to_string().contains("UnknownCA"), "{error}");
    let heard = listener.accept().await.unwrap_err().error;
    assert!(
        matches!(
            heard,
            Error::OtherVillage {
                whose: Side::Theirs,
                ..
            }
        ),
        "{heard}"
    );
}

#[tokio::test]
async fn nobody_comes_in_without_a_certificate() {
    let village = Village::new();
    let mut listener = Listener::bind(&any(), &village.home, at_home())
        .await
        .unwrap();
    let mut raw = village.anonymous(listener.address()).await;
    let _ = raw.write_all(GREETING).await;
    let error = raw.read_to_end(&mut Vec::new()).await.unwrap_err();
    assert!(error.to_string().contains("CertificateRequired"), "{error}");
    let heard = listener.accept().await.unwrap_err().error;
    assert!(
        matches!(
            heard,
            Error::NoCertificate {
                whose: Side::Theirs
            }
        ),
        "{heard}"
    );
}

#[tokio::test]
async fn a_web_browser_is_told_apart() {
    let village = Village::new();
    let mut listener = Listener::bind(&any(), &village.home, at_home())
        .await
        .unwrap();
    let mut stream = tcp(listener.address()).await;
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: alps\r\n\r\n")
        .await
        .unwrap();
    let heard = listener.accept().await.unwrap_err().error;
    assert!(matches!(heard, Error::NotTls), "{heard}");
    // It gets TLS's alert and the end, not silence.
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer.first(), Some(&21));
}

#[tokio::test]
async fn a_listener_without_tls_is_told_apart() {
    let village = Village::new();
    let web = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = address_of(&web);
    let (error, ()) = tokio::join!(refused(&village, &address, None, at_member()), async {
        let (mut stream, _) = web.accept().await.unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    assert!(matches!(error, Error::NotTls), "{error}");
}

#[tokio::test]
async fn strangers_inside_tls_are_answered_and_let_go() {
    let village = Village::new();
    let mut listener = Listener::bind(&any(), &village.home, at_home())
        .await
        .unwrap();
    let mut raw = village.raw(listener.address()).await;
    raw.write_all(b"EHLO alps\r\n").await.unwrap();
    let mut answer = Vec::new();
    raw.read_to_end(&mut answer).await.unwrap();
    assert_eq!(&answer[..8], &ANSWER[..8], "the listener says what it is");
    let heard = listener.accept().await.unwrap_err().error;
    assert!(
        matches!(
            heard,
            Error::NotThorp {
                found: [b'E', b'H', b'L', b'O', b' ']
            }
        ),
        "{heard}"
    );

    let mut raw = village.raw(listener.address()).await;
    raw.write_all(&greeting(3, [0xff, 0xff])).await.unwrap();
    let heard = listener.accept().await.unwrap_err().error;
    assert!(
        matches!(heard, Error::HelloTooLong { bytes: 65535, .. }),
        "{heard}"
    );

    let mut raw = village.raw(listener.address()).await;
    raw.write_all(&GREETING[..6]).await.unwrap();
    raw.shutdown().await.unwrap();
    let heard = listener.accept().await.unwrap_err().error;
    assert!(
        matches!(
            heard,
            Error::Truncated {
                bytes: 6,
                bytes_due: 8
            }
        ),
        "{heard}"
    );
}

#[tokio::test]
async fn slow_callers_are_let_go_and_hold_up_nobody_for_ever() {
    let village = Village::new();
    let mut home = hasty(at_home());
    home.limits.handshakes_max = 2;
    let mut listener = Listener::bind(&any(), &village.home, home).await.unwrap();
    let address = listener.address().clone();
    // Silent from the start; one byte of TLS; TLS and half a greeting: and each of them twice.
    let mut slow = Vec::new();
    for bytes in [&b""[..], b"\x16", b"", b"\x16"] {
        let mut stream = tcp(&address).await;
        stream.write_all(bytes).await.unwrap();
        slow.push(stream);
    }
    // An honest caller comes in once the slow ones are gone, two at a time.
    let config = at_member();
    let (dialed, ()) = tokio::join!(
        dial(
            std::slice::from_ref(&address),
            &village.member,
            None,
            b"",
            &config
        ),
        async {
            let mut honest = 0;
            for _ in 0..slow.len() + 1 {
                match listener.accept().await {
                    Ok(incoming) => {
                        incoming.accept(b"").unwrap();
                        honest += 1;
                    }
                    Err(heard) => assert!(matches!(heard.error, Error::Timeout { .. }), "{heard}"),
                }
            }
            assert_eq!(honest, 1);
        }
    );
    dialed.unwrap();
    let mut raw = village.raw(&address).await;
    raw.write_all(&GREETING[..5]).await.unwrap();
    let heard = listener.accept().await.unwrap_err().error;
    assert!(matches!(heard, Error::Timeout { .. }), "{heard}");
}

#[tokio::test]
async fn a_listener_that_says_nothing_is_left_after_a_while() {
    let village = Village::new();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let error = refused(&village, &address_of(&silent), None, hasty(at_member())).await;
    assert!(
        matches!(
            error,
            Error::Timeout {
                during: "the handshake",
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn dialing_goes_on_to_the_address_that_works() {
    let village = Village::new();
    let closed = address_of(&TcpListener::bind("127.0.0.1:0").await.unwrap());
    let mut listener = Listener::bind(&village.unix(), &village.home, at_home())
        .await
        .unwrap();
    let nowhere = Address::Unix(village.dir.join("nowhere.sock"));
    let addresses = [closed, nowhere.clone(), listener.address().clone()];
    let config = at_member();
    let (dialed, _home) = tokio::join!(
        dial(&addresses, &village.member, Some("ALPS"), b"", &config),
        async { listener.accept().await.unwrap().accept(b"").unwrap() }
    );
    assert!(dialed.unwrap().peer().address.starts_with("unix:"));
    let error = dial(&addresses[..2], &village.member, None, b"", &config)
        .await
        .unwrap_err();
    assert_eq!(error.attempts.len(), 2);
    assert!(error.to_string().contains(&nowhere.to_string()), "{error}");
    let error = dial(&[], &village.member, None, b"", &config)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "no address to call");
}

#[tokio::test]
async fn a_hello_has_a_limit_and_coming_back_works() {
    let village = Village::new();
    let mut listener = Listener::bind(&any(), &village.home, at_home())
        .await
        .unwrap();
    let addresses = [listener.address().clone()];
    let config = at_member();
    let hello = vec![9; HELLO_BYTES_MAX];
    // The second time TLS resumes: names must be known all the same.
    for _ in 0..3 {
        let (dialed, accepted) = tokio::join!(
            dial(&addresses, &village.member, Some("alps"), &hello, &config),
            async { listener.accept().await.unwrap().accept(&hello).unwrap() }
        );
        let (member, home) = (dialed.unwrap(), accepted);
        assert_eq!((&member.peer().hello, &home.peer().hello), (&hello, &hello));
        assert_eq!(
            (
                member.peer().certified.to_uri(),
                home.peer().certified.to_uri()
            ),
            (
                "thorp:home/alps?id=00000001".into(),
                "thorp:member/anna".into()
            )
        );
        let (home_out, _home_in) = home.split();
        let (_up, mut down) = member.split();
        home_out.try_send(vec![1]).unwrap();
        assert_eq!(down.recv().await.unwrap().unwrap(), [1]);
    }
    let too_long = vec![0; HELLO_BYTES_MAX + 1];
    let error = dial(&addresses, &village.member, None, &too_long, &config)
        .await
        .unwrap_err();
    assert!(
        matches!(error.attempts[0].1, Error::HelloTooLong { .. }),
        "{error}"
    );
}
