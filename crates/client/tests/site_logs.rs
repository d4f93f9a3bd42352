//! The log of a site: members without one write while the home is away (rules C6 and C7).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

use std::time::Duration;
use thorp_client::{
    Consistency, ErrorKind, JoinConfig, Member, Procedure, Reference, Right, RightsList, Segment,
    Session, Subject, Transaction, Visit,
};
use thorp_model::Refusal;
use thorp_store::UpdateLog;
use thorp_testing::{HomeNode, Link, SiteNode, Village, eventually};

/// A site with a log that `office-log` keeps. Anna and Abe have none, and Ben is at the home.
struct Scene {
    village: Village,
    _home: HomeNode,
    site: SiteNode,
    link: Link,
    logs: tempfile::TempDir,
    ben: Member,
    segment: Segment,
    counter: Reference,
}

fn scene() -> Scene {
    let village = Village::new();
    let home = village.home("alps");
    let link = home.link(Duration::ZERO);
    let site = village.site_with_log("office", "office-log", &[&link]);
    let logs = tempfile::tempdir().unwrap();
    let ben = JoinConfig::new(home.address().to_string()).identity(village.member("ben"));
    let ben = Member::join(ben).unwrap();
    let segment = shared(&ben);
    let made = ben.transact(|tx| tx.create(&segment, [0].as_slice()));
    Scene {
        village,
        _home: home,
        site,
        link,
        logs,
        ben,
        segment,
        counter: made.unwrap(),
    }
}

impl Scene {
    fn config(&self, name: &str) -> JoinConfig {
        let patience = Session::new().fetch_timeout(Duration::from_secs(20));
        let config = JoinConfig::new(self.site.address().to_string());
        config.identity(self.village.member(name)).session(patience)
    }

    fn member(&self, name: &str) -> Member {
        Member::join(self.config(name)).unwrap()
    }

    /// The member that keeps the log of the site.
    fn keeper(&self) -> Member {
        let config = self.config("office-log").log(self.logs.path());
        Member::join(config.keeps_for_neighbours()).unwrap()
    }

    fn seen_by_ben(&self) -> i64 {
        let read = |tx: &mut Transaction| tx.read(&self.counter).map(<[u8]>::to_vec);
        number(&self.ben.transact(read).unwrap())
    }

    fn add(&self, member: &Member, segment: &Segment) -> thorp_client::Result<()> {
        let mut visit = visit(member, segment, "eventual");
        visit.apply(&self.counter, Procedure::Add(1))?;
        visit.close()
    }

    fn shown(&self, member: &Member, segment: &Segment) -> i64 {
        let mut visit = visit(member, segment, "eventual,mode=rd");
        number(&visit.read(&self.counter).unwrap())
    }
}

fn shared(member: &Member) -> Segment {
    member.open_or_create("thorp://alps/shared").unwrap()
}

/// A small number as `postcard` has it.
fn number(bytes: &[u8]) -> i64 {
    assert!(bytes.len() == 1 && bytes[0].is_multiple_of(2), "{bytes:?}");
    i64::from(bytes[0] / 2)
}

fn visit(member: &Member, segment: &Segment, consistency: &str) -> Visit {
    let consistency: Consistency = consistency.parse().unwrap();
    Visit::open(member, consistency, &[segment]).unwrap()
}

#[test]
fn members_without_a_log_share_what_they_write_while_the_home_is_away() {
    let scene = scene();
    let keeper = scene.keeper();
    let (anna, abe) = (scene.member("anna"), scene.member("abe"));
    let (of_anna, of_abe) = (shared(&anna), shared(&abe));
    scene.add(&anna, &of_anna).unwrap();
    scene.add(&abe, &of_abe).unwrap();
    eventually("Ben sees both", || scene.seen_by_ben() == 2);
    let mut reading = visit(&abe, &of_abe, "eventual,isolation=access");
    let mut seen_by_abe = || number(&reading.read(&scene.counter).unwrap());
    eventually("Abe sees both", || seen_by_abe() == 2);
    scene.link.fall_silent();
    for _ in 0..5 {
        scene.add(&anna, &of_anna).unwrap();
    }
    assert_eq!(scene.shown(&anna, &of_anna), 7, "Anna sees her own");
    eventually("Abe sees Anna's", || seen_by_abe() == 7);
    assert_eq!(keeper.log().unwrap().tentative, 5);
    // Nobody who wrote it is there any more.
    anna.close();
    scene.link.mend();
    eventually("Ben sees all, once", || scene.seen_by_ben() == 7);
    eventually("the log is empty", || keeper.log().unwrap().tentative == 0);
    eventually("Abe sees the same", || seen_by_abe() == 7);
}

#[test]
fn the_log_outlives_its_keeper() {
    let scene = scene();
    let keeper = scene.keeper();
    let anna = scene.member("anna");
    let of_anna = shared(&anna);
    scene.add(&anna, &of_anna).unwrap();
    eventually("Ben sees the first", || scene.seen_by_ben() == 1);
    scene.link.fall_silent();
    scene.add(&anna, &of_anna).unwrap();
    scene.add(&anna, &of_anna).unwrap();
    keeper.close();
    let error = scene.add(&anna, &of_anna).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "nobody keeps it: {error}");
    let again = scene.keeper();
    assert_eq!(again.log().unwrap().of_earlier_starts, 2);
    scene.link.mend();
    eventually("Ben sees the rest, once", || scene.seen_by_ben() == 3);
    eventually("the log is empty", || again.log().unwrap().tentative == 0);
}

#[test]
fn who_has_lost_the_right_meanwhile_is_rejected_and_others_are_not() {
    let scene = scene();
    let keeper = scene.keeper();
    let (anna, abe) = (scene.member("anna"), scene.member("abe"));
    let (of_anna, of_abe) = (shared(&anna), shared(&abe));
    scene.add(&anna, &of_anna).unwrap();
    scene.add(&abe, &of_abe).unwrap();
    eventually("Ben sees both", || scene.seen_by_ben() == 2);
    scene.link.fall_silent();
    scene.add(&anna, &of_anna).unwrap();
    scene.add(&abe, &of_abe).unwrap();
    let mut rights = RightsList::default();
    rights.grant(Subject::Name("ben".to_owned()), Right::Admin);
    rights.grant(Subject::Name("anna".to_owned()), Right::Read);
    rights.grant(Subject::Name("abe".to_owned()), Right::Write);
    let set = |tx: &mut Transaction| tx.set_rights(&scene.segment, &rights);
    scene.ben.transact(set).unwrap();
    scene.link.mend();
    eventually("Ben sees Abe's", || scene.seen_by_ben() == 3);
    eventually("Anna's is rejected", || keeper.log().unwrap().rejected == 1);
    keeper.close();
    let log = UpdateLog::existing(scene.logs.path()).unwrap();
    let [record] = &log.updates().unwrap()[..] else {
        panic!("one update is left");
    };
    let right = Right::Write;
    assert_eq!(record.rejected, Some(Refusal::NoRight { right }));
    assert!(record.author.is_some(), "the keeper has not written it");
}
