//! A PostgreSQL server of its own for each test, on a socket in a temporary directory.

use std::error::Error;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

/// A server refuses to run as root: then it runs as this user (`nobody`).
const NOBODY: u32 = 65_534;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server. It is stopped when this is dropped.
pub(crate) struct Database {
    directory: TempDir,
    server: Child,
    programs: PathBuf,
    settings: Vec<String>,
}

/// A program that is stopped when this is dropped.
pub(crate) struct Running(Child);

impl Database {
    /// Starts a server. None: this machine has none, and the test says so.
    pub(crate) async fn start() -> Option<Database> {
        let settings = [
            "wal_level=logical",
            "restart_after_crash=off",
            "max_prepared_transactions=2",
        ];
        Database::start_with(&settings).await
    }

    /// The same with these settings.
    pub(crate) async fn start_with(settings: &[&str]) -> Option<Database> {
        let Some(programs) = programs() else {
            thorp_testing::report_skipped(env!("CARGO_CRATE_NAME"), "a PostgreSQL server");
            return None;
        };
        let settings = settings.iter().map(|setting| (*setting).to_owned());
        let database = Database::of(&programs, settings.collect()).await;
        Some(database.expect("a server"))
    }

    async fn of(programs: &Path, settings: Vec<String>) -> Result<Database, Box<dyn Error>> {
        // Where `nobody` gets to.
        let directory = match is_root() {
            true => tempfile::tempdir_in("/tmp")?,
            false => tempfile::tempdir()?,
        };
        let place = directory.path();
        if is_root() {
            fs::set_permissions(place, fs::Permissions::from_mode(0o755))?;
            chown(place, Some(NOBODY), Some(NOBODY))?;
        }
        let data = place.join("data");
        let made = as_nobody(&programs.join("initdb"))
            .args([
                "--auth=trust",
                "--username=postgres",
                "--no-sync",
                "--pgdata",
            ])
            .arg(&data)
            .stdout(Stdio::null())
            .status()?;
        assert!(made.success(), "initdb: {made}");
        let programs = programs.to_owned();
        let server = server(&programs, place, &settings)?;
        let mut database = Database {
            directory,
            server,
            programs,
            settings,
        };
        database.until_it_runs().await?;
        Ok(database)
    }

    async fn until_it_runs(&mut self) -> Result<(), Box<dyn Error>> {
        let end = Instant::now() + PATIENCE;
        while self.try_connect().await.is_err() {
            assert!(self.server.try_wait()?.is_none(), "the server has ended");
            assert!(Instant::now() < end, "the server does not start");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Starts the server again after it has ended.
    pub(crate) async fn start_again(&mut self) {
        let started = server(&self.programs, self.directory.path(), &self.settings);
        self.server = started.expect("a server");
        self.until_it_runs().await.expect("it runs");
    }

    /// Waits until the server has ended by itself.
    pub(crate) async fn until_it_has_ended(&mut self) {
        let end = Instant::now() + PATIENCE;
        while self.server.try_wait().expect("a process").is_none() {
            assert!(Instant::now() < end, "the server does not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// How it is reached as another role.
    pub(crate) fn address_of(&self, role: &str) -> String {
        self.address()
            .replace("user=postgres", &format!("user={role}"))
    }

    /// How it is reached.
    pub(crate) fn address(&self) -> String {
        let place = self.directory.path().display();
        format!("host={place} user=postgres dbname=postgres")
    }

    /// A session of the application.
    pub(crate) async fn connect(&self) -> Client {
        self.try_connect().await.expect("a session")
    }

    /// A session of another database there.
    pub(crate) async fn connect_to(&self, name: &str) -> Client {
        let address = self
            .address()
            .replace("dbname=postgres", &format!("dbname={name}"));
        let connected = tokio_postgres::connect(&address, NoTls).await;
        let (client, connection) = connected.expect("a session");
        tokio::spawn(connection);
        client
    }

    /// Another standby, with this name, that says at once that it has everything.
    pub(crate) fn standby(&self, name: &str) -> Running {
        let place = self.directory.path();
        let kept = place.join("wal");
        fs::create_dir(&kept).expect("a directory");
        if is_root() {
            chown(&kept, Some(NOBODY), Some(NOBODY)).expect("a directory of its own");
        }
        let child = as_nobody(&self.programs.join("pg_receivewal"))
            .args(["--synchronous", "--username=postgres", "--host"])
            .arg(place)
            .arg("--directory")
            .arg(kept)
            .env("PGAPPNAME", name)
            .stderr(Stdio::null())
            .spawn();
        Running(child.expect("a standby"))
    }

    /// Another program that reads a slot.
    pub(crate) fn logical_reader(&self, slot: &str) -> Running {
        let child = as_nobody(&self.programs.join("pg_recvlogical"))
            .args([
                "--start",
                "--no-loop",
                "--file=/dev/null",
                "--username=postgres",
            ])
            .args(["--dbname=postgres", "--option=proto_version=1"])
            .arg("--option=publication_names=thorp")
            .arg(format!("--slot={slot}"))
            .arg("--host")
            .arg(self.directory.path())
            .stderr(Stdio::null())
            .spawn();
        Running(child.expect("a reader"))
    }

    async fn try_connect(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(&self.address(), NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn server(programs: &Path, place: &Path, settings: &[String]) -> io::Result<Child> {
    let mut server = as_nobody(&programs.join("postgres"));
    server
        .arg("-D")
        .arg(place.join("data"))
        .arg("-k")
        .arg(place);
    server.args(["-c", "listen_addresses="]);
    for setting in settings {
        server.args(["-c", setting]);
    }
    server.stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A program that ends with the thread that starts it, also if a test is killed.
fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.current_dir("/").args(["--pdeathsig", "INT"]);
    if is_root() {
        let nobody = [
            format!("--reuid={NOBODY}"),
            format!("--regid={NOBODY}"),
            String::from("--clear-groups"),
        ];
        command.args(nobody);
    }
    command.arg(program);
    command
}

/// The directory of the newest server that is installed.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let programs = versions.flatten().map(|version| version.path().join("bin"));
    programs.filter(|bin| bin.join("postgres").exists()).max()
}
