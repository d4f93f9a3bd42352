//! A home on a volume of its own fills it up to what it keeps back, answers everything that frees room, and takes commits again.

use crate::common::thorp;
use crate::shop::Shop;
use crate::volume::{Lowest, Volume};
use crate::{home_for_one_name, join};
use std::fs;
use std::time::Duration;
use thorp_client::{Error, ErrorKind, JoinConfig, Member, Session};

#[test]
fn on_24_mib() {
    fills_and_is_emptied(24);
}

#[test]
fn on_48_mib() {
    fills_and_is_emptied(48);
}

#[test]
fn on_64_mib() {
    fills_and_is_emptied(64);
}

#[test]
fn on_96_mib() {
    fills_and_is_emptied(96);
}

#[test]
fn on_300_mib() {
    fills_and_is_emptied(300);
}

/// How long an outcome is waited for that does not come.
const SHORT: Duration = Duration::from_secs(3);

/// How often it is filled and emptied without a restart.
const ROUNDS: usize = 2;

/// How often a home is filled until it says so. One that compacts meanwhile finds room again, and is well.
const FILLS_MAX: usize = 10;

/// Fills a home until it is full when it is asked: its last refusal, and what it says.
fn fill_until_told(shop: &mut Shop, member: &Member, http: &str) -> (Error, String) {
    let mut told = String::new();
    for _ in 0..FILLS_MAX {
        let refused = shop.fill_until_refused(member);
        let status = thorp().run(&["status", http]);
        if status.code == 3 {
            return (refused, status.out);
        }
        told = status.out + &status.err;
    }
    panic!("it refuses, and says: {told}")
}

fn fills_and_is_emptied(mib: u64) {
    let Some(volume) = Volume::mount(&format!("{mib}m")) else {
        return;
    };
    let lowest = Lowest::watch(volume.path());
    let home = home_for_one_name(volume.path(), &[]);
    home.out(&[
        "put",
        "thorp://alps/notes",
        "--root",
        "greeting",
        "--text",
        "hello",
    ]);
    let member = join(&home, "writer");
    for round in 0..ROUNDS {
        let mut shop = Shop::open(&member);
        let (refused, told) = fill_until_told(&mut shop, &member, &home.http);
        assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
        let words = refused.to_string();
        assert!(
            words.contains("are free on its volume") && words.contains("are needed"),
            "{words}"
        );
        assert!(!refused.advice().contains("--limit-bytes"), "{refused:?}");
        println!(
            "{mib} MiB, round {round}: {} objects, then {words}",
            shop.objects.len()
        );
        assert!(told.contains("FULL: "), "{told}");
        let at = ["--via", &home.via, "--identity", &home.identity];
        let run = |command: &[&str]| {
            let said = thorp().run(&[command, &at].concat());
            assert_eq!(
                said.code, 0,
                "{mib} MiB, {command:?}: {}{}",
                said.out, said.err
            );
            said.out
        };
        assert!(run(&["ls"]).contains("thorp://alps/shop"));
        let told = run(&["get", "thorp://alps/notes", "--root", "greeting"]);
        assert_eq!(told.trim(), "hello");
        shop.assert_whole(&home, &member);
        shop.delete_some(&member, 40);
        shop.assert_whole(&home, &member);
        run(&["rm", "thorp://alps/shop"]);
        let mut shop = Shop::open(&member);
        shop.eventually_takes_more(&member);
        shop.assert_whole(&home, &member);
        run(&["rm", "thorp://alps/shop"]);
    }
    drop(member);
    let log = home.process.log();
    let times = |words: &str| log.iter().filter(|line| line.contains(words)).count();
    let (full, room) = (
        times("the store is full"),
        times("the store has room again"),
    );
    assert!(
        (ROUNDS..=2 * ROUNDS).contains(&full),
        "{full} times full: {log:?}"
    );
    assert!(
        room == full || room + 1 == full,
        "{room} times room, {full} times full"
    );
    home.process.terminate();
    let store = volume.path().join("home/store");
    let checked = thorp().run(&["check", store.to_str().unwrap()]);
    assert_eq!(checked.code, 0, "{}{}", checked.out, checked.err);
    let lowest = lowest.bytes();
    println!("{mib} MiB: {lowest} bytes were free at the lowest");
    assert!(lowest > 0, "the volume was full");
}

#[test]
fn a_value_that_cannot_fit_is_refused_before_it_fills_the_volume() {
    let Some(volume) = Volume::mount("64m") else {
        return;
    };
    let home = home_for_one_name(volume.path(), &[]);
    let member = join(&home, "writer");
    let mut shop = Shop::open(&member);
    shop.fill(&member, 5);
    let films = tempfile::tempdir().unwrap();
    let film = films.path().join("film");
    fs::File::create(&film).unwrap().set_len(100 << 20).unwrap();
    let before = volume.used();
    let put = ["put", "thorp://alps/films", film.to_str().unwrap()];
    let at = ["--via", &home.via, "--identity", &home.identity];
    let said = thorp().run(&[&put[..], &["--root", "film"], &at].concat());
    assert_ne!(said.code, 0, "{}", said.out);
    let sizes = said.err.contains("are free on its volume") && said.err.contains("are needed");
    assert!(sizes, "{}", said.err);
    let taken = volume.used().saturating_sub(before);
    assert!(taken < 4 << 20, "it took {taken} bytes");
    // Nobody else finds it full.
    shop.fill(&member, 5);
    let told = thorp().run(&["status", &home.http]);
    assert_eq!(told.code, 0, "{}{}", told.out, told.err);
    assert!(
        !home
            .process
            .log()
            .iter()
            .any(|line| line.contains("the store is full"))
    );
}

#[test]
fn a_new_home_refuses_a_volume_that_is_too_small() {
    let Some(volume) = Volume::mount("16m") else {
        return;
    };
    let dir = volume.path().join("home");
    let refused = thorp().run(&[
        "home",
        "--dir",
        dir.to_str().unwrap(),
        "--name",
        "alps",
        "--listen",
        "127.0.0.1:0",
    ]);
    assert_eq!(refused.code, 1, "{}{}", refused.out, refused.err);
    let sizes = refused.err.contains("has 16.0 MiB") && refused.err.contains("needs 24.0 MiB");
    assert!(sizes && refused.err.contains("--dir"), "{}", refused.err);
    assert!(!dir.exists(), "a refused first start leaves nothing behind");
}

#[test]
fn a_home_whose_volume_has_become_too_small_serves_reads_and_removals() {
    let Some(volume) = Volume::mount("48m") else {
        return;
    };
    let home = home_for_one_name(volume.path(), &[]);
    let member = join(&home, "writer");
    let mut shop = Shop::open(&member);
    shop.fill(&member, 40);
    drop(member);
    home.process.terminate();
    volume.resize(volume.used() + (1 << 20));
    let home = home_for_one_name(volume.path(), &[]);
    let log = home.process.log();
    let warned = log
        .iter()
        .any(|line| line.contains("this home needs 24.0 MiB"));
    assert!(warned, "{log:?}");
    let member = join(&home, "writer");
    let mut shop = shop.again(&member);
    let refused = shop.add(&member).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
    shop.assert_whole(&home, &member);
    shop.delete_some(&member, 40);
    shop.assert_whole(&home, &member);
    home.out(&["rm", "thorp://alps/shop"]);
    home.out(&["ls"]);
    // With room it goes on as before.
    volume.resize(48 << 20);
    Shop::open(&member).eventually_takes_more(&member);
}

#[test]
fn a_volume_that_another_program_fills_to_the_last_byte_stops_no_reads() {
    let Some(volume) = Volume::mount("64m") else {
        return;
    };
    let home = home_for_one_name(volume.path(), &[]);
    let session = Session::new().commit_timeout(SHORT);
    let config = JoinConfig::new(&home.via).identity(&home.identity);
    let member = Member::join(config.name("writer").session(session)).unwrap();
    let mut shop = Shop::open(&member);
    shop.fill(&member, 40);
    let filler = volume.fill_up_to(0);
    // The home had taken one before it knew, and cannot record now that it was lost.
    let refused = shop.fill_until_refused(&member);
    let is_unknown = matches!(refused.kind(), ErrorKind::OutcomeUnknown(_));
    assert!(is_unknown || refused.kind() == ErrorKind::Full, "{refused}");
    let refused = shop.fill_until_refused(&member);
    assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
    shop.assert_whole(&home, &member);
    home.out(&["ls"]);
    fs::remove_file(filler).unwrap();
    shop.eventually_takes_more(&member);
    shop.assert_whole(&home, &member);
}
