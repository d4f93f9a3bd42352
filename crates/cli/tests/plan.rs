//! `thorp plan` asks a node for its status. What it answers is tested with the planner.

mod common;

use common::thorp;
use std::io::{Read, Write};
use thorp_testing::Said;

#[test]
fn who_is_asked_for_measurements_and_is_no_site_is_told_so() {
    let answers = [
        &b"HTTP/1.1 200 OK\r\n\r\n<html>welcome</html>"[..],
        b"HTTP/1.1 404 Not Found\r\n\r\n",
        b"220 ready\r\n",
        b"\xff\xfe",
    ];
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stranger = listener.local_addr().unwrap().to_string();
    let answering = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 512];
            let _ = stream.read(&mut asked).unwrap();
            stream.write_all(answer).unwrap();
        }
    });
    let ask = |node: &str| thorp().run(&["plan", "site", "--from-metrics", node]);
    for what in [
        "answers, but not with the status of a site",
        "answers 404 to /status",
        "answers with something else than HTTP to /status",
        "answers with something else than HTTP to /status",
    ] {
        let said = ask(&stranger);
        assert_eq!(said.code, 1, "{}", said.err);
        assert!(said.err.contains(what), "{what:?} in {}", said.err);
        assert!(said.err.contains("\n  -> "), "{}", said.err);
    }
    answering.join().unwrap();
    let nobody = ask(&stranger);
    assert_eq!(nobody.code, 4, "{}", nobody.err);
    assert!(nobody.err.contains("does not answer"), "{}", nobody.err);
    for node in ["https://localhost:7431/", "ftp://localhost:7431"] {
        let said = ask(node);
        assert_refused(&said, "only plain http is read");
        let todo = "write HOST:PORT or http://HOST:PORT, as http://localhost:7431";
        assert!(said.err.contains(todo), "{}", said.err);
    }
    assert_refused(&ask("nowhere"), "\"nowhere\" is no address");
}

fn assert_refused(said: &Said, what: &str) {
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains(what), "{what:?} in {}", said.err);
    assert!(said.out.is_empty(), "{}", said.out);
}
