//! Half frames of one certificate: what they may hold, by counting what is allocated, and for how long.
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, not their helpers"
)]
#![allow(
    unsafe_code,
    reason = "an allocator that counts can be had in no other way"
)]

mod common;
#[allow(dead_code, reason = "the tests of the driver use more of it")]
#[path = "driver/toy.rs"]
mod toy;

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{Village, any, greeting};
use thorp_model::{EdgeId, Event, Message, NodeKind, Outbox, codec};
use thorp_net::driver::{Driver, DriverConfig, INBOX_BYTES_MAX, NoWorld, net_config, now};
use thorp_net::{
    Address, Connection, FRAME_BYTES_MAX, Identity, Limits, Listener, NodeRole, dial, issue,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use toy::{Running, ToyCommand, ack, silent, toy};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What is counted is the whole process: one test at a time.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A home with these limits of its connections. It looks at its neighbours every ten milliseconds.
async fn home(village: &Village, limits: Limits) -> (Running, Address) {
    let kind = NodeKind::Home;
    let mut net = net_config(kind);
    net.limits = limits;
    let listener = Listener::bind(&any(), &village.home, net).await.unwrap();
    let address = listener.address().clone();
    let mut config = DriverConfig::new(village.home.clone(), village.home.greeting(1));
    config.listeners.push(listener);
    let (mut driver, handle) = Driver::new(config);
    let (mut machine, heard) = toy(silent());
    machine.deadline = Some(now().mono);
    let task = tokio::spawn(async move {
        driver
            .run(&mut machine, &mut NoWorld, Outbox::new(), pending())
            .await;
    });
    let running = Running {
        handle,
        heard,
        task,
    };
    (running, address)
}

/// What the home hears next, beside its looks and the signs of life that it finds.
async fn next(home: &mut Running) -> Event<ToyCommand> {
    loop {
        match home.next().await {
            Event::Tick
            | Event::Received {
                message: Message::Alive,
                ..
            } => {}
            other => return other,
        }
    }
}

/// Connections of one certificate, each of which sends a frame of the greatest length, but only half of it.
struct HalfFrames {
    /// Bytes that they could write.
    written: Arc<AtomicUsize>,
    _senders: JoinSet<()>,
}

impl HalfFrames {
    /// As many as there are connections, each of which is an edge already when this returns.
    async fn of(village: &Village, address: &Address, home: &mut Running, edges: usize) -> Self {
        static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
        let hello = postcard::to_allocvec(&village.member.greeting(2)).unwrap();
        let written = Arc::<AtomicUsize>::default();
        let mut senders = JoinSet::new();
        for _ in 0..edges {
            let mut raw = village.raw(address).await;
            let mut begin = greeting(3, [hello.len() as u8, 0]).to_vec();
            begin.extend_from_slice(&hello);
            raw.write_all(&begin).await.unwrap();
            assert!(matches!(next(home).await, Event::Connected { .. }));
            let written = Arc::clone(&written);
            senders.spawn(async move {
                let length = (FRAME_BYTES_MAX as u32).to_le_bytes();
                let _ = raw.write_all(&length).await;
                for _ in 0..FRAME_BYTES_MAX / 2 / ZEROS.len() {
                    if raw.write_all(&ZEROS).await.is_err() {
                        return;
                    }
                    written.fetch_add(ZEROS.len(), Ordering::Relaxed);
                }
                let _ = raw.read_to_end(&mut Vec::new()).await;
            });
        }
        Self {
            written,
            _senders: senders,
        }
    }

    /// Waits until the home reads no more of them.
    async fn settled(&self) {
        let (mut before, mut looks) = (0, 0);
        while looks < 200 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let written = self.written.load(Ordering::Relaxed);
            looks = if written == before { looks + 1 } else { 0 };
            before = written;
        }
    }
}

async fn call(address: &Address, identity: &Identity) -> Connection {
    let hello = postcard::to_allocvec(&identity.greeting(3)).unwrap();
    let config = net_config(NodeKind::Member);
    let addresses = [address.clone()];
    let dialed = dial(&addresses, identity, None, &hello, &config).await;
    dialed.unwrap()
}

fn bytes_of(message: &Message) -> Vec<u8> {
    codec::encode(message).unwrap()
}

fn connected(event: &Event<ToyCommand>) -> EdgeId {
    match event {
        Event::Connected { edge, .. } => *edge,
        other => panic!("{other:?}"),
    }
}

/// The attack: many edges of one certificate send half of a frame of the greatest length. The bytes of all of them lay in
/// memory, and were counted nowhere.
#[tokio::test]
async fn half_frames_of_one_name_stay_within_the_inbox_and_hold_up_no_other_name() {
    const EDGES: usize = 40;
    let _turn = TURN.lock().await;
    let village = Village::new();
    let (mut home, address) = home(&village, Limits::default()).await;
    let other = issue(
        village.dir.join("authority"),
        village.dir.join("bert"),
        NodeRole::Member,
        "bert",
    )
    .unwrap();
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let mallory = HalfFrames::of(&village, &address, &mut home, EDGES).await;
    mallory.settled().await;

    let (bert, _receiver) = call(&address, &other).await.split();
    let edge = connected(&next(&mut home).await);
    for number in 0..100 {
        bert.try_send(bytes_of(&ack(number))).unwrap();
        let message = ack(number);
        assert_eq!(next(&mut home).await, Event::Received { edge, message });
    }
    // Also a frame of the greatest length, of which the home then finds that it is no message.
    bert.try_send(vec![0xff; FRAME_BYTES_MAX]).unwrap();
    assert_eq!(next(&mut home).await, Event::Disconnected { edge });
    mallory.settled().await;
    // Half of the inbox, the frame of the other one at both ends, and what each connection costs beside its frame.
    let most = INBOX_BYTES_MAX / 2 + 2 * FRAME_BYTES_MAX + EDGES * (256 << 10);
    let peak = PEAK.load(Ordering::Relaxed) - before;
    assert!(peak <= most, "{peak} bytes, {most} are the most");
    assert_eq!(home.handle.edges().len(), EDGES, "nobody was cut off");
}

/// A frame that does not go on ends its edge; what waited for its space comes through.
#[tokio::test]
async fn half_a_frame_does_not_hold_its_space_for_ever() {
    let _turn = TURN.lock().await;
    let village = Village::new();
    let limits = Limits {
        frame_progress_time_max: Duration::from_secs(2),
        ..Limits::default()
    };
    let (mut home, address) = home(&village, limits).await;
    // As many as the share of one name holds.
    let halves = INBOX_BYTES_MAX / 2 / FRAME_BYTES_MAX;
    let (sender, _receiver) = call(&address, &village.member).await.split();
    let edge = connected(&next(&mut home).await);
    let mallory = HalfFrames::of(&village, &address, &mut home, halves).await;
    mallory.settled().await;
    sender.try_send(bytes_of(&ack(1))).unwrap();
    // The first that is heard is the end of one of them: only then is there space for what waited.
    assert!(matches!(next(&mut home).await, Event::Disconnected { edge: ended } if ended != edge));
    let mut received = false;
    while !received {
        received = match next(&mut home).await {
            Event::Received { edge: from, .. } => from == edge,
            Event::Disconnected { edge: ended } => {
                assert_ne!(ended, edge);
                false
            }
            other => panic!("{other:?}"),
        };
    }
    drop(mallory);
}

/// A peer whose frame has to wait here is not taken for silent: it cannot send anything else.
#[tokio::test]
async fn an_edge_that_waits_for_space_is_alive() {
    let _turn = TURN.lock().await;
    let village = Village::new();
    let (mut home, address) = home(&village, Limits::default()).await;
    let (sender, _receiver) = call(&address, &village.member).await.split();
    let edge = connected(&next(&mut home).await);
    let halves = INBOX_BYTES_MAX / 2 / FRAME_BYTES_MAX;
    let mallory = HalfFrames::of(&village, &address, &mut home, halves).await;
    mallory.settled().await;
    while home.heard.try_recv().is_ok() {}
    sender.try_send(bytes_of(&ack(1))).unwrap();
    for _ in 0..3 {
        let sign = loop {
            match home.next().await {
                Event::Received { edge, message } => break (edge, message),
                Event::Tick => {}
                other => panic!("{other:?}"),
            }
        };
        // The halves show no life any more.
        assert_eq!(sign, (edge, Message::Alive));
    }
}
