//! A keeper of requests, and proxies beside it, as processes of their own: this test program, started again.

use rustix::process::{Pid, Signal, kill_process};
use std::env;
use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use thorp_versions::{Followed, Kept, Writer};
use thorp_web::{
    Health, Proxy, Recipe, Report, Requests, follow, keep_requests, serve, terms_of_requests,
};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

const TABLE: &str = "THORP_TEST_REQUESTS_TABLE";
const LIFE: &str = "THORP_TEST_REQUESTS_LIFE";
const ORIGIN: &str = "THORP_TEST_REQUESTS_ORIGIN";
const ADDRESS: &str = "THORP_TEST_REQUESTS_ADDRESS";
const RECIPE_FILE: &str = "THORP_TEST_REQUESTS_RECIPE";
const BUG: &str = "THORP_TEST_REQUESTS_BUG";

const NAME: &str = "shop";
const CACHE_BYTES: u64 = 16 << 20;

/// How long anything may take that does come.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const RECIPE: &str = r#"
    [[routes]]
    path = "/items/{id}"
    keys = ["item:{id}"]
    changes = ["item:{id}"]
"#;

/// A process that is killed when this is dropped.
pub(crate) struct Servant(Child);

impl Servant {
    /// A keeper of a table. No request is at work for longer than its life.
    pub(crate) fn keeper(table: &Path, life: Duration) -> Servant {
        Servant::keeper_with(table, life, None)
    }

    /// The same with a rule switched off.
    pub(crate) fn keeper_with(table: &Path, life: Duration, bug: Option<&str>) -> Servant {
        let mut command = command("servants::the_process_of_a_keeper_of_requests", bug);
        command.env(TABLE, table);
        command.env(LIFE, life.as_millis().to_string());
        Servant(command.spawn().expect("a keeper"))
    }

    /// A proxy beside a table, and where it is.
    pub(crate) async fn proxy(table: &Path, origin: &str) -> (Servant, String) {
        Servant::proxy_with(table, origin, RECIPE, None).await
    }

    /// The same with another recipe, and a rule switched off.
    pub(crate) async fn proxy_with(
        table: &Path,
        origin: &str,
        recipe: &str,
        bug: Option<&str>,
    ) -> (Servant, String) {
        let recipe_file = table.with_extension("toml");
        fs::write(&recipe_file, recipe).expect("a file");
        let place = table.with_extension("address");
        let _ = fs::remove_file(&place);
        let mut command = command("servants::the_process_of_a_proxy", bug);
        command.env(TABLE, table).env(ORIGIN, origin);
        command.env(ADDRESS, &place).env(RECIPE_FILE, &recipe_file);
        let servant = Servant(command.spawn().expect("a proxy"));
        let end = Instant::now() + PATIENCE;
        loop {
            if let Ok(address) = fs::read_to_string(&place)
                && address.parse::<SocketAddr>().is_ok()
            {
                return (servant, address);
            }
            assert!(Instant::now() < end, "the proxy does not come");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(self.0.id() as i32).expect("a process");
        kill_process(process, signal).expect("a signal");
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().expect("it is there");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Servant {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The process ends when its standard input ends: also if this one is killed.
fn command(test: &str, bug: Option<&str>) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command
        .args(["--exact", test, "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    if let Some(bug) = bug {
        command.env(BUG, bug);
    }
    command
}

/// Returns when the other process is gone, or wants no more of this one.
async fn until_stdin_ends() {
    let (says, ended) = oneshot::channel();
    thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = says.send(());
    });
    let _ = ended.await;
}

/// Switches off what this process was told.
fn plant() {
    #[cfg(feature = "planted-bugs")]
    if let Ok(name) = env::var(BUG) {
        let mut all = thorp_versions::Bug::ALL.iter();
        let bug = all.find(|bug| bug.name() == name).expect("a bug");
        thorp_versions::plant(Some(*bug));
    }
}

/// A proxy in this process.
pub(crate) struct Beside {
    pub(crate) address: String,
    pub(crate) requests: Requests,
    stop: watch::Sender<bool>,
}

impl Beside {
    pub(crate) async fn start(table: &Path, origin: &str) -> Beside {
        Beside::with(table, origin, RECIPE).await
    }

    pub(crate) async fn with(table: &Path, origin: &str, recipe: &str) -> Beside {
        let reader = Arc::new(Followed::new(table.to_owned(), terms_of_requests(NAME)));
        let recipe = Arc::new(Recipe::parse(recipe).expect("a recipe"));
        let requests = Requests::beside(Arc::clone(&reader));
        let proxy = Proxy::new(origin, recipe, Arc::clone(&reader), CACHE_BYTES);
        let proxy = proxy.expect("an origin").with_requests(requests.clone());
        let (stop, stopped) = watch::channel(false);
        let (says, _) = watch::channel(Health::Live);
        tokio::spawn(follow(reader, None, says, stopped.clone()));
        let (link, table, stops) = (requests.clone(), table.to_owned(), stopped.clone());
        tokio::spawn(async move { link.run(&table, stops).await });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        tokio::spawn(serve(listener, Arc::new(proxy), stopped));
        Beside {
            address,
            requests,
            stop,
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// It tests nothing: it is the keeper's process, if it is told of which table.
#[test]
fn the_process_of_a_keeper_of_requests() {
    let (Ok(table), Ok(life)) = (env::var(TABLE), env::var(LIFE)) else {
        return;
    };
    let life = Duration::from_millis(life.parse().expect("a number"));
    plant();
    runtime().block_on(keeps(&PathBuf::from(table), life));
}

async fn keeps(table: &Path, life: Duration) {
    let id = u64::from(std::process::id());
    let kept = Kept::make(table, terms_of_requests(NAME), id).expect("no other keeper");
    let (says, _report) = watch::channel(Report::new());
    let (_stop, stopped) = watch::channel(false);
    tokio::select! {
        kept = keep_requests(table, Writer::new(kept), life, says, stopped) => kept.expect("it goes on"),
        () = until_stdin_ends() => {}
    }
}

/// It tests nothing: it is a proxy's process, if it is told where.
#[test]
fn the_process_of_a_proxy() {
    let (Ok(table), Ok(origin)) = (env::var(TABLE), env::var(ORIGIN)) else {
        return;
    };
    let place = env::var(ADDRESS).expect("a file for its address");
    let recipe = env::var(RECIPE_FILE).expect("a file with its recipe");
    let recipe = fs::read_to_string(recipe).expect("a file");
    plant();
    runtime().block_on(async {
        let beside = Beside::with(Path::new(&table), &origin, &recipe).await;
        fs::write(place, &beside.address).expect("a file");
        until_stdin_ends().await;
    });
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime")
}
