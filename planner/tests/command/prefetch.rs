//! `thorp plan prefetch`, as a user calls it.

use super::common::{assert_refused, run};
use std::fs;

#[test]
fn prefetching_is_answered_in_a_sentence_and_what_cannot_be_is_refused() {
    let small = ["plan", "prefetch", "--rounds", "1", "--pattern", "random"];
    let said = run(&small);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.starts_with("Yes: prefetching"), "{}", said.out);
    for part in [
        "hybrid, looking past",
        "BY DISKS OF SERVERS",
        "µs",
        "each names a page that is never read",
        "if all of what is read is hinted (told ahead)",
        "of what that saves comes from the servers' disks",
        "(GLFD: global longest forward distance)",
        "stall: the process needs a page",
    ] {
        assert!(said.out.contains(part), "{part} in {}", said.out);
    }
    assert!(!said.err.contains("policy"), "{}", said.err);
    let long = run(&["plan", "prefetch", "--rounds", "7"]);
    for progress in [
        "107520 requests, 8 policies: 1075200 requests in 10 runs",
        "107520 requests, policy 8 of 8: hybrid, looking past",
    ] {
        assert!(long.err.contains(progress), "{}", long.err);
    }
    let false_hints = run(&[&small[..], &["--wrong", "1"]].concat());
    assert!(
        false_hints.out.starts_with("No: prefetching")
            && false_hints.out.contains("every hint is wrong"),
        "{}",
        false_hints.out
    );
    let untold = run(&[&small[..], &["--hinted", "0"]].concat());
    assert!(untold.out.starts_with("No: prefetching"), "{}", untold.out);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("blocks.txt");
    fs::write(&path, "7\n8\n9\n7\n8\n9\n".repeat(20)).unwrap();
    let path = path.display().to_string();
    let recorded = run(&["plan", "prefetch", &path]);
    assert!(
        recorded.out.contains("an eighth of all pages"),
        "{}",
        recorded.err
    );
    assert!(recorded.out.contains("in hindsight"), "{}", recorded.out);
    for line in ["an object a line", "guessed from name and content", "120"] {
        assert!(recorded.out.contains(line), "{line} in {}", recorded.out);
    }
    let two = run(&["plan", "prefetch", &path, &path]);
    for line in [
        "the files one after another",
        "for not all of them have times",
        "240",
    ] {
        assert!(two.out.contains(line), "{line} in {}", two.out);
    }
    let vain = run(&[
        "plan", "prefetch", &path, "--seed", "3", "--hinted", "0", "--wrong", "0.5",
    ]);
    for line in [
        "--seed  ",
        "nothing is drawn",
        "--wrong",
        "nothing is told ahead",
    ] {
        assert!(vain.out.contains(line), "{line} in {}", vain.out);
    }
    let drawn = run(&["plan", "prefetch", &path, "--seed", "3", "--hinted", "0.5"]);
    assert!(!drawn.out.contains("without effect"), "{}", drawn.out);
    let both = run(&["plan", "prefetch", &path, "--pattern", "random"]);
    assert_refused(&both, "--pattern is for patterns");
    let file = dir.path().join("plan.toml");
    fs::write(&file, "[prefetch]\nrounds = 5\n").unwrap();
    let file = file.display().to_string();
    let both = run(&["plan", "prefetch", &path, "--file", &file]);
    assert_refused(&both, "--rounds is for patterns");
    for (flag, value) in [
        ("--format", "lines"),
        ("--columns", "id=1"),
        ("--requests", "10"),
    ] {
        assert_refused(&run(&["plan", "prefetch", flag, value]), "TRACE");
    }
    for (flag, value, what) in [
        (
            "--local-pages",
            "0",
            "--local-pages must be at least 1, not 0",
        ),
        ("--rounds", "2.5", "--rounds must be a whole number"),
        ("--compute-us", "nan", "--compute-us must be a whole number"),
        ("--hinted", "2", "--hinted must be between 0 and 1"),
        (
            "--global-fetch-us",
            "20000",
            "nobody would fetch from there",
        ),
        ("--pattern", "zipf", "hotcold, random, reverse, sequential"),
        (
            "--rounds",
            "1400",
            "--rounds must leave at most 20000000 references, not 21504000",
        ),
    ] {
        assert_refused(&run(&["plan", "prefetch", flag, value]), what);
    }
}

#[test]
fn a_time_that_does_not_fit_to_a_default_is_refused_with_that() {
    for (flag, value, todo) in [
        (
            "--disk-fetch-us",
            "100",
            "--global-fetch-us is 370 by default: tell it, too",
        ),
        (
            "--global-fetch-us",
            "20000",
            "--disk-fetch-us is 13000 by default: tell it, too",
        ),
    ] {
        let said = run(&["plan", "prefetch", flag, value]);
        assert_refused(&said, "nobody would fetch from there");
        assert!(said.err.contains(todo), "{}", said.err);
    }
    let both = [
        "plan",
        "prefetch",
        "--disk-fetch-us=100",
        "--global-fetch-us=200",
    ];
    let said = run(&both);
    assert_refused(
        &said,
        "--global-fetch-us must not be above the 100 of a disk",
    );
    assert!(!said.err.contains("by default"), "{}", said.err);
}

#[test]
fn a_trace_that_is_too_long_to_compare_is_refused_with_what_helps() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.bin");
    fs::write(&path, vec![0; 4 * 20_000_001]).unwrap();
    let path = path.display().to_string();
    let said = run(&["plan", "prefetch", &path, "--format", "packed"]);
    assert_refused(&said, "long.bin: more than 20000000 requests are too many");
    let todo = "--requests 20000000 takes the first ones";
    assert!(said.err.contains(todo), "{}", said.err);
    let first = run(&[
        "plan",
        "prefetch",
        &path,
        "--format",
        "packed",
        "--requests",
        "10",
    ]);
    assert_eq!(first.code, 0, "{}", first.err);
}
