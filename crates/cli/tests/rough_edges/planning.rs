//! `thorp plan` (15 to 19).

use crate::common::thorp;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

fn plan(arguments: &[&str]) -> String {
    let said = thorp().run(&[&["plan"], arguments].concat());
    assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
    said.out
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&plan(&[arguments, &["--json"]].concat())).unwrap()
}

/// A cell: section, table, row and column.
fn cell(answer: &Value, [section, table, row, column]: [usize; 4]) -> &Value {
    &answer["sections"][section]["tables"][table]["rows"][row][column]
}

/// The value has more digits than the text shows.
fn assert_exact(cell: &Value, unit: &str) {
    let value = cell["value"].as_f64().unwrap();
    assert_eq!(cell["unit"], unit, "{cell}");
    assert_ne!(value, (value * 1e4).round() / 1e4, "{cell}");
}

/// 15: `value` was what `text` rounds it to, 100.0 for 99.83 %.
#[test]
fn edge_15_values_are_exact_and_texts_are_rounded() {
    let memory = json(&["memory", "--machines", "24"]);
    for (at, unit) in [([0, 0, 0, 1], "s"), ([1, 0, 0, 2], "%")] {
        assert_exact(cell(&memory, at), unit);
    }
    let kinds = json(&["memory", "--mix", "16:5,8:1"]);
    assert_exact(cell(&kinds, [0, 0, 0, 4]), "%");
    let web = json(&["web", "--sweep", "alpha=0.6:1.2"]);
    for (at, unit) in [
        ([0, 0, 0, 1], "%"),
        ([0, 0, 0, 2], "s"),
        ([0, 0, 0, 4], ""),
        ([0, 0, 0, 5], "/s"),
        ([1, 0, 0, 1], "s"),
        ([3, 0, 0, 1], "%"),
        ([4, 0, 0, 1], "%"),
    ] {
        assert_exact(cell(&web, at), unit);
    }
    let valid = cell(&web, [0, 0, 0, 6]);
    assert!(valid["value"].as_f64().unwrap() % 1e6 != 0.0, "{valid}");
    assert_exact(cell(&json(&["prefetch"]), [0, 0, 0, 3]), "");
}

/// Answers requests for the status of a site that is 0.13434 ms from its home, and returns its address.
fn site(requests: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for _ in 0..requests {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 512]).unwrap();
            let answer = format!("HTTP/1.1 200 OK\r\n\r\n{STATUS}");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    address
}

const STATUS: &str = r#"{"role": "site", "name": "x", "parents": [{"connected": true, "round_trip_ms": 0.13434}],
    "children": [{"kind": "member"}, {"kind": "member"}, {"kind": "member"}],
    "pages": {"from_memory": 10, "redirected": 3, "joined": 5, "from_parent": 7, "refetched": 3}}"#;

/// 16: times were shown as `0.13434 ms`.
#[test]
fn edge_16_a_measured_time_has_three_digits() {
    let node = site(2);
    let shown = plan(&["site", "--from-metrics", &node]);
    assert!(shown.contains("a site 0.134 ms from the home"), "{shown}");
    assert!(!shown.contains("0.1343"), "{shown}");
    let told = json(&["site", "--from-metrics", &node]);
    let assumed = told["assumptions"].as_array().unwrap();
    let round_trip = assumed
        .iter()
        .find(|assumed| assumed["name"].as_str().unwrap().contains("round trip"));
    let round_trip = &round_trip.unwrap()["value"];
    assert_eq!(round_trip["text"], "0.134 ms");
    let value_s = round_trip["value"].as_f64().unwrap();
    assert!((value_s - 0.000_134_34).abs() < 1e-12, "{round_trip}");
}

/// 17: each command was counted as a member.
#[test]
fn edge_17_who_records_several_commands_in_one_file_is_one_member() {
    let dir = tempfile::tempdir().unwrap();
    let recorded = |name: &str, commands: u32| {
        let row = |at| format!("{at},{name}-{},read,7/{},8192\n", at % commands, at % 9);
        let rows: String = (0..90).map(row).collect();
        let path = dir.path().join(format!("{name}.csv"));
        fs::write(&path, format!("time_us,client,op,object,size\n{rows}")).unwrap();
        path.display().to_string()
    };
    let (anna, ben) = (recorded("anna", 3), recorded("ben", 4));
    let both = plan(&["replay", &anna, &ben]);
    assert!(both.contains(" 2 members that share"), "{both}");
    let more = plan(&["replay", &anna, &ben, "--clients", "5"]);
    assert!(more.contains(" 5 members that share"), "{more}");
    let alone = plan(&["replay", &anna]);
    assert!(alone.contains("one member has nobody"), "{alone}");
    let named = ["--deal", "named"];
    let named = plan(&[&["replay", &anna, &ben], &named[..]].concat());
    assert!(named.contains(" 7 members that share"), "{named}");
}

/// 18: `--home-pages 5%` was shown, and other pages were used.
#[test]
fn edge_18_the_homes_memory_is_shown_as_it_was_used() {
    let shown = replayed(&["--client-pages", "20", "--clients", "2"]);
    let line = shown
        .lines()
        .find(|line| line.contains("the home's memory"));
    let line = line.unwrap_or_else(|| panic!("{shown}"));
    assert!(line.contains("20") && !line.contains("5%"), "{line}");
}

/// 19: *1 member, each alone*.
#[test]
fn edge_19_one_member_is_not_each() {
    let shown = replayed(&["--clients", "1", "--policy", "alone"]);
    assert!(shown.contains("One member, alone, answers"), "{shown}");
    assert!(!shown.contains("1 member, each alone"), "{shown}");
}

/// A trace in which each page is asked for twice.
fn replayed(flags: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace.txt");
    let pages: String = (0..200).map(|n| format!("page-{}\n", n % 100)).collect();
    std::fs::write(&trace, pages).unwrap();
    let plan = ["plan", "replay", trace.to_str().unwrap()];
    let said = thorp().run(&[&plan[..], flags].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    said.out
}
