//! One file in each format.

use super::*;

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
