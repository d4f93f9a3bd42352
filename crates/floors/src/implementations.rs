//! A type is implemented in the file that declares it. This holds for methods that belong to no trait.

use crate::complaint::{Complaint, Verdict};
use crate::knots::{Kind, Knots};
use crate::modules::{File, Modules};
use crate::source::Reference;
use std::collections::BTreeSet;

/// Checks the libraries and programs of all crates, each with the name of its crate.
pub(crate) fn check(targets: &[(String, Modules)], knots: &Knots) -> Verdict {
    let mut complaints = BTreeSet::new();
    let mut blocks = 0;
    for (krate, modules) in targets {
        for file in &modules.files {
            blocks += file.source.inherent.len();
            complaints.extend(
                file.source
                    .inherent
                    .iter()
                    .filter_map(|block| judge(krate, modules, file, block, knots)),
            );
        }
    }
    let mut complaints: Vec<Complaint> = complaints.into_iter().collect();
    complaints.extend(knots.not_needed(Kind::Type));
    Verdict {
        check: "implementations",
        seen: vec![("blocks of methods", blocks)],
        knots: Some((
            "files with others' methods in today's knots",
            knots.count(Kind::Type),
        )),
        complaints,
    }
}

fn judge(
    krate: &str,
    modules: &Modules,
    file: &File,
    block: &Reference,
    knots: &Knots,
) -> Option<Complaint> {
    let name = block.path.last()?;
    if file.source.types.contains(name) {
        return None;
    }
    // One more file with methods of a type in today's knots is a new knot.
    if knots.excuse(Kind::Type, krate, &format!("{name} in {}", file.path)) {
        return None;
    }
    let declaring = modules.resolve(&block.module, &block.path);
    let remedy = match declaring {
        Some(number) => format!("move these methods to {}", modules.files[number].path),
        None => "move these methods to the file that declares the type".to_owned(),
    };
    let wrong = format!("methods of `{name}` stand outside the file that declares it");
    Some(Complaint::new((&file.path, block.line), wrong, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn complaints(other: &str, knots: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("src/lib.rs", "mod a; mod b;"),
            (
                "src/a.rs",
                "pub struct A; impl A {} trait T {} impl dyn T {}",
            ),
            ("src/b.rs", other),
        ]);
        let modules = Modules::read(&tree, "src/lib.rs").expect("Rust");
        let knots = Knots::parse(knots).expect("a list");
        let verdict = check(&[("core".to_owned(), modules)], &knots);
        let complaints = verdict.complaints.iter();
        complaints.map(|complaint| complaint.to_string()).collect()
    }

    #[test]
    fn methods_stand_where_their_type_does() {
        assert_eq!(
            complaints("use crate::a::A; impl T for A {}", ""),
            Vec::<String>::new()
        );
        assert_eq!(
            complaints("use crate::a::A;\nimpl A {}", ""),
            [
                "src/b.rs:2: methods of `A` stand outside the file that declares it \
                 -> move these methods to src/a.rs"
            ]
        );
        assert_eq!(complaints("impl crate::a::A {}", "").len(), 1);
        assert_eq!(
            complaints("#[cfg(test)] mod tests { impl super::A {} }", "").len(),
            0
        );
    }

    #[test]
    fn todays_knots_are_excused_and_have_to_be_needed() {
        let knot = "type | core | A in src/b.rs | large";
        assert_eq!(
            complaints("use crate::a::A; impl A {}", knot),
            Vec::<String>::new()
        );
        assert_eq!(complaints("", knot).len(), 1);
        let elsewhere = "type | core | A in src/c.rs | large";
        assert_eq!(complaints("use crate::a::A; impl A {}", elsewhere).len(), 2);
    }
}
