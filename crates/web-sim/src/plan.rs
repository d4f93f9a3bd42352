//! What a seed draws before its world begins.

use thorp_model::Xoshiro256;

/// Something that the promise rests on, and that no code which ships can see to. Without it, a trap catches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Without {
    /// Trap W27: a database that has crashed is back at once, with its names as they were.
    WaitAfterCrash,
    /// Trap W17: the origin reads from the database itself, and not from an old copy of it.
    FreshOrigin,
}

impl Without {
    /// All of them.
    pub const ALL: &[Without] = &[Without::WaitAfterCrash, Without::FreshOrigin];
}

/// Kinds of faults. A seed has some of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    KeeperHangs,
    KeeperDies,
    KeeperLeaves,
    StreamBreaks,
    DatabaseSlow,
    DatabaseCrashes,
    SlotDropped,
    ProxyHangs,
    ProxyDies,
    WatchdogHangs,
    FollowerHangs,
    FollowerDies,
    FollowerCutOff,
}

const FAULTS: [Fault; 13] = [
    Fault::KeeperHangs,
    Fault::KeeperDies,
    Fault::KeeperLeaves,
    Fault::StreamBreaks,
    Fault::DatabaseSlow,
    Fault::DatabaseCrashes,
    Fault::SlotDropped,
    Fault::ProxyHangs,
    Fault::ProxyDies,
    Fault::WatchdogHangs,
    Fault::FollowerHangs,
    Fault::FollowerDies,
    Fault::FollowerCutOff,
];

/// The sizes and habits of one world.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) rows: usize,
    pub(crate) writers: usize,
    pub(crate) readers: usize,
    pub(crate) proxies: usize,
    pub(crate) followers: usize,
    pub(crate) watchdogs: usize,
    /// The database gives its first transaction this number.
    pub(crate) first_number: u64,
    pub(crate) write_every_us: u64,
    pub(crate) read_every_us: u64,
    pub(crate) unnamed_percent: u64,
    pub(crate) alone_percent: u64,
    pub(crate) failing_percent: u64,
    pub(crate) busy_checkpointer_percent: u64,
    /// Others may go on between two loads.
    pub(crate) holds_loads: bool,
    pub(crate) faults: Vec<Fault>,
    pub(crate) fault_every_us: u64,
    pub(crate) works_for_us: u64,
    pub(crate) without: Option<Without>,
    /// What the clocks of hosts say when the world begins.
    clocks_ms: Vec<u64>,
}

impl Plan {
    /// What a seed draws.
    pub(crate) fn drawn(seed: u64, without: Option<Without>) -> Plan {
        let mut random = Xoshiro256::new(seed);
        let chance = random.range(15, 60);
        let mut faults: Vec<Fault> = FAULTS.to_vec();
        faults.retain(|_| random.percent(chance));
        // Each tenth world begins shortly before the lower half of numbers is used up, each second one after it.
        let epoch = 1u64 << 32;
        let first_number = match random.below(10) {
            0 => epoch - random.range(1, 60),
            1..6 => epoch + random.range(700, 1_000_000),
            _ => random.range(700, 1_000_000),
        };
        let followers = if random.percent(45) {
            random.range(1, 2) as usize
        } else {
            0
        };
        Plan {
            rows: 4,
            writers: random.range(1, 4) as usize,
            readers: random.range(1, 5) as usize,
            proxies: (followers + 1).max(random.range(1, 2) as usize),
            followers,
            watchdogs: if random.percent(8) { 2 } else { 1 },
            first_number,
            write_every_us: random.range(40_000, 500_000),
            read_every_us: random.range(15_000, 120_000),
            unnamed_percent: random.below(2) * random.range(1, 20),
            alone_percent: random.below(2) * random.range(1, 10),
            failing_percent: random.below(2) * random.range(1, 10),
            busy_checkpointer_percent: random.below(2) * random.range(1, 40),
            holds_loads: random.percent(85),
            faults,
            fault_every_us: random.range(400_000, 4_000_000),
            works_for_us: random.range(6_000_000, 26_000_000),
            without,
            clocks_ms: (0..8).map(|_| random.range(10_000, 1_000_000)).collect(),
        }
    }

    /// What the clock of a host says when the world begins.
    pub(crate) fn clock_ms(&self, host: usize) -> u64 {
        self.clocks_ms.get(host).copied().unwrap_or(1)
    }
}
