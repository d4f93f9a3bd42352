//! What a worker says: a line of JSON for each event, on standard output.

use serde_json::Value;
use std::io::Write;

/// Nobody listens: then there is nothing to go on for.
pub(crate) fn say(line: &Value) {
    if writeln!(std::io::stdout().lock(), "{line}").is_err() {
        std::process::exit(0);
    }
}

/// The same for all processes of a machine.
pub(crate) fn nanoseconds() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// What a worker says besides its transactions.
pub(crate) const TURNED: &str = "turned";
pub(crate) const CARRIES: &str = "carries";

/// Session numbers stay below this. What follows an unknown outcome is of a number that is so much higher.
pub(crate) const PROCESSES_MAX: u64 = 10_000;
/// Values tell who wrote them: no two writes are alike.
pub(crate) const VALUES_OF_A_PROCESS: u64 = 1_000_000;
