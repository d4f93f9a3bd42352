//! What one certificate may have of a node, beside others (rule 15).

use thorp_model::{Event, NodeKind};
use thorp_net::driver::net_config;
use thorp_net::{Address, Connection, DialError, Identity, NodeRole, dial, issue};

use crate::common::Village;
use crate::toy::{parent, silent, start};

/// A node of another name.
fn another(village: &Village, name: &str) -> Identity {
    let authority = village.dir.join("authority");
    issue(authority, village.dir.join(name), NodeRole::Member, name).unwrap()
}

/// A member's connection, without a driver of its own.
async fn call(address: &Address, identity: &Identity) -> Result<Connection, DialError> {
    let hello = postcard::to_allocvec(&identity.greeting(7)).unwrap();
    let config = net_config(NodeKind::Member);
    dial(
        std::slice::from_ref(address),
        identity,
        None,
        &hello,
        &config,
    )
    .await
}

/// The attack: one certificate opens connections until it gets no more, and keeps them all. Then nobody else got in.
#[tokio::test]
async fn one_name_cannot_have_all_edges() {
    const EDGES_MAX: usize = 8;
    let village = Village::new();
    let (mut config, address) = parent(&village).await;
    config.limits.edges_max = EDGES_MAX;
    let mut home = start(config, silent());
    let mut mallory = Vec::new();
    let words = loop {
        match call(&address, &village.member).await {
            Ok(connection) => mallory.push(connection),
            Err(error) => break error.to_string(),
        }
    };
    let reason =
        "anna has 4 connections here, and one name may have no more than it leaves free of 8";
    assert!(words.contains(reason), "{words}");
    assert_eq!(mallory.len(), EDGES_MAX / 2);
    // Its oldest edges were not cut: each of them is there.
    for _ in 0..mallory.len() {
        assert!(matches!(home.next().await, Event::Connected { .. }));
    }
    assert_eq!(home.handle.edges().len(), mallory.len());

    let other = another(&village, "bert");
    let bert = call(&address, &other).await.unwrap();
    assert!(matches!(home.next().await, Event::Connected { .. }));
    // What a name gives back it may have again, as far as the other name leaves it free.
    for _ in 0..2 {
        drop(mallory.pop());
        assert!(matches!(home.next().await, Event::Disconnected { .. }));
    }
    mallory.push(call(&address, &village.member).await.unwrap());
    assert!(matches!(home.next().await, Event::Connected { .. }));
    assert_eq!(home.handle.edges().len(), mallory.len() + 1);
    drop(bert);
}
