//! Visits: sessions that choose their consistency (rule C12).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use joins::Joins;
use std::time::Duration;
use thorp_client::{
    Consistency, ErrorKind, HomeId, JoinConfig, Member, Moment, Procedure, Reference, Segment,
    Session, Visit,
};
use thorp_protocol::Home;
use thorp_testing::{HomeNode, Link, eventually};

/// Anna at the home, and Ben far from it.
struct Scene {
    home: HomeNode,
    link: Link,
    anna: Member,
    ben: Member,
    object: Reference,
    other: Reference,
}

/// How far Ben is, one way.
const FAR: Duration = Duration::from_millis(150);

fn scene() -> Scene {
    let home = HomeNode::new();
    let link = home.link(Duration::ZERO);
    let anna = home.member();
    let patience = Session::new().fetch_timeout(Duration::from_secs(2));
    let far = JoinConfig::new(link.address()).identity_of(home.identity());
    let ben = Member::join(far.name("ben").session(patience)).unwrap();
    let segment = news(&anna);
    let (object, other) = anna
        .transact(|tx| Ok((tx.create(&segment, "old")?, tx.create(&segment, "old")?)))
        .unwrap();
    let read = |at: &Reference| ben.transact(|tx| tx.read(at).map(<[u8]>::to_vec));
    assert_eq!(read(&object).unwrap(), b"old");
    assert_eq!(read(&other).unwrap(), b"old");
    link.set_delay(FAR);
    Scene {
        home,
        link,
        anna,
        ben,
        object,
        other,
    }
}

fn news(member: &Member) -> Segment {
    member.open_or_create("thorp://alps/news").unwrap()
}

fn visit(member: &Member, consistency: &str) -> Visit {
    let consistency: Consistency = consistency.parse().unwrap();
    Visit::open(member, consistency, &[&news(member)]).unwrap()
}

fn write(member: &Member, object: &Reference, text: &str) {
    member
        .transact(|tx| tx.write(object, text.as_bytes()))
        .unwrap();
}

/// Anna's write is answered, and is on its way to Ben.
#[test]
fn a_hard_read_sees_what_was_answered_and_a_soft_one_asks_nobody() {
    let scene = scene();
    let Scene {
        anna, ben, object, ..
    } = &scene;
    // Ben opens the segment before, so that it costs nothing then.
    let segment = news(ben);
    let soft: Consistency = "mode=rd,time=0,soft".parse().unwrap();
    let hard: Consistency = "close-to-open".parse().unwrap();
    write(anna, object, "new");
    let before = scene.link.carried();
    let mut near = Visit::open(ben, soft, &[&segment]).unwrap();
    assert_eq!(near.read(object).unwrap(), b"old");
    assert_eq!(scene.link.carried().up, before.up, "it asks nobody");
    let mut sure = Visit::open(ben, hard, &[&segment]).unwrap();
    assert_eq!(sure.read(object).unwrap(), b"new");
    // A bound in updates is as hard.
    write(anna, object, "newer");
    let mods: Consistency = "bounded,mods=5,hard".parse().unwrap();
    let mut counted = Visit::open(ben, mods, &[&segment]).unwrap();
    assert_eq!(counted.read(object).unwrap(), b"newer");
    // The old view stays what it was, although the change is here now.
    assert_eq!(near.read(object).unwrap(), b"old");
}

/// Ben reads under a lease, a round trip away. Anna has her answer when he has seen what she wrote (rule C2).
#[test]
fn a_home_counts_how_long_writers_wait_for_readers() {
    let scene = scene();
    let waited = || scene.home.handle().inspect(Home::writers_waited_ms).wait();
    eventually("Ben has a read lease", || {
        drop(visit(&scene.ben, "close-to-open"));
        scene.home.size("read_leases") == 1
    });
    assert_eq!(waited(), Some(0));
    write(&scene.anna, &scene.object, "new");
    // The home counts whole milliseconds of its own clock.
    let round_trip = 2 * FAR.as_millis() as u64 - 2;
    let all = waited().unwrap();
    assert!(all >= round_trip, "{all} ms of at least {round_trip}");
    write(&scene.anna, &scene.object, "newer");
    assert!(waited().unwrap() >= all + round_trip, "it only grows");
}

#[test]
fn within_its_bound_in_time_a_visit_asks_once() {
    let scene = scene();
    let Scene {
        anna, ben, object, ..
    } = &scene;
    let segment = news(ben);
    let bounded: Consistency = "bounded,time=1h,hard".parse().unwrap();
    let mut first = Visit::open(ben, bounded, &[&segment]).unwrap();
    assert_eq!(first.read(object).unwrap(), b"old");
    write(anna, object, "new");
    // Another visit of this member, within the bound.
    let before = scene.link.carried();
    let mut second = Visit::open(ben, bounded, &[&segment]).unwrap();
    assert_eq!(second.read(object).unwrap(), b"old");
    assert_eq!(scene.link.carried().up, before.up, "it has asked already");
    // One without that bound asks.
    let mut third = Visit::open(ben, bounded.with_time(Duration::ZERO), &[&segment]).unwrap();
    assert_eq!(third.read(object).unwrap(), b"new");
}

#[test]
fn a_view_moves_at_open_at_each_access_or_on_refresh() {
    let scene = scene();
    let Scene {
        anna,
        ben,
        object,
        other,
        ..
    } = &scene;
    let mut by_session = visit(ben, "snapshot,mode=rd");
    let mut by_access = visit(ben, "stream,mode=rd");
    let mut by_hand = visit(ben, "mode=rd,isolation=manual");
    assert_eq!(by_session.read(object).unwrap(), b"old");
    assert_eq!(by_hand.read(object).unwrap(), b"old");
    write(anna, object, "new");
    write(anna, other, "new");
    eventually("the changes are here", || {
        by_access.read(other).unwrap() == b"new"
    });
    assert_eq!(by_access.read(object).unwrap(), b"new");
    // Also what it had not read before is as of its opening.
    assert_eq!(by_session.read(other).unwrap(), b"old");
    assert_eq!(by_session.read(object).unwrap(), b"old");
    assert_eq!(by_hand.read(other).unwrap(), b"old");
    by_hand.refresh().unwrap();
    assert_eq!(by_hand.read(other).unwrap(), b"new");
    let refused = by_session.refresh().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(
        refused.to_string().contains("isolation=session"),
        "{refused}"
    );
}

/// What an old image showed is gone: an error, and nothing newer (rule C12).
#[test]
fn what_is_not_kept_any_more_is_an_error() {
    let scene = scene();
    let Scene {
        home, anna, other, ..
    } = &scene;
    // Far enough behind that it is in another page.
    let segment = news(anna);
    let object = &anna
        .transact(|tx| {
            for _ in 0..100 {
                tx.create(&segment, vec![0; 1000])?;
            }
            tx.create(&segment, "old")
        })
        .unwrap();
    let small = home.config().name("carl").cache_bytes(1);
    let carl = Member::join(small).unwrap();
    let mut view = visit(&carl, "snapshot,mode=rd");
    // From its first read on a visit stays where it is.
    assert_eq!(view.read(other).unwrap(), b"old");
    write(anna, object, "new");
    eventually("the change is here", || {
        carl.transact(|tx| tx.read(object).map(<[u8]>::to_vec))
            .unwrap()
            == b"new"
    });
    let gone = view.read(object).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::Conflict);
    assert!(gone.to_string().contains("open another visit"), "{gone}");
    assert_eq!(
        visit(&carl, "snapshot,mode=rd").read(object).unwrap(),
        b"new"
    );
}

#[test]
fn updates_leave_at_close_at_once_or_when_they_are_published() {
    let scene = scene();
    let Scene {
        anna, ben, object, ..
    } = &scene;
    scene.link.set_delay(Duration::ZERO);
    let append = |text: &str| Procedure::Append(text.as_bytes().into());
    let seen = || {
        anna.transact(|tx| tx.read(object).map(<[u8]>::to_vec))
            .unwrap()
    };
    let mut at_close = visit(ben, "mode=wr");
    at_close.apply(object, append("+")).unwrap();
    assert_eq!(at_close.read(object).unwrap(), b"old+", "it sees its own");
    let mut at_once = visit(ben, "mode=wr,visibility=access");
    at_once.apply(object, append("!")).unwrap();
    eventually("it has left at once", || seen() == b"old!");
    // Two that update one object do not conflict.
    at_close.close().unwrap();
    eventually("it has left at close", || seen() == b"old!+");
    let mut by_hand = visit(ben, "mode=wr,visibility=manual");
    by_hand.write(object, "all").unwrap();
    by_hand.apply(object, append("?")).unwrap();
    by_hand.publish().unwrap();
    eventually("it is published", || seen() == b"all?");
    by_hand.delete(object).unwrap();
    assert_eq!(by_hand.read(object).unwrap_err().kind(), ErrorKind::Gone);
    drop(by_hand);
    assert_eq!(seen(), b"all?", "what was not published is given up");
}

#[test]
fn without_its_home_a_visit_says_whom_it_left_out_or_fails() {
    let scene = scene();
    let Scene { ben, object, .. } = &scene;
    let segment = news(ben);
    let bounded: Consistency = "bounded,time=1h,hard".parse().unwrap();
    drop(Visit::open(ben, bounded, &[&segment]).unwrap());
    scene.link.cut();
    eventually("ben has lost the home", || !ben.homes()[0].reachable);
    // It is no older than an hour.
    let mut young = Visit::open(ben, bounded, &[&segment]).unwrap();
    assert_eq!(young.read(object).unwrap(), b"old");
    let refused = Visit::open(ben, Consistency::CLOSE_TO_OPEN, &[&segment]);
    assert_eq!(refused.err().unwrap().kind(), ErrorKind::HomeUnreachable);
    let optimistic: Consistency = "mode=rd,hard,failures=optimistic:100ms".parse().unwrap();
    let mut alone = Visit::open(ben, optimistic, &[&segment]).unwrap();
    assert_eq!(alone.left_out(), ["alps"]);
    assert_eq!(alone.read(object).unwrap(), b"old");
    scene.link.set_delay(Duration::ZERO);
    scene.link.mend();
    eventually("it is back", || {
        let visit = Visit::open(ben, optimistic, &[&segment]).unwrap();
        visit.left_out().is_empty()
    });
}

/// A visit with a hard bound: again while its home is not reached.
fn open_when_reached(member: &Member, segment: &Segment) -> Visit {
    for _ in 0..20 {
        match Visit::open(member, Consistency::CLOSE_TO_OPEN, &[segment]) {
            Err(error) if error.kind() == ErrorKind::HomeUnreachable => {}
            opened => return opened.unwrap(),
        }
    }
    panic!("the home is not reached");
}

/// After a broken stream pages are shown as of where that ended, until it is known which have changed (rule 13).
#[test]
fn a_hard_read_after_a_broken_stream_sees_what_was_answered_meanwhile() {
    let scene = scene();
    let Scene {
        anna, ben, object, ..
    } = &scene;
    scene.link.set_delay(Duration::from_millis(5));
    let segment = news(ben);
    for round in 0..20 {
        scene.link.cut();
        let text = format!("round {round}");
        // While ben holds a read lease, this waits until the lease is over. After that long a cut he dials less often.
        write(anna, object, &text);
        scene.link.mend();
        let mut visit = open_when_reached(ben, &segment);
        assert_eq!(visit.read(object).unwrap(), text.as_bytes());
    }
}

#[test]
fn what_is_not_built_or_not_meant_is_refused() {
    let scene = scene();
    let Scene { anna, object, .. } = &scene;
    let segment = news(anna);
    let cases = [
        ("serializable", "use Member::transact"),
        ("strict", "use Member::transact"),
        ("mode=wr,order=stamp", "stamp order is not built yet"),
    ];
    for (text, words) in cases {
        let consistency: Consistency = text.parse().unwrap();
        let refused = Visit::open(anna, consistency, &[&segment]).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{text}");
        assert!(refused.to_string().contains(words), "{text}: {refused}");
    }
    // Anna joined without a log.
    let mut without = visit(anna, "eventual");
    let refused = without.write(object, "x").and_then(|()| without.publish());
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("JoinConfig::log"), "{refused}");
    drop(without);
    let wrong = Consistency::STREAM.atomic();
    let refused = Visit::open(anna, wrong, &[&segment]).err().unwrap();
    assert!(refused.to_string().contains("leaves as one"), "{refused}");
    let mut reader = visit(anna, "eventual,mode=rd");
    assert_eq!(reader.consistency().isolation(), Moment::Session);
    let refused = reader.write(object, "x").unwrap_err();
    assert!(refused.to_string().contains("only reads"), "{refused}");
    let elsewhere = anna.open_or_create("thorp://alps/other").unwrap();
    let there = anna.transact(|tx| tx.create(&elsewhere, "x")).unwrap();
    let refused = reader.read(&there).unwrap_err();
    assert!(
        refused.to_string().contains("was not opened on"),
        "{refused}"
    );
}

#[test]
fn neither_a_group_nor_a_causal_order_goes_over_several_homes_yet() {
    let alps = HomeNode::sharing_with(&["dale"]);
    let dale = alps.beside("dale", HomeId(8));
    let both = alps.config().and_home(dale.address().to_string());
    let anna = Member::join(both).unwrap();
    let segments = ["thorp://alps/a", "thorp://dale/b"];
    let segments = segments.map(|name| anna.open_or_create(name).unwrap());
    let [here, there] = [0, 1].map(|at: usize| {
        let segment = &segments[at];
        anna.transact(|tx| tx.create(segment, "x")).unwrap()
    });
    let [a, b] = &segments;
    let causal: Consistency = "mode=wr,causal".parse().unwrap();
    let refused = Visit::open(&anna, causal, &[a, b]).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    drop(Visit::open(&anna, causal, &[a]).unwrap());
    let group: Consistency = "mode=wr,atomic".parse().unwrap();
    let mut visit = Visit::open(&anna, group, &[a, b]).unwrap();
    visit.write(&here, "y").unwrap();
    visit.write(&there, "y").unwrap();
    assert_eq!(visit.close().unwrap_err().kind(), ErrorKind::Invalid);
    // Without a group each home gets its own.
    let mut visit = Visit::open(&anna, "mode=wr".parse().unwrap(), &[a, b]).unwrap();
    visit.write(&here, "z").unwrap();
    visit.write(&there, "z").unwrap();
    visit.close().unwrap();
    for at in [&here, &there] {
        let read = anna.transact(|tx| tx.read(at).map(<[u8]>::to_vec));
        assert_eq!(read.unwrap(), b"z");
    }
}
