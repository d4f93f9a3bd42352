//! A village of `thorp dev`, and a user with an empty directory, whose current context is that village.

use super::thorp;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use thorp_testing::{Process, Said, finish};

/// The user, and the village `dev` in `thorp-dev` in the user's directory.
pub(crate) struct DevVillage {
    // It ends before its directory goes.
    pub(crate) dev: Process,
    pub(crate) user: User,
    /// What it printed when it ran.
    pub(crate) document: Value,
}

/// A user with a directory and no contexts.
pub(crate) struct User(TempDir);

impl User {
    pub(crate) fn new() -> Self {
        User(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A command in the user's directory.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.at_home(thorp().command(arguments))
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        finish(self.command(arguments))
    }

    /// A script in the user's directory, which finds `thorp`.
    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-e", "-c", script]);
        for name in ["THORP_VIA", "THORP_IDENTITY", "THORP_CONTEXT", "THORP_HTTP"] {
            command.env_remove(name);
        }
        let program = Path::new(env!("CARGO_BIN_EXE_thorp"));
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", program.parent().unwrap().display());
        command.env("PATH", path);
        self.at_home(command)
    }

    fn at_home(&self, mut command: Command) -> Command {
        command
            .current_dir(self.0.path())
            .env("HOME", self.0.path())
            .env("XDG_CONFIG_HOME", self.path(".config"))
            .env("XDG_RUNTIME_DIR", self.0.path())
            .env_remove("THORP_CONFIG");
        command
    }
}

impl DevVillage {
    pub(crate) fn start() -> Self {
        let user = User::new();
        let dev = Process::start(user.command(&["dev", "--json", "--until-stdin-closes"]));
        let document = document(&dev);
        DevVillage {
            user,
            document,
            dev,
        }
    }

    /// Where a part of it is found: `home`, `site` or `authority`.
    pub(crate) fn address(&self, part: &str) -> &str {
        self.document[part].as_str().unwrap()
    }

    /// Where its home (0) and its site (1) serve their status.
    pub(crate) fn http(&self, which: usize) -> &str {
        self.document["status"][which].as_str().unwrap()
    }
}

/// The document that a process prints when it is ready.
pub(crate) fn document(process: &Process) -> Value {
    let lines = process.lines_until("}");
    serde_json::from_str(&lines.join("\n")).unwrap()
}

/// The directory of a home `alps` that has stopped, in a directory.
pub(crate) fn stopped_home(dir: &Path) -> PathBuf {
    let home = thorp().home(dir);
    home.out(&["put", "thorp://alps/notes", "--text", "hello"]);
    assert_eq!(home.process.terminate(), 0);
    dir.join("home")
}

/// The end of a stopped home's journal is missing, and its note says so.
pub(crate) fn cut_journal(home: &Path) {
    let journal = home.join("store/thorp-engine/0.jnl");
    let bytes = fs::read(&journal).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    fs::write(&journal, &bytes[..end * 7 / 10]).unwrap();
}
