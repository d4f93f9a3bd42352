//! Every rule, foundation, record, trap, story, path and link that code or pages cite exists.

mod declared;
mod links;
mod names;
mod numbers;
mod paths;
mod stories;
mod words;

use crate::complaint::{Complaint, Verdict};
use crate::tree::Tree;

/// The tests here cite what does not exist.
const NOT_READ: &str = "crates/floors/";

/// The folder of the pages.
const PAGES: &str = "docs/";

/// The folder of the records of decisions.
const RECORDS: &str = "docs/decisions/";

/// What one part of this check has found.
#[derive(Default)]
struct Found {
    /// What was cited, and how often.
    seen: Vec<(&'static str, usize)>,
    complaints: Vec<Complaint>,
}

/// Checks all texts.
pub(crate) fn check(tree: &Tree) -> Verdict {
    let mut all = Found::default();
    for part in [
        numbers::check,
        stories::check,
        paths::check,
        names::check,
        links::check,
    ] {
        let found = part(tree);
        all.seen.extend(found.seen);
        all.complaints.extend(found.complaints);
    }
    Verdict {
        check: "citations",
        seen: all.seen,
        knots: None,
        complaints: all.complaints,
    }
}

/// Comparisons of trees of the past.
const COMPARISONS: &str = "docs/house/";

/// Whether a page tells of the past: what it cites may be gone.
fn is_past(page: &str) -> bool {
    page.starts_with(RECORDS) || page.starts_with(COMPARISONS) || page == "CHANGELOG.md"
}

/// The texts that may cite, by path. Of a story only its comments are read: the rest is what the simulator printed.
fn citing(tree: &Tree) -> impl Iterator<Item = (&str, String)> {
    let texts = tree.texts().filter(|(path, _)| !path.starts_with(NOT_READ));
    texts.map(|(path, text)| match path.starts_with(stories::FOLDER) {
        true => (path, comments(text)),
        false => (path, text.to_owned()),
    })
}

/// The lines of a story that begin with `#`, each in its place.
fn comments(text: &str) -> String {
    let lines = text.lines().map(|line| match line.starts_with('#') {
        true => line,
        false => "",
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_story_only_comments_cite() {
        let story = "# Rule 4\nrule 5\n# rule 6";
        let tree = Tree::of(&[
            ("crates/sim/stories/a.txt", story),
            ("crates/floors/src/a.rs", "rule 7"),
        ]);
        let texts: Vec<_> = citing(&tree).collect();
        assert_eq!(
            texts,
            [(
                "crates/sim/stories/a.txt",
                "# Rule 4\n\n# rule 6".to_owned()
            )]
        );
    }

    #[test]
    fn all_parts_are_checked() {
        let tree = Tree::of(&[
            (
                "docs/a.md",
                "rule 99, `trap-99-none`, [b](b.md) and docs/c.md",
            ),
            ("docs/traps.md", "## Trap 1"),
        ]);
        let verdict = check(&tree);
        assert_eq!(verdict.complaints.len(), 4, "{:?}", verdict.complaints);
    }
}
