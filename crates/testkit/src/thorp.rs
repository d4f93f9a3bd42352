//! The `thorp` command as a process.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::authority::HOME_NAME;
use crate::process::{Process, Said, finish};

/// A `thorp` binary.
#[derive(Clone, Debug)]
pub struct Thorp(PathBuf);

impl Thorp {
    /// The binary at this path. Tests of its package have it in `env!("CARGO_BIN_EXE_thorp")`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Thorp(path.into())
    }

    /// A command that ignores the environment of whoever runs the tests.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.0);
        command
            .args(arguments)
            .env_remove("THORP_VIA")
            .env_remove("THORP_IDENTITY")
            .env_remove("THORP_CONTEXT")
            .env_remove("THORP_HTTP")
            // Whoever runs the tests may have contexts; nobody can have any there.
            .env("THORP_CONFIG", "/dev/null/thorp");
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Said {
        finish(self.command(arguments))
    }

    /// Starts the home `alps`, with its data in a directory and on a socket there, and waits until it is ready.
    pub fn home(&self, dir: &Path) -> HomeProcess {
        self.home_with(dir, &[])
    }

    /// As [`Thorp::home`], with more flags.
    pub fn home_with(&self, dir: &Path, flags: &[&str]) -> HomeProcess {
        self.home_as(HOME_NAME, dir, flags)
    }

    /// As [`Thorp::home_with`], with another name.
    pub fn home_as(&self, name: &str, dir: &Path, flags: &[&str]) -> HomeProcess {
        let via = format!("unix:{}", dir.join("home.sock").display());
        let home = dir.join("home").display().to_string();
        let mut command = self.command(&["home", "--name", name, "--dir", &home, "--listen", &via]);
        command.args(OF_A_TEST).args(flags);
        let process = Process::start(command);
        let (welcome, http) = process.ready();
        HomeProcess {
            thorp: self.clone(),
            process,
            via,
            http,
            authority: format!("{home}/authority"),
            own: format!("{home}/identity"),
            identity: format!("{home}/identity/local"),
            welcome,
        }
    }
}

/// A home as a process. Dropping it kills it.
pub struct HomeProcess {
    thorp: Thorp,
    /// The running `thorp home`.
    pub process: Process,
    /// Where it listens.
    pub via: String,
    /// Where it serves HTTP.
    pub http: String,
    /// The directory of the authority, if it made its village.
    pub authority: String,
    /// The directory of its own identity.
    pub own: String,
    /// The directory of the identity of the member `local`, with which programs join a home that made its village.
    pub identity: String,
    /// What it printed up to *ready*.
    pub welcome: Vec<String>,
}

impl HomeProcess {
    /// A command that joins here.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.thorp.command(arguments);
        command
            .env("THORP_VIA", &self.via)
            .env("THORP_IDENTITY", &self.identity);
        command
    }

    /// The output of a command that joins here.
    ///
    /// # Panics
    ///
    /// The command fails.
    pub fn out(&self, arguments: &[&str]) -> String {
        let said = finish(self.command(arguments));
        assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
        said.out
    }
}

/// Flags of a node of a test: no port that another test could have, and no life after the test's.
pub const OF_A_TEST: [&str; 2] = ["--http=127.0.0.1:0", "--until-stdin-closes"];
