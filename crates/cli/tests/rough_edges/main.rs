//! What users stumbled over once: each test is named after the number of its edge in the issue *A friendly Thorp*.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

#[path = "../common/mod.rs"]
mod common;
mod files;
mod homes;
mod names;
mod output;
#[cfg(feature = "planner")]
mod planning;
mod waiting;

use common::thorp;
use common::two_homes::Village;
use tempfile::TempDir;
use thorp_testing::{Said, finish};

/// The homes `alps` and `dale` below one site, as `edges` calls them.
struct Edges {
    village: Village,
    dir: TempDir,
}

impl Edges {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Edges {
            village: Village::start(dir.path()),
            dir,
        }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// A command that joins at the site.
    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = thorp().command(arguments);
        command
            .env("THORP_VIA", self.village.site())
            .env("THORP_IDENTITY", self.village.identity());
        command
    }

    fn run(&self, arguments: &[&str]) -> Said {
        finish(self.command(arguments))
    }

    fn out(&self, arguments: &[&str]) -> String {
        let said = self.run(arguments);
        assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
        said.out
    }

    /// The command fails with this code, and says this.
    fn fails(&self, code: i32, words: &str, arguments: &[&str]) {
        let said = self.run(arguments);
        assert_eq!(said.code, code, "{arguments:?}: {}{}", said.out, said.err);
        assert!(said.err.contains(words), "{words:?} in {}", said.err);
        assert!(said.err.contains("-> "), "what to do: {}", said.err);
    }
}
