//! Joining a village for one command.

use crate::failure::{Code, Failure};
use clap::Args;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;
use thorp_client::{COMMIT_TIMEOUT, JoinConfig, Member, Session};

/// Where to join, and as whom.
#[derive(Args, Clone, Debug)]
pub(crate) struct Via {
    /// The site or home to join: tcp://HOST:PORT or unix:/PATH.sock; after a comma, or given again, where else to turn to
    #[arg(
        long,
        value_name = "ADDR",
        env = "THORP_VIA",
        value_delimiter = ',',
        global = true
    )]
    pub(crate) via: Vec<String>,
    /// The directory of a certificate and its key, made by `thorp invite`
    #[arg(long, value_name = "DIR", env = "THORP_IDENTITY", global = true)]
    pub(crate) identity: Option<PathBuf>,
    /// How long to wait for an answer, in seconds; for a commit's, at least 30
    #[arg(long, value_name = "SECONDS", default_value_t = 10, global = true)]
    pub(crate) timeout: u64,
    /// Write a line for each page that is used, for `thorp plan replay`; several commands may write to one file
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) record_trace: Option<PathBuf>,
}

impl Via {
    /// Joins. A command needs little memory for pages.
    pub(crate) fn join(&self) -> Result<Member, Failure> {
        let Some((first, others)) = self.via.split_first() else {
            return Err(missing("no site or home was named", "--via", "THORP_VIA"));
        };
        let Some(identity) = &self.identity else {
            return Err(missing(
                "no identity was given",
                "--identity",
                "THORP_IDENTITY",
            ));
        };
        let timeout = Duration::from_secs(self.timeout.max(1));
        // A commit is sent only to who answered before; then giving up early would leave it open whether it was done.
        let session = Session::new()
            .fetch_timeout(timeout)
            .commit_timeout(timeout.max(COMMIT_TIMEOUT));
        let config = others
            .iter()
            .fold(JoinConfig::new(first), JoinConfig::or_at);
        let config = match &self.record_trace {
            Some(file) => config.record_trace(file),
            None => config,
        };
        let config = config
            .identity(identity)
            .name(format!("thorp-{}", std::process::id()))
            .cache_bytes(CACHE_BYTES)
            .join_timeout(timeout)
            .session(session);
        let waiting = Waiting::tell(&self.via.join(" and "), timeout);
        let member = Member::join(config)?;
        drop(waiting);
        Ok(member)
    }
}

/// While nobody answers, a person is told so. Told once; ends when it is dropped.
struct Waiting(#[expect(dead_code, reason = "it ends the thread by being dropped")] Sender<()>);

impl Waiting {
    fn tell(whom: &str, timeout: Duration) -> Self {
        let (sender, ended) = channel();
        let text = format!(
            "waiting for an answer from {whom} (at most {} s: --timeout)",
            timeout.as_secs()
        );
        thread::spawn(move || {
            if ended.recv_timeout(TOLD_AFTER) == Err(RecvTimeoutError::Timeout) {
                // Whoever reads no errors misses nothing.
                let _ = crate::text::note(&text);
            }
        });
        Waiting(sender)
    }
}

/// Nobody wants to read of shorter waits.
const TOLD_AFTER: Duration = Duration::from_secs(1);

fn missing(what: &str, flag: &str, variable: &str) -> Failure {
    let todo = format!("give {flag}, or set {variable}; `thorp home` prints both when it starts");
    Failure::new(what, todo).with(Code::Usage)
}

const CACHE_BYTES: usize = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        via: Via,
    }

    #[test]
    fn several_places_to_join_are_written_with_commas_or_one_by_one() {
        for given in [
            vec!["--via=a:1,unix:/b.sock"],
            vec!["--via", "a:1", "--via", "unix:/b.sock"],
        ] {
            let cli = Cli::parse_from([vec!["thorp"], given].concat());
            assert_eq!(cli.via.via, ["a:1", "unix:/b.sock"]);
        }
    }
}
