//! What several tests need.

#![allow(dead_code, reason = "each test uses its part of this")]

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use thorp_workloads::step::{StepFile, write};

/// The real model's bytes. Without test data there is no model, and the test skips. Where `THORP_TEST_DATA` names a
/// folder, a model that is missing there fails the test.
pub(crate) fn real_model_bytes() -> Option<Vec<u8>> {
    let folder = std::env::var_os("THORP_TEST_DATA").filter(|folder| !folder.is_empty());
    let Some(folder) = folder else {
        skip("the real building model: THORP_TEST_DATA names no folder");
        return None;
    };
    let path = PathBuf::from(folder).join("ifc/LargeBuilding.ifc");
    Some(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// Reports that the running test skips: at once, and in the file that `make test` prints at its end.
fn skip(needs: &str) {
    let (tests, thread) = (env!("CARGO_CRATE_NAME"), std::thread::current());
    let test = thread.name().unwrap_or("a test");
    let line = format!("SKIPPED: {tests}::{test} needs {needs}\n");
    // Past `eprintln!`, which the test harness keeps to itself when a test passes.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(file) = std::env::var_os("THORP_SKIPPED") {
        let file = OpenOptions::new().create(true).append(true).open(file);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.expect("the list of skipped tests can be written");
    }
}

pub(crate) fn written(file: &StepFile) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(file, &mut bytes).expect("memory takes what is written");
    bytes
}
