//! Members of a site, and sites below it, against the others there.

use crate::scene::{Place, add_one, arrive, counter, intrude, invite, join};
use std::thread;
use std::time::{Duration, Instant};
use thorp_model::limits::CLAIMS_PASSED_MAX;
use thorp_model::{
    Claim, CommitId, Down, MemberId, Message, Position, Registration, SegmentId, Up, message,
};
use thorp_testing::{Attacker, Intruder, made_up_receipt};

/// Rule R9: a claim that a site cannot judge goes up. So many wait for the home's word, of all children together. A member asked,
/// too, although it has nobody below it, and took all places. A child whose claim found none heard nothing, ever.
#[test]
fn claims_of_others_keep_no_stream_from_beginning() {
    let mut place = Place::new("");
    invite(
        place.dir.path(),
        place.home.as_ref().unwrap(),
        "evil",
        "site",
    );
    let anna = Attacker::at(&place.dir.path().join("anna").display().to_string());
    let (edge, begin) = arrive(&anna, &place.site_via, 1, Vec::new());
    drop(edge);
    let home = begin.home;
    let claim = Claim {
        receipt: begin.receipt,
        position: begin.position,
        clock: begin.receipt.point.clock,
    };
    // She is away while the home starts again: she claims what it was.
    place.restart_home();
    let mut flood = Vec::new();
    for (name, random) in [("mallory", 1), ("evil", 2), ("evil", 3)] {
        let who = Attacker::at(&place.dir.path().join(name).display().to_string());
        flood.push(arrive(&who, &place.site_via, random, Vec::new()));
    }
    // The way to the home is slow for a while, or the home is busy.
    place.signal("STOP");
    let made_up = Claim {
        receipt: made_up_receipt(home),
        position: Position(0),
        clock: 0,
    };
    for (edge, begin) in &flood {
        let (epoch, claim) = (begin.epoch, made_up);
        let asks = |question| {
            let judge = message::Judge {
                epoch,
                question,
                claim,
            };
            edge.offer(&Message::Up(Up::Judge(judge)))
        };
        // Those that are cut off have no more to say.
        let _ = (0..CLAIMS_PASSED_MAX as u64).all(asks);
    }
    // The site has all of them before she comes again.
    thread::sleep(Duration::from_secs(8));
    let hello = anna.greeting();
    let mut back = anna.call_and_wait(&place.site_via, &hello).unwrap();
    back.send(&Message::Claims(vec![(home, claim)]));
    thread::sleep(Duration::from_secs(1));
    place.signal("CONT");
    // They go. A member that comes new is served.
    drop(flood);
    let bert = join(place.dir.path(), "bert", &place.site_via);
    let berts = counter(&bert, "thorp://alps/bert");
    assert!(add_one(&bert, &berts).is_ok());
    let (begun, mut has_begun) = (Instant::now(), false);
    while !has_begun && begun.elapsed() < Duration::from_secs(15) {
        back.send(&Message::Alive);
        let heard = back.receive_within(Duration::from_millis(300));
        has_begun = matches!(heard, Some(Some(Message::Down(Down::Begin(_)))));
    }
    assert!(
        has_begun,
        "her stream has not begun {:?} after a new one of somebody else",
        begun.elapsed()
    );
}

/// A site limits what its members have on their way to the home, so that it never ends its own edge there
/// (`SEND_WINDOW_BYTES_MAX`). It passed *settled* on without a limit, because nobody answers that.
#[test]
fn a_member_cannot_end_the_edge_of_its_site_by_what_is_settled() {
    assert_site_keeps_home(|begin, member, sequence| {
        Up::Settled(message::Settled {
            home: begin.home,
            commit: CommitId { member, sequence },
            registration: Registration::default(),
        })
    });
}

/// The same: each watch that began or ended went up.
#[test]
fn a_member_cannot_end_the_edge_of_its_site_by_watches() {
    assert_site_keeps_home(|begin, _, number| {
        Up::Watch(message::Watch {
            home: begin.home,
            epoch: begin.epoch,
            segment: SegmentId(77),
            on: number % 2 == 0,
        })
    });
}

/// Three processes of one member send these while the home is out of reach for a few seconds.
fn assert_site_keeps_home(sent: impl Fn(&message::Begin, MemberId, u64) -> Up) {
    // An eighth of the usual queue: builds for tests are slow to fill the whole one.
    let place = Place::new("[link]\nqueue_frames_max = 32768\n");
    let mut bert = intrude(place.dir.path(), "bert", &place.site_via);
    let attacker = Attacker::at(&place.dir.path().join("mallory").display().to_string());
    let name = attacker.greeting().node.name();
    let flood: Vec<_> = (1..=3)
        .map(|random| {
            let (edge, begin) = arrive(&attacker, &place.site_via, random, Vec::new());
            (edge, begin, MemberId::new(name, random))
        })
        .collect();
    // A path of a wide area may fail for a while without harm.
    place.signal("STOP");
    let lost = loses_home(&mut bert, Duration::from_secs(6));
    place.signal("CONT");
    assert_eq!(lost, None);
    thread::sleep(Duration::from_secs(2));
    place.signal("STOP");
    for number in 0..40_000 {
        for (edge, begin, member) in &flood {
            edge.offer(&Message::Up(sent(begin, *member, number)));
        }
    }
    let lost = loses_home(&mut bert, Duration::from_secs(6));
    place.signal("CONT");
    assert_eq!(
        lost, None,
        "after so long the site has lost the home for all its members"
    );
}

/// Rule R8: a home cuts off who reports a longer name than names are. A site passed such a report on, and was cut off itself.
#[test]
fn a_site_is_not_cut_off_for_what_a_site_below_it_reports() {
    let place = Place::new("");
    let home = place.home.as_ref().unwrap();
    let identity = invite(place.dir.path(), home, "evil", "site");
    let mut bert = intrude(place.dir.path(), "bert", &place.site_via);
    let mut evil = Intruder::enter_as_site(&identity, &place.site_via);
    evil.send(Up::Denied(message::Denied {
        home: evil.home,
        name: "x".repeat(300),
        segment: SegmentId(1),
        count: 1,
        site: None,
    }));
    assert_eq!(loses_home(&mut bert, Duration::from_secs(3)), None);
    evil.edge.eventually_ends();
}

/// Whether and when the stream of a member ends within a time.
fn loses_home(member: &mut Intruder, time: Duration) -> Option<Duration> {
    let begun = Instant::now();
    while begun.elapsed() < time {
        member.edge.send(&Message::Alive);
        match member.edge.receive_within(Duration::from_millis(200)) {
            Some(Some(Message::Down(Down::End(_)))) | Some(None) => return Some(begun.elapsed()),
            _ => {}
        }
    }
    None
}
