//! What goes wrong is told in one line, and what to do in another; the exit code tells it to scripts.

mod common;

use common::{Home, Said, finish, run, thorp};
use std::fs;
use std::path::Path;

/// One line what happened, one line what to do.
fn assert_refused(said: &Said, code: i32, what: &str) {
    assert_eq!(said.code, code, "{}", said.err);
    assert!(said.err.contains(what), "{what:?} in {}", said.err);
    assert!(said.err.contains("\n  -> "), "what to do: {}", said.err);
    assert!(said.out.is_empty(), "{}", said.out);
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are text")
}

#[test]
fn help_and_version_say_what_there_is() {
    let help = run(&["--help"]);
    assert_eq!(help.code, 0);
    for word in [
        "home",
        "site",
        "invite",
        "check",
        "status",
        "watch",
        "demo",
        "Exit codes:",
        "THORP_VIA",
    ] {
        assert!(help.out.contains(word), "{word} in {}", help.out);
    }
    assert!(!help.out.contains("demo-member"));
    let version = run(&["--version"]);
    assert_eq!(
        version.out.trim(),
        concat!("thorp ", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn a_wrong_flag_is_wrong_usage() {
    for wrong in [
        &["home", "--lsiten", "x"][..],
        &["home", "--listen", "nowhere"],
        &["site", "--home", "alps"],
        &["home", "--limit-bytes", "much"],
        &["demo", "--rtt-ms", "-1"],
        &["nothing"],
    ] {
        let said = run(wrong);
        assert_eq!(said.code, 2, "{wrong:?}: {}", said.err);
        assert!(said.err.starts_with("error: "), "{}", said.err);
    }
    assert!(
        run(&["home", "--lsiten", "x"]).err.contains("--listen"),
        "a suggestion"
    );
}

#[test]
fn who_says_nothing_of_where_is_told_how() {
    assert_refused(&run(&["ls"]), 2, "no site or home was named");
    assert_refused(
        &run(&["ls", "--via", "unix:/no.sock"]),
        2,
        "no identity was given",
    );
    assert_refused(&run(&["get", "thorp://alps/a"]), 2, "is a segment");
    assert_refused(&run(&["rm", "thorp://alps/a#1.0.1"]), 2, "is an object");
}

#[test]
fn a_configuration_that_cannot_be_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("home.toml");
    let missing = run(&["home", "--config", text(&file)]);
    assert_refused(&missing, 2, "home.toml");
    fs::write(&file, "nmae = \"alps\"\n").unwrap();
    let misspelt = run(&["home", "--config", text(&file)]);
    assert_refused(&misspelt, 2, "nmae");
    assert!(misspelt.err.contains("line 1"), "{}", misspelt.err);
    let alone = run(&["site", "--dir", text(dir.path())]);
    assert_refused(&alone, 2, "parent");
}

#[test]
fn flags_override_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("home.toml");
    fs::write(&file, "name = \"alps\"\n[store]\nlimit = \"1 GiB\"\n").unwrap();
    let said = run(&[
        "home",
        "--config",
        text(&file),
        "--limit-bytes",
        "2 GiB",
        "--print-config",
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.contains("name = \"alps\"") && said.out.contains("limit = \"2 GiB\""),
        "{}",
        said.out
    );
}

#[test]
fn a_directory_of_something_else_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    fs::create_dir(&store).unwrap();
    fs::write(store.join("letters.txt"), "dear").unwrap();
    let said = run(&["home", "--dir", text(dir.path()), "--listen", "127.0.0.1:0"]);
    assert_refused(&said, 1, "letters.txt");
    assert_refused(&run(&["check", text(dir.path())]), 1, "letters.txt");
    assert_refused(&run(&["check", "/nowhere/at/all"]), 1, "/nowhere/at/all");
}

#[test]
fn a_second_process_is_refused_and_so_is_a_taken_port() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::start(dir.path());
    let same = text(&dir.path().join("home")).to_owned();
    let second = run(&[
        "home",
        "--name",
        "alps",
        "--dir",
        &same,
        "--listen",
        "127.0.0.1:0",
    ]);
    assert_refused(&second, 1, "in use by another process");
    assert_refused(&run(&["check", &same]), 1, "in use by another process");
    let other = dir.path().join("other");
    let taken = run(&[
        "home",
        "--dir",
        text(&other),
        "--listen",
        "127.0.0.1:0",
        "--http",
        &home.http,
    ]);
    assert_refused(&taken, 1, &home.http);
}

#[test]
fn a_malformed_model_is_told_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("wrong.ifc");
    assert_refused(
        &run(&["ifc", "import", text(&file), "thorp://alps/m"]),
        1,
        "wrong.ifc",
    );
    let lines = [
        "ISO-10303-21;",
        "HEADER;",
        "FILE_DESCRIPTION((''),'2;1');",
        "FILE_NAME('','',(''),(''),'','','');",
        "FILE_SCHEMA(('IFC4'));",
        "ENDSEC;",
        "DATA;",
        "#1=IFCWALL(;",
        "ENDSEC;",
        "END-ISO-10303-21;",
    ];
    fs::write(&file, lines.join("\n")).unwrap();
    let said = run(&["ifc", "import", text(&file), "thorp://alps/m"]);
    assert_refused(&said, 1, "line 8");
}

#[test]
fn nobody_there_is_an_exit_code_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::start(dir.path());
    let nowhere = format!("unix:{}/nobody.sock", dir.path().display());
    let mut command = thorp(&["ls", "--timeout", "1", "--via", &nowhere]);
    command.env("THORP_IDENTITY", &home.identity);
    assert_refused(&finish(command), 4, "nobody.sock");
    assert_refused(&run(&["status", "127.0.0.1:1"]), 4, "does not answer");
}

#[test]
fn a_stranger_is_not_let_in() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::start(dir.path());
    let elsewhere = tempfile::tempdir().unwrap();
    let other = Home::start(elsewhere.path());
    let mut command = thorp(&["ls", "--timeout", "2", "--via", &home.via]);
    command.env("THORP_IDENTITY", &other.identity);
    let said = finish(command);
    assert_eq!(said.code, 4, "{}", said.err);
}
