//! `thorp consistency`, and `thorp get --consistency`.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::dev_village::DevVillage;
use common::schema::Schema;
use common::thorp;
use serde_json::Value;
use thorp_testing::Process;

#[test]
fn all_presets_are_listed_and_any_value_is_explained() {
    let said = thorp().run(&["consistency"]);
    assert_eq!((said.code, &*said.err), (0, ""));
    for words in [
        "master-slave   mode=wr,order=serial",
        "locking        mode=wrlk",
        "time=0 (*)",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    let said = thorp().run(&["consistency", "bounded,time=100ms,mods=5,hard"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("at most 100ms old"), "{}", said.out);
    assert!(said.out.contains("misses at most 5"), "{}", said.out);
    let said = thorp().run(&["consistency", "mode=wr,order=stamp"]);
    assert!(said.out.contains("this build refuses it"), "{}", said.out);
    for (value, preset, is_refused) in [
        ("mode=wr,order=stamp", Value::Null, true),
        ("locking", Value::from("locking"), false),
        ("eventual", "eventual".into(), false),
        ("serializable", "serializable".into(), false),
        ("mode=rd", Value::Null, false),
    ] {
        let said = thorp().run(&["consistency", value, "--json"]);
        let document: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(Schema::named("consistency").check(&document), Ok(()));
        let one = &document["consistencies"][0];
        assert_eq!(one["preset"], preset, "{value}");
        assert_eq!(one["refused"].is_string(), is_refused, "{value}");
    }
}

#[test]
fn what_contradicts_itself_or_is_none_is_wrong_usage() {
    for (value, words) in [
        ("mode=wrlk,soft", "soft does not go with it"),
        ("bounded", "add time= or mods="),
        ("sometimes", "is no preset and no option"),
        ("time=10", "a whole number with us, ms, s, min or h"),
    ] {
        let said = thorp().run(&["consistency", value]);
        assert_eq!(said.code, 2, "{value}: {}", said.err);
        assert!(said.err.contains(words), "{value}: {}", said.err);
        let get = [
            "get",
            "thorp://a/b#1.0.1",
            "--consistency",
            value,
            "--via",
            "127.0.0.1:1",
        ];
        let said = thorp().run(&get);
        assert_eq!(said.code, 2, "found before joining: {}", said.err);
    }
}

#[test]
fn get_reads_as_it_is_told() {
    let village = DevVillage::start();
    let user = &village.user;
    let put = [
        "put",
        "thorp://dev/news",
        "--text",
        "hello",
        "--root",
        "headline",
    ];
    assert_eq!(user.run(&put).code, 0);
    let get = |value: &str| {
        user.run(&[
            "get",
            "thorp://dev/news",
            "--root",
            "headline",
            "--consistency",
            value,
        ])
    };
    for value in [
        "close-to-open",
        "eventual,mode=rd",
        "stream",
        "strict",
        "serializable",
        "locking",
    ] {
        let said = get(value);
        assert_eq!(
            (said.code, &*said.out),
            (0, "hello"),
            "{value}: {}",
            said.err
        );
    }
    // Reading needs no log, so it is asked as a session that only reads.
    assert_eq!(get("eventual").out, "hello");
    let said = get("mode=rd,order=stamp,failures=optimistic");
    assert_eq!(said.code, 0, "who only reads needs no order: {}", said.err);
    let json = [
        "get",
        "thorp://dev/news#1.0.1",
        "--consistency",
        "close-to-open",
        "--json",
    ];
    let said = user.run(&json);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(Schema::named("get").check(&document), Ok(()));
    assert_eq!(document["left_out"], Value::Array(Vec::new()));
}

#[test]
fn put_replaces_as_it_is_told() {
    let village = DevVillage::start();
    let user = &village.user;
    let log = user.path("log").display().to_string();
    let put = |text: &str, more: &[&str]| {
        let put = ["put", "thorp://dev/news", "--root", "headline", "--text"];
        user.run(&[&put[..], &[text], more].concat())
    };
    assert_eq!(put("hello", &[]).code, 0);
    for value in [
        "close-to-open",
        "bounded,time=1s,hard",
        "master-slave",
        "locking",
        "strict",
    ] {
        let said = put(value, &["--consistency", value]);
        assert_eq!(said.code, 0, "{value}: {}", said.err);
        let get = user.run(&["get", "thorp://dev/news", "--root", "headline"]);
        assert_eq!(get.out, value);
    }
    let eventual = ["--consistency", "eventual", "--log", &log, "--json"];
    let said = put("by a log", &eventual);
    assert_eq!((said.code, &*said.err), (0, ""));
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(Schema::named("put").check(&document), Ok(()));
    let counts = ["bytes", "tentative", "rejected"].map(|of| document[of].as_u64());
    assert_eq!(counts, [Some(8), Some(0), Some(0)]);
    let get = user.run(&["get", "thorp://dev/news", "--root", "headline"]);
    assert_eq!(get.out, "by a log");
    let without = put("nowhere", &["--consistency", "eventual"]);
    // The site could have one: only it can tell.
    assert_eq!(without.code, 1);
    assert!(without.err.contains("--log"), "{}", without.err);
}

#[test]
fn inspect_reads_as_it_is_told() {
    let village = DevVillage::start();
    let user = &village.user;
    let put = ["put", "thorp://dev/news", "--text", "hello", "--root", "a"];
    assert_eq!(user.run(&put).code, 0);
    for url in ["thorp://dev/news", "thorp://dev/news#1.0.1"] {
        let inspect = ["inspect", url, "--json"];
        let plain = user.run(&inspect).out;
        for value in [
            "close-to-open",
            "eventual",
            "stream",
            "strict",
            "serializable",
            "mode=rdlk",
        ] {
            let said = user.run(&[&inspect[..], &["--consistency", value]].concat());
            assert_eq!(
                (said.code, &*said.out),
                (0, &*plain),
                "{value}: {}",
                said.err
            );
        }
        let document: Value = serde_json::from_str(&plain).unwrap();
        assert_eq!(Schema::named("inspect").check(&document), Ok(()));
        assert_eq!(document["bytes"], 5);
        assert_eq!(document["left_out"], Value::Array(Vec::new()));
    }
    let start = ["inspect", "thorp://dev/news#1.0.1", "--bytes", "2"];
    let said = user.run(&[&start[..], &["--consistency", "eventual"]].concat());
    assert_eq!(said.out, user.run(&start).out, "{}", said.err);
    assert!(said.out.contains("he\n... 3 more bytes"), "{}", said.out);
}

#[test]
fn a_watch_looks_as_it_is_told_and_takes_no_lock() {
    for value in ["locking", "mode=rdlk"] {
        let watch = ["watch", "thorp://a/b", "--consistency", value];
        let said = thorp().run(&[&watch[..], &["--via", "127.0.0.1:1"]].concat());
        assert_eq!(said.code, 2, "found before joining: {}", said.err);
        assert!(said.err.contains("nobody could write"), "{}", said.err);
    }
    let village = DevVillage::start();
    let user = &village.user;
    let put = |text: &str| {
        let put = ["put", "thorp://dev/news", "--text", text, "--root", "a"];
        assert_eq!(user.run(&put).code, 0);
    };
    put("old");
    for value in ["close-to-open", "eventual", "stream", "strict"] {
        let watch = ["watch", "thorp://dev/news", "--count", "1", "--json"];
        let watch = [&watch[..], &["--consistency", value]].concat();
        let process = Process::start(user.command(&watch));
        process.line_with("watching");
        put(value);
        let line: Value = serde_json::from_str(&process.line()).unwrap();
        assert_eq!(Schema::named("watch").check(&line), Ok(()), "{value}");
        let told = (&line["change"], &line["object"], &line["left_out"]);
        let object = Value::from("thorp://dev/news#1.0.1");
        let nobody = Value::Array(Vec::new());
        assert_eq!(told, (&"changed".into(), &object, &nobody), "{value}");
    }
}

/// The demonstration for people checks itself: processes, two sites, and a link that falls silent.
#[test]
fn the_demo_of_consistency_holds() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().display().to_string();
    let demo = ["demo", "--consistency", "--quick", "--json", "--out", &out];
    let said = thorp().run(&demo);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(Schema::named("demo").check(&document), Ok(()));
    assert_eq!(document["phases"].as_array().unwrap().len(), 5);
}

#[test]
fn the_demo_of_consistency_refuses_a_link_that_outlasts_its_lease() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().display().to_string();
    let said = thorp().run(&["demo", "--consistency", "--rtt-ms", "201", "--out", &out]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("at most 200"), "{}", said.err);
}
