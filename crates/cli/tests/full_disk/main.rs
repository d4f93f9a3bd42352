//! A home without room takes no commits and says why, goes on serving reads, and takes commits again when there is room.
//!
//! The volume needs root; without root that test skips (see [`skip`]).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

#[path = "../common/mod.rs"]
mod common;
mod shop;
mod small_volumes;
mod volume;

use common::thorp;
use shop::Shop;
use std::fs;
use std::path::Path;
use thorp_client::{ErrorKind, JoinConfig, Member};
use thorp_testing::{HomeProcess, PATIENCE};
use volume::Volume;

#[test]
fn a_full_volume_stops_commits_and_no_reads() {
    let Some(volume) = Volume::mount("256m") else {
        return;
    };
    let home = home_for_one_name(volume.path(), &[]);
    let member = join(&home, "writer");
    let mut shop = Shop::open(&member);
    shop.fill(&member, 5);
    // Another program takes nearly all that is left.
    let filler = volume.fill_up_to(60 << 20);
    let error = shop.fill_until_refused(&member);
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    assert!(error.to_string().contains("full"), "{error}");
    shop.assert_whole(&home, &member);
    shop.delete_one(&member);
    fs::remove_file(filler).unwrap();
    shop.eventually_takes_more(&member);
    shop.assert_whole(&home, &member);
}

#[test]
fn a_limit_stops_commits_and_no_reads() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_with_limit(dir.path(), "8 MiB");
    let member = join(&home, "writer");
    let mut shop = Shop::open(&member);
    let error = shop.fill_until_refused(&member);
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    shop.assert_whole(&home, &member);
    shop.delete_one(&member);
    let told = thorp().run(&["status", &home.http]);
    assert_eq!(told.code, 3, "{}{}", told.out, told.err);
    assert!(told.out.contains("no room"), "{}", told.out);
    // It stays full for who starts it again as it was, and takes commits for who gives it more.
    drop(home);
    let home = home_with_limit(dir.path(), "8 MiB");
    let refused = shop.fill_until_refused(&member);
    assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
    shop.assert_whole(&home, &member);
    drop(home);
    let home = home_with_limit(dir.path(), "64 MiB");
    shop.eventually_takes_more(&member);
    shop.assert_whole(&home, &member);
}

fn home_with_limit(dir: &Path, limit: &str) -> HomeProcess {
    home_for_one_name(dir, &["--limit-bytes", limit])
}

/// A home that one name may fill (rule R7).
fn home_for_one_name(dir: &Path, flags: &[&str]) -> HomeProcess {
    let file = dir.join("one-name.toml");
    fs::write(&file, "[shares]\nstore_percent_max = 100\n").unwrap();
    let config = ["--config", file.to_str().unwrap()];
    thorp().home_with(dir, &[&config, flags].concat())
}

fn join(home: &HomeProcess, name: &str) -> Member {
    let config = JoinConfig::new(&home.via).identity(&home.identity);
    Member::join(config.name(name).join_timeout(PATIENCE)).unwrap()
}
