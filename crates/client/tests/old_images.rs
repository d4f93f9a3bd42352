//! Who only reads goes on as of before what others change (rule 5): a long reader never begins again.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

use std::time::Duration;
use thorp_client::{ErrorKind, JoinConfig, Member, Reference, Session, Transaction};
use thorp_testing::{HomeNode, SiteNode, eventually};

const PAGES: u8 = 6;

/// A reader who has all of some pages, and a writer.
struct Scene {
    anna: Member,
    bert: Member,
    /// One fills its page.
    notes: Vec<Reference>,
    // The last to go.
    _site: Option<SiteNode>,
    _village: HomeNode,
}

impl Scene {
    fn of(village: HomeNode, site: Option<SiteNode>) -> Self {
        let address = site.as_ref().map_or(village.address(), SiteNode::address);
        let config = || JoinConfig::new(address.to_string());
        let join = || Member::join(config().identity_of(village.identity()).name("anna")).unwrap();
        let (anna, bert) = (join(), join());
        let shop = anna.create("thorp://alps/shop").unwrap();
        let notes = anna.transact(|tx| {
            let notes = (0..PAGES).map(|_| tx.create(&shop, vec![0; 8000]));
            notes.collect::<Result<Vec<_>, _>>()
        });
        let scene = Scene {
            anna,
            bert,
            notes: notes.unwrap(),
            _site: site,
            _village: village,
        };
        scene.anna_sees(0);
        scene
    }

    /// Bert's changes reach anna as invalidations: neither is at a site.
    fn apart() -> Self {
        Scene::of(HomeNode::new(), None)
    }

    /// They reach her as new values, by way of their site.
    fn at_a_site() -> Self {
        let village = HomeNode::new();
        let site = village.site(64 << 20);
        Scene::of(village, Some(site))
    }

    fn change_all(&self, value: u8) {
        let write = |tx: &mut Transaction| {
            let mut notes = self.notes.iter();
            notes.try_for_each(|note| tx.write(note, vec![value; 8000]))
        };
        self.bert.transact(write).unwrap();
    }

    /// Other transactions of anna's have read what bert wrote. One page each: who reads several may itself read behind a
    /// change that comes in between, which would be counted.
    fn anna_sees(&self, value: u8) {
        for note in &self.notes {
            let sees = |tx: &mut Transaction| Ok(tx.read(note)?[0] == value);
            eventually("anna sees it", || self.anna.transact(sees).unwrap());
        }
    }

    fn first(&self, tx: &mut Transaction) -> thorp_client::Result<u8> {
        tx.read(&self.notes[0]).map(|note| note[0])
    }
}

/// Reads one page after the other, and after each of them all of them are changed, once more.
fn a_long_reader_never_begins_again(scene: &Scene) {
    let before = scene.anna.stats();
    let mut attempts = 0;
    // However slow this machine is.
    let session = Session::new().max_staleness(Duration::from_secs(600));
    let seen = scene.anna.transact_with(session, |tx| {
        attempts += 1;
        let mut seen = Vec::new();
        for (note, value) in scene.notes.iter().zip(1..) {
            seen.push(tx.read(note)?[0]);
            scene.change_all(value);
            scene.anna_sees(value);
        }
        Ok(seen)
    });
    assert_eq!(seen.unwrap(), vec![0; PAGES.into()]);
    assert_eq!(attempts, 1);
    let spent = scene.anna.stats().since(&before);
    assert_eq!(spent.old_images, u64::from(PAGES) - 1, "one it held");
    assert!(spent.behind >= 1, "{spent:?}");
    assert_eq!((spent.doomed, spent.conflicts), (0, 0));
    assert_eq!(spent.commits, spent.free_commits);
    let newest = scene.anna.transact(|tx| scene.first(tx));
    assert_eq!(newest.unwrap(), PAGES, "who begins now sees the newest");
}

#[test]
fn a_long_reader_never_begins_again_though_its_pages_are_invalidated() {
    a_long_reader_never_begins_again(&Scene::apart());
}

#[test]
fn a_long_reader_at_a_site_never_begins_again_though_its_neighbour_writes() {
    a_long_reader_never_begins_again(&Scene::at_a_site());
}

#[test]
fn readers_beside_a_writer_that_never_rests_begin_once_each() {
    let scene = Scene::at_a_site();
    let done = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::SeqCst;
    let before = scene.anna.stats();
    let mut attempts = 0;
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut value = 0u8;
            while !done.load(order) {
                value = value.wrapping_add(1);
                // All of them at once: whoever sees two values has seen no one state.
                scene.change_all(value);
            }
        });
        for _ in 0..50 {
            let session = Session::new().max_staleness(Duration::from_secs(600));
            let seen = scene.anna.transact_with(session, |tx| {
                attempts += 1;
                let mut seen = Vec::new();
                for note in &scene.notes {
                    seen.push(tx.read(note)?[0]);
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(seen)
            });
            let seen = seen.unwrap();
            assert!(seen.iter().all(|value| *value == seen[0]), "{seen:?}");
        }
        done.store(true, order);
        writing.join().unwrap();
    });
    assert_eq!(attempts, 50);
    let spent = scene.anna.stats().since(&before);
    assert_eq!(spent.doomed, 0);
    assert!(spent.behind > 0 && spent.old_images > 0, "{spent:?}");
}

#[test]
fn who_has_read_behind_a_change_writes_with_the_next_attempt() {
    let scene = Scene::at_a_site();
    let mut attempts = 0;
    let session = Session::new().max_staleness(Duration::from_secs(600));
    let written = scene.anna.transact_with(session, |tx| {
        attempts += 1;
        let first = scene.first(tx)?;
        if attempts < 3 {
            scene.change_all(attempts);
            scene.anna_sees(attempts);
        }
        let second = tx.read(&scene.notes[1]).map(|note| note[0]);
        match attempts {
            1 => assert_eq!((first, second.unwrap()), (0, 0), "it reads on"),
            // It is known to write: it hears at once that this is in vain.
            2 => {
                assert_eq!(second.unwrap_err().kind(), ErrorKind::Conflict);
                return scene.first(tx).map(|_| ());
            }
            _ => assert_eq!((first, second.unwrap()), (2, 2)),
        }
        let written = tx.write(&scene.notes[2], vec![77; 8000]);
        if attempts == 1 {
            let error = written.as_ref().unwrap_err();
            assert!(error.is_retryable(), "{error}");
            assert!(error.to_string().contains("too late to write"), "{error}");
        }
        written
    });
    written.unwrap();
    assert_eq!(attempts, 3);
}

#[test]
fn who_wants_the_newest_is_told_of_changes() {
    let scene = Scene::apart();
    let mut tx = scene.anna.begin(Session::new().strict(true));
    assert_eq!(scene.first(&mut tx).unwrap(), 0);
    scene.change_all(1);
    scene.anna_sees(1);
    let error = tx.read(&scene.notes[1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[test]
fn what_was_read_behind_a_change_may_be_only_so_old() {
    let scene = Scene::apart();
    let session = Session::new().max_staleness(Duration::from_millis(1500));
    let mut tx = scene.anna.begin(session);
    assert_eq!(scene.first(&mut tx).unwrap(), 0);
    scene.change_all(1);
    scene.anna_sees(1);
    assert_eq!(tx.read(&scene.notes[1]).unwrap()[0], 0);
    std::thread::sleep(Duration::from_millis(2500));
    let error = tx.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
}
