//! Where a node runs.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use thorp_net::driver::runtime;

/// A thread on which a node runs in a runtime of its own, as it would in a process of its own.
pub(crate) struct Thread(Option<JoinHandle<()>>);

impl Thread {
    /// Starts a node on a thread. `open` gives the node and the work that goes on until the node is told to end.
    pub(crate) fn start<N, F, W>(open: impl FnOnce() -> F + Send + 'static) -> (N, Thread)
    where
        N: Send + 'static,
        F: Future<Output = (N, W)>,
        W: Future<Output = ()>,
    {
        let (opened, opening) = mpsc::channel();
        let thread = thread::spawn(move || {
            runtime().unwrap().block_on(async {
                let (node, work) = open().await;
                opened.send(node).unwrap();
                work.await;
            });
        });
        (opening.recv().unwrap(), Thread(Some(thread)))
    }

    /// Waits until the node has ended; whoever calls has told it to.
    pub(crate) fn join(&mut self) {
        if let Some(thread) = self.0.take() {
            // A panic of the node has been printed, and this may run during another one.
            let _ = thread.join();
        }
    }
}
