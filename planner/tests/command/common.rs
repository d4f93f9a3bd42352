//! The planner as a process, and what tests of all its questions have in common.

#![allow(
    clippy::unwrap_used,
    reason = "a process that cannot be run fails the test"
)]

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Nothing here takes longer, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// The command `thorp`, with `plan` alone.
pub(crate) fn thorp(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thorp-plan"));
    command.args(arguments);
    command
}

/// What a finished command said.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
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
    let out = drained(running.0.stdout.take().unwrap());
    let err = drained(running.0.stderr.take().unwrap());
    let end = Instant::now() + PATIENCE;
    while running.0.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "{command:?} does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    Said {
        code: running.0.wait().unwrap().code().unwrap_or(-1),
        out: out.join().unwrap(),
        err: err.join().unwrap(),
    }
}

/// Reads while the command runs: its output may be larger than a pipe.
fn drained(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        text
    })
}

/// A child that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn assert_refused(said: &Said, what: &str) {
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains(what), "{what:?} in {}", said.err);
    assert!(said.out.is_empty(), "{}", said.out);
}

/// What two members recorded: both read the same pages over and over, a little out of step, and each has memory for half of them.
pub(crate) fn recorded(dir: &Path) -> [String; 2] {
    ["anna", "ben"].map(|name| {
        let offset = if name == "anna" { 0 } else { 20 };
        let rows = (0..400).map(|at| {
            format!(
                "{},{name},read,7/{},8192\n",
                at * 1000 + offset,
                (at + offset) % 40
            )
        });
        let path = dir.join(format!("{name}.csv"));
        let text = format!(
            "time_us,client,op,object,size\n{}",
            rows.collect::<String>()
        );
        fs::write(&path, text).expect("written");
        path.display().to_string()
    })
}
