//! `thorp plan replay`, as a user calls it.

use super::common::{assert_refused, recorded, run};
use std::fs;

#[test]
fn pages_are_a_number_however_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("pages.txt");
    fs::write(&trace, "1\n2\n3\n1\n2\n4\n").unwrap();
    let trace = trace.display().to_string();
    let tables = |pages| {
        let said = run(&["plan", "replay", &trace, "--json", "--client-pages", pages]);
        assert_eq!(said.code, 0, "{}", said.err);
        let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        told["sections"][0].clone()
    };
    assert_eq!(tables("2e0"), tables("2"));
    assert_ne!(tables("2"), tables("1"));
    for wrong in ["2.5", "-2", "nan"] {
        let said = run(&["plan", "replay", &trace, "--client-pages", wrong]);
        assert_refused(&said, "--client-pages is a number of pages");
    }
}

#[test]
fn files_of_commands_are_as_many_members_unless_their_names_are_meant() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    // Each command that joins has another name.
    for name in ["anna.csv", "ben.csv"] {
        let rows = (0..60).map(|at| format!("{at},{name}{},read,{},0\n", at / 20, at % 7));
        let text = format!(
            "time_us,client,op,object,size\n{}",
            rows.collect::<String>()
        );
        fs::write(path(name), text).unwrap();
    }
    let call = ["plan", "replay", &path("anna.csv"), &path("ben.csv")];
    let files = run(&call);
    assert!(files.out.contains("2 members"), "{}", files.out);
    assert!(
        files.out.contains("default: each file is a member"),
        "{}",
        files.out
    );
    let told = run(&[&call[..], &["--deal", "by-file"]].concat());
    assert!(told.out.contains("2 members"), "{}", told.out);
    let named = run(&[&call[..], &["--deal", "named"]].concat());
    assert!(named.out.contains("6 members"), "{}", named.out);
}

#[test]
fn what_members_recorded_is_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let [anna, ben] = recorded(dir.path());
    let base = [
        "plan",
        "replay",
        &anna,
        &ben,
        "--client-pages",
        "20",
        "--home-pages",
        "0",
    ];
    let said = run(&base);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out
            .starts_with("Yes: 2 members that share their memory ("),
        "{}",
        said.out
    );
    assert!(
        said.out
            .contains("without the disk, each alone 0 %: a request takes"),
        "{}",
        said.out
    );
    for line in [
        "anna.csv, ben.csv",
        "--remote-ms, --home-ms, --disk-ms and --service-ms are of 1995",
        "as many as the trace names",
        "default: the trace tells",
        "8192 bytes",
    ] {
        assert!(said.out.contains(line), "{line} in {}", said.out);
    }
    assert!(!said.out.contains("dealt otherwise"), "{}", said.out);
    let said = run(&[&base[..], &["--policy", "n-chance", "--json"]].concat());
    let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        told["sections"][0]["tables"][0]["rows"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(
        told["sections"][1]["charts"][0]["series"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn tables_with_times_are_put_together_and_each_is_a_member() {
    let dir = tempfile::tempdir().unwrap();
    let written = |name: &str, text: String| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    // Both read the same pages in turn, the second a second later: far more pages than anybody holds.
    let [even, odd] = [("even.csv", 0), ("odd.csv", 1)].map(|(name, second)| {
        let rows = (0..1000).map(|at| format!("{},{at}\n", at * 2 + second));
        written(name, format!("time,id\n{}", rows.collect::<String>()))
    });
    let base = [
        "plan",
        "replay",
        &even,
        &odd,
        "--client-pages",
        "10",
        "--home-pages",
        "0",
        "--policy",
        "greedy",
    ];
    let said = run(&base);
    assert_eq!(said.code, 0, "{}", said.err);
    for line in [
        "Yes: 2 members that share their memory (greedy forwarding) answer 50 % of",
        "the files put together by time",
        "each file is a member",
        "by-file",
        "a table with columns",
        "guessed from name and content",
    ] {
        assert!(said.out.contains(line), "{line} in {}", said.out);
    }
    let said = run(&[&base[..], &["--clients", "3"]].concat());
    assert!(said.out.contains("3 members"), "{}", said.out);
    let plain = written("plain.txt", "1\n2\n".to_owned());
    let said = run(&["plan", "replay", &even, &plain]);
    for line in [
        "the files one after another",
        "for not all of them have times",
        "plain.txt is read as",
        "an object a line",
    ] {
        assert!(said.out.contains(line), "{line} in {}", said.out);
    }
    let said = run(&["plan", "replay", &plain]);
    assert!(
        said.out
            .starts_with("No: nothing in it is asked for twice: no cache can help"),
        "{}",
        said.out
    );
    let zipped = written("blocks.gz", "1\n2\n".to_owned());
    assert_refused(
        &run(&["plan", "replay", &zipped]),
        "blocks.gz: is not compressed by gzip",
    );
}

#[test]
fn policies_are_explained_where_they_are_shown_and_in_the_help() {
    let dir = tempfile::tempdir().unwrap();
    let [anna, ben] = recorded(dir.path());
    let page = dir.path().join("plan.html").display().to_string();
    let said = run(&["plan", "replay", &anna, &ben, "--html", &page]);
    assert_eq!(said.code, 0, "{}", said.err);
    let help = run(&["plan", "replay", "--help"]).out;
    let page = fs::read_to_string(page).unwrap();
    for kind in thorp_plan::replay::Kind::ALL {
        for (place, text) in [("text", &said.out), ("page", &page), ("help", &help)] {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(kind.what()), "{kind} in {place}: {text}");
        }
    }
    let said = run(&["plan", "replay", &anna, &ben, "--policy", "gms", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let cell = &told["sections"][0]["tables"][0]["rows"][0][1];
    assert_eq!(cell["unit"], "%");
    let text = cell["value"].as_f64().map(|value| format!("{value:.0} %"));
    assert_eq!(cell["text"].as_str(), text.as_deref());
    let policy = &told["sections"][0]["tables"][0]["rows"][0][0];
    assert_eq!(*policy, serde_json::json!({"text": "each alone"}));
    let read = &told["assumptions"][0];
    assert_eq!(read["name"], "requests");
    assert_eq!(read["value"]["value"], 800.0);
    let legend = &told["sections"][0]["tables"][1];
    assert_eq!(legend["title"], "What each policy does");
    assert_eq!(legend["rows"].as_array().map(Vec::len), Some(3));
}

#[test]
fn members_let_go_by_their_own_evictor_where_that_is_theirs_to_say() {
    let dir = tempfile::tempdir().unwrap();
    let [anna, ben] = recorded(dir.path());
    let base = ["plan", "replay", &anna, &ben, "--local", "sieve"];
    let said = run(&base);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out
            .contains("SIEVE says what members let go of, but not where the policy itself does: weighted LRU is itself"),
        "{}",
        said.out
    );
    for policy in ["weighted", "global-lru"] {
        let said = run(&[&base[..], &["--policy", policy]].concat());
        assert_refused(
            &said,
            &format!("--local cannot be SIEVE with --policy {policy}: "),
        );
    }
    let said = run(&[&base[..], &["--policy", "gms"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!said.out.contains("SIEVE says"), "{}", said.out);
}

#[test]
fn one_member_has_nobody_to_share_with() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("blocks.txt").display().to_string();
    let rows = (0..1000).map(|at| format!("{}\n", at % 20));
    fs::write(&path, rows.collect::<String>()).unwrap();
    let base = [
        "plan",
        "replay",
        &path,
        "--clients",
        "1",
        "--client-pages",
        "15",
        "--home-pages",
        "6",
    ];
    let said = run(&base);
    assert_eq!(said.code, 0, "{}", said.err);
    for line in [
        "No: one member has nobody to share with; what differs is how the home's memory is used",
        "There are no others here",
    ] {
        assert!(said.out.contains(line), "{line} in {}", said.out);
    }
    let said = run(&[&base[..], &["--servers", "1"]].concat());
    assert!(
        said.out.contains("1 member and 1 memory server"),
        "{}",
        said.out
    );
}

#[test]
fn a_trace_without_names_is_dealt_and_parameters_come_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    fs::write(
        path("blocks.txt"),
        (0..3000)
            .map(|at| format!("{}\n", at * at % 211))
            .collect::<String>(),
    )
    .unwrap();
    fs::write(
        path("village.toml"),
        "[replay]\nclients = 3\ndeal = \"round-robin\"\nclient_pages = \"10%\"\n",
    )
    .unwrap();
    let said = run(&[
        "plan",
        "replay",
        &path("blocks.txt"),
        "--file",
        &path("village.toml"),
        "--servers",
        "2",
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    let assumed = "If 3 members ask in turn, a request each (the trace does not tell): ";
    assert!(said.out.starts_with(assumed), "{}", said.out);
    for line in [
        "3 members and 2 memory servers",
        "requests were dealt one request each in turn",
        "in runs of 50 requests on average",
    ] {
        assert!(said.out.contains(line), "{line} in {}", said.out);
    }
    let again = run(&[
        "plan",
        "replay",
        &path("blocks.txt"),
        "--file",
        &path("village.toml"),
        "--servers",
        "2",
    ]);
    assert_eq!(said.out, again.out, "the same seed, the same answer");
}

#[test]
fn where_the_rule_of_dealing_decides_the_answer_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("loops.txt").display().to_string();
    // Loops over a few pages for a while: whoever stays with one needs nobody.
    let rows = (0..6000).map(|at| format!("{}\n", at / 1000 * 40 + at % 40));
    fs::write(&path, rows.collect::<String>()).unwrap();
    let base = [
        "plan",
        "replay",
        &path,
        "--client-pages",
        "40",
        "--home-pages",
        "0",
    ];
    let decides = "Who asks for what decides it: dealt by other rules, sharing is 1.00 (no) to ";
    let said = run(&base);
    let answer = said.out.lines().next().unwrap();
    assert!(
        answer.starts_with(
            "If 8 members ask in turns of 50 requests on average (the trace does not tell): yes: "
        ),
        "{answer}"
    );
    assert!(answer.contains(decides), "{answer}");
    let by_file = run(&[&base[..], &["--deal", "by-file"]].concat());
    assert!(!by_file.out.contains("decides it"), "{}", by_file.out);
}

#[test]
fn a_replay_that_cannot_be_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let trace = path("blocks.txt");
    fs::write(&trace, "1\n2\n1\n").unwrap();
    for (flags, what) in [
        (["--clients", "0"], "--clients must be from 1"),
        (["--clients", "2.5"], "--clients is a whole number"),
        (
            ["--client-pages", "18446744073709551615"],
            "--client-pages must be at most 1000000000 pages",
        ),
        (
            ["--client-pages", "lots"],
            "--client-pages is a number of pages, or a part of all pages like 5%, not lots",
        ),
        (
            ["--client-pages", "0"],
            "--client-pages must be a number not below 1",
        ),
        (
            ["--deal", "named"],
            "--deal must be round-robin, random, by-object, runs=REQUESTS or slices=SECONDS: the trace names no clients",
        ),
        (
            ["--deal", "slices=5"],
            "--deal must be round-robin, random, by-object or runs=REQUESTS: the trace does not tell when",
        ),
        (["--deal", "fairly"], "fairly is none of named, by-file"),
        (["--policy", "best"], "best is none of alone, direct"),
        (["--local", "mru"], "mru is none of lru"),
        (
            ["--disk-ms", "0.1"],
            "--disk-ms must not be below --remote-ms, 0.194 by default, but is 0.1: tell --remote-ms too",
        ),
        (["--shared", "2"], "--shared must be between 0 and 1"),
        (
            ["--remote-ms", "100"],
            "--remote-ms must not be above the 3.6 ms that the disk takes by default, but is 100",
        ),
        (
            ["--disk-ms", "2e9"],
            "--disk-ms must be a number from 0 to 1e9, not 2000000000",
        ),
        (
            ["--remote-ms", "2e9"],
            "--remote-ms must be a number from 0 to 1e9",
        ),
        (
            ["--servers", "1000000"],
            "--servers must be below 65535, not 1000000",
        ),
        (["--requests", "0"], "--requests must be at least 1"),
        (
            ["--epoch-ms", "0"],
            "--epoch-ms must be a number from 1 to 1000000000, not 0",
        ),
        (
            ["--epoch-ms", "1e300"],
            "--epoch-ms must be a number from 1 to 1000000000, not 1e300",
        ),
        (
            ["--busy-most", "2"],
            "--busy-most must be between 0 and 1, not 2",
        ),
        (["--oldest", "2"], "--oldest must be between 0 and 1, not 2"),
        (["--client-pages", "0%"], "above 0%, not 0%"),
        (
            ["--format", "packed"],
            "blocks.txt, at byte 4: the last record has 2 of 4 bytes",
        ),
    ] {
        let flags = &flags[..];
        assert_refused(&run(&[&["plan", "replay", &trace], flags].concat()), what);
    }
    for (flags, what) in [
        (
            ["--remote-ms", "100", "--disk-ms", "50"],
            "--remote-ms must not be above --disk-ms, 50, but is 100",
        ),
        (
            ["--remote-ms", "1", "--disk-ms", "2e9"],
            "--disk-ms must be a number from 0 to 1e9",
        ),
        (
            ["--clients", "6000", "--servers", "60000"],
            "--servers must be at most 59535 beside the clients, not 60000",
        ),
    ] {
        let flags = &flags[..];
        assert_refused(&run(&[&["plan", "replay", &trace], flags].concat()), what);
    }
    fs::write(
        path("cut.csv"),
        "time_us,client,op,object,size\n1,anna,read,p,0\n2,an",
    )
    .unwrap();
    assert_refused(
        &run(&["plan", "replay", &path("cut.csv")]),
        "cut.csv, line 3: has 2 of 5 columns",
    );
    let missing = run(&["plan", "replay", &path("nothing")]);
    assert!(
        missing.code == 1 && missing.err.contains("nothing"),
        "{}",
        missing.err
    );
}
