//! The STEP reader on thousands of damaged files: it never panics, and what it accepts it can write and read again.

use thorp_model::SplitMix64;
use thorp_workloads::step::{parse, write};

const MUTATIONS: u64 = 20_000;

const SEED_FILE: &[u8] = b"ISO-10303-21;\nHEADER;\n/* note */\nFILE_DESCRIPTION((''),'2;1');\nFILE_SCHEMA(('IFC2X3'));\n\
    ENDSEC;\nDATA;\n#1= IFCWALL('2nxdYR2RHCDBiKJulbA_QU',#2,'it''s \\X2\\00E4\\X0\\',$,*,(1.,-2.5E-3,7),.ELEMENT.);\n\
    #2=(A()B(1.,IFCLABEL('x'),\"0F\"));\n#13=IFCREL((#1,#2),((#1)));\nENDSEC;\nEND-ISO-10303-21;\n";

/// Pieces that mean something to the reader, so that mutations reach further than the first byte.
const PIECES: &[&[u8]] = &[
    b"'",
    b"''",
    b"(",
    b")",
    b"((((",
    b",",
    b";",
    b"#",
    b"#1",
    b"#99",
    b"=",
    b"$",
    b"*",
    b".",
    b".T.",
    b"\"",
    b"\\X2\\",
    b"\\",
    b"/*",
    b"*/",
    b"!",
    b"1.",
    b"1E",
    b"ENDSEC;",
    b"DATA;",
    b"HEADER;",
    b"END-ISO-10303-21;",
    b"\0",
    b"\xff",
    b"\xc3\xa4",
    b"\n",
];

fn mutate(bytes: &mut Vec<u8>, dice: &mut SplitMix64) {
    let place = dice.index(bytes.len() + 1);
    let end = (place + dice.index(12)).min(bytes.len());
    match dice.index(6) {
        0 if place < bytes.len() => bytes[place] = dice.index(256) as u8,
        1 => drop(bytes.drain(place..end)),
        2 => bytes.truncate(place),
        3 => {
            let copy = bytes[place..end].to_vec();
            let target = dice.index(bytes.len() + 1);
            bytes.splice(target..target, copy);
        }
        _ => drop(bytes.splice(
            place..place,
            PIECES[dice.index(PIECES.len())].iter().copied(),
        )),
    }
}

#[test]
fn damaged_files_never_panic() {
    let mut accepted = 0;
    for seed in 0..MUTATIONS {
        let mut dice = SplitMix64::new(seed);
        let mut bytes = SEED_FILE.to_vec();
        for _ in 0..=dice.index(4) {
            mutate(&mut bytes, &mut dice);
        }
        match parse(&bytes) {
            Err(error) => assert!(
                error.line > 0 && error.column > 0 && !error.to_string().is_empty(),
                "seed {seed}"
            ),
            Ok(file) => {
                accepted += 1;
                let mut out = Vec::new();
                write(&file, &mut out).unwrap();
                assert_eq!(parse(&out).as_ref(), Ok(&file), "seed {seed}");
                for text in file
                    .entities
                    .iter()
                    .flat_map(|entity| entity.body.records())
                    .flat_map(|record| &record.params)
                {
                    let _ = text.as_text().map(|text| text.decode());
                }
            }
        }
    }
    assert!(
        accepted > MUTATIONS / 100,
        "only {accepted} mutations were accepted: the test does not reach far"
    );
}

#[test]
fn noise_never_panics() {
    for seed in 0..2_000 {
        let mut dice = SplitMix64::new(seed);
        let mut bytes = b"ISO-10303-21;HEADER;ENDSEC;DATA;#1=A(".to_vec();
        for _ in 0..dice.index(60) {
            bytes.extend_from_slice(PIECES[dice.index(PIECES.len())]);
        }
        let _ = parse(&bytes);
    }
}
