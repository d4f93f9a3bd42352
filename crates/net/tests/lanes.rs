//! Further sockets of one connection, for frames that may overtake each other.
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, not their helpers"
)]

mod common;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Village, any, at_home, at_member};
use thorp_net::{
    Address, Config, Connection, Error, FrameReceiver, FrameSender, LANES, Listener, Role, dial,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How a socket is treated on its way down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Road {
    Open,
    /// What is on its way is held back.
    Held,
    Cut,
}

/// A road between caller and listener on which single sockets are held back or cut.
struct Roads {
    address: Address,
    roads: Arc<Mutex<Vec<watch::Sender<Road>>>>,
    task: JoinHandle<()>,
}

impl Roads {
    async fn to(listener: &Address) -> Self {
        let inner = listener.to_string().replace("tcp://", "");
        let outside = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = outside.local_addr().unwrap().to_string().parse().unwrap();
        let roads = Arc::new(Mutex::new(Vec::new()));
        let known = Arc::clone(&roads);
        let task = tokio::spawn(async move {
            while let Ok((caller, _)) = outside.accept().await {
                let listener = TcpStream::connect(&inner).await.unwrap();
                let (tell, road) = watch::channel(Road::Open);
                known.lock().unwrap().push(tell);
                tokio::spawn(carry(caller, listener, road));
            }
        });
        Self {
            address,
            roads,
            task,
        }
    }

    fn set(&self, socket: usize, road: Road) {
        self.roads.lock().unwrap()[socket].send(road).unwrap();
    }
}

impl Drop for Roads {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(mut caller: TcpStream, mut listener: TcpStream, mut road: watch::Receiver<Road>) {
    let (mut from_caller, mut to_caller) = caller.split();
    let (mut from_listener, mut to_listener) = listener.split();
    let mut is_cut = road.clone();
    let down = async {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from_listener.read(&mut bytes).await {
            road.wait_for(|road| *road != Road::Held).await.unwrap();
            to_caller.write_all(&bytes[..count]).await.unwrap();
        }
        to_caller.shutdown().await
    };
    tokio::select! {
        _ = async { tokio::join!(down, tokio::io::copy(&mut from_caller, &mut to_listener)) } => {}
        _ = is_cut.wait_for(|road| *road == Road::Cut) => {}
    }
}

/// A member and a home that is reached by roads.
async fn connected(village: &Village) -> (Connection, Connection, Roads, Listener) {
    let mut listener = Listener::bind(&any(), &village.home, at_home())
        .await
        .unwrap();
    let roads = Roads::to(listener.address()).await;
    let addresses = [roads.address.clone()];
    let config = at_member();
    let (dialed, accepted) = tokio::join!(
        dial(&addresses, &village.member, Some("alps"), b"anna", &config),
        async { listener.accept().await.unwrap().accept(b"alps").unwrap() }
    );
    (accepted, dialed.unwrap(), roads, listener)
}

async fn widened(village: &Village) -> ([(FrameSender, FrameReceiver); 2], Roads, Listener) {
    let (home, member, roads, listener) = connected(village).await;
    member.widen(&village.member, &at_member());
    let halves = [home.split(), member.split()];
    for (sender, _) in &halves {
        while sender.sockets() < LANES {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    (halves, roads, listener)
}

async fn next(receiver: &mut FrameReceiver) -> u8 {
    receiver.recv().await.unwrap().unwrap()[0]
}

#[tokio::test]
async fn what_may_overtake_is_not_held_back_by_another_socket() {
    let village = Village::new();
    let ([(home, _up), (_down, mut member)], roads, _listener) = widened(&village).await;
    // The stream, and one of the lanes.
    roads.set(0, Road::Held);
    roads.set(2, Road::Held);
    home.try_send(vec![100]).unwrap();
    home.try_send(vec![101]).unwrap();
    let count = 2 * LANES as u8;
    for page in 0..count {
        home.try_send_unordered(vec![page; 8 << 10]).unwrap();
    }
    let mut came = BTreeSet::new();
    for _ in 0..count / 2 {
        assert!(came.insert(next(&mut member).await));
    }
    assert!(came.iter().all(|frame| *frame < count), "{came:?}");
    roads.set(2, Road::Open);
    roads.set(0, Road::Open);
    let mut stream = Vec::new();
    while came.len() < usize::from(count) || stream.len() < 2 {
        match next(&mut member).await {
            page if page < count => assert!(came.insert(page)),
            ordered => stream.push(ordered),
        }
    }
    assert_eq!(stream, [100, 101]);
    let received = _down.traffic();
    assert_eq!(received.frames_received, u64::from(count) + 2);
    assert_eq!(home.traffic().bytes_sent, received.bytes_received);
    assert_eq!(home.queued().frames, 0);
}

#[tokio::test]
async fn a_lane_that_breaks_ends_the_connection_and_an_orderly_end_closes_all() {
    let village = Village::new();
    let ([(home, mut up), (down, mut member)], roads, _listener) = widened(&village).await;
    roads.set(3, Road::Cut);
    assert!(member.recv().await.is_err());
    drop((down, member));
    assert!(up.recv().await.is_err());
    drop(home);

    let ([(home, mut up), (down, mut member)], _roads, _listener) = widened(&village).await;
    home.try_send(vec![1]).unwrap();
    drop(home);
    assert_eq!(next(&mut member).await, 1);
    assert!(member.recv().await.unwrap().is_none());
    drop(down);
    assert!(up.recv().await.unwrap().is_none());
}

#[tokio::test]
async fn whoever_does_not_know_the_connection_is_turned_away() {
    let village = Village::new();
    let (home, member, roads, mut listener) = connected(&village).await;
    let lane = Config {
        role: Role(4),
        ..at_member()
    };
    let address = [roads.address.clone()];
    let strange = dial(&address, &village.member, None, &[7; 32], &lane);
    let refused = strange.await.unwrap_err();
    let (_, error) = &refused.attempts[0];
    assert!(
        matches!(error, Error::Rejected { reason } if reason.contains("no connection")),
        "{error}"
    );
    // Nobody hears of it at the listener, and nothing has changed.
    let heard = tokio::time::timeout(Duration::from_millis(20), listener.accept()).await;
    assert!(heard.is_err());
    assert_eq!(
        [home.split().0.sockets(), member.split().0.sockets()],
        [1, 1]
    );
}
