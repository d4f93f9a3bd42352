//! `thorp shell`: scripts of it, and a person at a terminal.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::dev_village::{DevVillage, User};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use thorp_testing::{PATIENCE, Said, finish};

/// What a shell says that gets these lines from a pipe.
fn shell(user: &User, script: &str, flags: &[&str]) -> Said {
    fs::write(user.path("script"), script).unwrap();
    let flags = flags.join(" ");
    finish(user.shell(&format!("thorp shell {flags} < script")))
}

#[test]
fn a_script_runs_commands_at_a_place() {
    let village = DevVillage::start();
    let user = &village.user;
    let script = "
        # The first line of a script may be a comment.
        put thorp://dev/notes --text 'hello  there' --root greeting
        cd thorp://dev/notes
        pwd
        get #1.0.1
        put --text \"it's a note\"
        get '#2.0.1'
        get --root greeting --range 0-4
        get --range 0-1 -- #1.0.1
        root ls
        cd ../plans
        put . --text plan
        put drafts/first --text draft
        cp #1.0.1 /archive --as-root plan
        cd /
        ls
        get archive --root plan
        exit
        no command
    ";
    let said = shell(user, script, &[]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    for told in [
        "thorp://dev/notes#1.0.1\nthorp://dev/notes\nhello  there",
        "thorp://dev/notes#2.0.1\nit's a notehellohe",
        "greeting  thorp://dev/notes#1.0.1",
        "thorp://dev/plans#1.0.1\nthorp://dev/plans/drafts/first#1.0.1\nthorp://dev/archive#1.0.1\n",
        "thorp://dev/plans/drafts/first",
    ] {
        assert!(said.out.contains(told), "{told}\n{}", said.out);
    }
    assert!(said.out.ends_with("\nplan"), "{}", said.out);
}

#[test]
fn a_script_ends_at_the_first_failure() {
    let village = DevVillage::start();
    let user = &village.user;
    let script =
        "cd thorp://dev/notes\nput --text a\nget #7.7.7\nput --text b\nget --root nosuch\n";
    let said = shell(user, script, &[]);
    assert_eq!(said.code, 5, "{}", said.err);
    assert_eq!(said.out.lines().count(), 1, "{}", said.out);
    assert!(
        said.err.contains("line 3 failed: get #7.7.7"),
        "{}",
        said.err
    );
    assert!(said.err.contains("--keep-going"), "{}", said.err);

    let said = shell(user, script, &["--keep-going"]);
    assert_eq!(said.code, 5, "{}", said.err);
    assert_eq!(said.out.lines().count(), 2, "{}", said.out);
    assert!(said.err.contains("has no root nosuch"), "{}", said.err);
    assert!(said.err.contains("2 commands failed"), "{}", said.err);
}

#[test]
fn documents_of_a_script_are_whole() {
    let village = DevVillage::start();
    let user = &village.user;
    let script = "cd thorp://dev/notes\nput --text hello --json\nget --root nosuch --json\n";
    let said = shell(user, script, &[]);
    assert_eq!(said.code, 5, "{}", said.err);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(document["object"], "thorp://dev/notes#1.0.1");
    let document: Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(document["error"]["kind"], "not_there");
    // The flag may also be a word.
    let said = shell(user, "put thorp://dev/notes --text --json", &[]);
    assert_eq!(said.code, 2, "{}{}", said.out, said.err);
}

#[test]
fn what_makes_no_sense_in_a_shell_is_refused() {
    let village = DevVillage::start();
    let user = &village.user;
    for (line, words) in [
        ("home", "it runs a server"),
        ("site --dir x", "it runs a server"),
        ("dev", "a village of its own"),
        ("demo", "a village of its own"),
        ("shell", "one is enough"),
        ("shell-line get x", "one is enough"),
        ("--help", "a line begins with a command"),
        ("put thorp://dev/notes", "has no standard input"),
        ("put thorp://dev/notes -", "has no standard input"),
        ("load - thorp://dev/notes", "has no standard input"),
        ("ifc import - thorp://dev/house", "has no standard input"),
        ("put thorp://dev/notes --text 'a", "a quote is not closed"),
        ("cd notes", "does not begin with thorp://"),
        ("cd thorp://dev/notes#1.0.1", "names an object"),
        ("cd a b", "too many words"),
        ("exit now", "too many words"),
        ("frobnicate", "unrecognized subcommand"),
        ("rm", "required arguments"),
        ("get thorp://dev/notes > file", "unexpected argument '>'"),
    ] {
        let said = shell(user, line, &[]);
        assert_eq!(said.code, 2, "{line}: {}{}", said.out, said.err);
        assert!(said.err.contains(words), "{line}: {}", said.err);
        assert_eq!(said.out, "", "{line}");
    }
    // Nothing that deletes has a name by default.
    let said = shell(
        user,
        "put thorp://dev/notes --text a\ncd thorp://dev/notes\nrm",
        &[],
    );
    assert_eq!(said.code, 2, "{}", said.err);
    let help = shell(user, "help", &[]).out;
    for told in ["cd thorp://HOME/path", "\n  get ", "\n  watch "] {
        assert!(help.contains(told), "{help}");
    }
    for hidden in ["\n  home ", "\n  shell ", "\n  shell-line"] {
        assert!(!help.contains(hidden), "{help}");
    }
    assert!(
        shell(user, "help get", &[])
            .out
            .contains("thorp get thorp://")
    );
}

/// The current context changes while a shell runs.
#[test]
fn a_shell_stays_in_its_village() {
    let village = DevVillage::start();
    let user = &village.user;
    let script =
        "put thorp://dev/notes --text hello\ncontext rm dev\nget thorp://dev/notes#1.0.1\n";
    // The context keeps the identity.
    let identity = "invite anna --out anna\n";
    assert_eq!(shell(user, identity, &[]).code, 0);
    let said = shell(user, script, &["--identity", "anna"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.ends_with("hello"), "{}", said.out);
    let said = User::new().run(&["shell"]);
    assert_eq!(said.code, 2, "{}", said.err);
    // Flags of the shell are those of its commands, unless these say it.
    let nobody = [
        "--via",
        "unix:/nobody.sock",
        "--identity",
        "anna",
        "--timeout",
        "1",
    ];
    let begun = Instant::now();
    assert_eq!(shell(user, "ls", &nobody).code, 4);
    assert!(begun.elapsed() < Duration::from_secs(8));
    let site = format!("ls --via {}", village.address("site"));
    assert_eq!(shell(user, &site, &nobody).code, 0);
}

/// A shell at a terminal, and what is seen there.
struct Terminal {
    child: Child,
    seen: String,
    more: Receiver<String>,
}

impl Terminal {
    /// None: the machine has no `script` of util-linux.
    fn start(user: &User, flags: &str) -> Option<Self> {
        // `script` runs this in $SHELL. A dash that waited for its child would end with 130 after a Ctrl-C.
        let line = format!("exec script -qec 'exec thorp shell {flags}' /dev/null");
        let mut command = user.shell(&line);
        command.env("SHELL", "/bin/sh");
        if !Command::new("script")
            .arg("--version")
            .output()
            .is_ok_and(|said| said.status.success())
        {
            return None;
        }
        command.env("TERM", "xterm");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let (sender, more) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                if sender.send(text).is_err() {
                    return;
                }
            }
        });
        Some(Terminal {
            child,
            seen: String::new(),
            more,
        })
    }

    fn types(&mut self, text: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// Waits until this is seen, and forgets what came before.
    fn sees(&mut self, text: &str) {
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            let more = self.more.recv_timeout(PATIENCE);
            let more = more.unwrap_or_else(|_| panic!("{text:?} is not in {:?}", self.seen));
            self.seen.push_str(&more);
        }
    }

    fn end(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap()
    }
}

#[test]
fn a_person_at_a_terminal_goes_on_after_failures() {
    let village = DevVillage::start();
    let Some(mut terminal) = Terminal::start(&village.user, "thorp://dev/notes") else {
        return common::skip("script (of util-linux)");
    };
    terminal.sees("thorp://dev/notes> ");
    terminal.types("put --text hello\r");
    terminal.sees("thorp://dev/notes#1.0.1");
    terminal.types("get --root nosuch\r");
    terminal.sees("has no root nosuch");
    terminal.sees("thorp://dev/notes> ");
    // The line before the last one, changed.
    terminal.types("\x1b[A\x1b[A again\r");
    terminal.sees("\nthorp://dev/notes/again#1.0.1");
    terminal.sees("thorp://dev/notes> ");
    // A line that is dropped.
    terminal.types("rm .\x03");
    terminal.sees("thorp://dev/notes> ");
    // Ctrl-C ends the command, and not the shell.
    terminal.types("watch\r");
    terminal.sees("watching thorp://dev/notes");
    terminal.types("\x03");
    terminal.sees("thorp://dev/notes> ");
    // A command that reads standard input has the terminal.
    terminal.types("put --root typed\r");
    thread::sleep(Duration::from_millis(300));
    terminal.types("by hand\r\x04");
    terminal.sees("thorp://dev/notes#");
    terminal.sees("thorp://dev/notes> ");
    terminal.types("get --root typed\r");
    terminal.sees("by hand");
    terminal.sees("thorp://dev/notes> ");
    // Half a line stays there: the prompt goes to the next one.
    terminal.types("get --root typed --range 0-1\r");
    terminal.sees("\nby    ");
    terminal.sees("thorp://dev/notes> ");
    terminal.types("cd\r");
    terminal.sees("thorp> ");
    terminal.types("\x04");
    assert_eq!(terminal.end(), 0);
}
