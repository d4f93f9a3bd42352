//! The Thorp homes on which the answers of a proxy rest.

use super::beside::Running;
use super::usage;
use crate::failure::{Code, Failure};
use std::path::PathBuf;
use std::sync::Arc;
use thorp_web::{Health, Homes, Recipe, follow_home};
use tokio::sync::watch;

/// The homes that were named, each as NAME=FILE.
pub(super) fn homes(named: &[String], recipe: &Recipe) -> Result<Arc<Homes>, Failure> {
    if recipe.names_keys() {
        let what = "the recipe names keys, and answers from a Thorp home name them themselves";
        let action = "leave `tables`, `keys` and `also` out of the recipe";
        return Err(Failure::new(what, action).with(Code::Usage));
    }
    let homes = named.iter().map(|named| {
        let parts = named.split_once('=');
        let parts = parts.filter(|(name, file)| !name.is_empty() && !file.is_empty());
        let (name, file) = parts.ok_or_else(|| {
            let what = format!("{named:?} names no home");
            let action = "write NAME=FILE, where FILE is web.table in the directory of the home";
            Failure::new(what, action).with(Code::Usage)
        })?;
        Ok((name.to_owned(), PathBuf::from(file)))
    });
    let homes = homes.collect::<Result<Vec<_>, Failure>>()?;
    Homes::new(homes).map(Arc::new).map_err(usage)
}

/// Follows the tables of homes until it is told to stop.
pub(super) fn follow(homes: &Homes, stopped: &watch::Receiver<bool>) -> Vec<Running> {
    let each = homes.tables().map(|(name, table)| {
        let (says, health) = watch::channel(Health::Away(String::from("it starts")));
        let following = tokio::spawn(follow_home(table, says, stopped.clone()));
        Running::new(following, tokio::spawn(tell(name.to_owned(), health)))
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
