//! A terminal for one command.

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::thread;
use thorp_testing::Said;

/// Runs a command whose standard error is a terminal. What it wrote there is in `err`.
pub(crate) fn run_at_terminal(mut command: Command) -> Said {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let mut options = OpenOptions::new();
    // It becomes the terminal of no session.
    let flags = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
    options.read(true).write(true).custom_flags(flags);
    let theirs = options.open(name.to_str().unwrap()).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let child = command.stderr(theirs).spawn().unwrap();
    // It holds the terminal open.
    drop(command);
    let screen = thread::spawn(move || {
        let mut screen = Vec::new();
        // A terminal that everybody has closed ends with an error.
        let _ = File::from(ours).read_to_end(&mut screen);
        String::from_utf8_lossy(&screen).into_owned()
    });
    let ended = child.wait_with_output().unwrap();
    Said {
        code: ended.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&ended.stdout).into_owned(),
        err: screen.join().unwrap(),
    }
}
