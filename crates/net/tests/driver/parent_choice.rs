//! Several parents in an order of preference: the first that answers, and back to it (rule 13).

use std::time::Duration;

use thorp_model::{Action, Event, Message};
use thorp_net::driver::{DriverConfig, ParentState};
use thorp_net::{ADDRESSES_MAX, Address, BACKOFF_MIN};

use crate::common::Village;
use crate::toy::{self, Act, begin_of, child, parent_at, silent, start};

/// A child that prefers the first.
fn prefers(village: &Village, addresses: &[&Address]) -> toy::Running {
    start(preferring(village, addresses), silent())
}

fn preferring(village: &Village, addresses: &[&Address]) -> DriverConfig {
    let mut config = child(village, addresses[0]);
    let addresses = addresses.iter().map(|address| (*address).clone());
    config.parents[0].addresses = addresses.collect();
    config.parents[0].heals_every = Some(BACKOFF_MIN);
    config
}

fn second(village: &Village) -> Address {
    match village.unix() {
        Address::Unix(path) => Address::Unix(path.with_file_name("second.sock")),
        tcp @ Address::Tcp { .. } => tcp,
    }
}

fn at(child: &toy::Running) -> String {
    child.handle.edges()[0].address.clone()
}

async fn parent(village: &Village, address: &Address) -> toy::Running {
    parent_that(village, address, silent()).await
}

async fn parent_that(village: &Village, address: &Address, act: Act) -> toy::Running {
    let (config, _) = parent_at(village, address).await;
    start(config, act)
}

/// Says this to whoever comes, and hangs up.
fn hangs_up(said: Option<Message>, why: &'static str) -> Act {
    Box::new(move |_, input, outbox| {
        if let Event::Connected { edge, .. } = input {
            let said = said.clone().map(|message| Action::Send(*edge, message));
            outbox.actions.extend(said);
            outbox.actions.push(Action::Close(*edge, why));
        }
    })
}

#[tokio::test]
async fn a_preferred_parent_is_turned_to_when_it_is_there_again() {
    let village = Village::new();
    let (site, neighbour) = (village.unix(), second(&village));
    let _carrier = parent(&village, &neighbour).await;
    let mut anna = prefers(&village, &[&site, &neighbour]);
    let Event::Connected { edge: first, .. } = anna.next().await else {
        panic!("the neighbour is there");
    };
    assert_eq!(at(&anna), neighbour.to_string());

    let dedicated = parent(&village, &site).await;
    // Never two at a time.
    assert_eq!(anna.next().await, Event::Disconnected { edge: first });
    let Event::Connected { edge: second, .. } = anna.next().await else {
        panic!("the site is there");
    };
    assert_eq!(at(&anna), site.to_string());
    let state = anna.handle.parents()[0].state.clone();
    assert_eq!(state, ParentState::Connected(second));

    dedicated.task.abort();
    assert_eq!(anna.next().await, Event::Disconnected { edge: second });
    assert!(matches!(anna.next().await, Event::Connected { .. }));
    assert_eq!(at(&anna), neighbour.to_string());
}

#[tokio::test]
async fn the_first_of_all_is_left_for_nobody() {
    let village = Village::new();
    let (site, neighbour) = (village.unix(), second(&village));
    let (_site, _carrier) = (
        parent(&village, &site).await,
        parent(&village, &neighbour).await,
    );
    let mut anna = prefers(&village, &[&site, &neighbour]);
    assert!(matches!(anna.next().await, Event::Connected { .. }));
    tokio::time::sleep(4 * BACKOFF_MIN).await;
    assert_eq!(at(&anna), site.to_string());
    assert!(anna.heard.try_recv().is_err());
}

#[tokio::test]
async fn who_does_not_answer_is_not_waited_for_alone() {
    let village = Village::new();
    // The system takes the call, and nobody ever says a word: a process that was stopped.
    let stopped = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stopped: Address = stopped.local_addr().unwrap().to_string().parse().unwrap();
    let neighbour = village.unix();
    let _carrier = parent(&village, &neighbour).await;
    let mut config = preferring(&village, &[&stopped, &neighbour]);
    // Longer than this test waits: the handshake that nobody answers is not what it waits for.
    config.net_limits.handshake_timeout = Duration::from_secs(3600);
    let mut anna = start(config, silent());
    assert!(matches!(anna.next().await, Event::Connected { .. }));
    assert_eq!(at(&anna), neighbour.to_string());
}

#[tokio::test]
async fn many_that_do_not_answer_are_not_waited_for_one_by_one() {
    let village = Village::new();
    let stopped = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stopped: Address = stopped.local_addr().unwrap().to_string().parse().unwrap();
    let neighbour = village.unix();
    let _carrier = parent(&village, &neighbour).await;
    let mut addresses = vec![&stopped; ADDRESSES_MAX - 1];
    addresses.push(&neighbour);
    let mut config = preferring(&village, &addresses);
    config.net_limits.handshake_timeout = Duration::from_secs(3600);
    // A second for each would be more than this test waits.
    config.parents[0].called_within = Duration::from_millis(100);
    let mut anna = start(config, silent());
    assert!(matches!(anna.next().await, Event::Connected { .. }));
    assert_eq!(at(&anna), neighbour.to_string());
}

#[tokio::test]
async fn what_nobody_answered_is_told_of_all() {
    let village = Village::new();
    let (site, neighbour) = (village.unix(), second(&village));
    let anna = prefers(&village, &[&site, &neighbour]);
    let why = loop {
        match anna.handle.parents().first().map(|parent| &parent.state) {
            Some(ParentState::Lost { why, .. }) => break why.clone(),
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    for address in [site, neighbour] {
        assert!(why.contains(&address.to_string()), "{why}");
    }
}

#[tokio::test]
async fn an_edge_that_the_core_closed_is_dialed_from_the_first_again() {
    let village = Village::new();
    let (site, neighbour) = (village.unix(), second(&village));
    let _carrier = parent(&village, &neighbour).await;
    let mut config = preferring(&village, &[&site, &neighbour]);
    config.parents[0].heals_every = Some(Duration::from_secs(3600));
    // What a machine does with a parent that is silent.
    let mut up = None;
    let mut anna = start(
        config,
        Box::new(move |_, input, outbox| match input {
            Event::Connected { edge, .. } => up = Some(*edge),
            Event::Tick => outbox
                .actions
                .extend(up.map(|up| Action::Close(up, "it is silent"))),
            _ => {}
        }),
    );
    assert!(matches!(anna.next().await, Event::Connected { .. }));
    let _site = parent(&village, &site).await;
    anna.handle.event(Event::Tick).unwrap();
    assert_eq!(anna.next().await, Event::Tick);
    assert!(matches!(anna.next().await, Event::Disconnected { .. }));
    assert!(matches!(anna.next().await, Event::Connected { .. }));
    assert_eq!(at(&anna), site.to_string());
}

#[tokio::test]
async fn a_preferred_parent_that_hangs_up_is_not_waited_for() {
    let village = Village::new();
    let (site, neighbour) = (village.unix(), second(&village));
    // As one that is full does.
    let full = hangs_up(None, "too many children");
    let _site = parent_that(&village, &site, full).await;
    let _carrier = parent(&village, &neighbour).await;
    let mut config = preferring(&village, &[&site, &neighbour]);
    config.parents[0].heals_every = Some(Duration::from_secs(3600));
    let mut anna = start(config, silent());
    assert!(matches!(anna.next().await, Event::Connected { .. }));
    assert!(matches!(anna.next().await, Event::Disconnected { .. }));
    assert!(matches!(anna.next().await, Event::Connected { .. }));
    assert_eq!(at(&anna), neighbour.to_string());
}

#[tokio::test]
async fn a_preferred_parent_that_begins_and_hangs_up_again_is_not_all_that_is_tried() {
    let village = Village::new();
    let (site, neighbour) = (village.unix(), second(&village));
    // As one does that cannot do with what this child says.
    let refuses = hangs_up(Some(begin_of(1)), "it says what no child says");
    let _site = parent_that(&village, &site, refuses).await;
    let _carrier = parent(&village, &neighbour).await;
    let mut config = preferring(&village, &[&site, &neighbour]);
    config.parents[0].heals_every = Some(Duration::from_secs(3600));
    let mut anna = start(config, silent());
    let mut edges = 0;
    while edges < 3 {
        let Event::Connected { .. } = anna.next().await else {
            continue;
        };
        // One that has ended already is no more among its edges.
        match anna.handle.edges().first() {
            Some(edge) if edge.address == neighbour.to_string() => break,
            _ => edges += 1,
        }
    }
    assert!((1..=2).contains(&edges), "{edges} edges in vain");
}
