//! Names of segments and objects (1 to 5).

use super::Edges;
use thorp_client::{ErrorKind, JoinConfig, Member};
use thorp_testing::PATIENCE;

/// 1: a slash at the end made a second segment beside the one that was meant.
#[test]
fn edge_01_a_new_segment_has_no_empty_part_in_its_path() {
    let edges = Edges::new();
    for path in ["notes/", "a//b", "/notes"] {
        let name = format!("thorp://alps/{path}");
        edges.fails(2, &name, &["put", &name, "--text", "x"]);
    }
    assert!(!edges.out(&["ls"]).contains("thorp://"));
    edges.out(&["put", "thorp://alps/a/b", "--text", "x"]);
}

/// 2: some commands ended with 1, and all joined first.
#[test]
fn edge_02_a_malformed_name_is_found_before_joining() {
    let edges = Edges::new();
    for wrong in [
        &["get", "notaurl"][..],
        &["ls", "alps"],
        &["put", "thorp://", "--text", "x"],
        &["inspect", "thorp://alps/x#1"],
        &["rm", "x"],
        &["watch", "x"],
        &["rights", "show", "x"],
        &["ifc", "export", "x", "y.ifc"],
    ] {
        edges.fails(2, "is not a name", wrong);
        // Nobody is there to join.
        let nobody = ["--via=unix:/nobody.sock", "--identity=/nowhere"];
        edges.fails(2, "is not a name", &[wrong, &nobody].concat());
    }
}

/// 3: the error did not say which segment.
#[test]
fn edge_03_the_segment_that_is_not_there_is_named() {
    let edges = Edges::new();
    let get = ["get", "thorp://alps/nothere", "--root", "x"];
    edges.fails(5, "thorp://alps/nothere", &get);
    edges.fails(5, "thorp://dale/no", &["inspect", "thorp://dale/no"]);
}

/// 4: the error spoke of *object 1/9.9*.
#[test]
fn edge_04_objects_are_named_as_the_user_writes_them() {
    let edges = Edges::new();
    let made = edges.out(&["put", "thorp://alps/notes", "--text", "x"]);
    let made = made.trim();
    edges.fails(
        5,
        "thorp://alps/notes#1.9.1",
        &["get", "thorp://alps/notes#1.9.1"],
    );
    let beyond = format!("{made}+9");
    let said = edges.run(&["get", &beyond]);
    assert!(said.err.contains(made), "{}", said.err);
    // A program hears the same: of a conflict, too.
    let member = || {
        let config = JoinConfig::new(edges.village.site()).identity(edges.village.identity());
        Member::join(config.join_timeout(PATIENCE)).unwrap()
    };
    let (anna, bert) = (member(), member());
    let (a, b) = (anna.parse(made).unwrap(), bert.parse(made).unwrap());
    let mut tx = anna.begin(anna.session());
    tx.read(&a).unwrap();
    tx.write(&a, "anna").unwrap();
    bert.transact(|tx| tx.write(&b, "bert")).unwrap();
    let error = tx.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("thorp://alps/notes"), "{error}");
}

/// 5: a member that has joined two homes itself knows both as soon as they have answered: their streams may begin later.
#[test]
fn edge_05_a_home_whose_stream_has_not_begun_is_waited_for() {
    let edges = Edges::new();
    for _ in 0..20 {
        let homes = [0, 1].map(|home| edges.village.home(home).via.clone());
        let config = JoinConfig::new(&homes[0]).and_home(&homes[1]);
        let config = config.identity(edges.village.identity());
        let member = Member::join(config.join_timeout(PATIENCE)).unwrap();
        for home in ["alps", "dale"] {
            member
                .open_or_create(&format!("thorp://{home}/notes"))
                .unwrap();
        }
        let error = member.open("thorp://alpps/notes").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert_eq!(member.home_names().unwrap().names.len(), 2);
    }
}

/// 5: a misspelt home was *unreachable*, after two seconds.
#[test]
fn edge_05_a_home_that_there_is_not_is_not_found() {
    let mut edges = Edges::new();
    edges.fails(
        5,
        "alps, dale",
        &["get", "thorp://alpps/notes", "--root", "x"],
    );
    // Also while a home is away; that one is out of reach.
    edges.village.kill(1);
    edges.fails(
        5,
        "alps, dale",
        &["get", "thorp://alpps/notes", "--root", "x"],
    );
    edges.fails(4, "dale", &["get", "thorp://dale/notes", "--root", "x"]);
    let config = JoinConfig::new(edges.village.site()).identity(edges.village.identity());
    let member = Member::join(config.join_timeout(PATIENCE)).unwrap();
    let error = member.open("thorp://alpps/notes").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let names = member.home_names().unwrap();
    assert_eq!(
        (names.names, names.is_all),
        (vec!["alps".into(), "dale".into()], true)
    );
}
