//! A keeper beside a real PostgreSQL: what is acknowledged is in the table before anybody sees it.

mod common;

use common::Database;
use std::sync::Arc;
use std::time::Duration;
use thorp_versions::{Denied, Evidence, Memory, Place, Reader, Writer};
use thorp_web::{Health, Postgres, Recipe, keep};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

const RECIPE: &str = r#"
    [tables]
    item = ["item:{id}"]
    session = "ignored"
"#;

const TABLES: &str = "
    CREATE TABLE item (id int PRIMARY KEY, price int NOT NULL);
    CREATE TABLE session (id int PRIMARY KEY, at int NOT NULL);
    CREATE TABLE other (id int PRIMARY KEY);
    ALTER TABLE item REPLICA IDENTITY FULL;
    INSERT INTO item VALUES (1, 100), (2, 200);
    INSERT INTO session VALUES (1, 0);
    CREATE PUBLICATION thorp FOR ALL TABLES;
";

/// How long anything may take that does come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A database with a keeper.
struct Kept {
    database: Database,
    reader: Reader<Arc<Memory>>,
    health: watch::Receiver<Health>,
    stop: watch::Sender<bool>,
    keeper: JoinHandle<()>,
}

impl Kept {
    async fn start() -> Option<Kept> {
        let database = Database::start().await?;
        database
            .connect()
            .await
            .batch_execute(TABLES)
            .await
            .expect("tables");
        let source = Postgres::new(&database.address(), "thorp").expect("an address");
        let recipe = Arc::new(Recipe::parse(RECIPE).expect("a recipe"));
        let table = Arc::new(Memory::new());
        let writer = Writer::new(Arc::clone(&table));
        let (says, health) = watch::channel(Health::Away(String::from("it starts")));
        let (stop, stopped) = watch::channel(false);
        let keeper = tokio::spawn(keep(source, recipe, writer, says, stopped));
        let mut kept = Kept {
            database,
            reader: Reader::new(table),
            health,
            stop,
            keeper,
        };
        kept.until(|health| *health == Health::Live).await;
        kept.until_passes(&item(1)).await;
        Some(kept)
    }

    async fn until(&mut self, is_so: impl FnMut(&Health) -> bool) {
        let seen = tokio::time::timeout(PATIENCE, self.health.wait_for(is_so)).await;
        assert!(
            seen.is_ok_and(|seen| seen.is_ok()),
            "{:?}",
            *self.health.borrow()
        );
    }

    fn check(&self, evidence: Evidence, keys: &[Place]) -> Result<(), Denied> {
        let passed = self.reader.check(evidence, keys, now_ms());
        passed.map(|_| ())
    }

    /// What a fill that begins now could be kept with.
    async fn until_passes(&self, keys: &[Place]) -> Evidence {
        let passes = async {
            loop {
                let evidence = self.reader.evidence();
                if self.check(evidence, keys).is_ok() {
                    return evidence;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let passed = tokio::time::timeout(PATIENCE, passes).await;
        passed.expect("an answer could be kept some time")
    }
}

fn item(id: u32) -> [Place; 1] {
    [Place::of(&format!("item:{id}"))]
}

fn now_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

async fn run(client: &Client, statement: &str) {
    client.batch_execute(statement).await.expect(statement);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_in_the_table_before_it_is_answered() {
    let Some(kept) = Kept::start().await else {
        return;
    };
    let client = kept.database.connect().await;
    let evidence = kept.reader.evidence();
    run(&client, "UPDATE session SET at = 1").await;
    run(&client, "UPDATE item SET price = 201 WHERE id = 2").await;
    assert_eq!(kept.check(evidence, &item(1)), Ok(()));
    assert_eq!(
        kept.check(evidence, &item(2)),
        Err(Denied::Changed(item(2)[0]))
    );
    let everything = [Place::EVERYTHING];
    assert_eq!(
        kept.check(evidence, &everything),
        Err(Denied::Changed(everything[0]))
    );
    // The update ends once it is visible.
    let evidence = kept.until_passes(&item(2)).await;
    run(&client, "INSERT INTO other VALUES (1)").await;
    assert_eq!(
        kept.check(evidence, &item(1)),
        Err(Denied::Changed(Place::UNKNOWN))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_passes_its_check_is_older_than_what_was_acknowledged() {
    let Some(kept) = Kept::start().await else {
        return;
    };
    let writes = kept.database.connect().await;
    let reads = kept.database.connect().await;
    let acknowledged = Arc::new(std::sync::atomic::AtomicI32::new(100));
    let says = Arc::clone(&acknowledged);
    let writer = tokio::spawn(async move {
        for price in 101..=400 {
            writes
                .execute("UPDATE item SET price = $1 WHERE id = 1", &[&price])
                .await
                .expect("an update");
            says.store(price, std::sync::atomic::Ordering::SeqCst);
        }
    });
    let (mut fills, mut kept_fills, mut hits) = (0, 0, 0);
    while !writer.is_finished() || kept_fills == 0 {
        let evidence = kept.reader.evidence();
        let row = reads
            .query_one("SELECT price FROM item WHERE id = 1", &[])
            .await
            .expect("a row");
        let price: i32 = row.get(0);
        fills += 1;
        let mut is_kept = kept.check(evidence, &item(1)).is_ok();
        kept_fills += i32::from(is_kept);
        while is_kept && !writer.is_finished() {
            // A request arrives.
            let least = acknowledged.load(std::sync::atomic::Ordering::SeqCst);
            is_kept = kept.check(evidence, &item(1)).is_ok();
            assert!(
                !is_kept || price >= least,
                "{price} is served after {least} was acknowledged"
            );
            hits += i32::from(is_kept);
        }
    }
    writer.await.expect("the writer");
    println!("{fills} fills, {kept_fills} of them kept, {hits} hits");
    assert!(kept_fills > 0 && hits > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_stops_leaves_no_commit_waiting() {
    let Some(mut kept) = Kept::start().await else {
        return;
    };
    let evidence = kept.reader.evidence();
    kept.stop.send_replace(true);
    tokio::time::timeout(PATIENCE, &mut kept.keeper)
        .await
        .expect("it stops")
        .expect("no panic");
    assert!(kept.check(evidence, &item(1)).is_err());
    let client = kept.database.connect().await;
    let update = client.batch_execute("UPDATE item SET price = 1");
    let updated = tokio::time::timeout(PATIENCE, update).await;
    updated.expect("nobody is waited for").expect("an update");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_waited_for_serves_nothing() {
    let Some(mut kept) = Kept::start().await else {
        return;
    };
    let client = kept.database.connect().await;
    run(
        &client,
        "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (thorp, somebody)'",
    )
    .await;
    run(&client, "SELECT pg_reload_conf()").await;
    let evidence = kept.reader.evidence();
    // A keeper that begins again does not share its place.
    run(
        &client,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_replication",
    )
    .await;
    kept.until(|health| matches!(health, Health::Away(why) if why.contains("stand in")))
        .await;
    assert!(kept.check(evidence, &item(1)).is_err());
    run(&client, "ALTER SYSTEM SET synchronous_standby_names = ''").await;
    run(&client, "SELECT pg_reload_conf()").await;
    kept.until(|health| *health == Health::Live).await;
    kept.until_passes(&item(1)).await;
    assert_eq!(kept.check(evidence, &item(1)), Err(Denied::OtherGeneration));
}
