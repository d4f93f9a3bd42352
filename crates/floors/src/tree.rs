//! The files of the repository.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// Folders that hold what was built, fetched or measured.
const NOT_OURS: &[&str] = &[
    "target",
    "lab-out",
    "demo-out",
    "corpus",
    "artifacts",
    "coverage",
];

/// Files whose words are read. Of any other file only the name matters.
const TEXTS: &[&str] = &["rs", "md", "txt", "tla", "cfg", "toml", "py", "sh"];

/// Every file by its path from the root, with `/` between the parts.
#[derive(Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, Option<String>>,
}

impl Tree {
    /// The tree below a folder.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.take_folder(root, "")?;
        Ok(tree)
    }

    /// A tree for a test: paths and texts.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter();
        let files = files.map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned())));
        Self {
            files: files.collect(),
        }
    }

    fn take_folder(&mut self, folder: &Path, inside: &str) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = format!("{inside}{name}");
            if entry.file_type()?.is_dir() {
                let hidden = name.starts_with('.') && name != ".ci";
                if !hidden && !NOT_OURS.contains(&name.as_str()) {
                    self.take_folder(&entry.path(), &format!("{path}/"))?;
                }
            } else {
                let text = is_text(&name).then(|| fs::read_to_string(entry.path()));
                self.files.insert(path, text.transpose()?);
            }
        }
        Ok(())
    }

    /// The text of a file; none if there is no such file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// All texts, by path.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter();
        files.filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// All paths below a folder, whose name ends with `/`.
    pub(crate) fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a str> {
        let paths = self.files.range(folder.to_owned()..).map(|(path, _)| path);
        let paths = paths.take_while(move |path| path.starts_with(folder));
        paths.map(String::as_str)
    }

    /// Whether a file or a folder has this path.
    pub(crate) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        path.is_empty()
            || self.files.contains_key(path)
            || self.below(&format!("{path}/")).next().is_some()
    }

    /// Whether the path of some file or folder ends with these parts. A `*` stands for any characters within one part.
    pub(crate) fn has_ending(&self, parts: &str) -> bool {
        let wanted: Vec<&str> = parts.trim_end_matches('/').split('/').collect();
        self.files.keys().any(|path| {
            let path: Vec<&str> = path.split('/').collect();
            path.windows(wanted.len()).any(|some| {
                some.iter()
                    .zip(&wanted)
                    .all(|(part, like)| fits(part, like))
            })
        })
    }
}

fn is_text(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| TEXTS.contains(&ending)) || name == "Makefile"
}

/// Whether a name is like a pattern with at most one `*`.
fn fits(name: &str, like: &str) -> bool {
    match like.split_once('*') {
        None => name == like,
        Some((head, tail)) => {
            name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_have_paths() {
        let tree = Tree::of(&[("docs/a/one.md", ""), ("docs/ab.md", "")]);
        assert!(tree.has("docs/a/one.md") && tree.has("docs/a/") && tree.has("docs"));
        assert!(!tree.has("docs/one.md") && !tree.has("doc"));
        assert_eq!(tree.below("docs/a/").count(), 1);
    }

    #[test]
    fn an_ending_is_compared_part_by_part() {
        let tree = Tree::of(&[("crates/sim/src/checks/end.rs", "")]);
        assert!(tree.has_ending("checks/end.rs") && tree.has_ending("sim/src"));
        assert!(tree.has_ending("checks/*.rs") && !tree.has_ending("checks/*.md"));
        assert!(!tree.has_ending("ecks/end.rs") && !tree.has_ending("src/end.rs"));
    }
}
