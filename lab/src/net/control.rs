//! The control socket: a line in, an answer out.

use super::controls::Controls;
use crate::Outcome;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// What may be said.
pub const COMMANDS: &str = "stats | reset | cut A B | heal A B | cut1 FROM TO | heal1 FROM TO | down SPOKE | up SPOKE | \
    spoke SPOKE KEY=VALUE... | pair A B KEY=VALUE... | pair1 FROM TO KEY=VALUE...   (keys: delay rtt jitter loss burst rate)";

/// Longer lines are refused.
const LINE_MAX: u64 = 4096;
/// Whoever says nothing for so long is left.
const PATIENCE: Duration = Duration::from_secs(2);

/// A socket that answers until the program ends; its file is removed when this is dropped.
pub struct ControlSocket {
    path: PathBuf,
}

impl ControlSocket {
    /// Listens there.
    pub fn listen(path: &Path, controls: Controls) -> Outcome<Self> {
        // A file that nobody listens at is a dead lab's.
        if UnixStream::connect(path)
            .is_err_and(|why| why.kind() == io::ErrorKind::ConnectionRefused)
        {
            fs::remove_file(path)?;
        }
        let bound = UnixListener::bind(path);
        let listener =
            bound.map_err(|why| format!("no control socket {}: {why}", path.display()))?;
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Whoever goes away before the answer does not get it.
                let _ = serve(stream, &controls);
            }
        });
        Ok(ControlSocket {
            path: path.to_owned(),
        })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn serve(stream: UnixStream, controls: &Controls) -> Outcome<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&stream).take(LINE_MAX)).read_line(&mut line)?;
    let answer = obey(&line, controls).unwrap_or_else(|why| format!("error: {why}"));
    Ok(writeln!(&stream, "{answer}")?)
}

fn obey(line: &str, controls: &Controls) -> Outcome<String> {
    let words: Vec<_> = line.split_whitespace().collect();
    match words[..] {
        ["stats"] => return Ok(serde_json::to_string_pretty(&controls.statistics()?)?),
        ["reset"] => controls.forget_statistics()?,
        ["cut", a, b] => controls.cut(a, b)?,
        ["heal", a, b] => controls.heal(a, b)?,
        ["cut1", from, to] => controls.cut_way(from, to, true)?,
        ["heal1", from, to] => controls.cut_way(from, to, false)?,
        ["down", spoke] => controls.cut_off(spoke, true)?,
        ["up", spoke] => controls.cut_off(spoke, false)?,
        ["spoke", spoke, ref settings @ ..] => controls.adjust_spoke(spoke, settings)?,
        ["pair", a, b, ref settings @ ..] => controls.adjust_pair(a, b, settings)?,
        ["pair1", from, to, ref settings @ ..] => controls.adjust_way(from, to, settings)?,
        _ => return Err(format!("{:?} is not understood: {COMMANDS}", line.trim()).into()),
    }
    Ok("ok".to_owned())
}

/// Says this at a control socket, and gives the answer.
pub fn say(path: &Path, words: &[String]) -> Outcome<String> {
    let connected = UnixStream::connect(path);
    let mut stream = connected.map_err(|why| {
        format!(
            "{}: {why}; does a lab run with --control there?",
            path.display()
        )
    })?;
    writeln!(stream, "{}", words.join(" "))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.strip_prefix("error: ") {
        Some(why) => Err(why.trim().into()),
        None => Ok(answer),
    }
}
