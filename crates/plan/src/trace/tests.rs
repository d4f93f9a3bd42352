//! Every format as it should be, and as it should not.

use super::*;
use std::io::Write;

fn read(name: &str, bytes: &[u8]) -> Result<Trace, String> {
    Reading::default()
        .bytes(name, bytes)
        .map_err(|error| error.to_string())
}

fn refused(name: &str, bytes: &[u8]) -> String {
    read(name, bytes).expect_err("it cannot be read")
}

fn oracle(requests: &[(u32, u64, u32, i64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (time, id, size, next) in requests {
        bytes.extend(time.to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(next.to_le_bytes());
    }
    bytes
}

const THREE: [(u32, u64, u32, i64); 3] = [(5, 900, 512, 2), (5, 7, 1024, -1), (6, 900, 512, -1)];

#[test]
fn oracle_general_is_read_under_any_name() {
    let bytes = oracle(&THREE);
    for name in ["a.oracleGeneral.bin", "a.trace"] {
        let trace = read(name, &bytes).expect("it is read");
        assert_eq!(
            (trace.pages, trace.footprint, trace.bytes),
            (vec![0, 1, 0], 2, 2048)
        );
        assert_eq!(trace.times_us, [5_000_000, 5_000_000, 6_000_000]);
        assert!(trace.clients.is_empty());
    }
    let told = refused("a.oracleGeneral", &bytes[..50]);
    assert_eq!(
        told,
        "a.oracleGeneral, at byte 48: the last record has 2 of 24 bytes: it was cut, or has another format"
    );
}

#[test]
fn packed_numbers_are_what_is_no_text_and_no_oracle() {
    let bytes: Vec<u8> = [70_000u32, 3, 70_000, 1]
        .iter()
        .flat_map(|id| id.to_le_bytes())
        .collect();
    assert_eq!(
        read("a.trace", &bytes).expect("it is read").pages,
        [0, 1, 0, 2]
    );
    assert!(
        refused("a.trace", &bytes[..15]).contains("at byte 12: the last record has 3 of 4 bytes")
    );
    let long: Vec<u8> = (0..100u32)
        .flat_map(|id| (1000 - id).to_le_bytes())
        .collect();
    assert_eq!(read("a.trace", &long).expect("it is read").footprint, 100);
}

#[test]
fn lines_are_numbers_or_any_text() {
    let trace = read("a.lis", b"12\r\n7\n\n 12 \nlast page").expect("it is read");
    assert_eq!((trace.pages, trace.footprint), (vec![0, 1, 0, 2], 3));
}

#[test]
fn the_format_can_be_told_and_only_a_part_be_read() {
    let reading = Reading {
        format: Some(Format::Lines),
        requests_most: Some(2),
        ..Reading::default()
    };
    let trace = reading
        .bytes("a.csv", b"1,2\n3,4\n1,2\n")
        .expect("it is read");
    assert_eq!((trace.pages, trace.footprint), (vec![0, 1], 2));
    assert!(
        "tape".parse::<Format>().is_err()
            && Format::ALL
                .iter()
                .all(|it| it.to_string().parse() == Ok(*it))
    );
}

#[test]
fn columns_are_found_by_their_heads() {
    let trace = read(
        "a.csv",
        b"ts;timestamp_x;time_ms;Key;size;host\n0;0;1.5;a;10;x\n0;0;2;b;20;y\n0;0;3;a;5;x\n",
    );
    let trace = trace.expect("it is read");
    assert_eq!(
        (&*trace.pages, &*trace.times_us),
        (&[0, 1, 0][..], &[1500, 2000, 3000][..])
    );
    assert_eq!(
        (&*trace.clients, trace.client_count(), trace.bytes),
        (&[0, 1, 0][..], 2, 35)
    );
}

#[test]
fn what_a_guess_rests_on_and_what_was_not_understood_is_told() {
    let source = |name: &str, bytes: &[u8]| {
        let trace = read(name, bytes).expect("it is read");
        trace.files.into_iter().next().expect("a file")
    };
    let table = source("semi.csv", b"time;who;page\n1;a;7\n2;b;7\n");
    assert_eq!(
        (table.unknown, table.is_evident),
        (vec!["who".to_owned()], true)
    );
    let known = source("a.csv", b"time,client,page,size\n1,a,7,3\n");
    assert!(known.unknown.is_empty() && known.is_evident);
    assert_eq!(source("a", b"1\n2\n").words(), "an object a line");
    assert!(source("a", b"1\n2\n").is_evident);
    assert!(!source("ok.toml", b"[site]\nmembers = 5\n").is_evident);
    assert!(!source("a", &[1, 0, 0, 0, 2, 0, 0, 0]).is_evident, "packed");
    let list = Reading {
        format: Some(Format::Csv),
        ..Reading::default()
    };
    let list = list.bytes("a", b"7\n8\n").expect("it is read");
    assert_eq!(list.files[0].words(), "a table of one column");
}

#[test]
fn columns_can_be_told() {
    let columns = "id=2,time=1,client=3".parse().expect("columns");
    let reading = Reading {
        columns,
        ..Reading::default()
    };
    let trace = reading
        .bytes("a.csv", b"1,a,x\n2,b,y\n")
        .expect("it is read");
    assert_eq!(
        (trace.pages, trace.times_us),
        (vec![0, 1], vec![1_000_000, 2_000_000])
    );
    let columns = "id=what".parse().expect("columns");
    let reading = Reading {
        columns,
        ..Reading::default()
    };
    assert_eq!(
        reading
            .bytes("a.csv", b"when,what\n1,a\n2,a\n")
            .expect("it is read")
            .pages,
        [0, 0]
    );
    let told = reading
        .bytes("a.csv", b"when,who\n1,a\n")
        .expect_err("no such column")
        .to_string();
    assert_eq!(told, "a.csv, line 1: has no column what");
    for wrong in ["id", "id=0", "key=1"] {
        assert!(wrong.parse::<Columns>().is_err(), "{wrong}");
    }
}

#[test]
fn a_wrong_table_is_told_with_its_line() {
    for (text, told) in [
        ("1,2\n3,4\n", "line 1: no head says which column"),
        (
            "time,id\n1,a\nx,b\n",
            "line 3: column 1: \"x\" is no number from 0 on",
        ),
        (
            "time,id\n1,a\n-2,b\n",
            "line 3: column 1: \"-2\" is no number",
        ),
        (
            "time,id\n1\n",
            "line 2: has 1 columns, but column 2 is wanted",
        ),
        ("time,id\n1,\n", "line 2: names no object"),
        ("time,id\n", "a.csv: has no requests in it"),
    ] {
        let why = refused("a.csv", text.as_bytes());
        assert!(why.contains(told), "{why}");
    }
}

#[test]
fn what_members_record_is_read() {
    let trace = read("x.trace", b"time_us,client,op,object,size\n10,anna,read,p1,100\n11,ben,write,\"a,b\",0\n12,anna,read,p1,100\n");
    let trace = trace.expect("it is read");
    assert_eq!(
        (&*trace.pages, &*trace.clients),
        (&[0, 1, 0][..], &[0, 1, 0][..])
    );
    assert_eq!((&*trace.times_us, trace.bytes), (&[10, 11, 12][..], 200));
    for (rows, told) in [
        (
            "10,anna,read,p1,100\n11,be",
            "line 3: has 2 of 5 columns: it was cut",
        ),
        (
            "10,anna,fetch,p1,100\n",
            "line 2: op is read or write, not \"fetch\"",
        ),
        (
            "now,anna,read,p1,100\n",
            "line 2: column 1: \"now\" is no number",
        ),
        ("", "has no requests in it"),
    ] {
        let why = refused("x.csv", format!("{}\n{rows}", format::HEAD).as_bytes());
        assert!(why.contains(told), "{why}");
    }
    let reading = Reading {
        format: Some(Format::Thorp),
        ..Reading::default()
    };
    assert!(reading.bytes("x", b"1\n2\n").is_err());
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
    let written = |name: &str, rows: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, rows).expect("written");
        path
    };
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

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut made = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    made.write_all(bytes).expect("memory takes it");
    made.finish().expect("memory takes it")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// `1\n2\n1\n` by xz 5.4, whose encoder is not built in here.
const XZ: &[u8] = b"\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\
      \x1c\x00\x00\x00\x10\xcf\x58\xcc\x01\x00\x05\x31\x0a\x32\x0a\x31\
      \x0a\x00\x00\x00\xf9\x23\x10\xc7\x7f\x4b\x85\xe7\x00\x01\x1e\x06\
      \xc1\x2f\xa4\x1d\x1f\xb6\xf3\x7d\x01\x00\x00\x00\x00\x04\x59\x5a";

#[test]
fn compression_is_undone() {
    let text = b"1\n2\n1\n";
    for (name, bytes) in [
        ("a.txt.gz", gzip(text)),
        ("a.txt.zst", zstd(text)),
        ("a.txt.xz", XZ.to_vec()),
        ("a", gzip(text)),
    ] {
        let trace = read(name, &bytes).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(trace.pages, [0, 1, 0], "{name}");
    }
}

#[test]
fn all_parts_of_a_compressed_file_are_read() {
    let twice = |part: Vec<u8>| [part.clone(), part].concat();
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9][..]].concat();
    for (name, bytes) in [
        ("a.gz", twice(gzip(b"1\n2\n"))),
        ("a.xz", twice(XZ.to_vec())),
        ("a.zst", twice(zstd(b"1\n2\n"))),
        (
            "a.zst",
            [zstd(b"1\n2\n"), skipped, zstd(b"1\n2\n")].concat(),
        ),
    ] {
        let trace = read(name, &bytes).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(
            (trace.pages.len() >= 4, trace.footprint),
            (true, 2),
            "{name}"
        );
    }
}

#[test]
fn a_file_that_cannot_be_read_says_why() {
    let long: Vec<u8> = (0..5000)
        .flat_map(|line: u32| format!("{}\n", line * 7919 % 1000).into_bytes())
        .collect();
    for (name, bytes, told) in [
        (
            "a.gz",
            gzip(&long)[..200].to_vec(),
            "a.gz: cannot be read: the file was cut",
        ),
        (
            "a.xz",
            XZ[..XZ.len() - 20].to_vec(),
            "a.xz: cannot be read: the file was cut",
        ),
        (
            "a.csv.xz",
            XZ[..XZ.len() - 20].to_vec(),
            "cannot be read: the file was cut",
        ),
        (
            "a.zst",
            zstd(&long)[..200].to_vec(),
            "a.zst: cannot be read: the file was cut",
        ),
        (
            "a.gz",
            b"1\n2\n".to_vec(),
            "a.gz: is not compressed by gzip, as its name says",
        ),
        ("a.zst", gzip(b"1\n"), "a.zst: is not compressed by zstd"),
        ("a.xz", XZ[..4].to_vec(), "a.xz: is not compressed by xz"),
        (
            "a.bz2",
            b"BZh91AY".to_vec(),
            "is compressed by bzip2; only gzip, xz and zstd",
        ),
        ("a", Vec::new(), "a: is empty"),
        ("a.gz", gzip(b""), "is empty inside of its compression"),
        ("a", vec![0, 1], "is neither text nor long enough"),
    ] {
        let why = refused(name, &bytes);
        assert!(why.contains(told), "{why}");
    }
    let missing = Reading::default()
        .file(Path::new("/nowhere/a.trace"))
        .expect_err("there is none");
    assert!(
        missing
            .to_string()
            .starts_with("/nowhere/a.trace: cannot be read: ")
    );
}

#[test]
fn files_that_tell_no_members_apart_are_a_member_each() {
    let dir = tempfile::tempdir().expect("a directory");
    let written = |name: &str, rows: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, rows).expect("written");
        path
    };
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

/// A file that would be read until memory is full: as it begins, and then the same over and over.
fn long(begin: &'static [u8], more: &'static [u8]) -> impl Read {
    let rest = std::iter::repeat_n(more, (1 << 26) / more.len());
    let rest = rest.fold(Vec::new(), |mut all, part| {
        all.extend(part);
        all
    });
    begin.chain(io::Cursor::new(rest))
}

#[test]
fn a_line_without_end_is_refused_and_not_kept() {
    let table = b"time,id\n1,a\n2,\"b";
    let recorded = b"time_us,client,op,object,size\n1,anna,read,p,0\n2,";
    for (name, begin, more, told) in [
        (
            "a",
            &b"1\n2\n"[..],
            &b"1"[..],
            "line 3: is longer than 1048576 bytes",
        ),
        (
            "a.csv",
            table,
            b"b",
            "line 3: goes on for more than 1048576 bytes",
        ),
        (
            "a.csv",
            table,
            b"b\n",
            "line 3: goes on for more than 1048576 bytes",
        ),
        (
            "a.csv",
            b"id,x\n1,2\n",
            b"1,",
            "line 3: goes on for more than",
        ),
        (
            "a",
            recorded,
            b"a",
            "line 3: goes on for more than 1048576 bytes",
        ),
    ] {
        let mut trace = Building::new(&Reading::default());
        let mut file = long(begin, more);
        let wrong = Reading::default().read(name, &mut file, &mut trace);
        let told_of = TraceError {
            file: name.to_owned(),
            wrong: wrong.expect_err("refused"),
        };
        assert!(told_of.to_string().contains(told), "{told_of}");
        let mut left = Vec::new();
        file.read_to_end(&mut left).expect("memory");
        assert!(
            left.len() > 1 << 25,
            "{name}: only {} bytes are left",
            left.len()
        );
    }
    let longest = [&vec![b'a'; 1 << 20][..1_048_575], b"\nb"].concat();
    assert_eq!(read("a", &longest).expect("it is read").pages, [0, 1]);
    let rows = [&b"id\n"[..], &vec![b'a'; 1_048_000], b"\nb\nb\n"].concat();
    assert_eq!(read("a.csv", &rows).expect("it is read").pages, [0, 1, 1]);
}

#[test]
fn more_requests_than_may_be_are_refused_before_all_are_read() {
    let bounded = |requests_most| Reading {
        requests_most,
        refused_above: Some(3),
        ..Reading::default()
    };
    for (name, more) in [
        ("a", &b"1\n"[..]),
        ("a.csv", b"1,2\n"),
        ("a.packed", &[1, 0, 0, 0]),
        ("a.oracleGeneral", &[0; 24]),
        ("thorp", b"1,a,read,p,0\n"),
    ] {
        let begin: &[u8] = match name {
            "a.csv" => b"id,x\n",
            "thorp" => b"time_us,client,op,object,size\n",
            _ => b"",
        };
        let mut file = long(begin, more);
        let mut trace = Building::new(&bounded(None));
        let wrong = bounded(None).read(name, &mut file, &mut trace);
        let why = wrong.expect_err("refused").why;
        assert_eq!(why, "more than 3 requests are too many", "{name}");
        let mut left = Vec::new();
        file.read_to_end(&mut left).expect("memory");
        assert!(
            left.len() > 1 << 25,
            "{name}: only {} bytes are left",
            left.len()
        );
    }
    let four = b"1\n2\n3\n4\n";
    for (requests_most, is_refused) in [(None, true), (Some(4), true), (Some(3), false)] {
        let read = bounded(requests_most).bytes("a", four);
        assert_eq!(read.is_err_and(|error| error.is_too_long()), is_refused);
    }
    let all = bounded(None).bytes("a", &four[..6]);
    assert_eq!(all.expect("as many as may be").pages, [0, 1, 2]);
    let none = Reading::default().bytes("a", b"").expect_err("empty");
    assert!(!none.is_too_long());
}

#[test]
fn what_several_files_have_together_is_bounded() {
    let dir = tempfile::tempdir().expect("a directory");
    let two = ["a", "b"].map(|name| {
        let path = dir.path().join(name);
        std::fs::write(&path, "1\n2\n").expect("written");
        path
    });
    let read = |requests_most| {
        let reading = Reading {
            requests_most,
            refused_above: Some(3),
            ..Reading::default()
        };
        reading.files(&[&two[0], &two[1]])
    };
    let why = read(None).expect_err("four").to_string();
    assert!(
        why.ends_with("b: more than 3 requests are too many"),
        "{why}"
    );
    assert_eq!(read(Some(3)).expect("the first three").pages, [0, 1, 0]);
}

fn thousand() -> Trace {
    let mut trace = Trace::of("thousand", (0..1000).map(|at| at * at % 97));
    trace.times_us = (0..1000).map(|at| at * 500_000).collect();
    trace
}

#[test]
fn requests_are_dealt_by_the_rule() {
    let trace = thousand();
    let by = |rule| dealt(&trace, rule, 4, 9).expect("it can be dealt");
    assert_eq!(by(Dealing::RoundRobin)[..6], [0, 1, 2, 3, 0, 1]);
    assert_eq!(
        by(Dealing::Slices { seconds: 1.0 })[..6],
        [0, 0, 1, 1, 2, 2]
    );
    let owners = by(Dealing::ByObject);
    let whole = trace.pages.iter().zip(&owners);
    assert!(whole.clone().all(|(page, owner)| {
        whole
            .clone()
            .all(|(other, of)| page != other || owner == of)
    }));
    let changes = |clients: &[u16]| clients.windows(2).filter(|pair| pair[0] != pair[1]).count();
    // A change of client every 20 requests, but one in four draws the same again.
    let changed = changes(&by(Dealing::Runs { mean: 20.0 }));
    assert!((20..60).contains(&changed), "{changed}");
    let random = by(Dealing::Random);
    assert!((0..4).all(|client| {
        random
            .iter()
            .filter(|&&it| it == client)
            .count()
            .abs_diff(250)
            < 60
    }));
    assert_eq!(random, by(Dealing::Random), "the same seed deals the same");
}

#[test]
fn what_cannot_be_dealt_is_refused() {
    let trace = Trace::of("plain", [1, 2, 3]);
    for (rule, clients, told) in [
        (
            Dealing::Named,
            2,
            "deal must be round-robin, random, by-object, runs=REQUESTS or slices=SECONDS: the trace names no clients",
        ),
        (
            Dealing::Slices { seconds: 1.0 },
            2,
            "deal must be round-robin, random, by-object or runs=REQUESTS: the trace does not tell when",
        ),
        (
            Dealing::Runs { mean: 0.5 },
            2,
            "deal must be a number not below 1, not 0.5",
        ),
        (Dealing::Random, 0, "clients must be from 1 to 65535, not 0"),
    ] {
        assert_eq!(
            dealt(&trace, rule, clients, 1)
                .expect_err("refused")
                .to_string(),
            told
        );
    }
    let named = Trace {
        clients: vec![0, 1, 2],
        ..trace
    };
    assert!(
        dealt(&named, Dealing::Named, 2, 1).is_err() && dealt(&named, Dealing::Named, 3, 1).is_ok()
    );
    for (text, is_rule) in [
        ("runs=50", true),
        ("round-robin", true),
        ("runs", false),
        ("random=3", false),
        ("named=", false),
    ] {
        assert_eq!(text.parse::<Dealing>().is_ok(), is_rule, "{text}");
    }
}
