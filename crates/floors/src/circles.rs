//! No files of a crate import each other in a circle.
//!
//! A module file and its own descendants may refer to each other: that is usual in Rust. Where they do, the references of
//! the module file to its descendants count no more, and what is left must hold no circle. So the descendants form none
//! either.

use crate::complaint::{Complaint, Verdict};
use crate::knots::{Kind, Knots};
use crate::modules::Modules;
use crate::source::Path;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The files that each file refers to, and in which line.
type Graph = Vec<BTreeMap<usize, usize>>;

/// Checks the libraries and programs of all crates, each with the name of its crate.
pub(crate) fn check(targets: &[(String, Modules)], knots: &Knots) -> Verdict {
    let mut complaints = Vec::new();
    let (mut files, mut references) = (0, 0);
    for (krate, modules) in targets {
        let graph = modules.graph();
        files += graph.len();
        references += graph.iter().map(BTreeMap::len).sum::<usize>();
        for circle in circles(modules, &graph) {
            let new = circle.iter().filter(|file| {
                let path = &modules.files[**file].path;
                !knots.excuse(Kind::Circle, krate, path)
            });
            complaints.extend(new.map(|file| complain(modules, &graph, &circle, *file)));
        }
    }
    complaints.extend(knots.not_needed(Kind::Circle));
    Verdict {
        check: "circles",
        seen: vec![("files", files), ("references between them", references)],
        knots: Some(("files in today's circles", knots.count(Kind::Circle))),
        complaints,
    }
}

fn complain(modules: &Modules, graph: &Graph, circle: &BTreeSet<usize>, file: usize) -> Complaint {
    let lean = without_descent(modules, graph);
    let way = way_around(&lean, circle, file).or_else(|| way_around(graph, circle, file));
    let way = way.expect("all files of a circle reach each other");
    let path = |file: &usize| modules.files[*file].path.as_str();
    let names = way.iter().map(path).collect::<Vec<_>>().join(" uses ");
    let wrong = format!("a circle of {} files: {names}", circle.len());
    let remedy = "move what both need to a file below them";
    Complaint::new((path(&file), graph[file][&way[1]]), wrong, remedy)
}

/// The graph without references of module files to their descendants: what is left shows better why a circle is one.
fn without_descent(modules: &Modules, graph: &Graph) -> Graph {
    let module = |file: usize| -> &Path { &modules.files[file].module };
    let mut graph = graph.clone();
    for (file, targets) in graph.iter_mut().enumerate() {
        targets.retain(|target, _| !module(*target).starts_with(module(file)));
    }
    graph
}

/// All circles that are none of a module file with its descendants.
fn circles(modules: &Modules, graph: &Graph) -> Vec<BTreeSet<usize>> {
    let mut graph = graph.clone();
    let mut found = Vec::new();
    loop {
        let components = components(&graph);
        found.clear();
        let mut cut = false;
        for component in components {
            match head(modules, &component) {
                None => found.push(component),
                Some(head) => {
                    graph[head].retain(|target, _| !component.contains(target));
                    cut = true;
                }
            }
        }
        if !cut {
            return found;
        }
    }
}

/// The file of a circle whose module is above those of all others in it.
fn head(modules: &Modules, circle: &BTreeSet<usize>) -> Option<usize> {
    let module = |file: usize| -> &Path { &modules.files[file].module };
    let head = *circle.iter().min_by_key(|file| module(**file).len())?;
    let above = circle
        .iter()
        .all(|file| module(*file).starts_with(module(head)));
    above.then_some(head)
}

/// The sets of at least two files that all reach each other.
fn components(graph: &Graph) -> Vec<BTreeSet<usize>> {
    let mut against: Graph = vec![BTreeMap::new(); graph.len()];
    for (from, targets) in graph.iter().enumerate() {
        for (to, line) in targets {
            against[*to].insert(from, *line);
        }
    }
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for file in 0..graph.len() {
        visit(graph, file, &mut seen, &mut order);
    }
    seen.clear();
    let components = order.into_iter().rev().map(|file| {
        let mut component = Vec::new();
        visit(&against, file, &mut seen, &mut component);
        component.into_iter().collect::<BTreeSet<_>>()
    });
    components.filter(|component| component.len() > 1).collect()
}

/// Adds what can be reached from a file and was not seen, each after all that it leads to.
fn visit(graph: &Graph, file: usize, seen: &mut BTreeSet<usize>, order: &mut Vec<usize>) {
    if seen.insert(file) {
        for target in graph[file].keys() {
            visit(graph, *target, seen, order);
        }
        order.push(file);
    }
}

/// A shortest way from a file of a circle back to it.
fn way_around(graph: &Graph, circle: &BTreeSet<usize>, start: usize) -> Option<Vec<usize>> {
    let mut before = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(file) = next.pop_front() {
        for target in graph[file].keys().filter(|file| circle.contains(file)) {
            if !before.contains_key(target) {
                before.insert(*target, file);
                next.push_back(*target);
            }
        }
    }
    let mut way = vec![start];
    let mut file = *before.get(&start)?;
    while file != start {
        way.push(file);
        file = before[&file];
    }
    way.push(start);
    way.reverse();
    Some(way)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn complaints(files: &[(&str, &str)], knots: &str) -> Vec<String> {
        let modules = Modules::read(&Tree::of(files), files[0].0).expect("Rust");
        let knots = Knots::parse(knots).expect("a list");
        let verdict = check(&[("core".to_owned(), modules)], &knots);
        let complaints = verdict.complaints.iter();
        complaints.map(|complaint| complaint.to_string()).collect()
    }

    const CIRCLE: &[(&str, &str)] = &[
        ("src/lib.rs", "mod a; mod b; mod c;"),
        ("src/a.rs", "\nuse crate::b::B;"),
        ("src/b.rs", "fn f() { super::c::f() }"),
        ("src/c.rs", "use crate::a;"),
    ];

    #[test]
    fn a_circle_of_files_is_a_complaint() {
        assert_eq!(
            complaints(CIRCLE, ""),
            [
                "src/a.rs:2: a circle of 3 files: src/a.rs uses src/b.rs uses src/c.rs uses src/a.rs \
                 -> move what both need to a file below them",
                "src/b.rs:1: a circle of 3 files: src/b.rs uses src/c.rs uses src/a.rs uses src/b.rs \
                 -> move what both need to a file below them",
                "src/c.rs:1: a circle of 3 files: src/c.rs uses src/a.rs uses src/b.rs uses src/c.rs \
                 -> move what both need to a file below them",
            ]
        );
        assert_eq!(complaints(&CIRCLE[..3], ""), Vec::<String>::new());
    }

    #[test]
    fn todays_circles_are_excused_file_by_file() {
        let some = "circle | core | src/a.rs | today\ncircle | core | src/b.rs | today";
        assert_eq!(complaints(CIRCLE, some).len(), 1);
        let all = format!("{some}\ncircle | core | src/c.rs | today");
        assert_eq!(complaints(CIRCLE, &all), Vec::<String>::new());
        // Without the circle, all of its lines have to go.
        assert_eq!(complaints(&CIRCLE[..3], &all).len(), 3);
    }

    #[test]
    fn a_module_file_and_its_descendants_may_refer_to_each_other() {
        let family = [
            ("src/lib.rs", "mod a; pub use a::A; const X: u8 = 0;"),
            (
                "src/a/mod.rs",
                "mod b; mod c; use b::B; use c::C; struct A;",
            ),
            ("src/a/b.rs", "use super::A; use crate::X;"),
            ("src/a/c.rs", "use super::{A, B};"),
        ];
        assert_eq!(complaints(&family, ""), Vec::<String>::new());
    }

    #[test]
    fn descendants_form_no_circle_behind_their_module_file() {
        let children = [
            ("src/lib.rs", "mod a;"),
            (
                "src/a/mod.rs",
                "mod b; mod c; use b::B; use c::C; struct A;",
            ),
            ("src/a/b.rs", "use super::{A, C};"),
            ("src/a/c.rs", "use super::{A, B};"),
        ];
        assert_eq!(complaints(&children, "").len(), 2);
    }

    #[test]
    fn a_child_leads_its_module_file_into_a_circle() {
        let through_a_child = [
            ("src/lib.rs", "mod a; mod d;"),
            ("src/a/mod.rs", "mod b; use b::B; pub struct A;"),
            ("src/a/b.rs", "use crate::d::D;"),
            ("src/d.rs", "use crate::a::A;"),
        ];
        assert_eq!(complaints(&through_a_child, "").len(), 3);
    }
}
