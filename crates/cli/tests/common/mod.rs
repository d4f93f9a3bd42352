//! Real processes for the tests, none of which is left behind.

#![allow(dead_code, reason = "not every test file uses everything")]
#![allow(
    clippy::unwrap_used,
    reason = "a process that cannot be run fails the test"
)]

pub(crate) mod kills;
pub(crate) mod two_homes;

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// Nothing here takes longer, however busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Reports that the running test skips: at once, and in the file that `make test` prints at its end. CI with the test data
/// has everything that a test needs: there it fails.
pub(crate) fn skip(needs: &str) {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!(in_ci && is_set("THORP_TEST_DATA")), "needs {needs}");
    let (tests, thread) = (env!("CARGO_CRATE_NAME"), std::thread::current());
    let test = thread.name().unwrap_or("a test");
    let line = format!("SKIPPED: {tests}::{test} needs {needs}\n");
    // Past `eprintln!`, which the test harness keeps to itself when a test passes.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(file) = std::env::var_os("THORP_SKIPPED") {
        let file = OpenOptions::new().create(true).append(true).open(file);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap();
    }
}

/// The command, without what the environment of whoever runs the tests says.
pub(crate) fn thorp(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thorp"));
    command
        .args(arguments)
        .env_remove("THORP_VIA")
        .env_remove("THORP_IDENTITY")
        .env_remove("THORP_HTTP");
    command
}

/// What a finished command said.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs a command to its end.
pub(crate) fn run(arguments: &[&str]) -> Said {
    finish(thorp(arguments))
}

/// Runs a command to its end.
pub(crate) fn finish(mut command: Command) -> Said {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let end = Instant::now() + PATIENCE;
    // Outputs of the tests are far smaller than a pipe.
    while running.0.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "{command:?} does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut said = Said {
        code: running.0.wait().unwrap().code().unwrap_or(-1),
        out: String::new(),
        err: String::new(),
    };
    running
        .0
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut said.out)
        .unwrap();
    running
        .0
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said.err)
        .unwrap();
    said
}

/// A child that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A command that goes on, and its lines.
pub(crate) struct Going {
    child: Running,
    // A home ends when this closes, even if the test is killed.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Going {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            out.lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line).ok())
        });
        let input = child.stdin.take();
        Going {
            child: Running(child),
            input,
            lines,
        }
    }

    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("another line")
    }

    /// All lines up to the one that begins so.
    pub(crate) fn lines_until(&self, beginning: &str) -> Vec<String> {
        let mut lines = vec![self.line()];
        while !lines.last().unwrap().starts_with(beginning) {
            lines.push(self.line());
        }
        lines
    }

    /// What a home or a site says when it has started, and where it serves HTTP.
    pub(crate) fn welcome(&self) -> (Vec<String>, String) {
        let welcome = self.lines_until("ready");
        let ready = welcome.last().unwrap();
        let http = ready.trim_start_matches("ready, http ").to_owned();
        (welcome, http)
    }

    /// The lines that are there.
    pub(crate) fn lines_now(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.0.id()
    }

    /// Sends SIGTERM, by the system's own command, and waits.
    pub(crate) fn terminate(mut self) -> i32 {
        let id = self.id().to_string();
        assert!(Command::new("kill").arg(&id).status().unwrap().success());
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.0.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < end, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// No port that another test could have, and no life after the test's.
pub(crate) const OF_A_TEST: [&str; 2] = ["--http=127.0.0.1:0", "--until-stdin-closes"];

/// A home in a directory, on a socket of its own.
pub(crate) struct Home {
    pub(crate) going: Going,
    pub(crate) via: String,
    pub(crate) http: String,
    pub(crate) identity: String,
    pub(crate) welcome: Vec<String>,
}

impl Home {
    pub(crate) fn start(dir: &Path) -> Self {
        Self::start_with(dir, &[])
    }

    /// With more flags.
    pub(crate) fn start_with(dir: &Path, flags: &[&str]) -> Self {
        Self::start_as("alps", dir, flags)
    }

    /// A home of another name.
    pub(crate) fn start_as(name: &str, dir: &Path, flags: &[&str]) -> Self {
        let via = format!("unix:{}", dir.join("home.sock").display());
        let home = dir.join("home").display().to_string();
        let mut command = thorp(&["home", "--name", name, "--dir", &home, "--listen", &via]);
        command.args(OF_A_TEST).args(flags);
        let going = Going::start(command);
        let (welcome, http) = going.welcome();
        Home {
            going,
            via,
            http,
            identity: format!("{home}/identity"),
            welcome,
        }
    }

    /// A command that joins here.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = thorp(arguments);
        command
            .env("THORP_VIA", &self.via)
            .env("THORP_IDENTITY", &self.identity);
        command
    }

    /// Such a command's output; it must succeed.
    pub(crate) fn out(&self, arguments: &[&str]) -> String {
        let said = finish(self.command(arguments));
        assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
        said.out
    }
}

/// Sends a process a signal, by the system's own command.
pub(crate) fn signal(name: &str, process: u32) {
    let flag = format!("-{name}");
    let sent = Command::new("kill")
        .args([flag, process.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// Waits until something is so, or fails.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "it did not come to be: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
