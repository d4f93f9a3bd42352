//! Programs of a village that run in a namespace, and what they say.

use crate::Outcome;
use crate::net::Namespace;
use crate::stop::Stop;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked whether somebody wants the end.
const GLANCE: Duration = Duration::from_millis(100);
/// A program that was asked to end has so long.
const FAREWELL: Duration = Duration::from_secs(5);

/// A program that is told lines and says lines. Dropped, it ends.
pub struct Process {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    log: PathBuf,
    stop: Stop,
}

impl Process {
    /// Starts a program in a namespace; what it says on standard error goes to a file beside the others'.
    pub fn start(
        namespace: &Namespace,
        name: &str,
        program: &Path,
        arguments: &[String],
        logs: &Path,
        stop: &Stop,
    ) -> Outcome<Self> {
        let log = logs.join(format!("{name}.log"));
        let errors = File::options().create(true).append(true).open(&log)?;
        let mut child = namespace
            .command(program)?
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(|why| format!("{} does not start: {why}", program.display()))?;
        let input = child.stdin.take();
        let (said, lines) = channel();
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                let lines = BufReader::new(output).lines().map_while(Result::ok);
                // Nobody listens any more when the process was dropped.
                lines
                    .into_iter()
                    .try_for_each(|line| said.send(line))
                    .unwrap_or_default();
            });
        }
        Ok(Process {
            name: name.to_owned(),
            child,
            input,
            lines,
            log,
            stop: stop.clone(),
        })
    }

    /// Tells it a line.
    pub fn tell(&mut self, line: &str) -> Outcome<()> {
        let told = match &mut self.input {
            Some(input) => writeln!(input, "{line}").and_then(|()| input.flush()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        told.map_err(|_| self.gone())
    }

    /// The next line that it says.
    pub fn line(&mut self, patience: Duration) -> Outcome<String> {
        let due = Instant::now() + patience;
        loop {
            if self.stop.is_set() {
                return Err("cut short".into());
            }
            match self.lines.recv_timeout(GLANCE) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= due => {
                    return Err(format!("{} says nothing for {patience:?}", self.name).into());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Listens until it says a line that begins so.
    pub fn hear(&mut self, beginning: &str, patience: Duration) -> Outcome<()> {
        while !self.line(patience)?.starts_with(beginning) {}
        Ok(())
    }

    fn gone(&self) -> Box<dyn std::error::Error + Send + Sync> {
        let words = std::fs::read_to_string(&self.log).unwrap_or_default();
        let last = words.lines().rev().take(3).collect::<Vec<_>>();
        let last: Vec<&str> = last.into_iter().rev().collect();
        format!("{} has ended: {}", self.name, last.join(" / ")).into()
    }
}

impl Drop for Process {
    /// Its input ends, which is its sign to go.
    fn drop(&mut self) {
        self.input = None;
        let due = Instant::now() + FAREWELL;
        while Instant::now() < due {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        // It may have gone in this moment.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
