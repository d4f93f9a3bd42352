//! Transactions over segments of several homes: all of it or nothing, whoever is slow, gone, or in doubt.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use joins::Joins;
use std::thread;
use std::time::Duration;
use thorp_client::{
    CommitId, Error, ErrorKind, HomeId, JoinConfig, Member, Outcome, Ref, Reference, Result,
    Segment, Session, Transaction,
};
use thorp_testing::{HomeNode, eventually};

const SOON: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(60);
const SHORTLY: Duration = Duration::from_millis(100);

/// Two homes, an account at each, and a member that knows both.
struct Scene {
    alps: HomeNode,
    dale: HomeNode,
    anna: Member,
    here: Ref<u64>,
    there: Ref<u64>,
}

fn scene() -> Scene {
    let alps = HomeNode::sharing_with(&["dale"]);
    let dale = alps.beside("dale", HomeId(8));
    let anna = Member::join(ways(&alps, &dale)).unwrap();
    let (here, there) = (bank(&anna, "alps"), bank(&anna, "dale"));
    // The first of each: page and slot are the same at both homes.
    let accounts = anna.transact(|tx| {
        Ok((
            tx.create_typed(&here, &100u64)?,
            tx.create_typed(&there, &100u64)?,
        ))
    });
    let (here, there) = accounts.unwrap();
    assert_eq!(here.reference().object, there.reference().object);
    Scene {
        alps,
        dale,
        anna,
        here,
        there,
    }
}

/// Straight at both homes.
fn ways(alps: &HomeNode, dale: &HomeNode) -> JoinConfig {
    alps.config().and_home(dale.address().to_string())
}

fn bank(member: &Member, home: &str) -> Segment {
    member
        .open_or_create(&format!("thorp://{home}/bank"))
        .unwrap()
}

fn pay(tx: &mut Transaction, from: &Ref<u64>, to: &Ref<u64>, sum: u64) -> Result<()> {
    let rest = tx.get(from)?.checked_sub(sum);
    tx.put(from, &rest.ok_or_else(|| Error::aborted("not enough"))?)?;
    let more = tx.get(to)? + sum;
    tx.put(to, &more)
}

impl Scene {
    fn neighbour(&self, session: Session) -> Member {
        Member::join(ways(&self.alps, &self.dale).session(session)).unwrap()
    }

    /// One whom both homes have registered: that takes a disk.
    fn known(&self, session: Session) -> Member {
        self.known_as(ways(&self.alps, &self.dale).session(session))
    }

    fn known_as(&self, config: JoinConfig) -> Member {
        let member = Member::join(config).unwrap();
        member
            .transact(|tx| pay(tx, &self.here, &self.there, 0))
            .unwrap();
        // What comes next is not mistaken for the end of this.
        eventually("both homes know how it ended", || {
            let in_doubt = |home: &HomeNode| home.size("in_doubt");
            in_doubt(&self.alps) == 0 && in_doubt(&self.dale) == 0
        });
        for home in [&self.alps, &self.dale] {
            home.eventually_quiet();
        }
        member
    }

    /// Both as they are now.
    fn balances(&self, member: &Member) -> (u64, u64) {
        self.seen(member, Session::new().strict(true))
    }

    /// Both as they were at some moment.
    fn balances_once(&self, member: &Member) -> (u64, u64) {
        self.seen(member, Session::new())
    }

    fn seen(&self, member: &Member, session: Session) -> (u64, u64) {
        let both = |tx: &mut Transaction| Ok((tx.get(&self.here)?, tx.get(&self.there)?));
        member.transact_with(session, both).unwrap()
    }

    /// A payment whose vote at the other home is on its way to the disk.
    fn begin_paying(&self, hold: fn(&HomeNode)) -> thread::JoinHandle<Result<()>> {
        let (member, here, there) = (self.known(Session::new()), self.here, self.there);
        hold(&self.dale);
        let paying = thread::spawn(move || {
            let mut tx = member.begin(Session::new());
            pay(&mut tx, &here, &there, 30)?;
            tx.commit().map(drop)
        });
        eventually("one home has voted, the other is about to", || {
            self.alps.size("in_doubt") == 1 && self.dale.has_waiting()
        });
        paying
    }
}

fn doubt(error: &Error) -> CommitId {
    match error.kind() {
        ErrorKind::OutcomeUnknown(id) => id,
        other => panic!("{other:?}: {error}"),
    }
}

#[test]
fn a_payment_from_one_home_to_another_happens_whole_in_both_faces() {
    let scene = scene();
    let (anna, here, there) = (&scene.anna, scene.here, scene.there);
    let mut tx = anna.begin(Session::new());
    pay(&mut tx, &here, &there, 10).unwrap();
    assert_eq!((tx.get(&here).unwrap(), tx.get(&there).unwrap()), (90, 110));
    let committed = tx.commit().unwrap();
    assert!(committed.id.is_some() && committed.stamp.is_some());
    assert_eq!(committed.position, None, "it has one at each home");
    assert_eq!(scene.balances_once(anna), (90, 110), "its own writes");

    let work = async |tx: &mut Transaction| {
        let (mine, yours) = (tx.get_async(&here).await?, tx.get_async(&there).await?);
        tx.put(&here, &(mine - 5))?;
        tx.put(&there, &(yours + 5))
    };
    let runtime = thorp_net::driver::runtime().unwrap();
    runtime.block_on(anna.transact_async(work)).unwrap();
    assert_eq!(scene.balances(&scene.neighbour(Session::new())), (85, 115));
    // Nothing is kept of what every home has heard of.
    eventually("the votes are forgotten", || {
        scene.alps.size("votes") + scene.dale.size("votes") == 0
    });
}

#[test]
fn a_reference_leads_from_one_home_to_another() {
    let scene = scene();
    let alps = bank(&scene.anna, "alps");
    let set = |tx: &mut Transaction| {
        let note = tx.create_typed(&alps, &scene.there)?;
        tx.set_root(&alps, "account", Some(note.reference()))
    };
    scene.anna.transact(set).unwrap();
    let bert = scene.neighbour(Session::new());
    let alps = bank(&bert, "alps");
    let found = bert.transact(|tx| {
        let root = tx.root(&alps, "account")?;
        let account: Ref<u64> = tx.get(&Ref::<Ref<u64>>::new(root.unwrap()))?;
        Ok((account, tx.get(&account)?))
    });
    let (account, balance) = found.unwrap();
    assert_eq!((account, balance), (scene.there, 100));
    let text = bert.format(&account.reference()).unwrap();
    assert!(text.starts_with("thorp://dale/bank#"), "{text}");
    assert_eq!(bert.parse(&text).unwrap(), account.reference());
}

#[test]
fn a_site_serves_several_homes() {
    let scene = scene();
    let site = scene.alps.site_below(&[&scene.dale], 1 << 20);
    let join = || {
        let config = JoinConfig::new(site.address().to_string());
        let config = config.identity_of(scene.alps.identity());
        Member::join(config).unwrap()
    };
    let (bert, carl) = (join(), join());
    assert_eq!(scene.balances(&bert), (100, 100));
    bert.transact(|tx| pay(tx, &scene.there, &scene.here, 60))
        .unwrap();
    assert_eq!(scene.balances(&carl), (160, 40));
    assert_eq!(scene.balances(&scene.anna), (160, 40));
}

#[test]
fn who_only_reads_sees_a_payment_at_both_homes_or_at_none() {
    let scene = scene();
    let (anna, bert) = (&scene.anna, scene.neighbour(Session::new()));
    thread::scope(|scope| {
        let paying = scope.spawn(|| {
            for n in 0..60u64 {
                let (from, to) = match n % 2 {
                    0 => (&scene.here, &scene.there),
                    _ => (&scene.there, &scene.here),
                };
                anna.transact(|tx| pay(tx, from, to, n)).unwrap();
            }
        });
        let mut sums = 0;
        while !paying.is_finished() || sums < 10 {
            let (here, there) = scene.balances_once(&bert);
            assert_eq!(here + there, 200);
            sums += 1;
        }
    });
    assert_eq!(scene.balances(&bert), (130, 70), "all of it, in the end");
    // Who wants the newest is judged by the homes: another's payment between its reads and its end is a conflict.
    let mut tx = bert.begin(Session::new().strict(true));
    let seen = (tx.get(&scene.here).unwrap(), tx.get(&scene.there).unwrap());
    assert_eq!(seen.0 + seen.1, 200);
    anna.transact(|tx| pay(tx, &scene.here, &scene.there, 1))
        .unwrap();
    assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn an_error_says_which_home_refused() {
    let scene = scene();
    let bert = scene.neighbour(Session::new());
    let mut tx = bert.begin(Session::new());
    tx.put(&scene.here, &1).unwrap();
    tx.put(&scene.there, &1).unwrap();
    let gone: &Reference = scene.there.as_ref();
    scene.anna.transact(|tx| tx.delete(gone)).unwrap();
    let error = tx.commit().unwrap_err();
    assert_eq!(
        (error.kind(), error.home()),
        (ErrorKind::Gone, Some("dale"))
    );
    assert!(error.to_string().starts_with("home dale: "), "{error}");
    let left = bert.transact(|tx| tx.get(&scene.here)).unwrap();
    assert_eq!(left, 100, "nothing of it happened at the other home");
}

#[test]
fn what_a_vote_in_doubt_has_locked_is_a_conflict_and_free_again_with_the_outcome() {
    let scene = scene();
    let paying = scene.begin_paying(HomeNode::hold_disk);
    let once = Session::new().attempts_max(1);
    let deposit = |tx: &mut Transaction| {
        let more = tx.get(&scene.here)? + 1;
        tx.put(&scene.here, &more)
    };
    // What anna has just created may be delivered while she reads it: that is a conflict, too, and another try.
    let refused = || scene.anna.transact_with(once, deposit).unwrap_err();
    let in_doubt = |error: &Error| error.to_string().contains("in doubt");
    let error = (0..20).map(|_| refused()).find(in_doubt);
    let error = error.expect("a refusal that tells of the doubt");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.is_retryable());
    // What is not in its way goes on.
    let alps = bank(&scene.anna, "alps");
    scene
        .anna
        .transact(|tx| tx.create_typed(&alps, &1u64))
        .unwrap();
    let patient = Session::new().attempts_max(1000);
    thread::scope(|scope| {
        let depositing = scope.spawn(|| scene.anna.transact_with(patient, deposit));
        scene.dale.release_disk();
        depositing.join().unwrap().unwrap();
    });
    paying.join().unwrap().unwrap();
    assert_eq!(scene.balances(&scene.anna), (71, 130));
}

#[test]
fn while_one_home_is_gone_the_other_goes_on_and_both_wait() {
    let scene = scene();
    let impatient = Session::new().commit_timeout(SOON);
    let bert = scene.neighbour(impatient);
    assert_eq!(scene.balances(&bert), (100, 100));
    scene.dale.stop();
    eventually("it is missed", || {
        bert.homes().iter().filter(|home| home.reachable).count() == 1
    });
    bert.transact(|tx| tx.put(&scene.here, &70)).unwrap();
    let error = bert
        .transact(|tx| pay(tx, &scene.here, &scene.there, 1))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HomeUnreachable);
    assert!(error.to_string().contains("dale"), "{error}");
    assert_eq!(scene.alps.size("votes"), 0, "nobody voted");
    thread::scope(|scope| {
        let paying = scope.spawn(|| {
            let patient = Session::new();
            bert.transact_with(patient, |tx| pay(tx, &scene.here, &scene.there, 20))
        });
        scene.dale.restart();
        paying.join().unwrap().unwrap();
    });
    assert_eq!(scene.balances(&scene.anna), (50, 120));
}

#[test]
fn an_outcome_that_did_not_come_in_time_is_asked_for_later() {
    let scene = scene();
    let impatient = Session::new().commit_timeout(SOON);
    let bert = scene.known(impatient);
    scene.dale.hold_disk();
    let mut tx = bert.begin(impatient);
    pay(&mut tx, &scene.here, &scene.there, 30).unwrap();
    let id = doubt(&tx.commit().unwrap_err());
    scene.dale.release_disk();
    let told = eventually_told(&bert, id);
    assert!(matches!(told, Outcome::Committed(c) if c.position.is_none()));
    assert_eq!(scene.balances(&scene.anna), (70, 130));
}

#[test]
fn a_vote_that_was_lost_with_its_home_is_a_no() {
    let scene = scene();
    let paying = scene.begin_paying(HomeNode::lose_disk);
    scene.dale.stop();
    scene.dale.restart();
    let error = paying.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_eq!(scene.balances(&scene.anna), (100, 100));
    assert_eq!(scene.alps.size("in_doubt"), 0);
}

fn eventually_told(member: &Member, id: CommitId) -> Outcome {
    let mut told = None;
    eventually("the outcome is known", || {
        told = member.outcome(id).ok();
        told.is_some()
    });
    told.unwrap()
}

#[test]
fn homes_end_what_a_member_that_has_gone_began() {
    let scene = scene();
    let session = Session::new().commit_timeout(SOON);
    let member = scene.known(session);
    scene.dale.hold_disk();
    let mut tx = member.begin(session);
    pay(&mut tx, &scene.here, &scene.there, 30).unwrap();
    doubt(&tx.commit().unwrap_err());
    member.close();
    drop(member);
    scene.dale.release_disk();
    // Dale knows the way to the other home, which it dials now: both voted, so it happened.
    eventually("dale finds out", || scene.dale.size("in_doubt") == 0);
    let dale = bank(&scene.anna, "dale");
    let strict = Session::new().strict(true);
    let there = dale
        .member()
        .transact_with(strict, |tx| tx.get(&scene.there));
    assert_eq!(there.unwrap(), 130);
}

#[test]
fn what_was_written_beside_a_vote_in_doubt_is_read_with_its_homes_word() {
    let scene = scene();
    let alps = bank(&scene.anna, "alps");
    let note = scene.anna.transact(|tx| tx.create(&alps, "before"));
    let note = note.unwrap();
    // Nobody has told this one of another home.
    let carl = scene.alps.member();
    let read = |member: &Member| {
        let mut tx = member.begin(Session::new());
        let bytes = tx.read(&note).unwrap().to_vec();
        (tx.commit().unwrap().id.is_some(), bytes)
    };
    let members = [&scene.anna, &carl];
    for member in members {
        eventually("it costs no message", || !read(member).0);
    }
    let paying = scene.begin_paying(HomeNode::hold_disk);
    scene.anna.transact(|tx| tx.write(&note, "after")).unwrap();
    // The payment may yet get an earlier stamp, and somebody may have seen it at the other home (trap 19).
    for member in members {
        eventually("it has heard of that", || {
            let (asked, bytes) = read(member);
            assert!(asked || bytes == b"before", "it is on the homes' word");
            asked && bytes == b"after"
        });
    }
    scene.dale.release_disk();
    paying.join().unwrap().unwrap();
    for member in members {
        eventually("it costs no message again", || !read(member).0);
    }
}

/// What a transaction that reads both cost: whether it was free, and whether the homes voted on it.
fn read_both(scene: &Scene, member: &Member) -> (bool, bool) {
    read_both_in(scene, member, Session::new())
}

fn read_both_in(scene: &Scene, member: &Member, session: Session) -> (bool, bool) {
    let before = member.stats();
    let mut tx = member.begin(session);
    tx.get(&scene.here).unwrap();
    tx.get(&scene.there).unwrap();
    let committed = tx.commit().unwrap();
    let spent = member.stats().since(&before);
    (spent.free_commits == 1, committed.id.is_some())
}

#[test]
fn what_is_cached_of_two_homes_is_read_without_a_message() {
    let scene = scene();
    scene
        .anna
        .transact(|tx| pay(tx, &scene.here, &scene.there, 1))
        .unwrap();
    let bert = scene.neighbour(Session::new());
    assert_eq!(scene.balances(&bert), (99, 101));
    // Acknowledgements go up now and then, whatever the program does.
    let quiet = (0..20).any(|_| {
        let before = bert.stats();
        for _ in 0..100 {
            assert_eq!(scene.balances_once(&bert), (99, 101));
        }
        let spent = bert.stats().since(&before);
        assert_eq!(
            (spent.commits, spent.free_commits, spent.fetches),
            (100, 100, 0)
        );
        spent.traffic.frames_sent == 0
    });
    assert!(quiet, "every hundred transactions sent something");
}

#[test]
fn a_home_that_lags_is_asked_to_promise_and_then_nothing_more_is_asked() {
    let scene = scene();
    let bert = scene.neighbour(Session::new());
    eventually("both homes have promised enough", || {
        read_both(&scene, &bert).0
    });
    // Dale has nothing to do with this, and its last heartbeat is older; unless one comes just now.
    let lagged = (0..20u64).any(|n| {
        bert.transact(|tx| tx.put(&scene.here, &n)).unwrap();
        let (free, voted) = read_both(&scene, &bert);
        assert!(!voted, "what was promised is enough");
        assert_eq!(
            read_both(&scene, &bert),
            (true, false),
            "for the next one, too"
        );
        !free
    });
    assert!(lagged, "every time a heartbeat was faster");
}

#[test]
fn a_session_does_not_go_back_at_another_home() {
    let scene = scene();
    let bert = scene.neighbour(Session::new());
    let there = |tx: &mut Transaction| tx.get(&scene.there);
    eventually("dale has promised enough", || {
        let before = bert.stats();
        bert.transact(there).unwrap();
        bert.stats().since(&before).free_commits == 1
    });
    let asks = (0..20u64).any(|n| {
        bert.transact(|tx| tx.put(&scene.here, &n)).unwrap();
        let before = bert.stats();
        // What is cached of dale may be as of before that: dale has to say that it is not.
        bert.transact(there).unwrap();
        bert.stats().since(&before).free_commits == 0
    });
    assert!(asks, "it stood below its own write");
}

#[test]
fn homes_that_all_tell_where_it_stands_need_not_vote() {
    let scene = scene();
    let (bert, strict) = (scene.neighbour(Session::new()), Session::new().strict(true));
    assert_eq!(scene.balances(&bert), (100, 100));
    assert_eq!(read_both_in(&scene, &bert, strict), (false, false));
}

#[test]
fn homes_whose_clocks_are_too_far_apart_vote_on_what_was_read() {
    let scene = scene();
    scene.alps.stop();
    scene.alps.put_clock_ahead(Duration::from_secs(600));
    scene.alps.restart();
    let (anna, bert) = (&scene.anna, scene.neighbour(Session::new()));
    anna.transact(|tx| tx.put(&scene.here, &70)).unwrap();
    // Dale does not promise ten minutes ahead of its time, not even to a reader whom it validates: but a vote is decided.
    assert_eq!(read_both(&scene, &bert), (false, true), "it is a commit");
    eventually("dale's clock was moved by the decision", || {
        read_both(&scene, &bert).0
    });
    assert_eq!(scene.balances(&bert), (70, 100));
}

#[test]
fn who_leaves_right_after_a_commit_leaves_no_home_in_doubt() {
    let scene = scene();
    // However long the home takes to be back.
    let patient = ways(&scene.alps, &scene.dale).leave_timeout(LONG);
    let (member, here, there) = (scene.known_as(patient), scene.here, scene.there);
    scene.alps.hold_disk();
    let leaving = thread::spawn(move || {
        member
            .transact(|tx| {
                let seen = tx.get(&there)?;
                tx.put(&here, &seen)
            })
            .unwrap();
        // The program ends here.
        drop(member);
    });
    eventually("one home has voted, the other is about to", || {
        scene.dale.size("in_doubt") == 1 && scene.alps.has_waiting()
    });
    // Time for its vote to arrive; it is not there when the other one makes the outcome, nor when the program is answered.
    thread::sleep(SHORTLY);
    scene.dale.stop();
    scene.alps.release_disk();
    thread::sleep(SHORTLY);
    scene.dale.restart();
    leaving.join().unwrap();
    assert_eq!(scene.dale.size("in_doubt"), 0, "it was told");
    assert_eq!(scene.balances(&scene.anna), (100, 100));
}

/// What a program was promised to learn is not pushed out by what no program asks for.
#[test]
fn many_readings_that_end_too_late_push_out_no_outcome() {
    let scene = scene();
    let (bert, carl) = (scene.known(Session::new()), scene.known(Session::new()));
    let soon = Session::new().commit_timeout(SHORTLY);
    scene.alps.hold_disk();
    let error = bert.transact_with(soon, |tx| tx.put(&scene.here, &70));
    let unknown = doubt(&error.unwrap_err());
    scene.alps.release_disk();
    let strict = Session::new()
        .strict(true)
        .commit_timeout(Duration::from_millis(2));
    let mut too_late = 0;
    for round in 0.. {
        if too_late >= 400 {
            break;
        }
        // What dale validates waits for this.
        scene.dale.hold_disk();
        let write = carl.transact_early(|tx| tx.put(&scene.there, &round));
        let ((), written) = write.unwrap();
        eventually("it is about to be written", || scene.dale.has_waiting());
        for _ in 0..30 {
            let mut tx = bert.begin(strict);
            let seen = tx.get(&scene.here).and_then(|_| tx.get(&scene.there));
            let error = seen.and_then(|_| tx.commit()).unwrap_err();
            too_late += u32::from(error.kind() == ErrorKind::HomeUnreachable);
        }
        scene.dale.release_disk();
        written.wait().unwrap();
    }
    let outcome = bert.outcome(unknown).unwrap();
    assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
    assert_eq!(scene.balances(&bert).0, 70);
}
