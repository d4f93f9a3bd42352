//! `thorp plan site`, as a user calls it.

use super::common::run;

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
