//! The modules of a library are private, and its head re-exports by name. Nothing is re-exported as a whole.

use crate::complaint::{Complaint, Verdict};
use crate::knots::{Kind, Knots};
use crate::modules::Modules;
use crate::packages::Package;
use crate::tree::Tree;

/// Checks the libraries of all crates.
pub(crate) fn check(
    tree: &Tree,
    packages: &[Package],
    targets: &[(String, Modules)],
    knots: &Knots,
) -> Verdict {
    let heads = packages.iter().filter_map(|package| package.library(tree));
    let heads: Vec<String> = heads.collect();
    let mut complaints = Vec::new();
    for (krate, modules) in targets {
        for (place, what, wrong, remedy) in faults(modules, &heads) {
            if !knots.excuse(Kind::Public, krate, &what) {
                complaints.push(Complaint::new(place, wrong, remedy));
            }
        }
    }
    complaints.extend(knots.not_needed(Kind::Public));
    Verdict {
        check: "public",
        seen: vec![("libraries", heads.len())],
        knots: Some(("public modules today", knots.count(Kind::Public))),
        complaints,
    }
}

/// Where a fault is, what the list calls it, what is wrong and what to do.
type Fault<'a> = ((&'a str, usize), String, String, &'static str);

fn faults<'a>(modules: &'a Modules, heads: &[String]) -> Vec<Fault<'a>> {
    let mut faults = Vec::new();
    for file in &modules.files {
        let is_head = heads.contains(&file.path);
        for (name, line) in file.source.public.iter().filter(|_| is_head) {
            let wrong = format!("the module `{name}` is public");
            let remedy = "make it private and re-export what others need by name";
            faults.push(((&*file.path, *line), name.clone(), wrong, remedy));
        }
        for import in file
            .source
            .uses
            .iter()
            .filter(|import| import.public && import.all)
        {
            let what = format!("{}::*", import.path.join("::"));
            let wrong = format!("`{what}` is re-exported as a whole");
            faults.push((
                (&*file.path, import.line),
                what,
                wrong,
                "name what others need",
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::packages;

    fn complaints(head: &str, other: &str, knots: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("core/Cargo.toml", "[package]\nname = 'core'"),
            ("core/src/lib.rs", head),
            ("core/src/a.rs", other),
        ]);
        let packages = packages(&tree).expect("a manifest");
        let modules = Modules::read(&tree, "core/src/lib.rs").expect("Rust");
        let knots = Knots::parse(knots).expect("a list");
        let verdict = check(&tree, &packages, &[("core".to_owned(), modules)], &knots);
        let complaints = verdict.complaints.iter();
        complaints.map(|complaint| complaint.to_string()).collect()
    }

    #[test]
    fn a_public_module_is_a_complaint() {
        assert_eq!(
            complaints("mod a; pub use a::A;", "pub mod b {}", ""),
            Vec::<String>::new()
        );
        assert_eq!(
            complaints("//! Head.\npub mod a;", "", ""),
            ["core/src/lib.rs:2: the module `a` is public \
                 -> make it private and re-export what others need by name"]
        );
    }

    #[test]
    fn a_re_export_of_everything_is_a_complaint() {
        assert_eq!(
            complaints(
                "mod a; pub use a::*;",
                "pub(crate) use super::b::*; use std::fmt::*;",
                ""
            ),
            [
                "core/src/lib.rs:1: `a::*` is re-exported as a whole -> name what others need",
                "core/src/a.rs:1: `super::b::*` is re-exported as a whole -> name what others need",
            ]
        );
    }

    #[test]
    fn todays_modules_are_excused_and_have_to_be_needed() {
        let knots = "public | core | a | today";
        assert_eq!(complaints("pub mod a;", "", knots), Vec::<String>::new());
        assert_eq!(complaints("mod a;", "", knots).len(), 1);
    }
}
