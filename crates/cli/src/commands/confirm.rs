//! `thorp confirm`: an operator opens a closed home.

use super::{say, say_json};
use crate::connect::Via;
use crate::failure::{Code, Failure};
use clap::Args;
use rustix::fs::Mode;
use rustix::process::umask;
use std::path::{Path, PathBuf};
use thorp_client::{Closed, Error, ErrorKind, Incarnation, KnownHistory, Met, Point};
use thorp_store::{OpenError, Opening, Options as StoreOptions, Store};

/// What `thorp confirm` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The name of a home that runs; or the directory of one that does not, or the store in it
    #[arg(value_name = "HOME")]
    what: String,
    /// It is a copy for a test: it gets a key of its own, and proves nothing to the original
    #[arg(long)]
    apart: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

/// Opens the home with the next incarnation.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let dir = super::home::store_in(&PathBuf::from(&options.what));
    let is_path = options.what.contains('/') || dir.is_dir();
    if !is_path {
        return options.running();
    }
    match options.stopped(&dir) {
        // The directory is here, and its home runs.
        Err(OpenError::InUse { .. }) if !options.via.via.is_empty() => options.running(),
        opened => opened.map_err(failure_of_store).and_then(|said| said),
    }
}

impl Options {
    /// Opens the store of a home that does not run.
    fn stopped(&self, dir: &Path) -> Result<Result<(), Failure>, OpenError> {
        umask(Mode::RWXG | Mode::RWXO);
        let opening = StoreOptions {
            create: false,
            opening: Opening::Confirmed { apart: self.apart },
            ..StoreOptions::default()
        };
        let incarnation = Store::open(dir, opening)?.history().incarnation();
        let dir = dir.display();
        Ok(match self.json {
            true => say_json(&serde_json::json!({
                "dir": dir.to_string(),
                "incarnation": incarnation.get(),
            })),
            false => say(&format!("{dir} is open, with incarnation {incarnation}")),
        })
    }

    /// Opens a home that runs.
    fn running(&self) -> Result<(), Failure> {
        let home = &self.what;
        let member = self.via.join()?;
        let before = member.history(home).map_err(failure)?;
        let Some(closed) = &before.closed else {
            let what = format!("{home} is not closed: it goes on as it is");
            return Err(Failure::new(what, "nothing was changed"));
        };
        let opened = member.confirm(home, before.incarnation, self.apart);
        let opened = opened.map_err(failure)?;
        if self.json {
            return say_json(&as_json(home, opened, &before, closed));
        }
        let Point { life, position, .. } = &before.point;
        say(&format!(
            "{home} is open, with incarnation {opened}\nit goes on from position {position} of life {}\n{}",
            life.counter,
            lost(&before, closed)
        ))
    }
}

/// What was lost, as far as anybody knows.
fn lost(before: &KnownHistory, closed: &Closed) -> String {
    let Closed::OtherHistory(Met {
        by,
        incarnation,
        point,
    }) = closed
    else {
        return format!("what it has lost is not known: {closed}");
    };
    let (life, there) = (point.life.counter, point.position);
    match &before.shared {
        Some(shared) if there > shared.position => format!(
            "lost: all commits of life {life} above position {}; {by} has seen position {there}",
            shared.position
        ),
        Some(_) => format!(
            "lost: grants, registrations or votes of life {life}, and no commit that {by} has seen"
        ),
        None => format!(
            "lost: life {life} of incarnation {incarnation}; {by} has seen its position {there}, and this history does not have that life"
        ),
    }
}

fn as_json(
    home: &str,
    opened: Incarnation,
    before: &KnownHistory,
    closed: &Closed,
) -> serde_json::Value {
    let other = match closed {
        Closed::OtherHistory(met) => Some(serde_json::json!({
            "by": met.by,
            "incarnation": met.incarnation.get(),
            "life": met.point.life.counter,
            "position": met.point.position.0,
        })),
        _ => None,
    };
    serde_json::json!({
        "home": home,
        "incarnation": opened.get(),
        "before": {
            "incarnation": before.incarnation.get(),
            "life": before.point.life.counter,
            "position": before.point.position.0,
        },
        "closed": closed.to_string(),
        "other": other,
        "shared_position": before.shared.map(|shared| shared.position.0),
    })
}

fn failure(error: Error) -> Failure {
    match error.kind() {
        ErrorKind::NoRight => {
            let todo = "join at the home itself (--via), as an operator: `thorp invite NAME --role operator`";
            Failure::new(error.to_string(), todo)
        }
        _ => error.into(),
    }
}

fn failure_of_store(error: OpenError) -> Failure {
    match error {
        OpenError::InUse { .. } => Failure::new(
            error.to_string(),
            "stop the home first, or name it and join there: `thorp confirm HOME --via ADDR`",
        ),
        OpenError::Damaged { .. } => Failure::new(
            error.to_string(),
            "`thorp salvage DIR INTO` copies what can be read",
        )
        .with(Code::Wrong),
        _ => Failure::new(error.to_string(), "give the directory of a stopped home"),
    }
}

const HELP: &str = "\
A home closes if it cannot prove that it continues its newest history, and lets in operators only. Open it if you know that
no other copy of the home runs, and that what was committed after its state is lost. Rights that were revoked after that
are back: look at them first. The home gets the next incarnation: its new segments and registrations have numbers that were
never given before. Its members learn that the home has gone back.

A home that runs is opened by an operator that has joined there. It begins anew, in the same process. A home that does not
run is opened in its directory, and lets everybody in from its next start on. `thorp audit` shows who opened it.

  thorp confirm alps                 # it runs; THORP_VIA and THORP_IDENTITY, or --via and --identity
  thorp confirm /srv/thorp/alps      # it does not run";
