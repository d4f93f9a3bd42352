//! What answers at a status address may be anything: its numbers, its names, its size and its pace.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::terminal::WholeScreen;
use common::thorp;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use thorp_testing::eventually;

/// Serves each caller as it is told to. Its address.
fn served(serve: impl Fn(&mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for caller in listener.incoming() {
            let mut caller = caller.unwrap();
            let _ = caller.read(&mut [0; 4096]);
            serve(&mut caller);
        }
    });
    address
}

/// Answers all with a document.
fn answering(document: &serde_json::Value) -> String {
    let body = document.to_string();
    served(move |caller| {
        let _ = write!(caller, "HTTP/1.1 200 OK\r\n\r\n{body}");
    })
}

/// A home with the greatest numbers, and with names that command a terminal or do not end.
fn boundless(version: &str) -> serde_json::Value {
    let most = u64::MAX;
    let traffic = serde_json::json!({
        "bytes_sent": most, "bytes_received": most, "frames_sent": most, "frames_received": most,
    });
    let child = |name: &str| {
        serde_json::json!({
            "edge": most, "name": name, "kind": "\u{1b}]0;mine\u{7}", "connected_s": most,
            "queued_bytes": most, "traffic": traffic, "stuck": true,
            "homes": [{"acknowledged": most, "lag": most}],
        })
    };
    serde_json::json!({
        "role": "home", "name": "\u{1b}[2Jalps", "village": "\u{1b}[2J", "version": version,
        "uptime_s": most,
        "health": {"ok": true, "reasons": []},
        "homes": [{"name": "\u{1b}[2J", "position": most, "connected": true}],
        "parents": [{"name": "\u{1b}[2J", "addresses": ["\u{1b}[2J"], "connected": false,
            "wanted": true, "lost_for_s": most, "why": "\u{1b}[2J"}],
        "children": [child("anna"), child(&"b".repeat(100_000))],
        "pages": {"from_memory": most, "redirected": most, "joined": most, "from_parent": most,
            "refetched": most, "fetched_ahead": most, "from_disk": most},
        "up": traffic, "down": traffic,
        "storage": {"bytes": most, "limit_bytes": most, "room": false,
            "lack": {"free_bytes": most, "needed_bytes": most, "of": "volume"}},
        "agreement": {"in_doubt": most, "oldest_s": 1e300, "asked": most, "ended_otherwise": most,
            "resolved_by_member": most, "resolved_by_homes": most, "resolved_by_operators": most},
        "privileges": {"write_leases": most, "read_leases": most, "pulls": most, "locks": most,
            "lock_waiters": most, "answers_withheld": most, "writers_waited_s": 1e300},
    })
}

#[test]
fn no_number_and_no_name_breaks_what_shows_them() {
    let node = answering(&boundless("\u{1b}[2J"));
    for command in [
        vec!["status", &node],
        vec!["status", &node, "--json"],
        vec!["top", &node],
        vec!["top", &node, "--json"],
        vec!["plan", &node],
        vec!["doctor", &node],
    ] {
        let said = thorp().run(&command);
        let all = format!("{}{}", said.out, said.err);
        assert!(
            (0..10).contains(&said.code) && !all.contains("panicked"),
            "{command:?} ended with {}: {all:.2000}",
            said.code
        );
        assert!(
            !all.contains(['\u{1b}', '\u{7}']),
            "{command:?}: {all:.2000}"
        );
    }
}

#[test]
fn the_whole_screen_shows_them_too() {
    let node = answering(&boundless("1"));
    let mut screen = WholeScreen::start(thorp().command(&["top", &node]));
    eventually("it has drawn", || screen.seen().contains("anna"));
    // Rates need two answers.
    thread::sleep(Duration::from_millis(2500));
    assert!(!screen.seen().contains("\u{1b}]0;mine"));
    screen.press("q");
    eventually("it has ended", || screen.ended().is_some());
    assert_eq!(screen.ended(), Some(0), "{:?}", screen.seen());
}

#[test]
fn an_answer_that_does_not_end_is_given_up() {
    let trickle = served(|caller| {
        let _ = write!(caller, "HTTP/1.1 200 OK\r\n\r\n");
        while caller.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(100));
        }
    });
    let flood = served(|caller| {
        let _ = write!(caller, "HTTP/1.1 200 OK\r\n\r\n");
        while caller.write_all(&[b' '; 1 << 16]).is_ok() {}
    });
    for command in ["status", "top"] {
        let said = thorp().run(&[command, &trickle, "--timeout=1"]);
        assert_eq!(said.code, 4, "{command}: {}", said.err);
        assert!(
            said.err.contains("no whole answer"),
            "{command}: {}",
            said.err
        );
        let said = thorp().run(&[command, &flood, "--timeout=60"]);
        assert!(
            said.err.contains("answers more than"),
            "{command}: {}",
            said.err
        );
        assert_ne!(said.code, 0);
    }
}
