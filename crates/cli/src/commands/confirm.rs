//! `thorp confirm`: an operator opens a closed home.

use super::home::store_in;
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
    /// The name of a home that runs (reached as --via says); or the directory of one that does not, as ./alps
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
    match options.place() {
        Place::Stopped(dir) => options.stopped(&store_in(&dir)),
        Place::Running => options.running(),
    }
}

/// Where the home is that is to be opened.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// In a directory on this machine. Nobody runs it.
    Stopped(PathBuf),
    /// It runs, and is reached as a member reaches it.
    Running,
}

impl Options {
    /// A name with a slash is a directory. Without a slash it is one only if it is there, and nobody said where to join.
    fn place(&self) -> Place {
        let dir = PathBuf::from(&self.what);
        let is_dir = self.what.contains('/') || !self.via.is_said() && dir.is_dir();
        match is_dir {
            true => Place::Stopped(dir),
            false => Place::Running,
        }
    }

    /// Opens the store of a home that does not run.
    fn stopped(&self, dir: &Path) -> Result<(), Failure> {
        umask(Mode::RWXG | Mode::RWXO);
        let opening = StoreOptions {
            create: false,
            opening: Opening::Confirmed { apart: self.apart },
            ..StoreOptions::default()
        };
        let store = Store::open(dir, opening).map_err(failure_of_store)?;
        let incarnation = store.history().incarnation();
        let dir = dir.display();
        match self.json {
            true => say_json(&serde_json::json!({
                "dir": dir.to_string(),
                "incarnation": incarnation.get(),
            })),
            false => say(&format!("{dir} is open, with incarnation {incarnation}")),
        }
    }

    /// Somebody may have meant the directory of that name.
    fn joining(&self, failure: Failure) -> Failure {
        match store_in(Path::new(&self.what)).is_dir() {
            true => failure.or(format!(
                "to open the stopped home in ./{0}: `thorp confirm ./{0}`",
                self.what
            )),
            false => failure,
        }
    }

    /// Opens a home that runs.
    fn running(&self) -> Result<(), Failure> {
        let home = &self.what;
        let member = self.via.join().map_err(|failure| self.joining(failure))?;
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
            Failure::new(error.to_string(), todo).with(Code::NoRight)
        }
        _ => error.into(),
    }
}

fn failure_of_store(error: OpenError) -> Failure {
    match error {
        OpenError::InUse { .. } => Failure::new(
            error.to_string(),
            "stop the home first, or join there by its name: `thorp confirm NAME --via ADDR --identity OPERATOR`",
        ),
        OpenError::NotClosed { .. } => Failure::new(
            error.to_string(),
            "if it was restored from a backup all the same, start it once with `thorp home --restored`",
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
A home closes if it cannot prove that it continues its newest history, and lets in operators only. Open it if you know that \
no other copy of the home runs, and that what was committed after its state is lost. Rights that were revoked after that \
are back: look at them first. The home gets the next incarnation: its new segments and registrations have numbers that were \
never given before. Its members learn that the home has gone back.

A home that runs is opened by an operator that has joined there. It begins anew, in the same process. A home that does not \
run is opened in its directory, and lets everybody in from its next start on. `thorp audit` shows who opened it.

Examples:
  thorp confirm ./alps                 # it does not run: with a slash it is a directory
  thorp confirm alps --via 127.0.0.1:7420 --identity olga    # it runs";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        options: Options,
    }

    /// A place to join is named: then no directory of the same name is taken for the home.
    #[test]
    fn a_name_without_a_slash_is_that_of_a_running_home_if_there_is_somewhere_to_join() {
        assert!(Path::new("src").is_dir());
        let place = |args: &[&str]| {
            let cli = Cli::parse_from([&["confirm"], args].concat());
            cli.options.place()
        };
        assert_eq!(place(&["src", "--via=a:1"]), Place::Running);
        let stopped = Place::Stopped(PathBuf::from("./src"));
        assert_eq!(place(&["./src", "--via=a:1"]), stopped);
        assert_eq!(place(&["nowhere"]), Place::Running);
    }
}
