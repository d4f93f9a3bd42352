//! A database with a keeper.

use crate::database::Database;
use std::sync::Arc;
use std::time::Duration;
use thorp_versions::{Denied, Evidence, Memory, Place, Reader, Writer};
use thorp_web::{Health, Postgres, Recipe, Report, keep};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

pub(crate) const RECIPE: &str = r#"
    [tables]
    item = ["item:{id}"]
    session = "ignored"

    [[routes]]
    path = "/items/{id}"
    keys = ["item:{id}"]
    cookies = ["theme"]
"#;

pub(crate) const TABLES: &str = "
    CREATE TABLE item (id int PRIMARY KEY, price int NOT NULL);
    CREATE TABLE session (id int PRIMARY KEY, at int NOT NULL);
    CREATE TABLE other (id int PRIMARY KEY);
    ALTER TABLE item REPLICA IDENTITY FULL;
    INSERT INTO item VALUES (1, 100), (2, 200);
    INSERT INTO session VALUES (1, 0);
    CREATE PUBLICATION thorp FOR ALL TABLES;
    CREATE SCHEMA thorp_web;
    CREATE TABLE thorp_web.lock ();
";

/// How long anything may take that does come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A database with a keeper.
pub(crate) struct Kept {
    pub(crate) database: Database,
    pub(crate) reader: Reader<Arc<Memory>>,
    pub(crate) report: watch::Receiver<Report>,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) keeper: JoinHandle<()>,
    /// The keeper's own, with one thread: who blocks that hangs the keeper, and its connections stay.
    runtime: Option<Runtime>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Kept {
    pub(crate) async fn start() -> Option<Kept> {
        let database = Database::start().await?;
        run(&database.connect().await, TABLES).await;
        Some(Kept::beside(database, "postgres", RECIPE).await)
    }

    /// A keeper that is live, and has this role.
    pub(crate) async fn beside(database: Database, role: &str, recipe: &str) -> Kept {
        let mut kept = Kept::over(database, role, recipe);
        kept.until(|health| *health == Health::Live).await;
        kept.until_passes(&item(1)).await;
        kept
    }

    /// A keeper that starts.
    pub(crate) fn over(database: Database, role: &str, recipe: &str) -> Kept {
        let source = Postgres::new(&database.address_of(role), "thorp").expect("an address");
        let recipe = Arc::new(Recipe::parse(recipe).expect("a recipe"));
        let table = Arc::new(Memory::new());
        let writer = Writer::new(Arc::clone(&table));
        let (says, report) = watch::channel(Report::new());
        let (stop, stopped) = watch::channel(false);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let runtime = runtime.expect("a thread");
        let keeping = keep(source, recipe, writer, says, stopped);
        let keeper = runtime.spawn(async move { keeping.await.expect("its name is out") });
        Kept {
            database,
            reader: Reader::new(table),
            report,
            stop,
            keeper,
            runtime: Some(runtime),
        }
    }

    /// The keeper does nothing for so long.
    pub(crate) fn hang(&self, time: Duration) {
        let runtime = self.runtime.as_ref().expect("it is taken at the end");
        runtime.spawn(async move { std::thread::sleep(time) });
    }

    pub(crate) async fn until(&mut self, mut is_so: impl FnMut(&Health) -> bool) {
        let is_so = |report: &Report| is_so(&report.health);
        let seen = tokio::time::timeout(PATIENCE, self.report.wait_for(is_so)).await;
        assert!(
            seen.is_ok_and(|seen| seen.is_ok()),
            "{:?}",
            *self.report.borrow()
        );
    }

    pub(crate) fn check(&self, evidence: Evidence, keys: &[Place]) -> Result<(), Denied> {
        let passed = self.reader.check(evidence, keys, now_ms());
        passed.map(|_| ())
    }

    /// What a fill that begins now could be kept with.
    pub(crate) async fn until_passes(&self, keys: &[Place]) -> Evidence {
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

pub(crate) fn item(id: u32) -> [Place; 1] {
    [Place::of(&format!("item:{id}"))]
}

pub(crate) fn now_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

pub(crate) async fn run(client: &Client, statement: &str) {
    client.batch_execute(statement).await.expect(statement);
}
