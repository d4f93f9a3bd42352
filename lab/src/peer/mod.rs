//! Other systems that do the same work over the same link.
//!
//! A [`Peer`] says how it is installed, how its server is started and how a client of it is; the client obeys the words that
//! `thorp-lab-worker` obeys (`build SIZE`, `run T1`, `run T2b`) and answers with the same figures. To add one: implement
//! it, and put it into [`PEERS`].

mod against;
mod told;
mod zeo;

pub use against::{PeerRun, against};
pub use zeo::Zeo;

use crate::Outcome;
use std::path::{Path, PathBuf};

/// All that there are.
pub const PEERS: [&dyn Peer; 1] = [&Zeo];

/// Another system.
pub trait Peer: Sync {
    /// What it is called on the command line and in samples.
    fn name(&self) -> &'static str;

    /// What it is.
    fn words(&self) -> &'static str;

    /// How its clients can be set, the quickest first.
    fn manners(&self) -> &'static [&'static str];

    /// Installs it in this directory, unless it is there. An error says what to do.
    fn install(&self, directory: &Path, show: &mut dyn FnMut(&str)) -> Outcome<Installed>;

    /// Its server, with its data in this directory. It says a line that begins with `ready` and goes when its input ends.
    fn server(&self, installed: &Installed, data: &Path, address: &str) -> Order;

    /// A client that is set in one of the manners. It says `{"ready"...` and goes when its input ends.
    fn client(&self, installed: &Installed, manner: &str, address: &str) -> Order;
}

impl std::fmt::Debug for dyn Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a peer is.
#[derive(Clone, Debug)]
pub struct Installed {
    /// What runs its programs.
    pub program: PathBuf,
    /// Where those that are the lab's own lie.
    pub scripts: PathBuf,
}

/// What is to be started.
#[derive(Clone, Debug)]
pub struct Order {
    /// The program.
    pub program: PathBuf,
    /// What it is told.
    pub arguments: Vec<String>,
}

/// The peer of that name.
pub fn named(name: &str) -> Result<&'static dyn Peer, String> {
    let found = PEERS.into_iter().find(|peer| peer.name() == name);
    let known = PEERS.map(|peer| peer.name()).join(", ");
    found.ok_or_else(|| format!("no peer is called {name}; there is: {known}"))
}
