//! A proxy beside a keeper: it reads the table of whichever keeper lives, and starts one if there is none.

use crate::clock;
use crate::postgres::Health;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use thorp_versions::{Denied, Followed, TableError, Versions};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::Instant;

/// How often a proxy looks for a new table.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long after one keeper it starts the next one.
const START_EVERY: Duration = Duration::from_secs(1);

/// How long a keeper may take to take its name out of the database.
const LEAVES_WITHIN: Duration = Duration::from_secs(20);

/// How a keeper is started. It has to end in order when its standard input ends.
pub type Start = Box<dyn Fn() -> Command + Send + Sync>;

/// Looks for tables until it is told to stop, and keeps a keeper there if it is told how to start one. Then that one stops, too.
pub async fn follow(
    reader: Arc<Followed>,
    start: Option<Start>,
    says: watch::Sender<Health>,
    mut stop: watch::Receiver<bool>,
) {
    let mut beside = Beside {
        start,
        child: None,
        next: Instant::now(),
    };
    loop {
        let health = match reader.look() {
            Ok(_) => health(&reader),
            Err(error) => Health::Away(beside.mend(error)),
        };
        says.send_if_modified(|said| {
            let is_new = *said != health;
            *said = health;
            is_new
        });
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    beside.stop().await;
}

/// Looks for the table of a Thorp home until it is told to stop. Nobody but an operator starts that home.
pub async fn follow_home(
    table: Arc<Followed>,
    says: watch::Sender<Health>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let health = match table.look() {
            Ok(_) => health_of_home(&table),
            Err(error) => Health::Away(why_of_home(&error)),
        };
        says.send_if_modified(|said| {
            let is_new = *said != health;
            *said = health;
            is_new
        });
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

fn health_of_home(table: &Followed) -> Health {
    match health(table) {
        Health::Live => Health::Live,
        Health::Away(_) => Health::Away(String::from(
            "it is closed, ends, or hangs: its log says why",
        )),
    }
}

fn why_of_home(error: &TableError) -> String {
    match error {
        TableError::NotThere(path) | TableError::Gone(path) => format!(
            "{} names no table: start the home with --web-table",
            path.display()
        ),
        TableError::OtherUser(path) => format!(
            "the home that writes {} runs as another user: run both as the same one",
            path.display()
        ),
        TableError::OtherTerms(path) => format!(
            "the table that {} names is of another home: give its own name with --home",
            path.display()
        ),
        other => other.to_string(),
    }
}

/// Whether there can be hits.
fn health(reader: &Followed) -> Health {
    match reader.check(&reader.evidence(), &[], clock::now_ms()) {
        Err(Denied::NoBeat) => Health::Away(String::from(
            "the keeper is not live, or hangs: it says why",
        )),
        _ => Health::Live,
    }
}

/// A keeper that this process has started, or may start.
struct Beside {
    start: Option<Start>,
    child: Option<Child>,
    /// Not before.
    next: Instant,
}

impl Beside {
    /// There is no table. If a keeper is what is missing, starts one. Why there are no hits.
    fn mend(&mut self, error: TableError) -> String {
        let is_missing = matches!(error, TableError::NotThere(_) | TableError::Gone(_));
        let Some(start) = self.start.as_ref().filter(|_| is_missing) else {
            return error.to_string();
        };
        let child = self.child.as_mut();
        let runs = child.is_some_and(|child| matches!(child.try_wait(), Ok(None)));
        if !runs && Instant::now() >= self.next {
            self.next = Instant::now() + START_EVERY;
            match start().stdin(Stdio::piped()).spawn() {
                Ok(child) => self.child = Some(child),
                Err(error) => return format!("no keeper can be started: {error}"),
            }
        }
        String::from("a keeper starts")
    }

    /// Ends the keeper in order: its standard input ends.
    async fn stop(mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        drop(child.stdin.take());
        if tokio::time::timeout(LEAVES_WITHIN, child.wait())
            .await
            .is_err()
        {
            tracing::error!("the keeper does not end: commits may wait for it");
        }
    }
}
