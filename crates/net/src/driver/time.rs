//! The clock and the runtime of drivers.

use std::io;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use thorp_model::{Millis, Now};
use tokio::time::Sleep;

/// The time as machines want it. The monotone part counts from the first call in this process, so all drivers and page caches
/// of a process mean the same by it. It goes on while the machine sleeps (rule C4, trap C28).
pub fn now() -> Now {
    static FIRST: OnceLock<Duration> = OnceLock::new();
    let up = uptime();
    let first = *FIRST.get_or_init(|| up);
    let wall = SystemTime::now().duration_since(UNIX_EPOCH);
    Now {
        mono: Now::MONO_FIRST.plus(millis(up.saturating_sub(first))),
        // A clock set before 1970 is as good as none: stamps do not rely on it (rule 12).
        wall: Millis(millis(wall.unwrap_or_default())),
    }
}

/// The runtime that a driver wants: one thread, with I/O and timers.
///
/// # Errors
///
/// The system refuses what a runtime needs.
pub fn runtime() -> io::Result<tokio::runtime::Runtime> {
    runtime_of(1)
}

/// The same with several threads: the loop is a task on one of them, and what the edges read, write and encrypt has the
/// others. With one there is no change of threads between a socket and the loop, which is the quickest way as long as a
/// processor can do all of it.
///
/// # Errors
///
/// As for [`runtime`].
pub fn runtime_of(threads: usize) -> io::Result<tokio::runtime::Runtime> {
    let mut runtime = match threads {
        0 | 1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    runtime.worker_threads(threads.max(1)).enable_all().build()
}

/// A machine's deadline as a timer that is set again only when it changes.
pub(super) struct Alarm {
    sleep: Pin<Box<Sleep>>,
    set_to: Option<Millis>,
}

impl Alarm {
    pub(super) fn new() -> Self {
        Self {
            sleep: Box::pin(tokio::time::sleep(Duration::ZERO)),
            set_to: None,
        }
    }

    /// Waits for the deadline; for ever if there is none. May be given up and called again.
    pub(super) async fn wait(&mut self, deadline: Option<Millis>, now: Millis) {
        let Some(deadline) = deadline else {
            return std::future::pending().await;
        };
        // A machine that wants a tick at once, again and again, still lets the others have their turn.
        let due = deadline.max(now.plus(1));
        if self.set_to != Some(deadline) || deadline <= now {
            self.set_to = Some(deadline);
            // After a sleep of the machine it is late. Whatever comes then comes with the right time.
            let left = Duration::from_millis(due.since(now));
            self.sleep.as_mut().reset((Instant::now() + left).into());
        }
        self.sleep.as_mut().await;
        self.set_to = None;
    }
}

/// How long the machine has been up, with the time that it slept.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn uptime() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::try_from(time).unwrap_or_default()
}

/// How long this process has run. On this system its clock may stand while the machine sleeps.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn uptime() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    mod asleep {
        use super::super::{now, uptime};
        use std::process::Command;
        use std::time::Duration;
        use thorp_model::Now;

        /// Set in a process whose machine seems to have slept for a day.
        const CHILD: &str = "THORP_TEST_SLEPT_FOR_A_DAY";

        const DAY: Duration = Duration::from_secs(86_400);

        /// Trap C28: the system counts the time that it sleeps in `/proc/uptime`, and so does the clock of leases.
        #[test]
        fn the_clock_of_leases_is_the_systems_uptime() {
            let before = uptime();
            let system = std::fs::read_to_string("/proc/uptime").expect("the uptime of Linux");
            let after = uptime();
            let seconds = system.split_whitespace().next().expect("a number");
            let system = Duration::from_secs_f64(seconds.parse().expect("a number"));
            // It shows hundredths.
            let slack = Duration::from_millis(20);
            assert!(before <= system + slack && system <= after + slack);
            let (first, up) = (now(), uptime());
            std::thread::sleep(Duration::from_millis(30));
            let passed = now().mono.since(first.mono);
            assert!(passed >= 30 && u128::from(passed) <= (uptime() - up).as_millis() + 1);
            assert!(first.mono >= Now::MONO_FIRST);
        }

        /// In a namespace of its own a process finds that the machine has been up for a day more, and that the other clock has
        /// not: as after a sleep. Where the system makes no such namespace, the test above is all.
        #[test]
        fn a_day_of_sleep_counts() {
            if std::env::var_os(CHILD).is_some() {
                return assert!(uptime() > DAY, "the sleep is not counted");
            }
            let day = DAY.as_secs().to_string();
            let mut slept = Command::new("unshare");
            slept.args(["--user", "--map-root-user", "--time", "--boottime", &day]);
            let can = slept.arg("true").output();
            let can = can.is_ok_and(|output| output.status.success());
            let this = std::env::current_exe().expect("this test");
            let mut slept = Command::new("unshare");
            slept.args(["--user", "--map-root-user", "--time", "--boottime", &day]);
            slept.arg(this).env(CHILD, "1");
            slept.args([
                "--exact",
                "driver::time::tests::asleep::a_day_of_sleep_counts",
            ]);
            let output = slept.output();
            let told = output
                .as_ref()
                .map(|output| String::from_utf8_lossy(&output.stdout));
            let has_passed = told.is_ok_and(|told| told.contains("1 passed"));
            assert_eq!(has_passed, can, "{output:?}");
        }
    }
}
