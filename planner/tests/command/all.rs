//! `thorp plan`: what all its questions have in common.

use super::common::{assert_refused, finish, recorded, run, thorp};
use std::collections::HashSet;
use std::fs;

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
fn the_papers_are_computed_into_a_page_each_with_its_charts() {
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
    let pages = dir.path().join("planning");
    for paper in [
        "buddycache.md",
        "web-proxy-caching.md",
        "server-load.md",
        "cooperative-prefetching.md",
    ] {
        let page = fs::read_to_string(pages.join(paper)).unwrap();
        let charts: Vec<&str> = page
            .split("![")
            .skip(1)
            .filter_map(|rest| rest.split("](").nth(1)?.split(')').next())
            .collect();
        assert!(charts.len() >= 2, "{page}");
        for chart in charts {
            assert!(pages.join(chart).is_file(), "{chart}");
        }
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

#[test]
fn the_pages_run_as_they_are_written_and_say_what_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    recorded(dir.path());
    for (name, step) in [("mon.txt", 7), ("tue.txt", 11)] {
        let lines = (0..400).map(|at| format!("{}\n", at * step % 90));
        fs::write(dir.path().join(name), lines.collect::<String>()).unwrap();
    }
    for (page, commands_least) in [("docs/planning.md", 5), ("docs/planning-usage.md", 6)] {
        let path = format!("{}/../{page}", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(path).unwrap();
        let commands = text.lines().filter(|line| line.starts_with("thorp plan "));
        // Where a site runs, that is tested with one.
        let commands: Vec<&str> = commands
            .filter(|line| !line.contains("--from-metrics"))
            .collect();
        assert!(commands.len() >= commands_least, "{page}: {commands:?}");
        let mut answers = Vec::new();
        for command in commands {
            let words = command.split_whitespace().skip(1);
            let words: Vec<&str> = words.take_while(|word| *word != "#").collect();
            let mut command = thorp(&words);
            command.current_dir(dir.path());
            let said = finish(command);
            assert_eq!(said.code, 0, "{words:?}: {}", said.err);
            answers.push(said.out.lines().next().unwrap().to_owned());
        }
        // A quotation in one line.
        let text = text.replace("\n> ", " ");
        let answer = &answers[0];
        assert!(text.contains(&format!("\n {answer}\n")), "{page}: {answer}");
    }
}
