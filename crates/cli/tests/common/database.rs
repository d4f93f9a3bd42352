//! A PostgreSQL server for the examples of the web cache, on a socket in a temporary directory.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use thorp_testing::eventually;

/// A server refuses to run as root: then it runs as this user (`nobody`).
const NOBODY: u32 = 65_534;

/// A running server with a database `shop`. It ends when this is dropped.
pub(crate) struct Database {
    directory: TempDir,
    server: Child,
}

impl Database {
    pub(crate) fn start() -> Self {
        let programs = programs().expect("whoever starts one has asked whether it can");
        let directory = tempfile::tempdir_in("/tmp").unwrap();
        let place = directory.path();
        if is_root() {
            fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
            chown(place, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let data = place.join("data");
        let run = |program: &str, words: &[&str]| {
            let mut command = as_nobody(&programs.join(program));
            command
                .args(words)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command
        };
        let flags = [
            "--auth=trust",
            "--username=postgres",
            "--no-sync",
            "--pgdata",
        ];
        let made = run("initdb", &flags).arg(&data).status().unwrap();
        assert!(made.success(), "initdb: {made}");
        let settings = ["-c", "listen_addresses=", "-c", "wal_level=logical"];
        let mut server = run("postgres", &settings);
        server.arg("-D").arg(&data).arg("-k").arg(place);
        let server = server.spawn().unwrap();
        eventually("the server takes a database", || {
            let mut made = run("createdb", &["-U", "postgres", "shop", "-h"]);
            made.arg(place).status().unwrap().success()
        });
        Database { directory, server }
    }

    /// What `psql` prints for a statement.
    pub(crate) fn sql(&self, statement: &str) -> String {
        let programs = programs().expect("it has a server");
        let mut psql = as_nobody(&programs.join("psql"));
        psql.args(["-U", "postgres", "-d", "shop", "-Atqc", statement, "-h"]);
        let said = psql.arg(self.directory.path()).output().unwrap();
        let errors = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{statement}: {errors}");
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    }

    /// How it is reached, as a word of a shell.
    pub(crate) fn address(&self) -> String {
        let place = self.directory.path().display();
        format!("'host={place} user=postgres dbname=shop'")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Whether this machine has a server.
pub(crate) fn is_there() -> bool {
    programs().is_some()
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// A program that ends with the thread that starts it, also if a test is killed.
fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.current_dir("/").args(["--pdeathsig", "INT"]);
    if is_root() {
        let user = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
        command.args(user).arg("--clear-groups");
    }
    command.arg(program);
    command
}

/// The directory of the newest server that is installed.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let programs = versions.flatten().map(|version| version.path().join("bin"));
    programs.filter(|bin| bin.join("postgres").exists()).max()
}
