//! Who gets an answer at the status port: against real processes (threat 20).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::thorp;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use thorp_testing::{HomeProcess, Said, eventually};

fn invite(home: &HomeProcess, name: &str, role: &str, dir: &Path) -> String {
    let out = dir.join(name).display().to_string();
    let said = thorp().run(&[
        "invite",
        name,
        "--role",
        role,
        "--dir",
        &home.authority,
        "--out",
        &out,
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    out
}

fn status(http: &str, identity: Option<&str>) -> Said {
    let identity = identity.map(|dir| ["--identity", dir]);
    let identity = identity.as_ref().map_or(&[][..], |flags| &flags[..]);
    thorp().run(&[&["status", http, "--json"], identity].concat())
}

fn parsed(said: &Said) -> Value {
    assert_eq!(said.code, 0, "{}", said.err);
    serde_json::from_str(&said.out).unwrap()
}

/// What a node answers to a request without TLS.
fn plain(http: &str) -> String {
    let mut stream = TcpStream::connect(http).unwrap();
    let _ = stream.write_all(b"GET /status HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn an_address_that_others_reach_needs_a_word() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("home");
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7430"] {
        let home = ["home", "--dir", data.to_str().unwrap()];
        let said = thorp().run(&[&home[..], &["--http", address]].concat());
        assert_eq!(said.code, 2, "{}", said.err);
        for flag in ["--http-for-operators", "--http-open-to-everybody"] {
            assert!(said.err.contains(flag), "{}", said.err);
        }
    }
    assert!(!data.exists(), "nothing was made");
    let socket = format!("unix:{}", dir.path().join("home.sock").display());
    for flag in ["--http-for-operators", "--http-open-to-everybody"] {
        let home = ["home", "--dir", data.to_str().unwrap(), "--listen", &socket];
        let flags = ["--until-stdin-closes", "--http", "0.0.0.0:0", flag];
        let said = thorp().run(&[&home[..], &flags].concat());
        assert_eq!(said.code, 0, "{}", said.err);
    }
}

#[test]
fn only_operators_are_answered_by_tls() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home_with(dir.path(), &["--http-for-operators"]);
    let http = home.http.clone();
    let invited = |name, role| invite(&home, name, role, dir.path());

    let answer = plain(&http);
    assert!(!answer.contains("alps"), "{answer}");
    assert_ne!(status(&http, None).code, 0);
    for (name, role) in [("anna", "member"), ("valley", "site"), ("dale", "home")] {
        let said = status(&http, Some(&invited(name, role)));
        assert_eq!(said.code, 1, "{role}: {}", said.err);
        let wanted = format!("the certificate is that of {role} {name}");
        assert!(said.err.contains(&wanted), "{}", said.err);
        assert!(!said.out.contains("alps"), "{}", said.out);
    }
    let other_dir = tempfile::tempdir().unwrap();
    let other = thorp().home(other_dir.path());
    let stranger = invite(&other, "olga", "operator", other_dir.path());
    let said = status(&http, Some(&stranger));
    assert_eq!(said.code, 4, "{}", said.err);

    let olga = invited("olga", "operator");
    let shown = parsed(&status(&http, Some(&olga)));
    assert_eq!(shown["name"], "alps");
    assert!(!shown["node"].as_str().unwrap().is_empty(), "{shown}");
    let by_url = thorp().run(&["status", &format!("https://{http}/"), "--identity", &olga]);
    assert_eq!(by_url.code, 0, "{}", by_url.err);
    let without = thorp().run(&["status", &format!("https://{http}")]);
    assert_eq!(without.code, 2, "{}", without.err);
}

#[test]
fn who_is_no_operator_sees_no_process_ids() {
    let dir = tempfile::tempdir().unwrap();
    for flags in [&[][..], &["--http-open-to-everybody"]] {
        let home = thorp().home_with(dir.path(), flags);
        home.out(&["put", "thorp://alps/notes", "--text", "x", "--root", "a"]);
        let mut watching = home.command(&["watch", "thorp://alps/notes"]);
        let mut watching = watching
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut shown = Value::Null;
        eventually("the watch is a child", || {
            shown = parsed(&status(&home.http, None));
            shown["children"].as_array().unwrap().len() == 1
        });
        watching.kill().unwrap();
        watching.wait().unwrap();
        assert_eq!(shown["children"][0]["name"], "local");
        assert!(shown.get("node").is_none(), "{shown}");
        assert!(shown["children"][0].get("node").is_none(), "{shown}");
    }
}

#[test]
fn silent_connections_keep_nobody_from_the_status() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let silent: Vec<TcpStream> = (0..500)
        .map(|_| TcpStream::connect(&home.http).unwrap())
        .collect();
    let said = thorp().run(&["status", &home.http, "--timeout", "10"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("home alps: well"), "{}", said.out);
    drop(silent);
}
