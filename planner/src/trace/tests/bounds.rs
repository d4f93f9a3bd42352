//! Lines and traces without end.

use super::*;

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
