//! What the other processes of a measurement do.

use crate::Result;
use crate::process::{end, end_answering, end_with_parent, ready, role, wait_for_end};
use crate::village::{HOME, identity};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thorp_client::{JoinConfig, Member};
use thorp_model::Note;
use thorp_net::driver::{runtime, runtime_of};
use thorp_net::{
    Address, Config, Connection, FrameReceiver, FrameSender, Identity, LinkDelay, Listener,
    NodeRole, Role, dial,
};
use thorp_server::{
    Bytes, ChildDelay, HomeConfigFile, HomeServer, LinkLimits, ParentEntry, SiteConfigFile,
    SiteServer,
};

/// Plays a role if this process has one; then there is nothing else to do.
pub fn play() -> Result<bool> {
    let Some((role, arguments)) = role() else {
        return Ok(false);
    };
    end_with_parent()?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match (role.as_str(), arguments.as_slice()) {
        ("home", [dir, delays, limits]) => home(Path::new(dir), delays, limits)?,
        ("site", [dir, name, cache, delay, limits]) => {
            site(Path::new(dir), name, (cache, delay), limits)?
        }
        ("reader", [dir, parent, segment]) => reader(Path::new(dir), parent, segment)?,
        ("echo", [dir, bytes, delay]) => runtime()?.block_on(echo(dir, bytes, delay))?,
        _ => return Err(format!("no such role: {role} {arguments:?}").into()),
    }
    Ok(true)
}

fn home(dir: &Path, delays: &str, limits: &str) -> Result<()> {
    let mut config = HomeConfigFile {
        name: Some(HOME.to_owned()),
        data_dir: Some(dir.to_owned()),
        listen: vec![socket(dir, HOME)],
        http: None,
        ..HomeConfigFile::default()
    };
    for delay in delays.split(',').filter(|delay| !delay.is_empty()) {
        let (child, ms) = delay.split_once('=').ok_or("a delay is NAME=MS")?;
        config.child_delay.push(ChildDelay {
            child: child.to_owned(),
            one_way_ms: ms.parse()?,
        });
    }
    match limits.strip_prefix("lease=") {
        Some(ms) => config.limits.lease_ms = ms.parse()?,
        None => set_limits(&mut config.link, limits)?,
    }
    runtime()?.block_on(async {
        let server = HomeServer::start(config).await?;
        ready();
        server.run(end()).await;
        Ok(())
    })
}

/// As `MS,PERIODS,BYTES`, or `THREADS`; nothing leaves the defaults.
fn set_limits(link: &mut LinkLimits, limits: &str) -> Result<()> {
    let limits: Vec<&str> = limits.split(',').collect();
    if let [threads] = limits.as_slice()
        && !threads.is_empty()
    {
        link.threads = threads.parse()?;
    }
    if let [every, missed, queue] = limits.as_slice() {
        link.alive_ms = every.parse()?;
        link.alive_missed_max = missed.parse()?;
        link.queue = Bytes(queue.parse()?);
    }
    Ok(())
}

fn site(
    dir: &Path,
    name: &str,
    (cache_bytes, one_way_ms): (&str, &str),
    limits: &str,
) -> Result<()> {
    identity(dir, NodeRole::Site, name)?;
    let mut config = SiteConfigFile {
        name: Some(name.to_owned()),
        data_dir: Some(dir.to_owned()),
        identity_dir: Some(dir.join(name)),
        listen: vec![socket(dir, name)],
        http: None,
        ..SiteConfigFile::default()
    };
    config.limits.cache = Bytes(cache_bytes.parse()?);
    config.parent.push(ParentEntry {
        name: Some(HOME.to_owned()),
        addresses: vec![socket(dir, HOME)],
        one_way_ms: one_way_ms.parse()?,
    });
    set_limits(&mut config.link, limits)?;
    runtime_of(config.link.threads)?.block_on(async {
        let server = SiteServer::start(&config).await?;
        let handle = server.handle();
        ready();
        let cut_off = move || handle.notes().get(Note::ChildCutOff);
        server.run(end_answering(cut_off)).await;
        Ok(())
    })
}

/// Reads all of a segment, and keeps it.
fn reader(dir: &Path, parent: &str, segment: &str) -> Result<()> {
    let name = "reader";
    let address = socket(dir, parent).to_string();
    let config = JoinConfig::new(address).identity_of(identity(dir, NodeRole::Member, name)?);
    let member = Member::join(config.name(name))?;
    let segment = member.open(segment)?;
    let objects = member.transact(|tx| {
        let mut objects = 0u64;
        tx.scan(&segment, |_, _| {
            objects += 1;
            Ok(())
        })?;
        Ok(objects)
    })?;
    if objects == 0 {
        return Err("the reader found nothing to read".into());
    }
    ready();
    wait_for_end();
    member.close();
    Ok(())
}

/// Answers each frame with one of so many bytes, one caller after the other.
async fn echo(dir: &str, bytes: &str, one_way_ms: &str) -> Result<()> {
    let dir = Path::new(dir);
    let answer = vec![7; bytes.parse()?];
    let config = echo_config(one_way_ms.parse()?);
    let identity = Identity::load(dir.join(ECHO))?;
    let mut listener = Listener::bind(&socket(dir, ECHO), &identity, config).await?;
    ready();
    let serve = async {
        loop {
            let (sender, mut receiver) = listener.accept().await?.accept(b"")?.split();
            // A caller that is gone without a goodbye is gone, too.
            while let Ok(Some(_)) = receiver.recv().await {
                sender.try_send(answer.clone())?;
            }
        }
    };
    tokio::select! {
        served = serve => served,
        () = end() => Ok(()),
    }
}

/// Asks the echo.
pub struct Asker {
    sender: FrameSender,
    receiver: FrameReceiver,
}

impl Asker {
    /// Connects to the echo of a directory.
    pub async fn dial(dir: &Path, one_way_ms: u64) -> Result<Self> {
        let identity = identity(dir, NodeRole::Member, "asker")?;
        let config = echo_config(one_way_ms);
        let addresses = [socket(dir, ECHO)];
        let connection: Connection = dial(&addresses, &identity, None, b"", &config).await?;
        let (sender, receiver) = connection.split();
        Ok(Asker { sender, receiver })
    }

    /// One question of so many bytes, and the answer.
    pub async fn ask(&mut self, bytes: usize) -> Result<Vec<u8>> {
        self.sender.try_send(vec![1; bytes])?;
        Ok(self.receiver.recv().await?.ok_or("the echo has ended")?)
    }
}

/// The echo's name.
pub const ECHO: &str = "echo";

fn echo_config(one_way_ms: u64) -> Config {
    Config {
        delay: LinkDelay::new(Duration::from_millis(one_way_ms)),
        ..Config::new(Role::MEMBER)
    }
}

fn socket(dir: &Path, name: &str) -> Address {
    let path: PathBuf = dir.join(format!("{name}.sock"));
    Address::Unix(path)
}
