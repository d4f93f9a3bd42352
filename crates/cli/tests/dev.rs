//! `thorp dev` and contexts: a village in one process, and commands that find it without flags and variables.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::thorp;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use thorp_client::{Contexts, JoinConfig, Member, Whereabouts};
use thorp_net::{CertificateAuthority, Grant, NodeRole};
use thorp_testing::{Process, Said, finish};

/// A user with an empty directory, who works there.
struct User {
    dir: TempDir,
}

impl User {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        User { dir }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = thorp().command(arguments);
        command
            .env_remove("THORP_CONFIG")
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("TMPDIR", self.dir.path())
            .current_dir(self.dir.path().join("work"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Said {
        finish(self.command(arguments))
    }

    fn out(&self, arguments: &[&str]) -> String {
        let said = self.run(arguments);
        assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
        said.out
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.out(arguments)).unwrap()
    }

    /// A running `thorp dev`, and what it said.
    fn dev(&self, flags: &[&str]) -> (Process, Vec<String>) {
        let mut command = self.command(&["dev", "--until-stdin-closes"]);
        command.args(flags);
        let process = Process::start(command);
        let (said, _) = process.ready();
        (process, said)
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn contexts(&self) -> Contexts {
        Contexts::at(self.dir.path().join("config/thorp"))
    }
}

/// The headline of the issue *A friendly Thorp*.
#[test]
fn the_first_object_takes_two_commands() {
    let user = User::new();
    let begin = Instant::now();
    let (dev, _) = user.dev(&[]);
    let put = user.out(&["put", "thorp://dev/notes", "--text", "hello"]);
    let took = begin.elapsed();
    // Past the harness, which keeps what a test prints.
    let line = format!(
        "thorp dev and thorp put: {:.2} s (target: 5 s)\n",
        took.as_secs_f64()
    );
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    let object = put.trim();
    assert!(object.starts_with("thorp://dev/notes#"), "{put}");
    assert_eq!(user.out(&["get", object]), "hello");

    let own = Path::new(&user.path("config/thorp/contexts/dev")).to_owned();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&own), 0o700);
    assert_eq!(mode(&own.join("identity")), 0o700);
    assert_eq!(mode(&own.join("identity/node.key")), 0o600);
    // A home, and a site: each tells how it is.
    let status = user.json(&["status", "--json"]);
    let roles: Vec<_> = status["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| &node["role"])
        .collect();
    assert_eq!(roles, ["home", "site"]);

    // Killed and started again: the same objects, at the same place for those who kept the addresses.
    let joins = user.contexts().get("dev").unwrap().join;
    drop(dev);
    let unreachable = user.run(&["get", object, "--timeout", "1"]);
    assert_eq!(unreachable.code, 4, "{}", unreachable.err);
    let (dev, _) = user.dev(&[]);
    assert_eq!(user.out(&["get", object]), "hello");
    assert_eq!(user.contexts().get("dev").unwrap().join, joins);
    assert_eq!(dev.terminate(), 0);
}

#[test]
fn somebody_else_joins_with_a_token_and_keeps_a_context() {
    let (user, anna) = (User::new(), User::new());
    let (_dev, _) = user.dev(&[]);
    let object = user.out(&["put", "thorp://dev/notes", "--text", "hello"]);
    let invitation = user.out(&["invite", "anna"]);
    let token = invitation.split_whitespace().last().unwrap();

    // A token that was cut short, and one that says nothing.
    for bad in [&token[..token.len() - 3], "thorp2-", "hello"] {
        let said = anna.run(&["join", bad]);
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(said.err.contains("thorp invite NAME"), "{}", said.err);
    }
    assert!(anna.contexts().names().unwrap().is_empty());

    let said = anna.out(&["join", token]);
    assert!(said.contains("context dev is the current one"), "{said}");
    assert_eq!(anna.out(&["get", object.trim()]), "hello");
    // The same once more changes nothing.
    let again = anna.json(&["join", token, "--json"]);
    assert_eq!(
        (&again["name"], &again["context"]),
        (&"anna".into(), &"dev".into())
    );
    // A token of another village is not spent on a context that is there.
    let other = User::new();
    let (_other, _) = other.dev(&[]);
    let invitation = other.out(&["invite", "anna"]);
    let foreign = invitation.split_whitespace().last().unwrap();
    let said = anna.run(&["join", foreign]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.err.contains("--context"), "{}", said.err);
    assert_eq!(anna.out(&["get", object.trim()]), "hello");
    anna.out(&["join", foreign, "--context", "far"]);
    assert_eq!(anna.contexts().names().unwrap(), ["dev", "far"]);
    // The current one stays, and a flag goes before it.
    let said = anna.run(&["get", object.trim(), "--context", "far"]);
    assert_ne!(said.code, 0, "{}", said.out);
    anna.out(&["context", "use", "far"]);
    let ls = anna.json(&["context", "ls", "--json"]);
    let current: Vec<_> = ls
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["current"])
        .collect();
    assert_eq!(current, [false, true]);
    assert_eq!(
        anna.out(&["get", object.trim(), "--context", "dev"]),
        "hello"
    );

    // One that has expired says so, and leaves nothing.
    let authority = CertificateAuthority::open(user.path("work/thorp-dev/authority")).unwrap();
    let grant = Grant::new(NodeRole::Member, "bert");
    let at = user.contexts().get("dev").unwrap().join[0].parse().unwrap();
    let late = authority.invite(&grant, Duration::ZERO, &[at]).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let bert = User::new();
    let said = bert.run(&["join", &late.to_string()]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.err.contains("the token has expired"), "{}", said.err);
    assert!(bert.contexts().names().unwrap().is_empty());
}

#[test]
fn what_is_temporary_leaves_nothing() {
    let user = User::new();
    let (dev, _) = user.dev(&["--temporary"]);
    user.out(&["put", "thorp://dev/notes", "--text", "hello"]);
    assert_eq!(user.contexts().current().unwrap().as_deref(), Some("dev"));
    assert_eq!(dev.terminate(), 0);
    assert!(user.contexts().names().unwrap().is_empty());
    assert_eq!(user.contexts().current().unwrap(), None);
    let left = || {
        let held = fs::read_dir(user.dir.path()).unwrap();
        let names = held.map(|held| held.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("thorp-dev-")).count()
    };
    assert_eq!(left(), 0);
    let said = user.run(&["ls"]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("thorp dev"), "{}", said.err);

    // Killed: what it left is in nobody's way.
    let (dev, _) = user.dev(&["--temporary"]);
    drop(dev);
    assert_eq!((left(), user.contexts().names().unwrap().len()), (1, 1));
    let (dev, _) = user.dev(&["--temporary"]);
    user.out(&["put", "thorp://dev/notes", "--text", "hello"]);
    assert_eq!(left(), 1);
    assert_eq!(dev.terminate(), 0);
    assert_eq!((left(), user.contexts().names().unwrap().len()), (0, 0));
}

#[test]
fn a_second_village_takes_nothing_from_the_first() {
    let user = User::new();
    let (_dev, _) = user.dev(&[]);
    let object = user.out(&["put", "thorp://dev/notes", "--text", "hello"]);
    let before = user.contexts().get("dev").unwrap();
    for (flags, words) in [
        (&[][..], "runs in thorp-dev already"),
        (&["--dir", "other"], "there is a context dev"),
        (&["--temporary"], "there is a context dev"),
        (&["--name", "site", "--dir", "other"], "take another --name"),
        (
            &["--name", "x/y", "--dir", "other"],
            "no name for a context",
        ),
    ] {
        let said = user.run(&[&["dev"], flags].concat());
        assert_ne!(said.code, 0, "{}", said.out);
        assert!(said.err.contains(words), "{}", said.err);
    }
    assert!(!Path::new(&user.path("work/other")).exists());
    assert_eq!(user.contexts().get("dev").unwrap(), before);
    assert_eq!(user.out(&["get", object.trim()]), "hello");
    let (play, said) = user.dev(&["--name", "play", "--dir", "play"]);
    assert!(
        said.iter()
            .any(|line| line.contains("thorp context use play")),
        "{said:?}"
    );
    let put = [
        "put",
        "thorp://play/notes",
        "--text",
        "2",
        "--context",
        "play",
    ];
    user.out(&put);
    assert_eq!(play.terminate(), 0);
    assert_eq!(user.out(&["get", object.trim()]), "hello");
}

/// A village whose directory was removed leaves a context that the next one replaces.
#[test]
fn a_context_of_a_village_that_is_gone_is_replaced() {
    let user = User::new();
    let (dev, _) = user.dev(&[]);
    assert_eq!(dev.terminate(), 0);
    fs::remove_dir_all(user.path("work/thorp-dev")).unwrap();
    let before = user.contexts().get("dev").unwrap().village;
    let (_dev, _) = user.dev(&["--dir", "elsewhere"]);
    assert_ne!(user.contexts().get("dev").unwrap().village, before);
    user.out(&["put", "thorp://dev/notes", "--text", "hello"]);
}

#[test]
fn a_context_that_is_not_whole_says_what_to_do() {
    let user = User::new();
    let (_dev, _) = user.dev(&[]);
    let said = user.run(&["context", "use", "bev"]);
    assert_eq!(said.code, 2, "{}", said.out);
    assert!(said.err.contains("there are: dev"), "{}", said.err);
    let file = user.path("config/thorp/contexts/dev/context.toml");
    let good = fs::read_to_string(&file).unwrap();
    fs::write(&file, good.replace("village", "vilage")).unwrap();
    let said = user.run(&["ls"]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(
        said.err.contains("`vilage`") && said.err.contains("`village`"),
        "{}",
        said.err
    );
    fs::write(&file, good).unwrap();
    fs::rename(
        user.path("config/thorp/contexts/dev/identity"),
        user.path("config/thorp/contexts/dev/gone"),
    )
    .unwrap();
    let said = user.run(&["ls"]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.err.contains("thorp context rm dev"), "{}", said.err);
    user.out(&["context", "rm", "dev"]);
    assert!(!Path::new(&user.path("config/thorp/contexts/dev")).exists());
    assert_eq!(user.run(&["context", "rm", "dev"]).code, 2);
}

/// A context made of what `thorp invite --out` made; and a program that joins by it.
#[test]
fn a_program_joins_as_the_command_does() {
    let user = User::new();
    let (_dev, _) = user.dev(&[]);
    user.out(&["invite", "anna", "--out", "anna"]);
    let via = &user.contexts().get("dev").unwrap().join[0];
    let add = [
        "context",
        "add",
        "as-anna",
        "--via",
        via,
        "--identity",
        "anna",
    ];
    user.out(&add);
    assert_eq!(user.run(&add).code, 1);
    let context = user.contexts().get("as-anna").unwrap();
    let config = JoinConfig::found(Whereabouts {
        via: context.join,
        identity: context.identity,
    });
    let member = Member::join(config.join_timeout(Duration::from_secs(10))).unwrap();
    member.open_or_create("thorp://dev/notes").unwrap();
    assert!(
        user.out(&["ls", "--context", "as-anna"])
            .contains("thorp://dev/notes")
    );
    let removed = user.json(&["context", "rm", "as-anna", "--json"]);
    assert_eq!(removed["removed"], "as-anna");
    // The identity was not the context's own.
    assert!(Path::new(&user.path("work/anna/node.key")).exists());
}

/// What a village prints, between the marks of its examples: each command of another terminal.
fn examples(said: &[String]) -> Vec<String> {
    let commands = said
        .iter()
        .filter_map(|line| line.strip_prefix("    thorp "));
    let plain = commands.map(|line| line.split("    #").next().unwrap());
    plain.map(|line| line.trim().to_owned()).collect()
}

/// A token once let into the first village, which is the current context's.
#[test]
fn what_a_second_village_prints_leads_there() {
    let user = User::new();
    let (_dev, said) = user.dev(&[]);
    assert!(
        examples(&said)
            .iter()
            .all(|line| !line.contains("--context"))
    );
    let (play, said) = user.dev(&["--name", "play", "--dir", "play"]);
    let examples = examples(&said);
    assert_eq!(examples.len(), 3, "{said:?}");
    let run = |line: &str| {
        let line = line.replace("NAME", "gina");
        user.out(&line.split(' ').collect::<Vec<_>>())
    };
    run(&examples[0]);
    assert!(run(&examples[1]).contains("1 object"));
    let invitation = run(&examples[2]);
    let words = "member gina may join the village of play with this token";
    assert!(invitation.starts_with(words), "{invitation}");
    let gina = User::new();
    let token = invitation.split_whitespace().last().unwrap();
    let said = gina.out(&["join", token]);
    assert!(said.contains("context play"), "{said}");
    gina.out(&["inspect", "thorp://play/notes"]);
    // Without the flag it is the current one's.
    let told = user.json(&["invite", "hans", "--json"]);
    assert_eq!(told["home"], "dev");
    let told = user.json(&["invite", "hans", "--context", "play", "--json"]);
    assert_eq!(told["home"], "play");
    let names = |told: &Value| {
        let nodes = told["nodes"].as_array().unwrap().iter();
        nodes.map(|node| node["name"].clone()).collect::<Vec<_>>()
    };
    let told = user.json(&["status", "--context", "play", "--json"]);
    assert_eq!(names(&told), ["play", "site"]);
    // A name that is not known here, and is that of a context.
    let said = user.run(&["put", "thorp://play/notes", "--text", "x"]);
    assert_eq!(said.code, 5, "{}", said.err);
    for words in ["by context dev", "there is a context play: --context play"] {
        assert!(said.err.contains(words), "{}", said.err);
    }
    assert_eq!(play.terminate(), 0);
}

#[test]
fn a_variable_does_not_choose_the_authority_and_that_is_said() {
    let user = User::new();
    let (_dev, _) = user.dev(&[]);
    let with_via = |arguments: &[&str]| {
        let mut command = user.command(arguments);
        command.env("THORP_VIA", "127.0.0.1:9");
        finish(command)
    };
    let said = with_via(&["invite", "hans"]);
    assert!(said.out.contains("the village of dev"), "{}", said.out);
    assert!(said.err.contains("that of context dev"), "{}", said.err);
    let said = with_via(&["invite", "ida", "--context", "dev"]);
    assert_eq!((said.code, &*said.err), (0, ""));
}

#[test]
fn a_copied_village_says_how_it_is_opened() {
    let user = User::new();
    let (dev, _) = user.dev(&[]);
    let object = user.out(&["put", "thorp://dev/notes", "--text", "hello"]);
    assert_eq!(dev.terminate(), 0);
    let work = user.path("work");
    let copy = "mv thorp-dev old && cp -a old thorp-dev && rm -r old";
    let mut shell = Command::new("sh");
    assert!(
        shell
            .args(["-c", copy])
            .current_dir(&work)
            .status()
            .unwrap()
            .success()
    );
    let (dev, said) = user.dev(&[]);
    let said = said.join("\n");
    assert!(said.contains("the home is closed: "), "{said}");
    assert!(said.contains("run `thorp confirm ./thorp-dev`"), "{said}");
    assert!(!said.contains("thorp put"), "{said}");
    std::thread::sleep(Duration::from_secs(1));
    let log = dev.log();
    let of_site = log.iter().filter(|line| line.contains("turned away"));
    assert!(of_site.count() <= 1, "{log:?}");
    assert_eq!(dev.terminate(), 0);
    user.out(&["confirm", "./thorp-dev"]);
    let (_dev, _) = user.dev(&[]);
    assert_eq!(user.out(&["get", object.trim()]), "hello");
}

#[test]
fn a_village_has_all_its_ports_again() {
    let user = User::new();
    let at = || {
        let mut command = user.command(&["dev", "--until-stdin-closes"]);
        command.arg("--json");
        let process = Process::start(command);
        let text = process.lines_until("}").join("\n");
        let told: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(process.terminate(), 0);
        ["home", "site", "authority", "status"].map(|part| told[part].clone())
    };
    assert_eq!(at(), at());
}

/// Ctrl-C twice.
#[test]
fn a_second_signal_leaves_nothing_of_what_is_temporary() {
    let user = User::new();
    for _ in 0..3 {
        let (dev, _) = user.dev(&["--temporary"]);
        thorp_testing::signal("INT", dev.id());
        thorp_testing::signal("INT", dev.id());
        let code = dev.end();
        assert!([0, 130].contains(&code), "{code}");
        assert!(user.contexts().names().unwrap().is_empty());
        let held = fs::read_dir(user.dir.path()).unwrap();
        let mut names = held.map(|held| held.unwrap().file_name().into_string().unwrap());
        assert!(!names.any(|name| name.starts_with("thorp-dev-")));
    }
}

#[test]
fn who_has_no_authority_and_no_status_address_is_told_so() {
    let (user, anna) = (User::new(), User::new());
    let (_dev, _) = user.dev(&[]);
    let invitation = user.out(&["invite", "anna"]);
    anna.out(&["join", invitation.split_whitespace().last().unwrap()]);
    for arguments in [
        &["ca", "list"][..],
        &["ca", "revoke", "ben", "--at", "127.0.0.1:9"],
        &["invite", "ben"],
    ] {
        let said = anna.run(arguments);
        assert_eq!(said.code, 5, "{arguments:?}: {}", said.err);
        assert!(
            said.err.contains("ask whoever runs that village"),
            "{}",
            said.err
        );
    }
    let said = anna.run(&["status"]);
    // Some other test may run a node at the usual port.
    if said.code == 4 {
        let words = "context dev knows no address where a node serves its status";
        assert!(said.err.contains(words), "{}", said.err);
        assert!(said.err.contains("`thorp doctor`"), "{}", said.err);
    }
    // The village's own user needs no directory.
    assert!(user.out(&["ca", "list"]).contains("anna"));
    let (at, contexts) = (user.contexts().get("dev").unwrap().join, user.contexts());
    user.out(&["ca", "revoke", "anna", "--at", &at[0]]);
    user.out(&["ca", "init", "elsewhere", "--from", "thorp-dev"]);
    let said = user.run(&["ca", "list"]);
    assert_eq!(said.code, 5, "{}", said.out);
    assert!(said.err.contains("any more"), "{}", said.err);
    assert!(contexts.get("dev").unwrap().authority.is_some());
}

#[test]
fn an_invitation_into_a_directory_says_whether_it_is_new() {
    let user = User::new();
    let (_dev, _) = user.dev(&[]);
    for wanted in ["new", "unchanged"] {
        let said = user.out(&["invite", "anna", "--out", "anna"]);
        let words = format!("the certificate for the village of dev is {wanted}");
        assert!(said.starts_with(&words), "{said}");
        let told = user.json(&["invite", "bert", "--out", "bert", "--json"]);
        assert_eq!(told["certificate"], wanted);
    }
}

#[test]
fn a_group_without_its_sign_is_said_to_be_a_node() {
    let user = User::new();
    let (_dev, _) = user.dev(&[]);
    user.out(&["put", "thorp://dev/plans", "--text", "plan"]);
    let grant = |subject| user.run(&["rights", "grant", "thorp://dev/plans", "read", subject]);
    let said = grant("members");
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.err.contains("with @members it is the group"),
        "{}",
        said.err
    );
    assert_eq!(grant("anna").err, "");
}

/// The commonest of all: the machine was started anew, or the terminal was closed.
#[test]
fn who_finds_nobody_is_told_how_the_village_is_started_again() {
    let user = User::new();
    let (dev, _) = user.dev(&[]);
    assert_eq!(dev.terminate(), 0);
    for command in [&["ls", "--timeout", "1"][..], &["status"]] {
        let said = user.run(command);
        assert_eq!(said.code, 4, "{command:?}: {}", said.err);
        assert!(
            said.err.contains("to run that village: `thorp dev --dir "),
            "{}",
            said.err
        );
    }
}
