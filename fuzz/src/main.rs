//! Writes the first scripts of a fuzzer into a directory: each sample of `crates/model/tests/golden`, to each role.

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};
use thorp_fuzz::{NODES, script};

const SAMPLES: &str = include_str!("../../crates/model/tests/golden/bytes.txt");
/// Edges of hostile peers.
const EDGES: std::ops::RangeInclusive<usize> = 1..=4;

fn main() -> ExitCode {
    let Some(dir) = env::args().nth(1) else {
        eprintln!("say into which directory");
        return ExitCode::from(2);
    };
    match write_all(Path::new(&dir)) {
        Ok(written) => {
            println!("{written} scripts");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{dir}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write_all(dir: &Path) -> io::Result<usize> {
    fs::create_dir_all(dir)?;
    let mut written = 0;
    for bytes in SAMPLES.lines().filter_map(message_of) {
        for (at, edge) in (0..NODES).flat_map(|at| EDGES.map(move |edge| (at, edge))) {
            if let Some(script) = script(at, edge, &bytes) {
                fs::write(dir.join(format!("{written:04}")), script)?;
                written += 1;
            }
        }
    }
    Ok(written)
}

/// The bytes of a line like `up fetch: 0000...`, if it is a message.
fn message_of(line: &str) -> Option<Vec<u8>> {
    let (name, digits) = line.split_once(": ")?;
    let is_message = ["up", "down", "alive", "claims"].contains(&name.split(' ').next()?);
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks_exact(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    pairs.collect::<Option<Vec<u8>>>().filter(|_| is_message)
}
