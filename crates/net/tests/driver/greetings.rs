//! A peer is what its certificate says (rule R1); whoever greets as another node is turned away before the first frame.

use std::time::Duration;

use thorp_model::{MemberId, NameId, NodeKind, Peer};
use thorp_net::driver::{DriverConfig, ParentState, net_config};
use thorp_net::{Identity, Listener, NodeRole, dial, issue_with_site};

use crate::common::{Village, any};
use crate::toy::{self, child, parent, silent, start};

/// Calls a home with this certificate and greeting; the words with which it is turned away.
async fn turned_away(village: &Village, identity: &Identity, hello: &Peer) -> String {
    let (config, address) = parent(village).await;
    let home = start(config, silent());
    let bytes = postcard::to_allocvec(hello).unwrap();
    let (addresses, config) = ([address], net_config(hello.kind));
    let called = dial(&addresses, identity, Some("alps"), &bytes, &config).await;
    let words = called.unwrap_err().to_string();
    assert!(home.heard.try_recv().is_err(), "the home heard of it");
    assert!(home.handle.edges().is_empty());
    words
}

#[tokio::test]
async fn a_caller_is_let_in_as_what_its_certificate_says() {
    let village = Village::new();
    for (role, name) in [
        (NodeRole::Member, "bert"),
        (NodeRole::Operator, "olga"),
        (NodeRole::Site, "valley"),
        (NodeRole::Home, "dale"),
    ] {
        let identity = village.node(role, name);
        let (config, address) = parent(&village).await;
        let mut home = start(config, silent());
        let hello = identity.greeting(9);
        let bytes = postcard::to_allocvec(&hello).unwrap();
        let config = net_config(hello.kind);
        let _edge = dial(&[address], &identity, None, &bytes, &config).await;
        match home.next().await {
            toy::ToyEvent::Connected { peer, .. } => assert_eq!(peer, hello),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn only_the_certificate_says_whether_a_member_carries_a_site() {
    let village = Village::new();
    let dir = village.dir.join("carrier");
    let (_, carried) = issue_with_site(village.dir.join("authority"), &dir, "bert").unwrap();
    let dedicated = village.node(NodeRole::Site, "valley");
    for (identity, is_carried) in [(&carried, true), (&dedicated, false)] {
        let (config, address) = parent(&village).await;
        let mut home = start(config, silent());
        let honest = identity.greeting(9);
        assert_eq!(honest.is_carried, is_carried);
        let hello = Peer {
            is_carried: !is_carried,
            ..honest.clone()
        };
        let bytes = postcard::to_allocvec(&hello).unwrap();
        let config = net_config(hello.kind);
        let _edge = dial(&[address], identity, None, &bytes, &config).await;
        match home.next().await {
            toy::ToyEvent::Connected { peer, .. } => assert_eq!(peer, honest),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_member_greets_neither_as_site_nor_as_home_nor_as_operator() {
    let village = Village::new();
    let honest = village.member.greeting(9);
    for (kind, noun) in [(NodeKind::Redirector, "site"), (NodeKind::Home, "home")] {
        let hello = Peer {
            kind,
            ..honest.clone()
        };
        let words = turned_away(&village, &village.member, &hello).await;
        let what = format!("the greeting is that of a {noun}, the certificate that of member anna");
        assert!(words.contains(&what), "{words}");
        assert!(words.contains("thorp invite NAME --role ROLE"), "{words}");
    }
    // Nor with the first bytes of a site before the hello of a member.
    let (config, address) = parent(&village).await;
    let _home = start(config, silent());
    let bytes = postcard::to_allocvec(&honest).unwrap();
    let config = net_config(NodeKind::Redirector);
    let called = dial(&[address], &village.member, None, &bytes, &config).await;
    let words = called.unwrap_err().to_string();
    assert!(words.contains("greeting is that of a site"), "{words}");
    let hello = Peer {
        is_operator: true,
        ..honest
    };
    let words = turned_away(&village, &village.member, &hello).await;
    assert!(words.contains("--role operator"), "{words}");
    let operator = village.node(NodeRole::Operator, "olga");
    let hello = Peer {
        is_operator: false,
        ..operator.greeting(9)
    };
    let words = turned_away(&village, &operator, &hello).await;
    assert!(words.contains("greet as an operator"), "{words}");
}

#[tokio::test]
async fn a_site_does_not_greet_as_a_member() {
    let village = Village::new();
    let site = village.node(NodeRole::Site, "valley");
    let hello = Peer {
        kind: NodeKind::Member,
        ..site.greeting(9)
    };
    let words = turned_away(&village, &site, &hello).await;
    assert!(words.contains("certificate that of site valley"), "{words}");
}

#[tokio::test]
async fn another_name_and_the_process_id_of_another_name_are_turned_away() {
    let village = Village::new();
    let honest = village.member.greeting(9);
    let named = Peer {
        name: "bert".to_owned(),
        ..honest.clone()
    };
    let words = turned_away(&village, &village.member, &named).await;
    assert!(
        words.contains("names \"bert\", the certificate is that of member anna"),
        "{words}"
    );
    for node in [MemberId::new(NameId::of("bert"), 9), MemberId(9)] {
        let hello = Peer {
            node,
            ..honest.clone()
        };
        let words = turned_away(&village, &village.member, &hello).await;
        assert!(
            words.contains("process id is of another name than that of member anna"),
            "{words}"
        );
    }
}

/// A node that listens with this certificate and greeting; why a child does not take it for its parent.
async fn not_taken(village: &Village, identity: &Identity, hello: Peer) -> String {
    let listener = Listener::bind(&any(), identity, net_config(hello.kind)).await;
    let listener = listener.unwrap();
    let address = listener.address().clone();
    let mut config = DriverConfig::new(identity.clone(), hello);
    config.listeners.push(listener);
    let _parent = start(config, silent());
    let mut config = child(village, &address);
    config.parents[0].expect_name = None;
    let member = start(config, silent());
    loop {
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(member.heard.try_recv().is_err(), "the child heard of it");
        if let ParentState::Lost { why, .. } = &member.handle.parents()[0].state {
            return why.clone();
        }
    }
}

#[tokio::test]
async fn a_child_takes_only_homes_and_sites_for_its_parent() {
    let village = Village::new();
    for role in [NodeRole::Member, NodeRole::Operator] {
        let node = village.node(role, &format!("some-{role}"));
        let why = not_taken(&village, &node, node.greeting(9)).await;
        assert!(why.contains("only homes and sites are parents"), "{why}");
        for kind in [NodeKind::Home, NodeKind::Redirector] {
            let hello = Peer {
                kind,
                ..node.greeting(9)
            };
            let why = not_taken(&village, &node, hello).await;
            assert!(
                why.contains(&format!("certificate that of {role}")),
                "{why}"
            );
        }
    }
    let site = village.node(NodeRole::Site, "valley");
    let hello = Peer {
        node: MemberId::new(NameId::of("alps"), 9),
        ..site.greeting(9)
    };
    let why = not_taken(&village, &site, hello).await;
    assert!(why.contains("process id"), "{why}");
}
