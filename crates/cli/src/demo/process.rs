//! Child processes that never outlive the demo.
//!
//! Each is the leader of a process group of its own, its standard error goes to a log, and dropping it kills the group.
//! Should the demo itself be killed, its own kind of children see their standard input close, and leave.

use crate::failure::Failure;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Set when somebody wants the demo to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    /// Says so.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Fails if somebody said so.
    pub(crate) fn ask(&self) -> Result<(), Failure> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(Failure::new("interrupted", "")),
            false => Ok(()),
        }
    }
}

/// A running child.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    group: Option<Pid>,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    log: PathBuf,
    interrupted: Interrupted,
}

impl Process {
    /// Starts a program; `log` gets its standard error.
    pub(crate) fn start(
        name: &str,
        program: impl AsRef<OsStr>,
        arguments: &[String],
        log: &Path,
        interrupted: &Interrupted,
    ) -> Result<Self, Failure> {
        interrupted.ask()?;
        let stderr = File::options()
            .create(true)
            .append(true)
            .open(log)
            .map_err(|error| Failure::file(log, &error))?;
        let mut child = Command::new(program.as_ref())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .process_group(0)
            .spawn()
            .map_err(|error| {
                let what = format!("{} cannot be started: {error}", program.as_ref().display());
                Failure::new(what, "check that it is installed")
            })?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let input = child.stdin.take();
        let lines = lines_of(&mut child);
        Ok(Process {
            name: name.to_owned(),
            child,
            group,
            input,
            lines,
            log: log.to_owned(),
            interrupted: interrupted.clone(),
        })
    }

    /// What it is called in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Writes a line to its standard input.
    pub(crate) fn tell(&mut self, line: &str) -> Result<(), Failure> {
        let written = match &mut self.input {
            Some(input) => writeln!(input, "{line}").and_then(|()| input.flush()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        written.map_err(|_| self.gone())
    }

    /// The next line of its standard output; fails when it ends, takes too long or the demo is to end.
    pub(crate) fn line(&mut self, timeout: Duration) -> Result<String, Failure> {
        let end = Instant::now() + timeout;
        loop {
            self.interrupted.ask()?;
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= end => {
                    let what = format!("{} took longer than {timeout:?}", self.name);
                    return Err(Failure::new(what, self.log_words()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// The next line, if there is one already.
    pub(crate) fn line_now(&mut self) -> Result<Option<String>, Failure> {
        self.interrupted.ask()?;
        match self.lines.try_recv() {
            Ok(line) => Ok(Some(line)),
            Err(mpsc::TryRecvError::Empty) => Ok(None),
            Err(mpsc::TryRecvError::Disconnected) => Err(self.gone()),
        }
    }

    /// Waits for its end; gives what it still printed.
    pub(crate) fn finish(
        mut self,
        timeout: Duration,
    ) -> Result<(ExitStatus, Vec<String>), Failure> {
        self.input = None;
        let end = Instant::now() + timeout;
        let mut printed = Vec::new();
        loop {
            self.interrupted.ask()?;
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => printed.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if Instant::now() >= end => {
                    let what = format!("{} took longer than {timeout:?}", self.name);
                    return Err(Failure::new(what, self.log_words()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let status = self.child.wait();
        let status = status.map_err(|error| Failure::new(format!("{}: {error}", self.name), ""))?;
        Ok((status, printed))
    }

    /// Asks it to end and waits; who does not is killed, and that is a failure.
    pub(crate) fn stop(mut self) -> Result<(), Failure> {
        self.input = None;
        if let Some(group) = self.group {
            // It may be gone already.
            let _ = kill_process_group(group, Signal::TERM);
        }
        let end = Instant::now() + STOP_TIMEOUT;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => {
                    let what = format!("{} ended with {status}", self.name);
                    return Err(Failure::new(what, self.log_words()));
                }
                _ if Instant::now() >= end => {
                    let what = format!("{} did not stop within {STOP_TIMEOUT:?}", self.name);
                    return Err(Failure::new(what, self.log_words()));
                }
                _ => thread::sleep(LOOK / 5),
            }
        }
    }

    /// The failure of a process that ended too early, with the end of its log.
    fn gone(&mut self) -> Failure {
        // Its output ends a little before itself.
        thread::sleep(LOOK);
        let status = match self.child.try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => "no exit code".to_owned(),
        };
        let what = format!("{} ended ({status})", self.name);
        Failure::new(what, self.log_words())
    }

    fn log_words(&self) -> String {
        let log = self.log.display();
        match tail(&self.log) {
            tail if tail.is_empty() => format!("its log, {log}, is empty"),
            tail => format!("its log, {log}, ends with:\n{tail}"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input = None;
        if let Some(group) = self.group {
            // It may be gone already.
            let _ = kill_process_group(group, Signal::KILL);
        }
        // Leaves no zombie; a killed child cannot make us wait.
        let _ = self.child.wait();
    }
}

/// A thread passes on its lines, so that waiting for one can be bounded.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    lines
}

/// The last lines of a log.
fn tail(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    lines[from..]
        .iter()
        .map(|line| format!("     | {line}\n"))
        .collect()
}

/// Between looks whether the demo is to end.
const LOOK: Duration = Duration::from_millis(50);
/// How long a process may take to end when asked.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
const TAIL_LINES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, log: &Path) -> Process {
        let arguments = ["-c".to_owned(), script.to_owned()];
        Process::start("it", "/bin/sh", &arguments, log, &Interrupted::default()).unwrap()
    }

    #[test]
    fn lines_go_in_and_come_out() {
        let dir = tempfile::tempdir().unwrap();
        let mut process = shell("read a; echo got $a", &dir.path().join("log"));
        process.tell("this").unwrap();
        assert_eq!(process.line(Duration::from_secs(5)).unwrap(), "got this");
        let (status, rest) = process.finish(Duration::from_secs(5)).unwrap();
        assert!(status.success() && rest.is_empty());
    }

    #[test]
    fn who_ends_early_shows_the_end_of_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let mut process = shell("echo all is lost >&2; exit 3", &dir.path().join("log"));
        let text = process
            .line(Duration::from_secs(5))
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("all is lost") && text.contains("exit status: 3"),
            "{text}"
        );
    }

    #[test]
    fn dropped_is_killed_with_its_own_children() {
        let dir = tempfile::tempdir().unwrap();
        let mut process = shell("sleep 1000 & echo $!; wait", &dir.path().join("log"));
        let grandchild = process.line(Duration::from_secs(5)).unwrap();
        drop(process);
        let end = Instant::now() + Duration::from_secs(5);
        let status = format!("/proc/{grandchild}/status");
        let runs = || std::fs::read_to_string(&status).is_ok_and(|text| !text.contains("zombie"));
        while runs() && Instant::now() < end {
            thread::sleep(Duration::from_millis(10));
        }
        assert!(!runs(), "the grandchild still runs");
    }

    #[test]
    fn interrupted_ends_a_wait() {
        let dir = tempfile::tempdir().unwrap();
        let mut process = shell("sleep 1000", &dir.path().join("log"));
        process.interrupted.set();
        assert!(process.line(Duration::from_secs(1000)).is_err());
    }
}
