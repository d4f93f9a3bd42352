//! Work that runs on an event loop of this process until it is stopped.

use super::event_loop::EventLoop;
use crate::lock::lock;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use tokio::sync::oneshot;

/// Dropped, it is stopped, and waited for.
pub(crate) struct Worker {
    stop: Mutex<Option<oneshot::Sender<()>>>,
    /// Closed when it has ended.
    ended: Mutex<mpsc::Receiver<()>>,
    runs_on: Arc<EventLoop>,
}

/// Ready when it is to end.
pub(crate) type Stopped = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Worker {
    /// Begins; what is made of `work` runs in the loop's runtime.
    ///
    /// # Errors
    ///
    /// The system refuses a thread, or what a runtime needs.
    pub(crate) fn start<F>(work: impl FnOnce(Stopped) -> F) -> io::Result<Worker>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let runs_on = EventLoop::of_this_process()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (running, ended) = mpsc::channel();
        let work = work(Box::pin(async move {
            // A dropped sender is as good as a message: the worker has no owner any more.
            let _ = stopped.await;
        }));
        runs_on.run(async move {
            let _running: mpsc::Sender<()> = running;
            work.await;
        });
        Ok(Worker {
            stop: Mutex::new(Some(stop)),
            ended: Mutex::new(ended),
            runs_on,
        })
    }

    /// Ends it, and waits for that.
    pub(crate) fn stop(&self) {
        if let Some(stop) = lock(&self.stop).take() {
            // Work that has ended does not listen.
            let _ = stop.send(());
        }
        // A thread cannot wait for itself: there it ends without being waited for.
        if !self.runs_on.is_here() {
            // Nothing is ever sent. If it panicked, it has said so.
            let _ = lock(&self.ended).recv();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}
