//! A path between two nodes, which a test can cut.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

/// Carries bytes between a socket of its own and the socket of a node.
pub struct Relay {
    from: PathBuf,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    is_cut: bool,
    /// Callers that came during the silence: they get neither an answer nor an end.
    silent: Vec<UnixStream>,
    is_silent: bool,
    /// Both ends of each connection.
    crossing: Vec<(UnixStream, UnixStream)>,
}

impl Relay {
    /// Listens at one path, and connects each caller with the other.
    pub fn new(from: PathBuf, to: PathBuf) -> Self {
        let listener = UnixListener::bind(&from).unwrap();
        let shared = Arc::<Mutex<Shared>>::default();
        let relay = Relay {
            from,
            shared: Arc::clone(&shared),
        };
        thread::spawn(move || {
            for caller in listener.incoming().map_while(Result::ok) {
                // It ends where the relay is cut, or where no node listens.
                let _ = cross(&shared, caller, &to);
            }
        });
        relay
    }

    /// Where it listens.
    pub fn address(&self) -> String {
        format!("unix:{}", self.from.display())
    }

    /// Breaks every connection, and lets nobody through any more.
    pub fn cut(&self) {
        let mut shared = self.shared.lock().unwrap();
        shared.is_cut = true;
        for (one, other) in shared.crossing.drain(..) {
            // It may have ended by itself.
            let _ = one.shutdown(Shutdown::Both);
            let _ = other.shutdown(Shutdown::Both);
        }
    }

    /// Carries nothing any more, and ends no connection.
    pub fn fall_silent(&self) {
        self.shared.lock().unwrap().is_silent = true;
    }

    /// Breaks every connection, and lets new callers through.
    pub fn mend(&self) {
        self.cut();
        let mut shared = self.shared.lock().unwrap();
        (shared.is_cut, shared.is_silent) = (false, false);
        shared.silent.clear();
    }
}

fn cross(shared: &Arc<Mutex<Shared>>, caller: UnixStream, to: &PathBuf) -> io::Result<()> {
    let all = Arc::clone(shared);
    let mut shared = shared.lock().unwrap();
    if shared.is_cut {
        return Ok(());
    }
    if shared.is_silent {
        shared.silent.push(caller);
        return Ok(());
    }
    let called = UnixStream::connect(to)?;
    let (one, other) = (caller.try_clone()?, called.try_clone()?);
    let (back, forth) = (caller.try_clone()?, called.try_clone()?);
    shared.crossing.push((caller, called));
    let same = Arc::clone(&all);
    thread::spawn(move || carry(&same, one, other));
    thread::spawn(move || carry(&all, forth, back));
    Ok(())
}

fn carry(shared: &Mutex<Shared>, mut from: UnixStream, mut to: UnixStream) {
    let mut bytes = [0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        // During a silence the bytes are lost.
        let swallows = shared.lock().unwrap().is_silent;
        if !swallows && to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    // However it ends, the other end must see it.
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speak(relay: &Relay) -> io::Result<[u8; 2]> {
        let mut caller = UnixStream::connect(&relay.from)?;
        caller.write_all(b"hi")?;
        let mut answer = [0; 2];
        caller.read_exact(&mut answer)?;
        Ok(answer)
    }

    #[test]
    fn nothing_crosses_a_relay_that_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let echo = UnixListener::bind(&to).unwrap();
        thread::spawn(move || {
            for mut caller in echo.incoming().map_while(Result::ok) {
                let mut word = [0; 2];
                if caller.read_exact(&mut word).is_ok() {
                    let _ = caller.write_all(&word);
                }
            }
        });
        let relay = Relay::new(from, to);
        assert_eq!(speak(&relay).unwrap(), *b"hi");
        relay.cut();
        assert!(speak(&relay).is_err());
        relay.mend();
        assert_eq!(speak(&relay).unwrap(), *b"hi");
    }
}
