//! What the operator of a proxy sees if Thorp homes are the source.

use crate::operator::Operator;
use crate::origin::{Site, answer};
use thorp_versions::{HomeLedger, Kept, Place, Terms, Writer, now_ms};
use thorp_web::Homes;

const RECIPE: &str = "[[routes]]\npath = \"/lots/{number}\"";

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_sees_which_commit_of_which_home_has_changed_what() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("web.table");
    let kept = Kept::make(&path, Terms::of_home("alps"), 1).expect("a table");
    let mut alps: HomeLedger<Kept, u64> = HomeLedger::new(Writer::new(kept));
    alps.begin(1, 5, []);
    // No test runs for so long: nobody has to beat again.
    alps.beat(now_ms() + 600_000);
    let homes = Homes::new([("alps".to_owned(), path)]).expect("one name");
    for (_, table) in homes.tables() {
        table.look().expect("a table");
    }
    let fields = |head: &str| match head.contains("/lots/1 ") {
        true => answer("Thorp-Evidence: alps=5\nThorp-Reads: alps 1/1.1", "it"),
        false => answer("", "it"),
    };
    let (site, door) = Site::behind(homes, RECIPE, fields).await;
    let operator = Operator::of(door).await;
    site.get("/lots/1").await;
    site.get("/lots/2").await;
    let status = operator.document("/status").await;
    assert_eq!(status["source"], "homes");
    assert_eq!(status["homes"][0]["name"], "alps");
    assert_eq!(status["homes"][0]["live"], true);
    assert_eq!(status["refused"]["no_evidence"], 1);
    let found = operator.document("/why?url=/lots/1").await;
    assert_eq!(found["entries"][0]["dependencies"][0], "alps 1/1.1");
    alps.change(6, Some(vec![Place::of("1/1.1")]));
    site.get("/lots/1").await;
    let found = operator.document("/why?url=/lots/1").await;
    let dropped = &found["dropped"][0];
    assert_eq!(
        (&dropped["reason"], &dropped["key"]),
        (&"changed".into(), &"alps 1/1.1".into())
    );
    assert_eq!(dropped["update"]["home"], "alps");
    assert_eq!(dropped["update"]["log_position"], 6);
    let page = operator.get("/").await;
    assert!(
        page.contains("by a commit at position 6 of home alps"),
        "{page}"
    );
    let metrics = operator.get("/metrics").await;
    assert!(
        metrics.contains("thorp_web_home_live{home=\"alps\"} 1.0"),
        "{metrics}"
    );
}
