//! Who may stand at a listener until it is let in, and who has to make place. Without clocks and sockets.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Instant;

use crate::clock::later;
use crate::config::{HANDSHAKE_TIME_MIN, KNOWN_ORIGINS_MAX};
use crate::shares::Shares;

/// Where a caller comes from, as far as callers are counted by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// An IPv4 address, or the first 64 bits of an IPv6 address: whoever has one IPv6 address has all of its network.
    Network(IpAddr),
    /// A Unix-domain socket. All callers by it have one share.
    Machine,
}

/// Callers of one listener that are not let in yet, each with a token of its task. A listener has two such tables: of callers
/// until their first byte, and of callers in their handshake.
///
/// - A caller has a place from its arrival until somebody decides on it. It is *incomplete* until its first byte or its
///   greeting has come, and again when it is turned away.
/// - No origin has more places than it leaves free (record 0009). At its share, and where the table is full of others, a
///   newer caller takes the place of the oldest incomplete one: of its own origin, if that has any places.
/// - Nobody loses its place within [`HANDSHAKE_TIME_MIN`]. Until then the newer caller waits.
/// - A few places more are kept for origins of which a caller was complete before. Strangers never have these.
///
/// All members behind one NAT router are one origin, and the listener cannot distinguish them before their certificates. A
/// hostile one among them has the share of all. The others get in all the same: each caller may use its time, and the share
/// is taken in the order of arrival.
#[derive(Debug)]
pub(crate) struct Places<T> {
    strangers: Pool<T>,
    known: Pool<T>,
    /// Origins of complete callers, the latest last: at most [`KNOWN_ORIGINS_MAX`].
    recent: VecDeque<Origin>,
    last: CallerId,
}

/// One caller, for the life of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallerId(u64);

/// What becomes of a caller that arrives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival<T> {
    /// It has a place.
    Enters {
        id: CallerId,
        /// The token of the caller that lost its place for that.
        dropped: Option<T>,
    },
    /// There is no place for it: try again at this moment, and when somebody has left.
    Waits(Option<Instant>),
}

/// Places that are given by one rule.
#[derive(Debug)]
struct Pool<T> {
    shares: Shares<Origin>,
    /// In the order of arrival.
    callers: BTreeMap<CallerId, Caller<T>>,
}

#[derive(Debug)]
struct Caller<T> {
    origin: Origin,
    since: Instant,
    is_complete: bool,
    token: T,
}

impl Origin {
    pub(crate) fn of(address: SocketAddr) -> Self {
        Self::Network(match address.ip().to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        })
    }

    /// The network; none of a Unix-domain socket.
    pub(crate) fn network(self) -> Option<IpAddr> {
        match self {
            Self::Network(address) => Some(address),
            Self::Machine => None,
        }
    }
}

impl<T> Places<T> {
    /// So many places for everybody, and so many more for known origins.
    pub(crate) fn new(max: usize, known_max: usize) -> Self {
        Self {
            strangers: Pool::new(max),
            known: Pool::new(known_max),
            recent: VecDeque::new(),
            last: CallerId(0),
        }
    }

    /// A caller arrives. It gets a place if there is one for its origin.
    pub(crate) fn arrive(&mut self, now: Instant, origin: Origin, token: T) -> Arrival<T> {
        // The places that no stranger can have come first.
        let is_known = self.recent.contains(&origin);
        let pools = [
            is_known.then_some(&mut self.known),
            Some(&mut self.strangers),
        ];
        let spaces = pools.into_iter().flatten().map(|pool| {
            let space = pool.space_for(now, origin);
            (pool, space)
        });
        // The first one of those that are as good.
        let Some((pool, space)) = spaces.min_by_key(|(_, space)| *space) else {
            return Arrival::Waits(None);
        };
        let dropped = match space {
            Space::Free => None,
            Space::Of(oldest) => pool.remove(oldest).map(|caller| caller.token),
            Space::After(until) => return Arrival::Waits(Some(until)),
            Space::None => return Arrival::Waits(None),
        };
        self.last = CallerId(self.last.0 + 1);
        pool.insert(self.last, now, origin, token);
        Arrival::Enters {
            id: self.last,
            dropped,
        }
    }

    /// A caller's first byte or greeting has come: it keeps its place until somebody decides on it, and its origin is known. False if
    /// it has lost its place before.
    pub(crate) fn complete(&mut self, id: CallerId) -> bool {
        let Some(caller) = self.caller(id) else {
            return false;
        };
        caller.is_complete = true;
        let origin = caller.origin;
        self.recent.retain(|recent| *recent != origin);
        if self.recent.len() >= KNOWN_ORIGINS_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(origin);
        true
    }

    /// A caller is turned away: while its last words are on their way it may lose its place.
    pub(crate) fn turn_away(&mut self, id: CallerId) {
        if let Some(caller) = self.caller(id) {
            caller.is_complete = false;
        }
    }

    /// A caller is let in or gone. Nothing happens if it has lost its place before.
    pub(crate) fn leave(&mut self, id: CallerId) {
        if self.strangers.remove(id).is_none() {
            self.known.remove(id);
        }
    }

    fn caller(&mut self, id: CallerId) -> Option<&mut Caller<T>> {
        let known = self.known.callers.get_mut(&id);
        known.or_else(|| self.strangers.callers.get_mut(&id))
    }
}

/// What a pool has for a caller, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Space {
    Free,
    /// Once this caller is dropped.
    Of(CallerId),
    /// Not before this moment, unless somebody leaves.
    After(Instant),
    /// Not before somebody leaves.
    None,
}

impl<T> Pool<T> {
    fn new(max: usize) -> Self {
        Self {
            shares: Shares::new(max),
            callers: BTreeMap::new(),
        }
    }

    fn space_for(&self, now: Instant, origin: Origin) -> Space {
        if self.shares.allows(&origin, 1) {
            return Space::Free;
        }
        let has_places = self.shares.of(&origin) > 0;
        let mut callers = self.callers.iter();
        let oldest = callers
            .find(|(_, caller)| !caller.is_complete && (!has_places || caller.origin == origin));
        let Some((id, caller)) = oldest else {
            return Space::None;
        };
        let until = later(caller.since, HANDSHAKE_TIME_MIN);
        match until <= now {
            true => Space::Of(*id),
            false => Space::After(until),
        }
    }

    fn insert(&mut self, id: CallerId, since: Instant, origin: Origin, token: T) {
        self.shares.take(origin, 1);
        let caller = Caller {
            origin,
            since,
            is_complete: false,
            token,
        };
        self.callers.insert(id, caller);
    }

    fn remove(&mut self, id: CallerId) -> Option<Caller<T>> {
        let caller = self.callers.remove(&id)?;
        self.shares.give_back(&caller.origin, 1);
        Some(caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    /// A table of so many places in which each caller's token is its number, and the time of each arrival.
    struct Table {
        places: Places<u32>,
        now: Instant,
        arrived: u32,
    }

    impl Table {
        fn new(max: usize, known_max: usize) -> Self {
            Self {
                places: Places::new(max, known_max),
                now: Instant::now(),
                arrived: 0,
            }
        }

        /// The next caller comes from here: its id and who lost the place for that, or `None` if it has to wait.
        fn arrive(&mut self, from: Origin) -> Option<(CallerId, Option<u32>)> {
            let number = self.arrived;
            match self.places.arrive(self.now, from, number) {
                Arrival::Enters { id, dropped } => {
                    self.arrived += 1;
                    Some((id, dropped))
                }
                Arrival::Waits(_) => None,
            }
        }

        /// Callers come from here until one has to wait or drops another.
        fn fill(&mut self, from: Origin) -> Vec<CallerId> {
            let mut ids = Vec::new();
            while self.places.strangers.shares.allows(&from, 1)
                || self.places.recent.contains(&from) && self.places.known.shares.allows(&from, 1)
            {
                ids.push(self.arrive(from).unwrap().0);
            }
            ids
        }

        fn pass(&mut self, time: Duration) {
            self.now += time;
        }
    }

    fn host(last: u8) -> Origin {
        Origin::Network(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)))
    }

    #[test]
    fn silent_callers_of_one_origin_leave_half_and_drop_each_other_oldest_first() {
        let mut table = Table::new(8, 0);
        assert_eq!(table.fill(host(1)).len(), 4);
        // Each of them has its time: the fifth waits for the first.
        let until = later(table.now, HANDSHAKE_TIME_MIN);
        let waits = table.places.arrive(table.now, host(1), 99);
        assert_eq!(waits, Arrival::Waits(Some(until)));
        assert!(table.arrive(host(2)).is_some());
        table.pass(HANDSHAKE_TIME_MIN);
        for oldest in [0, 1, 2, 3] {
            assert_eq!(table.arrive(host(1)).unwrap().1, Some(oldest));
        }
        // Those that came now have their time, too.
        assert_eq!(table.arrive(host(1)), None);
        assert_eq!(table.places.strangers.callers.len(), 5);
    }

    #[test]
    fn an_honest_caller_behind_the_address_of_a_flood_gets_in() {
        let mut table = Table::new(64, 0);
        table.fill(host(1));
        // Whenever there is a place, the flood has a new caller for it; once the honest one stands in line before it.
        table.pass(HANDSHAKE_TIME_MIN);
        let (honest, _) = table.arrive(host(1)).unwrap();
        for _ in 1..1000 {
            table.pass(HANDSHAKE_TIME_MIN / 1000);
            let before = table.arrived;
            while let Some((_, dropped)) = table.arrive(host(1)) {
                assert_ne!(dropped, Some(32), "the honest one has its time");
                assert!(table.arrived < before + 64, "a flood is paced");
            }
        }
        assert!(table.places.complete(honest));
    }

    #[test]
    fn a_caller_that_is_complete_is_not_dropped_until_it_is_turned_away() {
        let mut table = Table::new(4, 0);
        let ids = table.fill(host(1));
        assert_eq!(ids.len(), 2);
        assert!(ids.iter().all(|id| table.places.complete(*id)));
        table.pass(HANDSHAKE_TIME_MIN);
        let waits = table.places.arrive(table.now, host(1), 99);
        assert_eq!(waits, Arrival::Waits(None), "until somebody decides");
        table.places.turn_away(ids[1]);
        assert_eq!(table.arrive(host(1)).unwrap().1, Some(1));
        assert!(!table.places.complete(ids[1]), "it has lost its place");
        table.places.leave(ids[1]);
        table.places.leave(ids[0]);
        assert!(matches!(table.arrive(host(1)), Some((_, None))));
    }

    #[test]
    fn many_origins_together_drop_the_oldest_of_all() {
        let mut table = Table::new(8, 0);
        for last in 1..=7 {
            assert!(matches!(table.arrive(host(last)), Some((_, None))));
        }
        assert_eq!(table.arrive(host(8)), None);
        table.pass(HANDSHAKE_TIME_MIN);
        assert_eq!(table.arrive(host(8)).unwrap().1, Some(0));
        assert_eq!(table.arrive(host(3)).unwrap().1, Some(2), "its own");
    }

    #[test]
    fn strangers_do_not_have_the_places_of_known_origins() {
        let mut table = Table::new(8, 4);
        let (friend, _) = table.arrive(host(1)).unwrap();
        assert!(table.places.complete(friend));
        table.places.leave(friend);
        for last in 2..=8 {
            table.arrive(host(last)).unwrap();
        }
        assert_eq!(table.arrive(host(9)), None, "full, and all are new");
        // The known one has no need to wait, and none to drop anybody; also not later.
        assert!(matches!(table.arrive(host(1)), Some((_, None))));
        table.pass(HANDSHAKE_TIME_MIN);
        assert!(matches!(table.arrive(host(1)), Some((_, None))));
        for last in 9..100 {
            table.pass(HANDSHAKE_TIME_MIN);
            let (_, dropped) = table.arrive(host(last)).unwrap();
            assert!(!matches!(dropped, Some(8 | 9)), "{dropped:?}");
        }
    }

    #[test]
    fn only_so_many_origins_are_remembered_and_the_latest_stay() {
        let mut table = Table::new(8, 4);
        let networks = (0..3 * KNOWN_ORIGINS_MAX as u32).map(Ipv4Addr::from_bits);
        let origins: Vec<Origin> = networks.map(|at| Origin::Network(IpAddr::V4(at))).collect();
        for origin in origins.iter().flat_map(|origin| [&origins[0], origin]) {
            let (id, _) = table.arrive(*origin).unwrap();
            assert!(table.places.complete(id));
            table.places.leave(id);
        }
        assert_eq!(table.places.recent.len(), KNOWN_ORIGINS_MAX);
        assert!(table.places.recent.contains(&origins[0]));
        assert!(!table.places.recent.contains(&origins[1]));
        assert_eq!(table.places.known.callers.len(), 0);
    }

    #[test]
    fn whoever_has_one_address_of_a_network_of_version_six_has_all() {
        let of = |address: &str| Origin::of(address.parse().unwrap());
        assert_eq!(of("[2001:db8:1:2::1]:5"), of("[2001:db8:1:2:ffff::9]:7"));
        assert_ne!(of("[2001:db8:1:2::1]:5"), of("[2001:db8:1:3::1]:5"));
        assert_ne!(of("192.0.2.1:5"), of("192.0.2.2:5"));
        assert_eq!(of("192.0.2.1:5"), of("[::ffff:192.0.2.1]:7"));
    }
}
