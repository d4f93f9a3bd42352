//! A link that can be cut: a socket that passes on to another one what comes, until a fault says otherwise.

use crate::Outcome;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A link to a node.
pub(crate) struct Link {
    address: String,
    state: Arc<State>,
}

struct State {
    to: PathBuf,
    refuses: AtomicBool,
    open: Mutex<Vec<UnixStream>>,
}

impl Link {
    /// Passes on what comes to `at`.
    pub(crate) fn start(at: &Path, to: &Path) -> Outcome<Self> {
        let listener = UnixListener::bind(at)?;
        let state = Arc::new(State {
            to: to.to_owned(),
            refuses: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let of_thread = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                of_thread.pass_on(stream);
            }
        });
        let address = format!("unix:{}", at.display());
        Ok(Link { address, state })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Ends all connections, and takes none until it is mended.
    pub(crate) fn cut(&self) {
        self.state.refuses.store(true, Ordering::SeqCst);
        for stream in self.state.streams().drain(..) {
            // One that has ended by itself is cut, too.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn mend(&self) {
        self.state.refuses.store(false, Ordering::SeqCst);
    }
}

impl State {
    fn streams(&self) -> std::sync::MutexGuard<'_, Vec<UnixStream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever cannot be passed on is hung up on: it dials again.
    fn pass_on(&self, from: UnixStream) {
        let Ok(to) = UnixStream::connect(&self.to) else {
            return;
        };
        let ends = [from.try_clone(), to.try_clone()].map(Result::ok);
        let [Some(from_end), Some(to_end)] = ends else {
            return;
        };
        let mut streams = self.streams();
        if self.refuses.load(Ordering::SeqCst) {
            return;
        }
        streams.extend([from.try_clone(), to.try_clone()].into_iter().flatten());
        drop(streams);
        thread::spawn(move || copy(from, to));
        thread::spawn(move || copy(to_end, from_end));
    }
}

fn copy(mut from: UnixStream, mut to: UnixStream) {
    let mut bytes = [0; 16 << 10];
    while let Ok(read) = from.read(&mut bytes) {
        if read == 0 || to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
