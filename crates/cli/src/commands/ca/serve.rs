//! `thorp ca serve`: the authority's process.

use crate::commands::node::{shown, shutdown};
use crate::commands::{say, say_json};
use crate::failure::{Code, Failure};
use clap::Args;
use std::path::PathBuf;
use thorp_net::{Address, AuthorityServer, CertificateAuthority};
use thorp_server::{LogConfig, init_logs};

/// What `thorp ca serve` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The directory of the authority, or of the home that made the village
    #[arg(value_name = "DIR", default_value = crate::commands::home::DEFAULT_DIR)]
    dir: PathBuf,
    /// Where to listen: tcp://HOST:PORT or unix:/PATH.sock
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7440")]
    listen: Address,
    /// The address that nodes call, if it is another one
    #[arg(long, value_name = "ADDR")]
    public: Option<Address>,
    /// Tell in JSON where it answers, once it does
    #[arg(long)]
    json: bool,
    /// Shut down when standard input ends: for programs that start this one
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

/// Runs until it is told to end.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let failed = |error: String| {
        let todo = "give the authority's directory, and an address that is free with --listen";
        Failure::new(error, todo)
    };
    // A log that cannot begin is no reason to let nobody in.
    let _ = init_logs(&LogConfig::default());
    if options.public.is_none() && options.listen.is_everywhere() {
        let what = format!("no node can call {}", options.listen);
        let todo =
            "say with --public which address nodes call, as tcp://authority.example.org:7440";
        return Err(Failure::new(what, todo).with(Code::Usage));
    }
    let authority = CertificateAuthority::open(CertificateAuthority::find(&options.dir));
    let authority = authority.map_err(|error| failed(error.to_string()))?;
    let village = authority.village().to_owned();
    let runtime = thorp_server::runtime().map_err(|error| failed(error.to_string()))?;
    runtime.block_on(async {
        let public = options.public.as_ref();
        let server = AuthorityServer::bind(authority, &options.listen, public).await;
        let server = server.map_err(|error| failed(error.to_string()))?;
        let public = public.unwrap_or(server.address());
        // Before anybody is told that it answers: who reads that may end it at once.
        let shutdown = shutdown(options.until_stdin_closes)?;
        match options.json {
            true => say_json(&serde_json::json!({
                "village": village,
                "dir": shown(&options.dir),
                "address": public.to_string(),
            }))?,
            false => welcome(&village, public)?,
        }
        server.run(shutdown).await;
        Ok(())
    })
}

/// Tells how nodes come in.
fn welcome(village: &str, public: &Address) -> Result<(), Failure> {
    say(&format!(
        "the authority of village {village} answers at {public}"
    ))?;
    say("  let a node in, and run what it prints on the node's machine:")?;
    say("    thorp invite NAME --role ROLE --dir DIR")?;
    say("ready")
}

const HELP: &str = "\
Runs beside the authority's directory, on any machine. Nodes need it to join with a token, and to renew \
their certificates in the last third of their lives. While it does not run, nobody with a good certificate \
is affected. --listen with 0.0.0.0 needs --public. SIGTERM and SIGINT end it.

Examples:
  thorp ca serve village --listen 127.0.0.1:7440";
