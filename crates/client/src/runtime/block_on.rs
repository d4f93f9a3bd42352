//! Waiting for a future in a thread that has no runtime.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Drives a future of this crate to its end. Such futures wait only for the member's loop, so parking is enough.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    thread_local! {
        static WAKER: Waker = Waker::from(Arc::new(Unpark(thread::current())));
    }
    let mut future = pin!(future);
    let waker = WAKER.with(Waker::clone);
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        // A wake between the poll and here lets the park return at once.
        thread::park();
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[test]
    fn a_thread_without_a_runtime_waits_for_another() {
        let (sender, receiver) = oneshot::channel();
        let other = thread::spawn(move || {
            thread::sleep(std::time::Duration::from_millis(5));
            sender.send(7).unwrap();
        });
        assert_eq!(block_on(receiver), Ok(7));
        other.join().unwrap();
    }
}
