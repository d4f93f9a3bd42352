//! A terminal for one command.

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use thorp_testing::Said;

/// Both ends of a terminal: a test's, and that of a command.
fn open() -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    // It becomes the terminal of no session.
    let flags = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(flags);
    let theirs = options.open(name.to_str().unwrap()).unwrap();
    let size = Winsize {
        ws_row: 30,
        ws_col: 100,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&theirs, size).unwrap();
    (File::from(ours), theirs)
}

/// Runs a command whose standard error is a terminal. What it wrote there is in `err`.
pub(crate) fn run_at_terminal(mut command: Command) -> Said {
    let (mut ours, theirs) = open();
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let child = command.stderr(theirs).spawn().unwrap();
    // It holds the terminal open.
    drop(command);
    let screen = thread::spawn(move || {
        let mut screen = Vec::new();
        // A terminal that everybody has closed ends with an error.
        let _ = ours.read_to_end(&mut screen);
        String::from_utf8_lossy(&screen).into_owned()
    });
    let ended = child.wait_with_output().unwrap();
    Said {
        code: ended.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&ended.stdout).into_owned(),
        err: screen.join().unwrap(),
    }
}

/// A command that has the whole terminal. Dropping it kills it.
pub(crate) struct WholeScreen {
    child: Child,
    ours: File,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl WholeScreen {
    pub(crate) fn start(mut command: Command) -> Self {
        let (ours, theirs) = open();
        let again = || theirs.try_clone().unwrap();
        command.stdin(again()).stdout(again()).stderr(again());
        let child = command.spawn().unwrap();
        let (seen, mut reader) = (Arc::<Mutex<Vec<u8>>>::default(), ours.try_clone().unwrap());
        let all = Arc::clone(&seen);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                all.lock().unwrap().extend(&bytes[..count]);
            }
        });
        WholeScreen { child, ours, seen }
    }

    /// All that it has written, with what commands the terminal.
    pub(crate) fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).unwrap();
    }

    /// Whether it has ended, and with which code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let status = self.child.try_wait().unwrap()?;
        Some(status.code().unwrap_or(-1))
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for WholeScreen {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
