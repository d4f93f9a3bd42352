//! WebSockets pass; nothing else turns a connection into a tunnel.

use crate::origin::{Site, Step, answer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const WANTED: &str = "GET /chat HTTP/1.1\r\nHost: site\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n\r\n";

fn turns(head: &str) -> Vec<Step> {
    match head.contains("upgrade: websocket") && head.contains("connection: upgrade") {
        true => vec![
            Step::Send(String::from(
                "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: eQ==\r\n\r\n",
            )),
            Step::Wait,
            Step::Send(String::from("from the origin")),
            Step::Close,
        ],
        false => answer("Cache-Control: max-age=60", "no"),
    }
}

#[tokio::test]
async fn bytes_pass_through_a_tunnel_both_ways() {
    let site = Site::open(turns).await;
    let mut client = site.connect().await;
    client
        .write_all(WANTED.as_bytes())
        .await
        .expect("a request");
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        text.push(char::from(client.read_u8().await.expect("a head")));
    }
    assert!(text.starts_with("HTTP/1.1 101"), "{text}");
    assert!(text.contains("sec-websocket-accept: eQ=="), "{text}");
    client
        .write_all(b"from the client")
        .await
        .expect("a tunnel");
    site.let_go();
    let mut text = String::new();
    client.read_to_string(&mut text).await.expect("a tunnel");
    assert_eq!(text, "from the origin");
}

#[tokio::test]
async fn an_origin_that_wants_no_tunnel_answers_as_ever() {
    let recipe = "[[routes]]\npath = \"/chat\"\n";
    let site = Site::with(recipe, |_| answer("Cache-Control: max-age=60", "no")).await;
    let wanted = WANTED.replace("Connection: Upgrade", "Connection: Upgrade, close");
    let answer = site.exchange(&wanted).await;
    assert!(answer.contains("cache-control: no-cache"), "{answer}");
    assert!(!answer.contains("max-age"), "{answer}");
}

#[tokio::test]
async fn another_protocol_gets_no_tunnel() {
    let site = Site::open(turns).await;
    let wanted = WANTED.replace("Upgrade: websocket", "Upgrade: h2c");
    let wanted = wanted.replace(
        "Connection: Upgrade",
        "Connection: Upgrade, HTTP2-Settings, close",
    );
    let answer = site.exchange(&wanted).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        !site.last_head().contains("upgrade"),
        "{}",
        site.last_head()
    );
}
