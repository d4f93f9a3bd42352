//! Hits that are compared with the origin.

use crate::operator::Operator;
use crate::origin::{Site, Step, answer, with_status};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const RECIPE: &str = r#"
    [[routes]]
    path = "/items/{id}"
    keys = ["item:{id}"]
    noise = ["id=*;"]
"#;

/// What the audit has found once it has found something.
async fn found(operator: &Operator) -> Value {
    for _ in 0..1_000 {
        let audit = operator.document("/status").await["audit"].clone();
        let results = ["same", "different", "changed", "failed"];
        if results.iter().any(|result| audit[result] != 0) {
            return audit;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nothing was compared");
}

/// A site where each hit is compared, and whose origin gives these answers in turn.
async fn site(answers: [Vec<Step>; 2]) -> (Site, crate::origin::Source, Operator) {
    let asked = Arc::new(AtomicUsize::new(0));
    let (site, source) = Site::kept(RECIPE, move |_| {
        answers[asked.fetch_add(1, Ordering::SeqCst).min(1)].clone()
    })
    .await;
    let all = "100%".parse().expect("a share");
    site.door().proxy().audit(all);
    let operator = Operator::of(site.door()).await;
    assert_eq!(site.get("/items/1").await.done(), "thorp; fwd=miss; stored");
    (site, source, operator)
}

#[tokio::test]
async fn a_change_that_no_key_tells_is_found() {
    let answers = [answer("", "price 1 id=7;"), answer("", "price 2 id=8;")];
    let (site, _source, operator) = site(answers).await;
    let hit = site.get("/items/1").await;
    assert_eq!(
        (hit.body.as_str(), hit.done()),
        ("price 1 id=7;", "thorp; hit")
    );
    let audit = found(&operator).await;
    assert_eq!(
        (&audit["different"], &audit["share"]),
        (&1.into(), &"100%".into())
    );
    let line = &audit["differences"][0];
    assert_eq!(line["address"], "site/items/1");
    assert!(
        line["what"]
            .as_str()
            .is_some_and(|what| what.contains("price 2")),
        "{line}"
    );
    let page = operator.get("/").await;
    assert!(
        page.contains("site/items/1") && page.contains("price 2"),
        "{page}"
    );
    let metrics = operator.get("/metrics").await;
    assert!(
        metrics.contains("thorp_web_audits_total{result=\"different\"} 1"),
        "{metrics}"
    );
}

#[tokio::test]
async fn noise_is_no_difference() {
    let answers = [
        answer("", "price 1 id=7;"),
        answer("Date: today", "price 1 id=8;"),
    ];
    let (site, _source, operator) = site(answers).await;
    site.get("/items/1").await;
    let audit = found(&operator).await;
    assert_eq!(
        (&audit["same"], &audit["different"]),
        (&1.into(), &0.into())
    );
}

/// The hit does not wait for the comparison. What changes meanwhile is no mistake.
#[tokio::test]
async fn a_change_during_the_comparison_proves_nothing() {
    let mut slow = answer("", "price 2 id=7;");
    slow.insert(0, Step::Wait);
    let (site, mut source, operator) = site([answer("", "price 1 id=7;"), slow]).await;
    assert_eq!(site.get("/items/1").await.done(), "thorp; hit");
    while site.asked() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    source.change("item:1");
    site.let_go();
    let audit = found(&operator).await;
    assert_eq!(
        (&audit["changed"], &audit["different"]),
        (&1.into(), &0.into())
    );
}

#[tokio::test]
async fn an_origin_that_fails_is_no_difference_and_another_status_is_one() {
    let failing = with_status("503 Away", "", "away");
    let (site_, _source, operator) = site([answer("", "a"), failing]).await;
    site_.get("/items/1").await;
    assert_eq!(found(&operator).await["failed"], 1);
    let gone = with_status("404 Not Found", "", "a");
    let (site_, _source, operator) = site([answer("", "a"), gone]).await;
    site_.get("/items/1").await;
    let audit = found(&operator).await;
    let what = audit["differences"][0]["what"].as_str();
    assert!(what.is_some_and(|what| what.contains("404")), "{audit}");
}

#[tokio::test]
async fn without_a_share_the_origin_is_not_asked() {
    let (site, _source) = Site::kept(RECIPE, |_| answer("", "a")).await;
    for _ in 0..50 {
        site.get("/items/1").await;
    }
    assert_eq!(site.asked(), 1);
}
