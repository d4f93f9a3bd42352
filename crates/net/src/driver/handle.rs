//! The way into a running loop from other threads.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use thorp_model::{EdgeId, Event, StateMachine};
use tokio::sync::{mpsc, oneshot};

use super::counts::NoteCounts;
use super::edges::{EdgeStatus, ParentStatus, Shared, Totals};
use crate::LinkDelay;

/// The way into a driver from any thread. Cheap to clone; nothing here waits for the loop.
pub struct Handle<C: StateMachine> {
    inputs: mpsc::UnboundedSender<Command<C>>,
    asks: Arc<AtomicUsize>,
    asks_max: usize,
    shared: Arc<Shared>,
}

/// Why an input was not taken. Nothing has happened then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotTaken {
    /// Too many asks wait for the loop: ask again a little later.
    TooMany,
    /// The driver is gone.
    Gone,
}

/// What an inspection will have found; awaited, or waited for by a thread outside of the runtime.
#[derive(Debug)]
pub struct Inspection<R>(oneshot::Receiver<R>);

/// What the loop is told.
pub(super) enum Command<C: StateMachine> {
    Event(Event<C::Command>),
    Inspect(Box<dyn FnOnce(&C) + Send>),
    Halt,
}

impl<C: StateMachine> Handle<C> {
    pub(super) fn new(
        inputs: mpsc::UnboundedSender<Command<C>>,
        asks: Arc<AtomicUsize>,
        asks_max: usize,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            inputs,
            asks,
            asks_max,
            shared,
        }
    }

    /// Gives the machine a command. Commands of one thread are handled in their order.
    ///
    /// # Errors
    ///
    /// [`NotTaken`].
    pub fn command(&self, command: C::Command) -> Result<(), NotTaken> {
        self.event(Event::Command(command))
    }

    /// Gives the machine an event. Events of one thread are handled in their order.
    ///
    /// Commands that a program may cause at will are bounded here; all other events are the echo of an action, and so
    /// bounded by the machine.
    ///
    /// # Errors
    ///
    /// [`NotTaken`].
    pub fn event(&self, event: Event<C::Command>) -> Result<(), NotTaken> {
        if is_bounded(&event) && self.asks.fetch_add(1, Ordering::Relaxed) >= self.asks_max {
            self.asks.fetch_sub(1, Ordering::Relaxed);
            return Err(NotTaken::TooMany);
        }
        let sent = self.inputs.send(Command::Event(event));
        sent.map_err(|_| NotTaken::Gone)
    }

    /// Looks into the machine, between two inputs. Gives `None` if the driver ends before.
    pub fn inspect<R: Send + 'static>(
        &self,
        look: impl FnOnce(&C) -> R + Send + 'static,
    ) -> Inspection<R> {
        let (found, finding) = oneshot::channel();
        let look = move |machine: &C| {
            // Who no longer wants to know does not listen.
            let _ = found.send(look(machine));
        };
        // If it is not taken, `found` is dropped with it: the inspection ends with none.
        let _ = self.inputs.send(Command::Inspect(Box::new(look)));
        Inspection(finding)
    }

    /// Ends [`Driver::run`](super::Driver::run) with [`Ended::Halted`](super::Ended::Halted): all edges are closed
    /// at once, the listeners stay.
    pub fn halt(&self) {
        // A driver that is gone has ended already.
        let _ = self.inputs.send(Command::Halt);
    }

    /// The parents that are dialed on demand are wanted: those that are not connected are dialed, once. Whoever still wants
    /// them then, says so again; the waits between grow ([`Backoff`](crate::Backoff)).
    pub fn want_parents(&self) {
        self.shared.wanted.send_modify(|count| *count += 1);
    }

    /// The edges there are now.
    pub fn edges(&self) -> Vec<EdgeStatus> {
        self.shared.edges()
    }

    /// The parents, and whether they can be reached.
    pub fn parents(&self) -> Vec<ParentStatus> {
        self.shared.parents()
    }

    /// What has crossed all edges since the driver was made, also those that are gone.
    pub fn totals(&self) -> Totals {
        self.shared.totals()
    }

    /// How often each note was made.
    pub fn notes(&self) -> &NoteCounts {
        &self.shared.notes
    }

    /// Changes the delay on what is sent on an edge from now on. `false` if the edge is gone.
    pub fn set_delay(&self, edge: EdgeId, delay: LinkDelay) -> bool {
        self.shared.set_delay(edge, delay)
    }
}

/// Whether an event is a command of which only so many may wait.
pub(super) fn is_bounded<C: thorp_model::Command>(event: &Event<C>) -> bool {
    matches!(event, Event::Command(command) if command.is_bounded())
}

impl<R> Inspection<R> {
    /// Waits on a thread of its own; inside of a runtime it panics: await it there.
    pub fn wait(self) -> Option<R> {
        self.0.blocking_recv().ok()
    }
}

impl<R> Future for Inspection<R> {
    type Output = Option<R>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(Result::ok)
    }
}

// Derived, they would ask the same of `C`.
impl<C: StateMachine> Clone for Handle<C> {
    fn clone(&self) -> Self {
        Self {
            inputs: self.inputs.clone(),
            asks: Arc::clone(&self.asks),
            asks_max: self.asks_max,
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<C: StateMachine> fmt::Debug for Handle<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("edges", &self.edges().len())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooMany => "too many requests wait: ask again a little later",
            Self::Gone => "the node has ended",
        })
    }
}

impl std::error::Error for NotTaken {}
