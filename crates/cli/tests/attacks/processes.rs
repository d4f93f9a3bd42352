//! What processes take of the machine.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use thorp_testing::Said;

/// The memory of a process. None if it has ended.
pub(crate) fn resident_bytes(process: u32) -> Option<u64> {
    memory(process, "VmRSS:")
}

fn memory(process: u32, kind: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(kind))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

/// The processor time that a process has used.
pub(crate) fn processor_time(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The second field is the name of the program in brackets. After it come user and system time as fields 11 and 12.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    // Linux shows times in hundredths of a second.
    Duration::from_millis(10 * ticks)
}

/// Runs a command that has to end by itself, within a time and with so much memory. Its output is not kept.
pub(crate) fn run_within(mut command: Command, time: Duration, mib_max: u64) -> Said {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let (begun, mut most) = (Instant::now(), 0);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        let peak = memory(child.id(), "VmHWM:").unwrap_or_default();
        most = most.max(peak >> 20);
        if begun.elapsed() > time || most > mib_max {
            child.kill().unwrap();
            break None;
        }
        thread::sleep(Duration::from_millis(2));
    };
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    let took = begun.elapsed();
    let Some(status) = status else {
        panic!("{command:?} was killed after {took:?}, with {most} MiB: {err}");
    };
    Said {
        code: status.code().unwrap_or(-1),
        out: String::new(),
        err,
    }
}
