//! Attacks with an ordinary certificate on real processes that go through: what a test demands that is ignored does not hold
//! yet. Attacks that come to nothing stand in `refused_attacks.rs`.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::one_site::OneSite;
use common::thorp;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thorp_client::{AuditEvent, JoinConfig, Member, Reference, Session};
use thorp_model::limits::{CLAIMS_PASSED_MAX, DENIALS_MAX, GROUPS_PER_LIST_MAX, REPORT_PAGES_MAX};
use thorp_model::{
    AUDIT_RECORDS_MAX, Attempt, Blob, CallId, CallRequest, CallResponse, Claim, CommitId,
    CommitRequest, Down, Generation, HomeId, MemberId, Message, Millis, NewValue, PageId, PageNo,
    PageWrites, Part, Position, RIGHTS_SLOT, Refusal, Registration, ReportNo, Reported, SegmentId,
    Slot, SlotSet, Stamp, Subject, Up, WriteOp, message, rights_page,
};
use thorp_testing::{
    Attacker, AttackerEdge, HomeProcess, Intruder, OF_A_TEST, PATIENCE, Process, eventually,
    made_up_receipt, signal,
};

fn join(dir: &Path, name: &str, via: &str) -> Member {
    let config = JoinConfig::new(via).identity(dir.join(name));
    Member::join(config.join_timeout(PATIENCE)).unwrap()
}

fn intrude(dir: &Path, name: &str, via: &str) -> Intruder {
    Intruder::enter(&dir.join(name).display().to_string(), via)
}

fn invite(dir: &Path, home: &HomeProcess, name: &str, role: &str) -> String {
    let out = dir.join(name).display().to_string();
    let words = ["invite", name, "--role", role, "--dir", &home.authority];
    let said = thorp().run(&[&words[..], &["--out", &out]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    out
}

fn open(intruder: &mut Intruder, path: &str) -> SegmentId {
    let request = CallRequest::Open {
        path: path.to_owned(),
        create: true,
    };
    match intruder.call(request) {
        Down::CallResult(message::CallResult {
            result: Ok(CallResponse::Segment(info)),
            ..
        }) => info.id,
        other => panic!("{other:?}"),
    }
}

/// Commits as one of the registrations of an intruder.
struct Writer {
    intruder: Intruder,
    registration: Registration,
    sequence: u64,
}

impl Writer {
    fn new(mut intruder: Intruder) -> Self {
        let registration = intruder.register();
        Writer {
            intruder,
            registration,
            sequence: 0,
        }
    }

    fn request(&mut self, reads: Vec<(PageId, SlotSet)>, writes: Vec<PageWrites>) -> CommitRequest {
        self.sequence += 1;
        CommitRequest {
            id: CommitId {
                member: self.intruder.member,
                sequence: self.sequence,
            },
            registration: self.registration,
            part: Part {
                home: self.intruder.home,
                evidence: self.intruder.position,
                reads,
                writes,
            },
            with: Vec::new(),
            depends_on: Vec::new(),
            after: Stamp::default(),
        }
    }

    /// Changes the rights list of a segment.
    fn restrict(&mut self, segment: SegmentId, list: &str) -> Result<(), Refusal> {
        let op = WriteOp::Write {
            generation: Generation(1),
            value: NewValue::Inline(Blob::from(list.as_bytes())),
        };
        let writes = PageWrites {
            page: rights_page(segment),
            slots: vec![(RIGHTS_SLOT, op)],
        };
        let request = self.request(Vec::new(), vec![writes]);
        let id = request.id;
        self.intruder.send(Up::Commit(request));
        loop {
            match self.intruder.hear() {
                Down::Step(step) if step.commit == Some(id) => return Ok(()),
                Down::Committed(committed) if committed.commit == id => return Ok(()),
                Down::Refused(refused) if refused.commit == id => return Err(refused.refusal),
                _ => {}
            }
        }
    }
}

/// What an operator reads in a terminal.
fn printed(home: &HomeProcess, olga: &str) -> String {
    let said = thorp().run(&["audit", "alps", "--via", &home.via, "--identity", olga]);
    said.out
}

/// The same, a line for each record, however many there are.
fn audit(home: &HomeProcess, olga: &str) -> String {
    let config = JoinConfig::new(&home.via).identity(olga);
    let olga = Member::join(config.join_timeout(PATIENCE)).unwrap();
    let entries = olga.audit("alps").unwrap_or_default();
    let lines = entries.iter().map(|entry| {
        let what = match entry.event {
            AuditEvent::Denied { .. } => "wanted",
            _ => "changed",
        };
        format!("{} {} {what} {} .\n", entry.number, entry.who, entry.path)
    });
    lines.collect()
}

fn has_line(text: &str, words: &[&str]) -> bool {
    let mut lines = text.lines();
    lines.any(|line| words.iter().all(|word| line.contains(word)))
}

/// Rule R8: the ring keeps what others did. A site may fill a quarter of it, a member all of it.
#[test]
fn a_member_cannot_write_over_what_the_audit_has_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    for (name, role) in [
        ("anna", "member"),
        ("mallory", "member"),
        ("olga", "operator"),
    ] {
        invite(dir.path(), &home, name, role);
    }
    let olga = dir.path().join("olga").display().to_string();
    let anna = join(dir.path(), "anna", &home.via);
    let plans = anna.create("thorp://alps/plans").unwrap();
    let secret = anna
        .transact(|tx| tx.create(&plans, b"plan 42".to_vec()))
        .unwrap();
    plans.revoke(&Subject::Members).unwrap();

    let mut mallory = intrude(dir.path(), "mallory", &home.via);
    mallory.fetch(secret.object.page, false);
    let wanted = ["mallory", "wanted", "plans"];
    eventually("the audit has what mallory wanted", || {
        has_line(&audit(&home, &olga), &wanted)
    });
    let mut mallory = Writer::new(mallory);
    for number in 0..1_200 {
        let segment = open(&mut mallory.intruder, &format!("m{number}"));
        mallory.restrict(segment, "admin mallory\n").unwrap();
    }
    thread::sleep(Duration::from_secs(2));
    let now = audit(&home, &olga);
    let is_mallorys = |line: &&str| line.contains("mallory changed");
    let mallorys = now.lines().filter(is_mallorys).count();
    assert_eq!(mallorys, AUDIT_RECORDS_MAX as usize / 8, "{now}");
    assert!(
        has_line(&now, &wanted) && has_line(&now, &["anna", "changed", "plans"]),
        "the audit has nothing but mallory's own lists: {}",
        now.lines().take(4).collect::<Vec<_>>().join("\n")
    );
}

/// Rule R8: every use of power leaves a record. So many kinds of events wait to be written, and a member can be all of them.
#[test]
fn a_member_cannot_keep_what_others_do_out_of_the_audit() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    for (name, role) in [("mallory", "member"), ("olga", "operator")] {
        invite(dir.path(), &home, name, role);
    }
    let olga_dir = dir.path().join("olga").display().to_string();
    let mut mallory = Writer::new(intrude(dir.path(), "mallory", &home.via));
    let mut segments = Vec::new();
    for number in 0..300 {
        let segment = open(&mut mallory.intruder, &format!("m{number}"));
        mallory
            .restrict(segment, "read mallory\nadmin nobody-else\n")
            .unwrap();
        segments.push(segment);
    }
    let ends = Arc::new(AtomicBool::new(false));
    let (until, mut flooding) = (Arc::clone(&ends), mallory.intruder);
    let flood = thread::spawn(move || {
        while !until.load(Ordering::Relaxed) {
            for segment in &segments {
                let denied = flooding.call(CallRequest::Remove { segment: *segment });
                assert!(matches!(denied, Down::CallResult(_)), "{denied:?}");
            }
        }
    });
    thread::sleep(Duration::from_secs(1));
    let mut olga = Writer::new(intrude(dir.path(), "olga", &home.via));
    for number in 0..20 {
        let segment = open(&mut olga.intruder, &format!("olgas{number}"));
        olga.restrict(segment, "read anna\n").unwrap();
        thread::sleep(Duration::from_millis(130));
    }
    ends.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    thread::sleep(Duration::from_secs(2));
    let now = audit(&home, &olga_dir);
    let recorded = (0..20).filter(|number| {
        let path = format!(" olgas{number} ");
        has_line(&now, &["olga", "changed", &path])
    });
    let recorded = recorded.count();
    assert_eq!(recorded, 20, "of 20 changes of lists by an operator");
}

/// Rule R8: every refusal leaves a record. A parent counts 64 pairs of name and segment between two reports, and a member can be all
/// of them: with segments that it has closed to itself it hides what it really wanted.
#[test]
#[ignore = "finding: a member that is denied 64 other segments first leaves no record of what it wanted"]
fn a_member_cannot_hide_what_it_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    for (name, role) in [
        ("anna", "member"),
        ("mallory", "member"),
        ("olga", "operator"),
    ] {
        invite(dir.path(), &home, name, role);
    }
    let anna = join(dir.path(), "anna", &home.via);
    let plans = anna.create("thorp://alps/plans").unwrap();
    let secret = anna.transact(|tx| tx.create(&plans, b"plan 42".to_vec()));
    let secret = secret.unwrap().object.page;
    plans.revoke(&Subject::Members).unwrap();
    let mut mallory = Writer::new(intrude(dir.path(), "mallory", &home.via));
    let mut pages = Vec::new();
    for number in 0..=DENIALS_MAX {
        let segment = open(&mut mallory.intruder, &format!("m{number}"));
        mallory.restrict(segment, "admin nobody-else\n").unwrap();
        pages.push(rights_page(segment));
    }
    pages.push(secret);
    thread::sleep(Duration::from_secs(1));
    for page in &pages {
        mallory.intruder.send(Up::Fetch(message::Fetch {
            home: mallory.intruder.home,
            epoch: mallory.intruder.epoch,
            page: *page,
            attempt: Attempt(1),
            peers: false,
            ahead: false,
            updates: 0,
        }));
    }
    for _ in &pages {
        assert!(matches!(mallory.intruder.hear(), Down::Image(_)));
    }
    thread::sleep(Duration::from_secs(2));
    let now = audit(&home, &dir.path().join("olga").display().to_string());
    assert!(has_line(&now, &["mallory", "wanted", " m7 "]), "{now}");
    assert!(has_line(&now, &["mallory", "wanted", "plans"]), "{now}");
}

/// Rule R7: a name has a share of what sites are told about readers. It pays for a group when it names it, and not for those
/// who come into the group later.
#[test]
#[ignore = "finding: a member that names groups before they are filled takes all that sites are told about readers"]
fn who_names_groups_early_takes_no_more_of_the_readers_than_its_share() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    for (name, role) in [
        ("anna", "member"),
        ("mallory", "member"),
        ("olga", "operator"),
    ] {
        invite(dir.path(), &home, name, role);
    }
    let mut list = String::from("admin mallory\n");
    for group in 0..GROUPS_PER_LIST_MAX {
        list.push_str(&format!("read @g{group}\n"));
    }
    let mut mallory = Writer::new(intrude(dir.path(), "mallory", &home.via));
    for number in 0..300 {
        let segment = open(&mut mallory.intruder, &format!("m{number}"));
        mallory.restrict(segment, &list).unwrap();
    }
    let mut olga = Writer::new(intrude(dir.path(), "olga", &home.via));
    let names: String = (0..200).map(|n| format!("read a{n}\n")).collect();
    let mut filled = 0;
    let mut refused = None;
    for group in 0..GROUPS_PER_LIST_MAX {
        let segment = open(&mut olga.intruder, &format!(".group/g{group}"));
        match olga.restrict(segment, &names) {
            Ok(()) => filled += 1,
            Err(refusal) => refused = refused.or(Some(refusal)),
        }
    }
    // What is left goes to smaller groups.
    for (group, count) in (filled..).zip([100, 50, 20, 10, 5, 2, 1]) {
        let some: String = (0..count).map(|n| format!("read a{n}\n")).collect();
        let segment = open(&mut olga.intruder, &format!(".group/g{group}"));
        let _ = olga.restrict(segment, &some);
    }
    let mut anna = Writer::new(intrude(dir.path(), "anna", &home.via));
    let letters = open(&mut anna.intruder, "letters");
    let restricted = anna.restrict(letters, &format!("admin anna\n{names}"));
    assert_eq!(
        (filled, refused, restricted),
        (GROUPS_PER_LIST_MAX, None, Ok(())),
        "groups that an operator could fill, and whether anna could restrict her segment"
    );
}

/// Threat 30: NOT WELL with two times says that a clock of a home is wrong. A member says so of homes that are right, or are
/// not there.
#[test]
#[ignore = "finding: a member makes a home report that another home's clock is wrong"]
fn a_member_cannot_raise_the_alarm_of_clocks() {
    let dir = tempfile::tempdir().unwrap();
    let village = OneSite::start(dir.path(), &["mallory"], &[]);
    let mut mallory = intrude(dir.path(), "mallory", &village.site_via);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let hour = Millis(u64::try_from(since.as_millis()).unwrap()).plus(3_600_000);
    let at_least = Stamp {
        clock: Stamp::clock_of(hour),
        home: HomeId(4_711),
    };
    let answer = mallory.call(CallRequest::Watermark { at_least });
    assert!(matches!(answer, Down::CallResult(_)), "{answer:?}");
    let said = thorp().run(&["status", &village.home.http]);
    assert_eq!(said.code, 0, "{}", said.out);
}

/// A home, and a site below it.
struct Place {
    dir: tempfile::TempDir,
    home: Option<HomeProcess>,
    _site: Process,
    site_via: String,
}

impl Place {
    fn new(site_config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = thorp().home(dir.path());
        for name in ["anna", "bert", "mallory"] {
            invite(dir.path(), &home, name, "member");
        }
        let file = dir.path().join("site.toml");
        fs::write(&file, site_config).unwrap();
        let config = ["--config", file.to_str().unwrap()];
        let above = ("alps", &*home.via);
        let (site, site_via) = site(dir.path(), &home, "valley", above, &config);
        Place {
            dir,
            home: Some(home),
            _site: site,
            site_via,
        }
    }

    fn signal(&self, name: &str) {
        signal(name, self.home.as_ref().unwrap().process.id());
    }

    fn restart_home(&mut self) {
        let home = self.home.take().unwrap();
        assert_eq!(home.process.terminate(), 0);
        self.home = Some(thorp().home(self.dir.path()));
    }
}

fn add_one(member: &Member, counter: &Reference) -> thorp_client::Result<u64> {
    let session = Session::new().strict(true);
    let timeouts = session
        .fetch_timeout(Duration::from_secs(2))
        .commit_timeout(Duration::from_secs(2));
    let mut tx = member.begin(timeouts);
    let value = tx.read(counter)?;
    let value = u64::from_le_bytes(value.try_into().unwrap()) + 1;
    tx.write(counter, value.to_le_bytes().to_vec())?;
    tx.commit()?;
    Ok(value)
}

fn counter(member: &Member, path: &str) -> Reference {
    let segment = member.create(path).unwrap();
    let made = member.transact(|tx| tx.create(&segment, 0_u64.to_le_bytes()));
    made.unwrap()
}

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
/// (`SEND_WINDOW_BYTES_MAX`). It passes *settled* on without a limit.
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

/// The same: each watch that begins or ends goes up.
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

/// How many transactions a member commits in so long.
fn rate(member: &Member, counter: &Reference, time: Duration) -> u32 {
    let (begun, mut count) = (Instant::now(), 0);
    while begun.elapsed() < time {
        if add_one(member, counter).is_ok() {
            count += 1;
        }
    }
    count
}

/// What a home does for one name takes time from all others: the time is not shared.
#[test]
#[ignore = "finding: one member's transactions that read much leave others a small part of their rate"]
fn what_one_member_reads_leaves_others_half_of_their_rate() {
    const EXTENTS: u32 = 256;
    let dir = tempfile::tempdir().unwrap();
    let village = OneSite::start(dir.path(), &["anna", "mallory"], &[]);
    let anna = join(dir.path(), "anna", &village.home.via);
    let money = counter(&anna, "thorp://alps/bank");
    let mut mallory = Writer::new(intrude(dir.path(), "mallory", &village.home.via));
    let segment = open(&mut mallory.intruder, "m");
    let mut last = 0;
    for _ in 0..EXTENTS {
        match mallory.intruder.call(CallRequest::Reserve { segment }) {
            Down::CallResult(message::CallResult {
                result: Ok(CallResponse::Extent { first, pages }),
                ..
            }) => last = first.0 + pages,
            other => panic!("{other:?}"),
        }
    }
    let before = rate(&anna, &money, Duration::from_secs(4));
    let ends = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&ends);
    let flood = thread::spawn(move || {
        let reads = |first| {
            let pages = (first..last).map(|page| PageId {
                segment,
                page: PageNo(page),
            });
            pages
                .map(|page| (page, SlotSet::of(Slot(0))))
                .collect::<Vec<_>>()
        };
        let (mut under_way, mut done) = (0, 0);
        while !until.load(Ordering::Relaxed) {
            while under_way < 32 {
                let request = mallory.request(reads(1), Vec::new());
                mallory.intruder.send(Up::Commit(request));
                under_way += 1;
            }
            match mallory.intruder.hear() {
                Down::Committed(_) => {
                    under_way -= 1;
                    done += 1;
                }
                Down::Refused(refused) => panic!("{refused:?}"),
                _ => {}
            }
        }
        done
    });
    thread::sleep(Duration::from_secs(1));
    let during = rate(&anna, &money, Duration::from_secs(8)) / 2;
    ends.store(true, Ordering::Relaxed);
    let done = flood.join().unwrap();
    assert!(
        2 * during >= before,
        "{during} commits in four seconds instead of {before}, beside {done} of mallory's"
    );
}

/// Starts a site below another node.
fn site(
    dir: &Path,
    home: &HomeProcess,
    name: &str,
    above: (&str, &str),
    flags: &[&str],
) -> (Process, String) {
    let identity = dir.join(name);
    if !identity.exists() {
        invite(dir, home, name, "site");
    }
    let via = format!("unix:{}", dir.join(format!("{name}.sock")).display());
    let identity = identity.display().to_string();
    let mut command = thorp().command(&["site", "--identity", &identity]);
    command
        .arg(format!("--home={}={}", above.0, above.1))
        .args(["--listen", &via])
        .args(flags)
        .args(OF_A_TEST);
    let site = Process::start(command);
    site.ready();
    (site, via)
}

/// The memory of a process, in bytes.
fn resident(process: &Process) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse::<u64>().unwrap() << 10
}

/// Rule 15: nobody makes a parent grow. What it notes of one process is limited, and a name may have any number of processes.
/// They report pages that are not there.
#[test]
#[ignore = "finding: each process of a name makes its parent note 4,194,304 pages more, which need not be there"]
fn the_processes_of_a_name_make_a_home_grow_no_more_than_one() {
    const PIECES: u32 = 128;
    const PROCESSES: u64 = 6;
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let identity = invite(dir.path(), &home, "mallory", "member");
    let attacker = Attacker::at(&identity);
    let before = resident(&home.process);
    let (mut edges, mut grown) = (Vec::new(), Vec::new());
    for random in 1..=PROCESSES {
        let (mut edge, begin) = arrive(&attacker, &home.via, random, Vec::new());
        for piece in 0..PIECES {
            let first = (random as u32 * PIECES + piece) * REPORT_PAGES_MAX as u32;
            let pages = (first..first + REPORT_PAGES_MAX as u32).map(|page| Reported {
                page: PageId::new(77, page),
                as_of: begin.position,
                complete: true,
            });
            edge.send(&Message::Up(Up::Report(message::Report {
                home: begin.home,
                epoch: begin.epoch,
                report: ReportNo(u64::from(piece)),
                pages: pages.collect(),
            })));
            while !matches!(edge.receive(), Some(Message::Down(Down::Resynchronised(_)))) {}
        }
        edges.push(edge);
        grown.push(resident(&home.process).saturating_sub(before) >> 20);
        for edge in &edges {
            edge.offer(&Message::Alive);
        }
    }
    // The first ones take what the home had free.
    let last = grown[grown.len() - 1] - grown[grown.len() - 2];
    assert!(last < 4, "MiB after each process: {grown:?}");
}

/// Rule R8: a record names the site that reported it. A site passes on what a site below it says, and the record has its own
/// name.
#[test]
#[ignore = "finding: a site makes up denials that the audit says an honest site above it has reported"]
fn a_site_makes_up_no_denials_in_the_name_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let home = thorp().home(dir);
    for (name, role) in [("evil", "site"), ("olga", "operator")] {
        invite(dir, &home, name, role);
    }
    let above = ("alps", &*home.via);
    let (_valley, via) = site(dir, &home, "valley", above, &[]);
    let olga = dir.join("olga").display().to_string();
    let evil = Intruder::enter_as_site(&dir.join("evil").display().to_string(), &via);
    evil.send(Up::Denied(message::Denied {
        home: evil.home,
        name: String::from("anna"),
        segment: SegmentId(1),
        count: 1_000,
    }));
    eventually("it is in the audit", || {
        printed(&home, &olga).contains("anna")
    });
    let text = printed(&home, &olga);
    assert!(!has_line(&text, &["anna", "valley"]), "{text}");
}

/// Rule R5: a segment that a name may not read is to it as one that is not there. Who wants to make it learns the difference.
#[test]
#[ignore = "finding: who asks to make a segment learns whether a hidden one has that path"]
fn who_makes_segments_learns_no_hidden_paths() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    for name in ["anna", "mallory"] {
        invite(dir.path(), &home, name, "member");
    }
    let anna = join(dir.path(), "anna", &home.via);
    let plans = anna.create("thorp://alps/plans/merger").unwrap();
    plans.revoke(&Subject::Members).unwrap();
    let mut mallory = intrude(dir.path(), "mallory", &home.via);
    let mut is_refused = |path: &str| {
        let (path, create) = (path.to_owned(), true);
        let told = mallory.call(CallRequest::Open { path, create });
        matches!(&told, Down::CallResult(answer) if answer.result.is_err())
    };
    let (hidden, absent) = (is_refused("plans/merger"), is_refused("plans/sale"));
    assert_eq!(
        hidden, absent,
        "whether a hidden path and an absent one are refused"
    );
}

/// A process of a name comes, with an id of its own, and claims this.
fn arrive(
    attacker: &Attacker,
    via: &str,
    random: u64,
    claims: Vec<(HomeId, Claim)>,
) -> (AttackerEdge, message::Begin) {
    let mut hello = attacker.greeting();
    hello.node = MemberId::new(hello.node.name(), random);
    let mut edge = attacker.call_and_wait(via, &hello).unwrap();
    edge.send(&Message::Claims(claims));
    loop {
        match edge.receive() {
            Some(Message::Down(Down::Begin(begin))) => return (edge, begin),
            Some(_) => {}
            None => panic!("turned away"),
        }
    }
}

/// The same, registered at the home.
fn register(attacker: &Attacker, via: &str, random: u64) -> (AttackerEdge, CommitId, Registration) {
    let (mut edge, begin) = arrive(attacker, via, random, Vec::new());
    let (member, home) = (
        MemberId::new(attacker.greeting().node.name(), random),
        begin.home,
    );
    let call = CallId { member, number: 1 };
    let request = CallRequest::Register(None);
    edge.send(&Message::Up(Up::Call(message::Call {
        call,
        home,
        request,
    })));
    loop {
        match edge.receive() {
            Some(Message::Down(Down::CallResult(message::CallResult {
                result: Ok(CallResponse::Registered(registration)),
                ..
            }))) => {
                let sequence = 0;
                return (edge, CommitId { member, sequence }, registration);
            }
            Some(Message::Down(Down::CallResult(refused))) => panic!("{refused:?}"),
            Some(_) => {}
            None => panic!("turned away"),
        }
    }
}

/// Rule R7, threat 29: one name fills no more than half of the free space. What is remembered of its refused commits counts
/// for nobody.
#[test]
#[ignore = "finding: the outcomes of refused commits of one name fill a small store"]
fn refused_commits_of_one_name_leave_space_to_others() {
    const PROCESSES: u64 = 1_000;
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home_with(dir.path(), &["--limit-bytes", "1 MiB"]);
    for name in ["anna", "mallory"] {
        invite(dir.path(), &home, name, "member");
    }
    let anna = join(dir.path(), "anna", &home.via);
    let letters = anna.create("thorp://alps/letters").unwrap();
    let put = || anna.transact(|tx| tx.create(&letters, vec![7; 100]));
    put().unwrap();
    let number = letters.home();
    let attacker = Attacker::at(&dir.path().join("mallory").display().to_string());
    for random in 1..=PROCESSES {
        let (mut edge, first, registration) = register(&attacker, &home.via, random);
        for sequence in 1..=256 {
            let page = PageId::new(9_999, 1);
            let op = WriteOp::Delete {
                generation: Generation(1),
            };
            let slots = vec![(Slot(0), op)];
            edge.send(&Message::Up(Up::Commit(CommitRequest {
                id: CommitId { sequence, ..first },
                registration,
                part: Part {
                    home: number,
                    evidence: Position(0),
                    reads: Vec::new(),
                    writes: vec![PageWrites { page, slots }],
                },
                with: Vec::new(),
                depends_on: Vec::new(),
                after: Stamp::default(),
            })));
        }
        let mut answers = 0;
        while answers < 256 {
            if let Some(Message::Down(Down::Refused(_))) = edge.receive() {
                answers += 1;
            }
        }
        if let Err(error) = put() {
            panic!("after {random} processes with 256 refused commits each: {error}");
        }
    }
}

/// A site says whom it has denied something: any text. An operator reads it in a terminal, line by line.
#[test]
fn a_site_makes_up_no_lines_of_the_audit() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    for (name, role) in [("evil", "site"), ("olga", "operator")] {
        invite(dir.path(), &home, name, role);
    }
    let olga = dir.path().join("olga").display().to_string();
    let identity = dir.path().join("evil").display().to_string();
    for name in ["x\n7  olga  changed the rights", "\u{1b}[2J\u{1b}[8mnobody"] {
        let mut evil = Intruder::enter_as_site(&identity, &home.via);
        evil.send(Up::Denied(message::Denied {
            home: evil.home,
            name: name.to_owned(),
            segment: SegmentId(1),
            count: 1,
        }));
        evil.edge.eventually_ends();
    }
    // What it said before that is written by now.
    thread::sleep(Duration::from_secs(1));
    let text = printed(&home, &olga);
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert!(
        !text.lines().any(|line| line.starts_with("7  olga")),
        "{text}"
    );
}
