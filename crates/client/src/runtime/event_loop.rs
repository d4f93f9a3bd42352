//! The threads that the members of a process run on: at most one for each processor, however many members there are.
//!
//! What arrives for several members is then handled in one turn, with one change of threads. The program's own code
//! never runs here, so nothing here waits.

use crate::lock::lock;
use std::future::Future;
use std::io;
use std::num::NonZero;
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, ThreadId};
use thorp_net::driver::runtime;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A thread with a runtime. It ends with its last owner.
pub(super) struct EventLoop {
    handle: Handle,
    thread: ThreadId,
    /// Dropped unsent, it ends the thread.
    _running: oneshot::Sender<()>,
}

/// The loops that run.
static LOOPS: Mutex<Vec<Weak<EventLoop>>> = Mutex::new(Vec::new());

impl EventLoop {
    /// The loop with the fewest members, or one more while there are processors for it.
    ///
    /// # Errors
    ///
    /// The system refuses a thread, or what a runtime needs.
    pub(super) fn of_this_process() -> io::Result<Arc<EventLoop>> {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let mut loops = lock(&LOOPS);
        loops.retain(|one| one.strong_count() > 0);
        if loops.len() >= processors {
            let running = loops.iter().filter_map(Weak::upgrade);
            if let Some(least) = running.min_by_key(Arc::strong_count) {
                return Ok(least);
            }
        }
        let new = Arc::new(EventLoop::start()?);
        loops.push(Arc::downgrade(&new));
        Ok(new)
    }

    fn start() -> io::Result<EventLoop> {
        let runtime = runtime()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel::<()>();
        let run = move || {
            // Nothing is ever sent: it ends with its sender.
            let _ = runtime.block_on(ended);
        };
        let thread = thread::Builder::new().name("thorp-member".to_owned());
        let thread = thread.spawn(run)?.thread().id();
        Ok(EventLoop {
            handle,
            thread,
            _running: running,
        })
    }

    /// Runs a member beside the others. The loop stays for as long as it runs.
    pub(super) fn run(self: &Arc<Self>, member: impl Future<Output = ()> + Send + 'static) {
        let held = Arc::clone(self);
        self.handle.spawn(async move {
            member.await;
            drop(held);
        });
    }

    /// Whether the caller is the loop's own thread.
    pub(super) fn is_here(&self) -> bool {
        thread::current().id() == self.thread
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::mpsc;

    #[test]
    fn members_share_as_many_threads_as_there_are_processors() {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let loops: Vec<_> = (0..4 * processors)
            .map(|_| EventLoop::of_this_process().unwrap())
            .collect();
        let (sender, receiver) = mpsc::channel();
        for one in &loops {
            let sender = sender.clone();
            one.run(async move { sender.send(thread::current().id()).unwrap() });
        }
        drop(sender);
        let ran_on: Vec<_> = receiver.iter().collect();
        assert_eq!(ran_on.len(), loops.len());
        let threads: HashSet<_> = ran_on.into_iter().collect();
        // Tests beside this one may have taken a place.
        assert!((1..=processors).contains(&threads.len()));
        assert!(!loops.iter().any(|one| one.is_here()));
    }

    #[test]
    fn a_loop_stays_while_a_member_runs() {
        let (go, waits) = oneshot::channel::<()>();
        let (sender, receiver) = mpsc::channel();
        let held = EventLoop::of_this_process().unwrap();
        held.run(async move {
            waits.await.unwrap();
            sender.send(()).unwrap();
        });
        drop(held);
        go.send(()).unwrap();
        receiver.recv().unwrap();
    }
}
