//! Villages worked out by hand, and what has to hold in any.

mod properties;
mod stories;

use super::*;
use crate::evict::tests::some_trace;

fn village(clients: usize, client_pages: usize, servers: &[usize], home_pages: usize) -> Village {
    Village {
        clients,
        client_pages,
        servers: servers
            .iter()
            .map(|&pages| Server {
                pages,
                busy_most: 1.0,
            })
            .collect(),
        home_pages,
        footprint: 400,
        local: evict::Kind::Lru,
        times: Times::default(),
        seed: 7,
    }
}

fn replayed(kind: Kind, village: &Village, pages: &[u32], clients: &[u16]) -> Outcome {
    told(kind, village, &Knobs::default(), pages, clients)
}

fn told(kind: Kind, village: &Village, knobs: &Knobs, pages: &[u32], clients: &[u16]) -> Outcome {
    let mut policy = kind.policy(village, knobs).expect("it can be");
    replay(village, &mut *policy, pages, clients, &mut |_| {})
}
