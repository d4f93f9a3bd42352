//! Joining a village for one command.

use crate::commands::dev_village;
use crate::failure::{Code, Failure};
use crate::stream::LARGE_BYTES;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use thorp_client::{
    Contexts, Given, JoinConfig, LEAVE_TIMEOUT, LockNumber, Member, Origin, Session, Whereabouts,
};

/// Where to join, and as whom. A flag goes before a variable, and a variable goes before the current context.
#[derive(Args, Clone, Debug)]
pub(crate) struct Via {
    /// The site or home to join: tcp://HOST:PORT or unix:/PATH.sock; after a comma, or given again, where else to turn to [env: THORP_VIA]
    #[arg(long, value_name = "ADDR", value_delimiter = ',', global = true)]
    pub(crate) via: Vec<String>,
    /// The directory of a certificate and its key, made by `thorp invite` [env: THORP_IDENTITY]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) identity: Option<PathBuf>,
    /// The context that says both, in place of the current one [env: THORP_CONTEXT]
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) context: Option<String>,
    /// How long the command may take, in seconds; of one that goes on for long (watch, ifc, dump, load, bench, large
    /// values), how long each answer may
    #[arg(long, value_name = "SECONDS", default_value_t = 10, global = true)]
    pub(crate) timeout: u64,
    /// Write a line for each page that is used, for `thorp plan replay`; several commands may write to one file
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) record_trace: Option<PathBuf>,
}

impl Via {
    /// Joins for a command that has one deadline for all: joining, reading, and the outcome of a commit.
    pub(crate) fn join(&self) -> Result<Member, Failure> {
        self.join_in(Session::new().deadline(Instant::now() + self.patience()))
    }

    /// Joins for one command, as a member with a log in this directory.
    pub(crate) fn join_with_log(&self, log: Option<&Path>) -> Result<Member, Failure> {
        let Some(log) = log else {
            return self.join();
        };
        let session = Session::new().deadline(Instant::now() + self.patience());
        let (found, timeout) = (self.find()?, self.patience());
        let waiting = Waiting::tell(&found.via.join(" and "), timeout);
        let member = Member::join(self.config(found, timeout, session)?.log(log))?;
        drop(waiting);
        Ok(member)
    }

    /// Joins for a command that goes on for as long as it has something to do, and waits so long for each answer.
    pub(crate) fn join_for_long(&self) -> Result<Member, Failure> {
        self.join_in(Session::new())
    }

    /// The session for a value of so many bytes. A large one may take as long as it makes progress.
    pub(crate) fn session_for(&self, bytes: u64, member: &Member) -> Session {
        let timeout = self.patience();
        match bytes <= LARGE_BYTES {
            true => member.session(),
            false => Session::new()
                .fetch_timeout(timeout)
                .commit_timeout(timeout),
        }
    }

    /// Joins where somebody has found that it is to, and goes on until then.
    pub(crate) fn join_at(&self, found: Whereabouts, deadline: Instant) -> Result<Member, Failure> {
        let session = Session::new().deadline(deadline);
        let left = deadline.saturating_duration_since(Instant::now());
        self.join_found(found, left, session)
    }

    /// How long a command may take.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(self.timeout.clamp(1, TIMEOUT_MAX))
    }

    fn join_in(&self, session: Session) -> Result<Member, Failure> {
        let found = self.find()?;
        self.join_found(found, self.patience(), session)
    }

    /// Where to join. It is remembered for [`explained`].
    fn find(&self) -> Result<Whereabouts, Failure> {
        let (found, origins) = Whereabouts::find_with_origins(self.given())?;
        let (by, context) = match origins.via {
            Origin::Flag => ("--via".to_owned(), None),
            Origin::Variable => ("THORP_VIA".to_owned(), None),
            Origin::Context { name, .. } => (format!("context {name}"), Some(name)),
        };
        let at = format!("joined at {}, by {by}", found.via.join(" and "));
        // A command joins at one place.
        let _ = JOINED.set(Joined { at, context });
        Ok(found)
    }

    fn join_found(
        &self,
        found: Whereabouts,
        timeout: Duration,
        session: Session,
    ) -> Result<Member, Failure> {
        let waiting = Waiting::tell(&found.via.join(" and "), timeout);
        let member = Member::join(self.config(found, timeout, session)?)?;
        drop(waiting);
        Ok(member)
    }

    /// How each of several members joins that go on for as long as there is something to do.
    pub(crate) fn config_for_long(&self) -> Result<JoinConfig, Failure> {
        let found = self.find()?;
        self.config(found, self.patience(), Session::new())
    }

    /// A command needs little memory for pages. Below `thorp lock` it writes under the lock of that.
    fn config(
        &self,
        found: Whereabouts,
        timeout: Duration,
        session: Session,
    ) -> Result<JoinConfig, Failure> {
        let session = session.fetch_timeout(timeout).commit_timeout(timeout);
        let config = JoinConfig::found(found);
        let config = match &self.record_trace {
            Some(file) => config.record_trace(file),
            None => config,
        };
        let config = locks()?.into_iter().fold(config, JoinConfig::under);
        let config = config
            .name(format!("thorp-{}", std::process::id()))
            .cache_bytes(CACHE_BYTES)
            .join_timeout(timeout)
            .leave_timeout(timeout.min(LEAVE_TIMEOUT))
            .session(session);
        Ok(config)
    }

    /// Whether a flag or a variable says where to join.
    pub(crate) fn is_said(&self) -> bool {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let by_flag = !self.via.is_empty() || self.context.is_some();
        by_flag || is_set("THORP_VIA") || is_set("THORP_CONTEXT")
    }

    /// Where other processes join that are started from here, whatever becomes of the current context.
    pub(crate) fn pinned(&self) -> Result<Pinned, Failure> {
        let found = Whereabouts::find(self.given())?;
        let context = match &self.context {
            Some(name) => Some(name.clone()),
            None => Contexts::of_user()
                .ok()
                .and_then(|all| all.current().ok().flatten()),
        };
        Ok(Pinned {
            found,
            context,
            is_chosen: self.context.is_some(),
        })
    }

    /// What the flags say.
    pub(crate) fn given(&self) -> Given {
        Given {
            via: self.via.clone(),
            identity: self.identity.clone(),
            context: self.context.clone(),
        }
    }
}

/// Where to join, and as whom, for processes that are started from here.
pub(crate) struct Pinned {
    found: Whereabouts,
    context: Option<String>,
    is_chosen: bool,
}

impl Pinned {
    /// Flags of the process still go before that.
    pub(crate) fn pass_on(&self, command: &mut Command) {
        command.env("THORP_VIA", self.found.via.join(","));
        command.env("THORP_IDENTITY", &self.found.identity);
        let is_set = std::env::var_os("THORP_CONTEXT").is_some_and(|name| !name.is_empty());
        if let Some(name) = &self.context
            && (self.is_chosen || !is_set)
        {
            command.env("THORP_CONTEXT", name);
        }
    }
}

/// The variable in which `thorp lock` names its locks to what it runs.
pub(crate) const LOCK_VARIABLE: &str = "THORP_LOCK";

/// The locks of the `thorp lock` below which this command runs.
pub(crate) fn locks() -> Result<Vec<LockNumber>, Failure> {
    let said = std::env::var(LOCK_VARIABLE).unwrap_or_default();
    let numbers = said.split(',').filter(|number| !number.is_empty());
    let numbers = numbers.map(str::parse);
    numbers
        .collect::<Result<_, thorp_client::Error>>()
        .map_err(|wrong| {
            let todo = format!("unset {LOCK_VARIABLE}, which `thorp lock` sets");
            Failure::new(wrong.to_string(), todo).with(Code::Usage)
        })
}

/// A failure because there is no home of a name says where the command has joined, and which context may be meant. One because
/// nobody answers says how the village of a developer is started again.
pub(crate) fn explained(failure: Failure) -> Failure {
    if failure.code() == Code::Unreachable {
        let joined = JOINED.get().and_then(|joined| joined.context.as_deref());
        let context = joined.and_then(|name| Contexts::of_user().ok()?.get(name).ok());
        return match context.as_ref().and_then(dev_village::restart) {
            Some(todo) => failure.or(todo),
            None => failure,
        };
    }
    let Some(home) = unknown_home(failure.what()).map(ToOwned::to_owned) else {
        return failure;
    };
    let failure = match JOINED.get() {
        Some(joined) => failure.and(&joined.at),
        None => failure,
    };
    let names = Contexts::of_user().and_then(|contexts| contexts.names());
    match names.is_ok_and(|names| names.contains(&home)) {
        true => failure.or(format!("there is a context {home}: --context {home}")),
        false => failure,
    }
}

/// The home of which the client library says that there is none.
fn unknown_home(what: &str) -> Option<&str> {
    let (_, rest) = what.split_once("there is no home called ")?;
    rest.split(';').next()
}

/// Where this command joins, and what said so.
struct Joined {
    at: String,
    context: Option<String>,
}

static JOINED: OnceLock<Joined> = OnceLock::new();

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

const CACHE_BYTES: usize = 32 << 20;
/// A year: the clock does not reach for ever.
const TIMEOUT_MAX: u64 = 365 * 24 * 60 * 60;

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
    fn the_unknown_home_is_the_one_that_the_library_names() {
        let what = "there is no home called play; known are: dev";
        assert_eq!(unknown_home(what), Some("play"));
        assert_eq!(unknown_home("there is no home called play"), Some("play"));
        assert_eq!(unknown_home("alps is not reached"), None);
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
