use std::future::pending;
use std::sync::mpsc;

use thorp_model::records::{FORMAT_VERSION, HOME_KEY, HomeRecord};
use thorp_model::{Batch, Engine, Mark, Op, Purpose, Reader, Table, records};

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
async fn a_home_that_did_not_come_far_the_first_time_begins_again() {
    let dir = tempfile::tempdir().unwrap();
    drop(Disk::open(&config(&dir), Opening::Prove).unwrap());
    let server = HomeServer::start(config(&dir)).await.unwrap();
    assert!(dir.path().join("identity").exists());
    server.run(std::future::ready(())).await;
    // Without its certificates it is another's, or has lost them.
    std::fs::rename(dir.path().join("identity"), dir.path().join("away")).unwrap();
    let refused = HomeServer::start(config(&dir)).await.map(drop);
    assert!(
        matches!(refused, Err(ServerError::NoIdentity { .. })),
        "{refused:?}"
    );
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

#[test]
fn lives_that_end_soon_follow_each_other_more_and_more_slowly() {
    let mut backoff = Backoff::new();
    let soon = Duration::from_millis(3);
    let first = pause_after(soon, &mut backoff);
    let last = (0..12).fold(first, |_, _| pause_after(soon, &mut backoff));
    assert!(
        first > Duration::ZERO && last > first * 8,
        "{first:?} {last:?}"
    );
    assert_eq!(pause_after(STEADY_LIFE, &mut backoff), Duration::ZERO);
    assert!(pause_after(soon, &mut backoff) < first * 3);
}

#[tokio::test]
async fn a_home_that_is_dropped_without_space_does_not_wait_for_any() {
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
    let disk = Disk::open(&config(&dir), Opening::Prove).unwrap();
    assert!(disk.get(Table::Meta, HOME_KEY).unwrap().is_some());
    assert_eq!(
        identity::known(&config(&dir), disk.store()).unwrap(),
        Some(home)
    );
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
        let disk = Disk::open(&config(&dir), Opening::Prove).unwrap();
        let record = HomeRecord {
            format,
            ..read(&disk)
        };
        let ops = vec![records::put(Table::Meta, HOME_KEY.to_vec(), &record)];
        let mark = Mark(1);
        let purpose = Purpose::Housekeeping;
        disk.commit(&[Batch { mark, purpose, ops }]).unwrap();
        drop(disk);
        assert_eq!(run_once().await, starts, "format {format}");
        let disk = Disk::open(&config(&dir), Opening::Prove).unwrap();
        assert_eq!(read(&disk).format, then);
    }
}

/// What waits is still there after that.
const SOON: Duration = Duration::from_millis(500);

fn log_batch(mark: u64, value_bytes: usize) -> Batch {
    put_batch((Table::Log, Purpose::NewData), mark, value_bytes)
}

fn page_batch(mark: u64, value_bytes: usize) -> Batch {
    put_batch((Table::Pages, Purpose::Housekeeping), mark, value_bytes)
}

fn put_batch((table, purpose): (Table, Purpose), mark: u64, value_bytes: usize) -> Batch {
    let op = Op::Put {
        table,
        key: mark.to_be_bytes().to_vec(),
        value: vec![7; value_bytes],
    };
    let (mark, ops) = (Mark(mark), vec![op]);
    Batch { mark, purpose, ops }
}

fn limited(dir: &tempfile::TempDir, limit: u64) -> Arc<Disk> {
    let mut config = config(dir);
    config.store.limit = Some(Bytes(limit));
    Arc::new(Disk::open(&config, Opening::Prove).unwrap())
}

/// Commits in a thread, and tells how that ended.
fn committing(disk: &Arc<Disk>, group: Vec<Batch>) -> mpsc::Receiver<Result<(), StorageError>> {
    let (tell, told) = mpsc::channel();
    let disk = Arc::clone(disk);
    thread::spawn(move || tell.send(disk.commit(&group)));
    told
}

#[test]
fn without_space_only_housekeeping_waits() {
    let dir = tempfile::tempdir().unwrap();
    let disk = limited(&dir, 160 << 10);
    disk.commit(&[log_batch(1, 150 << 10)]).unwrap();
    disk.look(|lack| assert!(lack.is_some()));
    // Accepted before that was known. If it waited, what frees space would wait behind it.
    let is_full = |ended| matches!(ended, Ok(Err(StorageError::Full { .. })));
    let caught = committing(&disk, vec![log_batch(2, 64 << 10)]);
    assert!(is_full(caught.recv_timeout(20 * SOON)));
    // As a part of a group it is tried alone first.
    let home_page = page_batch(3, 64 << 10);
    let caught = committing(&disk, vec![home_page.clone(), log_batch(4, 1)]);
    assert!(is_full(caught.recv_timeout(20 * SOON)));
    let waits = committing(&disk, vec![home_page]);
    assert!(waits.recv_timeout(SOON).is_err());
    disk.store().set_limit(Some(1 << 20));
    assert_eq!(waits.recv_timeout(20 * SOON), Ok(Ok(())));
    disk.room().stop();
}

#[test]
fn what_did_not_fit_keeps_no_empty_store_without_space() {
    let dir = tempfile::tempdir().unwrap();
    let disk = limited(&dir, 1 << 20);
    disk.room().wants(128 << 20);
    assert!(!disk.has_space());
    disk.look(|_| {});
    assert!(disk.has_space());
    // With less than a quarter free it is not enough for what did not fit; and that is forgotten when there was space.
    disk.commit(&[log_batch(1, 850 << 10)]).unwrap();
    disk.room().wants(128 << 20);
    disk.look(|_| {});
    assert!(!disk.has_space());
    disk.store().set_limit(Some(2 << 20));
    disk.look(|_| {});
    assert!(disk.has_space());
    disk.store().set_limit(Some(860 << 10));
    disk.look(|_| {});
    assert!(!disk.has_space());
    disk.store().set_limit(Some(1 << 20));
    disk.look(|_| {});
    assert!(disk.has_space());
}
