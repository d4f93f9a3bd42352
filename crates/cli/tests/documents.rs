//! Every command prints a document with `--json`, and each document is as its schema in `docs/schema` says.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::commands::{Listed, all, examples, for_each_at_once};
use common::dev_village::{DevVillage, cut_journal, document, stopped_home};
use common::scene::{PRINTS, Scene, is_lacking};
use common::schema::{self, Schema};
use common::{thorp, two_homes};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use thorp_testing::{Process, Said, eventually, finish};

/// What these print is for a shell and for `man`, or is that of other commands: they refuse the flag.
const WITHOUT: [&str; 4] = ["completions", "lock", "man", "shell"];
/// Schemas of no command: that of all failures, and that of all answers of `thorp plan`.
const OF_SEVERAL: [&str; 2] = ["error", "plan-answer"];
/// Maps whose keys are names that users give.
const BY_NAME: [&str; 1] = ["roots"];

#[test]
fn every_command_has_a_schema() {
    let has_document = |listed: &Listed| !listed.is_group && !WITHOUT.contains(&&*listed.command);
    let commands = all().into_iter().filter(has_document);
    let mut wanted: BTreeSet<String> = commands.map(|listed| schema_of(&listed.command)).collect();
    wanted.extend(OF_SEVERAL.map(ToOwned::to_owned));
    let files = fs::read_dir(schema::dir()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let found: BTreeSet<String> = names
        .filter_map(|name| Some(name.strip_suffix(".json")?.to_owned()))
        .collect();
    assert_eq!(found, wanted);
}

/// The examples of each command, with `--json`.
#[test]
fn documents_are_as_their_schemas_say() {
    let all = all().into_iter().filter(|listed| !listed.is_group);
    let all = all.filter(|listed| !WITHOUT.contains(&&*listed.command));
    for_each_at_once(all.collect(), |Listed { command, help, .. }| {
        if is_lacking(&command) {
            return;
        }
        let scene = Scene::of(&command);
        let schema = Schema::named(&schema_of(&command));
        let mut checked = 0;
        for example in examples(&help) {
            let Some(line) = with_json(&command, &example) else {
                continue;
            };
            checked += 1;
            match scene.start(&line) {
                Some(process) if command == "watch" => check_watch(&scene, &process, &schema),
                Some(process) => {
                    assert_is(&schema, &document(&process), &line);
                    assert_eq!(process.terminate(), 0, "{line}");
                }
                None => assert_prints(&scene, &schema, &line),
            }
        }
        assert!(checked > 0, "no example of {command} has a document");
    });
}

#[test]
fn a_wrong_call_of_any_command_is_a_document() {
    let schema = Schema::named("error");
    for Listed { command, .. } in all() {
        let words: Vec<&str> = command.split(' ').collect();
        let said = thorp().run(&[&words[..], &["--json", "--nonsense"]].concat());
        assert_eq!((said.code, &*said.out), (2, ""), "{command}: {}", said.err);
        let document: Value = serde_json::from_str(&said.err).unwrap();
        assert_is(&schema, &document, &command);
        assert_eq!(document["error"]["kind"], "usage", "{command}");
    }
}

/// What was done comes first, then the error that says what is wrong with it. Others are results that no example has.
#[test]
fn what_goes_wrong_leaves_a_document_of_what_was_done() {
    let village = DevVillage::start();
    let user = &village.user;
    let scene = |script: &str| finish(user.shell(script));
    let ready = "thorp invite anna --out anna; thorp put thorp://dev/notes --text x; \
                 printf '\\377' | thorp put thorp://dev/bytes --root r";
    assert_eq!(scene(ready).code, 0);
    let nobody = "thorp ca revoke anna --dir thorp-dev --at unix:/nobody.sock --json";
    assert_both("ca-revoke", &scene(nobody), 4);
    let some = "thorp rm thorp://dev/notes thorp://dev/nosuch --json";
    let removed = assert_both("rm", &scene(some), 5);
    assert_eq!(removed["removed"], json!(["thorp://dev/notes"]));
    let got = assert_one("get", &scene("thorp get thorp://dev/bytes --root r --json"));
    assert_eq!((&got["hex"], &got["text"]), (&json!("ff"), &Value::Null));
    fs::write(user.path(".config/thorp/contexts/dev/context.toml"), "no").unwrap();
    let contexts = assert_one("context-ls", &scene("thorp context ls --json"));
    assert!(contexts[0]["error"].is_string(), "{contexts}");
}

#[test]
fn homes_that_are_damaged_or_away_are_in_the_document() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let home = stopped_home(dir.path());
    cut_journal(&home);
    let salvage = ["salvage", &path("home"), &path("salvaged"), "--json"];
    let salvaged = assert_both("salvage", &thorp().run(&salvage), 3);
    assert!(!salvaged["lost_groups"].is_null(), "{salvaged}");

    fs::create_dir(path("two")).unwrap();
    let mut village = two_homes::Village::start(&dir.path().join("two"));
    village.kill(1);
    let site = ["--via", village.site(), "--identity", village.identity()];
    let mut listed = Value::Null;
    // The site misses the home a little later.
    eventually("dale is missed", || {
        let said = thorp().run(&[&["ls", "--json"], &site[..]].concat());
        listed = assert_both("ls", &said, 4);
        listed["not_reached"][0]["home"] == "dale"
    });
}

/// A document on standard output, and nothing else.
fn assert_one(schema: &str, said: &Said) -> Value {
    assert_eq!((said.code, &*said.err), (0, ""), "{}", said.out);
    assert_prints_as(schema, &said.out)
}

/// A document on standard output, and one of the error on standard error.
fn assert_both(schema: &str, said: &Said, code: i32) -> Value {
    assert_eq!(said.code, code, "{}{}", said.out, said.err);
    let error = assert_prints_as("error", &said.err);
    assert_eq!(error["error"]["code"], code);
    assert_prints_as(schema, &said.out)
}

fn assert_prints_as(schema: &str, text: &str) -> Value {
    let document = serde_json::from_str(text).unwrap();
    assert_is(&Schema::named(schema), &document, schema);
    document
}

#[test]
fn a_document_that_is_not_as_its_schema_says_is_found() {
    let schema = Schema::of(json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "enum": ["a", "b"]},
            "sizes": {"type": ["object", "null"], "additionalProperties": {"type": "integer"}},
            "each": {"type": "array", "items": {"$ref": "#/$defs/each"}},
        },
        "required": ["name"],
        "additionalProperties": false,
        "$defs": {"each": {"anyOf": [{"type": "null"}, {"type": "number"}]}},
    }));
    for good in [
        json!({"name": "a", "sizes": {"x": 1}, "each": [null, 1.5]}),
        json!({"name": "b", "sizes": null}),
    ] {
        assert_eq!(schema.check(&good), Ok(()));
    }
    for (wrong, why) in [
        (json!([]), "$ is []"),
        (json!({}), "$ lacks name"),
        (json!({"name": 1}), "$.name is 1"),
        (json!({"name": "c"}), "$.name is \"c\""),
        (json!({"name": "a", "more": 1}), "$ has more, too"),
        (
            json!({"name": "a", "sizes": {"x": 1.5}}),
            "$.sizes.x is 1.5",
        ),
        (
            json!({"name": "a", "each": [0, "x"]}),
            "$.each[1] is none of",
        ),
    ] {
        let told = schema.check(&wrong).unwrap_err();
        assert!(told.starts_with(why), "{told}");
    }
}

fn schema_of(command: &str) -> String {
    command.replace(' ', "-")
}

/// The example with the flag, and without what reads its output. None: its output is no document.
fn with_json(command: &str, example: &str) -> Option<String> {
    let is_dump = command == "dump" && example.contains('|');
    let is_none = example.contains(PRINTS) || example.contains(" - |") || is_dump;
    let line = example.split(" > ").next().unwrap();
    let (before, line) = match line.split_once("| thorp") {
        Some((before, line)) => (format!("{before}| "), format!("thorp{line}")),
        None => (String::new(), line.to_owned()),
    };
    let line = line.split(" |").next().unwrap().replace(" --json", "");
    let call = format!("thorp {command}");
    (!is_none).then(|| {
        format!(
            "{before}{}",
            line.replacen(&call, &format!("{call} --json"), 1)
        )
    })
}

/// The command prints one document and nothing else.
fn assert_prints(scene: &Scene, schema: &Schema, line: &str) {
    let said = finish(scene.shell(&scene.with_what_is_here(line)));
    assert_eq!((said.code, &*said.err), (0, ""), "{line}: {}", said.out);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_is(schema, &document, line);
}

/// A watch prints a document a line: this one, one of a change, and one of the end of the segment.
fn check_watch(scene: &Scene, process: &Process, schema: &Schema) {
    let run = |script: &str| assert_eq!(finish(scene.shell(script)).code, 0, "{script}");
    let mut next = || {
        let line = process.line();
        let document = serde_json::from_str(&line).unwrap();
        assert_is(schema, &document, "thorp watch");
        document
    };
    let until = |next: &mut dyn FnMut() -> Value, key: &str| while next().get(key).is_none() {};
    until(&mut next, "watching");
    run("thorp put thorp://dev/notes --text more --root greeting");
    until(&mut next, "change");
    run("thorp rm thorp://dev/notes");
    until(&mut next, "removed");
    run("thorp put thorp://dev/notes --text hello --root greeting");
}

fn assert_is(schema: &Schema, document: &Value, of: &str) {
    if let Err(why) = schema.check(document) {
        panic!("{of}: {why}\n{document:#}");
    }
    assert_snake_case(document, of);
}

fn assert_snake_case(value: &Value, of: &str) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let is_snake = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
                assert!(key.bytes().all(is_snake), "{of}: {key}");
                if !BY_NAME.contains(&&**key) {
                    assert_snake_case(value, of);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| assert_snake_case(value, of)),
        _ => {}
    }
}
