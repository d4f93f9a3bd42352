//! A way between two nodes, which a test can cut.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

/// Leads from one address to another. Gone with the test.
pub(crate) struct Way {
    from: PathBuf,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    is_cut: bool,
    /// Those who come are neither answered nor hung up on.
    silent: Vec<UnixStream>,
    is_silent: bool,
    /// Both ends of what crosses it.
    crossing: Vec<(UnixStream, UnixStream)>,
}

impl Way {
    pub(crate) fn new(from: PathBuf, to: PathBuf) -> Self {
        let listener = UnixListener::bind(&from).unwrap();
        let shared = Arc::<Mutex<Shared>>::default();
        let way = Way {
            from,
            shared: Arc::clone(&shared),
        };
        thread::spawn(move || {
            for caller in listener.incoming().map_while(Result::ok) {
                // Who is cut off, or finds nobody there, is hung up on.
                let _ = cross(&shared, caller, &to);
            }
        });
        way
    }

    pub(crate) fn address(&self) -> String {
        format!("unix:{}", self.from.display())
    }

    /// What crosses it breaks off, and nobody gets through any more.
    pub(crate) fn cut(&self) {
        let mut shared = self.shared.lock().unwrap();
        shared.is_cut = true;
        for (one, other) in shared.crossing.drain(..) {
            // It may have ended by itself.
            let _ = one.shutdown(Shutdown::Both);
            let _ = other.shutdown(Shutdown::Both);
        }
    }

    /// Nothing crosses it any more, and nobody is told.
    pub(crate) fn fall_silent(&self) {
        self.shared.lock().unwrap().is_silent = true;
    }

    /// Who comes now gets through. What was silent breaks off.
    pub(crate) fn mend(&self) {
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
        // What is silent swallows it.
        let swallows = shared.lock().unwrap().is_silent;
        if !swallows && to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    // However it ends, the other end is to hear of it.
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
