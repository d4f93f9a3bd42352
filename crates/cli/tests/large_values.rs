//! Large values pass through commands, sites and homes, and none of them keeps a whole one in its memory.
//!
//! `THORP_LARGE=100,1024` says of how many MiB (`make large`). Without it the second is smaller.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::one_site::OneSite;
use common::terminal::run_at_terminal;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use thorp_client::{JoinConfig, Member};
use thorp_model::Table;
use thorp_testing::{HomeNode, Link, Village, eventually, finish};

/// The most memory that a process has had, in KiB. None if it has ended.
fn peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

/// Forgets the most memory that a process has had so far.
fn forget_peak(process: u32) {
    fs::write(format!("/proc/{process}/clear_refs"), "5").unwrap();
}

/// Runs a command to its end, and tells the most memory that it had.
fn run(command: &mut Command, out: File) -> u64 {
    let mut child = command.stdout(Stdio::from(out)).spawn().unwrap();
    let mut most = 0;
    let status = loop {
        most = most.max(peak(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        thread::sleep(Duration::from_millis(2));
    };
    assert!(status.success(), "{status}");
    most
}

/// Bytes that do not compress and that no page repeats.
fn write_noise(path: &Path, mib: u64) {
    let mut file = File::create(path).unwrap();
    let mut state = 0x9e37_79b9_u64;
    for _ in 0..mib {
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        };
        let words: Vec<[u8; 8]> = std::iter::repeat_with(next).take(1 << 17).collect();
        file.write_all(words.as_flattened()).unwrap();
    }
}

fn assert_same(one: &Path, other: &Path) {
    let (mut one, mut other) = (File::open(one).unwrap(), File::open(other).unwrap());
    let bytes = one.metadata().unwrap().len();
    assert_eq!(bytes, other.metadata().unwrap().len());
    let (mut a, mut b) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    for at in 0..bytes >> 20 {
        one.read_exact(&mut a).unwrap();
        other.read_exact(&mut b).unwrap();
        assert!(a == b, "MiB {at} differs");
    }
}

fn sizes() -> Vec<u64> {
    let said = std::env::var("THORP_LARGE").unwrap_or_else(|_| String::from("100,240"));
    said.split(',').map(|size| size.parse().unwrap()).collect()
}

#[test]
fn no_process_needs_memory_for_a_whole_value() {
    let dir = tempfile::tempdir().unwrap();
    // Caches that each of the values fills.
    let cache = ["--cache-bytes", "8MiB"];
    let village = OneSite::start_with(dir.path(), &["anna"], &cache, &cache);
    let anna = dir.path().join("anna");
    let command = |arguments: &[&str]| {
        let mut command = common::thorp().command(arguments);
        command
            .env("THORP_VIA", &village.site_via)
            .env("THORP_IDENTITY", &anna);
        command
    };
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    let nodes = [village.home.process.id(), village.site.id()];
    let mut peaks: Vec<[u64; 4]> = Vec::new();
    for mib in sizes() {
        write_noise(&from, mib);
        nodes.into_iter().for_each(forget_peak);
        let file = from.display().to_string();
        let put = ["put", "thorp://alps/films", &file, "--root", "film"];
        let put = run(&mut command(&put), File::create(&to).unwrap());
        let get = ["get", "thorp://alps/films", "--root", "film"];
        let get = run(&mut command(&get), File::create(&to).unwrap());
        let [home, site] = nodes.map(|node| peak(node).unwrap());
        println!("{mib} MiB: put {put}, get {get}, home {home}, site {site} KiB at most");
        assert_same(&from, &to);
        peaks.push([put, get, home, site]);
    }
    let said = finish(command(&[
        "get",
        "thorp://alps/films",
        "--root",
        "film",
        "--json",
    ]));
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("67108864 at most"), "{}", said.err);

    // The second value replaces the first. A home also fills the buffers of its engine meanwhile.
    let [few, many] = peaks[..] else {
        panic!("two sizes are compared");
    };
    for (few, many) in few.into_iter().zip(many) {
        assert!(
            many < few + ALLOWED_KIB,
            "{many} KiB, with the small value {few} KiB"
        );
    }
}

/// What a home keeps of several large values says nothing of the commands.
#[test]
fn no_command_needs_memory_for_a_value_that_it_moves() {
    let dir = tempfile::tempdir().unwrap();
    let home = common::thorp().home(dir.path());
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    let peak_of = |arguments: &[&str]| {
        let out = File::create(&to).unwrap();
        run(&mut home.command(arguments), out)
    };
    let mut peaks: Vec<[u64; 2]> = Vec::new();
    for mib in [20, 120] {
        write_noise(&from, mib);
        let file = from.display().to_string();
        peak_of(&["put", "thorp://alps/films", &file, "--root", "film"]);
        let film = ["thorp://alps/films", "--root", "film"];
        let moved = ["thorp://alps/moved", "--as-root", "film"];
        let mv = peak_of(&[&["mv"], &film[..], &moved[..]].concat());
        let get = ["get", "thorp://alps/moved", "--root", "film"];
        let get = peak_of(&[&get[..], &["--range", "0-"]].concat());
        println!("{mib} MiB: mv {mv}, get --range {get} KiB at most");
        assert_same(&from, &to);
        peaks.push([mv, get]);
    }
    let [few, many] = peaks[..] else {
        panic!("two sizes are compared");
    };
    for (few, many) in few.into_iter().zip(many) {
        assert!(
            many < few + ALLOWED_KIB,
            "{many} KiB, with 20 MiB {few} KiB"
        );
    }
}

/// A home behind a link that takes 1.5 MB a second, and a command that joins there.
struct Narrow {
    dir: TempDir,
    identity: PathBuf,
    link: Link,
    home: HomeNode,
    _village: Village,
}

impl Narrow {
    fn new() -> Self {
        let village = Village::new();
        let home = village.home("alps");
        let link = home.link(Duration::from_millis(5));
        link.set_bytes_per_second(Some(1_500_000));
        Narrow {
            dir: tempfile::tempdir().unwrap(),
            identity: village.member("anna"),
            link,
            home,
            _village: village,
        }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// The whole value takes longer than this command may wait.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = common::thorp().command(arguments);
        command
            .args(["--timeout", "2"])
            .env("THORP_VIA", self.link.address().to_string())
            .env("THORP_IDENTITY", &self.identity);
        command
    }

    /// Runs a command, and does something when a part of the value has passed. Gives its exit code and its errors.
    fn disturbed(&self, arguments: &[&str], what: impl FnOnce()) -> (Option<i32>, String) {
        let before = self.link.carried();
        let mut command = self.command(arguments);
        let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
        let command = command.spawn().unwrap();
        eventually("a part has passed", || {
            let carried = self.link.carried();
            (carried.up - before.up).max(carried.down - before.down) > 3_000_000
        });
        what();
        let output = command.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said)
    }

    fn member(&self) -> Member {
        let config = JoinConfig::new(self.home.address()).identity(&self.identity);
        Member::join(config).unwrap()
    }
}

/// What is said if a part was written.
const DISCARD: &str = "discard them, and try again";

#[test]
fn a_home_that_becomes_full_refuses_the_rest() {
    let narrow = Narrow::new();
    let from = narrow.path("from");
    write_noise(Path::new(&from), 5);
    let put = ["put", "thorp://alps/films", &from, "--root", "film"];
    let (code, said) = narrow.disturbed(&put, || narrow.home.set_space(false));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("free some room"), "{said}");
    // What came of it is forgotten.
    eventually("the pieces go", || narrow.home.records(Table::Staged) == 0);
    narrow.home.set_space(true);
    let said = finish(narrow.command(&put));
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn a_value_passes_although_the_connection_breaks() {
    let narrow = Narrow::new();
    let (from, to) = (narrow.path("from"), narrow.path("to"));
    write_noise(Path::new(&from), 5);
    let put = ["put", "thorp://alps/films", &from, "--root", "film"];
    let breaks = || {
        narrow.link.cut();
        narrow.link.mend();
    };
    let (code, said) = narrow.disturbed(&put, breaks);
    assert_eq!(code, Some(0), "{said}");
    let get = ["get", "thorp://alps/films", "--root", "film"];
    let (code, said) = narrow.disturbed(&get, breaks);
    assert_eq!(code, Some(0), "{said}");
    run(&mut narrow.command(&get), File::create(&to).unwrap());
    assert_same(Path::new(&from), Path::new(&to));
}

#[test]
fn a_value_that_is_replaced_while_it_is_read_is_a_conflict() {
    let narrow = Narrow::new();
    let from = narrow.path("from");
    write_noise(Path::new(&from), 5);
    let put = ["put", "thorp://alps/films", &from, "--root", "film"];
    let said = finish(narrow.command(&put));
    assert_eq!(said.code, 0, "{}", said.err);
    let anna = narrow.member();
    let films = anna.open("thorp://alps/films").unwrap();
    let film = films.root("film").unwrap().unwrap();
    let get = ["get", "thorp://alps/films", "--root", "film"];
    let replace = || anna.transact(|tx| tx.write(&film, "other")).unwrap();
    let (code, said) = narrow.disturbed(&get, replace);
    assert_eq!(code, Some(6), "{said}");
    assert!(said.contains(DISCARD), "{said}");
}

#[test]
fn a_value_may_take_long_while_it_makes_progress() {
    let narrow = Narrow::new();
    let (from, to) = (narrow.path("from"), narrow.path("to"));
    write_noise(Path::new(&from), 5);
    let put = ["put", "thorp://alps/films", &from, "--root", "film"];
    let said = finish(narrow.command(&put));
    assert_eq!(said.code, 0, "{}", said.err);
    let get = ["get", "thorp://alps/films", "--root", "film"];
    run(&mut narrow.command(&get), File::create(&to).unwrap());
    assert_same(Path::new(&from), Path::new(&to));
}

#[test]
fn a_person_at_a_terminal_sees_how_far_a_value_has_come() {
    let narrow = Narrow::new();
    let from = narrow.path("from");
    write_noise(Path::new(&from), 5);
    let put = || narrow.command(&["put", "thorp://alps/films", &from, "--root", "film"]);
    let said = run_at_terminal(put());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("of 5242880 bytes"), "{:?}", said.err);
    // A program sees only the result.
    let said = finish(put());
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    let get = narrow.command(&["get", "thorp://alps/films", "--root", "film"]);
    let said = run_at_terminal(get);
    assert!(said.err.contains("of 5242880 bytes"), "{:?}", said.err);
}

#[test]
fn a_value_that_makes_no_progress_is_given_up() {
    let narrow = Narrow::new();
    let from = narrow.path("from");
    write_noise(Path::new(&from), 5);
    let put = ["put", "thorp://alps/films", &from, "--root", "film"];
    let said = finish(narrow.command(&put));
    assert_eq!(said.code, 0, "{}", said.err);

    let get = ["get", "thorp://alps/films", "--root", "film"];
    for (arguments, told) in [(&put[..], "try again"), (&get[..], DISCARD)] {
        let (code, said) = narrow.disturbed(arguments, || narrow.link.fall_silent());
        narrow.link.mend();
        assert_eq!(code, Some(4), "{said}");
        assert!(said.contains(told), "{said}");
    }
    // The value is as it was.
    let to = narrow.path("to");
    run(&mut narrow.command(&get), File::create(&to).unwrap());
    assert_same(Path::new(&from), Path::new(&to));
}

/// How much more memory a process may have had for the larger value, which has at least 200 MiB more.
const ALLOWED_KIB: u64 = 48 << 10;
