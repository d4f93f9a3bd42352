//! A way between two nodes, which a test can cut.

use std::io;
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

    pub(crate) fn mend(&self) {
        self.shared.lock().unwrap().is_cut = false;
    }
}

fn cross(shared: &Mutex<Shared>, caller: UnixStream, to: &PathBuf) -> io::Result<()> {
    let mut shared = shared.lock().unwrap();
    if shared.is_cut {
        return Ok(());
    }
    let called = UnixStream::connect(to)?;
    let (one, other) = (caller.try_clone()?, called.try_clone()?);
    let (back, forth) = (caller.try_clone()?, called.try_clone()?);
    shared.crossing.push((caller, called));
    thread::spawn(move || carry(one, other));
    thread::spawn(move || carry(forth, back));
    Ok(())
}

fn carry(mut from: UnixStream, mut to: UnixStream) {
    // However it ends, the other end is to hear of it.
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
