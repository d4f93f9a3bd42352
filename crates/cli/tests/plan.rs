//! `thorp plan`: answers in one command, and what cannot be is refused with what would be right.

mod common;

use common::{Said, finish, run, thorp};
use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};

fn assert_refused(said: &Said, what: &str) {
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains(what), "{what:?} in {}", said.err);
    assert!(said.out.is_empty(), "{}", said.out);
}

#[test]
fn a_site_is_answered_in_a_sentence_with_what_it_rests_on() {
    let said = run(&["plan", "site", "--members", "5", "--round-trip-ms", "40"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.starts_with("Yes: with a site 40 ms"),
        "{}",
        said.out
    );
    for line in ["By members", "By distance", "round trip to the home"] {
        assert!(said.out.contains(line), "{line} in {}", said.out);
    }
    let said = run(&["plan", "site", "--members", "1", "--misses", "0"]);
    assert!(said.out.starts_with("No:"), "{}", said.out);
}

#[test]
fn the_same_is_told_as_json_as_a_page_and_as_pictures() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (page, pictures) = (path("plan.html"), path("pictures"));
    let said = run(&[
        "plan", "site", "--json", "--html", &page, "--svg", &pictures,
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let answer = told["answer"].as_str().unwrap();
    let shown = fs::read_to_string(page).unwrap();
    assert!(shown.contains(answer) && shown.contains("<svg"), "{shown}");
    for chart in ["site-by-members.svg", "site-by-distance.svg"] {
        assert!(dir.path().join("pictures").join(chart).is_file(), "{chart}");
    }
}

#[test]
fn programs_are_told_all_times_in_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let [anna, ben] = recorded(dir.path());
    for question in [
        &["site"][..],
        &["site", "--pages", "3"],
        &["web"],
        &["memory"],
        &["replay", &anna, &ben],
    ] {
        let said = run(&[&["plan"], question, &["--json"]].concat());
        let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let sections = told["sections"].as_array().unwrap().iter();
        for table in sections.flat_map(|section| section["tables"].as_array().unwrap()) {
            for column in 0..table["columns"].as_array().unwrap().len() {
                let cells = table["rows"].as_array().unwrap().iter();
                let units: HashSet<&str> = cells
                    .filter_map(|row| row[column]["unit"].as_str())
                    .collect();
                // Where rows are of different things, columns have no head.
                let is_alike = table["columns"][column] != "";
                assert!(
                    units.len() <= 1 || !is_alike,
                    "{question:?}, {column}: {table}"
                );
                for other in ["ms", "µs", "min", "MB"] {
                    assert!(!units.contains(other), "{question:?}, {column}: {table}");
                }
            }
        }
    }
    let said = run(&["plan", "site", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let rows = &told["sections"][0]["tables"][0]["rows"];
    let (first, second) = (&rows[0], &rows[1]);
    let seconds = |cell: &serde_json::Value| cell["value"].as_f64().unwrap();
    assert!(first[1]["text"].as_str().unwrap().ends_with(" s"), "{rows}");
    assert!(
        second[1]["text"].as_str().unwrap().ends_with(" ms"),
        "{rows}"
    );
    let saved = (1.0 - seconds(&first[2]) / seconds(&first[1])) * 100.0;
    assert!((saved - seconds(&first[3])).abs() < 1e-9, "exact: {rows}");
    assert!(seconds(&second[1]) < 1.0, "{rows}");
}

#[test]
fn parameters_come_from_a_file_and_flags_go_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("office.toml");
    fs::write(&path, "[site]\nmembers = 7\nround_trip_ms = 90\n").unwrap();
    let file = path.display().to_string();
    let said = run(&["plan", "site", "--file", &file, "--members", "4"]);
    assert!(
        said.out.contains("a site 90 ms from the home, 4 members"),
        "{}",
        said.out
    );
    fs::write(&path, "[site]\nmember = 7\n").unwrap();
    assert_refused(
        &run(&["plan", "site", "--file", &file]),
        "office.toml, line 2: there is no member: is members meant?",
    );
    let missing = run(&["plan", "site", "--file", "no-such-file.toml"]);
    assert_eq!(missing.code, 1);
    assert!(missing.err.contains("no-such-file.toml"), "{}", missing.err);
}

#[test]
fn a_number_below_nothing_is_refused_as_a_number() {
    for (question, flag, what) in [
        ("site", "--members", "--members must be a "),
        ("site", "--round-trip-ms", "must be a number from 0"),
        ("web", "--alpha", "--alpha must be between 0 and 20"),
        ("web", "--between-ms", "must be a number not below 0"),
        ("memory", "--disk-ms", "must be a number above 0"),
        ("memory", "--machines", "--machines must be a whole number"),
        ("prefetch", "--hinted", "--hinted must be between 0 and 1"),
        ("prefetch", "--rounds", "must be a whole number from 0"),
    ] {
        for value in ["-5", "-0.5", "-1e300"] {
            assert_refused(&run(&["plan", question, flag, value]), what);
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("blocks.txt").display().to_string();
    fs::write(&trace, "1\n2\n").unwrap();
    for (flag, what) in [
        ("--client-pages", "--client-pages is a number of pages"),
        ("--disk-ms", "--disk-ms must be a number from 0"),
        (
            "--requests",
            "'-5' for '--requests <N>': a whole number is needed",
        ),
    ] {
        assert_refused(&run(&["plan", "replay", &trace, flag, "-5"]), what);
    }
}

#[test]
fn the_help_tells_exit_codes_and_what_a_village_measures() {
    let help = run(&["plan", "--help"]);
    assert_eq!(help.code, 0);
    for word in ["Exit codes:", "--from-metrics", "--record-trace", "--file"] {
        assert!(help.out.contains(word), "{word} in {}", help.out);
    }
    for question in ["site", "web", "memory", "replay", "prefetch"] {
        let help = run(&["plan", question, "--help"]).out;
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let defaults = "Each parameter has a default.";
        assert!(
            words.contains(defaults) && words.contains("Examples:"),
            "{help}"
        );
    }
}

#[test]
fn an_answer_warns_of_old_figures_that_nobody_told() {
    for (question, old) in [
        ("memory", "--service-us and --disk-ms are of 1995"),
        ("web", "--document-kb and --server-ms are of 1999"),
        ("prefetch", "--disk-fetch-us are of 1998"),
    ] {
        let said = run(&["plan", question, "--json"]);
        let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let answer = told["answer"].as_str().unwrap();
        assert!(answer.contains(old), "{old} in {answer}");
    }
    let own = ["--service-us=9", "--disk-ms=0.1"];
    let said = run(&[&["plan", "memory"][..], &own].concat());
    let answer = said.out.lines().next().unwrap();
    assert!(
        answer.contains("parameters are defaults (see Assumed).") && !answer.contains("1995"),
        "{answer}"
    );
}

#[test]
fn what_was_told_for_nothing_is_told_back() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("pages.txt");
    fs::write(&trace, "1\n2\n3\n1\n2\n4\n").unwrap();
    let trace = trace.display().to_string();
    let replay = |more: &[&str]| run(&[&["plan", "replay", &trace][..], more].concat()).out;
    let said = replay(&["--policy", "greedy", "--chances", "3", "--epoch-ms", "5"]);
    let answer = said.lines().next().unwrap();
    let back = "--chances and --epoch-ms were told and say nothing here.";
    assert!(answer.contains(back), "{answer}");
    for heeded in ["n-chance", "all"] {
        let said = replay(&["--policy", heeded, "--chances", "3"]);
        assert!(!said.contains("nothing here"), "{said}");
    }
    let bounds = "--think-ms 7 --service-ms 9 --busy-most 0.2 --servers 2";
    let bounds: Vec<&str> = bounds.split(' ').collect();
    for (policy, back) in [
        (
            "n-chance",
            "--busy-most, --service-ms and --think-ms were told",
        ),
        (
            "gms",
            "--busy-most and --service-ms were told and say nothing",
        ),
    ] {
        let said = replay(&[&["--policy", policy], &bounds[..]].concat());
        assert!(said.contains(back), "{said}");
    }
    for heeded in ["balanced", "all"] {
        let said = replay(&[&["--policy", heeded], &bounds[..]].concat());
        assert!(!said.contains("nothing here"), "{said}");
    }
    let said = replay(&["--policy", "n-chance"]);
    let answer = said.lines().next().unwrap();
    assert!(
        !answer.contains("--service-ms") && answer.contains("--remote-ms"),
        "{answer}"
    );
    let said = run(&["plan", "web", "--spacing", "lognormal", "--sigma", "3"]);
    assert!(!said.out.contains("says nothing"), "{}", said.out);
}

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
fn nothing_has_no_sign() {
    let said = run(&[
        "plan",
        "site",
        "--round-trip-ms=-0",
        "--fetch-ms=0",
        "--fetch-by-site-ms=0",
        "--redirect-ms=0",
        "--commit-ms=0",
        "--commit-by-site-ms=0",
    ]);
    assert!(
        said.out.contains("a site 0 ms from the home"),
        "{} {}",
        said.out,
        said.err
    );
    assert!(!said.out.contains(" -0"), "{}", said.out);
}

#[test]
fn who_is_asked_for_measurements_and_is_no_site_is_told_so() {
    let answers = [
        &b"HTTP/1.1 200 OK\r\n\r\n<html>welcome</html>"[..],
        b"HTTP/1.1 404 Not Found\r\n\r\n",
        b"220 ready\r\n",
        b"\xff\xfe",
    ];
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stranger = listener.local_addr().unwrap().to_string();
    let answering = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 512];
            let _ = stream.read(&mut asked).unwrap();
            stream.write_all(answer).unwrap();
        }
    });
    let ask = |node: &str| run(&["plan", "site", "--from-metrics", node]);
    for what in [
        "answers, but not with the status of a site",
        "answers 404 to /status",
        "answers with something else than HTTP to /status",
        "answers with something else than HTTP to /status",
    ] {
        let said = ask(&stranger);
        assert_eq!(said.code, 1, "{}", said.err);
        assert!(said.err.contains(what), "{what:?} in {}", said.err);
        assert!(said.err.contains("\n  -> "), "{}", said.err);
    }
    answering.join().unwrap();
    let nobody = ask(&stranger);
    assert_eq!(nobody.code, 4, "{}", nobody.err);
    assert!(nobody.err.contains("does not answer"), "{}", nobody.err);
    for node in ["https://localhost:7431/", "ftp://localhost:7431"] {
        let said = ask(node);
        assert_refused(&said, "only plain http is read");
        let todo = "write HOST:PORT or http://HOST:PORT, as http://localhost:7431";
        assert!(said.err.contains(todo), "{}", said.err);
    }
    assert_refused(&ask("nowhere"), "\"nowhere\" is no address");
}

#[test]
fn what_cannot_be_is_refused() {
    for (flag, value, what) in [
        (
            "--members",
            "0",
            "--members must be a number from 1 to 1000000000, not 0",
        ),
        ("--members", "nan", "--members must be a number"),
        (
            "--members",
            "2.5",
            "--members must be a whole number, not 2.5",
        ),
        (
            "--pages",
            "1e300",
            "--pages must be a number from 1 to 1000000000, not 1e300",
        ),
        (
            "--pages-per-wait",
            "501",
            "--pages-per-wait must be a number from 1 to 500",
        ),
        (
            "--members",
            "many",
            "invalid value 'many' for '--members <N>': a number is needed",
        ),
        ("--pages-per-wait", "0.5", "must be a number from 1 to 500"),
        (
            "--round-trip-ms=-5",
            "",
            "--round-trip-ms must be a number from 0",
        ),
        ("--sharing", "50", "--sharing cannot be above the 5 members"),
        ("--pages", "0", "--pages must be a number from 1"),
        ("--system", "zeo", "thorp or buddycache"),
    ] {
        let mut call = vec!["plan", "site", flag];
        call.extend(Some(value).filter(|value| !value.is_empty()));
        assert_refused(&run(&call), what);
    }
}

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

#[test]
fn web_caches_are_answered_in_a_sentence() {
    let said = run(&["plan", "web"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let start = "Yes: 10 caches that cooperate (hierarchical) save 26 % of the waiting";
    assert!(said.out.starts_with(start), "{}", said.out);
    for line in ["each on its own", "By population", "requests of a client"] {
        assert!(said.out.contains(line), "{line} in {}", said.out);
    }
    let far = run(&["plan", "web", "--scheme", "hashed", "--between-ms", "1500"]);
    assert!(far.out.starts_with("No:"), "{}", far.out);
    let large = run(&[
        "plan",
        "web",
        "--clients",
        "1e9",
        "--documents",
        "1e12",
        "--tree",
        "1:100,10:50,10:10",
    ]);
    assert!(large.out.contains("100 caches"), "{}", large.out);
    let full = run(&["plan", "web", "--room-gb", "200", "--spacing", "pareto"]);
    assert!(full.out.contains("Che's approximation"), "{}", full.out);
}

#[test]
fn what_servers_are_spared_is_told_with_its_unit() {
    let said = run(&["plan", "web", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let table = &told["sections"][0]["tables"][0];
    assert_eq!(table["columns"][4], "servers need not send, MB/s");
    // Half a million clients ask for 590 documents of 7.7 KB a day, 26.3 MB a second, of which one cache for all hits 55 %.
    assert_eq!(table["rows"][1][1]["text"], "55 %");
    assert_eq!(table["rows"][1][4]["text"], "15");
}

#[test]
fn one_cache_is_alone_and_has_no_tree() {
    let said = run(&["plan", "web", "--caches", "1"]);
    assert!(
        said.out.starts_with("No: one cache has nobody"),
        "{}",
        said.out
    );
    for wrong in [
        "root",
        "tree",
        "hashed",
        "another cache",
        "By latency",
        "without effect",
    ] {
        assert!(!said.out.contains(wrong), "{wrong} in {}", said.out);
    }
    let said = run(&[
        "plan",
        "web",
        "--caches",
        "1",
        "--between-ms",
        "5",
        "--scheme",
        "hashed",
    ]);
    for line in [
        "without effect",
        "--between-ms",
        "--scheme",
        "one cache has no other",
    ] {
        assert!(said.out.contains(line), "{line} in {}", said.out);
    }
    let told = run(&["plan", "web", "--tree", "1:20"]);
    assert!(told.out.contains("hierarchical"), "{}", told.out);
}

#[test]
fn a_parameter_is_varied_over_its_range() {
    let said = run(&["plan", "web", "--sweep", "alpha=0.6:1.2", "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let section = &told["sections"][4];
    let table = &section["tables"][0];
    assert_eq!(table["title"], "By exponent of popularity");
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(
        (rows.len(), &rows[0][0]["value"], &rows[8][0]["value"]),
        (9, &0.6.into(), &1.2.into())
    );
    assert_eq!(section["charts"][0]["series"].as_array().unwrap().len(), 4);
    // What is varied up to what is told is what is told.
    for (sweep, row) in [
        ("alpha=0.5:0.8", 8),
        ("clients=1000:500000", 8),
        ("requests-per-day=1:590", 8),
        ("popular-change-days=0.01:1", 8),
        ("other-change-days=1:186", 8),
        ("documents=1e6:3.2e9", 8),
    ] {
        let said = run(&["plan", "web", "--sweep", sweep, "--json"]);
        let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let now = &told["sections"][0]["tables"][0]["rows"];
        let last = &told["sections"][4]["tables"][0]["rows"][row];
        for scheme in 0..4 {
            assert_eq!(last[2 + scheme], now[scheme][2], "{sweep}");
        }
        assert_eq!(last[1]["text"], "92 %", "{sweep}");
    }
}

#[test]
fn nobody_is_told_to_cooperate_where_servers_are_nearer() {
    for (flag, value, why) in [
        ("--server-ms", "2.5", "no cache pays, alone or together."),
        ("--near-ms", "1e7", "no cache pays, alone or together."),
        ("--between-ms", "1e7", "cooperating does not pay."),
    ] {
        let one = run(&["plan", "web", "--caches", "1", flag, value]);
        let pays = flag == "--between-ms";
        assert_eq!(one.out.contains("it does not pay"), !pays, "{}", one.out);
        let said = run(&["plan", "web", flag, value]);
        let answer = said.out.lines().next().unwrap();
        assert!(
            answer.starts_with("No: a server answers in") && answer.contains(why),
            "{answer}"
        );
        for wrong in ["lose", "save", "-1"] {
            assert!(!answer.contains(wrong), "{wrong} in {answer}");
        }
    }
}

#[test]
fn what_web_caches_rest_on_is_read_easily_and_checked_at_the_end() {
    let said = run(&["plan", "web", "--documents", "3.2e9"]);
    for line in ["as much as there is", "3.2 billion", "  1 day "] {
        assert!(said.out.contains(line), "{line} in {}", said.out);
    }
    let is_exponential =
        |word: &str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains("e-");
    assert!(
        !said.out.split_whitespace().any(is_exponential),
        "{}",
        said.out
    );
    let at = |text: &str| said.out.find(text).unwrap();
    assert!(at("The thesis takes an integral") > at("exponent of popularity"));
}

/// What a document takes in a tree, by the latency between caches.
fn tree_by_distance(flags: &[&str]) -> Vec<String> {
    let said = run(&[&["plan", "web", "--json"][..], flags].concat());
    let told: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    let table = &told["sections"][2]["tables"][0];
    assert_eq!(table["columns"][2], "hierarchical");
    let rows = table["rows"].as_array().expect("rows").iter();
    rows.map(|row| row[2]["text"].as_str().expect("text").to_owned())
        .collect()
}

#[test]
fn a_tree_is_as_far_as_its_row_says_unless_it_was_told() {
    let mut follows = tree_by_distance(&[]);
    let rows = follows.len();
    follows.dedup();
    assert_eq!(follows.len(), rows, "{follows:?}");
    let at = |ms| tree_by_distance(&["--between-ms", ms]).pop();
    assert_eq!(at("10"), at("500"), "the row of 2 s is what it is");
    let mut told = tree_by_distance(&["--tree", "1:50,10:10"]);
    told.dedup();
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn web_caches_that_cannot_be_are_refused() {
    for (flags, what) in [
        ("--clients 0", "--clients must be a number above 0"),
        ("--caches 2.5", "--caches must be a whole number"),
        ("--documents 0", "--documents must be a number not below 1"),
        (
            "--documents 10 --popular-documents 11",
            "--popular-documents must not be more than all 10",
        ),
        ("--alpha=-1", "--alpha must be between 0 and 20"),
        (
            "--popular-change-days nan",
            "--popular-change-days must be a time, or inf",
        ),
        (
            "--spacing weibull",
            "exponential, pareto, lognormal or regular",
        ),
        ("--spacing pareto --shape 1", "--shape must be between"),
        (
            "--shape 2",
            "--shape is for --spacing pareto, and that is exponential",
        ),
        (
            "--spacing pareto --sigma 2",
            "--sigma is for --spacing lognormal, and that is pareto",
        ),
        ("--stale dropped", "--stale is for caches that fill up"),
        (
            "--sweep members=1:10",
            "--sweep is a parameter and its range",
        ),
        ("--sweep alpha=2:1", "--sweep is a parameter and its range"),
        ("--cacheable 60", "--cacheable must be between 0 and 1"),
        ("--tree 1:50,x", "--tree is levels from the top"),
        (
            "--tree 1:50,10:10 --caches 8",
            "--tree has 10 lowest caches, --caches is 8",
        ),
        ("--room-gb 5 --scheme hierarchical", "limited room"),
        ("--scheme mesh", "hierarchical, hashed, directory or best"),
        ("--stale foo", "--stale is lingers or dropped, not foo"),
        ("--clients 2.5", "--clients must be a whole number"),
        (
            "--popular-documents 2.5",
            "--popular-documents must be a whole number",
        ),
        ("--popular-documents 1e300", "up to 1e15, not 1e300"),
        (
            "--server-ms 1e10",
            "--server-ms must be a number not above 1e9",
        ),
        ("--near-ms 1e10", "--near-ms must be a number not above 1e9"),
        (
            "--between-ms inf",
            "--between-ms must be a number not below 0",
        ),
        ("--tree 1:1e10,10:10", "--tree is levels from the top"),
        (
            "--document-kb 1e300",
            "--document-kb must be a number not above 1e12",
        ),
        (
            "--requests-per-day 1e300",
            "--requests-per-day must be a number not above 1e12",
        ),
        (
            "--room-gb 1e16",
            "--room-gb must be a number not above 1e15",
        ),
        (
            "--between-ms=-1",
            "--between-ms must be a number not below 0",
        ),
    ] {
        let mut call = vec!["plan", "web"];
        call.extend(flags.split(' '));
        assert_refused(&run(&call), what);
    }
}

#[test]
fn the_papers_are_computed_into_a_page_with_its_charts() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().display().to_string();
    let said = run(&["plan", "paper", "--out", &out, "--data", &out]);
    assert_eq!(said.code, 0, "{}", said.err);
    for what in [
        "warning: left out: Replayed traces (thesis, section 3.4.3); Prefetching: policies on traces",
        "traces/orm-busy.trace.xz: cannot be read: No such file",
        "traces/multi3.trace.gz: cannot be read: No such file",
    ] {
        assert!(said.err.contains(what), "{what} in {}", said.err);
    }
    let page = fs::read_to_string(dir.path().join("planning.md")).unwrap();
    let charts: Vec<&str> = page
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .collect();
    assert!(charts.len() >= 2, "{page}");
    for chart in charts {
        assert!(dir.path().join(chart).is_file(), "{chart}");
    }
}

#[test]
fn what_is_no_directory_is_refused_before_anything_is_computed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let file = file.display().to_string();
    let pictures = run(&["plan", "site", "--svg", &file]);
    let what = format!("{file} is a file\n  -> name a directory");
    assert_eq!(pictures.code, 1, "{}", pictures.err);
    assert!(pictures.err.contains(&what), "{}", pictures.err);
    for flags in [
        ["--data", "/no/such/directory"],
        ["--data", &file],
        ["--out", &file],
    ] {
        let said = run(&[&["plan", "paper"][..], &flags].concat());
        assert_eq!(said.code, 1, "{}", said.err);
        let first = said.err.lines().next().unwrap();
        assert!(first.contains(flags[1]), "{}", said.err);
    }
}

/// What two members recorded: both read the same pages over and over, a little out of step, and each has memory for half of them.
fn recorded(dir: &std::path::Path) -> [String; 2] {
    ["anna", "ben"].map(|name| {
        let offset = if name == "anna" { 0 } else { 20 };
        let rows = (0..400).map(|at| {
            format!(
                "{},{name},read,7/{},8192\n",
                at * 1000 + offset,
                (at + offset) % 40
            )
        });
        let path = dir.join(format!("{name}.csv"));
        let text = format!(
            "time_us,client,op,object,size\n{}",
            rows.collect::<String>()
        );
        fs::write(&path, text).expect("written");
        path.display().to_string()
    })
}

#[test]
fn the_readme_runs_as_it_is_written_and_says_what_is_answered() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"));
    let readme = readme.unwrap();
    let dir = tempfile::tempdir().unwrap();
    recorded(dir.path());
    for (name, step) in [("mon.txt", 7), ("tue.txt", 11)] {
        let lines = (0..400).map(|at| format!("{}\n", at * step % 90));
        fs::write(dir.path().join(name), lines.collect::<String>()).unwrap();
    }
    let commands = readme
        .lines()
        .filter(|line| line.starts_with("thorp plan "));
    // Where a site runs, that is tested with one.
    let commands: Vec<&str> = commands
        .filter(|line| !line.contains("--from-metrics"))
        .collect();
    assert!(commands.len() >= 5, "{commands:?}");
    for (at, command) in commands.into_iter().enumerate() {
        let words = command.split_whitespace().skip(1);
        let words: Vec<&str> = words.take_while(|word| *word != "#").collect();
        let mut command = thorp(&words);
        command.current_dir(dir.path());
        let said = finish(command);
        assert_eq!(said.code, 0, "{words:?}: {}", said.err);
        if at == 0 {
            let answer = said.out.lines().next().unwrap();
            assert!(readme.contains(&format!("\n> {answer}\n")), "{answer}");
        }
    }
}

#[test]
fn files_that_are_said_to_be_of_one_member_each_are_as_many_members() {
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
    let named = run(&call);
    assert!(named.out.contains("6 members"), "{}", named.out);
    let files = run(&[&call[..], &["--deal", "by-file"]].concat());
    assert!(files.out.contains("2 members"), "{}", files.out);
    assert!(
        files.out.contains("default: each file is a member"),
        "{}",
        files.out
    );
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
