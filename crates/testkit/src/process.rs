//! Processes, none of which outlives its test.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::patience::{PATIENCE, PAUSE};

/// What a command printed that has ended.
#[derive(Clone, Debug)]
pub struct Said {
    /// Its exit code; -1 if a signal ended it.
    pub code: i32,
    /// What it wrote to standard output.
    pub out: String,
    /// What it wrote to standard error.
    pub err: String,
}

/// Runs a command to its end.
///
/// # Panics
///
/// It does not end within [`PATIENCE`].
pub fn finish(mut command: Command) -> Said {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut running = Running(child.unwrap());
    let out = drained(running.0.stdout.take().unwrap());
    let err = drained(running.0.stderr.take().unwrap());
    let code = running.wait().code().unwrap_or(-1);
    let [out, err] = [out, err].map(|text| text.join().unwrap());
    Said { code, out, err }
}

/// Reads while the command runs: its output may be larger than a pipe.
fn drained(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        text
    })
}

/// Sends a process a signal, by the system's own command.
pub fn signal(name: &str, process: u32) {
    let flag = format!("-{name}");
    let sent = Command::new("kill")
        .args([flag, process.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// A process that goes on, and its lines. Dropping it kills it.
pub struct Process {
    running: Running,
    // A home ends when this closes, even if the test is killed.
    _input: Option<ChildStdin>,
    lines: Receiver<String>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// Starts a command.
    pub fn start(mut command: Command) -> Self {
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.unwrap();
        let log = Arc::<Mutex<Vec<String>>>::default();
        let logged = BufReader::new(child.stderr.take().unwrap());
        let kept = Arc::clone(&log);
        thread::spawn(move || {
            let keep = |line| kept.lock().unwrap().push(line);
            logged.lines().map_while(Result::ok).for_each(keep);
        });
        let (sender, lines) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            out.lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line).ok())
        });
        Process {
            _input: child.stdin.take(),
            running: Running(child),
            lines,
            log,
        }
    }

    /// The next line that the process prints.
    ///
    /// # Panics
    ///
    /// None comes within [`PATIENCE`].
    pub fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("another line")
    }

    /// All lines up to the first that begins so.
    pub fn lines_until(&self, beginning: &str) -> Vec<String> {
        let mut lines = vec![self.line()];
        while !lines.last().unwrap().starts_with(beginning) {
            lines.push(self.line());
        }
        lines
    }

    /// The next line that has this in it.
    ///
    /// # Panics
    ///
    /// None comes.
    pub fn line_with(&self, words: &str) -> String {
        loop {
            let line = self.line();
            if line.contains(words) {
                return line;
            }
        }
    }

    /// The lines that have come.
    pub fn lines_now(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// The lines of its log, which it writes on standard error, so far.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// All lines up to *ready*, which a home or a site prints when it has started; and where it serves HTTP.
    pub fn ready(&self) -> (Vec<String>, String) {
        let lines = self.lines_until("ready");
        let ready = lines.last().unwrap();
        let http = ready.trim_start_matches("ready, http ").to_owned();
        (lines, http)
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.running.0.id()
    }

    /// Sends SIGTERM and waits for the end; the exit code.
    pub fn terminate(self) -> i32 {
        signal("TERM", self.id());
        self.end()
    }

    /// Waits for the end; the exit code, or -1 if a signal ended it.
    pub fn end(mut self) -> i32 {
        self.running.wait().code().unwrap_or(-1)
    }
}

/// A child that is killed when it is dropped.
struct Running(Child);

impl Running {
    fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "{:?} does not end", self.0);
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_a_command_printed_and_how_it_ended() {
        let said = finish(shell("echo out; echo err >&2; exit 3"));
        assert_eq!((said.code, &*said.out, &*said.err), (3, "out\n", "err\n"));
        assert_eq!(finish(shell("kill -9 $$")).code, -1);
    }

    #[test]
    fn an_output_may_be_larger_than_a_pipe() {
        let said = finish(shell("head -c 300000 /dev/zero | tr '\\0' x"));
        assert_eq!((said.code, said.out.len()), (0, 300_000));
    }

    #[test]
    fn lines_come_up_to_ready() {
        let process = Process::start(shell("echo one; echo ready, http 127.0.0.1:1; sleep 1000"));
        let (lines, http) = process.ready();
        assert_eq!((lines[0].as_str(), lines.len()), ("one", 2));
        assert_eq!(http, "127.0.0.1:1");
        assert!(process.lines_now().is_empty());
    }

    #[test]
    fn a_process_ends_when_it_is_asked_to() {
        let process = Process::start(shell("trap 'exit 5' TERM; echo ready; read line"));
        process.ready();
        assert_eq!(process.terminate(), 5);
    }

    #[test]
    fn a_process_ends_with_its_test() {
        let process = Process::start(shell("echo ready; exec sleep 1000"));
        process.ready();
        let id = process.id().to_string();
        drop(process);
        let mut look = Command::new("kill");
        look.args(["-0", &id]);
        assert_ne!(finish(look).code, 0, "it still runs");
    }
}
