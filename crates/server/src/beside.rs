//! A server's loop beside whoever waits for its end.

use std::future::Future;
use std::panic::resume_unwind;

use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Serves until `shutdown`, as a task of its own. What a runtime is blocked on itself, it looks at only after it has asked the
/// system for news once more: in each turn of a loop that would be a call for nothing.
pub(crate) async fn serve_beside<F>(
    serve: impl FnOnce(oneshot::Receiver<()>) -> F,
    shutdown: impl Future<Output = ()>,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let (tell, told) = oneshot::channel();
    // Dropped, it ends what it serves.
    let mut serving = JoinSet::new();
    serving.spawn(serve(told));
    let ended = tokio::select! {
        biased;
        ended = serving.join_next() => ended,
        () = shutdown => {
            // It may have ended in this moment.
            let _ = tell.send(());
            serving.join_next().await
        }
    };
    if let Some(Err(error)) = ended
        && let Ok(panic) = error.try_into_panic()
    {
        resume_unwind(panic);
    }
}

/// Ready when it is told so, or nobody is left to tell it.
pub(crate) async fn until(told: oneshot::Receiver<()>) {
    let _ = told.await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn it_is_not_what_the_runtime_is_blocked_on() {
        let runtime = crate::runtime().unwrap();
        let ends = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&ends);
        let serve = |told| async move {
            // The future of `block_on` has no id.
            assert!(tokio::task::try_id().is_some());
            until(told).await;
            counted.fetch_add(1, Ordering::Relaxed);
        };
        runtime.block_on(serve_beside(serve, async {}));
        assert_eq!(ends.load(Ordering::Relaxed), 1);
    }

    #[test]
    #[should_panic(expected = "a mistake of ours")]
    fn a_panic_is_not_kept_back() {
        let runtime = crate::runtime().unwrap();
        let serve = |_| async { panic!("a mistake of ours") };
        runtime.block_on(serve_beside(serve, pending()));
    }
}
