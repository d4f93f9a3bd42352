//! Tests that skip.

use std::fs::OpenOptions;
use std::io::Write;
use std::thread;

/// Reports that the running test skips: at once, and in the file that `make test` prints at its end. `tests` names the
/// test program, as `env!("CARGO_CRATE_NAME")` does.
pub fn report_skipped(tests: &str, needs: &str) {
    let thread = thread::current();
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
