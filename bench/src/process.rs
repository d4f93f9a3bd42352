//! Other processes: this program again, in another role. They end with their standard input, so none outlives a
//! measurement, however that ends.

use crate::Result;
use rustix::process::{Signal, set_parent_process_death_signal};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use tokio::sync::oneshot;

/// What comes first among the arguments of a process in a role.
const ROLE: &str = "--role";

/// A running process. Killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: Option<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts a role, and waits until it is [ready].
    pub fn start(role: &str, arguments: &[&str]) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(ROLE)
            .arg(role)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = child.stdout.take().ok_or("no standard output")?;
        let mut process = Process {
            child,
            lines: Some(BufReader::new(lines)),
        };
        process.wait(role)?;
        Ok(process)
    }

    fn wait(&mut self, role: &str) -> Result<()> {
        let mut line = String::new();
        if let Some(lines) = &mut self.lines {
            lines.read_line(&mut line)?;
        }
        if line.trim_end() != READY {
            return Err(format!("{role} did not come up, it said {line:?}").into());
        }
        Ok(())
    }

    /// What it says from now on, up to its end.
    pub fn lines(&mut self) -> Result<impl Iterator<Item = String> + Send + use<>> {
        let lines = self.lines.take().ok_or("somebody else hears it")?;
        Ok(lines.lines().map_while(std::io::Result::ok))
    }

    /// Tells it something.
    pub fn tell(&mut self, line: &str) -> Result<()> {
        let stdin = self.child.stdin.as_mut().ok_or("it hears nothing")?;
        Ok(writeln!(stdin, "{line}")?)
    }

    /// Asks it for a number.
    pub fn ask(&mut self) -> Result<u64> {
        self.tell("how many?")?;
        let mut line = String::new();
        let lines = self.lines.as_mut().ok_or("somebody else hears it")?;
        lines.read_line(&mut line)?;
        Ok(line.trim_end().parse()?)
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The role of this process and its arguments, if it has one.
pub fn role() -> Option<(String, Vec<String>)> {
    let mut arguments = std::env::args().skip(1);
    (arguments.next()? == ROLE).then_some(())?;
    Some((arguments.next()?, arguments.collect()))
}

/// For a role: it is killed when its starter is gone, also if it is stopped and hears nothing.
pub fn end_with_parent() -> Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// For a role: it is ready.
pub fn ready() {
    println!("{READY}");
}

const READY: &str = "ready";

/// For a role: waits for its end.
pub fn wait_for_end() {
    // An error is an end, too.
    let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
}

/// As [`wait_for_end`], in a runtime.
pub async fn end() {
    end_of(wait_for_end).await;
}

/// The same; meanwhile each line that is heard is answered by a number.
pub async fn end_answering(number: impl Fn() -> u64 + Send + 'static) {
    end_of(move || {
        for _ in std::io::stdin()
            .lock()
            .lines()
            .map_while(std::io::Result::ok)
        {
            println!("{}", number());
        }
    })
    .await;
}

async fn end_of(wait: impl FnOnce() + Send + 'static) {
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || {
        wait();
        tell.send(())
    });
    // It is sent, or its thread could not wait: an end either way.
    let _ = told.await;
}
