//! Several files that are one trace.

use super::*;
use std::path::PathBuf;
use tempfile::TempDir;

fn written(dir: &TempDir, name: &str, rows: &str) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, rows).expect("written");
    path
}

#[test]
fn what_several_members_recorded_is_one_trace_by_time() {
    let dir = tempfile::tempdir().expect("a directory");
    let written = |name: &str, rows: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("{}\n{rows}", format::HEAD)).expect("written");
        path
    };
    let anna = written("anna.csv", "10,anna,read,p1,100\n40,anna,read,p2,100\n");
    let ben = written("ben.csv", "30,ben,read,p2,100\n20,cleo,read,p3,100\n");
    let trace = Reading::default()
        .files(&[&anna, &ben])
        .expect("they are read");
    assert_eq!(
        (&*trace.pages, &*trace.clients),
        (&[0, 2, 1, 1][..], &[0, 2, 1, 0][..])
    );
    assert_eq!(
        (&*trace.times_us, &*trace.name),
        (&[10, 20, 30, 40][..], "anna.csv, ben.csv")
    );
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "p2\np1\n").expect("written");
    let trace = Reading::default()
        .files(&[&anna, &plain])
        .expect("they are read");
    assert_eq!(
        (&*trace.pages, trace.clients.len(), trace.times_us.len()),
        (&[0, 1, 1, 0][..], 0, 0)
    );
}

#[test]
fn whatever_tells_when_is_put_in_the_order_of_its_times() {
    let dir = tempfile::tempdir().expect("a directory");
    let written = |name, rows| written(&dir, name, rows);
    let even = written("even.csv", "time,id\n0,a\n4,c\n2,b\n");
    let odd = written("odd.csv", "id;time_ms\na;1000\nb;2000\nc;5000\n");
    let both = Reading::default().files(&[&even, &odd]).expect("read");
    let seconds: Vec<u64> = both.times_us.iter().map(|us| us / 1_000_000).collect();
    assert_eq!(seconds, [0, 1, 2, 2, 4, 5]);
    assert_eq!(both.pages, [0, 0, 2, 2, 1, 1], "a a b b c c");
    assert_eq!(both.from, [0, 1, 0, 1, 0, 1]);
    assert!(both.was_sorted);
    let first = Reading {
        requests_most: Some(3),
        ..Reading::default()
    };
    let first = first.files(&[&even, &odd]).expect("read");
    assert_eq!((&*first.pages, first.footprint), (&[0, 0, 1][..], 2));
    let one = Reading::default().file(&even).expect("read");
    assert_eq!((&*one.pages, one.was_sorted), (&[0, 2, 1][..], true));
    assert!(one.from.is_empty());
    let untold = written("untold.csv", "id\na\n");
    let after = Reading::default().files(&[&odd, &untold]).expect("read");
    assert_eq!(
        (&*after.pages, after.was_sorted),
        (&[0, 1, 2, 0][..], false)
    );
}

#[test]
fn files_that_tell_no_members_apart_are_a_member_each() {
    let dir = tempfile::tempdir().expect("a directory");
    let written = |name, rows| written(&dir, name, rows);
    let plain = written("plain", "a\nb\n");
    let same = ["x.csv", "y.csv"].map(|name| written(name, "client,id\nme,a\nme,b\n"));
    let two = written("two.csv", "client,id\nanna,a\nben,b\n");
    let read = |files: &[&Path]| Reading::default().files(files).expect("read");
    for (trace, is_by_file) in [
        (read(&[&plain, &plain]), true),
        (read(&[&same[0], &same[1]]), true),
        (read(&[&plain, &same[0]]), true),
        (read(&[&two, &same[0]]), false),
        (read(&[&two, &plain]), false),
        (read(&[&plain]), false),
    ] {
        assert_eq!(trace.is_by_file(), is_by_file, "{}", trace.name);
    }
    let trace = read(&[&plain, &same[0]]);
    assert_eq!(
        dealt(&trace, Dealing::ByFile, 2, 1).expect("dealt"),
        [0, 0, 1, 1]
    );
    assert!(dealt(&trace, Dealing::ByFile, 1, 1).is_err());
    assert_eq!("by-file".parse(), Ok(Dealing::ByFile));
}

#[test]
fn commands_that_recorded_one_file_are_one_members() {
    let dir = tempfile::tempdir().expect("a directory");
    let recorded = |name, rows: &str| {
        let text = format!("{}\n{rows}", format::HEAD);
        written(&dir, name, &text)
    };
    let several = recorded("several.csv", "1,a1,read,x,0\n2,a2,read,x,0\n");
    let one = recorded("one.csv", "1,b,read,x,0\n");
    let plain = written(&dir, "plain", "x\n");
    let table = written(&dir, "two.csv", "client,id\nanna,a\nben,b\n");
    let read = |files: &[&Path]| Reading::default().files(files).expect("read");
    for (trace, is_of_commands) in [
        (read(&[&several]), true),
        (read(&[&several, &one]), true),
        (read(&[&several, &plain]), true),
        (read(&[&several, &table]), false),
        (read(&[&one, &one]), false),
    ] {
        assert_eq!(trace.is_of_commands(), is_of_commands, "{}", trace.name);
    }
}
