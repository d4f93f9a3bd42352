use super::*;
use hyper::header::HeaderValue;
use std::path::Path;
use tempfile::TempDir;
use thorp_versions::{HomeLedger, Kept, Writer};

/// Two homes that write tables, and who reads them.
struct Village {
    alps: HomeLedger<Kept, u64>,
    dale: HomeLedger<Kept, u64>,
    homes: Homes,
    _place: TempDir,
}

const NOW_MS: u64 = 1_000;

fn ledger(path: &Path, name: &str, position: u64) -> HomeLedger<Kept, u64> {
    let kept = Kept::make(path, Terms::of_home(name), position).expect("a table");
    let mut ledger = HomeLedger::new(Writer::new(kept));
    ledger.begin(position, position, []);
    ledger.beat(NOW_MS);
    ledger
}

impl Village {
    /// Alps is at position 5, dale at 9.
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let path = |name: &str| place.path().join(name);
        let (alps, dale) = (
            ledger(&path("alps"), "alps", 5),
            ledger(&path("dale"), "dale", 9),
        );
        let named = ["alps", "dale"].map(|name| (name.to_owned(), path(name)));
        let homes = Homes::new(named).expect("two names");
        for (_, table) in homes.tables() {
            table.look().expect("a table");
        }
        Village {
            alps,
            dale,
            homes,
            _place: place,
        }
    }

    fn said(&self, evidence: &'static str, reads: &'static str) -> Said<AtHomes> {
        let mut fields = HeaderMap::new();
        fields.insert("thorp-evidence", HeaderValue::from_static(evidence));
        fields.insert("thorp-reads", HeaderValue::from_static(reads));
        self.homes.said(&self.homes.evidence(), &fields)
    }

    fn on(&self, evidence: &'static str, reads: &'static str) -> (AtHomes, Vec<Place>) {
        match self.said(evidence, reads) {
            Said::On(evidence, places) => (evidence, places),
            other => panic!("{other:?}"),
        }
    }

    fn check(&self, (evidence, places): &(AtHomes, Vec<Place>)) -> Result<Passed, Denied> {
        self.homes.check(evidence, places, NOW_MS)
    }
}

fn keys(key: &str) -> Option<Vec<Place>> {
    Some(vec![Place::of(key)])
}

#[test]
fn an_answer_rests_on_each_home_that_it_names() {
    let mut village = Village::new();
    let both = village.on("alps=5, dale=9", "alps 1/2.3, dale 4/5");
    let passed = village.check(&both).expect("nothing has changed");
    assert!(village.homes.still(passed, &both.0, NOW_MS));
    // What has no key of it ends the short cut, and no more.
    village.dale.change(10, keys("7"));
    assert!(!village.homes.still(passed, &both.0, NOW_MS));
    let passed = village.check(&both).expect("another key");
    assert!(village.homes.still(passed, &both.0, NOW_MS));
    // A vote of the second home, which has no number.
    village.dale.vote(1, keys("4/5"));
    assert!(!village.homes.still(passed, &both.0, NOW_MS));
    let place = Place::of("4/5").in_table(1);
    assert_eq!(village.check(&both), Err(Denied::Open(place)));
    village.dale.end(&1);
    assert!(village.check(&both).is_ok());
    village.alps.change(6, keys("1/2.3"));
    let place = Place::of("1/2.3");
    assert_eq!(village.check(&both), Err(Denied::Changed(place)));
}

#[test]
fn a_home_that_is_gone_or_new_ends_the_hits_that_rest_on_it() {
    let mut village = Village::new();
    let (both, one) = (village.on("alps=5, dale=9", ""), village.on("alps=5", ""));
    let passed = village.check(&both).expect("nothing has changed");
    village.dale.beat(0);
    assert!(!village.homes.still(passed, &both.0, NOW_MS));
    assert_eq!(village.check(&both), Err(Denied::NoBeat));
    assert!(village.check(&one).is_ok());
    village.dale.begin(77, 9, []);
    village.dale.beat(NOW_MS);
    assert_eq!(village.check(&both), Err(Denied::OtherGeneration));
}

#[test]
fn a_position_of_before_a_restart_is_evidence_of_nothing_since_then() {
    let village = Village::new();
    // The words of a table begin at the position at which its home has begun (trap W10).
    let before = village.on("alps=4", "alps 1/2.3");
    let denied = Denied::Changed(Place::UNKNOWN);
    assert_eq!(village.check(&before), Err(denied));
    assert!(village.check(&village.on("alps=5", "alps 1/2.3")).is_ok());
    let ahead = village.on("alps=6", "alps 1/2.3");
    assert_eq!(village.check(&ahead), Err(Denied::Behind));
}

#[test]
fn the_generation_is_the_one_of_before_the_fill_left() {
    let mut village = Village::new();
    let before = village.homes.evidence();
    village.alps.begin(78, 5, []);
    village.alps.beat(NOW_MS);
    let mut fields = HeaderMap::new();
    fields.insert("thorp-evidence", HeaderValue::from_static("alps=5"));
    let Said::On(evidence, places) = village.homes.said(&before, &fields) else {
        panic!("it has evidence");
    };
    let checked = village.homes.check(&evidence, &places, NOW_MS);
    assert_eq!(checked, Err(Denied::OtherGeneration));
}

#[test]
fn a_home_without_keys_stands_for_everything() {
    let mut village = Village::new();
    let all = village.on("alps=5", "");
    assert!(village.check(&all).is_ok());
    village.alps.change(6, keys("9"));
    let denied = Denied::Changed(Place::EVERYTHING);
    assert_eq!(village.check(&all), Err(denied));
}

#[test]
fn what_is_of_no_home_that_is_followed_is_not_kept() {
    let village = Village::new();
    assert_eq!(village.said("vale=5", ""), Said::Unreadable);
    assert_eq!(village.said("alps=5, vale=5", "alps 1"), Said::Unreadable);
    assert_eq!(village.said("alps=x", ""), Said::Unreadable);
    let nothing = village
        .homes
        .said(&village.homes.evidence(), &HeaderMap::new());
    assert_eq!(nothing, Said::NoEvidence);
    // A dependency that no evidence is for was never checked.
    let (evidence, _) = village.on("alps=5", "alps 1");
    let of_dale = [Place::of("1").in_table(1)];
    let checked = village.homes.check(&evidence, &of_dale, NOW_MS);
    assert_eq!(checked, Err(Denied::Behind));
    // What says nothing at all rests on nothing that could be checked.
    let none = AtHomes(Arc::new([]));
    assert!(village.homes.check(&none, &[], NOW_MS).is_err());
}

#[test]
fn each_home_is_named_once_and_there_are_not_too_many() {
    let named = |count: usize| (0..count).map(|number| (number.to_string(), PathBuf::new()));
    assert!(Homes::new(named(HOMES_MAX)).is_ok());
    assert_eq!(
        Homes::new(named(HOMES_MAX + 1)).err(),
        Some(HomesError::TooMany)
    );
    let twice = named(1).chain(named(1));
    assert_eq!(
        Homes::new(twice).err(),
        Some(HomesError::Twice("0".to_owned()))
    );
}
