//! What commands print (10 to 19).

use super::Edges;
use serde_json::Value;

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
