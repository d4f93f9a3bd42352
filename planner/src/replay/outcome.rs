//! A replay, and what comes of it.

use super::{Place, Policy, Times, Traffic, Village};

/// Where the requests of a trace were answered, and what that took.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// From the client's own memory.
    pub local: u64,
    /// From the memory of another client.
    pub from_clients: u64,
    /// From a memory server.
    pub from_servers: u64,
    /// From the home's memory.
    pub home: u64,
    /// From the home's disk.
    pub disk: u64,
    /// What members did for each other.
    pub traffic: Traffic,
}

impl Outcome {
    /// All requests.
    pub fn requests(&self) -> u64 {
        self.local + self.remote() + self.home + self.disk
    }

    /// From the memory of other clients and servers.
    pub fn remote(&self) -> u64 {
        self.from_clients + self.from_servers
    }

    /// The part of all requests that needed no disk; 0 without requests.
    pub fn without_disk(&self) -> f64 {
        self.part(self.requests() - self.disk)
    }

    /// So many of all requests, as a part; 0 without requests.
    pub fn part(&self, count: u64) -> f64 {
        count as f64 / self.requests().max(1) as f64
    }

    /// How long a request took on average, in milliseconds.
    pub fn mean_ms(&self, times: &Times) -> f64 {
        self.part(self.local) * times.local_ms
            + self.part(self.remote()) * times.remote_ms
            + self.part(self.home) * times.home_ms
            + self.part(self.disk) * times.disk_ms
    }

    /// How many times as much the busiest did for others as all did on average: 1 is balance. `None` if nobody did anything.
    pub fn imbalance(&self, among: std::ops::Range<usize>) -> Option<f64> {
        let loads = self.traffic.loads.get(among)?;
        let most = *loads.iter().max()?;
        let mean = loads.iter().sum::<u64>() as f64 / loads.len() as f64;
        (most > 0).then(|| most as f64 / mean)
    }
}

/// Replays requests: the page of each, and the client that asks for it. `progress` is told now and then how many were done.
///
/// # Panics
///
/// If there is a client or a page that the village does not have.
pub fn replay(
    village: &Village,
    policy: &mut dyn Policy,
    pages: &[u32],
    clients: &[u16],
    progress: &mut dyn FnMut(usize),
) -> Outcome {
    let mut outcome = Outcome::default();
    for (at, (&page, &client)) in pages.iter().zip(clients).enumerate() {
        if at % PROGRESS_REQUESTS == 0 {
            progress(at);
        }
        match policy.request(usize::from(client), page) {
            Place::Local => outcome.local += 1,
            Place::Remote(node) if node < village.clients => outcome.from_clients += 1,
            Place::Remote(_) => outcome.from_servers += 1,
            Place::Home => outcome.home += 1,
            Place::Disk => outcome.disk += 1,
        }
    }
    outcome.traffic = policy.traffic().clone();
    outcome
}

const PROGRESS_REQUESTS: usize = 1 << 16;
