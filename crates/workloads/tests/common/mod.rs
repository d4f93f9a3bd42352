//! What several tests need.

#![allow(dead_code, reason = "each test uses its part of this")]

use std::path::PathBuf;

use thorp_testing::report_skipped;
use thorp_workloads::step::{StepFile, write};

/// The real model's bytes. Without test data there is no model, and the test skips. Where `THORP_TEST_DATA` names a
/// folder, a model that is missing there fails the test.
pub(crate) fn real_model_bytes() -> Option<Vec<u8>> {
    let folder = std::env::var_os("THORP_TEST_DATA").filter(|folder| !folder.is_empty());
    let Some(folder) = folder else {
        let needs = "the real building model: THORP_TEST_DATA names no folder";
        report_skipped(env!("CARGO_CRATE_NAME"), needs);
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
