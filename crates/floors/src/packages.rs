//! The crates of the repository, whichever workspace they belong to.

use crate::tree::Tree;
use std::collections::BTreeSet;

/// A crate, as its manifest describes it.
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its folder, with a `/` at the end; empty for the root.
    pub(crate) folder: String,
    pub(crate) manifest: toml::Table,
}

/// An import of a crate by its manifest.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Import {
    /// The imported crate, by its own name.
    pub(crate) name: String,
    /// The name that the manifest uses.
    pub(crate) key: String,
}

/// All crates, in the order of their folders.
///
/// # Errors
///
/// A manifest is no TOML, or there is no crate: then the tree is none of ours, and nothing in it would be checked.
pub(crate) fn packages(tree: &Tree) -> Result<Vec<Package>, String> {
    let manifests = tree.texts();
    let manifests = manifests.filter(|(path, _)| path.rsplit('/').next() == Some("Cargo.toml"));
    let packages = manifests.map(|(path, text)| Package::parse(path, text));
    let packages: Vec<Package> = packages
        .filter_map(Result::transpose)
        .collect::<Result<_, _>>()?;
    match packages.is_empty() {
        true => Err("there is no crate".to_owned()),
        false => Ok(packages),
    }
}

impl Package {
    /// The crate of a manifest; none if the manifest only gathers a workspace.
    fn parse(path: &str, text: &str) -> Result<Option<Self>, String> {
        let manifest: toml::Table = text
            .parse()
            .map_err(|error| format!("{path}: it is no manifest: {error}"))?;
        let name = manifest
            .get("package")
            .and_then(|package| package.get("name"));
        let name = name.and_then(|name| name.as_str()).map(str::to_owned);
        Ok(name.map(|name| Self {
            name,
            folder: path.trim_end_matches("Cargo.toml").to_owned(),
            manifest,
        }))
    }

    /// The path of its manifest.
    pub(crate) fn manifest_path(&self) -> String {
        format!("{}Cargo.toml", self.folder)
    }

    /// The file that its library begins with.
    pub(crate) fn library(&self, tree: &Tree) -> Option<String> {
        let path = self.library_path().unwrap_or("src/lib.rs");
        Some(format!("{}{path}", self.folder)).filter(|path| tree.has(path))
    }

    /// Where the manifest has the library, seen from the crate's folder; none if it leaves that to Cargo.
    pub(crate) fn library_path(&self) -> Option<&str> {
        self.manifest.get("lib")?.get("path")?.as_str()
    }

    /// The files that its library and its programs begin with.
    pub(crate) fn roots(&self, tree: &Tree) -> BTreeSet<String> {
        let mut roots: BTreeSet<String> = self.library(tree).into_iter().collect();
        let bins = self.manifest.get("bin").and_then(|bins| bins.as_array());
        for bin in bins.into_iter().flatten() {
            let path = bin.get("path").and_then(|path| path.as_str());
            roots.extend(path.map(|path| format!("{}{path}", self.folder)));
        }
        let main = format!("{}src/main.rs", self.folder);
        roots.extend(Some(main).filter(|path| tree.has(path)));
        let bins = format!("{}src/bin/", self.folder);
        roots.extend(tree.below(&bins).filter_map(|path| {
            let inside = path.strip_prefix(&bins)?;
            let begins = inside.ends_with("/main.rs") || !inside.contains('/');
            begins.then(|| path.to_owned())
        }));
        roots
    }

    /// Its imports of every kind and for every target. Tests keep to the floors, too.
    pub(crate) fn imports(&self) -> Vec<Import> {
        const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
        let targets = self.manifest.get("target").and_then(|all| all.as_table());
        let targets = targets.into_iter().flat_map(|targets| targets.values());
        let tables = targets.filter_map(|target| target.as_table());
        [&self.manifest]
            .into_iter()
            .chain(tables)
            .flat_map(|table| KINDS.iter().filter_map(|kind| table.get(*kind)))
            .filter_map(|dependencies| dependencies.as_table())
            .flatten()
            .map(|(key, value)| Import {
                name: renamed(value).unwrap_or(key).to_owned(),
                key: key.clone(),
            })
            .collect()
    }
}

/// The own name of a dependency that has another in the manifest.
fn renamed(dependency: &toml::Value) -> Option<&str> {
    dependency.get("package")?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_all_workspaces_are_found_with_their_roots() {
        let tree = Tree::of(&[
            ("Cargo.toml", "[workspace]\nmembers = ['a']"),
            ("a/Cargo.toml", "[package]\nname = 'a'"),
            ("a/src/lib.rs", ""),
            ("a/src/bin/one.rs", ""),
            ("a/src/bin/two/main.rs", ""),
            ("a/src/bin/two/part.rs", ""),
            (
                "b/Cargo.toml",
                "[package]\nname = 'b'\n[[bin]]\nname = 'c'\npath = 'fuzz/c.rs'",
            ),
        ]);
        let packages = packages(&tree).expect("manifests");
        let names = packages.iter().map(|package| package.name.as_str());
        assert!(names.eq(["a", "b"]));
        let roots = packages.iter().flat_map(|package| package.roots(&tree));
        assert!(roots.eq([
            "a/src/bin/one.rs",
            "a/src/bin/two/main.rs",
            "a/src/lib.rs",
            "b/fuzz/c.rs"
        ]));
    }

    #[test]
    fn an_import_has_its_own_name() {
        let text = "[package]\nname='a'\n[target.'cfg(unix)'.dev-dependencies]\nx={package='y'}";
        let package = Package::parse("Cargo.toml", text).expect("a manifest");
        let imports = package.expect("a crate").imports();
        let [import] = &imports[..] else {
            panic!("{imports:?}");
        };
        assert_eq!((import.name.as_str(), import.key.as_str()), ("y", "x"));
    }

    #[test]
    fn a_damaged_manifest_is_an_error() {
        assert!(packages(&Tree::of(&[("Cargo.toml", "[")])).is_err());
    }

    #[test]
    fn a_tree_without_a_crate_is_an_error() {
        assert!(packages(&Tree::of(&[])).is_err());
        let workspace = [("Cargo.toml", "[workspace]\nmembers = ['a']")];
        assert!(packages(&Tree::of(&workspace)).is_err());
    }
}
