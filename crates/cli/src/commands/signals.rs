//! SIGINT and SIGTERM.

use crate::failure::Failure;
use std::io;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// SIGINT ends this process no more; it still ends those that it starts.
pub(crate) fn outlive_interrupts() -> Result<(), Failure> {
    let runtime = runtime()?;
    let _inside = runtime.enter();
    // The handler stays when nobody listens any more.
    signal(SignalKind::interrupt()).map(drop).map_err(failed)
}

/// Calls this, in a thread of its own, at each of them.
pub(crate) fn on_each(mut what: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    on_each_of(move |_| what())
}

/// As [`on_each`]; tells whether it was SIGTERM.
pub(crate) fn on_each_of(mut what: impl FnMut(bool) + Send + 'static) -> Result<(), Failure> {
    let runtime = runtime()?;
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
                    _ = terminate.recv() => what(true),
                    _ = interrupt.recv() => what(false),
                }
            }
        });
    });
    Ok(())
}

fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(failed)
}

fn failed(error: io::Error) -> Failure {
    Failure::new(format!("signals cannot be heard: {error}"), "")
}
