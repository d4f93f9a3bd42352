//! Files that are compressed, cut, or cannot be read.

use super::*;

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
