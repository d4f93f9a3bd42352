//! Two homes, of which one is down, or a member leaves between its votes: what status tells, and that nothing stays in doubt.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::thorp;
use common::two_homes::{BALANCE, NAMES, Village, found, newest, pay};
use std::thread;
use std::time::{Duration, Instant};
use thorp_client::{ErrorKind, JoinConfig, Session, Transaction};
use thorp_model::Xoshiro256;
use thorp_testing::{PATIENCE, finish};

#[test]
fn while_one_home_is_down_the_other_goes_on_and_status_tells() {
    let dir = tempfile::tempdir().unwrap();
    let mut village = Village::start(dir.path());
    let member = village.join(0);
    let accounts = found(&member, "bank", 2, BALANCE);
    member.transact(|tx| pay(tx, &accounts, (0, 1, 1))).unwrap();
    // Only who holds the authority can let others in.
    let invites = |which| {
        village
            .home(which)
            .welcome
            .concat()
            .contains("let another node in")
    };
    assert!(invites(0) && !invites(1));
    // The program goes on before the homes have received the decision.
    village.eventually_no_doubt();
    let alps = village.home(0);
    let told = alps.out(&["status", &alps.http]);
    assert!(
        told.contains("shared with other homes: 0 in doubt"),
        "{told}"
    );
    let metrics = common::metrics::of(&alps.http);
    for line in [
        "thorp_votes_in_doubt 0",
        "thorp_votes_resolved_total{by=\"member\"}",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }

    assert!(told.contains("dale at") && !told.contains("NOT"), "{told}");
    let all = village.out_at_site(&["ls"]);
    for segment in ["thorp://alps/bank", "thorp://dale/bank"] {
        assert!(all.contains(segment), "{all}");
    }

    village.kill(1);
    member.transact(|tx| tx.put(&accounts[0], &5)).unwrap();
    let impatient = Session::new()
        .fetch_timeout(Duration::from_millis(300))
        .commit_timeout(Duration::from_millis(300));
    let over_both = |tx: &mut Transaction| {
        tx.put(&accounts[0], &6)?;
        tx.put(&accounts[1], &7)
    };
    let error = loop {
        let error = member.transact_with(impatient, over_both).unwrap_err();
        // The first may have been sent before the site missed the home.
        if !matches!(error.kind(), ErrorKind::OutcomeUnknown(_)) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::HomeUnreachable, "{error}");
    assert!(error.to_string().contains("dale"), "{error}");
    village.restart(1);
    let patient = Session::new().attempts_max(1000);
    member.transact_with(patient, over_both).unwrap();
    village.eventually_no_doubt();
    for home in village.homes {
        assert_eq!(home.unwrap().process.terminate(), 0, "a clean end");
    }
}

#[test]
fn what_a_member_that_is_gone_began_ends_by_asking() {
    let dir = tempfile::tempdir().unwrap();
    let village = Village::start(dir.path());
    let founder = village.join(0);
    let accounts = found(&founder, "bank", 2, BALANCE);
    let asked = || -> u64 {
        (0..2)
            .map(|n| village.agreement(n)["resolved_by_homes"].as_u64().unwrap())
            .sum()
    };
    let end = Instant::now() + PATIENCE;
    let mut dice = Xoshiro256::new(1);
    // It does not wait for the news of its votes: its last moment is now and then between the two.
    let leaves_at_once = |config: JoinConfig| config.leave_timeout(Duration::ZERO);
    while asked() == 0 {
        assert!(Instant::now() < end, "no vote was ever left behind");
        let leaving: Vec<_> = (0..8u64)
            .map(|_| {
                let member = village.join_with(3, leaves_at_once);
                (member, accounts.clone(), dice.below(8))
            })
            .map(|(member, accounts, ms)| {
                thread::spawn(move || {
                    let going = member.clone();
                    let paying = thread::spawn(move || {
                        while going.transact(|tx| pay(tx, &accounts, (0, 1, 1))).is_ok() {}
                    });
                    thread::sleep(Duration::from_millis(20 + 5 * ms));
                    member.close();
                    paying.join().unwrap();
                })
            })
            .collect();
        leaving
            .into_iter()
            .for_each(|member| member.join().unwrap());
        village.eventually_no_doubt();
    }
    let balances = newest(&village, &accounts);
    assert_eq!(balances.iter().sum::<i64>(), 2 * BALANCE, "{balances:?}");
}

#[test]
fn a_name_that_leads_to_no_home_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let itself = [
        "home",
        "--name=alps",
        "--dir",
        "x",
        "--other-home=alps=unix:/x",
    ];
    let said = thorp().run(&itself);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("this home itself"), "{}", said.err);
    let home = thorp().home(dir.path());
    let said = finish(home.command(&["put", "thorp://nowhere/x", "--text", "x"]));
    assert_eq!(said.code, 5, "{}", said.err);
    assert!(said.err.contains("no home called nowhere"), "{}", said.err);
}

/// It could not ask how the transaction ended (rule R7).
#[test]
fn a_home_that_knows_no_other_home_shares_no_transaction_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let village = Village::start_knowing(dir.path(), [false, true]);
    let member = village.join(0);
    let segments = NAMES.map(|name| {
        let segment = member.open_or_create(&format!("thorp://{name}/bank"));
        segment.unwrap()
    });
    let over_both = |tx: &mut Transaction| {
        tx.create_typed(&segments[0], &BALANCE)?;
        tx.create_typed(&segments[1], &BALANCE)
    };
    let refused = member.transact(over_both).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    assert!(refused.to_string().contains("--other-home"), "{refused}");
    // Each alone is well.
    for segment in &segments {
        member
            .transact(|tx| tx.create_typed(segment, &BALANCE))
            .unwrap();
    }
    village.eventually_no_doubt();
}
