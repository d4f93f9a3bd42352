//! Traces as `thorp plan` reads them, whatever it is asked about them.

use super::common::{assert_refused, run};
use std::fs;

#[test]
fn what_can_hold_no_trace_is_not_blamed_on_its_format() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty");
    fs::write(&empty, "").unwrap();
    for (path, what) in [(dir.path(), "is a directory"), (&*empty, "is empty")] {
        for question in ["replay", "prefetch"] {
            let said = run(&["plan", question, &path.display().to_string()]);
            assert_refused(&said, what);
            assert!(!said.err.contains("--format"), "{}", said.err);
        }
    }
}

#[test]
fn an_answer_about_what_was_only_guessed_to_be_numbers_begins_with_that() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("blocks.bin");
    let bytes: Vec<u8> = (0..4000_u32).map(|at| (at * at % 251) as u8).collect();
    fs::write(&path, bytes).unwrap();
    let path = path.display().to_string();
    for question in ["replay", "prefetch"] {
        let guessed = run(&["plan", question, &path]);
        let warning = "blocks.bin was read as packed 32-bit numbers, by guess, for nothing in it tells: if that is wrong";
        assert!(
            guessed.out.starts_with(warning),
            "{}{}",
            guessed.out,
            guessed.err
        );
        let told = run(&["plan", question, &path, "--format", "packed"]);
        assert_eq!(told.code, 0, "{}", told.err);
        assert!(!told.out.contains("by guess"), "{}", told.out);
    }
}

#[test]
fn what_was_guessed_or_not_understood_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    fs::write(path("ok.toml"), "[site]\nmembers = 5\n").unwrap();
    fs::write(path("semi.csv"), "time;who;page\n1;a;7\n2;b;7\n3;a;8\n").unwrap();
    fs::write(path("list"), "1\n2\n1\n").unwrap();
    let said = run(&["plan", "replay", &path("ok.toml")]);
    let begins = "ok.toml was read as an object a line, by guess";
    assert!(said.out.starts_with(begins), "{}", said.out);
    let answer = said.out.lines().next().unwrap();
    assert!(
        answer.contains("(--format tells what it is). No: nothing"),
        "{answer}"
    );
    let said = run(&["plan", "replay", &path("semi.csv")]);
    assert!(said.err.contains("semi.csv: not read: who"), "{}", said.err);
    assert!(
        said.out.contains("columns that are not read"),
        "{}",
        said.out
    );
    assert!(!said.out.contains("by guess"), "{}", said.out);
    let told = run(&[
        "plan",
        "replay",
        &path("semi.csv"),
        "--columns",
        "client=who",
    ]);
    assert!(!told.err.contains("not read"), "{}", told.err);
    assert!(told.out.contains("2 members"), "{}", told.out);
    let list = run(&["plan", "replay", &path("list"), "--format", "csv"]);
    assert!(list.out.contains("a table of one column"), "{}", list.out);
    assert!(!list.out.contains("by guess"), "{}", list.out);
    let more = run(&["plan", "replay", &path("list"), "--client-pages", "150%"]);
    assert!(
        more.out.contains("--client-pages is more than all 2 pages"),
        "{}",
        more.out
    );
    assert_refused(
        &run(&["plan", "replay", &path("list"), "--deal", "named"]),
        "--deal must be round-robin, random, by-object, runs=REQUESTS or slices=SECONDS: the trace names no",
    );
    // The lines 1, 2, 3, 1 in gzip, without its last bytes.
    let cut: [u8; 19] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 51, 228, 50, 226, 50, 230, 50, 228, 2,
    ];
    fs::write(path("cut.gz"), cut).unwrap();
    assert_refused(
        &run(&["plan", "replay", &path("cut.gz")]),
        "the file was cut\n  -> get the file anew",
    );
}
