//! Rules W1, W4, W5, W7 and W8 under every order of loads and stores that the memory model allows.

use crate::cells::Memory;
use crate::limits::BEAT_MS_MAX;
use crate::place::Place;
use crate::reader::{Denied, Evidence, Passed, Reader};
use crate::sync::{AtomicU64, Ordering};
use crate::word::Word;
use crate::writer::{Store, Writer};
use std::sync::Arc;

const KEY: [Place; 1] = [Place::EVERYTHING];
const NOW_MS: u64 = 1;
const LATE_MS: u64 = NOW_MS + BEAT_MS_MAX + 1;

/// What a proxy has: an entry of generation 1 that was just checked.
struct Proxy {
    reader: Reader<Arc<Memory>>,
    evidence: Evidence,
    passed: Passed,
    /// Not 0: the keeper has acknowledged what it stored.
    acknowledged: Arc<AtomicU64>,
}

impl Proxy {
    fn is_after(&self) -> bool {
        self.acknowledged.load(Ordering::Acquire) == 1
    }

    fn check(&self, keys: &[Place]) -> Result<Passed, Denied> {
        self.reader.check(self.evidence, keys, NOW_MS)
    }

    fn still(&self, passed: Passed) -> bool {
        self.reader.still(passed, self.evidence, NOW_MS)
    }
}

/// Runs a keeper and a proxy beside each other. Each has a thread of its own: loom does not try all orders with its first one.
fn race(keeper: fn(&mut Writer<Arc<Memory>>), proxy: fn(&Proxy)) {
    loom::model(move || {
        let table = Arc::new(Memory::new());
        let mut writer = Writer::new(Arc::clone(&table));
        writer.restart(1, &[]);
        writer.beat(NOW_MS);
        let reader = Reader::new(table);
        let evidence = reader.evidence();
        let passed = reader.check(evidence, &KEY, NOW_MS).expect("it passes");
        let acknowledged = Arc::new(AtomicU64::new(0));
        let says = Arc::clone(&acknowledged);
        let keeper = loom::thread::spawn(move || {
            keeper(&mut writer);
            says.store(1, Ordering::Release);
        });
        let looks = Proxy {
            reader,
            evidence,
            passed,
            acknowledged,
        };
        let proxy = loom::thread::spawn(move || proxy(&looks));
        keeper.join().expect("the keeper's thread");
        proxy.join().expect("the proxy's thread");
    });
}

/// An update begins, under the number behind the evidence.
fn begin(writer: &mut Writer<Arc<Memory>>) {
    writer.store(&Store {
        words: Vec::from([(Place::EVERYTHING, Word::odd(2))]),
        sequence: 2,
    });
}

/// Rule W5: a request that begins after the acknowledgement of an update is not served from before it.
#[test]
fn nothing_is_served_from_before_what_was_acknowledged() {
    race(begin, |proxy| {
        let is_after = proxy.is_after();
        assert!(!is_after || proxy.check(&KEY).is_err());
        assert!(!is_after || !proxy.still(proxy.passed));
    });
}

/// Rule W1, and trap W4: the same holds for an entry that was checked while the keeper stored, and is served by the short cut later.
#[test]
fn a_check_during_the_stores_passes_on_nothing_old() {
    race(begin, |proxy| {
        let checked = proxy.check(&KEY);
        let is_after = proxy.is_after();
        let is_served = checked.is_ok_and(|passed| proxy.still(passed));
        assert!(!is_after || !is_served);
    });
}

/// Rule W1: whoever sees a sequence sees the words that were stored before it.
#[test]
fn whoever_sees_a_sequence_sees_its_words() {
    race(begin, |proxy| {
        let evidence = proxy.reader.evidence();
        let checked = proxy.reader.check(evidence, &KEY, NOW_MS);
        if evidence.sequence == 2 {
            assert_eq!(checked, Err(Denied::Open(Place::EVERYTHING)));
        }
    });
}

/// Rules W5 and W8, with a restart of the keeper between two loads (trap W21): once the new generation may have missed something, no
/// entry of the old one is served.
#[test]
fn a_restart_during_a_check_is_noticed() {
    let restart = |writer: &mut Writer<_>| {
        writer.restart(2, &[]);
    };
    race(restart, |proxy| {
        let is_after = proxy.is_after();
        assert!(!is_after || proxy.check(&[]).is_err());
        assert!(!is_after || !proxy.still(proxy.passed));
    });
}

/// Rules W4 and W7: a fill of the new generation is not kept before the source has said that it waits.
#[test]
fn a_new_generation_has_no_beat_of_the_old_one() {
    let restart = |writer: &mut Writer<_>| {
        writer.restart(2, &[]);
    };
    race(restart, |proxy| {
        let fill = proxy.reader.evidence();
        let checked = proxy.reader.check(fill, &[], NOW_MS);
        assert!(fill.generation != 2 || checked.is_err());
    });
}

/// Rules W7 and W8: a keeper hung, and its source went on without it. The beat of its next life serves no entry of the old one.
#[test]
fn the_beat_of_another_life_serves_nothing() {
    let wake = |writer: &mut Writer<_>| {
        writer.restart(2, &[]);
        writer.beat(LATE_MS);
    };
    race(wake, |proxy| {
        let checked = proxy.reader.check(proxy.evidence, &[], LATE_MS);
        assert!(checked.is_err());
        let is_served = proxy.reader.still(proxy.passed, proxy.evidence, LATE_MS);
        assert!(!is_served);
    });
}
