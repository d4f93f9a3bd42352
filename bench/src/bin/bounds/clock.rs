//! The clock that all processes of this machine share.

/// In nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * SECOND_NS + time.tv_nsec.unsigned_abs()
}

/// A millisecond.
pub(crate) const MS_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000_000_000;
