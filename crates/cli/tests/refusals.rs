//! What goes wrong is told in one line, and what to do in another; the exit code tells it to scripts.

mod common;

use common::thorp;
use std::fs;
use std::path::Path;
use thorp_client::FETCH_TIMEOUT;
use thorp_testing::{OF_A_TEST, Process, Said, finish};

/// One line what happened, one line what to do.
fn assert_refused(said: &Said, code: i32, what: &str) {
    assert_eq!(said.code, code, "{}", said.err);
    assert!(said.err.contains(what), "{what:?} in {}", said.err);
    assert!(said.err.contains("\n  -> "), "what to do: {}", said.err);
    assert!(said.out.is_empty(), "{}", said.out);
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are text")
}

#[test]
fn help_and_version_say_what_there_is() {
    let help = thorp().run(&["--help"]);
    assert_eq!(help.code, 0);
    for word in [
        "home",
        "site",
        "invite",
        "check",
        "status",
        "watch",
        "demo",
        "Exit codes:",
        "THORP_VIA",
    ] {
        assert!(help.out.contains(word), "{word} in {}", help.out);
    }
    let has_planner = cfg!(feature = "planner");
    assert_eq!(help.out.contains("plan"), has_planner, "{}", help.out);
    let plan = thorp().run(&["plan", "--help"]);
    assert_eq!(plan.code, if has_planner { 0 } else { 2 }, "{}", plan.err);
    assert!(!help.out.contains("demo-member"));
    let home = thorp().run(&["home", "--help"]);
    for word in ["SIGTERM", "all interfaces", "7420"] {
        assert!(home.out.contains(word), "{word} in {}", home.out);
    }
    let version = thorp().run(&["--version"]);
    assert_eq!(
        version.out.trim(),
        concat!("thorp ", env!("CARGO_PKG_VERSION"))
    );
}

/// Text that was wrapped by hand was wrapped once more, so that lines of a few words stood between full ones.
#[test]
fn paragraphs_of_help_are_wrapped_once() {
    let help = thorp().run(&["invite", "--help"]).out;
    let (_, paragraph) = help.split_once("\nMakes a directory").unwrap();
    let (paragraph, _) = paragraph.split_once("\n\n").unwrap();
    let lines: Vec<&str> = paragraph.lines().collect();
    let full = lines[1..lines.len() - 1].iter();
    assert!(full.clone().all(|line| line.len() > 80), "{paragraph}");
    assert!(full.clone().all(|line| line.len() <= 100), "{paragraph}");
}

#[test]
fn a_wrong_flag_is_wrong_usage() {
    for wrong in [
        &["home", "--lsiten", "x"][..],
        &["home", "--listen", "nowhere"],
        &["home", "--http", "localhost"],
        &["site", "--home", "alps"],
        &["home", "--limit-bytes", "much"],
        &["home", "--lease", "0"],
        &["demo", "--rtt-ms", "-1"],
        &["nothing"],
    ] {
        let said = thorp().run(wrong);
        assert_eq!(said.code, 2, "{wrong:?}: {}", said.err);
        assert!(said.err.starts_with("error: "), "{}", said.err);
    }
    assert!(
        thorp()
            .run(&["home", "--lsiten", "x"])
            .err
            .contains("--listen"),
        "a suggestion"
    );
}

#[test]
fn who_says_nothing_of_where_is_told_how() {
    assert_refused(&thorp().run(&["ls"]), 2, "no site or home was named");
    assert_refused(
        &thorp().run(&["ls", "--via", "unix:/no.sock"]),
        2,
        "no identity was given",
    );
    assert_refused(
        &thorp().run(&["get", "thorp://alps/a"]),
        2,
        "names a segment",
    );
    assert_refused(&thorp().run(&["site"]), 2, "no home was named");
}

#[test]
fn a_configuration_that_cannot_be_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("home.toml");
    let missing = thorp().run(&["home", "--config", text(&file)]);
    assert_refused(&missing, 2, "home.toml");
    fs::write(&file, "nmae = \"alps\"\n").unwrap();
    let misspelt = thorp().run(&["home", "--config", text(&file)]);
    assert_refused(&misspelt, 2, "nmae");
    assert!(misspelt.err.contains("line 1"), "{}", misspelt.err);
    let alone = thorp().run(&["site", "--dir", text(dir.path())]);
    assert_refused(&alone, 2, "parent");
}

#[test]
fn flags_override_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("home.toml");
    fs::write(&file, "name = \"alps\"\n[store]\nlimit = \"1 GiB\"\n").unwrap();
    let said = thorp().run(&[
        "home",
        "--config",
        text(&file),
        "--limit-bytes",
        "2 GiB",
        "--print-config",
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.contains("name = \"alps\"") && said.out.contains("limit = \"2 GiB\""),
        "{}",
        said.out
    );
}

#[test]
fn the_time_of_a_lease_is_chosen_within_its_range() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("home.toml");
    let lease_of = |lease_ms: &str| {
        fs::write(&file, format!("[limits]\nlease_ms = {lease_ms}\n")).unwrap();
        text(&file)
    };
    let printed = |more: &[&str]| {
        let said = thorp().run(&[&["home", "--print-config"], more].concat());
        let mut lines = said.out.lines();
        lines
            .find(|line| line.starts_with("lease_ms"))
            .map(ToOwned::to_owned)
    };
    assert_eq!(printed(&[]).unwrap(), "lease_ms = 60000");
    let of_file = ["--config", lease_of("7000")];
    assert_eq!(printed(&of_file).unwrap(), "lease_ms = 7000");
    let of_flag = [&of_file[..], &["--lease", "5"]].concat();
    assert_eq!(printed(&of_flag).unwrap(), "lease_ms = 5000");
    for wrong in ["0", "3601", "soon"] {
        let said = thorp().run(&["home", "--lease", wrong]);
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(said.err.contains("1 to 3600 seconds"), "{}", said.err);
    }
    for wrong in ["999", "3600001"] {
        let home = [
            "home",
            "--dir",
            text(dir.path()),
            "--config",
            lease_of(wrong),
        ];
        let said = thorp().run(&home);
        assert_refused(&said, 2, "`limits.lease_ms`");
        assert!(said.err.contains("1000 to 3600000"), "{}", said.err);
    }
}

#[test]
fn the_status_is_served_on_this_machine_unless_it_is_turned_off() {
    let dir = tempfile::tempdir().unwrap();
    for (command, address) in [("home", "127.0.0.1:7430"), ("site", "127.0.0.1:7431")] {
        let said = thorp().run(&[command, "--print-config"]);
        let wanted = format!("http = \"{address}\"");
        assert!(said.out.lines().any(|line| line == wanted), "{}", said.out);
        let file = dir.path().join("off.toml");
        fs::write(
            &file,
            thorp()
                .run(&[command, "--http", "off", "--print-config"])
                .out,
        )
        .unwrap();
        let said = thorp().run(&[command, "--config", text(&file), "--print-config"]);
        assert!(said.out.contains("http = \"off\""), "{}", said.out);
    }
}

#[test]
fn a_directory_of_something_else_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    fs::create_dir(&store).unwrap();
    fs::write(store.join("letters.txt"), "dear").unwrap();
    let said = thorp().run(&[
        "home",
        "--dir",
        text(dir.path()),
        "--listen",
        "127.0.0.1:0",
        "--http",
        "off",
    ]);
    assert_refused(&said, 1, "letters.txt");
    assert_refused(&thorp().run(&["check", text(dir.path())]), 1, "letters.txt");
    assert_refused(
        &thorp().run(&["check", "/nowhere/at/all"]),
        1,
        "/nowhere/at/all",
    );
}

#[test]
fn a_second_process_is_refused_and_so_is_a_taken_port() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let same = text(&dir.path().join("home")).to_owned();
    let second = thorp().run(&[
        "home",
        "--name",
        "alps",
        "--dir",
        &same,
        "--listen",
        "127.0.0.1:0",
        "--http",
        "off",
    ]);
    assert_refused(&second, 1, "in use by another process");
    assert_refused(
        &thorp().run(&["check", &same]),
        1,
        "in use by another process",
    );
    let other = dir.path().join("other");
    let taken = thorp().run(&[
        "home",
        "--dir",
        text(&other),
        "--listen",
        "127.0.0.1:0",
        "--http",
        &home.http,
    ]);
    assert_refused(&taken, 1, &home.http);
    assert!(taken.err.contains("--http off"), "{}", taken.err);
}

#[test]
fn a_malformed_model_is_told_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("wrong.ifc");
    assert_refused(
        &thorp().run(&["ifc", "import", text(&file), "thorp://alps/m"]),
        1,
        "wrong.ifc",
    );
    let lines = [
        "ISO-10303-21;",
        "HEADER;",
        "FILE_DESCRIPTION((''),'2;1');",
        "FILE_NAME('','',(''),(''),'','','');",
        "FILE_SCHEMA(('IFC4'));",
        "ENDSEC;",
        "DATA;",
        "#1=IFCWALL(;",
        "ENDSEC;",
        "END-ISO-10303-21;",
    ];
    fs::write(&file, lines.join("\n")).unwrap();
    let said = thorp().run(&["ifc", "import", text(&file), "thorp://alps/m"]);
    assert_refused(&said, 1, "line 8");
}

#[test]
fn nobody_there_is_an_exit_code_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let nowhere = format!("unix:{}/nobody.sock", dir.path().display());
    let mut command = thorp().command(&["ls", "--timeout", "1", "--via", &nowhere]);
    command.env("THORP_IDENTITY", &home.identity);
    assert_refused(&finish(command), 4, "nobody.sock");
    // Who waits for longer is told meanwhile what for.
    let mut command = thorp().command(&["ls", "--timeout", "3", "--via", &nowhere]);
    command.env("THORP_IDENTITY", &home.identity);
    let said = finish(command);
    let note = format!("waiting for an answer from {nowhere} (at most 3 s: --timeout)");
    assert!(said.err.contains(&note), "{}", said.err);
    assert_refused(
        &thorp().run(&["status", "127.0.0.1:1"]),
        4,
        "does not answer",
    );
}

#[test]
fn a_misspelt_identity_is_told_and_nothing_is_made_there() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let misspelt = dir.path().join("mee");
    let mut command = thorp().command(&["ls", "--via", &home.via]);
    command.env("THORP_IDENTITY", &misspelt);
    assert_refused(&finish(command), 1, "mee");
    assert!(!misspelt.exists());
    // Nor in the directory of the home, which holds one in a directory of its own.
    let outer = dir.path().join("home");
    let mut command = thorp().command(&["ls", "--via", &home.via]);
    command.env("THORP_IDENTITY", &outer);
    assert_refused(&finish(command), 1, "home");
    assert!(!outer.join("authority.key").exists());
    assert_refused(&finish(home.command(&["get", "nothing"])), 2, "\"nothing\"");
}

#[test]
fn a_site_has_the_name_that_its_certificate_has() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let identity = text(&dir.path().join("office")).to_owned();
    let invite = [
        "invite",
        "office",
        "--role=site",
        "--dir",
        &home.authority,
        "--out",
        &identity,
    ];
    assert_eq!(thorp().run(&invite).code, 0);
    let again = [
        "invite",
        "shop",
        "--role=site",
        "--dir",
        &home.authority,
        "--out",
        &identity,
    ];
    assert_refused(&thorp().run(&again), 1, "not of site shop");
    let site = ["site", "--home=alps=127.0.0.1:1", "--identity", &identity];
    let printed = thorp().run(&[&site[..], &["--print-config"]].concat());
    assert!(printed.out.contains("name = \"office\""), "{}", printed.out);
    let alone = format!("unix:{}/site.sock", dir.path().display());
    let mut command = thorp().command(&site);
    command.args(OF_A_TEST).args(["--listen", &alone]);
    let going = Process::start(command);
    going.ready();
    // It reaches no home, and says so.
    let ls = thorp().run(&["ls", "--via", &alone, "--identity", &home.identity]);
    assert_refused(&ls, 4, "home alps: it is out of reach");
    assert_eq!(going.terminate(), 0);
    let other = thorp().run(&[&site[..], &["--name", "shop", "--listen=127.0.0.1:0"]].concat());
    assert_refused(&other, 1, "not of site shop");
}

#[test]
fn a_name_has_one_role_and_a_node_starts_only_in_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let path = |name: &str| dir.path().join(name).display().to_string();
    let invite = |name: &str, flags: &[&str], out: &str| {
        let invite = [
            "invite",
            name,
            "--dir",
            &home.authority,
            "--out",
            &path(out),
        ];
        thorp().run(&[&invite[..], flags].concat())
    };
    let said = invite("anna", &[], "anna");
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("member anna is let into"), "{}", said.out);
    for flags in [["--role=site"], ["--role=operator"], ["--with-site"]] {
        let said = invite("anna", &flags, "other");
        assert_refused(&said, 1, "the name anna belongs to member anna");
        assert!(said.err.contains("take another name"), "{}", said.err);
    }
    assert_refused(
        &invite("alps", &["--role=home"], "other"),
        1,
        "alps is a home of this village",
    );
    let boss = invite("boss", &["--role=boss"], "other");
    assert!(boss.code == 2 && boss.err.contains("member, site, home, operator"));
    let said = invite("olga", &["--role=operator", "--with-site"], "other");
    assert_refused(&said, 2, "operator olga carries no redirector");

    let said = invite("bert", &["--with-site"], "bert");
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("site bert"), "{}", said.out);
    assert!(dir.path().join("bert/site/node.pem").exists());

    // Neither home nor site starts as a member, and no program joins as one of them.
    let above = format!("--home=alps={}", home.via);
    let site = [
        "site",
        "--identity",
        &path("anna"),
        &above,
        "--listen=127.0.0.1:0",
    ];
    let said = thorp().run(&[&site[..], &["--http=off"]].concat());
    assert_refused(&said, 1, "the identity of member anna, not of site anna");
    let (dir, identity) = (path("dale"), path("anna"));
    let dale = [
        "home",
        "--name=anna",
        "--dir",
        &dir,
        "--identity",
        &identity,
    ];
    let said = thorp().run(&[&dale[..], &["--http=off", "--listen=127.0.0.1:0"]].concat());
    assert_refused(&said, 1, "the identity of member anna, not of home anna");
    let ls = thorp().run(&["ls", "--via", &home.via, "--identity", &home.own]);
    assert_refused(&ls, 1, "that of home alps, and a program needs a member's");
}

#[test]
fn a_home_that_went_away_is_waited_for_as_long_as_was_said() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let made = home.out(&["put", "thorp://alps/notes", "--text", "x"]);
    let via = format!("unix:{}/site.sock", dir.path().display());
    let above = format!("alps={}", home.via);
    let dir = text(&dir.path().join("site")).to_owned();
    let mut site = thorp().command(&["site", "--name=valley", "--dir", &dir]);
    site.args(["--authority", &home.authority, "--home", &above])
        .args(["--listen", &via])
        .args(OF_A_TEST);
    let site = Process::start(site);
    site.ready();
    let get = |timeout: &str| {
        let mut get = thorp().command(&["get", made.trim(), "--via", &via, "--timeout", timeout]);
        get.env("THORP_IDENTITY", &home.identity);
        finish(get)
    };
    assert_eq!(get("20").out, "x");
    assert_eq!(home.process.terminate(), 0);
    let begun = std::time::Instant::now();
    assert_refused(&get("1"), 4, "home alps cannot be reached");
    // A program that comes now hears of no stream at all.
    let mut put = thorp().command(&[
        "put",
        "thorp://alps/x",
        "--text",
        "x",
        "--via",
        &via,
        "--timeout=1",
    ]);
    put.env("THORP_IDENTITY", &home.identity);
    assert_refused(&finish(put), 4, "home alps cannot be reached");
    assert!(begun.elapsed() < FETCH_TIMEOUT, "{:?}", begun.elapsed());
    assert_eq!(site.terminate(), 0);
}

#[test]
fn what_a_segment_keeps_of_itself_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    home.out(&["put", "thorp://alps/notes", "--text", "x", "--root", "one"]);
    for slot in ["0.0.1", "0.1.1"] {
        let object = format!("thorp://alps/notes#{slot}");
        let put = finish(home.command(&["put", &object, "--text", "y"]));
        assert_refused(&put, 1, "no object of a program");
    }
    assert_eq!(
        home.out(&["get", "thorp://alps/notes", "--root", "one"]),
        "x"
    );
    let both = [
        "put",
        "thorp://alps/notes#1.0.1",
        "--text",
        "y",
        "--root",
        "two",
    ];
    assert_refused(&finish(home.command(&both)), 2, "--root");
}

#[test]
fn a_home_without_its_certificate_founds_no_other_village() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let misspelt = [
        "--identity",
        &path("nosuch"),
        "--http=off",
        "--listen=127.0.0.1:0",
    ];
    let new = thorp().run(&[&["home", "--dir", &path("new")], &misspelt[..]].concat());
    assert_refused(&new, 1, "no certificate in");
    assert!(!dir.path().join("new").exists() && !dir.path().join("nosuch").exists());
    let home = thorp().home(dir.path());
    assert_eq!(home.process.terminate(), 0);
    std::fs::rename(&home.own, dir.path().join("elsewhere")).unwrap();
    let again = [
        "home",
        "--name=alps",
        "--dir",
        &path("home"),
        "--http=off",
        "--listen=127.0.0.1:0",
    ];
    assert_refused(&thorp().run(&again), 1, "no certificate in");
    assert!(!Path::new(&home.own).exists());
}

#[test]
fn what_is_removed_and_what_is_not_there_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    for name in ["a", "b"] {
        home.out(&["put", &format!("thorp://alps/{name}"), "--text", "x"]);
    }
    let rm = |flags: &[&str]| finish(home.command(&[&["rm"], flags].concat()));
    let said = rm(&["thorp://alps/a", "thorp://alps/nothing", "thorp://alps/b"]);
    assert_eq!((said.code, &said.out[..]), (5, "removed thorp://alps/a\n"));
    assert!(said.err.contains("thorp://alps/nothing"), "{}", said.err);
    // An object, once.
    let made = home.out(&["put", "thorp://alps/b", "--text", "y"]);
    let made = made.trim();
    let said = rm(&[made]);
    assert_eq!((said.code, said.out), (0, format!("removed {made}\n")));
    assert_eq!(rm(&[made]).code, 5);
    assert_eq!(rm(&["--force", made]).code, 0);
    let said = rm(&["--force", "thorp://alps/nothing", "thorp://alps/b"]);
    assert_eq!((said.code, &said.out[..]), (0, "removed thorp://alps/b\n"));
}

#[test]
fn a_stranger_is_not_let_in() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let elsewhere = tempfile::tempdir().unwrap();
    let other = thorp().home(elsewhere.path());
    let mut command = thorp().command(&["ls", "--timeout", "2", "--via", &home.via]);
    command.env("THORP_IDENTITY", &other.identity);
    let said = finish(command);
    assert_eq!(said.code, 4, "{}", said.err);
}

#[test]
fn what_cannot_be_asked_or_read_later_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    for name in ["", "two\nlines", "\u{1b}[31m"] {
        let put = ["put", "thorp://alps/notes", "--text", "x", "--root", name];
        assert_refused(&finish(home.command(&put)), 1, "no name for a root");
    }
    assert_refused(&thorp().run(&["status", "nowhere"]), 2, "nowhere");
    // It would be the name of a part of the program, and silence all others.
    let site = ["site", "--home=alps=127.0.0.1:1", "--log-level", "wran"];
    let site = [&site[..], &["--identity", &home.identity]].concat();
    assert_refused(&thorp().run(&site), 2, "wran");
    let file = dir.path().join("a-file");
    fs::write(&file, "").unwrap();
    let invite = [
        "invite",
        "anna",
        "--dir",
        &home.authority,
        "--out",
        text(&file),
    ];
    assert_refused(&thorp().run(&invite), 1, "a directory that is empty");
    // A key among other files would go where these go.
    let among = [
        "invite",
        "anna",
        "--dir",
        &home.authority,
        "--out",
        text(dir.path()),
    ];
    assert_refused(&thorp().run(&among), 1, "a directory that is empty");
    assert!(!dir.path().join("node.key").exists());
}
