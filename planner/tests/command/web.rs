//! `thorp plan web`, as a user calls it.

use super::common::{assert_refused, run};

fn answer(flags: &[&str]) -> String {
    let said = run(&[&["plan", "web"][..], flags].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    said.out.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn heavy_tails_are_answered_for_any_exponent() {
    for flags in [
        &["--spacing", "pareto", "--alpha", "20"][..],
        &["--spacing", "lognormal", "--sigma", "10", "--alpha", "20"],
        &["--spacing", "pareto", "--sweep", "alpha=0:20"],
    ] {
        let said = answer(flags);
        assert!(said.contains("10 caches"), "{said}");
    }
}

#[test]
fn where_no_scheme_saves_anything_none_is_named() {
    let said = answer(&["--alpha", "5"]);
    let start = "No: no scheme saves 10 caches anything: a document takes 766 ms, as it does with each on its own. Nor would it if they stood side by side.";
    assert!(said.starts_with(start), "{said}");
    let far = answer(&["--between-ms", "1900", "--server-ms", "1901"]);
    assert!(
        far.starts_with("No: no scheme saves 10 caches anything"),
        "{far}"
    );
    assert!(far.contains("(hierarchical) pays up to 1.90 s"), "{far}");
}

#[test]
fn it_is_told_how_far_the_scheme_that_is_answered_for_pays() {
    let said = answer(&["--between-ms", "1000"]);
    let told = "A root above the caches (hierarchical) pays up to 1.90 s between caches, hashing pays up to";
    assert!(
        said.contains("cooperate (hierarchical)") && said.contains(told),
        "{said}"
    );
    let own = answer(&["--tree", "1:50,10:10"]);
    assert!(
        own.contains("Hashing pays up to") && !own.contains("A root"),
        "{own}"
    );
}

#[test]
fn a_sweep_is_of_what_can_be() {
    let wrong = ["plan", "web", "--sweep", "popular-change-days=1e-300:1e15"];
    let said = run(&wrong);
    assert!(
        said.code == 2 && said.err.contains("--sweep"),
        "{}",
        said.err
    );
    let widest = ["plan", "web", "--sweep", "popular-change-days=1e-12:1e15"];
    let said = run(&widest);
    assert!(said.code == 0 && !said.out.contains("NaN"), "{}", said.err);
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
