//! A member is what its certificate says, and nothing else: attacks by a node with an ordinary certificate (rule R1).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::thorp;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;
use thorp_client::{JoinConfig, Member, Ref};
use thorp_model::{
    Down, Epoch, MemberId, Message, NodeKind, Peer, Position, Stamp, Verdict, message,
};
use thorp_net::{CertificateAuthority, Grant, Identity, NodeRole};
use thorp_testing::{
    Attacker, HomeProcess, OF_A_TEST, PATIENCE, Process, eventually, made_up_receipt,
};

/// A home, a site below it, and a member of the site; and mallory, whom the village has let in as a member.
struct Village {
    home: HomeProcess,
    site: Process,
    site_via: String,
    site_http: String,
    operator: String,
    mallory: Attacker,
}

/// A child of the site, as its status shows it.
#[derive(Debug, PartialEq, Eq)]
struct Child {
    name: String,
    edge: u64,
    node: MemberId,
}

impl Village {
    fn start(dir: &Path) -> Self {
        let home = thorp().home_with(dir, &["--listen=127.0.0.1:0"]);
        let path = |name: &str| dir.join(name).display().to_string();
        let invite = |name: &str, role: &str| {
            let out = path(name);
            let invite = ["invite", name, "--role", role, "--dir", &home.authority];
            let said = thorp().run(&[&invite[..], &["--out", &out]].concat());
            assert_eq!(said.code, 0, "{}", said.err);
            out
        };
        let site_via = format!("unix:{}", path("site.sock"));
        let mut command = thorp().command(&["site", "--identity", &invite("valley", "site")]);
        command
            .arg(format!("--home=alps={}", home.via))
            .args(["--listen", &site_via])
            .args(OF_A_TEST)
            .arg("--http-for-operators");
        let site = Process::start(command);
        let (_, site_http) = site.ready();
        let mallory = Attacker::at(&invite("mallory", "member"));
        invite("anna", "member");
        let operator = invite("olga", "operator");
        Village {
            home,
            site,
            site_via,
            site_http,
            operator,
            mallory,
        }
    }

    fn anna(&self, dir: &Path) -> Member {
        let config = JoinConfig::new(&self.site_via).identity(dir.join("anna"));
        Member::join(config.join_timeout(PATIENCE)).unwrap()
    }

    /// The children of the site.
    fn children(&self) -> Vec<Child> {
        let olga = ["--identity", &self.operator];
        let status = ["status", &self.site_http, "--json"];
        let said = thorp().run(&[&status[..], &olga].concat());
        let status: Value = serde_json::from_str(&said.out).unwrap();
        let children = status["children"].as_array().unwrap().iter();
        let child = |child: &Value| Child {
            name: child["name"].as_str().unwrap().to_owned(),
            edge: child["edge"].as_u64().unwrap(),
            node: MemberId(u128::from_str_radix(child["node"].as_str().unwrap(), 16).unwrap()),
        };
        children.map(child).collect()
    }
}

fn count(member: &Member, counter: &Ref<u64>) -> u64 {
    let counted = member.transact(|tx| {
        let count = tx.get(counter)? + 1;
        tx.put(counter, &count)?;
        Ok(count)
    });
    counted.unwrap()
}

/// Threats 3 and 4: the role was self-declared, and a process id was a secret that many nodes see.
#[test]
fn an_attacker_is_turned_away_and_the_edge_of_its_victim_stays() {
    let dir = tempfile::tempdir().unwrap();
    let village = Village::start(dir.path());
    let anna = village.anna(dir.path());
    let notes = anna.open_or_create("thorp://alps/notes").unwrap();
    let counter = anna.transact(|tx| tx.create_typed(&notes, &0u64)).unwrap();
    eventually("anna is a child of the site", || {
        village.children().len() == 1
    });
    let children = village.children();
    let [victim] = &children[..] else {
        panic!("anna is alone there");
    };

    let mallory = &village.mallory;
    let honest = mallory.greeting();
    let of_kind = |kind| Peer {
        kind,
        ..honest.clone()
    };
    let attacks = [
        (
            of_kind(NodeKind::Redirector),
            "the greeting is that of a site, the certificate that of member mallory",
        ),
        (
            of_kind(NodeKind::Home),
            "the greeting is that of a home, the certificate that of member mallory",
        ),
        (
            Peer {
                is_operator: true,
                ..honest.clone()
            },
            "the greeting is that of an operator, the certificate that of member mallory",
        ),
        (
            Peer {
                name: "anna".to_owned(),
                ..honest.clone()
            },
            "the greeting names \"anna\", the certificate is that of member mallory",
        ),
        (
            Peer {
                node: victim.node,
                ..honest.clone()
            },
            "the process id is of another name than that of member mallory",
        ),
    ];
    for address in [&village.home.via, &village.site_via] {
        for (hello, words) in &attacks {
            match mallory.call(address, hello) {
                Ok(_) => panic!("{address} has let in {hello:?}"),
                Err(said) => assert!(said.contains(words), "{said}"),
            }
        }
    }
    assert_eq!(&village.children()[..], std::slice::from_ref(victim));
    assert_eq!(count(&anna, &counter), 1);

    // As what it is, it is let in, and hears of the home.
    let mut edge = mallory.call(&village.site_via, &honest).unwrap();
    assert!(edge.receive().is_some());
    assert_eq!(count(&anna, &counter), 2);
    assert!(village.children().contains(victim));
    drop(edge);
    assert_eq!(village.site.terminate(), 0);
}

/// Threat 14: a node did not look at whom it took for its parent.
#[test]
fn a_member_does_not_take_a_member_for_its_parent() {
    let dir = tempfile::tempdir().unwrap();
    let village = Village::start(dir.path());
    let mallory = &village.mallory;
    let honest = mallory.greeting();
    let kinds = [
        (NodeKind::Member, "only homes and sites are parents"),
        (NodeKind::Redirector, "certificate that of member mallory"),
        (NodeKind::Home, "certificate that of member mallory"),
    ];
    for (number, (kind, words)) in kinds.into_iter().enumerate() {
        let here = format!("unix:{}/mallory-{number}.sock", dir.path().display());
        let hello = Peer {
            kind,
            ..honest.clone()
        };
        mallory.listen(&here, &hello);
        let anna = dir.path().join("anna").display().to_string();
        let ls = ["ls", "--via", &here, "--identity", &anna, "--timeout=2"];
        let said = thorp().run(&ls);
        assert_eq!(said.code, 4, "{}", said.err);
        assert!(said.err.contains(words), "{}", said.err);
    }
}

/// Threat 13: a home's id was self-declared, so another home of the village spoke in its place.
#[test]
fn a_home_speaks_for_itself_alone() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let path = |name: &str| dir.path().join(name).display().to_string();
    let anna = home.identity.clone();
    let (dale, out) = (["invite", "dale", "--role=home"], path("dale"));
    let said = thorp().run(&[&dale[..], &["--dir", &home.authority, "--out", &out]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let [alps, dale] = [&home.own, &out].map(|dir| {
        let identity = Identity::load(dir).unwrap();
        identity.certified().home().unwrap()
    });
    let attacker = Attacker::at(&out);
    for (number, (id, refused)) in [(alps, true), (dale, false)].into_iter().enumerate() {
        let begin = Message::Down(Down::Begin(message::Begin {
            home: id,
            name: "alps".to_owned(),
            epoch: Epoch(1),
            position: Position(0),
            watermark: Stamp::default(),
            silent_ms: 0,
            readers: Vec::new(),
            sites: Vec::new(),
            receipt: made_up_receipt(id),
            verdict: Verdict::Known,
        }));
        let here = format!("unix:{}", path(&format!("dale-{number}.sock")));
        attacker.listen_and_say(&here, &attacker.greeting(), &[begin]);
        let said = thorp().run(&["ls", "--via", &here, "--identity", &anna, "--timeout=2"]);
        assert_eq!(said.code, 4, "{}", said.err);
        let words = format!("it speaks for the home with the id {:08x}", alps.0);
        assert_eq!(said.err.contains(&words), refused, "{}", said.err);
    }
}

/// A home whose store is gone does not begin again under its id: nobody would notice that its history is another one.
#[test]
fn a_home_begins_with_an_empty_store_only_under_a_new_id() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let own = home.own.clone();
    let id = || Identity::load(&own).unwrap().certified().home().unwrap();
    let first = id();
    assert_eq!(home.process.terminate(), 0);
    fs::remove_dir_all(dir.path().join("home/store")).unwrap();
    let data = dir.path().join("home").display().to_string();
    let start = [
        "home",
        "--name=alps",
        "--dir",
        &data,
        "--http=off",
        "--listen=127.0.0.1:0",
    ];
    let said = thorp().run(&start);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.err.contains("--new-id"), "{}", said.err);
    // No empty store is left that somebody could take for the lost one.
    assert!(!dir.path().join("home/store").exists());
    let issue = [
        "ca",
        "issue",
        "--role=home",
        "--name=alps",
        "--new-id",
        "--dir",
        &data,
    ];
    let said = thorp().run(&[&issue[..], &["--out", &own]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert_ne!(id(), first);
    let home = thorp().home(dir.path());
    home.out(&["put", "thorp://alps/notes", "--text", "x"]);

    let said = thorp().run(&["ca", "list", &data, "--json"]);
    let list: Value = serde_json::from_str(&said.out).unwrap();
    let rows = list.as_array().unwrap().iter();
    let rows: Vec<_> = rows
        .map(|row| (row["name"].as_str(), row["home_id"].as_u64()))
        .collect();
    let ids = [first, id()].map(|id| Some(u64::from(id.0)));
    let all = [
        (Some("alps"), ids[0]),
        (Some("local"), None),
        (Some("alps"), ids[1]),
    ];
    assert_eq!(rows, all);
    let table = thorp().run(&["ca", "list", &data]).out;
    assert!(table.contains("local") && table.contains("good"), "{table}");
}

/// Threats 8 and 9: whoever was let in once stayed, and came back for as long as it liked.
#[test]
fn an_edge_ends_with_its_certificate_and_the_words_say_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let authority = CertificateAuthority::open(&home.authority).unwrap();
    let out = dir.path().join("mallory");
    let grant = Grant {
        life: Some(Duration::from_secs(4)),
        ..Grant::new(NodeRole::Member, "mallory")
    };
    authority.issue(&grant, &out).unwrap();
    let mallory = Attacker::at(&out.display().to_string());
    let mut edge = mallory.call(&home.via, &mallory.greeting()).unwrap();
    edge.eventually_ends();
    // Also by a session that TLS resumes.
    let Err(said) = mallory.call(&home.via, &mallory.greeting()) else {
        panic!("it is let in again");
    };
    assert!(said.contains("its certificate was good until 20"), "{said}");
    assert!(said.contains("thorp invite NAME"), "{said}");
    let identity = out.display().to_string();
    let ls = ["ls", "--via", &home.via, "--identity", &identity];
    let said = thorp().run(&ls);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("was good until 20"), "{}", said.err);
    // The same command as at first renews it.
    invite(&home.authority, "mallory", &identity);
    let said = thorp().run(&ls);
    assert_eq!(said.code, 0, "{}", said.err);
}

/// Threat 9: whoever had a certificate had it for ever.
#[test]
fn a_revoked_member_is_cut_off_where_that_is_announced_and_nobody_else_is() {
    let dir = tempfile::tempdir().unwrap();
    let village = Village::start(dir.path());
    let anna = village.anna(dir.path());
    let notes = anna.open_or_create("thorp://alps/notes").unwrap();
    let counter = anna.transact(|tx| tx.create_typed(&notes, &0u64)).unwrap();
    let (mallory, honest) = (&village.mallory, village.mallory.greeting());
    let places = [&village.home.via, &village.site_via];
    let mut edges = places.map(|address| mallory.call(address, &honest).unwrap());
    eventually("the site has both", || village.children().len() == 2);
    let of_anna = |child: &Child| child.name == "anna";
    let before = village.children().into_iter().find(of_anna);

    let revoke = |flags: &[&str]| {
        let revoke = ["ca", "revoke", "--dir", &village.home.authority];
        thorp().run(&[&revoke[..], flags].concat())
    };
    let away = format!("unix:{}", dir.path().join("away.sock").display());
    let at = format!("--at={}", village.home.via);
    let said = revoke(&["mallory", &at, &format!("--at={away}")]);
    assert_eq!(said.code, 4, "{}", said.out);
    assert!(
        said.err.contains(&format!("{away} still let")),
        "{}",
        said.err
    );
    edges[0].eventually_ends();
    let refused = |address: &str| match mallory.call(address, &honest) {
        Ok(_) => false,
        Err(said) => said.contains("its certificate is revoked"),
    };
    assert!(refused(&village.home.via));
    // The site has not heard of it, until somebody announces all that is revoked there.
    assert!(!refused(&village.site_via));
    let said = revoke(&[&format!("--at={}", village.site_via)]);
    assert_eq!(said.code, 0, "{}", said.err);
    edges[1].eventually_ends();
    assert!(refused(&village.site_via));
    assert_eq!(village.children().into_iter().find(of_anna), before);
    assert_eq!(count(&anna, &counter), 1);
    drop(anna);

    // The home has it durably.
    assert_eq!(village.home.process.terminate(), 0);
    let home = thorp().home(dir.path());
    assert!(refused(&home.via));
    let list = thorp().run(&["ca", "list", &home.authority]).out;
    let of_mallory = list.lines().find(|line| line.starts_with("mallory"));
    assert!(of_mallory.unwrap().contains("revoked"), "{list}");
    // A new certificate is another one.
    let out = dir.path().join("mallory-again").display().to_string();
    invite(&home.authority, "mallory", &out);
    let said = thorp().run(&["ls", "--via", &home.via, "--identity", &out]);
    assert_eq!(said.code, 0, "{}", said.err);
    // Nobody is revoked by whoever is not the authority, nor whom the authority does not know.
    assert_eq!(revoke(&["nobody", &at]).code, 1);
}

/// Who does not get in leaves a record, with the name that its certificate proves. A flood from one place leaves few.
#[test]
fn who_is_turned_away_is_in_the_audit() {
    let dir = tempfile::tempdir().unwrap();
    let village = Village::start(dir.path());
    let (home, mallory) = (&village.home, &village.mallory);
    let as_anna = Peer {
        name: "anna".to_owned(),
        ..mallory.greeting()
    };
    for _ in 0..20 {
        assert!(mallory.call(&home.via, &as_anna).is_err());
    }
    let out = dir.path().join("eve").display().to_string();
    invite(&home.authority, "eve", &out);
    let at = format!("--at={}", home.via);
    let said = thorp().run(&["ca", "revoke", "eve", "--dir", &home.authority, &at]);
    assert_eq!(said.code, 0, "{}", said.err);
    let eve = Attacker::at(&out);
    // All callers by one Unix-domain socket have one bound, and mallory has used it up for this minute.
    let port = home.welcome.iter().find_map(|line| {
        let port = line.split_once("127.0.0.1:")?.1.trim();
        Some(format!("127.0.0.1:{port}"))
    });
    assert!(eve.call(&port.unwrap(), &eve.greeting()).is_err());

    let audit = || {
        let olga = ["--via", &home.via, "--identity", &village.operator];
        let said = thorp().run(&[&["audit", "alps", "--json"], &olga[..]].concat());
        let records: Value = serde_json::from_str(&said.out).unwrap_or_default();
        records.as_array().cloned().unwrap_or_default()
    };
    let away = |record: &Value| record["event"] == "turned_away";
    eventually("both are in the audit", || {
        audit().iter().filter(|record| away(record)).count() == 2
    });
    let records: Vec<Value> = audit().into_iter().filter(away).collect();
    let of = |why: &str| records.iter().find(|record| record["why"] == why).unwrap();
    let (greeting, revoked) = (of("greeting"), of("revoked"));
    assert_eq!(greeting["who"], "mallory");
    assert_eq!(
        greeting["from"],
        Value::Null,
        "it called by a socket of the machine"
    );
    assert!(greeting["count"].as_u64().unwrap() <= 5, "{greeting}");
    assert_eq!(revoked["who"], "eve");
    assert_eq!(revoked["from"], "127.0.0.1");
}

fn invite(authority: &str, name: &str, out: &str) {
    let said = thorp().run(&["invite", name, "--dir", authority, "--out", out]);
    assert_eq!(said.code, 0, "{}", said.err);
}
