//! Every help text has an example, and each example runs.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

#[path = "../common/mod.rs"]
mod common;
mod scene;

use common::commands::{Listed, all};
use scene::Scene;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;
use thorp_testing::{Process, eventually, finish};

/// Commands that go on until they are stopped, and what a test adds to them: no port that another test could have, and
/// no life after the test's.
const GOES_ON: [(&str, &str); 5] = [
    ("thorp dev", "--until-stdin-closes"),
    (
        "thorp home",
        "--listen 127.0.0.1:0 --http 127.0.0.1:0 --until-stdin-closes",
    ),
    (
        "thorp site",
        "--listen 127.0.0.1:0 --http 127.0.0.1:0 --until-stdin-closes",
    ),
    ("thorp ca serve", "--until-stdin-closes"),
    ("thorp watch", ""),
];

/// Commands run at the same time.
const AT_ONCE: usize = 3;

#[test]
fn every_help_text_has_examples_of_its_own_command() {
    for Listed { command, help, .. } in all() {
        let examples = examples(&help);
        assert!(
            !examples.is_empty(),
            "thorp {command} --help has no example"
        );
        for example in examples {
            assert!(
                example.contains(&format!("thorp {command}")),
                "thorp {command} --help: {example}"
            );
        }
    }
}

#[test]
fn every_example_runs() {
    let all = Mutex::new(VecDeque::from(all()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = all.lock().unwrap().pop_front();
                    let Some(Listed { command, help, .. }) = next else {
                        break;
                    };
                    let scene = Scene::of(&command);
                    for example in examples(&help) {
                        run(&scene, &example);
                    }
                }
            });
        }
    });
}

/// The lines under *Examples*.
fn examples(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let example = |line: &str| {
        let example = line.strip_prefix("  ");
        example
            .unwrap_or_else(|| panic!("an example is too long for a line of help: {line}"))
            .to_owned()
    };
    lines.map(example).collect()
}

fn run(scene: &Scene, example: &str) {
    let line = scene.with_what_is_here(example);
    let goes_on = GOES_ON
        .iter()
        .find(|(begins, _)| example.starts_with(begins) && !example.contains("--print-config"));
    let Some((_, more)) = goes_on else {
        let said = finish(scene.shell(&line));
        assert_eq!(said.code, 0, "{example}\n{line}\n{}{}", said.out, said.err);
        return;
    };
    // The comment goes, so that more can be added.
    let line = line.split("  #").next().unwrap();
    let process = Process::start(scene.shell(&format!("exec {line} {more}")));
    let mut lines = Vec::new();
    let is_there = |line: &String| line.starts_with("ready") || line.contains("watching");
    eventually(example, || {
        lines.extend(process.lines_now());
        lines.iter().chain(&process.log()).any(is_there)
    });
    let code = process.terminate();
    // A watch ends by the signal, as any program does.
    let wanted = if example.starts_with("thorp watch") {
        -1
    } else {
        0
    };
    assert_eq!(code, wanted, "{example}");
}
