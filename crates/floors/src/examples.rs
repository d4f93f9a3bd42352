//! Every example of the documentation runs: a test runs what has no `no_run` and no `ignore`.

use crate::complaint::{Complaint, Verdict};
use crate::packages::Package;
use crate::tree::Tree;

/// Checks the comments of all crates, and the pages that a crate's documentation may begin with.
pub(crate) fn check(tree: &Tree, packages: &[Package]) -> Verdict {
    let mut examples = 0;
    let mut complaints = Vec::new();
    for package in packages {
        for (path, text) in files(tree, package) {
            for fence in fences(text) {
                examples += usize::from(fence.is_example());
                let mark = fence.words().find(|word| does_not_run(word));
                complaints.extend(mark.map(|mark| complain(path, &fence, mark)));
            }
        }
    }
    Verdict {
        check: "examples",
        seen: vec![("examples that run", examples)],
        knots: None,
        complaints,
    }
}

fn files<'a>(tree: &'a Tree, package: &Package) -> impl Iterator<Item = (&'a str, &'a str)> {
    let sources = format!("{}src/", package.folder);
    let page = format!("{}README.md", package.folder);
    let is_ours = move |path: &str| path.starts_with(&sources) || path == page;
    let texts = tree
        .texts()
        .filter(|(path, _)| path.ends_with(".rs") || path.ends_with(".md"));
    texts.filter(move |(path, _)| is_ours(path))
}

fn complain(path: &str, fence: &Fence, mark: &str) -> Complaint {
    let wrong = format!("the example is marked `{mark}`, so nothing finds out when it is wrong");
    let remedy = "let it run, in a village of `thorp-testing` if it needs one";
    Complaint::new((path, fence.line), wrong, remedy)
}

/// The first line of a block of code.
struct Fence<'a> {
    line: usize,
    info: &'a str,
}

impl<'a> Fence<'a> {
    fn words(&self) -> impl Iterator<Item = &'a str> {
        let words = self.info.split([',', ' ', '{', '}']);
        words.filter(|word| !word.is_empty())
    }

    /// Whether a test runs it.
    fn is_example(&self) -> bool {
        let runs = |word| word == "rust" || word == "should_panic" || word == "compile_fail";
        self.words().all(runs)
    }
}

fn does_not_run(word: &str) -> bool {
    // An `ignore-wasm` goes on to a list of systems.
    word == "no_run" || word == "ignore" || word.starts_with("ignore-")
}

/// The blocks of code in the comments of a file, or in a page.
fn fences(text: &str) -> Vec<Fence<'_>> {
    let mut fences = Vec::new();
    let mut is_open = false;
    for (line, words) in (1..).zip(text.lines()) {
        let words = words.trim_start().trim_start_matches(['/', '!', '*']);
        let Some(info) = words.trim_start().strip_prefix("```") else {
            continue;
        };
        if !is_open {
            fences.push(Fence {
                line,
                info: info.trim_matches('`'),
            });
        }
        is_open = !is_open;
    }
    fences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::packages;

    fn verdict(source: &str, page: &str) -> Verdict {
        let tree = Tree::of(&[
            ("core/Cargo.toml", "[package]\nname = 'core'"),
            ("core/src/a/b.rs", source),
            ("core/README.md", page),
            ("docs/page.md", "```rust,ignore\n```"),
        ]);
        let packages = packages(&tree).expect("a manifest");
        check(&tree, &packages)
    }

    #[test]
    fn an_example_that_does_not_run_is_a_complaint() {
        let source = "//! ```no_run\n//! ```\nfn f() {}\n    /// ```rust,ignore\n    /// ```\n";
        let page = "# Core\n\n```rust ignore-wasm\n```\n";
        let complaints = verdict(source, page).complaints;
        let places = complaints.iter().map(|one| (one.file.as_str(), one.line));
        assert_eq!(
            Vec::from_iter(places),
            [
                ("core/README.md", 3),
                ("core/src/a/b.rs", 1),
                ("core/src/a/b.rs", 4)
            ]
        );
    }

    #[test]
    fn examples_are_counted_and_other_blocks_are_not() {
        let source = "/// ```\n/// ```\n/// ```text\n/// ```\n/// ```should_panic\n/// ```\n";
        let page = "```rust\nlet mark = \"```no_run\";\n```\nIt does not `ignore` errors.\n";
        let verdict = verdict(source, page);
        assert_eq!(verdict.seen, [("examples that run", 3)]);
        assert_eq!(verdict.complaints, []);
    }
}
