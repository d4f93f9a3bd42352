//! Whether a page shows what was printed.

/// A line of a page that stands for any number of lines.
const OMITTED: [&str; 2] = ["", "…"];

/// The first line of `shown` that is not in `printed`, in this order. Between the lines of a page others may be.
pub(crate) fn first_missing<'a>(shown: &'a str, printed: &str) -> Option<&'a str> {
    let mut printed = printed.lines().map(stable);
    let mut shown = shown.lines().filter(|line| !OMITTED.contains(&line.trim()));
    shown.find(|line| {
        let line = stable(line);
        // A line of a log begins with the time.
        !printed.any(|one| one.ends_with(&line))
    })
}

/// What stays of a line from run to run: neither ports, ids, tokens nor the width of columns.
pub(crate) fn stable(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let parts = word.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
        parts.map(stable_part).collect::<String>()
    });
    words.collect::<Vec<_>>().join(" ")
}

fn stable_part(part: &str) -> String {
    let bare = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let is_id = bare.len() >= ID_CHARS_MIN
        && bare.contains(|c: char| c.is_ascii_digit())
        && bare.chars().all(|c| c.is_ascii_hexdigit());
    match (is_id, bare.chars().all(|c| c == '-') && part.len() > 1) {
        (true, _) => format!("ID{}", &part[bare.len()..]),
        (false, true) => String::from("-"),
        (false, false) => part.to_owned(),
    }
}

/// Ports have five digits; numbers of objects, pages and bytes on the pages have fewer.
const ID_CHARS_MIN: usize = 5;

#[test]
fn ids_ports_and_widths_do_not_matter_and_all_else_does() {
    let alike = |a: &str, b: &str| stable(a) == stable(b);
    assert!(alike(
        "home dev at 127.0.0.1:35253",
        "  home dev at 127.0.0.1:42195"
    ));
    assert!(alike(
        "let into village 7105d1b82ab48c4c",
        "let into village 9c5061c2aa48c4c1"
    ));
    assert!(!alike(
        "thorp://dev/notes#1.0.1",
        "thorp://dev/notes#33.0.1"
    ));
    assert!(!alike("root greeting", "root grating"));
}

#[test]
fn lines_are_found_in_order() {
    let printed = "one\ntwo 12345\nthree\n";
    assert_eq!(first_missing("one\n…\nthree", printed), None);
    assert_eq!(first_missing("two 54321", printed), None);
    assert_eq!(first_missing("three\none\n", printed), Some("one"));
}
