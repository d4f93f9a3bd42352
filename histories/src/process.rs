//! Processes that run beside this one.

use crate::Outcome;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;

/// A process that does not outlive this one.
pub(crate) struct Running {
    pub(crate) child: Child,
    /// It ends when this closes.
    pub(crate) stdin: Option<ChildStdin>,
}

impl Running {
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            // It is ours and not waited for: it is there.
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a process, and what it says.
pub(crate) fn start(mut command: Command) -> Outcome<(Running, mpsc::Receiver<String>)> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let running = Running { child, stdin };
    let (sender, lines) = mpsc::channel();
    let stdout = BufReader::new(stdout.ok_or("no standard output")?);
    thread::spawn(move || {
        let mut lines = stdout.lines().map_while(Result::ok);
        lines.try_for_each(|line| sender.send(line).ok())
    });
    Ok((running, lines))
}
