//! The check of the house: what `docs/architecture.md` promises about the layout of the code holds.
//!
//! Each check is a module with a function of its own. It prints one line with counts, and one line for each place that
//! breaks a promise: `file:line: what is wrong -> what to do`. Exit code 0 if the house stands, 1 if not.
//!
//! `thorp-floors [ROOT]` checks the tree at ROOT, or else the tree that this program comes from.

mod circles;
mod citations;
mod complaint;
mod examples;
mod floors;
mod implementations;
mod knots;
mod modules;
mod packages;
mod public;
mod source;
mod tokens;
mod tree;

use complaint::Verdict;
use knots::Knots;
use modules::Modules;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tree::Tree;

fn main() -> ExitCode {
    let root = std::env::args_os().nth(1).map_or_else(root, PathBuf::from);
    match read(&root).and_then(|tree| check(&tree)) {
        Ok(verdicts) => report(&verdicts),
        Err(error) => {
            eprintln!("floors: {error}");
            ExitCode::FAILURE
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(root: &Path) -> Result<Tree, String> {
    Tree::read(root).map_err(|error| format!("{}: {error}", root.display()))
}

/// All checks of a tree.
fn check(tree: &Tree) -> Result<Vec<Verdict>, String> {
    let packages = packages::packages(tree)?;
    let targets = packages.iter().flat_map(|package| {
        let roots = package.roots(tree).into_iter();
        roots.map(|root| Ok((package.name.clone(), Modules::read(tree, &root)?)))
    });
    let targets = targets.collect::<Result<Vec<_>, String>>()?;
    let knots = Knots::parse(tree.text(knots::FILE).unwrap_or_default())?;
    Ok(vec![
        floors::check(tree, &packages),
        implementations::check(&targets, &knots),
        circles::check(&targets, &knots),
        public::check(tree, &packages, &targets, &knots),
        citations::check(tree),
        examples::check(tree, &packages),
    ])
}

fn report(verdicts: &[Verdict]) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for verdict in verdicts {
        println!("{verdict}");
        for complaint in &verdict.complaints {
            eprintln!("{complaint}");
            code = ExitCode::FAILURE;
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_house_stands() {
        let tree = read(&root()).expect("a tree");
        for verdict in check(&tree).expect("Rust and manifests") {
            assert_eq!(verdict.complaints, [], "{verdict}");
            let found = verdict.seen.iter().all(|(_, count)| *count > 0);
            assert!(found, "it looks past what it is to check: {verdict}");
        }
    }

    #[test]
    fn each_check_looks_at_the_whole_tree() {
        let tree = Tree::of(&[
            (
                "a/Cargo.toml",
                "[package]\nname = 'thorp-net'\n[dependencies]\nthorp-client = '1'",
            ),
            ("a/src/lib.rs", "pub mod b;\nmod c;"),
            ("a/src/b.rs", "pub struct B; use crate::c::C;"),
            ("a/src/c.rs", "pub struct C; use crate::b::B; impl B {}"),
            ("README.md", "rule 1"),
            ("a/README.md", "```no_run\n```"),
        ]);
        let verdicts = check(&tree).expect("Rust and manifests");
        let counts = verdicts.iter().map(|verdict| verdict.complaints.len());
        assert_eq!(counts.collect::<Vec<_>>(), [1, 1, 2, 1, 1, 1]);
    }
}
