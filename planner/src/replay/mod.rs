//! What members answer for each other, by replaying a trace: cooperative caching as in section 2.1 of the thesis, and the
//! family of replacement policies of its section 3.6.
//!
//! A [`Village`] has clients with a memory each; memory servers, which ask for nothing themselves (the thesis calls them idle
//! nodes, or local nodes if they have work of their own); and a home with its own memory in front of its disk. A [`Policy`]
//! says what is kept where, and answers each request from one of these [`Place`]s. Pages are of one size and are only read:
//! nothing that was fetched grows stale.
//!
//! | policy | which memory is used together, and how | thesis |
//! |---|---|---|
//! | [`Kind::Alone`] | none: each client has its own, and the home's | |
//! | [`Kind::Direct`] | the servers', in a private part for each client | 2.1.2 |
//! | [`Kind::Greedy`] | the clients', as it happens to be filled | 2.1.2 |
//! | [`Kind::Central`] | a fixed part of all clients', and the servers', as one LRU behind the home's | 2.1.2 |
//! | [`Kind::NChance`] | all; the last copy of a page that has to go is sent around | 2.1.2 |
//! | [`Kind::Hashed`] | as central, but the page's name says where it is kept | 2.1.2 |
//! | [`Kind::Weighted`] | all; copies that are dear to lose, for how long they were not used, are kept | 2.1.2 |
//! | [`Kind::Gms`] | all; pages go to where the oldest ones are, as was last told | 2.1.3 |
//! | [`Kind::Balanced`] | as GMS, but with an eye to the servers' load | 3.6 |
//! | [`Kind::GlobalLru`] | as GMS, but it is always known where the oldest page is | |
//! | [`Kind::Ideal`] | all, as one LRU that holds nothing twice, and beside it the clients' own: cannot be had | |
//!
//! Where policies rank pages by age (weighted LRU, GMS and what is like it), the home's memory is one more memory for all.

mod aged;
mod alone;
mod balanced;
mod bytes;
mod central;
mod copies;
mod deviation;
mod direct;
mod global_lru;
mod gms;
mod greedy;
mod hashed;
mod ideal;
mod kind;
mod n_chance;
mod outcome;
mod paper;
mod pool;
#[cfg(test)]
mod tests;
mod weighted;
mod weights;

use deviation::{Deviation, Newcomer};
pub use kind::{Kind, Knobs};
pub use outcome::{Outcome, replay};
pub use paper::paper;

use crate::{Invalid, at_least, evict, fraction, positive};

/// Who there is, and with how much memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Village {
    /// How many clients make requests.
    pub clients: usize,
    /// Memory of each client, in pages.
    pub client_pages: usize,
    /// Those that lend memory and make no requests.
    pub servers: Vec<Server>,
    /// Memory of the home, in pages, in front of its disk.
    pub home_pages: usize,
    /// Pages are numbered below this.
    pub footprint: usize,
    /// Which of its own pages has to go from a client's memory, under policies that leave that to the client: all but those of
    /// [`Kind::why_no_evictor`].
    pub local: evict::Kind,
    /// How long things take.
    pub times: Times,
    /// What is drawn is drawn from here: the same seed, the same answer.
    pub seed: u64,
}

/// One that lends memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Server {
    /// How much it lends, in pages (G, table 3.3).
    pub pages: usize,
    /// The part of its time that requests of others may take (U*, table 3.3): 1 for an idle node, less for one that has work of
    /// its own. Only [`Kind::Balanced`] heeds it.
    pub busy_most: f64,
}

/// How long things take.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Times {
    /// A client's own work between two requests.
    pub think_ms: f64,
    /// A page of the client's own memory.
    pub local_ms: f64,
    /// A page of another client's memory, or of a memory server's.
    pub remote_ms: f64,
    /// A page of the home's memory.
    pub home_ms: f64,
    /// A page of the home's disk.
    pub disk_ms: f64,
    /// How long a memory server works for one request (S, table 3.3).
    pub service_ms: f64,
}

/// As in section 3.3.2 of the thesis: a server works for 194 µs for a page, which is all that one takes where nobody waits; the
/// fastest from disk takes 3600 µs.
impl Default for Times {
    fn default() -> Self {
        Times {
            think_ms: 1.0,
            local_ms: 0.0,
            remote_ms: 0.194,
            home_ms: 0.194,
            disk_ms: 3.6,
            service_ms: 0.194,
        }
    }
}

/// Where a request was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// From the client's own memory.
    Local,
    /// From the memory of another: clients have numbers from 0, servers follow.
    Remote(usize),
    /// From the home's memory.
    Home,
    /// From the home's disk.
    Disk,
}

/// Says what is kept where.
pub trait Policy {
    /// Answers a client's request for a page, and moves what has to be moved for it.
    fn request(&mut self, client: usize, page: u32) -> Place;

    /// What there was to do beside.
    fn traffic(&self) -> &Traffic;

    /// How many pages each client and server holds, for checks.
    fn held(&self) -> Vec<usize>;
}

/// What members do for each other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Pages that were sent to somebody when they had to go.
    pub forwarded: u64,
    /// For each client and server, the pages that it sent to others because they asked, and took from others that had no room.
    pub loads: Vec<u64>,
    /// Requests that came to the home, be it to be answered or to be sent on.
    pub home_asked: u64,
}

impl Village {
    /// Refuses what cannot be.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with what is wrong.
    pub fn check(&self) -> Result<(), Invalid> {
        let nodes = self.clients + self.servers.len();
        let most = usize::from(u16::MAX);
        if self.clients == 0 || self.clients > most {
            return Err(Invalid::new(
                "clients",
                format!("must be from 1 to {}, not {}", u16::MAX, self.clients),
            ));
        }
        if nodes > most {
            let left = most - self.clients;
            let count = self.servers.len();
            let why = format!("must be at most {left} beside the clients, not {count}");
            return Err(Invalid::new("servers", why));
        }
        at_least("client_pages", self.client_pages as f64, 1.0)?;
        for server in &self.servers {
            at_least("server_pages", server.pages as f64, 1.0)?;
            fraction("busy_most", server.busy_most)?;
        }
        self.times.check()
    }

    fn nodes(&self) -> usize {
        self.clients + self.servers.len()
    }

    /// The memory of each client and server.
    fn pages_by_node(&self) -> Vec<usize> {
        let clients = std::iter::repeat_n(self.client_pages, self.clients);
        clients
            .chain(self.servers.iter().map(|server| server.pages))
            .collect()
    }

    /// The same, with the home behind them.
    fn pages_with_home(&self) -> Vec<usize> {
        let mut pages = self.pages_by_node();
        pages.push(self.home_pages);
        pages
    }

    /// The home's memory.
    fn home(&self) -> Box<dyn evict::Evictor> {
        evict::Kind::Lru.memory(self.home_pages, self.footprint)
    }

    /// The memories of the clients, of so many pages each.
    fn locals(&self, pages: usize) -> Vec<Box<dyn evict::Evictor>> {
        self.locals_of(self.local, pages)
    }

    /// The same, whatever the clients' own policy is.
    fn locals_of(&self, kind: evict::Kind, pages: usize) -> Vec<Box<dyn evict::Evictor>> {
        (0..self.clients)
            .map(|_| kind.memory(pages, self.footprint))
            .collect()
    }

    fn traffic(&self) -> Traffic {
        Traffic {
            loads: vec![0; self.nodes()],
            ..Traffic::default()
        }
    }
}

impl Times {
    /// Refuses what cannot be.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with what is wrong.
    pub fn check(&self) -> Result<(), Invalid> {
        time("think_ms", self.think_ms)?;
        time("local_ms", self.local_ms)?;
        time("remote_ms", self.remote_ms)?;
        time("home_ms", self.home_ms)?;
        time("disk_ms", self.disk_ms)?;
        time("service_ms", self.service_ms)?;
        positive("service_ms", self.service_ms)?;
        at_least("disk_ms", self.disk_ms, self.remote_ms.max(self.local_ms))
    }

    fn of(&self, place: Place) -> f64 {
        match place {
            Place::Local => self.local_ms,
            Place::Remote(_) => self.remote_ms,
            Place::Home => self.home_ms,
            Place::Disk => self.disk_ms,
        }
    }
}

fn time(parameter: &'static str, ms: f64) -> Result<(), Invalid> {
    match (0.0..=MS_MOST).contains(&ms) {
        true => Ok(()),
        false => Err(Invalid::new(
            parameter,
            format!("must be a number from 0 to {MS_MOST:e}, not {ms}"),
        )),
    }
}

/// Twelve days: no page takes longer, and sums of this over any trace stay numbers.
const MS_MOST: f64 = 1e9;
