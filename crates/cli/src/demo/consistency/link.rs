//! A link between a site and the home that can fall silent. The nodes delay what they send by themselves.

use crate::failure::Failure;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Listens at a socket of its own, and carries bytes between its callers and another socket.
#[derive(Debug)]
pub(super) struct Link {
    from: PathBuf,
    road: Arc<Road>,
    accepting: Option<JoinHandle<()>>,
}

/// What all connections share.
#[derive(Debug)]
struct Road {
    to: PathBuf,
    is_silent: AtomicBool,
    is_over: AtomicBool,
    /// Both ends of each connection.
    ends: Mutex<Vec<UnixStream>>,
}

impl Link {
    /// Both are addresses of sockets in a directory.
    pub(super) fn new(from: &Path, to: &str) -> Result<Self, Failure> {
        let to = to.strip_prefix(SOCKET).unwrap_or(to);
        let listener = UnixListener::bind(from).map_err(|error| Failure::file(from, &error))?;
        let road = Arc::new(Road {
            to: to.into(),
            is_silent: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            ends: Mutex::default(),
        });
        let shared = Arc::clone(&road);
        let accepting = thread::spawn(move || accept(&listener, &shared));
        Ok(Link {
            from: from.to_owned(),
            road,
            accepting: Some(accepting),
        })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> String {
        format!("{SOCKET}{}", self.from.display())
    }

    /// Carries nothing any more, and closes nothing: the ends notice only that they do not hear from each other.
    pub(super) fn fall_silent(&self) {
        self.road.is_silent.store(true, Ordering::SeqCst);
    }

    /// Ends the silence. What was connected breaks, and the site calls again.
    pub(super) fn mend(&self) {
        // In this order nothing that was lost in the silence arrives.
        self.road.break_all();
        self.road.is_silent.store(false, Ordering::SeqCst);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.road.is_over.store(true, Ordering::SeqCst);
        self.road.break_all();
        // Wakes whoever waits for callers.
        let _ = UnixStream::connect(&self.from);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

impl Road {
    fn ends(&self) -> MutexGuard<'_, Vec<UnixStream>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::SeqCst)
    }

    fn break_all(&self) {
        for end in self.ends().drain(..) {
            // It may be gone already.
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

fn accept(listener: &UnixListener, road: &Arc<Road>) {
    for caller in listener.incoming().map_while(Result::ok) {
        if road.is_over.load(Ordering::SeqCst) {
            return;
        }
        // A caller that gets nowhere sees its end.
        let _ = carry(caller, road);
    }
}

fn carry(caller: UnixStream, road: &Arc<Road>) -> io::Result<()> {
    if road.is_silent() {
        // It gets neither an answer nor an end.
        road.ends().push(caller);
        return Ok(());
    }
    let called = UnixStream::connect(&road.to)?;
    let ways = [
        (caller.try_clone()?, called.try_clone()?),
        (called.try_clone()?, caller.try_clone()?),
    ];
    road.ends().extend([caller, called]);
    for (from, to) in ways {
        let road = Arc::clone(road);
        thread::spawn(move || {
            let _ = pass(from, to, &road);
        });
    }
    Ok(())
}

/// Carries one direction, until its end.
fn pass(mut from: UnixStream, mut to: UnixStream, road: &Road) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        // An end that is gone is an end.
        let read = read(&mut from, &mut buffer).unwrap_or(0);
        match (road.is_silent(), read) {
            (true, 0) => return Ok(()),
            (true, _) => {}
            (false, 0) => return to.shutdown(Shutdown::Write),
            (false, _) => to.write_all(&buffer[..read])?,
        }
    }
}

/// A signal does not end it.
fn read(from: &mut UnixStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

const SOCKET: &str = "unix:";
const BUFFER_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Callers get back what they send.
    fn echo(at: &Path) {
        let listener = UnixListener::bind(at).unwrap();
        thread::spawn(move || {
            for caller in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || io::copy(&mut &caller, &mut &caller));
            }
        });
    }

    fn speak(caller: &mut UnixStream) -> io::Result<usize> {
        caller.set_read_timeout(Some(Duration::from_millis(200)))?;
        caller.write_all(b"hi")?;
        read(caller, &mut [0; 2])
    }

    #[test]
    fn a_silent_link_carries_nothing_and_ends_nothing_and_is_mended() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        echo(&to);
        let link = Link::new(&from, &format!("unix:{}", to.display())).unwrap();
        assert_eq!(link.address(), format!("unix:{}", from.display()));
        let mut caller = UnixStream::connect(&from).unwrap();
        assert_eq!(speak(&mut caller).unwrap(), 2);
        link.fall_silent();
        let mut later = UnixStream::connect(&from).unwrap();
        for caller in [&mut caller, &mut later] {
            let silent = speak(caller).unwrap_err();
            assert_eq!(silent.kind(), io::ErrorKind::WouldBlock);
        }
        link.mend();
        // Those of before see their end. What was lost stays lost.
        for caller in [&mut caller, &mut later] {
            assert!(matches!(read(caller, &mut [0; 2]), Ok(0) | Err(_)));
        }
        let mut caller = UnixStream::connect(&from).unwrap();
        assert_eq!(speak(&mut caller).unwrap(), 2);
    }
}
