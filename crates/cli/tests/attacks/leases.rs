//! Leases to write and to read, and hard reads, against a home and a site (rules C1 to C4).

use crate::common::metrics;
use crate::common::one_site::OneSite;
use crate::processes::resident_bytes;
use crate::scene::{
    Writer, add_one, arrive, ask, counter, creation, home_with, intrude, join, open, rate,
};
use std::path::Path;
use std::time::{Duration, Instant};
use thorp_client::{JoinConfig, Member, Procedure, Session, Visit};
use thorp_model::{
    CallId, CallRequest, CallResponse, DELEGATION_VERSION, DelegationNo, DelegationText, Down,
    HomeId, LogHead, LogId, MemberId, Message, Millis, PageId, PageWrites, Position, Privilege,
    SegmentId, Slot, Up, message,
};
use thorp_testing::{Attacker, AttackerEdge, HomeProcess, PATIENCE, signal};

pub(crate) fn to_write(segments: &[SegmentId]) -> CallRequest {
    CallRequest::Lease {
        segments: segments.to_vec(),
        privilege: Privilege::Write,
    }
}

fn back(home: HomeId, segments: &[SegmentId], privilege: Privilege) -> Up {
    Up::GiveBack(message::GiveBack {
        home,
        segments: segments.to_vec(),
        privilege,
    })
}

/// Opens so many segments, many calls at once.
pub(crate) fn open_many(writer: &mut Writer, count: usize) -> Vec<SegmentId> {
    let (member, home) = (writer.intruder.member, writer.intruder.home);
    let mut segments = Vec::new();
    let (mut sent, mut under_way) = (0, 0);
    while segments.len() < count {
        while under_way < 200 && sent < count {
            sent += 1;
            under_way += 1;
            let call = CallId {
                member,
                number: 1_000_000 + sent as u64,
            };
            let request = CallRequest::Open {
                path: format!("many/{}/{sent}", member.0),
                create: true,
            };
            writer.intruder.send(Up::Call(message::Call {
                call,
                home,
                request,
            }));
        }
        if let Down::CallResult(answer) = writer.intruder.hear() {
            under_way -= 1;
            match answer.result {
                Ok(CallResponse::Segment(info)) => segments.push(info.id),
                other => panic!("{other:?} after {}", segments.len()),
            }
        }
    }
    segments.sort();
    segments
}

fn table(home: &HomeProcess, name: &str) -> u64 {
    let text = metrics::of(&home.http);
    let wanted = format!("table_size{{table=\"{name}\"}}");
    let line = text.lines().find(|line| line.contains(&wanted));
    let Some(line) = line else {
        let sizes: Vec<&str> = text.lines().filter(|line| line.contains(name)).collect();
        println!("no {wanted}: {sizes:?}");
        return u64::MAX;
    };
    line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).display().to_string()
}

/// Anna's commits take no longer because somebody gives back what it never had.
fn assert_give_back_is_short(privilege: Privilege, below_site: bool) {
    let dir = tempfile::tempdir().unwrap();
    let village = OneSite::start(dir.path(), &["anna", "mallory"], &[]);
    let via = match below_site {
        true => &village.site_via,
        false => &village.home.via,
    };
    let anna = join(dir.path(), "anna", via);
    let money = counter(&anna, "thorp://alps/bank");
    add_one(&anna, &money).unwrap();
    let mut mallory = Writer::new(intrude(dir.path(), "mallory", via));
    let segments = open_many(&mut mallory, 512);
    for some in segments.chunks(64) {
        let leased = mallory.call(CallRequest::Lease {
            segments: some.to_vec(),
            privilege,
        });
        assert!(
            matches!(leased, Ok(CallResponse::Leased { .. })),
            "{leased:?}"
        );
    }
    let many = vec![SegmentId(0); 12 << 20];
    let home_id = mallory.intruder.home;
    mallory.intruder.send(back(home_id, &many, privilege));
    let (begun, mut last, mut gap, mut failed) =
        (Instant::now(), Instant::now(), Duration::ZERO, 0);
    while begun.elapsed() < Duration::from_secs(60)
        && (gap < Duration::from_secs(4) || last.elapsed() > gap)
    {
        match add_one(&anna, &money) {
            Ok(_) => {
                gap = gap.max(last.elapsed());
                last = Instant::now();
            }
            Err(_) => failed += 1,
        }
    }
    gap = gap.max(last.elapsed());
    println!("{privilege:?}: anna could not commit for {gap:?}, {failed} failed");
    assert!(gap < Duration::from_secs(4), "{gap:?}, {failed} failed");
}

#[test]
fn a_list_of_leases_that_are_given_back_has_a_bound() {
    assert_give_back_is_short(Privilege::Write, false);
}

#[test]
fn a_list_of_read_leases_that_are_given_back_has_a_bound() {
    assert_give_back_is_short(Privilege::Read { mods: 0 }, false);
}

#[test]
fn a_list_of_leases_that_are_given_back_has_a_bound_at_a_site() {
    assert_give_back_is_short(Privilege::Write, true);
}

/// A name starts again and again, takes leases, and gives them back.
#[test]
#[ignore = "it measures a rate: run it by itself"]
fn lease_origins_of_a_name_have_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_with(dir.path(), &[("anna", "member"), ("mallory", "member")]);
    let anna = join(dir.path(), "anna", &home.via);
    let money = counter(&anna, "thorp://alps/bank");
    let before = rate(&anna, &money, Duration::from_secs(4));
    let memory = resident_bytes(home.process.id()).unwrap();
    let mut mallory = Writer::new(intrude(dir.path(), "mallory", &home.via));
    let segments = open_many(&mut mallory, 1024);
    let attacker = Attacker::at(&path(dir.path(), "mallory"));
    let name = attacker.greeting().node.name();
    let begun = Instant::now();
    let mut starts = 0;
    while begun.elapsed() < Duration::from_secs(30) {
        starts += 1;
        let (mut edge, begin) = arrive(&attacker, &home.via, starts, Vec::new());
        let who = (MemberId::new(name, starts), begin.home);
        for (number, some) in (1..).zip(segments.chunks(64)) {
            let leased = ask(&mut edge, who, number, to_write(some));
            assert!(
                matches!(leased, Ok(CallResponse::Leased { .. })),
                "{leased:?}"
            );
        }
        edge.send(&Message::Up(back(who.1, &segments, Privilege::Write)));
        // The home has it when it refuses this.
        let empty = ask(&mut edge, who, 100, to_write(&[]));
        assert!(empty.is_err(), "{empty:?}");
    }
    std::thread::sleep(Duration::from_secs(2));
    let (origins, leases) = (table(&home, "lease_origins"), table(&home, "leases"));
    let after = rate(&anna, &money, Duration::from_secs(4));
    let grown = resident_bytes(home.process.id())
        .unwrap()
        .saturating_sub(memory)
        >> 20;
    println!(
        "{starts} starts: {origins} origins, {leases} leases, {grown} MiB; anna commits {before} before, {after} after in 4 s"
    );
    assert!(origins <= 2 * 4096, "{origins} origins of one name");
}

/// Rule R5: a change of rights ends leases. A lease that was refused for want of a place stays at the home, without an origin.
#[test]
fn a_lease_that_was_refused_does_not_outlive_the_right() {
    assert_right_ends_lease(64);
    assert_right_ends_lease(8192);
}

/// Mallory takes so many leases and gives them back, before she asks for one in anna's segment.
fn assert_right_ends_lease(before: usize) {
    let dir = tempfile::tempdir().unwrap();
    let home = home_with(dir.path(), &[("anna", "member"), ("mallory", "member")]);
    let mut mallory = Writer::new(intrude(dir.path(), "mallory", &home.via));
    let begun = Instant::now();
    let segments = open_many(&mut mallory, before);
    println!("made after {:?}", begun.elapsed());
    let mut anna = Writer::new(intrude(dir.path(), "anna", &home.via));
    let letters = open(&mut anna.intruder, "letters");
    let begun = Instant::now();
    let home_id = mallory.intruder.home;
    for some in segments.chunks(64) {
        let leased = mallory.call(to_write(some));
        assert!(
            matches!(leased, Ok(CallResponse::Leased { .. })),
            "{leased:?}"
        );
        mallory.intruder.send(back(home_id, some, Privilege::Write));
    }
    println!("filled after {:?}", begun.elapsed());
    let refused = mallory.call(to_write(&[letters]));
    println!("the lease in anna's segment: {refused:?}");
    anna.restrict(letters, "admin anna\n").unwrap();
    let again = mallory.call(to_write(&[letters]));
    println!("after the revocation: {again:?}");
    let pull = CallRequest::Pull {
        segments: vec![letters],
        patience_ms: 5_000,
    };
    let begun = Instant::now();
    let pulled = anna.call(pull);
    println!("anna's pull after {:?}: {pulled:?}", begun.elapsed());
    assert!(pulled.is_ok(), "{pulled:?}");
}

/// A site holds 4,096 leases. One name below it takes them all at the home: it gives each back to the site.
#[test]
fn a_name_below_a_site_leaves_others_leases() {
    let dir = tempfile::tempdir().unwrap();
    let village = OneSite::start(dir.path(), &["anna", "mallory"], &[]);
    let mut direct = Writer::new(intrude(dir.path(), "mallory", &village.home.via));
    let segments = open_many(&mut direct, 4096);
    drop(direct);
    let mut mallory = Writer::new(intrude(dir.path(), "mallory", &village.site_via));
    let mut anna = Writer::new(intrude(dir.path(), "anna", &village.site_via));
    let letters = open(&mut anna.intruder, "letters");
    let home_id = mallory.intruder.home;
    let begun = Instant::now();
    let mut took = 0;
    for some in segments.chunks(64) {
        let leased = mallory.call(to_write(some));
        took += usize::from(matches!(leased, Ok(CallResponse::Leased { .. })));
        mallory.intruder.send(back(home_id, some, Privilege::Write));
    }
    let of_anna = anna.call(to_write(&[letters]));
    println!(
        "mallory took {took} times 64 in {:?}; the home knows {} leases; anna gets {of_anna:?}",
        begun.elapsed(),
        table(&village.home, "leases")
    );
    assert!(
        matches!(of_anna, Ok(CallResponse::Leased { .. })),
        "{of_anna:?}"
    );
}

/// Each event of a home looks at each pull, and at each child that it awaits.
#[test]
#[ignore = "it measures a rate: run it by itself"]
fn pulls_that_await_many_leave_others_the_home() {
    const STARTS: u64 = 400;
    let dir = tempfile::tempdir().unwrap();
    let home = home_with(dir.path(), &[("anna", "member"), ("mallory", "member")]);
    let anna = join(dir.path(), "anna", &home.via);
    let money = counter(&anna, "thorp://alps/bank");
    let mut mallory = Writer::new(intrude(dir.path(), "mallory", &home.via));
    let segments = open_many(&mut mallory, 16);
    drop(mallory);
    let attacker = Attacker::at(&path(dir.path(), "mallory"));
    let name = attacker.greeting().node.name();
    let before = rate(&anna, &money, Duration::from_secs(5));
    let begun = Instant::now();
    let mut starts = 0;
    for random in 1..=STARTS {
        if begun.elapsed() > Duration::from_secs(25) {
            break;
        }
        let (mut edge, begin) = arrive(&attacker, &home.via, random, Vec::new());
        let who = (MemberId::new(name, random), begin.home);
        let leased = ask(&mut edge, who, 1, to_write(&segments[..1]));
        if !matches!(leased, Ok(CallResponse::Leased { .. })) {
            // So many starts of one name hold leases, and no more.
            break;
        }
        starts += 1;
    }
    println!("{starts} starts in {:?}", begun.elapsed());
    let mallory = Writer::new(intrude(dir.path(), "mallory", &home.via));
    for number in 0..64 {
        let call = CallId {
            member: mallory.intruder.member,
            number: 5_000 + number,
        };
        let home = mallory.intruder.home;
        let request = CallRequest::Pull {
            segments: segments.clone(),
            patience_ms: 60_000,
        };
        mallory.intruder.send(Up::Call(message::Call {
            call,
            home,
            request,
        }));
    }
    std::thread::sleep(Duration::from_millis(500));
    let begun = Instant::now();
    let during = rate(&anna, &money, Duration::from_secs(5));
    println!(
        "pulls {}; anna commits {before} before, {during} during, in 5 s ({:?})",
        table(&home, "pulls"),
        begun.elapsed()
    );
    assert!(during * 3 > before, "{before} before, {during} during");
}

/// Each *seen* lets a home look at each answer that it keeps back, and at each child that the answer waits for.
#[test]
#[ignore = "it measures a rate: run it by itself"]
fn what_is_seen_leaves_others_the_home() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_with(dir.path(), &[("anna", "member"), ("mallory", "member")]);
    let anna = join(dir.path(), "anna", &home.via);
    let money = counter(&anna, "thorp://alps/bank");
    let mut mallory = Writer::new(intrude(dir.path(), "mallory", &home.via));
    let segment = open(&mut mallory.intruder, "m");
    let end = mallory.reserve(segment, 1);
    let attacker = Attacker::at(&path(dir.path(), "mallory"));
    let name = attacker.greeting().node.name();
    let before = rate(&anna, &money, Duration::from_secs(3));
    let flood = |edge: &AttackerEdge, home: HomeId| {
        for _ in 0..3_000 {
            let seen = message::Seen {
                home,
                after: Position(0),
                position: Position(0),
            };
            edge.offer(&Message::Up(Up::Seen(seen)));
        }
    };
    flood(&mallory.intruder.edge, mallory.intruder.home);
    let alone = rate(&anna, &money, Duration::from_secs(3));
    // Readers that say nothing. Their leases last 10 s.
    let (begun, mut readers) = (Instant::now(), Vec::new());
    while begun.elapsed() < Duration::from_secs(4) && readers.len() < 100 {
        let random = 1 + readers.len() as u64;
        let (mut edge, begin) = arrive(&attacker, &home.via, random, Vec::new());
        let who = (MemberId::new(name, random), begin.home);
        let request = CallRequest::Lease {
            segments: vec![segment],
            privilege: Privilege::Read { mods: 0 },
        };
        let leased = ask(&mut edge, who, 1, request);
        assert!(
            matches!(leased, Ok(CallResponse::Leased { .. })),
            "{leased:?}"
        );
        readers.push(edge);
    }
    let begun = Instant::now();
    let page = PageId::new(segment.0, end.0 - 1);
    let mut commits = 0;
    while begun.elapsed() < Duration::from_secs(2) {
        for _ in 0..30 {
            commits += 1;
            let slots = vec![(Slot(commits), creation(b"x"))];
            let request = mallory.request(Vec::new(), vec![PageWrites { page, slots }]);
            mallory.intruder.send(Up::Commit(request));
        }
        let mut answered = 0;
        while answered < 30 {
            match mallory.intruder.hear() {
                Down::Step(step) if step.commit.is_some() => answered += 1,
                Down::Committed(_) => answered += 1,
                Down::Refused(refused) => panic!("{refused:?} after {commits}"),
                _ => {}
            }
        }
        if commits >= 210 {
            break;
        }
    }
    let (kept, leases) = (table(&home, "withheld"), table(&home, "read_leases"));
    flood(&mallory.intruder.edge, mallory.intruder.home);
    let during = rate(&anna, &money, Duration::from_secs(3));
    println!(
        "{} readers, {commits} commits, {kept} withheld, {leases} read leases; anna commits {before} before, {alone} beside the \
         same messages, {during} beside them with withheld answers, in 3 s",
        readers.len()
    );
    assert!(during * 2 > alone, "{before}, {alone}, {during}");
}

/// What a hard read elsewhere sees of an update that anna was answered just after her site went silent.
fn hard_read(full: bool) -> Result<i64, String> {
    let dir = tempfile::tempdir().unwrap();
    let village = OneSite::start(dir.path(), &["anna", "bert", "mallory"], &[]);
    let patience = Session::new().fetch_timeout(Duration::from_secs(3));
    let bert = JoinConfig::new(&*village.home.via).identity(dir.path().join("bert"));
    let bert = Member::join(bert.join_timeout(PATIENCE).session(patience)).unwrap();
    let of_bert = bert.create("thorp://alps/shared").unwrap();
    let counter = bert
        .transact(|tx| tx.create_typed(&of_bert, &0_i64))
        .unwrap();
    let mut kept = Vec::new();
    if full {
        let mut direct = Writer::new(intrude(dir.path(), "mallory", &village.home.via));
        let segments = open_many(&mut direct, 4096);
        drop(direct);
        let mut mallory = Writer::new(intrude(dir.path(), "mallory", &village.site_via));
        let home_id = mallory.intruder.home;
        for some in segments.chunks(64) {
            if mallory.call(to_write(some)).is_err() {
                // Her name has what it may have, also of those that she has given back.
                break;
            }
            mallory.intruder.send(back(home_id, some, Privilege::Write));
        }
        kept.push(mallory);
    }
    let anna = JoinConfig::new(&*village.site_via).identity(dir.path().join("anna"));
    let anna = anna.join_timeout(PATIENCE).log(dir.path().join("log"));
    let anna = Member::join(anna).unwrap();
    let of_anna = anna.open("thorp://alps/shared").unwrap();
    let add = || {
        let mut visit = Visit::open(&anna, "eventual".parse().unwrap(), &[&of_anna]).unwrap();
        visit
            .apply(&counter.reference(), Procedure::Add(1))
            .unwrap();
        visit.close().unwrap();
    };
    let read = || -> Result<i64, String> {
        let hard = "close-to-open,mode=rd".parse().unwrap();
        let mut visit = Visit::open(&bert, hard, &[&of_bert]).map_err(|why| why.to_string())?;
        visit.get(&counter).map_err(|why| why.to_string())
    };
    add();
    std::thread::sleep(Duration::from_secs(2));
    println!("before: {:?}", read());
    signal("STOP", village.site.id());
    let begun = Instant::now();
    add();
    println!("the second update was answered after {:?}", begun.elapsed());
    let seen = read();
    signal("CONT", village.site.id());
    println!("full {full}: a hard read sees {seen:?}");
    seen
}

/// Rules C3 and C10: what was answered before a hard read is seen by it, or the read fails.
#[test]
fn a_hard_read_never_misses_what_was_answered_below_a_site() {
    let usual = hard_read(false);
    assert!(usual.is_err() || usual == Ok(2), "{usual:?}");
    let beside_mallory = hard_read(true);
    assert!(
        beside_mallory.is_err() || beside_mallory == Ok(2),
        "{beside_mallory:?}"
    );
}

/// A process of a name comes to a site, and lets it speak for it.
fn delegate(attacker: &Attacker, via: &str, random: u64) -> (AttackerEdge, (MemberId, HomeId)) {
    let (mut edge, begin) = arrive(attacker, via, random, Vec::new());
    let member = MemberId::new(attacker.greeting().node.name(), random);
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let now = Millis(u64::try_from(since.as_millis()).unwrap());
    let delegation = attacker.sign(DelegationText {
        version: DELEGATION_VERSION,
        home: begin.home,
        member,
        number: DelegationNo(now.0),
        ends: now.plus(thorp_model::limits::DELEGATION_MS),
        sites: begin.sites.clone(),
    });
    let who = (member, begin.home);
    let registered = ask(&mut edge, who, 1, CallRequest::Register(Some(delegation)));
    assert!(
        matches!(registered, Ok(CallResponse::Registered(_))),
        "{registered:?}"
    );
    (edge, who)
}

/// What a pull of bert's gets, and what anna is told about her lease, while so many processes of mallory name many logs.
fn pulls_beside(processes: u64) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--lease", "8"];
    let village = OneSite::start_with(dir.path(), &["anna", "bert", "mallory"], &flags, &[]);
    let mut bert = Writer::new(intrude(dir.path(), "bert", &village.home.via));
    let shared = open(&mut bert.intruder, "shared");
    let mut anna = Writer::new(intrude(dir.path(), "anna", &village.site_via));
    let attacker = Attacker::at(&path(dir.path(), "mallory"));
    let mut edges = Vec::new();
    for random in 1..=processes {
        edges.push(delegate(&attacker, &village.site_via, random));
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut said = Vec::new();
    std::thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            let (mut calls, mut due) = (100, Instant::now());
            let (mut got, mut leased, mut refused) = (0, 0, Vec::new());
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let is_due = due <= Instant::now();
                if is_due {
                    due = Instant::now() + Duration::from_secs(2);
                }
                for (edge, (member, home)) in &mut edges {
                    if is_due {
                        calls += 1;
                        let call = CallId {
                            member: *member,
                            number: calls,
                        };
                        let (home, request) = (*home, to_write(&[shared]));
                        edge.send(&Message::Alive);
                        edge.send(&Message::Up(Up::Call(message::Call {
                            call,
                            home,
                            request,
                        })));
                    }
                    while let Some(Some(heard)) = edge.receive_within(Duration::from_micros(200)) {
                        match heard {
                            Message::Down(Down::Get(get)) => {
                                got += 1;
                                let head = |random| LogHead {
                                    log: LogId(MemberId::new(
                                        member.name(),
                                        member.0 as u64 * 1000 + random,
                                    )),
                                    segment: shared,
                                    number: 0,
                                };
                                let heads = (1..=256).map(head).collect();
                                edge.send(&Message::Up(Up::Heads(message::Heads {
                                    home: *home,
                                    pull: get.pull,
                                    heads,
                                })));
                            }
                            Message::Down(Down::CallResult(answer)) => match answer.result {
                                Ok(_) => leased += 1,
                                Err(why) => refused.push(format!("{why:?}")),
                            },
                            _ => {}
                        }
                    }
                }
            }
            refused.dedup();
            println!(
                "mallory: {got} questions, all answered; {leased} leases; refused: {refused:?}"
            );
        });
        std::thread::sleep(Duration::from_secs(1));
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(30) {
            let pull = CallRequest::Pull {
                segments: vec![shared],
                patience_ms: 2_000,
            };
            anna.intruder.edge.send(&Message::Alive);
            let pulled = bert.call(pull);
            let leased = anna.call(to_write(&[shared]));
            said.push(format!(
                "{:?}: bert {pulled:?}, anna {leased:?}",
                begun.elapsed()
            ));
            anna.intruder
                .send(back(anna.intruder.home, &[shared], Privilege::Write));
            std::thread::sleep(Duration::from_millis(500));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    said
}

/// A site answers a pull with at most 4,096 logs. What one name names below it is not to keep its answer from others.
#[test]
#[ignore = "finding: starts of one name that name too many logs keep their site from answering for one lease"]
fn who_names_many_logs_keeps_no_site_from_answering() {
    let few = pulls_beside(2);
    println!("2 processes: {:?} ... {} pulls", few.first(), few.len());
    let many = pulls_beside(18);
    println!("18 processes: {many:#?}");
    let failed = many.iter().filter(|said| said.contains("bert Err")).count();
    assert_eq!(failed, 0, "of {} pulls", many.len());
}
