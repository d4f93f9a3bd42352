//! Several addresses of one application: one that fails is passed over, and nothing is sent twice that may not be.

use crate::origin::{Site, Step, answer};
use tokio::net::TcpListener;

/// An address where nobody listens.
async fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

#[tokio::test]
async fn a_request_goes_to_another_address_if_the_first_one_is_gone() {
    let site = Site::open(|_| answer("", "abc")).await;
    let site = site.beside(&nowhere().await).await;
    for _ in 0..4 {
        assert_eq!(site.get("/").await.body, "abc");
    }
    assert_eq!(site.asked(), 4);
}

#[tokio::test]
async fn an_address_that_ends_without_an_answer_is_passed_over_where_that_is_safe() {
    let broken = Site::open(|_| vec![Step::Close]).await;
    let site = Site::open(|_| answer("", "abc")).await;
    let site = site.beside(broken.origin_address()).await;
    assert_eq!(site.get("/").await.body, "abc");
    assert_eq!((broken.asked(), site.asked()), (1, 1));

    let broken = Site::open(|_| vec![Step::Close]).await;
    let site = Site::open(|_| answer("", "abc")).await;
    let site = site.beside(broken.origin_address()).await;
    assert_eq!(site.ask("POST", "/", "").await.status, 502);
    assert_eq!((broken.asked(), site.asked()), (1, 0));
    // It failed a moment ago, so the next request goes to the other one.
    assert_eq!(site.ask("POST", "/", "").await.status, 200);
    assert_eq!((broken.asked(), site.asked()), (1, 1));
}

#[tokio::test]
async fn an_origin_that_is_gone_is_said_to_be() {
    let site = Site::open(|_| answer("", "abc")).await;
    let proxy = site.beside(&nowhere().await).await;
    assert_eq!(proxy.get("/").await.status, 200);
    let nobody = Site::open(|_| vec![Step::Close]).await;
    assert_eq!(nobody.get("/").await.status, 502);
}
