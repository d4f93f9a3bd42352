//! Paths of files and folders that pages cite.

use super::{Found, PAGES, citing, is_past};
use crate::complaint::Complaint;
use crate::tree::Tree;
use std::collections::BTreeSet;

/// What files of the repository end with. A path that begins with none of its folders is one only with such an ending.
const ENDINGS: &[&str] = &["rs", "md", "tla", "cfg", "toml", "txt", "py", "sh", "svg"];

/// As [`ENDINGS`], for a name without a folder: other names like this are files of users.
const ENDINGS_OF_NAMES: &[&str] = &["rs", "md", "tla"];

pub(super) fn check(tree: &Tree) -> Found {
    let folders = folders(tree);
    let mut found = Found::default();
    let mut count = 0;
    for (page, text) in citing(tree) {
        let is_page = page.ends_with(".md");
        if is_past(page) {
            continue;
        }
        // Code cites only pages.
        let lines = text.lines().enumerate();
        for (index, line) in lines.filter(|(_, line)| is_page || line.contains(PAGES)) {
            for path in cited(&without_links(line), &folders)
                .filter(|path| is_page || path.starts_with(PAGES))
            {
                count += 1;
                if !exists(tree, &folders, page, path) {
                    let wrong = format!("there is no `{path}`");
                    let remedy = "cite a file or a folder that exists";
                    found
                        .complaints
                        .push(Complaint::new((page, index + 1), wrong, remedy));
                }
            }
        }
    }
    found.seen = vec![("paths", count)];
    found
}

/// The folders at the root.
fn folders(tree: &Tree) -> BTreeSet<&str> {
    let paths = tree.texts().filter_map(|(path, _)| path.split_once('/'));
    paths.map(|(folder, _)| folder).collect()
}

/// A line without the targets of its links, which are checked as such.
fn without_links(line: &str) -> String {
    let mut parts = line.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.split_once(')').map_or("", |(_, rest)| rest);
        text + "]" + rest
    })
}

/// What looks like a path in a line.
fn cited<'a>(line: &'a str, folders: &BTreeSet<&str>) -> impl Iterator<Item = &'a str> {
    let is_end = |letter: char| letter.is_whitespace() || "()[]<>{},;:\"'|`=#…".contains(letter);
    let words = line
        .split(is_end)
        .map(|word| word.trim_end_matches(['.', '-']));
    words.filter(move |word| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "._/*-".contains(letter);
        let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
        let looks_so = match word.split_once('/') {
            Some((first, _)) => folders.contains(first) || ENDINGS.contains(&ending),
            None => ENDINGS_OF_NAMES.contains(&ending),
        };
        looks_so && word.chars().all(plain) && !word.starts_with(['/', '.', '*'])
    })
}

fn exists(tree: &Tree, folders: &BTreeSet<&str>, page: &str, path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    let beside = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    match path.contains('/') && folders.contains(first) && !path.contains('*') {
        true => tree.has(path) || tree.has(&format!("{beside}/{path}")),
        false => tree.has_ending(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(page: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[
            (page, text),
            ("crates/sim/src/checks/end.rs", ""),
            ("spec/Chain.tla", ""),
            ("spec/docs/x.md", ""),
            ("docs/b.md", ""),
        ]);
        let complaints = check(&tree).complaints;
        complaints.iter().map(Complaint::to_string).collect()
    }

    #[test]
    fn what_exists_can_be_cited() {
        let text = "[a](end.md) `crates/sim/src/checks`, `crates/sim/src/checks/end.rs:7`, `checks/end.rs`, `end.rs`, spec/*.tla, \
                    `Chain.tla` and/or (docs/b.md); `/etc/x.md`, `OUT/x`, `home.toml`, https://a.b/docs/c.md";
        assert_eq!(complaints("docs/a.md", text), Vec::<String>::new());
        assert_eq!(
            complaints("spec/README.md", "docs/x.md"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn what_does_not_exist_cannot_be_cited() {
        for path in [
            "crates/sim/src/check",
            "crates/sim/src/checks/begin.rs",
            "checks/begin.rs",
            "begin.rs",
            "docs/x.md",
            "spec/*.cfg",
        ] {
            assert_eq!(
                complaints("README.md", &format!("\n(`{path}`).")),
                [format!(
                    "README.md:2: there is no `{path}` -> cite a file or a folder that exists"
                )]
            );
        }
    }

    #[test]
    fn code_cites_pages_and_records_of_the_past_cite_what_is_gone() {
        assert_eq!(complaints("crates/a.rs", "// docs/c.md, begin.rs").len(), 1);
        assert_eq!(
            complaints("docs/decisions/0001-a.md", "begin.rs"),
            Vec::<String>::new()
        );
    }
}
