//! What several tests need.

#![allow(dead_code, reason = "each test uses its part of this")]

use std::io::Write;
use std::path::PathBuf;

use thorp_workloads::step::{StepFile, write};

/// The real model's bytes; `None`, loudly, where there is no test data. In CI there has to be.
pub(crate) fn real_model_bytes() -> Option<Vec<u8>> {
    let Some(folder) = std::env::var_os("THORP_TEST_DATA") else {
        let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!in_ci, "THORP_TEST_DATA is not set, and CI=true");
        // Past `eprintln!`, which the test harness keeps to itself when a test passes.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: no real model, since THORP_TEST_DATA is not set"
        );
        return None;
    };
    let path = PathBuf::from(folder).join("ifc/LargeBuilding.ifc");
    Some(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

pub(crate) fn written(file: &StepFile) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(file, &mut bytes).expect("memory takes what is written");
    bytes
}
