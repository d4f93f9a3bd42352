//! A machine that does what a test says.

use std::convert::Infallible;
use std::future::pending;
use std::sync::mpsc;
use std::time::Duration;

use thorp_model::{
    Command, Down, Epoch, Event, HomeId, Incarnation, LifeId, Mark, Message, Millis, NodeKind, Now,
    Outbox, Point, Position, Receipt, ReceiptKey, Stamp, StateMachine, Up, Verdict, message,
};
use thorp_net::driver::{Driver, DriverConfig, Handle, NoWorld, ParentConfig, net_config};
use thorp_net::{Address, Listener};
use tokio::task::JoinHandle;

use crate::common::{Village, any};

/// What a test hands to a toy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ToyCommand {
    /// The echo of something: always taken.
    Echo(u64),
    /// A request: only so many may wait.
    Request(u64),
}

impl Command for ToyCommand {
    fn is_bounded(&self) -> bool {
        matches!(self, ToyCommand::Request(_))
    }
}

pub(crate) type ToyEvent = Event<ToyCommand>;
pub(crate) type ToyOutbox = Outbox<Infallible>;

/// What a toy does with an event.
pub(crate) type Act = Box<dyn FnMut(Now, &ToyEvent, &mut ToyOutbox) + Send>;

/// Gives every event to the test.
pub(crate) struct Toy {
    pub(crate) heard: mpsc::Sender<ToyEvent>,
    pub(crate) act: Act,
    pub(crate) deadline: Option<Millis>,
}

impl StateMachine for Toy {
    type Command = ToyCommand;
    type Action = Infallible;

    fn handle(&mut self, now: Now, event: ToyEvent, outbox: &mut ToyOutbox) {
        (self.act)(now, &event, outbox);
        if event == Event::Tick {
            self.deadline = self.deadline.map(|deadline| deadline.plus(10));
        }
        // The test may have heard enough.
        let _ = self.heard.send(event);
    }

    fn deadline(&self) -> Option<Millis> {
        self.deadline
    }
}

/// A toy that runs.
pub(crate) struct Running {
    pub(crate) handle: Handle<Toy>,
    pub(crate) heard: mpsc::Receiver<ToyEvent>,
    pub(crate) task: JoinHandle<()>,
}

pub(crate) fn silent() -> Act {
    Box::new(|_, _, _| {})
}

pub(crate) fn toy(act: Act) -> (Toy, mpsc::Receiver<ToyEvent>) {
    let (heard, hearing) = mpsc::channel();
    let toy = Toy {
        heard,
        act,
        deadline: None,
    };
    (toy, hearing)
}

pub(crate) fn start(config: DriverConfig, act: Act) -> Running {
    let (mut driver, handle) = Driver::new(config);
    let (mut toy, heard) = toy(act);
    let task = tokio::spawn(async move {
        driver
            .run(&mut toy, &mut NoWorld, Outbox::new(), pending())
            .await;
    });
    Running {
        handle,
        heard,
        task,
    }
}

pub(crate) async fn parent_at(village: &Village, address: &Address) -> (DriverConfig, Address) {
    let kind = NodeKind::Home;
    let listener = Listener::bind(address, &village.home, net_config(kind)).await;
    let listener = listener.unwrap();
    let address = listener.address().clone();
    let mut config = DriverConfig::new(village.home.clone(), village.home.greeting(7));
    config.listeners.push(listener);
    (config, address)
}

pub(crate) async fn parent(village: &Village) -> (DriverConfig, Address) {
    parent_at(village, &any()).await
}

pub(crate) fn child(village: &Village, parent: &Address) -> DriverConfig {
    let mut config = DriverConfig::new(village.member.clone(), village.member.greeting(7));
    let parent = ParentConfig::new(vec![parent.clone()]).named("alps");
    config.parents.push(parent);
    config
}

impl Running {
    /// The next input; other tasks go on meanwhile.
    pub(crate) async fn next(&mut self) -> ToyEvent {
        for _ in 0..10_000 {
            if let Ok(input) = self.heard.try_recv() {
                return input;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("nothing was heard in ten seconds");
    }
}

/// A message down, of the home of [`Village`](crate::common::Village).
pub(crate) fn heartbeat(position: u64) -> Message {
    Message::Down(Down::Heartbeat(message::Heartbeat {
        home: HomeId(1),
        position: Position(position),
        watermark: Stamp::default(),
    }))
}

pub(crate) fn begin_of(home: u32) -> Message {
    Message::Down(Down::Begin(message::Begin {
        home: HomeId(home),
        name: "alps".to_owned(),
        epoch: Epoch(1),
        position: Position(0),
        watermark: Stamp::default(),
        silent_ms: 0,
        readers: Vec::new(),
        sites: Vec::new(),
        receipt: receipt_of(home),
        verdict: Verdict::Known,
    }))
}

fn receipt_of(home: u32) -> Receipt {
    let point = Point {
        life: LifeId {
            counter: 1,
            random: 1,
        },
        mark: Mark(0),
        position: Position(0),
        clock: 0,
    };
    let key = ReceiptKey::new([0; 32]);
    Receipt::new(HomeId(home), Incarnation::default(), point, &key)
}

pub(crate) fn ack(position: u64) -> Message {
    Message::Up(Up::Ack(message::Ack {
        home: HomeId(1),
        epoch: Epoch(1),
        position: Position(position),
    }))
}
