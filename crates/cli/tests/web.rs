//! `thorp web` as an operator runs it: set-up, two proxies, keepers that are killed.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;
#[path = "web/requests.rs"]
mod requests;

use common::shop::Shop;
use std::fs;
use thorp_testing::{eventually, finish, signal};

#[test]
fn keepers_and_proxies_come_and_go_and_no_answer_is_old() {
    let Some(shop) = Shop::open() else {
        return;
    };
    let check = shop.web("check --recipe shop.toml");
    assert_eq!(check.code, 3, "{}{}", check.out, check.err);
    assert!(check.out.contains("problem publication"), "{}", check.out);
    let set_up = shop.web("setup --recipe shop.toml --apply");
    assert_eq!(set_up.code, 0, "{}{}", set_up.out, set_up.err);
    let first = shop.proxy();
    first.until_hit();
    let keeper = shop.keeper();
    // A second proxy reads the same table.
    let second = shop.proxy();
    second.until_hit();
    assert_eq!(shop.keeper(), keeper);
    shop.database.sql("UPDATE item SET price = 101");
    for proxy in [&first, &second] {
        assert_eq!(proxy.get(), (String::from("101"), false));
        proxy.until_hit();
    }
    // The keeper is killed. One of the proxies starts the next one, and the update is seen.
    signal("KILL", keeper);
    shop.database.sql("UPDATE item SET price = 102");
    for proxy in [&first, &second] {
        assert_eq!(proxy.get().0, "102");
        proxy.until_hit();
    }
    assert_ne!(shop.keeper(), keeper);
    // Both proxies are killed: the keeper beside one of them ends in order, and nobody is waited for.
    for proxy in [&first, &second] {
        signal("KILL", proxy.process.id());
    }
    eventually("no commit waits", || shop.names().is_empty());
    shop.database.sql("UPDATE item SET price = 103");
    let third = shop.proxy();
    third.until_hit();
    assert_eq!(third.get().0, "103");
    assert_eq!(shop.names(), "FIRST 1 (thorp)");
    shop.keeper();
    let status = shop.web("status");
    assert!(status.out.contains("live, coherent"), "{}", status.out);
    let refused = shop.web("setup --undo --apply");
    assert_eq!(refused.code, 1);
    assert!(
        refused.err.contains("Stop all proxies first"),
        "{}",
        refused.err
    );
    assert_eq!(third.process.terminate(), 0);
    assert_eq!(shop.names(), "");
    let undone = shop.web("setup --undo --apply");
    assert_eq!(undone.code, 0, "{}{}", undone.out, undone.err);
    assert_eq!(
        shop.database
            .sql("SELECT count(*) FROM pg_replication_slots"),
        "0"
    );
}

#[test]
fn who_cannot_be_a_keeper_is_told_why() {
    let Some(shop) = Shop::open() else {
        return;
    };
    fs::write(shop.user.path("shop.table"), "somebody's notes").unwrap();
    let said = shop.web("keeper --recipe shop.toml --table shop.table");
    assert_eq!(said.code, 2);
    assert!(said.err.contains("delete the file"), "{}", said.err);
    let said = shop.web("status");
    assert_eq!(said.code, 5);
    assert!(
        said.err
            .contains("the same --postgres or --requests as the keeper"),
        "{}",
        said.err
    );
    let nowhere = "thorp web check --recipe shop.toml --postgres 'host=/nowhere user=a'";
    let said = finish(shop.user.shell(nowhere));
    assert_eq!(said.code, 4, "{}", said.err);
    let line = "setup --name thorp --role 'a\"b'";
    assert_eq!(shop.web(line).code, 2);
}
