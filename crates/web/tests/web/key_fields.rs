//! Keys that answers name in their fields. The test is the source.

use crate::operator::Operator;
use crate::origin::{Site, Step, answer};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const RECIPE: &str = r#"
    known = ["html"]

    [tables]
    item = ["item:{id}", "shelf:{shelf}"]

    [[routes]]
    path = "/items/{id}"
    keys = ["item:{id}"]
    keys_from = ["surrogate-key", "xkey", "cache-tag", "cache-groups"]

    [[routes]]
    path = "/shelves/{shelf}"
    keys = ["shelf:{shelf}"]
"#;

const HIT: &str = "thorp; hit";
const STORED: &str = "thorp; fwd=miss; stored";

#[tokio::test]
async fn an_answer_ends_with_any_key_that_its_fields_name() {
    for field in [
        "Surrogate-Key: html item:8",
        "xkey: html,item:8",
        "Cache-Tag: html, item:8",
        "Cache-Groups: \"html\", \"item:8\"",
        "Surrogate-Key: html\nSURROGATE-KEY: item:8",
    ] {
        let (site, mut source) = Site::kept(RECIPE, move |_| answer(field, "abc")).await;
        let first = site.get("/items/1").await;
        assert_eq!(first.done(), STORED, "{field}");
        let name = field.split(':').next().expect("a name");
        assert_eq!(first.field(name), "", "no client sees it");
        source.change("item:9");
        assert_eq!(site.get("/items/1").await.done(), HIT, "{field}");
        source.change("item:8");
        assert_eq!(site.get("/items/1").await.done(), STORED, "{field}");
        source.change("item:1");
        assert_eq!(site.get("/items/1").await.done(), STORED, "{field}");
        assert_eq!(site.asked(), 3);
    }
}

#[tokio::test]
async fn an_answer_whose_fields_do_not_say_all_ends_with_any_change() {
    let huge = format!("Surrogate-Key: {}", "item:8 ".repeat(3_000));
    let many: String = (0..1_100).map(|key| format!("item:{key} ")).collect();
    let many = format!("Surrogate-Key: {many}");
    for field in [
        "X: y",
        "Surrogate-Key:",
        "Surrogate-Key: item:8\nCache-Groups: garbage(",
        "Cache-Groups: \"item:8",
        // No table of the recipe changes such a key.
        "Surrogate-Key: item:8 price:8",
        &huge,
        &many,
    ] {
        let shown: String = field.chars().take(60).collect();
        let field: &'static str = field.to_owned().leak();
        let (site, mut source) = Site::kept(RECIPE, move |_| answer(field, "abc")).await;
        assert_eq!(site.get("/items/1").await.done(), STORED, "{shown}");
        assert_eq!(site.get("/items/1").await.done(), HIT, "{shown}");
        source.change("shelf:9");
        assert_eq!(site.get("/items/1").await.done(), STORED, "{shown}");
    }
}

#[tokio::test]
async fn a_route_that_does_not_say_so_takes_no_keys_from_fields() {
    let (site, mut source) = Site::kept(RECIPE, |_| answer("Surrogate-Key: item:8", "abc")).await;
    let first = site.get("/shelves/a").await;
    assert_eq!((first.done(), first.field("surrogate-key")), (STORED, ""));
    source.change("item:8");
    assert_eq!(site.get("/shelves/a").await.done(), HIT);
}

/// Trap W6 with fields: the key stands behind the body, and has changed before it comes.
#[tokio::test]
async fn a_key_in_a_trailer_counts_from_the_beginning_of_the_fill() {
    let fills = Arc::new(AtomicUsize::new(0));
    let (site, mut source) = Site::kept(RECIPE, move |_| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Surrogate-Key\r\nSurrogate-Key: html\r\n\r\n3\r\nold\r\n";
        let end = "0\r\nSurrogate-Key: item:8\r\n\r\n";
        match fills.fetch_add(1, Ordering::SeqCst) {
            0 => vec![
                Step::Send(head.to_owned()),
                Step::Wait,
                Step::Send(end.to_owned()),
            ],
            _ => vec![Step::Send(format!("{head}{end}"))],
        }
    })
    .await;
    let changes = async {
        while site.asked() == 0 {
            tokio::task::yield_now().await;
        }
        source.change("item:8");
        site.let_go();
    };
    let (first, ()) = tokio::join!(site.get("/items/1"), changes);
    assert_eq!(
        (first.body.as_str(), first.field("surrogate-key")),
        ("old", "")
    );
    assert_eq!(site.get("/items/1").await.done(), STORED);
    assert_eq!(site.get("/items/1").await.done(), HIT);
    source.change("item:8");
    assert_eq!(site.get("/items/1").await.done(), STORED);
}

#[tokio::test]
async fn an_operator_sees_which_keys_the_fields_have_named() {
    let field = "Surrogate-Key: html item:8";
    let (site, _source) = Site::kept(RECIPE, move |_| answer(field, "abc")).await;
    let operator = Operator::of(site.door()).await;
    site.get("/items/1").await;
    let found = operator.document("/why?url=/items/1").await;
    let dependencies = found["entries"][0]["dependencies"].as_array();
    let mut keys: Vec<_> = dependencies.expect("an entry").iter().collect();
    keys.sort_by_key(|key| key.to_string());
    assert_eq!(keys, ["html", "item:1", "item:8"]);
}
