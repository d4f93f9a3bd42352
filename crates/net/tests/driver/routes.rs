//! Parents with several addresses (rule 13), and frames that take long.

use std::sync::Arc;
use std::time::Duration;

use thorp_model::{Down, EdgeId, Event, Message, Millis, Outbox, message};
use thorp_net::driver::{Driver, DriverConfig, ParentState, now};
use thorp_net::{Address, FRAME_SIGN_BYTES_MIN};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::common::{Village, greeting};
use crate::toy::{self, ToyEvent, ToyOutbox, begin_of, child, parent, silent, start};

fn connected(input: &ToyEvent) -> EdgeId {
    match input {
        Event::Connected { edge, .. } => *edge,
        other => panic!("{other:?}"),
    }
}

fn begins() -> toy::Act {
    Box::new(|_, input, outbox| {
        if let Event::Connected { edge, .. } = input {
            outbox
                .actions
                .push(thorp_model::Action::Send(*edge, begin_of(1)));
        }
    })
}

fn child_of_both(village: &Village, first: &Address, second: &Address) -> DriverConfig {
    let mut config = child(village, first);
    config.parents[0].addresses.push(second.clone());
    config
}

fn here(listener: &TcpListener) -> Address {
    let at = listener.local_addr().unwrap();
    Address::Tcp {
        host: at.ip().to_string(),
        port: at.port(),
    }
}

#[tokio::test]
async fn who_loses_a_parent_goes_to_the_other_and_stays_there() {
    let village = Village::new();
    let (config, first) = parent(&village).await;
    let one = start(config, begins());
    let (config, second) = parent(&village).await;
    let mut other = start(config, begins());
    let mut member = start(child_of_both(&village, &first, &second), silent());
    let edge = connected(&member.next().await);
    assert!(matches!(member.next().await, Event::Received { .. }));
    one.task.abort();
    assert_eq!(member.next().await, Event::Disconnected { edge });
    let edge = connected(&member.next().await);
    connected(&other.next().await);
    // The first one is back.
    let (config, _) = crate::toy::parent_at(&village, &first).await;
    let mut one = start(config, begins());
    assert!(matches!(member.next().await, Event::Received { .. }));
    assert_eq!(
        member.handle.parents()[0].state,
        ParentState::Connected(edge)
    );
    // Nobody has called there: its first caller is the one that loses the second.
    other.task.abort();
    assert_eq!(member.next().await, Event::Disconnected { edge });
    assert!(connected(&member.next().await) > edge);
    connected(&one.next().await);
    assert!(one.heard.try_recv().is_err());
}

#[tokio::test]
async fn an_address_where_nobody_speaks_does_not_hold_up_the_other() {
    let village = Village::new();
    // As where a program was stopped: the system takes connections, and nobody answers.
    let stopped = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (config, second) = parent(&village).await;
    let _other = start(config, silent());
    let mut config = child_of_both(&village, &here(&stopped), &second);
    // Longer than this test waits: the handshake that nobody answers is not what it waits for.
    config.net_limits.handshake_timeout = Duration::from_secs(3600);
    let mut member = start(config, silent());
    connected(&member.next().await);
}

/// Passes on what callers send; of what comes back, as many pieces as there are permits.
async fn slow_link(to: &Address, pieces: Arc<Semaphore>) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = here(&listener);
    let Address::Tcp { host, port } = to else {
        panic!("{to} is not of this kind");
    };
    let to = (host.clone(), *port);
    tokio::spawn(async move {
        let (near, _) = listener.accept().await.unwrap();
        let far = TcpStream::connect((to.0.as_str(), to.1)).await.unwrap();
        let (mut near_reads, mut near_writes) = near.into_split();
        let (mut far_reads, mut far_writes) = far.into_split();
        tokio::spawn(async move { tokio::io::copy(&mut near_reads, &mut far_writes).await });
        let mut piece = vec![0; PIECE];
        loop {
            pieces.acquire().await.unwrap().forget();
            let mut filled = 0;
            while filled < PIECE {
                let bytes = far_reads.read(&mut piece[filled..]).await.unwrap();
                near_writes
                    .write_all(&piece[filled..filled + bytes])
                    .await
                    .unwrap();
                filled += bytes;
                if bytes == 0 {
                    return;
                }
            }
        }
    });
    address
}

const PIECE: usize = 64 << 10;

/// Whether it hears that the neighbour is alive, before so many ticks.
async fn hears_before(member: &mut toy::Running, mut ticks: u32) -> bool {
    while ticks > 0 {
        match member.next().await {
            Event::Tick => ticks -= 1,
            Event::Received {
                message: Message::Alive,
                ..
            } => return true,
            other => panic!("{other:?}"),
        }
    }
    false
}

/// A toy that says nothing and has a tick every ten milliseconds.
fn start_ticking(config: DriverConfig) -> toy::Running {
    let (mut driver, handle) = Driver::new(config);
    let (mut machine, heard) = toy::toy(silent());
    machine.deadline = Some(Millis(now().mono.0));
    let task = tokio::spawn(async move {
        let ever = std::future::pending();
        let world = &mut thorp_net::driver::NoWorld;
        driver.run(&mut machine, world, Outbox::new(), ever).await;
    });
    toy::Running {
        handle,
        heard,
        task,
    }
}

#[tokio::test]
async fn a_frame_that_takes_long_is_a_sign_of_life_while_it_arrives() {
    let village = Village::new();
    let (config, address) = parent(&village).await;
    let long = |_, input: &ToyEvent, outbox: &mut ToyOutbox| {
        if let Event::Connected { edge, .. } = input {
            let mut begin = begin_of(1);
            if let Message::Down(Down::Begin(message::Begin { name, .. })) = &mut begin {
                *name = "long".repeat(10 * PIECE);
            }
            let sent = thorp_model::Action::Send(*edge, begin);
            outbox.actions.push(sent);
        }
    };
    let _home = start(config, Box::new(long));
    // The handshake and the beginning of the frame.
    let pieces = Arc::new(Semaphore::new(1));
    let link = slow_link(&address, Arc::clone(&pieces)).await;
    let mut member = start_ticking(child(&village, &link));
    while !matches!(member.next().await, Event::Connected { .. }) {}
    // What came with the handshake counts, too.
    while hears_before(&mut member, 20).await {}
    for _ in 0..5 {
        pieces.add_permits(1);
        assert!(hears_before(&mut member, 1_000).await);
        while hears_before(&mut member, 20).await {}
    }
    assert!(!hears_before(&mut member, 20).await, "nothing arrives");
    pieces.add_permits(1_000);
    loop {
        match member.next().await {
            Event::Received {
                message: Message::Down(Down::Begin(_)),
                ..
            } => break,
            Event::Tick | Event::Received { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(!hears_before(&mut member, 20).await, "it is complete");
}

#[tokio::test]
async fn a_frame_that_trickles_is_no_sign_of_life() {
    let village = Village::new();
    let (config, address) = parent(&village).await;
    let mut home = start_ticking(config);
    let mut child = village.raw(&address).await;
    let hello = postcard::to_allocvec(&village.member.greeting(7)).unwrap();
    let hello_bytes = [u8::try_from(hello.len()).unwrap(), 0];
    let member = 3;
    child
        .write_all(&greeting(member, hello_bytes))
        .await
        .unwrap();
    child.write_all(&hello).await.unwrap();
    while !matches!(home.next().await, Event::Connected { .. }) {}

    let frame_bytes = 2 * FRAME_SIGN_BYTES_MIN;
    let prefix = u32::try_from(frame_bytes).unwrap().to_le_bytes();
    child.write_all(&prefix).await.unwrap();
    for _ in 0..20 {
        child.write_all(&[0; 16]).await.unwrap();
        assert!(!hears_before(&mut home, 2).await);
    }
    // What trickled counts as soon as it is enough, and only then.
    let rest = FRAME_SIGN_BYTES_MIN - 20 * 16;
    child.write_all(&vec![0; rest - 1]).await.unwrap();
    assert!(!hears_before(&mut home, 20).await);
    child.write_all(&[0]).await.unwrap();
    assert!(hears_before(&mut home, 1_000).await);
    assert!(!hears_before(&mut home, 20).await);
}
