//! Network namespaces: places on one machine with a network of their own.

use crate::{Outcome, system};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::OsStr;
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;

/// Where `ip netns` keeps them.
pub(super) const DIRECTORY: &str = "/var/run/netns";

/// A spoke's network namespace. It ends with its [`super::Wan`], and so do all processes in it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    spoke: String,
    address: Ipv4Addr,
    file: OwnedFd,
}

impl Namespace {
    pub(super) fn create(name: String, spoke: &str, address: Ipv4Addr) -> Outcome<Self> {
        ip(&["netns", "add", &name])?;
        let path = Path::new(DIRECTORY).join(&name);
        let file = File::open(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        let namespace = Namespace {
            name,
            spoke: spoke.to_owned(),
            address,
            file: file.into(),
        };
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// As `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// As the plan knows it.
    pub fn spoke(&self) -> &str {
        &self.spoke
    }

    /// Its address on the network.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// A program that will run here, started like any other. In a process group of its own: a Ctrl-C is the lab's, which ends
    /// all that run here when it ends itself, however it ends.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Outcome<Command> {
        let mut command = Command::new(program);
        system::begin_in(&mut command, self.file.try_clone()?);
        command.process_group(0);
        Ok(command)
    }

    /// Runs this here, in a thread of its own. Sockets stay where they were made: they can be carried out and used anywhere.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Outcome<T> {
        let entered = thread::scope(|scope| {
            let inside = scope.spawn(|| {
                move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))?;
                Ok::<T, rustix::io::Errno>(work())
            });
            inside.join()
        });
        let result = entered.map_err(|_| format!("what ran in {} has panicked", self.name))?;
        Ok(result.map_err(|why| format!("{} cannot be entered: {why}", self.name))?)
    }

    /// Runs `ip` with these arguments on this namespace.
    pub(super) fn ip(&self, arguments: &[&str]) -> Outcome<()> {
        ip(&[&["-n", self.name.as_str()], arguments].concat())
    }
}

fn ip(arguments: &[&str]) -> Outcome<()> {
    let run = Command::new("ip").args(arguments).output();
    let output = run.map_err(|why| format!("ip does not run: {why}; install iproute2"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("ip {}: {}", arguments.join(" "), why.trim()).into());
    }
    Ok(())
}
