//! The modules of one library or program: which file holds which, and what a path means there.

use crate::source::{Path, Source, joined};
use crate::tree::Tree;
use std::collections::BTreeMap;

/// A library or a program, file by file. Files that only tests see are left out.
#[derive(Default)]
pub(crate) struct Modules {
    pub(crate) files: Vec<File>,
    /// The file of each module.
    holders: BTreeMap<Path, usize>,
    /// What each module imports, by its name there.
    imports: BTreeMap<(Path, String), Path>,
}

/// A file of a library or a program.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) module: Path,
    pub(crate) source: Source,
}

/// Imports of imports are followed this far.
const HOPS_MAX: usize = 8;

impl Modules {
    /// Reads a root and all files that belong to it.
    ///
    /// # Errors
    ///
    /// A file is no Rust.
    pub(crate) fn read(tree: &Tree, root: &str) -> Result<Self, String> {
        let mut modules = Self::default();
        modules.take(tree, root, Path::new())?;
        for file in &modules.files {
            for import in &file.source.uses {
                if let Some(name) = &import.name {
                    let key = (import.module.clone(), name.clone());
                    modules.imports.insert(key, import.path.clone());
                }
            }
        }
        Ok(modules)
    }

    fn take(&mut self, tree: &Tree, path: &str, module: Path) -> Result<(), String> {
        let text = tree
            .text(path)
            .ok_or_else(|| format!("{path}:1: there is no such file"))?;
        let source = Source::parse(&module, text).map_err(|error| format!("{path}:1: {error}"))?;
        let number = self.files.len();
        let inline = source.inline.iter().cloned();
        self.holders.extend(
            inline
                .chain([module.clone()])
                .map(|module| (module, number)),
        );
        let children = source.modules.iter().filter_map(|child| {
            let candidates = candidates(path, &module, &child.path, child.file.as_deref());
            let file = candidates.into_iter().find(|file| tree.has(file))?;
            Some((child.path.clone(), file))
        });
        let children: Vec<(Path, String)> = children.collect();
        self.files.push(File {
            path: path.to_owned(),
            module,
            source,
        });
        for (module, file) in children {
            self.take(tree, &file, module)?;
        }
        Ok(())
    }

    /// The file of what a path in a module names; none if that is not in here.
    pub(crate) fn resolve(&self, module: &[String], path: &[String]) -> Option<usize> {
        self.find(module, path, HOPS_MAX).map(|(file, _)| file)
    }

    /// The file, and the module where the path names one.
    fn find(
        &self,
        module: &[String],
        path: &[String],
        hops: usize,
    ) -> Option<(usize, Option<Path>)> {
        let (first, mut rest) = path.split_first()?;
        let mut here = match first.as_str() {
            "crate" => Path::new(),
            "self" => module.to_vec(),
            "super" => module[..module.len().checked_sub(1)?].to_vec(),
            name => return self.step(module, name, rest, hops),
        };
        while let [name, more @ ..] = rest {
            if name != "super" {
                return self
                    .step(&here, name, more, hops)
                    .or_else(|| Some((self.holder(&here)?, None)));
            }
            here.pop()?;
            rest = more;
        }
        Some((self.holder(&here)?, Some(here)))
    }

    /// As [`find`](Self::find), from a module on, by the next name.
    fn step(
        &self,
        here: &[String],
        name: &str,
        rest: &[String],
        hops: usize,
    ) -> Option<(usize, Option<Path>)> {
        let child = joined(here, name);
        let (file, inside) = match self.holder(&child) {
            Some(file) => (file, Some(child)),
            None => {
                let import = self.imports.get(&(here.to_vec(), name.to_owned()))?;
                self.find(here, import, hops.checked_sub(1)?)?
            }
        };
        let (Some(inside), [next, more @ ..]) = (&inside, rest) else {
            return Some((file, inside));
        };
        self.step(inside, next, more, hops).or(Some((file, None)))
    }

    fn holder(&self, module: &[String]) -> Option<usize> {
        self.holders.get(module).copied()
    }

    /// Which files each file refers to, and in which line first. A file does not refer to itself.
    pub(crate) fn graph(&self) -> Vec<BTreeMap<usize, usize>> {
        let files = self.files.iter().enumerate();
        files
            .map(|(number, file)| self.references(number, &file.source))
            .collect()
    }

    fn references(&self, number: usize, source: &Source) -> BTreeMap<usize, usize> {
        let uses = source.uses.iter();
        let uses = uses.map(|import| (&import.module, &import.path, import.line));
        let references = source.references.iter();
        let references = references.map(|found| (&found.module, &found.path, found.line));
        let mut targets = BTreeMap::new();
        for (module, path, line) in uses.chain(references) {
            if let Some(target) = self
                .resolve(module, path)
                .filter(|target| *target != number)
            {
                let first = targets.entry(target).or_insert(line);
                *first = line.min(*first);
            }
        }
        targets
    }
}

/// The files that may hold a module which another file declares.
fn candidates(
    parent: &str,
    module: &[String],
    child: &[String],
    attribute: Option<&str>,
) -> Vec<String> {
    let (folder, name) = parent.rsplit_once('/').unwrap_or(("", parent));
    if let Some(file) = attribute {
        return vec![format!("{folder}/{file}")];
    }
    let owns_folder = module.is_empty() || name == "mod.rs";
    let own = match owns_folder {
        true => folder.to_owned(),
        false => format!("{folder}/{}", name.trim_end_matches(".rs")),
    };
    let inside = child[module.len()..].join("/");
    vec![
        format!("{own}/{inside}.rs"),
        format!("{own}/{inside}/mod.rs"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        text.split("::")
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    }

    fn modules(files: &[(&str, &str)]) -> Modules {
        Modules::read(&Tree::of(files), files[0].0).expect("Rust")
    }

    #[test]
    fn paths_lead_to_files_through_modules_and_re_exports() {
        let modules = modules(&[
            ("src/lib.rs", "mod a; mod b; pub use a::{c::C, D};"),
            (
                "src/a/mod.rs",
                "mod c; pub use c::D; mod inline { pub struct E; }",
            ),
            (
                "src/a/c.rs",
                "pub struct C; pub struct D; use super::super::b as other;",
            ),
            ("src/b.rs", "use crate::a; #[cfg(test)] mod tests; mod f;"),
            ("src/b/f.rs", "use crate::b::f::f;"),
        ]);
        for (module, wanted, file) in [
            ("b", "crate::C", Some("src/a/c.rs")),
            ("b", "crate::D::new", Some("src/a/c.rs")),
            ("b", "a::D", Some("src/a/c.rs")),
            ("b", "a::inline::E", Some("src/a/mod.rs")),
            ("b", "super::a::F", Some("src/a/mod.rs")),
            ("b", "f::x", Some("src/b/f.rs")),
            ("a::c", "other::f", Some("src/b/f.rs")),
            ("a::c", "self::C", Some("src/a/c.rs")),
            ("a::c", "crate::unknown", Some("src/lib.rs")),
            ("b::f", "f::g", Some("src/b/f.rs")),
            ("a", "std::fmt", None),
            ("", "super::a", None),
        ] {
            let found = modules.resolve(&path(module), &path(wanted));
            let found = found.map(|file| modules.files[file].path.as_str());
            assert_eq!(found, file, "{wanted} in {module}");
        }
    }

    #[test]
    fn files_of_tests_are_left_out() {
        let modules = modules(&[
            (
                "src/lib.rs",
                "#[cfg(test)] mod tests; #[path = \"x/y.rs\"] mod z;",
            ),
            ("src/tests.rs", ""),
            ("src/x/y.rs", ""),
        ]);
        let paths = modules.files.iter().map(|file| file.path.as_str());
        assert!(paths.eq(["src/lib.rs", "src/x/y.rs"]));
    }
}
