//! What a member records of what it uses.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

use thorp_client::{JoinConfig, Member};
use thorp_testing::HomeNode;

#[test]
fn each_transaction_leaves_the_pages_that_it_read_and_wrote() {
    let village = HomeNode::new();
    let path = village.path("trace.csv");
    let join = |name: &str| {
        let config = JoinConfig::new(village.address().to_string())
            .identity_of(village.identity())
            .name(name)
            .record_trace(&path);
        Member::join(config).unwrap()
    };
    let anna = join("anna");
    let shop = anna.open_or_create("thorp://alps/shop").unwrap();
    let note = anna.transact(|tx| tx.create(&shop, b"one")).unwrap();
    drop((shop, anna));
    let bert = join("bert");
    let read = bert.transact(|tx| tx.read(&note).map(<[u8]>::to_vec));
    assert_eq!(read.unwrap(), b"one");
    assert_eq!(bert.stats().not_recorded, 0);
    drop(bert);

    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let uses = |client: &str, op: &str| -> Vec<&str> {
        let those = lines
            .iter()
            .filter(|line| line[1] == client && line[2] == op);
        those.map(|line| line[3]).collect()
    };
    let written = uses("anna", "write");
    let page = uses("bert", "read");
    assert_eq!(page.len(), 1, "{text}");
    assert!(written.contains(&page[0]), "{text}");
    assert!(uses("bert", "write").is_empty(), "{text}");
}

#[test]
fn a_trace_that_cannot_be_written_is_told_when_joining() {
    let village = HomeNode::new();
    let config = JoinConfig::new(village.address().to_string())
        .identity_of(village.identity())
        .record_trace(village.path("no/such/directory/trace.csv"));
    let refused = Member::join(config).unwrap_err().to_string();
    assert!(
        refused.contains("no trace can be recorded") && refused.contains("trace.csv"),
        "{refused}"
    );
}
