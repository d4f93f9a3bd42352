//! SIGINT and SIGTERM.

use crate::failure::Failure;
use std::io;
use tokio::signal::unix::{SignalKind, signal};

/// SIGINT ends this process no more; it still ends those that it starts.
pub(crate) fn outlive_interrupts() -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(format!("signals cannot be heard: {error}"), "");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let _inside = runtime.enter();
    // The handler stays when nobody listens any more.
    signal(SignalKind::interrupt()).map(drop).map_err(failed)
}

/// Calls this, in a thread of its own, at each of them.
pub(crate) fn on_each(mut what: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(format!("signals cannot be heard: {error}"), "");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let (mut terminate, mut interrupt) = {
        let _inside = runtime.enter();
        let listen = |kind| signal(kind).map_err(failed);
        (
            listen(SignalKind::terminate())?,
            listen(SignalKind::interrupt())?,
        )
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = terminate.recv() => what(),
                    _ = interrupt.recv() => what(),
                }
            }
        });
    });
    Ok(())
}
