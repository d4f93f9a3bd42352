//! Names of types, functions and limits that a page finds in a file.
//!
//! A row of a table that names a file of Rust says in its first cell what stands there.

use super::declared::Declared;
use super::{Found, PAGES, is_past};
use crate::complaint::Complaint;
use crate::tree::Tree;
use std::collections::BTreeMap;

pub(super) fn check(tree: &Tree) -> Found {
    let mut found = Found::default();
    let mut count = 0;
    let mut files = Files::default();
    let pages = tree.texts().filter(|(path, _)| is_page(path));
    for (page, text) in pages {
        for (index, line) in text.lines().enumerate() {
            let Some(row) = Row::read(line) else { continue };
            count += row.names.len();
            let faults = row.faults(tree, &mut files).into_iter();
            found.complaints.extend(
                faults.map(|(wrong, remedy)| Complaint::new((page, index + 1), wrong, remedy)),
            );
        }
    }
    found.seen = vec![("names in files", count)];
    found
}

/// What cited files declare. A file is read once.
#[derive(Default)]
struct Files(BTreeMap<String, Result<Declared, String>>);

impl Files {
    /// What a file declares; none if there is no such file.
    fn read(&mut self, tree: &Tree, path: &str) -> Option<&Result<Declared, String>> {
        let text = tree.text(path)?;
        let declared = self.0.entry(path.to_owned());
        Some(declared.or_insert_with(|| Declared::parse(path, text)))
    }
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

    /// What is wrong with the row, and what to do.
    fn faults(&self, tree: &Tree, files: &mut Files) -> Vec<(String, &'static str)> {
        let mut faults = Vec::new();
        let mut absent = self.names.clone();
        for path in &self.files {
            match files.read(tree, path) {
                None => faults.push((
                    format!("no file has the path `{path}`"),
                    "write the path from the root",
                )),
                Some(Err(error)) => {
                    faults.push((format!("{path}: {error}"), "cite a file of Rust"));
                }
                Some(Ok(declared)) => absent.retain(|name| !declared.has(name)),
            }
        }
        // What a file declares that is not read is not known.
        if faults.is_empty() {
            let wrong = |name| format!("`{name}` is not declared in {}", self.files.join(", "));
            let remedy = "cite the name and the file that it has now";
            faults.extend(absent.iter().map(|name| (wrong(name), remedy)));
        }
        faults
    }
}

/// What a line quotes as code.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_file(text: &str) -> bool {
    text.ends_with(".rs") && text.contains('/') && !text.contains('*')
}

fn is_name(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(|letter| is_part(letter) || letter == ':')
}

fn is_part(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(line: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("docs/a.md", line),
            ("docs/decisions/a.md", "| `gone` | `a/b.rs` |"),
            (
                "a/b.rs",
                "struct Log; impl Log { fn trim() {} } // Log::grow",
            ),
        ]);
        let complaints = check(&tree).complaints;
        complaints.iter().map(Complaint::to_string).collect()
    }

    #[test]
    fn names_that_their_file_declares_are_cited() {
        for line in [
            "| `Log::trim`, `Log` | `a/b.rs` | trims the log |",
            "| `trim` | nothing |",
            "| 7 of them | `a/none.rs` |",
            "`Tree` stands in `a/b.rs`.",
        ] {
            assert_eq!(complaints(line), Vec::<String>::new());
        }
    }

    #[test]
    fn names_that_it_does_not_declare_are_not() {
        for name in ["Log::tri", "Log::grow", "grow", "Old::trim"] {
            let row = format!("| `{name}`, `trim` | what | `a/b.rs` |");
            let wrong = format!("docs/a.md:1: `{name}` is not declared in a/b.rs");
            let remedy = "cite the name and the file that it has now";
            assert_eq!(complaints(&row), [format!("{wrong} -> {remedy}")]);
        }
    }

    #[test]
    fn a_row_names_its_file_from_the_root() {
        for path in ["b/c.rs", "none/b.rs"] {
            let row = format!("| `trim` | `{path}` |");
            let wrong = format!("docs/a.md:1: no file has the path `{path}`");
            let remedy = "write the path from the root";
            assert_eq!(complaints(&row), [format!("{wrong} -> {remedy}")]);
        }
    }
}
