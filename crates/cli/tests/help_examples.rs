//! Every help text has an example, and each example runs.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::commands::{Listed, all, examples, for_each_at_once};
use common::scene::{Scene, is_lacking};
use thorp_testing::{eventually, finish};

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
    for_each_at_once(all(), |Listed { command, help, .. }| {
        if is_lacking(&command) {
            return;
        }
        let scene = Scene::of(&command);
        for example in examples(&help) {
            run(&scene, &example);
        }
    });
}

fn run(scene: &Scene, example: &str) {
    let Some(process) = scene.start(example) else {
        let line = scene.with_what_is_here(example);
        let said = finish(scene.shell(&line));
        assert_eq!(said.code, 0, "{example}\n{line}\n{}{}", said.out, said.err);
        return;
    };
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
