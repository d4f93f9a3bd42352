//! `thorp plan memory`, as a user calls it.

use super::common::{Said, run};
use std::fs;

#[test]
fn a_cluster_is_answered_in_a_sentence_with_what_it_rests_on() {
    let said = run(&["plan", "memory", "--machines", "24", "--servers", "3"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out
            .starts_with("24 machines need three memory servers: with them,")
            && said
                .out
                .contains("Three memory servers carry 24 active machines (a page comes sooner than from a disk): a page takes"),
        "{}",
        said.out
    );
    for line in [
        "By memory servers",
        "By active machines",
        "time for a page from a machine's own disk",
        "putpages",
    ] {
        assert!(said.out.contains(line), "{line} in {}", said.out);
    }
}

#[test]
fn a_simulation_agrees_with_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("office.toml");
    fs::write(&path, "[memory]\nmachines = 4\nservers = 2\n").unwrap();
    let file = path.display().to_string();
    let said = run(&["plan", "memory", "--file", &file, "--simulate", "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let table = &told["sections"][3]["tables"][0];
    assert_eq!(table["title"], "Simulated: time for a page");
    let assumed = table["rows"][0][3]["text"].as_str().unwrap();
    assert!(assumed.starts_with("the same"), "{assumed}");
}

#[test]
fn a_rate_is_told_once_also_if_a_file_tells_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("office.toml");
    let file = path.display().to_string();
    for (text, flags) in [
        ("think_ms = 5\nrequests_per_second = 7\n", &[][..]),
        ("think_ms = 5\n", &["--requests-per-second", "7"]),
        ("requests_per_second = 7\n", &["--think-ms", "5"]),
    ] {
        fs::write(&path, format!("[memory]\n{text}")).unwrap();
        let said = run(&[&["plan", "memory", "--file", &file][..], flags].concat());
        let why = "--requests-per-second says otherwise what --think-ms says";
        assert!(said.code == 2 && said.err.contains(why), "{}", said.err);
    }
}

#[test]
fn machines_that_differ_and_a_matrix_are_read_from_flags_and_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("office.toml");
    let matrix = "[memory]\nmix = \"4:5,2:1\"\nrouting = [[0.5, 0.25, 0.25], [0, 0.5, 0.5]]\n";
    fs::write(&path, matrix).unwrap();
    let file = path.display().to_string();
    let read = run(&["plan", "memory", "--file", &file]);
    assert_eq!(read.code, 0, "{}", read.err);
    let flags = ["--mix", "4:5,2:1", "--routing", "0.5,0.25,0.25/0,0.5,0.5"];
    let told = run(&[&["plan", "memory"][..], &flags].concat());
    let answer = |said: &Said| said.out.lines().next().unwrap().to_owned();
    assert_eq!(answer(&read), answer(&told));
    assert!(
        answer(&told).starts_with("Three memory servers carry six active machines of two kinds"),
        "{}",
        told.out
    );
    let said = run(&[&["plan", "memory", "--simulate"][..], &flags].concat());
    let line = "what the model assumes: two machines that think 1.0 ms";
    let row = said
        .out
        .lines()
        .find(|row| row.starts_with(line))
        .expect(&said.out);
    assert!(row.contains("the same, within the interval"), "{row}");
    let row = "[memory]\nmix = [\"4:5\", \"2:1\"]\nrouting = [0.5, 0.5]\n";
    fs::write(&path, row).unwrap();
    let read = run(&["plan", "memory", "--file", &file]);
    let flags = ["--mix", "4:5,2:1", "--routing", "0.5,0.5"];
    let told = run(&[&["plan", "memory"][..], &flags].concat());
    assert_eq!(answer(&read), answer(&told));
    for wrong in ["[0.5, [0.5]]", "[[[1]]]", "[[true]]", "{ a = 1 }"] {
        fs::write(&path, format!("[memory]\nrouting = {wrong}\n")).unwrap();
        let said = run(&["plan", "memory", "--file", &file]);
        let what = "routing: a word in quotes or a number is needed";
        assert!(said.code == 2 && said.err.contains(what), "{}", said.err);
    }
}

#[test]
fn who_takes_an_advised_share_at_its_word_is_within_the_limit() {
    let advised = run(&["plan", "memory", "--local-servers", "4"]).out;
    assert!(
        advised.contains("if 22 % of the requests went there"),
        "{advised}"
    );
    let followed = ["--local-servers", "4", "--local-share", "0.22"];
    let said = run(&[&["plan", "memory"][..], &followed].concat());
    assert!(
        said.out.starts_with("24 machines need three"),
        "{}",
        said.out
    );
}

#[test]
fn what_cannot_be_is_refused() {
    for (flags, what) in [
        (
            &["--machines", "0"][..],
            "--machines must be a whole number",
        ),
        (&["--servers", "1.5"], "--servers must be a whole number"),
        (
            &["--service-us", "0"],
            "--service-us must be a number above 0",
        ),
        (&["--disk-ms=-1"], "--disk-ms must be a number above 0"),
        (
            &["--hottest-share", "1.5"],
            "--hottest-share must be between",
        ),
        (&["--local-share", "0.5"], "--local-share cannot be 0.5"),
        (
            &["--think-ms", "5", "--requests-per-second", "7"],
            "cannot be used with",
        ),
        (
            &["--think-ms", "1e300"],
            "--think-ms must be a number not above",
        ),
        (&["--mix", "16:5", "--think-ms", "5"], "cannot be used with"),
        (
            &["--routing", "0.5,0.5", "--local-share", "0.5"],
            "cannot be used with",
        ),
        (
            &["--mix", "20000:5", "--simulate"],
            "--mix cannot be above 10000 with --simulate",
        ),
        (
            &["--machines", "20000", "--simulate"],
            "--machines cannot be above 10000 with --simulate",
        ),
    ] {
        let mut call = vec!["plan", "memory"];
        call.extend(flags);
        let said = run(&call);
        assert_eq!(said.code, 2, "{call:?}: {}", said.err);
        assert!(said.err.contains(what), "{what:?} in {}", said.err);
        assert!(said.out.is_empty(), "{}", said.out);
    }
}
