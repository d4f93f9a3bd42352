//! What commands print (10 to 19).

use super::Edges;
use serde_json::Value;
use thorp_client::{JoinConfig, Member};
use thorp_testing::{PATIENCE, Process, eventually};

/// 10: a document for each node, with keys such as `AcceptedOnPageGrounds`.
#[test]
fn edge_10_keys_are_in_snake_case() {
    let edges = Edges::new();
    let said = edges.run(&["status", &edges.village.home(0).http, "--json"]);
    let status: Value = serde_json::from_str(&said.out).unwrap();
    let mut keys = Vec::new();
    keys_of(&status, &mut keys);
    let is_snake = |key: &&String| {
        key.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    assert!(keys.len() > 50, "{keys:?}");
    assert_eq!(keys.iter().find(|key| !is_snake(key)), None);
}

fn keys_of(value: &Value, keys: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                keys.push(key.clone());
                keys_of(value, keys);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys_of(value, keys)),
        _ => {}
    }
}

/// 11: position and slot were texts, and the page a number. 12: a line did not say what had happened, and `thorp get`
/// refused the name in it.
#[test]
fn edge_11_and_12_a_watch_says_what_happened_and_to_what() {
    let edges = Edges::new();
    edges.out(&[
        "put",
        "thorp://alps/notes",
        "--text",
        "0",
        "--root",
        "first",
    ]);
    let watch = |flags: &[&str]| {
        let command = edges.command(&[&["watch", "thorp://alps/notes"], flags].concat());
        Process::start(command)
    };
    let (words, documents) = (watch(&[]), watch(&["--json"]));
    // They say that they are there to standard error: so something is made until both have told of it.
    let is_told = |line: &String| line.contains("created");
    let (mut by_words, mut by_documents) = (Vec::new(), Vec::new());
    eventually("both have begun", || {
        edges.out(&["put", "thorp://alps/notes", "--text", "x"]);
        by_words.extend(words.lines_now());
        by_documents.extend(documents.lines_now());
        by_words.iter().any(is_told) && by_documents.iter().any(is_told)
    });
    let line = by_words.iter().find(|line| is_told(line)).unwrap();
    let made = line.split_whitespace().last().unwrap().to_owned();
    assert_eq!(edges.out(&["get", &made]), "x");
    edges.out(&["put", &made, "--text", "y"]);
    words.line_with(&format!("changed  {made}"));
    let line = documents.line_with("\"changed\"");
    let told: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&told["change"], &told["object"]),
        (&"changed".into(), &made.clone().into())
    );
    for key in ["position", "page", "slot"] {
        assert!(told[key].is_u64(), "{line}");
    }
    let config = JoinConfig::new(edges.village.site()).identity(edges.village.identity());
    let member = Member::join(config.join_timeout(PATIENCE)).unwrap();
    let reference = member.parse(&made).unwrap();
    member.transact(|tx| tx.delete(&reference)).unwrap();
    words.line_with(&format!("deleted  {made}"));
}

/// 13: some commands printed words only.
#[test]
fn edge_13_commands_print_one_document() {
    let edges = Edges::new();
    let document = |arguments: &[&str]| -> Value {
        let said = edges.run(&[arguments, &["--json"]].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(said.err, "");
        serde_json::from_str(&said.out).unwrap()
    };
    let put = document(&[
        "put",
        "thorp://alps/notes",
        "--text",
        "hello",
        "--root",
        "x",
    ]);
    assert_eq!(put["bytes"], 5);
    let object = put["object"].as_str().unwrap();
    let got = document(&["get", object]);
    assert_eq!(
        (&got["object"], &got["text"], &got["hex"]),
        (&put["object"], &"hello".into(), &Value::Null)
    );
    let file = edges.path("bytes");
    std::fs::write(&file, [0xff, 0x00]).unwrap();
    document(&["put", object, &file]);
    assert_eq!(
        document(&["get", "thorp://alps/notes", "--root", "x"])["hex"],
        "ff00"
    );
    assert_eq!(
        document(&["rm", "thorp://alps/notes"])["removed"][0],
        "thorp://alps/notes"
    );
    let model = edges.path("house.ifc");
    std::fs::write(&model, crate::common::MODEL).unwrap();
    assert_eq!(
        document(&["ifc", "import", &model, "thorp://alps/house"])["entities"],
        1
    );
    assert_eq!(
        document(&["ifc", "export", "thorp://alps/house", &model])["entities"],
        1
    );
    // Errors are documents, too, whatever is wrong.
    for (code, kind, wrong) in [
        (
            5,
            "not_there",
            &["get", "thorp://alps/no#1.0.1", "--json"][..],
        ),
        (2, "usage", &["get", "x", "--json"]),
        (2, "usage", &["get", "--json", "--nonsense"]),
        (
            4,
            "unreachable",
            &["ls", "--json", "--via=unix:/nobody.sock", "--timeout=1"],
        ),
    ] {
        let said = edges.run(wrong);
        assert_eq!((said.code, &*said.out), (code, ""));
        let told: Value = serde_json::from_str(&said.err).unwrap();
        let error = &told["error"];
        assert_eq!(
            (&error["kind"], &error["code"]),
            (&kind.into(), &code.into()),
            "{}",
            said.err
        );
        let message = error["message"].as_str().unwrap();
        assert!(
            !message.contains("->") && error["advice"][0].is_string(),
            "{message}"
        );
    }
}

/// 14: a home served nothing from memory, whatever it did.
#[test]
fn edge_14_a_home_counts_what_it_serves_from_memory() {
    let edges = Edges::new();
    let made = edges.out(&["put", "thorp://alps/notes", "--text", "x"]);
    let home = edges.village.home(0);
    for _ in 0..3 {
        assert_eq!(home.out(&["get", made.trim()]), "x");
    }
    let said = edges.run(&["status", &home.http, "--json"]);
    let status: Value = serde_json::from_str(&said.out).unwrap();
    assert!(
        status["pages"]["from_memory"].as_u64().unwrap() >= 3,
        "{}",
        said.out
    );
    let shown = edges.out(&["status", &home.http]);
    assert!(!shown.contains("0.0% from memory"), "{shown}");
}
