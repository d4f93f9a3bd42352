//! Completions load in shells, and manual pages are written for every command.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::thorp;
use std::io::Write;
use std::process::{Command, Stdio};
use thorp_testing::report_skipped;

/// What a shell prints when it has read the script from standard input and then asks what it knows.
fn loaded(shell: &str, first: &str, asks: &str) -> Option<String> {
    let script = thorp().run(&["completions", shell]);
    assert_eq!(script.code, 0, "{}", script.err);
    let script = script.out;
    let mut child = Command::new(shell)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = child.stdin.take().unwrap();
    write!(input, "{first}\n{script}\n{asks}\n").unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{shell}: {output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn bash_completes_commands() {
    let asks =
        "COMP_WORDS=(thorp st); COMP_CWORD=1; _thorp thorp st thorp; echo \"${COMPREPLY[@]}\"";
    assert_eq!(loaded("bash", "", asks).unwrap().trim(), "status");
}

/// What bash offers after these words, in a directory with two contexts.
fn offered(words: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    for name in ["dev", "play"] {
        std::fs::create_dir_all(dir.path().join("contexts").join(name)).unwrap();
    }
    let config = format!("export THORP_CONFIG={}", dir.path().display());
    let (last, before) = (words.len() - 1, words[words.len() - 2]);
    let asks = format!(
        "COMP_WORDS=({}); COMP_CWORD={last}; _thorp thorp '{}' {before}; echo \"${{COMPREPLY[@]}}\"",
        words.join(" "),
        words[last].trim_matches('\''),
    );
    loaded("bash", &config, &asks).unwrap().trim().to_owned()
}

#[test]
fn bash_completes_contexts_and_roles_and_nothing_that_is_hidden() {
    assert_eq!(offered(&["thorp", "ls", "--context", "p"]), "play");
    assert_eq!(offered(&["thorp", "context", "use", "d"]), "dev");
    assert_eq!(offered(&["thorp", "invite", "--role", "op"]), "operator");
    assert_eq!(offered(&["thorp", "demo"]), "demo");
}

#[test]
fn zsh_and_fish_take_their_scripts() {
    let system = "autoload -Uz compinit && compinit -u -D";
    let of_zsh = loaded("zsh", system, "whence -w _thorp");
    let of_fish = loaded("fish", "", "complete -C 'thorp stat'");
    for (shell, said, wanted) in [("zsh", of_zsh, "function"), ("fish", of_fish, "status")] {
        match said {
            Some(said) => assert!(said.contains(wanted), "{shell}: {said}"),
            None => report_skipped(env!("CARGO_CRATE_NAME"), shell),
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("man").display().to_string();
    let said = thorp().run(&["man", &path]);
    assert_eq!(said.code, 0, "{}", said.err);
    for page in [
        "thorp.1",
        "thorp-dev.1",
        "thorp-context-use.1",
        "thorp-put.1",
    ] {
        let text = std::fs::read_to_string(dir.path().join("man").join(page)).unwrap();
        assert!(text.contains(".SH NAME"), "{page}");
    }
}
