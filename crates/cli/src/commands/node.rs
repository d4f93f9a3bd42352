//! What homes and sites have in common on the command line.

use super::say;
use super::signals;
use crate::failure::{Code, Failure};
use crate::text;
use crate::text::pasted;
use clap::Args;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use thorp_net::{Address, Congestion, Identity};
use thorp_server::{
    Bytes, ChildDelay, ConfigError, HttpAt, HttpFor, LinkLimits, LogConfig, LogFormat, ServerError,
};
use thorp_store::OpenError;
use tokio::sync::oneshot;

/// Flags of both. What is not given stays as the file, or else the default, has it.
#[derive(Args, Debug)]
pub(super) struct Common {
    /// Read this TOML file first; flags override it
    #[arg(long, value_name = "FILE.toml")]
    pub(super) config: Option<PathBuf>,
    /// Print the configuration that would be used, as TOML, and end
    #[arg(long)]
    pub(super) print_config: bool,
    /// Where to listen: tcp://HOST:PORT or unix:/PATH.sock; may be given several times [default: all interfaces, tcp://0.0.0.0
    /// with port 7420 for a home and 7421 for a site]
    #[arg(long, value_name = "ADDR")]
    pub(super) listen: Vec<Address>,
    /// Where to serve /status, /metrics and /health: IP:PORT, or "off" [default: 127.0.0.1:7430 for a home, 127.0.0.1:7431
    /// for a site]; an address that other machines reach needs one of the next two flags
    #[arg(long, value_name = "ADDR")]
    pub(super) http: Option<HttpAt>,
    /// Answer there only operators, by TLS and their certificates
    #[arg(long, conflicts_with = "http_open_to_everybody")]
    pub(super) http_for_operators: bool,
    /// Answer there everybody that can reach it: names and addresses of all who are connected, without a question
    #[arg(long)]
    pub(super) http_open_to_everybody: bool,
    /// Its certificate and key, if not in `identity` in its directory
    #[arg(long, value_name = "DIR")]
    pub(super) identity: Option<PathBuf>,
    /// Memory for pages, as 1048576 or "256 MiB"
    #[arg(long, value_name = "SIZE")]
    pub(super) cache_bytes: Option<Bytes>,
    /// Delay what goes down to this child: plays a wide-area link; may be given several times
    #[arg(long, value_name = "CHILD=MS")]
    pub(super) link_delay: Vec<NameAnd<u64>>,
    /// How often to tell neighbours that this node is alive; the same at all nodes of a village [default: 1000]
    #[arg(long, value_name = "MS")]
    pub(super) alive_ms: Option<u64>,
    /// Give up a neighbour after so many of these periods without a word from it [default: 15]
    #[arg(long, value_name = "PERIODS")]
    pub(super) alive_missed_max: Option<u32>,
    /// How TCP decides how fast it sends: best (BBR if the system lets programs choose it), system, or a name [default: best]
    #[arg(long, value_name = "NAME")]
    pub(super) congestion: Option<Congestion>,
    /// Threads that read, write and encrypt; more than one is for nodes with more to do than a processor can [default: 1]
    #[arg(long, value_name = "COUNT")]
    pub(super) threads: Option<usize>,
    /// error, warn, info, debug or trace; single parts too: info,thorp_net=debug
    #[arg(long, value_name = "LEVEL")]
    pub(super) log_level: Option<String>,
    /// Tell in JSON what runs, once it does
    #[arg(long, conflicts_with = "print_config")]
    pub(super) json: bool,
    /// Log a JSON object in each line
    #[arg(long)]
    pub(super) log_json: bool,
    /// Shut down when standard input ends: for programs that start this one
    #[arg(long, hide = true)]
    pub(super) until_stdin_closes: bool,
}

/// `NAME=VALUE`.
#[derive(Clone, Debug)]
pub(super) struct NameAnd<T> {
    pub(super) name: String,
    pub(super) value: T,
}

impl<T: FromStr<Err: std::fmt::Display>> FromStr for NameAnd<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once('=')
            .ok_or("the name is missing: write NAME=VALUE")?;
        if name.is_empty() {
            return Err("the name is missing before the =".to_owned());
        }
        let value = value.parse().map_err(|error: T::Err| error.to_string())?;
        Ok(NameAnd {
            name: name.to_owned(),
            value,
        })
    }
}

/// The parts of a configuration that [`Common`] sets.
pub(super) struct Parts<'a> {
    pub(super) listen: &'a mut Vec<Address>,
    pub(super) http: &'a mut Option<SocketAddr>,
    pub(super) http_for: &'a mut HttpFor,
    pub(super) identity_dir: &'a mut Option<PathBuf>,
    pub(super) cache: &'a mut Bytes,
    pub(super) child_delay: &'a mut Vec<ChildDelay>,
    pub(super) link: &'a mut LinkLimits,
    pub(super) log: &'a mut LogConfig,
}

impl Common {
    /// Lays the flags over what the file said.
    pub(super) fn apply(&self, parts: Parts<'_>) {
        if !self.listen.is_empty() {
            parts.listen.clone_from(&self.listen);
        }
        if let Some(HttpAt(http)) = self.http {
            *parts.http = http;
        }
        if self.http_for_operators {
            *parts.http_for = HttpFor::Operators;
        }
        if self.http_open_to_everybody {
            *parts.http_for = HttpFor::Everybody;
        }
        if self.identity.is_some() {
            parts.identity_dir.clone_from(&self.identity);
        }
        if let Some(cache) = self.cache_bytes {
            *parts.cache = cache;
        }
        for delay in &self.link_delay {
            parts.child_delay.retain(|known| known.child != delay.name);
            parts.child_delay.push(ChildDelay {
                child: delay.name.clone(),
                one_way_ms: delay.value,
            });
        }
        if let Some(every) = self.alive_ms {
            parts.link.alive_ms = every;
        }
        if let Some(missed) = self.alive_missed_max {
            parts.link.alive_missed_max = missed;
        }
        if let Some(threads) = self.threads {
            parts.link.threads = threads;
        }
        if let Some(congestion) = &self.congestion {
            parts.link.congestion.clone_from(congestion);
        }
        if let Some(level) = &self.log_level {
            parts.log.level.clone_from(level);
        }
        if self.log_json {
            parts.log.format = LogFormat::Json;
        }
    }
}

/// Becomes ready when the process should end: by a signal, or as its starter wishes.
pub(super) fn shutdown(until_stdin_closes: bool) -> Result<Shutdown, Failure> {
    shutdown_or(until_stdin_closes, || {})
}

/// The same, with what is to be done before a second signal ends the process at once.
pub(super) fn shutdown_or(
    until_stdin_closes: bool,
    at_once: impl Fn() + Send + 'static,
) -> Result<Shutdown, Failure> {
    let (sender, receiver) = oneshot::channel();
    let sender = Arc::new(Mutex::new(Some(sender)));
    let from_stdin = Arc::clone(&sender);
    let mut again = false;
    signals::on_each(move || {
        // A second signal is from somebody who does not want to wait.
        if std::mem::replace(&mut again, true) {
            at_once();
            std::process::exit(130);
        }
        ring(&sender);
    })?;
    if until_stdin_closes {
        std::thread::spawn(move || {
            // An error is an end too.
            let _ = std::io::copy(&mut std::io::stdin().lock().by_ref(), &mut std::io::sink());
            ring(&from_stdin);
        });
    }
    Ok(Box::pin(async move {
        // The sender lives in the thread of the signals, which never ends.
        let _ = receiver.await;
    }))
}

/// What ends a server.
pub(super) type Shutdown = Pin<Box<dyn Future<Output = ()>>>;

fn ring(bell: &Mutex<Option<oneshot::Sender<()>>>) {
    let sender = bell.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(sender) = sender {
        // Nobody listens when the start has failed: then the process ends anyway.
        let _ = sender.send(());
    }
}

/// What a flag says, else what the file said, else the default.
pub(super) fn settle<T: Clone>(flag: Option<&T>, file: &mut Option<T>, default: impl Into<T>) {
    if let Some(flag) = flag {
        *file = Some(flag.clone());
    }
    file.get_or_insert_with(|| default.into());
}

/// Runs a server on a runtime of its own, with the logs set up, until it has shut down.
pub(super) fn serve<S, F>(
    common: &Common,
    (log, link): (&LogConfig, &LinkLimits),
    server: S,
) -> Result<(), Failure>
where
    S: FnOnce(Shutdown) -> F,
    F: Future<Output = Result<(), Failure>>,
{
    thorp_server::init_logs(log).map_err(|error| config_failure(&error))?;
    let runtime = thorp_server::runtime_of(link.threads)
        .map_err(|error| Failure::new(format!("the system gives no runtime: {error}"), ""))?;
    runtime.block_on(async { server(shutdown(common.until_stdin_closes)?).await })
}

/// What a server's refusal to start means to a person.
pub(super) fn refused(error: &ServerError) -> Failure {
    let todo = match error {
        ServerError::Config(_) => return config_failure_words(error.to_string()),
        ServerError::Identity(_) => {
            "give another --identity, or the --name that the certificate has; `thorp invite NAME --role ROLE` makes a new one"
        }
        ServerError::NoIdentity { .. } => {
            "`thorp invite NAME --role ROLE --dir HOME_DIR --out DIR` makes one; name it here with --identity DIR"
        }
        ServerError::NotOfTheirVillage { .. } => {
            "get one where the authority is (`thorp invite NAME --role home --out DIR`), and give it with --identity DIR; the first home of \
             a new village is started once without --other-home"
        }
        ServerError::Listen { .. } => "choose another address with --listen, or stop what is there",
        ServerError::Http { .. } => {
            "another home or site of this machine may serve its status there: choose another address with --http IP:PORT, or \
             --http off"
        }
        ServerError::Store(OpenError::InUse { .. }) => {
            "`thorp status` tells how it does; another home needs a --dir of its own"
        }
        ServerError::Store(OpenError::Damaged { .. }) => {
            "`thorp check DIR` tells what is wrong; `thorp salvage DIR INTO` copies what can be read"
        }
        ServerError::Store(_) | ServerError::Records { .. } => {
            "give another --dir; `thorp check DIR` tells what is wrong with this one"
        }
        ServerError::OtherHome { .. } => "give the --name or the --dir that belongs to it",
        _ => "",
    };
    Failure::new(error.to_string(), todo)
}

/// What is wrong with a configuration.
pub(super) fn config_failure(error: &ConfigError) -> Failure {
    config_failure_words(error.to_string())
}

fn config_failure_words(what: String) -> Failure {
    let todo = "mend it; --help lists the flags, --print-config the whole configuration";
    Failure::new(what, todo).with(Code::Usage)
}

/// Where it listens.
pub(super) fn say_listening(addresses: &[Address]) -> Result<(), Failure> {
    for address in addresses {
        say(&format!("  it listens on {address}"))?;
    }
    Ok(())
}

/// Where it listens, for a program.
pub(super) fn each(addresses: &[Address]) -> Vec<String> {
    addresses.iter().map(ToString::to_string).collect()
}

/// A directory, for a program that runs elsewhere on this machine.
pub(super) fn shown(dir: &Path) -> String {
    text::absolute(dir).display().to_string()
}

/// The village of a node, as the certificate in its directory names it.
pub(super) fn village(identity: Result<PathBuf, ConfigError>) -> Result<String, Failure> {
    let dir = identity.map_err(|error| config_failure(&error))?;
    let identity = Identity::load(&dir).map_err(|error| refused(&error.into()))?;
    Ok(identity.village().to_owned())
}

/// How to use it, and the last line of a start: everything listens now. `local` is the identity of a member on this
/// machine.
pub(super) fn say_ready(
    addresses: &[Address],
    local: Option<&Path>,
    (http, whom): (Option<SocketAddr>, HttpFor),
) -> Result<(), Failure> {
    if let Some(address) = addresses.first() {
        let here = address.to_string().replace("0.0.0.0", "127.0.0.1");
        let identity = match local {
            Some(identity) => {
                say("  use it from this machine:")?;
                pasted(identity)
            }
            None => {
                say(
                    "  use it with the identity of a member, made by `thorp invite NAME --out NAME-identity`:",
                )?;
                "NAME-identity".to_owned()
            }
        };
        say(&format!(
            "    export THORP_VIA={here} THORP_IDENTITY={identity}"
        ))?;
    }
    if let Some(address) = http {
        say("  see how it does:")?;
        let identity = match whom {
            HttpFor::Operators => " --identity OPERATOR-identity",
            HttpFor::Machine | HttpFor::Everybody => "",
        };
        say(&format!("    thorp status {address}{identity}"))?;
    }
    say(&format!("{}{}", crate::demo::READY, HttpAt(http)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_printed_so_that_a_shell_takes_it() {
        assert_eq!(pasted(Path::new("/srv/alps-1")), "/srv/alps-1");
        assert_eq!(pasted(Path::new("/my village")), "'/my village'");
        assert_eq!(pasted(Path::new("/it's")), r"'/it'\''s'");
    }
}
