//! What a seed draws before its world begins.

use crate::plan::Plan as Common;
use thorp_model::Xoshiro256;

/// Kinds of faults. A seed has some of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    KeeperDies,
    KeeperHangs,
    KeeperLeaves,
    ProxyDies,
    ProxyHangs,
    LinkBreaks,
    AllDie,
}

const FAULTS: [Fault; 7] = [
    Fault::KeeperDies,
    Fault::KeeperHangs,
    Fault::KeeperLeaves,
    Fault::ProxyDies,
    Fault::ProxyHangs,
    Fault::LinkBreaks,
    Fault::AllDie,
];

/// The sizes and habits of one world.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Rows, writers, readers, and how often they come.
    pub(super) common: Common,
    pub(super) proxies: usize,
    /// The longest time that the application works on one request.
    pub(super) life_ms: u64,
    /// So many requests end in an answer that says too little.
    pub(super) odd_percent: u64,
    /// So many take long.
    pub(super) slow_percent: u64,
    pub(super) faults: Vec<Fault>,
    pub(super) fault_every_us: u64,
    pub(super) works_for_us: u64,
}

impl Plan {
    pub(super) fn drawn(seed: u64) -> Plan {
        let common = Common::drawn(seed, None);
        let mut random = Xoshiro256::new(seed ^ 0x7265_7175_6573_7473);
        let chance = random.range(15, 70);
        let mut faults = FAULTS.to_vec();
        faults.retain(|_| random.percent(chance));
        Plan {
            common,
            proxies: random.range(1, 3) as usize,
            life_ms: random.range(1_000, 9_000),
            odd_percent: random.below(2) * random.range(1, 10),
            slow_percent: random.below(2) * random.range(1, 30),
            faults,
            fault_every_us: random.range(1_000_000, 8_000_000),
            works_for_us: random.range(15_000_000, 50_000_000),
        }
    }
}
