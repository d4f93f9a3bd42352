//! A keeper as a process of its own: this test program, started again.

use crate::kept::RECIPE;
use rustix::process::{Pid, Signal, kill_process};
use std::env;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thorp_versions::{Kept, Writer};
use thorp_web::{Postgres, Recipe, Report, Status, keep, write_status};
use tokio::sync::watch;

const ADDRESS: &str = "THORP_TEST_KEEPER_OF";
const TABLE: &str = "THORP_TEST_KEEPER_TABLE";

/// How long a keeper may take to take its name out.
const PATIENCE: Duration = Duration::from_secs(30);

/// A keeper's process. It is stopped in order, or killed, when this is dropped.
pub(crate) struct Keeper {
    child: Child,
    table: PathBuf,
}

impl Keeper {
    pub(crate) fn start(address: &str, table: &Path) -> Keeper {
        let child = command(address, table).stdin(Stdio::piped()).spawn();
        Keeper {
            child: child.expect("a keeper"),
            table: table.to_owned(),
        }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(self.child.id() as i32).expect("a process");
        kill_process(process, signal).expect("a signal");
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it is there");
        self.child.wait().expect("it ends");
    }

    /// Ends it in order.
    pub(crate) fn stop(&mut self) {
        drop(self.child.stdin.take());
        let end = Instant::now() + PATIENCE;
        while self.child.try_wait().expect("a process").is_none() {
            assert!(Instant::now() < end, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until it says this of itself.
    pub(crate) async fn until(&self, is_so: impl Fn(&Status) -> bool) -> Status {
        let end = Instant::now() + PATIENCE;
        loop {
            let status = Status::read(&self.table);
            if let Ok(status) = &status
                && status.process == self.child.id()
                && is_so(status)
            {
                return status.clone();
            }
            assert!(Instant::now() < end, "{status:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a keeper's process is started. It ends in order when its standard input ends.
pub(crate) fn command(address: &str, table: &Path) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command
        .args(["--exact", "process::the_process_of_a_keeper", "--nocapture"])
        .env(ADDRESS, address)
        .env(TABLE, table)
        .stdout(Stdio::null());
    command
}

/// It tests nothing: it is the keeper's process, if it is told of which database.
#[test]
fn the_process_of_a_keeper() {
    let (Ok(address), Ok(table)) = (env::var(ADDRESS), env::var(TABLE)) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(run(&address, PathBuf::from(table)));
}

async fn run(address: &str, table: PathBuf) {
    let source = Postgres::new(address, "thorp").expect("an address");
    let recipe = Arc::new(Recipe::parse(RECIPE).expect("a recipe"));
    let id = u64::from(std::process::id());
    let writer = match Kept::make(&table, recipe.terms("thorp"), id) {
        Ok(kept) => Writer::new(kept),
        Err(error) => return eprintln!("{error}"),
    };
    let (says, report) = watch::channel(Report::new());
    let (stop, stopped) = watch::channel(false);
    std::thread::spawn(move || {
        // Nobody writes there: it ends.
        let _ = std::io::stdin().read(&mut [0]);
        stop.send_replace(true);
    });
    tokio::spawn(write_status(table, String::from("thorp"), report));
    if let Err(error) = keep(source, recipe, writer, says, stopped).await {
        eprintln!("{error}");
    }
}
