//! Edges come, go, are cut off and come back.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use thorp_model::{Action, Direction, EdgeId, Event, Message, NodeKind, Note, Up, codec, message};
use thorp_net::driver::{Handle, ParentState, net_config};
use thorp_net::{BACKOFF_MIN, Config, LinkDelay, dial};

use crate::common::Village;
use crate::toy::{
    self, ToyEvent, ToyOutbox, ack, begin_of, child, heartbeat, parent, parent_at, silent, start,
};

/// Answers every acknowledgement.
fn echo() -> toy::Act {
    Box::new(|_, input, outbox| {
        if let Event::Received {
            edge,
            message: Message::Up(Up::Ack(message::Ack { position, .. })),
        } = input
        {
            let answer = heartbeat(position.0);
            outbox.actions.push(Action::Send(*edge, answer));
        }
    })
}

/// Says hello up.
fn greets() -> toy::Act {
    Box::new(|_, input, outbox| {
        if let Event::Connected { edge, .. } = input {
            outbox.actions.push(Action::Send(*edge, ack(5)));
        }
    })
}

fn connected(input: &ToyEvent) -> EdgeId {
    match input {
        Event::Connected { edge, .. } => *edge,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn both_ends_hear_who_is_there_and_messages_cross() {
    let village = Village::new();
    let (config, address) = parent(&village).await;
    let mut home = start(config, echo());
    let mut member = start(child(&village, &address), greets());
    let Event::Connected {
        edge,
        direction: Direction::Down,
        peer: who,
    } = home.next().await
    else {
        panic!("no child came");
    };
    assert_eq!(who, village.member.greeting(7));
    let message = ack(5);
    assert_eq!(home.next().await, Event::Received { edge, message });
    let up = connected(&member.next().await);
    let message = heartbeat(5);
    assert_eq!(member.next().await, Event::Received { edge: up, message });

    let seen = &member.handle.edges()[0];
    assert_eq!(
        (seen.direction, &seen.peer.name[..]),
        (Direction::Up, "alps")
    );
    assert_eq!(seen.traffic.frames_sent, 1);
    assert_eq!(seen.traffic, member.handle.totals().up);
    assert_eq!(seen.queued.frames, 0);
    let parents = member.handle.parents();
    assert_eq!(parents[0].state, ParentState::Connected(up));
    assert_eq!(
        &home.handle.edges()[0].certified,
        village.member.certified()
    );
}

#[tokio::test]
async fn a_lost_parent_is_dialed_again_and_the_edge_is_a_new_one() {
    let village = Village::new();
    let address = village.unix();
    let (config, _) = parent_at(&village, &address).await;
    let home = start(config, silent());
    let mut member = start(child(&village, &address), silent());
    let first = connected(&member.next().await);
    home.task.abort();
    assert_eq!(member.next().await, Event::Disconnected { edge: first });
    assert!(home.task.await.unwrap_err().is_cancelled());
    while !matches!(member.handle.parents()[0].state, ParentState::Lost { .. }) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (config, _) = parent_at(&village, &address).await;
    let _home = start(config, silent());
    let second = connected(&member.next().await);
    assert!(second > first);
}

#[tokio::test]
async fn a_parent_on_demand_is_dialed_when_it_is_wanted_and_not_before() {
    let village = Village::new();
    let address = village.unix();
    let state = |toy: &toy::Running| toy.handle.parents()[0].state.clone();
    let (config, _) = parent_at(&village, &address).await;
    let home = start(config, silent());
    let mut config = child(&village, &address);
    config.parents[0].on_demand = true;
    let mut member = start(config, silent());
    // Longer than a dialer that wanted nothing but to dial would have waited.
    tokio::time::sleep(4 * BACKOFF_MIN).await;
    assert_eq!(state(&member), ParentState::Unwanted);
    member.handle.want_parents();
    let first = connected(&member.next().await);
    // A parent that is there stays, however often it is wanted.
    member.handle.want_parents();
    assert_eq!(state(&member), ParentState::Connected(first));

    home.task.abort();
    assert_eq!(member.next().await, Event::Disconnected { edge: first });
    assert!(home.task.await.unwrap_err().is_cancelled());
    // Wanted in vain, it is tried once for each time.
    while !matches!(state(&member), ParentState::Lost { .. }) {
        member.handle.want_parents();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (config, _) = parent_at(&village, &address).await;
    let _home = start(config, silent());
    member.handle.want_parents();
    assert!(connected(&member.next().await) > first);
}

#[tokio::test]
async fn a_parent_that_is_wanted_because_it_is_lost_is_dialed_again() {
    let village = Village::new();
    let (config, address) = parent(&village).await;
    let hangs_up: toy::Act = Box::new(|_, input, outbox| {
        if let Event::Connected { edge, .. } = input {
            outbox.actions.push(Action::Close(*edge, "not now"));
        }
    });
    let _home = start(config, hangs_up);
    let mut config = child(&village, &address);
    config.parents[0].on_demand = true;
    let handle = Arc::<OnceLock<Handle<toy::Toy>>>::default();
    let wanting = Arc::clone(&handle);
    let wants: toy::Act = Box::new(move |_, input, _| {
        if let Event::Disconnected { .. } = input {
            wanting.get().unwrap().want_parents();
        }
    });
    let mut member = start(config, wants);
    assert!(handle.set(member.handle.clone()).is_ok());
    member.handle.want_parents();
    // Each time it is wanted once, in the moment in which it is lost.
    for _ in 0..3 {
        let edge = connected(&member.next().await);
        assert_eq!(member.next().await, Event::Disconnected { edge });
    }
}

#[tokio::test]
async fn bytes_that_are_no_message_end_that_edge_and_nothing_else() {
    let village = Village::new();
    let (config, address) = parent(&village).await;
    let mut home = start(config, echo());
    let mut member = start(child(&village, &address), greets());
    let good = connected(&home.next().await);
    member.next().await;
    member.next().await;
    home.next().await;

    let hello = postcard::to_allocvec(&village.member.greeting(8)).unwrap();
    let config = net_config(NodeKind::Member);
    let addresses = [address.clone()];
    let mallory = dial(&addresses, &village.member, None, &hello, &config).await;
    let (sender, mut receiver) = mallory.unwrap().split();
    let bad = connected(&home.next().await);
    sender.try_send(vec![0xff; 50]).unwrap();
    assert_eq!(home.next().await, Event::Disconnected { edge: bad });
    assert!(matches!(receiver.recv().await, Ok(None) | Err(_)));
    assert_eq!(home.handle.notes().get(Note::ChildCutOff), 1);
    assert_eq!(home.handle.edges()[0].edge, good);
    assert_eq!(home.handle.edges().len(), 1);
}

#[tokio::test]
async fn a_hello_that_says_nothing_is_turned_away_with_a_reason() {
    let village = Village::new();
    let (config, address) = parent(&village).await;
    let _home = start(config, silent());
    let config = net_config(NodeKind::Member);
    let caller = dial(&[address], &village.member, None, b"?", &config).await;
    let words = caller.unwrap_err().to_string();
    assert!(words.contains("does not say who calls"), "{words}");
}

#[tokio::test]
async fn another_version_is_told_to_whoever_looks() {
    let village = Village::new();
    let kind = NodeKind::Home;
    let config = Config {
        version: codec::PROTOCOL_VERSION + 1,
        ..net_config(kind)
    };
    let listener = thorp_net::Listener::bind(&crate::common::any(), &village.home, config).await;
    let listener = listener.unwrap();
    let member = start(child(&village, listener.address()), silent());
    loop {
        tokio::time::sleep(Duration::from_millis(1)).await;
        if let ParentState::Lost { why, .. } = &member.handle.parents()[0].state {
            assert!(why.contains("upgrade this program"), "{why}");
            return;
        }
    }
}

#[tokio::test]
async fn a_child_that_does_not_read_is_cut_off_and_the_others_are_served() {
    let village = Village::new();
    let kind = NodeKind::Home;
    let mut net = net_config(kind);
    net.limits.queue_frames_max = 100;
    let listener = thorp_net::Listener::bind(&crate::common::any(), &village.home, net).await;
    let listener = listener.unwrap();
    let address = listener.address().clone();
    let mut config =
        thorp_net::driver::DriverConfig::new(village.home.clone(), village.home.greeting(7));
    config.listeners.push(listener);
    // An acknowledgement asks for so many answers: more than its queue holds are sent in one turn.
    let mut home = start(
        config,
        Box::new(|_, input, outbox| {
            if let Event::Received {
                edge,
                message: Message::Up(Up::Ack(message::Ack { position, .. })),
            } = input
            {
                for number in 0..position.0 {
                    let answer = heartbeat(number);
                    outbox.actions.push(Action::Send(*edge, answer));
                }
            }
        }),
    );
    let mut good = start(child(&village, &address), greets());
    good.next().await;
    let first = connected(&home.next().await);
    home.next().await;
    for _ in 0..5 {
        good.next().await;
    }
    let greedy = Box::new(|_, input: &ToyEvent, outbox: &mut ToyOutbox| {
        if let Event::Connected { edge, .. } = input {
            outbox.actions.push(Action::Send(*edge, ack(1_000)));
        }
    });
    let _greedy = start(child(&village, &address), greedy);
    let second = connected(&home.next().await);
    home.next().await;
    assert_eq!(home.next().await, Event::Disconnected { edge: second });
    assert!(home.handle.notes().get(Note::ChildCutOff) >= 1);
    assert!(home.handle.edges().iter().any(|edge| edge.edge == first));
}

#[tokio::test]
async fn what_a_core_closes_is_closed_after_what_it_said() {
    let village = Village::new();
    let (config, address) = parent(&village).await;
    let mut home = start(
        config,
        Box::new(|_, input, outbox| {
            if let Event::Connected { edge, .. } = input {
                outbox.actions.push(Action::Send(*edge, heartbeat(9)));
                outbox.close(*edge, "a test");
                outbox.actions.push(Action::Send(*edge, heartbeat(10)));
            }
        }),
    );
    let mut member = start(child(&village, &address), silent());
    let edge = connected(&home.next().await);
    assert_eq!(home.next().await, Event::Disconnected { edge });
    let edge = connected(&member.next().await);
    let message = heartbeat(9);
    assert_eq!(member.next().await, Event::Received { edge, message });
    assert_eq!(member.next().await, Event::Disconnected { edge });
}

#[tokio::test]
async fn a_wide_area_link_is_played_for_one_child_by_name() {
    let village = Village::new();
    let (mut config, address) = parent(&village).await;
    let delay = LinkDelay::new(Duration::from_millis(40));
    config.child_delays.insert("anna".to_owned(), delay);
    let _home = start(config, echo());
    let mut config = child(&village, &address);
    config.parents[0].delay = delay;
    // The clock starts where the greeting does: this task may hear of it late.
    let greeted = Arc::new(OnceLock::new());
    let mut greet = greets();
    let begin = Arc::clone(&greeted);
    let greets_at = Box::new(move |now, input: &ToyEvent, outbox: &mut ToyOutbox| {
        if let Event::Connected { .. } = input {
            begin.get_or_init(Instant::now);
        }
        greet(now, input, outbox);
    });
    let mut member = start(config, greets_at);
    connected(&member.next().await);
    assert!(matches!(member.next().await, Event::Received { .. }));
    let took = greeted.get().expect("greeted").elapsed();
    assert!(took >= 2 * delay.one_way, "{took:?}");
}

/// Hangs up on each child, after it has begun a stream or without that.
fn hangs_up(begins: bool) -> toy::Act {
    Box::new(move |_, input, outbox| {
        if let Event::Connected { edge, .. } = input {
            if begins {
                outbox.actions.push(Action::Send(*edge, begin_of(1)));
            }
            outbox.close(*edge, "a test");
        }
    })
}

/// When a child began, and when each of so many calls of it was heard of.
async fn calls(begins: bool, count: usize, act: toy::Act) -> Vec<Instant> {
    let village = Village::new();
    let (config, address) = parent(&village).await;
    let mut home = start(config, hangs_up(begins));
    let mut calls = vec![Instant::now()];
    let _member = start(child(&village, &address), act);
    for _ in 0..count {
        connected(&home.next().await);
        calls.push(Instant::now());
        home.next().await;
    }
    calls
}

#[tokio::test]
async fn a_parent_that_had_begun_is_dialed_again_without_a_growing_wait() {
    // The shortest that the sixth wait can be, had the waits grown.
    let sixth = BACKOFF_MIN * 32 / 2;
    let calls = calls(true, 8, silent()).await;
    let waits = calls.windows(2).map(|pair| pair[1] - pair[0]);
    let waits: Vec<Duration> = waits.collect();
    assert!(waits[6..].iter().any(|wait| *wait < sixth), "{waits:?}");
}

#[tokio::test]
async fn a_parent_that_hangs_up_or_is_turned_away_is_dialed_ever_more_rarely() {
    let turns_away: toy::Act = Box::new(|_, input, outbox| {
        if let Event::Received { edge, .. } = input {
            outbox.close(*edge, "a test");
        }
    });
    for (begins, act) in [(false, silent()), (true, turns_away)] {
        let calls = calls(begins, 5, act).await;
        // A call may be heard of late, and the next one not: what counts is how long all waits together were at least.
        for (call, steps) in calls[2..].iter().zip([1, 1 + 2, 1 + 2 + 4, 1 + 2 + 4 + 8]) {
            let waited = *call - calls[0];
            assert!(waited >= BACKOFF_MIN * steps / 2, "{begins} {calls:?}");
        }
    }
}
