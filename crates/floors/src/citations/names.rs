//! Names of types, functions and limits that a page finds in a file.
//!
//! A row of a table that names a file of Rust says in its first cell what stands there.

use super::{Found, PAGES, is_past};
use crate::complaint::Complaint;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Found {
    let mut found = Found::default();
    let mut count = 0;
    let pages = tree.texts().filter(|(path, _)| is_page(path));
    for (page, text) in pages {
        for (index, line) in text.lines().enumerate() {
            let Some(row) = Row::read(line) else { continue };
            count += row.names.len();
            found.complaints.extend(row.names.iter().filter_map(|name| {
                let complaint = row.judge(tree, name)?;
                Some(Complaint::new((page, index + 1), complaint.0, complaint.1))
            }));
        }
    }
    found.seen = vec![("names in files", count)];
    found
}

fn is_page(path: &str) -> bool {
    path.starts_with(PAGES) && path.ends_with(".md") && !is_past(path)
}

/// A row that says where names stand.
struct Row<'a> {
    names: Vec<&'a str>,
    files: Vec<&'a str>,
}

impl<'a> Row<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (first, rest) = line.strip_prefix('|')?.split_once('|')?;
        let files: Vec<&str> = quoted(rest).filter(|text| is_file(text)).collect();
        let names: Vec<&str> = quoted(first).filter(|text| is_name(text)).collect();
        (!files.is_empty() && !names.is_empty()).then_some(Self { names, files })
    }

    /// What is wrong with a name, and what to do. A file that does not exist is another check's concern.
    fn judge(&self, tree: &Tree, name: &str) -> Option<(String, &'static str)> {
        let last = name.rsplit("::").next().unwrap_or(name);
        let mut texts = self.files.iter().filter_map(|path| tree.text(path));
        if self.files.iter().any(|path| !tree.has(path)) || texts.any(|text| has(text, last)) {
            return None;
        }
        let wrong = format!("`{name}` does not stand in {}", self.files.join(", "));
        Some((wrong, "cite the name and the file that it has now"))
    }
}

/// What a line quotes as code.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_file(text: &str) -> bool {
    text.ends_with(".rs") && text.contains('/')
}

fn is_name(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(|letter| is_part(letter) || letter == ':')
}

fn is_part(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Whether a text has a word.
fn has(text: &str, word: &str) -> bool {
    text.split(|letter| !is_part(letter))
        .any(|some| some == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(line: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("docs/a.md", line),
            ("docs/decisions/a.md", "| `gone` | `a/b.rs` |"),
            ("a/b.rs", "struct Log; fn trim() {}"),
        ]);
        let complaints = check(&tree).complaints;
        complaints.iter().map(Complaint::to_string).collect()
    }

    #[test]
    fn names_that_stand_in_their_file_are_cited() {
        for line in [
            "| `Log::trim`, `Log` | `a/b.rs` | trims the log |",
            "| `trim` | nothing |",
            "| 7 of `trim` | `a/none.rs` |",
            "`Tree` stands in `a/b.rs`.",
        ] {
            assert_eq!(complaints(line), Vec::<String>::new());
        }
    }

    #[test]
    fn names_that_do_not_are_not() {
        let wrong = "does not stand in a/b.rs -> cite the name and the file that it has now";
        assert_eq!(
            complaints("| `Log::tri`, `trim` | what | `a/b.rs` |"),
            [format!("docs/a.md:1: `Log::tri` {wrong}")]
        );
    }
}
