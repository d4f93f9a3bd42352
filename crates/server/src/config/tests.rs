//! What a configuration file may say.

use super::*;
use thorp_net::driver::PARENTS_MAX;
use thorp_net::{ADDRESSES_MAX, LANES_MAX};

#[test]
fn the_examples_say_what_the_defaults_are() {
    let mut home = HomeConfigFile::parse(HomeConfigFile::EXAMPLE).unwrap();
    home.check().unwrap();
    let set = [home.name.take().is_some(), home.data_dir.take().is_some()];
    assert_eq!(set, [true; 2]);
    assert_eq!(home, HomeConfigFile::default());
    let mut site = SiteConfigFile::parse(SiteConfigFile::EXAMPLE).unwrap();
    site.check().unwrap();
    let set = [site.name.take().is_some(), site.data_dir.take().is_some()];
    assert_eq!(set, [true; 2]);
    assert_eq!(site.parent.len(), 1);
    site.parent.clear();
    assert_eq!(site, SiteConfigFile::default());
}

#[test]
fn what_is_commented_out_in_the_examples_is_right_too() {
    let all = |text: &str| {
        let lines = text.lines().map(|line| {
            let bare = line.strip_prefix("#").filter(|rest| !rest.starts_with(' '));
            bare.unwrap_or(line)
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let home = HomeConfigFile::parse(&all(HomeConfigFile::EXAMPLE)).unwrap();
    assert!(home.store.limit.is_some() && home.shares.store.is_some());
    assert_eq!(home.child_delay.len(), 1);
    assert_eq!(home.other_home.len(), 1);
    home.check().unwrap();
    let site = SiteConfigFile::parse(&all(SiteConfigFile::EXAMPLE)).unwrap();
    assert!(site.authority_dir.is_some() && site.parent[0].one_way_ms > 0);
}

#[test]
fn a_key_that_does_not_exist_is_named() {
    for text in ["nam = \"x\"", "[store]\nlimits = 5", "[log]\ncolour = 1"] {
        let error = HomeConfigFile::parse(text).unwrap_err().to_string();
        let key = text.lines().last().unwrap().split(' ').next().unwrap();
        assert!(
            error.contains("unknown field") && error.contains(key),
            "{error}"
        );
    }
    let error = SiteConfigFile::parse("[[parent]]\naddress = []").unwrap_err();
    assert!(error.to_string().contains("`address`"), "{error}");
}

#[test]
fn what_must_be_said_is_asked_for_with_an_example() {
    let error = HomeConfigFile::default().check().unwrap_err();
    assert!(
        error.to_string().starts_with("`name` is not set"),
        "{error}"
    );
    let site = SiteConfigFile {
        name: Some("valley".to_owned()),
        data_dir: Some("/tmp".into()),
        ..SiteConfigFile::default()
    };
    let error = site.check().unwrap_err().to_string();
    assert!(error.contains("[[parent]]"), "{error}");
}

#[test]
fn other_homes_are_others_each_once_with_an_address() {
    let one = |name: &str| format!("[[other_home]]\nname = {name:?}\naddresses = [\"b:1\"]\n");
    let why = |others: &str| {
        let text = format!("name = \"alps\"\ndata_dir = \"/d\"\n{others}");
        let checked = HomeConfigFile::parse(&text).unwrap().check();
        checked.err().map(|error| error.to_string())
    };
    assert_eq!(why(&(one("dale") + &one("fjord"))), None);
    for (others, words) in [
        (one("Alps"), "this home itself"),
        (one("dale") + &one("DALE"), "twice"),
        (one(""), "no name"),
        (one("dale").replace("\"b:1\"", ""), "no address"),
    ] {
        let why = why(&others).unwrap();
        assert!(why.contains("`other_home`") && why.contains(words), "{why}");
    }
}

#[test]
fn shares_with_which_one_member_could_not_work_are_refused() {
    let why = |shares: &str| {
        let text = format!("name = \"alps\"\ndata_dir = \"/d\"\n[shares]\n{shares}");
        let checked = HomeConfigFile::parse(&text).unwrap().check();
        checked.err().map(|error| error.to_string())
    };
    assert_eq!(why("segments_max = 1\nstore_percent_max = 100"), None);
    for (shares, words) in [
        ("store_percent_max = 0", "from 1 to 100"),
        ("store_percent_max = 101", "from 1 to 100"),
        ("segments_max = 0", "at least 1"),
        ("page_numbers_max = 31", "at least 32"),
        ("commits_max = 63", "at least 64"),
        ("calls_max = 255", "at least 256"),
        ("fetches_max = 1023", "at least 1024"),
    ] {
        let why = why(shares).unwrap();
        assert!(why.contains("`shares.") && why.contains(words), "{why}");
    }
}

#[test]
fn a_lease_is_neither_too_short_nor_too_long() {
    let checked = |lease_ms: u64| {
        let text = format!("name = \"alps\"\ndata_dir = \"/d\"\n[limits]\nlease_ms = {lease_ms}");
        let checked = HomeConfigFile::parse(&text).unwrap().check();
        checked.map_err(|error| error.to_string())
    };
    assert_eq!([1_000, 3_600_000].map(checked), [Ok(()), Ok(())]);
    for lease_ms in [0, 999, 3_600_001] {
        let why = checked(lease_ms).unwrap_err();
        let is_named = why.contains("`limits.lease_ms`") && why.contains("1000 to 3600000");
        assert!(is_named, "{why}");
    }
}

#[test]
fn a_parent_is_there_once_with_all_its_addresses() {
    let one = |name: &str| format!("[[parent]]\nname = {name:?}\naddresses = [\"b:1\"]\n");
    let check = |parents: String| {
        let text = format!("name = \"valley\"\ndata_dir = \"/d\"\n{parents}");
        SiteConfigFile::parse(&text).unwrap().check()
    };
    check(one("alps") + &one("dale")).unwrap();
    let error = check(one("alps") + &one("Alps")).unwrap_err().to_string();
    assert!(
        error.contains("`parent`") && error.contains("twice"),
        "{error}"
    );
}

#[test]
fn lists_are_bounded() {
    let addresses = |count| {
        let list: Vec<String> = (0..count).map(|n| format!("h:{}", n + 1)).collect();
        format!("{list:?}")
    };
    let start = "name = \"n\"\ndata_dir = \"/d\"\n";
    let site = |more: &str| SiteConfigFile::parse(&format!("{start}{more}")).unwrap();
    let home = |more: &str| HomeConfigFile::parse(&format!("{start}{more}")).unwrap();
    let parent = |count| format!("[[parent]]\naddresses = {}\n", addresses(count));
    let other = |count| {
        format!(
            "[[other_home]]\nname = \"o\"\naddresses = {}\n",
            addresses(count)
        )
    };
    let listen = |count| format!("listen = {}\n", addresses(count));
    let (most, more) = (ADDRESSES_MAX, ADDRESSES_MAX + 1);
    for (right, wrong, key) in [
        (
            site(&parent(most)).check(),
            site(&parent(more)).check(),
            "`parent.addresses`",
        ),
        (
            site(&parent(1).repeat(PARENTS_MAX)).check(),
            site(&parent(1).repeat(PARENTS_MAX + 1)).check(),
            "`parent`",
        ),
        (
            home(&other(most)).check(),
            home(&other(more)).check(),
            "`other_home.addresses`",
        ),
        (
            home(&listen(most)).check(),
            home(&listen(more)).check(),
            "`listen`",
        ),
    ] {
        right.unwrap();
        let why = wrong.unwrap_err().to_string();
        assert!(why.contains(key) && why.contains("are the most"), "{why}");
    }
}

#[test]
fn a_connection_has_a_socket_and_a_node_a_thread_and_not_too_many() {
    let checked = |key: &str, count: usize| {
        let home = format!(
            "name = \"alps\"\ndata_dir = \"/d\"\nlisten = [\"a:1\"]\n[link]\n{key} = {count}"
        );
        let checked = HomeConfigFile::parse(&home).unwrap().check();
        checked.map_err(|error| error.to_string())
    };
    for (key, most) in [("lanes", LANES_MAX), ("threads", THREADS_MAX)] {
        assert_eq!([1, most].map(|count| checked(key, count)), [Ok(()), Ok(())]);
        for count in [0, most + 1] {
            let why = checked(key, count).unwrap_err();
            assert!(why.contains(&format!("`link.{key}`")), "{why}");
        }
    }
    // A node that nobody gets into, or stays at.
    for key in [
        "silent_callers_max",
        "handshakes_max",
        "first_byte_ms_max",
        "frame_progress_ms_max",
    ] {
        assert_eq!(checked(key, 1), Ok(()));
        let why = checked(key, 0).unwrap_err();
        assert!(why.contains(&format!("`link.{key}`")), "{why}");
    }
}

#[test]
fn a_congestion_control_that_the_system_does_not_have_is_refused() {
    let home = "name = \"alps\"\ndata_dir = \"/d\"\nlisten = [\"a:1\"]\n[link]\ncongestion = ";
    let checked = |name: &str| {
        let home = HomeConfigFile::parse(&format!("{home}{name:?}")).unwrap();
        home.check().map_err(|error| error.to_string())
    };
    for name in ["best", "system"] {
        assert_eq!(checked(name), Ok(()));
    }
    let why = checked("carrier-pigeon").unwrap_err();
    assert!(
        why.contains("`link.congestion`") && why.contains("carrier-pigeon"),
        "{why}"
    );
    let error = HomeConfigFile::parse(&format!("{home}\"two words\"")).unwrap_err();
    assert!(
        error.to_string().contains("no congestion control"),
        "{error}"
    );
}

#[test]
fn neighbours_that_would_be_silent_at_once_are_refused() {
    let home = "name = \"alps\"\ndata_dir = \"/d\"\n";
    let site = format!("{home}[[parent]]\naddresses = [\"b:1\"]\n");
    let why = |link: &str| {
        let home = HomeConfigFile::parse(&format!("{home}[link]\n{link}")).unwrap();
        let site = SiteConfigFile::parse(&format!("{site}[link]\n{link}")).unwrap();
        [home.check(), site.check()].map(|checked| checked.err().map(|e| e.to_string()))
    };
    assert_eq!(why("alive_ms = 10\nalive_missed_max = 2"), [None, None]);
    for (link, key) in [
        ("alive_ms = 0", "`link.alive_ms`"),
        ("alive_ms = 9", "`link.alive_ms`"),
        ("alive_missed_max = 0", "`link.alive_missed_max`"),
        ("alive_missed_max = 1", "`link.alive_missed_max`"),
    ] {
        for why in why(link).map(Option::unwrap) {
            assert!(why.contains(key) && why.contains("at least"), "{why}");
        }
    }
}

#[test]
fn values_are_read_and_bad_ones_named() {
    let text = "listen = [\"unix:/run/t.sock\"]\nhttp = \"[::1]:80\"\n[log]\nformat = \"json\"\n[store]\nlimit = \"1 GiB\"";
    let home = HomeConfigFile::parse(text).unwrap();
    assert_eq!(home.store.limit, Some(Bytes(1 << 30)));
    assert_eq!(home.log.format, LogFormat::Json);
    assert_eq!(home.http, Some("[::1]:80".parse().unwrap()));
    assert_eq!(HomeConfigFile::parse("http = \"off\"").unwrap().http, None);
    for text in [
        "listen = [\"nowhere\"]",
        "http = \"localhost\"",
        "[store]\nlimit = \"lots\"",
        "[limits]\ncache = -1",
    ] {
        assert!(HomeConfigFile::parse(text).is_err(), "{text}");
    }
}
