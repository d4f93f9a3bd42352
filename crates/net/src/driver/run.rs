//! The loop itself.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use thorp_model::{Outbox, StateMachine};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::World;
use super::arrivals::{self, Arrival, Dialer};
use super::config::{
    ARRIVALS_MAX, DriverConfig, FLUSH_LOOK, GOODBYE_TIME, ParentConfig, ROUND_INPUTS_MAX,
    ROUND_TIME_MAX,
};
use super::edges::{Edges, ParentState, ParentStatus, Shared};
use super::follow;
use super::greeting;
use super::handle::{Command, Handle, is_bounded};
use super::parent_choice::Caller;
use super::reader::{Inbox, Payer, ReaderEvent};
use super::time::Alarm;
use super::turn::Turn;
use super::turns::Turns;
use crate::intake::Intake;

/// Joins a machine to sockets, time, and the rest of its world.
///
/// Outlives its machine: after [`Ended::Halted`] it can [run](Driver::run) another one, with the same listeners and the
/// same [`Handle`]s.
pub struct Driver<C: StateMachine> {
    config: DriverConfig,
    hello: Vec<u8>,
    shared: Arc<Shared>,
    edges: Edges,
    commands: mpsc::UnboundedReceiver<Command<C>>,
    /// Keeps the channel open when nobody has a handle any more: the edges go on.
    _inputs: mpsc::UnboundedSender<Command<C>>,
    asks: Arc<AtomicUsize>,
    inbox: Inbox,
    events: mpsc::UnboundedReceiver<(Payer, ReaderEvent)>,
    turns: Turns<(Payer, ReaderEvent)>,
    arrived: mpsc::Sender<Arrival>,
    arrivals: mpsc::Receiver<Arrival>,
    /// Listeners and dialers; ended with the driver.
    bringing: JoinSet<()>,
    /// One of these tasks follows the identity.
    is_following: bool,
}

/// Why [`Driver::run`] came to an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// It was told to shut down: queues are flushed, edges closed.
    Shutdown,
    /// [`Handle::halt`]: edges are closed, listeners wait.
    Halted,
}

impl<C: StateMachine> Driver<C> {
    /// A driver, and the way into it. Nothing happens before [`Driver::run`], but inputs are already taken.
    pub fn new(config: DriverConfig) -> (Self, Handle<C>) {
        let limits = &config.limits;
        let (inputs, commands) = mpsc::unbounded_channel();
        let (events_in, events) = mpsc::unbounded_channel();
        let (arrived, arrivals) = mpsc::channel(ARRIVALS_MAX);
        let (shared, asks) = (Arc::<Shared>::default(), Arc::<AtomicUsize>::default());
        let intake = Intake::new(limits.inbox_bytes_max);
        let frames_max = limits.inbox_frames_max.max(1);
        let handle = Handle::new(
            inputs.clone(),
            Arc::clone(&asks),
            limits.asks_waiting_max,
            Arc::clone(&shared),
        );
        let driver = Self {
            hello: greeting::encode(&config.hello),
            edges: Edges::new(Arc::clone(&shared), config.limits.edges_max),
            config,
            shared,
            commands,
            _inputs: inputs,
            asks,
            inbox: Inbox {
                events: events_in,
                intake,
                frames_max,
            },
            events,
            turns: Turns::default(),
            arrived,
            arrivals,
            bringing: JoinSet::new(),
            is_following: false,
        };
        (driver, handle)
    }

    /// Drives a machine until `shutdown` is ready or somebody halts it. `first` is an outbox with which the machine already came.
    ///
    /// A shutdown reads nothing more, waits until the world is no longer busy and the queues are written, for a bounded
    /// time ([`DriverLimits::flush_time_max`](super::DriverLimits::flush_time_max)), and closes the edges.
    pub async fn run<W: World<C::Action>>(
        &mut self,
        machine: &mut C,
        world: &mut W,
        first: Outbox<C::Action>,
        shutdown: impl Future<Output = ()>,
    ) -> Ended {
        self.bring();
        let mut turn = Turn::new(
            (machine, world),
            &mut self.edges,
            (&self.shared, &self.config),
            (&self.hello, &self.inbox),
            first,
        );
        turn.carry_out();
        let mut sources = Sources {
            commands: &mut self.commands,
            asks: &self.asks,
            events: &mut self.events,
            turns: &mut self.turns,
            arrivals: &mut self.arrivals,
        };
        let ended = sources.drive(&mut turn, shutdown).await;
        if ended == Ended::Shutdown {
            self.bringing.shutdown().await;
            flush(&mut sources, &mut turn).await;
        }
        for edge in turn.edges.ids() {
            turn.edges.abort(edge);
        }
        ended
    }

    /// From the next run on it calls these parents, too. Before, it must have had none.
    pub fn call(&mut self, parents: Vec<ParentConfig>) {
        self.config.parents.extend(parents);
    }

    /// Drops every input that waits: it was meant for a machine that is gone.
    pub fn forget_inputs(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            if let Command::Event(event) = command
                && is_bounded(&event)
            {
                self.asks.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Starts the tasks that bring connections, the first time.
    fn bring(&mut self) {
        if !self.is_following {
            self.is_following = true;
            let following = follow::follow(self.config.identity.clone(), self.arrived.clone());
            self.bringing.spawn(following);
        }
        for listener in self.config.listeners.drain(..) {
            self.bringing
                .spawn(arrivals::hear(listener, self.arrived.clone()));
        }
        for (index, parent) in self.config.parents.drain(..).enumerate() {
            self.shared.add_parent(ParentStatus {
                name: parent.expect_name.clone().unwrap_or_default(),
                addresses: parent.addresses.iter().map(ToString::to_string).collect(),
                state: match parent.on_demand {
                    true => ParentState::Unwanted,
                    false => ParentState::Dialing,
                },
            });
            let caller = Caller::new(
                &parent,
                self.config.identity.clone(),
                (self.config.hello.kind, &self.hello),
                self.config.net_limits.clone(),
            );
            let dialer = Dialer {
                index,
                parent,
                caller,
                arrivals: self.arrived.clone(),
                wanted: self.shared.wanted.subscribe(),
                heeded: 0,
                shared: Arc::clone(&self.shared),
            };
            self.bringing.spawn(dialer.run());
        }
    }
}

/// Where inputs come from.
struct Sources<'a, C: StateMachine> {
    commands: &'a mut mpsc::UnboundedReceiver<Command<C>>,
    asks: &'a AtomicUsize,
    events: &'a mut mpsc::UnboundedReceiver<(Payer, ReaderEvent)>,
    turns: &'a mut Turns<(Payer, ReaderEvent)>,
    arrivals: &'a mut mpsc::Receiver<Arrival>,
}

/// What woke the loop.
enum Woken<C: StateMachine> {
    Shutdown,
    Command(Option<Command<C>>),
    Reader(Option<(Payer, ReaderEvent)>),
    /// Inputs wait that came before.
    Waiting,
    Arrival(Option<Arrival>),
    Deadline,
}

impl<C: StateMachine> Sources<'_, C> {
    async fn drive<W: World<C::Action>>(
        &mut self,
        turn: &mut Turn<'_, C, W>,
        shutdown: impl Future<Output = ()>,
    ) -> Ended {
        let mut shutdown = pin!(shutdown);
        let mut alarm = Alarm::new();
        loop {
            turn.end_lapsed();
            turn.tick();
            turn.world.flush();
            let (deadline, now) = (turn.deadline(), turn.world.now().mono);
            // In this order, which is no injustice: each round takes from every source.
            let woken = tokio::select! {
                biased;
                () = &mut shutdown => Woken::Shutdown,
                command = self.commands.recv() => Woken::Command(command),
                () = std::future::ready(()), if !self.turns.is_empty() => Woken::Waiting,
                event = self.events.recv() => Woken::Reader(event),
                () = rest(self.turns.rests_until()) => Woken::Waiting,
                arrival = self.arrivals.recv() => Woken::Arrival(arrival),
                () = alarm.wait(deadline, now) => Woken::Deadline,
            };
            let halted = match woken {
                Woken::Shutdown => return Ended::Shutdown,
                Woken::Command(Some(command)) => self.command(command, turn),
                Woken::Reader(Some((payer, event))) => {
                    self.turns.push(payer.name, (payer, event));
                    false
                }
                Woken::Arrival(Some(arrival)) => {
                    turn.arrival(arrival);
                    false
                }
                // None: of no channel, for the driver holds a sending end of each.
                Woken::Waiting
                | Woken::Deadline
                | Woken::Command(None)
                | Woken::Reader(None)
                | Woken::Arrival(None) => false,
            };
            if halted || self.round(turn) {
                return Ended::Halted;
            }
            if !self.commands.is_empty() || !self.events.is_empty() || !self.turns.is_empty() {
                // The writers and readers have their turn, too.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Takes what is ready, so much of each source. Tells whether to halt.
    fn round<W: World<C::Action>>(&mut self, turn: &mut Turn<'_, C, W>) -> bool {
        for _ in 0..ROUND_INPUTS_MAX {
            let Ok(command) = self.commands.try_recv() else {
                break;
            };
            if self.command(command, turn) {
                return true;
            }
        }
        self.take_turns(turn);
        if let Ok(arrival) = self.arrivals.try_recv() {
            turn.arrival(arrival);
        }
        false
    }

    /// Handles what edges have brought: the name that has used least of the loop's time is next.
    fn take_turns<W: World<C::Action>>(&mut self, turn: &mut Turn<'_, C, W>) {
        let begun = Instant::now();
        let mut last = begun;
        for _ in 0..ROUND_INPUTS_MAX {
            while let Ok((payer, event)) = self.events.try_recv() {
                self.turns.push(payer.name, (payer, event));
            }
            let Some((name, (payer, event))) = self.turns.pop(last) else {
                return;
            };
            let (decoding, asks) = (event.decoding, event.asks());
            turn.event(event);
            let now = Instant::now();
            let time = now.duration_since(last) + decoding;
            match payer.is_parent {
                true => self.turns.charge_parent(name, time),
                false => self.turns.charge(name, time, (now, asks)),
            }
            last = now;
            if last.duration_since(begun) > ROUND_TIME_MAX {
                return;
            }
        }
    }

    /// Does one command. Tells whether to halt.
    fn command<W: World<C::Action>>(
        &mut self,
        command: Command<C>,
        turn: &mut Turn<'_, C, W>,
    ) -> bool {
        match command {
            Command::Event(event) => {
                if is_bounded(&event) {
                    self.asks.fetch_sub(1, Ordering::Relaxed);
                }
                turn.handle(event);
            }
            Command::Inspect(look) => look(turn.machine),
            Command::Halt => return true,
        }
        false
    }
}

/// Waits until a name may go on.
async fn rest(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until.into()).await,
        None => std::future::pending().await,
    }
}

/// Lets what is under way come to its end, for a bounded time.
async fn flush<C: StateMachine, W: World<C::Action>>(
    sources: &mut Sources<'_, C>,
    turn: &mut Turn<'_, C, W>,
) {
    let until = Instant::now() + turn.config.limits.flush_time_max;
    turn.world.flush();
    while turn.world.is_busy() && Instant::now() < until {
        let waited = tokio::time::timeout(FLUSH_LOOK, sources.commands.recv());
        match waited.await {
            Ok(Some(command)) => {
                if sources.command(command, turn) {
                    break;
                }
            }
            Ok(None) => break,
            Err(_) => {}
        }
        turn.world.flush();
    }
    for edge in turn.edges.ids() {
        turn.edges.close(edge);
    }
    while turn.shared.is_writing() && Instant::now() < until {
        tokio::time::sleep(FLUSH_LOOK).await;
    }
    tokio::time::sleep(GOODBYE_TIME).await;
}
