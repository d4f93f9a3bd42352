//! `thorp plan web`, as a user calls it.

mod common;

use common::run;

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
