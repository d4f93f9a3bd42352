//! Requests as the source of a proxy: each unsafe one is noted at a keeper, and applications may say by calls what changes.

use super::config::WebConfig;
use super::source::table_by_name;
use crate::failure::{Code, Failure};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use thorp_versions::Followed;
use thorp_web::{Calls, Recipe, Requests, terms_of_requests};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long a proxy that ends waits for unsafe requests that are under way.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);

/// Whether the recipe and the source go together: each key on which an answer rests has to be one that changes.
pub(super) fn fits(config: &WebConfig, recipe: &Recipe) -> Result<(), Failure> {
    let (has_postgres, has_requests) = (config.postgres.url.is_some(), config.requests.on);
    let has_source = has_postgres || has_requests || !config.home.is_empty();
    let wrong = |what: &str, todo: &str| Err(Failure::new(what, todo).with(Code::Usage));
    if !has_source && recipe.has_routes() {
        return wrong(
            "the recipe has routes, and nothing says when their answers change",
            "name the database with --postgres or the home with --home, give --requests, or leave the routes out of the recipe",
        );
    }
    if has_postgres && recipe.has_changes() {
        return wrong(
            "the recipe says what requests change, and the database is watched",
            "leave `changes` out of the routes, or give --requests instead of --postgres",
        );
    }
    if !has_requests {
        return Ok(());
    }
    if recipe.has_tables() {
        return wrong(
            "the recipe names tables, and no database is watched",
            "leave [tables] out of the recipe, or give --postgres instead of --requests",
        );
    }
    match recipe.unchanged().next() {
        None => Ok(()),
        Some(key) => wrong(
            &format!("no request changes the key {key} of a route"),
            "name it under `changes` of a route; if calls of /begin change it, under `known`",
        ),
    }
}

/// Requests are noted.
pub(super) struct Noting {
    requests: Requests,
    table: PathBuf,
    calls: Option<(Calls, String)>,
}

impl Noting {
    /// The reader of the keeper's table, and what is noted there.
    pub(super) fn of(config: &WebConfig) -> Result<(Arc<Followed>, Self), Failure> {
        let (keeper, requests) = (&config.keeper, &config.requests);
        let table = table_by_name(keeper.table.as_ref(), &keeper.name)?;
        let terms = terms_of_requests(&keeper.name);
        let reader = Arc::new(Followed::new(table.clone(), terms));
        let calls = requests.calls.as_ref().zip(requests.calls_secret.as_ref());
        let requests = Requests::beside(Arc::clone(&reader));
        let calls = calls.map(|(listen, path)| {
            let secret = fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
            let calls = Calls::new(requests.clone(), &secret);
            let calls = calls.map_err(|error| {
                let what = format!("{}: {error}", path.display());
                Failure::new(what, "write another secret").with(Code::Usage)
            })?;
            Ok::<_, Failure>((calls, listen.clone()))
        });
        let calls = calls.transpose()?;
        let noting = Noting {
            requests,
            table,
            calls,
        };
        Ok((reader, noting))
    }

    pub(super) fn table(&self) -> PathBuf {
        self.table.clone()
    }

    pub(super) fn requests(&self) -> Requests {
        self.requests.clone()
    }

    /// Connects to the keeper, and takes calls.
    pub(super) async fn run(self) -> Result<RunningNoting, Failure> {
        let (stop, stopped) = watch::channel(false);
        if let Some((calls, listen)) = self.calls {
            let listener = TcpListener::bind(&listen).await.map_err(|error| {
                let todo = "give a free address with --calls";
                Failure::new(format!("{listen}: {error}"), todo)
            })?;
            if let Ok(address) = listener.local_addr() {
                eprintln!("calls: http://{address}/begin and /end");
            }
            tokio::spawn(calls.serve(listener, stopped.clone()));
        }
        let (link, table) = (self.requests.clone(), self.table);
        let linking = tokio::spawn(async move { link.run(&table, stopped).await });
        Ok(RunningNoting {
            requests: self.requests,
            stop,
            linking,
        })
    }
}

/// Requests are being noted.
pub(super) struct RunningNoting {
    requests: Requests,
    stop: watch::Sender<bool>,
    linking: JoinHandle<()>,
}

impl RunningNoting {
    /// Waits for requests that are under way, so that nothing stays open for long. Then the keeper learns that this proxy is gone.
    pub(super) async fn end(self) {
        self.requests.settle(SETTLES_WITHIN).await;
        self.stop.send_replace(true);
        // It holds nothing that has to be saved.
        let _ = self.linking.await;
    }
}
