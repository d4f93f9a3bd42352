//! Waiting, and what it is for (6 to 9).

use super::Edges;
use crate::common::thorp;
use serde_json::Value;
use std::time::{Duration, Instant};
use thorp_testing::finish;

/// 6: the segments of one home were listed, and nothing was said of the other.
#[test]
fn edge_06_a_home_that_did_not_answer_is_named() {
    let mut edges = Edges::new();
    for home in ["alps", "dale"] {
        edges.out(&["put", &format!("thorp://{home}/notes"), "--text", "x"]);
    }
    let all = edges.out(&["ls"]);
    assert!(
        all.contains("thorp://alps/notes") && all.contains("thorp://dale/notes"),
        "{all}"
    );
    edges.village.kill(1);
    thorp_testing::eventually("the site has lost dale", || edges.run(&["ls"]).code == 4);
    let said = edges.run(&["ls"]);
    assert!(said.out.contains("thorp://alps/notes"), "{}", said.out);
    assert!(said.err.contains("home dale"), "{}", said.err);
    let said = edges.run(&["ls", "--json"]);
    let listed: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (said.code, &listed["not_reached"][0]["home"]),
        (4, &"dale".into())
    );
    assert_eq!(listed["segments"][0]["name"], "thorp://alps/notes");
}

/// 7: `thorp ls` always waited for a next home.
#[test]
fn edge_07_ls_takes_no_longer_than_other_commands() {
    let edges = Edges::new();
    let made = edges.out(&["put", "thorp://alps/notes", "--text", "x"]);
    // The shortest of some times, in turn: what else the machine does prolongs both.
    let time = |arguments: &[&str]| {
        let begin = Instant::now();
        edges.out(arguments);
        begin.elapsed()
    };
    let (mut ls, mut get) = (Duration::MAX, Duration::MAX);
    for _ in 0..7 {
        ls = ls.min(time(&["ls"]));
        get = get.min(time(&["get", made.trim()]));
    }
    assert!(ls < get * 3, "ls takes {ls:?}, get {get:?}");
}

/// 8: joining was not counted, and a commit waited for 30 seconds at least.
#[test]
fn edge_08_one_deadline_covers_the_whole_command() {
    let mut edges = Edges::new();
    let made = edges.out(&["put", "thorp://alps/notes", "--text", "x"]);
    for home in [0, 1] {
        edges.village.kill(home);
    }
    let timeout = Duration::from_secs(2);
    for command in [&["get", made.trim()][..], &["ls"]] {
        // The site is there, and took two seconds more.
        let shortest = (0..3).map(|_| {
            let begin = Instant::now();
            let said = edges.run(&[command, &["--timeout", "2"]].concat());
            assert_eq!(said.code, 4, "{command:?}: {}", said.err);
            begin.elapsed()
        });
        let shortest = shortest.min().unwrap();
        assert!(shortest < timeout * 7 / 4, "{command:?} took {shortest:?}");
    }
}

/// 8: a commit whose answer is late may have been done, and says so.
#[test]
fn edge_08_a_late_answer_to_a_commit_has_its_own_code() {
    let mut edges = Edges::new();
    let made = edges.out(&["put", "thorp://alps/notes", "--text", "x"]);
    // Each answer of the home takes a second and a half: to opening, and to the commit.
    edges.village.kill(0);
    edges
        .village
        .restart_with(0, &["--link-delay", "valley=1500"]);
    let put = |timeout: &str| edges.run(&["put", made.trim(), "--text", "y", "--timeout", timeout]);
    thorp_testing::eventually("the site has alps again", || put("60").code == 0);
    // A machine that is busy sends the commit too late now and then.
    let late = (0..5)
        .map(|_| put("2"))
        .find(|said| said.code != 4)
        .unwrap();
    assert_eq!(late.code, 7, "{}{}", late.out, late.err);
    assert!(
        late.err.contains("look whether it was done"),
        "{}",
        late.err
    );
}

/// 9: another village's certificate, and a port that speaks HTTP, were tried until the time was over.
#[test]
fn edge_09_what_cannot_become_right_ends_the_command() {
    let edges = Edges::new();
    let stranger = tempfile::tempdir().unwrap();
    let other = thorp().home_with(stranger.path(), &["--listen=127.0.0.1:0"]);
    let village = |dir: &str| {
        thorp_client::Identity::load(dir)
            .unwrap()
            .village()
            .to_owned()
    };
    let (ours, theirs) = (village(edges.village.identity()), village(&other.identity));
    // As long as a test may take: who waits for that fails it.
    let patient = ["--timeout", "100000"];
    let ls = |via: &str| edges.run(&[&["ls", "--via", via][..], &patient].concat());
    let said = ls(&other.via);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(
        said.err.contains(&ours) && said.err.contains(&theirs),
        "{}",
        said.err
    );
    let said = ls(&edges.village.home(0).http);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("speaks HTTP"), "{}", said.err);
    // Another address is left.
    let both = format!("{},{}", other.via, edges.village.site());
    let said = ls(&both);
    assert_eq!(said.code, 0, "{}", said.err);
    // A certificate that the node does not know: nobody is asked twice.
    let mut command = thorp().command(&["ls", "--via", edges.village.site()]);
    command.env("THORP_IDENTITY", &other.identity).args(patient);
    assert_eq!(finish(command).code, 4);
}
