//! Answers that say what they have read at a Thorp home (rule W3), and a proxy that follows the table of that home.

use crate::origin::{Got, Site, answer};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use thorp_versions::{HomeLedger, Kept, Place, Terms, Writer, now_ms};
use thorp_web::Homes;

const RECIPE: &str = "[[routes]]\npath = \"/lots/{number}\"";

const STORED: &str = "thorp; fwd=miss; stored";
const NO_EVIDENCE: &str = "thorp; fwd=miss; detail=no-evidence";
const UNREADABLE: &str = "thorp; fwd=miss; detail=unreadable-evidence";

/// A home at position 5, and an origin behind a proxy that follows it.
struct Shop {
    site: Site,
    alps: Arc<Mutex<HomeLedger<Kept, u64>>>,
    _place: TempDir,
}

impl Shop {
    async fn open(fields: impl Fn(&str) -> String + Send + Sync + 'static) -> Shop {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("web.table");
        let alps = Arc::new(Mutex::new(ledger(&path)));
        let beats = Arc::downgrade(&alps);
        tokio::spawn(async move {
            while let Some(alps) = beats.upgrade() {
                alps.lock().expect("no test has failed").beat(now_ms());
                drop(alps);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        let homes = Homes::new([("alps".to_owned(), path)]).expect("one name");
        for (_, table) in homes.tables() {
            table.look().expect("a table");
        }
        let site = Site::before(homes, RECIPE, move |head| answer(&fields(head), "it")).await;
        Shop {
            site,
            alps,
            _place: place,
        }
    }

    fn change(&self, position: u64, key: &str) {
        let mut alps = self.alps.lock().expect("no test has failed");
        alps.change(position, Some(vec![Place::of(key)]));
    }

    async fn done(&self, path: &str) -> String {
        self.site.get(path).await.done().to_owned()
    }
}

fn ledger(path: &Path) -> HomeLedger<Kept, u64> {
    let kept = Kept::make(path, Terms::of_home("alps"), 1).expect("a table");
    let mut ledger = HomeLedger::new(Writer::new(kept));
    ledger.begin(1, 5, []);
    ledger.beat(now_ms());
    ledger
}

fn tells(got: &Got) -> bool {
    let fields = ["thorp-evidence", "thorp-reads"];
    fields.iter().any(|field| !got.field(field).is_empty())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_kept_until_what_it_has_read_changes() {
    let shop = Shop::open(|head| {
        let number = head.split(['/', ' ']).nth(3).unwrap_or_default().to_owned();
        format!("Thorp-Evidence: alps=5\nThorp-Reads: alps 1/1.{number}")
    })
    .await;
    assert_eq!(shop.done("/lots/1").await, STORED);
    assert_eq!(shop.done("/lots/1").await, "thorp; hit");
    assert_eq!(shop.done("/lots/2").await, STORED);
    shop.change(6, "1/1.1");
    // The origin still answers as of position 5, and that is not kept any more.
    assert_eq!(shop.done("/lots/1").await, "thorp; fwd=miss");
    assert_eq!(shop.done("/lots/1").await, "thorp; fwd=miss");
    assert_eq!(shop.done("/lots/2").await, "thorp; hit");
    shop.alps.lock().expect("no test has failed").renew(2);
    assert_ne!(shop.done("/lots/2").await, "thorp; hit");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_get_neither_field_and_theirs_count_for_nothing() {
    let fields = "Thorp-Evidence: alps=5\nThorp-Reads: alps 1/1.1\nCache-Control: max-age=60";
    let shop = Shop::open(move |_| fields.to_owned()).await;
    let theirs = "Thorp-Evidence: alps=9\nThorp-Reads: alps 7";
    for (method, path, more) in [
        ("GET", "/lots/1", ""),
        ("GET", "/lots/1", ""),
        ("HEAD", "/lots/1", ""),
        ("GET", "/lots/1", "Range: bytes=0-0"),
        ("GET", "/lots/2", "Range: bytes=0-0"),
        ("GET", "/lots/1", "If-None-Match: *"),
        ("GET", "/lots/1", "Cookie: a=b"),
        ("POST", "/lots/1", "Content-Length: 0"),
        ("GET", "/other", ""),
        ("GET", "/other", ""),
        ("POST", "/other", "Content-Length: 0"),
        ("GET", "/lots/3", "Connection: upgrade\nUpgrade: websocket"),
    ] {
        let got = shop
            .site
            .ask(method, path, &format!("{theirs}\n{more}"))
            .await;
        assert!(
            got.status > 0 && !tells(&got),
            "{method} {path} {more}: {got:?}"
        );
        let head = shop.site.last_head().to_ascii_lowercase();
        assert!(!head.contains("thorp-"), "{method} {path} {more}: {head}");
    }
    // What a client has said is no dependency and no evidence.
    shop.change(6, "7");
    assert_eq!(shop.done("/lots/1").await, "thorp; hit");
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_and_huge_fields_are_counted_and_their_answers_not_kept() {
    let shop = Shop::open(|head| {
        let path = head.split(' ').nth(1).unwrap_or_default();
        let huge = "1/2.3 ".repeat(1_000);
        match path {
            "/lots/1" => String::from("Thorp-Evidence: alps=five\nThorp-Reads: alps 1/1.1"),
            "/lots/2" => format!("Thorp-Evidence: alps=5\nThorp-Reads: alps {}", huge.trim()),
            "/lots/3" => format!(
                "Thorp-Evidence: alps=5\nThorp-Reads: alps {}",
                "1".repeat(40_000)
            ),
            "/lots/4" => String::from("Thorp-Evidence: dale=5\nThorp-Reads: dale 1"),
            "/lots/5" => String::from("Thorp-Evidence: alps=5\nThorp-Evidence: alps=6"),
            "/lots/6" => String::from("Thorp-Reads: alps 1/1.1"),
            _ => String::new(),
        }
    })
    .await;
    for number in [1, 2, 3, 4, 5, 1] {
        let path = format!("/lots/{number}");
        assert_eq!(shop.done(&path).await, UNREADABLE, "{path}");
    }
    assert_eq!(shop.site.unreadable(), 6);
    // Without evidence nothing is wrong, and nothing is kept.
    for number in [6, 7, 6] {
        let path = format!("/lots/{number}");
        assert_eq!(shop.done(&path).await, NO_EVIDENCE, "{path}");
    }
    assert_eq!(shop.site.unreadable(), 6);
    assert_eq!(shop.site.asked(), 9);
}
