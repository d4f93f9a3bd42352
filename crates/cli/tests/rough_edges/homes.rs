//! Homes that start, and programs that end (26 to 29).

use super::Edges;
use crate::common::thorp;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use thorp_client::{JoinConfig, Member};
use thorp_testing::{OF_A_TEST, PATIENCE, Process, Said};

/// 26: a directory belonged to a home that had never started.
#[test]
fn edge_26_a_refused_first_start_leaves_nothing() {
    let edges = Edges::new();
    let dir = edges.path("new");
    let start = |flags: &[&str]| -> Said {
        let home = ["home", "--dir", &dir, "--listen=127.0.0.1:0"];
        thorp().run(&[&home[..], flags].concat())
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    // The identity of another name, a port that somebody has, and a log level that is none.
    let invite = [
        "invite",
        "isle",
        "--role=home",
        "--dir",
        &edges.village.home(0).authority,
    ];
    let isle = edges.path("isle");
    assert_eq!(
        thorp().run(&[&invite[..], &["--out", &isle]].concat()).code,
        0
    );
    for (flags, words) in [
        (
            &["--name=one", "--http=off", "--identity", &isle][..],
            "isle",
        ),
        (&["--name=one", "--http", &taken], "cannot serve HTTP"),
        (&["--name=one", "--http=off", "--log-level=loud"], "level"),
    ] {
        let said = start(flags);
        assert_ne!(said.code, 0, "{}", said.out);
        assert!(said.err.contains(words), "{words} in {}", said.err);
        assert!(
            !Path::new(&dir).exists(),
            "{words}: {:?}",
            fs::read_dir(&dir)
        );
    }
    let mut home = thorp().command(&["home", "--dir", &dir, "--name=two"]);
    home.args(["--listen=127.0.0.1:0"]).args(OF_A_TEST);
    let home = Process::start(home);
    home.ready();
    // What was there before stays, also beside a start that is refused.
    let said = start(&["--name=two", "--http=off"]);
    assert_ne!(said.code, 0, "{}", said.out);
    assert_eq!(home.terminate(), 0);
    assert!(Path::new(&dir).join("store").exists());
}

/// 27: a home that was told of another one silently founded a second village.
#[test]
fn edge_27_a_home_that_is_told_of_others_founds_no_village() {
    let edges = Edges::new();
    let dir = edges.path("fjord");
    let other = format!("--other-home=alps={}", edges.village.home(0).via);
    let start = ["home", "--dir", &dir, "--name=fjord", "--http=off", &other];
    edges.fails(1, "thorp invite NAME --role home", &start);
    assert!(!Path::new(&dir).exists());
}

/// 28: `Error(Inner { kind: HomeUnreachable, words: ".." })`.
#[test]
fn edge_28_a_program_that_returns_an_error_prints_a_sentence() {
    let edges = Edges::new();
    let config = JoinConfig::new(edges.village.site()).identity(edges.village.identity());
    let member = Member::join(config.join_timeout(PATIENCE)).unwrap();
    let error = member.open("thorp://alps/nothere").unwrap_err();
    let printed = format!("{error:?}");
    assert!(
        printed.starts_with(&error.to_string()) && printed.contains("-> "),
        "{printed}"
    );
    let joining = Member::join(JoinConfig::new("nowhere")).unwrap_err();
    let printed = format!("{joining:?}");
    assert!(printed.starts_with(&joining.to_string()), "{printed}");
}

/// 29: *data damaged*, of a type to which a field was added.
#[test]
fn edge_29_a_changed_type_is_not_called_damage_alone() {
    let edges = Edges::new();
    let config = JoinConfig::new(edges.village.site()).identity(edges.village.identity());
    let member = Member::join(config.join_timeout(PATIENCE)).unwrap();
    let notes = member.open_or_create("thorp://alps/notes").unwrap();
    let made = member
        .transact(|tx| tx.create_typed(&notes, &(1u8, 2u8)))
        .unwrap();
    let narrow = thorp_client::Ref::<u8>::new(made.reference());
    let error = member.transact(|tx| tx.get(&narrow)).unwrap_err();
    assert!(error.to_string().contains("a field was added"), "{error}");
    assert!(error.to_string().contains("thorp://alps/notes#"), "{error}");
    assert!(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs/changing-types.md")
            .exists()
    );
}
