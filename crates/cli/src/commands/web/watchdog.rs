//! `thorp web watchdog`: lets commits go on without a keeper that is gone.

use super::usage;
use crate::commands::node::shutdown;
use crate::commands::{say, say_json};
use crate::failure::Failure;
use clap::Args;
use thorp_web::{Postgres, Watched, watch_over};
use tokio::sync::watch;

/// What `thorp web watchdog` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The database on this machine, as postgresql:///shop; the role that `thorp web setup` made is enough
    #[arg(
        long,
        value_name = "URL",
        env = "THORP_POSTGRES",
        hide_env_values = true
    )]
    postgres: String,
    /// The --name of `thorp web`
    #[arg(long, value_name = "NAME", default_value = "thorp")]
    name: String,
    /// Tell in JSON that it runs, once it does
    #[arg(long)]
    json: bool,
    /// Shut down when standard input ends: for programs that start this one
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

/// Runs until it is told to end.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let source = Postgres::new(&options.postgres, &options.name).map_err(usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| Failure::new(format!("the system gives no runtime: {error}"), ""))?;
    runtime.block_on(async {
        let shutdown = shutdown(options.until_stdin_closes)?;
        let (says, watched) = watch::channel(Watched::Well);
        let (_stop, stopped) = watch::channel(false);
        match options.json {
            true => say_json(&serde_json::json!({ "name": options.name }))?,
            false => say(&format!("ready: it watches over {}", options.name))?,
        }
        tokio::select! {
            () = watch_over(source, says, stopped) => {}
            () = tell(watched) => {}
            () = shutdown => {}
        }
        Ok(())
    })
}

/// Says what it has done.
async fn tell(mut watched: watch::Receiver<Watched>) {
    while watched.changed().await.is_ok() {
        match &*watched.borrow_and_update() {
            Watched::Well => eprintln!("it can look again"),
            Watched::LetGo(why) => eprintln!("commits go on without the keeper: {why}"),
            Watched::Blind(why) => eprintln!("it cannot look: {why}"),
        }
    }
}

const HELP: &str = "\
Run it on the database's machine, beside the database. When `thorp web` is gone, or a commit has waited \
for it for two seconds, it lets commits go on: first it makes sure that nobody serves hits any more, \
which takes four seconds. `thorp web` comes back by itself.

Examples:
  thorp web watchdog --postgres postgresql:///shop";
