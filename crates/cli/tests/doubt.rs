//! A vote whose member is gone, and whose other home is gone for ever: an operator ends it, and nobody else (rule R7).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::two_homes::{BALANCE, Village, found, pay};
use common::votes::{NEW, leave_a_vote};
use common::{doubt, thorp};
use thorp_client::{ErrorKind, Member, Reference, Session};
use thorp_testing::Intruder;

const OLD: &[u8] = b"old";

fn read(member: &Member, of: &Reference) -> Vec<u8> {
    let strict = Session::new().strict(true).attempts_max(1000);
    let read = member.transact_with(strict, |tx| Ok(tx.read(of)?.to_vec()));
    read.unwrap()
}

#[test]
fn an_operator_ends_what_nobody_else_can() {
    let dir = tempfile::tempdir().unwrap();
    let mut village = Village::start(dir.path());
    let olga = village.operator(dir.path());
    let member = village.join(3);
    // Both homes have heard from each other.
    let accounts = found(&member, "bank", 2, BALANCE);
    member.transact(|tx| pay(tx, &accounts, (0, 1, 1))).unwrap();
    village.eventually_no_doubt();
    let notes = member.create("thorp://alps/notes").unwrap();
    let made = member.transact(|tx| Ok([tx.create(&notes, OLD)?, tx.create(&notes, OLD)?]));
    let [first, second] = made.unwrap();
    let homes = member.homes();
    let dale = homes.iter().find(|home| home.name == "dale").unwrap().id;

    village.kill(1);
    let alps = village.home(0).via.clone();
    let mut lost = Intruder::enter(village.identity(), &alps);
    let aborted = leave_a_vote(&mut lost, dale, (1, &first));
    let committed = leave_a_vote(&mut lost, dale, (2, &second));
    drop(lost);
    let impatient = Session::new().attempts_max(1);
    let locked = member.transact_with(impatient, |tx| tx.write(&first, "mine"));
    assert_eq!(locked.unwrap_err().kind(), ErrorKind::Conflict);

    let listed = doubt(&alps, &olga, &["list", "alps", "--json"]);
    assert_eq!(listed.code, 0, "{}", listed.err);
    let json: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
    for (doubt, id) in json.as_array().unwrap().iter().zip([aborted, committed]) {
        assert_eq!(doubt["commit"], id.to_string());
        assert!(
            doubt["member"].is_string() && doubt["age_ms"].is_u64(),
            "{doubt}"
        );
        let other = &doubt["homes"][0];
        assert_eq!(
            (&other["name"], &other["reached"]),
            (&"dale".into(), &false.into())
        );
        assert_eq!(other["home"], dale.0);
    }
    let listed = doubt(&alps, &olga, &["list", "alps"]);
    let line = format!("dale (id {dale}): NOT reached");
    assert!(listed.out.contains(&line), "{}", listed.out);

    // Neither a member nor an operator that a site brings may look, or end it.
    let [id, other_id] = [aborted, committed].map(|id| id.to_string());
    let commands = [vec!["list", "alps"], vec!["settle", "alps", &id, "--abort"]];
    for command in &commands {
        for (via, who) in [(&*alps, village.identity()), (village.site(), &*olga)] {
            let refused = doubt(via, who, command);
            assert_eq!(refused.code, 8, "{}{}", refused.out, refused.err);
            assert!(refused.err.contains("operator"), "{}", refused.err);
        }
    }
    // Nobody ends one without saying how.
    for flags in [&[][..], &["--commit", "--abort"]] {
        let unsaid = doubt(&alps, &olga, &[&["settle", "alps", &id], flags].concat());
        assert_eq!(unsaid.code, 2, "{}", unsaid.err);
    }
    assert_eq!(village.agreement(0)["in_doubt"], 2);

    let settled = doubt(&alps, &olga, &["settle", "alps", &id, "--abort"]);
    assert_eq!(settled.code, 0, "{}", settled.err);
    assert!(settled.out.contains("aborted"), "{}", settled.out);
    let warned = settled.err.contains("warning") && settled.err.contains("dale");
    assert!(warned, "{}", settled.err);
    let settled = doubt(&alps, &olga, &["settle", "alps", &other_id, "--commit"]);
    assert_eq!(settled.code, 0, "{}", settled.err);
    assert!(settled.out.contains("committed at"), "{}", settled.out);
    let agreement = village.agreement(0);
    assert_eq!(agreement["in_doubt"], 0, "{agreement}");
    assert_eq!(agreement["resolved_by_operators"], 2, "{agreement}");
    assert_eq!(
        (read(&member, &first), read(&member, &second)),
        (OLD.to_vec(), NEW.to_vec())
    );
    member.transact(|tx| tx.write(&first, "mine")).unwrap();

    // The end outlives the home, and so does its record.
    village.kill(0);
    village.restart(0);
    assert_eq!(village.agreement(0)["in_doubt"], 0);
    let again = doubt(&alps, &olga, &["settle", "alps", &id, "--commit"]);
    assert_eq!(again.code, 1, "{}", again.out);
    assert!(
        again.err.contains("had ended at alps before: aborted"),
        "{}",
        again.err
    );
    let unknown = doubt(&alps, &olga, &["settle", "alps", "77:1", "--commit"]);
    assert!(
        unknown.code == 1 && unknown.err.contains("knows of no commit"),
        "{}",
        unknown.err
    );
    let at = ["--via", &alps, "--identity", &olga];
    let audit = thorp().run(&[&["audit", "alps", "--json"], &at[..]].concat());
    let audit: serde_json::Value = serde_json::from_str(&audit.out).unwrap();
    for (id, ruling) in [(&id, "abort"), (&other_id, "commit")] {
        let mut records = audit.as_array().unwrap().iter();
        let is_it = |record: &&serde_json::Value| record["commit"] == **id;
        let record = records.find(is_it).unwrap();
        assert_eq!(
            (&record["who"], &record["ruling"]),
            (&"olga".into(), &ruling.into())
        );
    }
    let wanted = |record: &serde_json::Value| record["event"] == "denied" && record["segment"] == 0;
    assert!(audit.as_array().unwrap().iter().any(wanted), "{audit}");

    // The other home was not gone for ever: both go on.
    village.restart(1);
    let patient = Session::new().attempts_max(1000);
    member
        .transact_with(patient, |tx| pay(tx, &accounts, (0, 1, 1)))
        .unwrap();
    village.eventually_no_doubt();
}
