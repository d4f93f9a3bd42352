//! A keeper that is killed, stopped and started again, while readers of its table go on.

use crate::database::Database;
use crate::kept::{PATIENCE, RECIPE, TABLES, item, now_ms, run};
use crate::process::{Keeper, command};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::Duration;
use thorp_versions::{Denied, Evidence, Followed, Versions};
use thorp_web::{Health, Postgres, Recipe, Watched, follow, watch_over};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

/// How often a proxy looks for a new table.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A database, and where the address of its keeper's table is.
struct Scene {
    database: Database,
    table: PathBuf,
    directory: tempfile::TempDir,
    watchdog: watch::Sender<bool>,
}

impl Scene {
    async fn open() -> Option<Scene> {
        let database = Database::start().await?;
        run(&database.connect().await, TABLES).await;
        let directory = tempfile::tempdir().expect("a directory");
        let (watchdog, _) = watch::channel(false);
        Some(Scene {
            table: directory.path().join("shop.table"),
            database,
            directory,
            watchdog,
        })
    }

    fn keeper(&self) -> Keeper {
        Keeper::start(&self.database.address(), &self.table)
    }

    fn source(&self) -> Postgres {
        Postgres::new(&self.database.address(), "thorp").expect("an address")
    }

    fn watch_over(&self) {
        let (says, _) = watch::channel(Watched::Well);
        tokio::spawn(watch_over(self.source(), says, self.watchdog.subscribe()));
    }

    fn reader(&self) -> Followed {
        let recipe = Recipe::parse(RECIPE).expect("a recipe");
        Followed::new(self.table.clone(), recipe.terms("thorp"))
    }
}

fn check(reader: &impl Versions<Evidence = Evidence>, evidence: Evidence) -> Result<(), Denied> {
    let passed = reader.check(&evidence, &item(1), now_ms());
    passed.map(|_| ())
}

/// Waits until a fill that begins now could be kept.
async fn until_passes(reader: &Followed) -> Evidence {
    let passes = async {
        loop {
            // The reader stays with what it has if there is no other table.
            let _ = reader.look();
            let evidence = reader.evidence();
            if check(reader, evidence).is_ok() {
                return evidence;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let passed = tokio::time::timeout(PATIENCE, passes).await;
    passed.expect("an answer could be kept some time")
}

/// Whether an entry ever passes its check after a newer price was acknowledged, under whatever happens.
struct Probe {
    hits: Arc<AtomicU32>,
    stop: watch::Sender<bool>,
    tasks: [JoinHandle<()>; 2],
}

impl Probe {
    async fn start(scene: &Scene) -> Probe {
        let (writes, reads) = (
            scene.database.connect().await,
            scene.database.connect().await,
        );
        let acknowledged = Arc::new(AtomicI32::new(100));
        let hits = Arc::new(AtomicU32::new(0));
        let (stop, stopped) = watch::channel(false);
        let writer = write(writes, Arc::clone(&acknowledged), stopped.clone());
        let reader = read(
            scene.reader(),
            reads,
            acknowledged,
            Arc::clone(&hits),
            stopped,
        );
        Probe {
            hits,
            stop,
            tasks: [tokio::spawn(writer), tokio::spawn(reader)],
        }
    }

    /// Waits until there are hits again.
    async fn until_hits(&self) {
        let before = self.hits.load(Ordering::SeqCst);
        let hit = async {
            while self.hits.load(Ordering::SeqCst) < before + 20 {
                assert!(
                    !self.tasks.iter().any(JoinHandle::is_finished),
                    "it has ended"
                );
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let hit = tokio::time::timeout(PATIENCE, hit).await;
        hit.expect("there are hits again");
    }

    async fn end(self) -> u32 {
        self.stop.send_replace(true);
        for task in self.tasks {
            task.await.expect("no stale hit");
        }
        self.hits.load(Ordering::SeqCst)
    }
}

/// Raises the price of item 1 again and again.
async fn write(client: Client, acknowledged: Arc<AtomicI32>, stop: watch::Receiver<bool>) {
    let update = "UPDATE item SET price = $1 WHERE id = 1";
    for price in 101.. {
        if *stop.borrow() {
            return;
        }
        client.execute(update, &[&price]).await.expect("an update");
        acknowledged.store(price, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(7)).await;
    }
}

/// Fills, and serves what it has filled until a check fails for good.
async fn read(
    reader: Followed,
    client: Client,
    acknowledged: Arc<AtomicI32>,
    hits: Arc<AtomicU32>,
    stop: watch::Receiver<bool>,
) {
    let mut looked = tokio::time::Instant::now();
    while !*stop.borrow() {
        if looked.elapsed() > LOOK_EVERY {
            // Without another table it goes on with this one.
            let _ = reader.look();
            looked = tokio::time::Instant::now();
        }
        let evidence = reader.evidence();
        let question = "SELECT price FROM item WHERE id = 1";
        let row = client.query_one(question, &[]).await.expect("a row");
        let price: i32 = row.get(0);
        let mut checked = check(&reader, evidence);
        while !checked.is_err_and(Denied::is_for_good) && looked.elapsed() < LOOK_EVERY {
            let least = acknowledged.load(Ordering::SeqCst);
            checked = check(&reader, evidence);
            if checked.is_ok() {
                assert!(price >= least, "{price} is served after {least}");
                hits.fetch_add(1, Ordering::SeqCst);
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Traps W8, W11, W21 and W25 with real processes: no hit is older than what was acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn no_hit_is_stale_while_keepers_die_hang_and_come_back() {
    let Some(scene) = Scene::open().await else {
        return;
    };
    scene.watch_over();
    let mut keeper = scene.keeper();
    keeper.until(|status| status.live).await;
    let probe = Probe::start(&scene).await;
    probe.until_hits().await;
    // Killed, and started again at once.
    keeper.kill();
    keeper = scene.keeper();
    probe.until_hits().await;
    // It hangs until the watchdog lets commits go on, and wakes.
    keeper.signal(Signal::STOP);
    tokio::time::sleep(Duration::from_secs(8)).await;
    keeper.signal(Signal::CONT);
    probe.until_hits().await;
    // It hangs for less than the life of a beat.
    keeper.signal(Signal::STOP);
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    keeper.signal(Signal::CONT);
    probe.until_hits().await;
    // Killed, and its file is gone, too.
    keeper.kill();
    fs::remove_file(&scene.table).expect("a file");
    keeper = scene.keeper();
    probe.until_hits().await;
    // Stopped in order.
    keeper.stop();
    keeper = scene.keeper();
    probe.until_hits().await;
    let hits = probe.end().await;
    keeper.stop();
    println!("{hits} hits");
}

/// A keeper that is killed leaves a young beat to its readers. The next one acknowledges nothing before that is old.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_keeper_waits_until_the_beats_of_the_last_one_are_old() {
    let Some(scene) = Scene::open().await else {
        return;
    };
    let keeper = scene.keeper();
    // A reader that does not look for another table.
    let reader = scene.reader();
    let evidence = until_passes(&reader).await;
    keeper.kill();
    let _keeper = scene.keeper();
    let client = scene.database.connect().await;
    let update = "UPDATE item SET price = 1 WHERE id = 1";
    let updated = tokio::time::timeout(PATIENCE, client.batch_execute(update)).await;
    updated
        .expect("the next keeper acknowledges")
        .expect("an update");
    assert_eq!(check(&reader, evidence), Err(Denied::NoBeat));
    until_passes(&reader).await;
    assert_eq!(check(&reader, evidence), Err(Denied::OtherGeneration));
}

/// Trap W26: two keepers of one name, with a table each.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_keeper_of_the_same_name_changes_nothing() {
    let Some(scene) = Scene::open().await else {
        return;
    };
    let keeper = scene.keeper();
    let reader = scene.reader();
    let evidence = until_passes(&reader).await;
    let other = scene.directory.path().join("other.table");
    let mut second = Keeper::start(&scene.database.address(), &other);
    let is_refused = |why: &String| why.contains("in use") && why.contains("--name");
    second
        .until(|status| status.why.as_ref().is_some_and(is_refused))
        .await;
    second.stop();
    // The first one is waited for as before, and does not notice it.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(check(&reader, evidence), Ok(()));
    keeper.until(|status| status.live).await;
    until_passes(&reader).await;
}

/// Trap W39: a keeper wakes without its slot, and stops. Another one of its name is live by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_stops_leaves_the_name_of_another_one_in() {
    let Some(scene) = Scene::open().await else {
        return;
    };
    let mut first = scene.keeper();
    until_passes(&scene.reader()).await;
    let other = scene.directory.path().join("other.table");
    let second = Keeper::start(&scene.database.address(), &other);
    first.signal(Signal::STOP);
    let client = scene.database.connect().await;
    let end = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots";
    run(&client, end).await;
    second.until(|status| status.live).await;
    let recipe = Recipe::parse(RECIPE).expect("a recipe");
    let reader = Followed::new(other, recipe.terms("thorp"));
    let evidence = until_passes(&reader).await;
    first.signal(Signal::CONT);
    first.stop();
    let question = "SELECT current_setting('synchronous_standby_names')";
    let row = client.query_one(question, &[]).await.expect("a setting");
    assert_eq!(row.get::<_, &str>(0), "FIRST 1 (thorp)");
    let _ = reader.look();
    assert_eq!(check(&reader, evidence), Ok(()), "it has not noticed it");
}

fn damaged(table: &Path) -> [fn(&Path); 3] {
    assert!(table.exists());
    [
        |table| fs::write(table, "").expect("a file"),
        |table| fs::write(table, "thorp table 9: 1 2 3\n").expect("a file"),
        |table| fs::remove_file(table).expect("a file"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_damaged_ends_no_reader_and_makes_no_hit_stale() {
    let Some(scene) = Scene::open().await else {
        return;
    };
    let _keeper = scene.keeper();
    let reader = scene.reader();
    until_passes(&reader).await;
    let client = scene.database.connect().await;
    for damage in damaged(&scene.table) {
        damage(&scene.table);
        let evidence = until_passes(&reader).await;
        run(&client, "UPDATE item SET price = price + 1 WHERE id = 1").await;
        assert!(check(&reader, evidence).is_err());
        // A proxy that starts now finds no table: no hits.
        let late = scene.reader();
        assert!(late.look().is_err());
        assert_eq!(check(&late, late.evidence()), Err(Denied::NoBeat));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_starts_a_keeper_if_there_is_none() {
    let Some(scene) = Scene::open().await else {
        return;
    };
    let (address, table) = (scene.database.address(), scene.table.clone());
    let start = move || tokio::process::Command::from(command(&address, &table));
    let (says, mut said) = watch::channel(Health::Live);
    let (stop, stopped) = watch::channel(false);
    let reader = Arc::new(scene.reader());
    let following = follow(Arc::clone(&reader), Some(Box::new(start)), says, stopped);
    let following = tokio::spawn(following);
    let evidence = until_passes(&reader).await;
    let first = reader.look().expect("a table");
    let process = rustix::process::Pid::from_raw(first.process as i32).expect("a process");
    rustix::process::kill_process(process, Signal::KILL).expect("a signal");
    let away = said.wait_for(|said| matches!(said, Health::Away(_)));
    assert!(tokio::time::timeout(PATIENCE, away).await.is_ok());
    let next = async {
        while reader.look().ok().is_none_or(|next| next == first) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let next = tokio::time::timeout(PATIENCE, next).await;
    next.expect("another keeper");
    until_passes(&reader).await;
    assert_eq!(check(&reader, evidence), Err(Denied::OtherGeneration));
    stop.send_replace(true);
    following.await.expect("no panic");
    let client = scene.database.connect().await;
    let question = "SELECT current_setting('synchronous_standby_names')";
    let row = client.query_one(question, &[]).await.expect("a setting");
    assert_eq!(row.get::<_, &str>(0), "", "it has left in order");
}

/// Trap W27: a commit waits, the database crashes and comes back, and shows it. By then no reader has a young beat.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_of_the_database_shows_nothing_that_hits_do_not_know() {
    let Some(mut scene) = Scene::open().await else {
        return;
    };
    let keeper = scene.keeper();
    let reader = scene.reader();
    let evidence = until_passes(&reader).await;
    // The keeper hangs, so a commit waits for it. A backend is killed: that ends the server, which does not start by itself.
    keeper.signal(Signal::STOP);
    let client = scene.database.connect().await;
    let row = client.query_one("SELECT pg_backend_pid()", &[]).await;
    let backend: i32 = row.expect("a number").get(0);
    let update = "UPDATE item SET price = 777 WHERE id = 1";
    let updated = tokio::spawn(async move { client.batch_execute(update).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!updated.is_finished());
    let backend = rustix::process::Pid::from_raw(backend).expect("a process");
    rustix::process::kill_process(backend, Signal::KILL).expect("a signal");
    scene.database.until_it_has_ended().await;
    // As its unit does before a start.
    tokio::time::sleep(Duration::from_secs(4)).await;
    scene.database.start_again().await;
    let reads = scene.database.connect().await;
    let question = "SELECT price FROM item WHERE id = 1";
    let row = reads.query_one(question, &[]).await.expect("a row");
    assert_eq!(row.get::<_, i32>(0), 777, "it is shown");
    assert!(check(&reader, evidence).is_err());
    keeper.signal(Signal::CONT);
    until_passes(&reader).await;
    assert_eq!(check(&reader, evidence), Err(Denied::OtherGeneration));
}

/// Trap W29: a keeper dies between its acknowledgement and the moment at which the update is visible. The next one awaits all that is open.
#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_starts_awaits_the_transactions_that_are_open() {
    let Some(scene) = Scene::open().await else {
        return;
    };
    let client = scene.database.connect().await;
    // A slot that is made awaits them, too.
    let slot = "SELECT pg_create_logical_replication_slot('thorp', 'pgoutput')";
    run(&client, slot).await;
    run(
        &client,
        "SET application_name = 'till'; BEGIN; UPDATE item SET price = 5 WHERE id = 1",
    )
    .await;
    let prepared = scene.database.connect().await;
    let prepare = "BEGIN; UPDATE item SET price = 6 WHERE id = 2; PREPARE TRANSACTION 'left'";
    run(&prepared, prepare).await;
    let keeper = scene.keeper();
    let reader = scene.reader();
    let status = keeper.until(|status| status.awaits.len() == 2).await;
    assert!(status.awaits[0].contains("till"), "{:?}", status.awaits);
    assert!(status.awaits[1].contains("'left'"), "{:?}", status.awaits);
    run(&prepared, "COMMIT PREPARED 'left'").await;
    let _ = reader.look();
    assert_eq!(check(&reader, reader.evidence()), Err(Denied::NoBeat));
    run(&client, "COMMIT").await;
    until_passes(&reader).await;
}
