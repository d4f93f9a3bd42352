//! The Thorp homes on which the answers of a proxy rest.

use super::usage;
use crate::failure::{Code, Failure};
use serde::Deserialize;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use thorp_web::{Health, Homes, Recipe, follow_home};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A home on this machine, and the file that names its table.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HomeConfig {
    pub(super) name: String,
    pub(super) table: PathBuf,
}

impl FromStr for HomeConfig {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=');
        let parts = parts.filter(|(name, file)| !name.is_empty() && !file.is_empty());
        let (name, file) = parts.ok_or_else(|| {
            format!("{text:?} names no home: write NAME=FILE, where FILE is web.table in the directory of the home")
        })?;
        Ok(HomeConfig {
            name: name.to_owned(),
            table: PathBuf::from(file),
        })
    }
}

/// The homes that were named.
pub(super) fn homes(named: &[HomeConfig], recipe: &Recipe) -> Result<Arc<Homes>, Failure> {
    if recipe.names_keys() {
        let what = "the recipe names keys, and answers from a Thorp home name them themselves";
        let action = "leave tables, keys and what changes them out of the recipe";
        return Err(Failure::new(what, action).with(Code::Usage));
    }
    let homes = named.iter();
    let homes = homes.map(|home| (home.name.clone(), home.table.clone()));
    Homes::new(homes).map(Arc::new).map_err(usage)
}

/// Follows the tables of homes until it is told to stop: for each one a task that follows it, and one that says what becomes of it.
pub(super) fn follow(
    homes: &Homes,
    stopped: &watch::Receiver<bool>,
) -> Vec<(JoinHandle<()>, JoinHandle<()>)> {
    let each = homes.tables().map(|(name, table)| {
        let (says, health) = watch::channel(Health::Away(String::from("it starts")));
        let following = tokio::spawn(follow_home(table, says, stopped.clone()));
        (following, tokio::spawn(tell(name.to_owned(), health)))
    });
    each.collect()
}

/// Says when there are hits and when there are none.
async fn tell(name: String, mut health: watch::Receiver<Health>) {
    while health.changed().await.is_ok() {
        match &*health.borrow_and_update() {
            Health::Live => eprintln!("home {name}: live. Answers that rest on it are kept"),
            Health::Away(why) => {
                eprintln!("home {name}: away. {why}. Answers that rest on it come from the origin");
            }
        }
    }
}
