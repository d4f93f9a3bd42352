use std::future::pending;

use thorp_core::home::records::{self, FORMAT_VERSION, HOME_KEY, HomeRecord};
use thorp_core::storage::{Batch, Engine, Mark, Reader, Table};

use super::*;
use crate::config::Bytes;

fn config(dir: &tempfile::TempDir) -> HomeConfigFile {
    let mut config = HomeConfigFile {
        name: Some("alps".to_owned()),
        data_dir: Some(dir.path().to_owned()),
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        http: None,
        ..HomeConfigFile::default()
    };
    config.store.room_probe_ms = 10;
    config.store.disk_reserve = Some(Bytes(0));
    config
}

/// What happens is seen within ten seconds.
async fn until(control: &HomeControl, is_so: impl Fn(&Status) -> bool) -> Status {
    for _ in 0..2_000 {
        let status = control.status().await;
        if is_so(&status) {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("not so: {:?}", control.status().await);
}

fn times(status: &Status) -> u64 {
    status.storage.as_ref().map_or(0, |s| s.opened.times)
}

#[tokio::test]
async fn a_broken_engine_is_opened_again_and_the_limit_that_was_set_stays() {
    let dir = tempfile::tempdir().unwrap();
    let server = HomeServer::start(config(&dir)).await.unwrap();
    let (control, breaker) = (server.control(), server.life.breaker());
    control.set_limit(Some(77 << 20));
    let running = tokio::spawn(server.run(pending()));
    until(&control, |status| status.health.ok).await;
    breaker();
    let status = until(&control, |status| times(status) == 2 && status.health.ok).await;
    let storage = status.storage.unwrap();
    assert_eq!(storage.limit_bytes, Some(77 << 20));
    let why = storage.opened.why.unwrap();
    assert!(why.contains("failed and must be reopened"), "{why}");
    running.abort();
}

#[tokio::test]
async fn a_home_that_is_halted_opens_again_on_the_same_store() {
    let dir = tempfile::tempdir().unwrap();
    let server = HomeServer::start(config(&dir)).await.unwrap();
    let control = server.control();
    let running = tokio::spawn(server.run(pending()));
    for life in 1..4 {
        until(&control, |status| times(status) == life && status.health.ok).await;
        control.handle().halt();
    }
    until(&control, |status| times(status) == 4 && status.health.ok).await;
    running.abort();
}

#[tokio::test]
async fn a_home_that_is_dropped_without_room_does_not_wait_for_any() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(&dir);
    config.store.limit = Some(Bytes(0));
    let server = HomeServer::start(config).await.unwrap();
    let control = server.control();
    let running = tokio::spawn(server.run(pending()));
    let full = until(&control, |status| !status.health.ok && times(status) == 1).await;
    assert!(full.health.reasons[0].contains("no room"), "{full:?}");
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn the_id_is_chosen_once_and_is_durable_before_the_home_ends() {
    let dir = tempfile::tempdir().unwrap();
    let server = HomeServer::start(config(&dir)).await.unwrap();
    let home = server.home();
    assert_ne!(home, HomeId(0));
    server.run(std::future::ready(())).await;
    let disk = Disk::open(&config(&dir)).unwrap();
    assert!(disk.get(Table::Meta, HOME_KEY).unwrap().is_some());
    assert_eq!(identity::of(&config(&dir), disk.store()).unwrap(), home);
}

#[tokio::test]
async fn records_of_version_1_are_taken_over_and_those_of_a_later_one_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let run_once = async || match HomeServer::start(config(&dir)).await {
        Ok(server) => {
            server.run(std::future::ready(())).await;
            true
        }
        Err(_) => false,
    };
    let read = |disk: &Disk| -> HomeRecord {
        let stored = disk.get(Table::Meta, HOME_KEY).unwrap().unwrap();
        records::decode(Table::Meta, HOME_KEY, &stored).unwrap()
    };
    assert!(run_once().await);
    for (format, starts, then) in [
        (1, true, FORMAT_VERSION),
        (FORMAT_VERSION + 1, false, FORMAT_VERSION + 1),
    ] {
        let disk = Disk::open(&config(&dir)).unwrap();
        let record = HomeRecord {
            format,
            ..read(&disk)
        };
        let ops = vec![records::put(Table::Meta, HOME_KEY.to_vec(), &record)];
        let mark = Mark(1);
        disk.commit(&[Batch { mark, ops }]).unwrap();
        drop(disk);
        assert_eq!(run_once().await, starts, "format {format}");
        let disk = Disk::open(&config(&dir)).unwrap();
        assert_eq!(read(&disk).format, then);
    }
}
