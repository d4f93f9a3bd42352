//! The folder of real test data, which not every checkout has.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;

/// The folder that `THORP_TEST_DATA` names, for a test that needs these files of it.
///
/// Without the variable there is no folder: the test skips, and says so. So the CI of a fork, which has no data, stays
/// green. Where the variable is set, a test has to fail on a file that is missing there: CI sets it where it finds the data.
pub(crate) fn test_data(test: &str, files: &str) -> Option<PathBuf> {
    let folder = named(std::env::var_os("THORP_TEST_DATA"));
    if folder.is_none() {
        report_skipped(&format!(
            "SKIPPED: {test} needs {files}: THORP_TEST_DATA names no folder\n"
        ));
    }
    folder
}

/// Reports a skipped test at once, and in the file that `make test` prints at its end.
fn report_skipped(line: &str) {
    // Past `eprintln!`, which the test harness keeps to itself when a test passes.
    let _ = io::stderr().write_all(line.as_bytes());
    if let Some(file) = std::env::var_os("THORP_SKIPPED") {
        let file = OpenOptions::new().create(true).append(true).open(file);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.expect("the list of skipped tests can be written");
    }
}

/// What the papers' figures are computed from, as a test that skips says it.
pub(crate) const TRACES: &str = "the papers' three traces in traces/";

/// A variable that is set to nothing is not set.
fn named(variable: Option<OsString>) -> Option<PathBuf> {
    variable
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
}

#[test]
fn a_folder_is_taken_as_it_is_named_whether_it_is_there_or_not() {
    assert_eq!(named(None), None);
    assert_eq!(named(Some("".into())), None);
    let nowhere = PathBuf::from("/nowhere");
    assert_eq!(named(Some("/nowhere".into())), Some(nowhere));
}
