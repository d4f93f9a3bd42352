//! Whatever ends a lab, nothing of it stays.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

const LAB: &str = env!("CARGO_BIN_EXE_thorp-lab");

/// A lab that runs, with a program in one of its namespaces.
struct Running {
    lab: Child,
    inside: Child,
    /// What all its namespaces' names begin with.
    prefix: String,
    /// Somebody listens, to its end.
    _told: Lines<BufReader<ChildStdout>>,
}

fn start() -> Running {
    let mut lab = Command::new(LAB)
        .args(["up", "--for", "100s"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a lab");
    let mut told = BufReader::new(lab.stdout.take().expect("piped")).lines();
    let ready = told
        .by_ref()
        .map_while(Result::ok)
        .take_while(|line| line != "ready")
        .count();
    assert_eq!(
        ready, 2,
        "two spokes are told, then that it is ready; these tests need root"
    );
    let prefix = format!("thorp-lab-{}-", lab.id());
    let namespace = namespaces(&prefix).pop().expect("a namespace");
    let inside = Command::new("ip")
        .args(["netns", "exec", &namespace, "sleep", "100"])
        .spawn()
        .expect("ip");
    Running {
        lab,
        inside,
        prefix,
        _told: told,
    }
}

fn namespaces(prefix: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/run/netns") else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with(prefix)).collect()
}

fn kill(signal: &str, pid: u32) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(status.expect("kill").success());
}

/// The guardian is a process of its own: it may take a moment, on a busy machine a long one.
fn gone(prefix: &str) -> bool {
    let looks = (0..300).map(|_| {
        thread::sleep(Duration::from_millis(100));
        namespaces(prefix).is_empty()
    });
    looks.into_iter().any(|gone| gone)
}

#[test]
#[ignore = "needs root"]
fn a_lab_that_is_told_to_end_cleans_up_before_it_does() {
    for signal in ["-TERM", "-INT"] {
        let mut running = start();
        kill(signal, running.lab.id());
        assert!(running.lab.wait().expect("waited").success());
        assert_eq!(namespaces(&running.prefix), Vec::<String>::new());
        assert!(
            !running.inside.wait().expect("waited").success(),
            "what ran inside was killed"
        );
    }
}

#[test]
#[ignore = "needs root"]
fn a_killed_lab_is_cleaned_up_by_its_guardian() {
    let mut running = start();
    kill("-KILL", running.lab.id());
    let _ = running.lab.wait();
    assert!(gone(&running.prefix));
    assert!(
        !running.inside.wait().expect("waited").success(),
        "what ran inside was killed"
    );
}

#[test]
#[ignore = "needs root"]
fn a_lab_killed_with_its_guardian_is_cleaned_up_by_the_next_and_a_living_one_is_not() {
    let (mut dead, mut living) = (start(), start());
    let id = dead.lab.id().to_string();
    let children = Command::new("ps")
        .args(["--ppid", &id, "-o", "pid="])
        .output()
        .expect("ps");
    let guardian = String::from_utf8(children.stdout).expect("numbers");
    kill("-STOP", dead.lab.id());
    kill(
        "-KILL",
        guardian.trim().parse().expect("one child, the guardian"),
    );
    kill("-KILL", dead.lab.id());
    let _ = dead.lab.wait();
    assert_eq!(
        namespaces(&dead.prefix).len(),
        2,
        "nobody is there to remove them"
    );
    assert!(
        Command::new(LAB)
            .arg("clean")
            .status()
            .expect("clean")
            .success()
    );
    assert_eq!(namespaces(&dead.prefix), Vec::<String>::new());
    assert!(
        !dead.inside.wait().expect("waited").success(),
        "what ran inside was killed"
    );
    assert_eq!(namespaces(&living.prefix).len(), 2);
    assert!(
        living.inside.try_wait().expect("asked").is_none(),
        "the living one's program goes on"
    );
    kill("-TERM", living.lab.id());
    assert!(living.lab.wait().expect("waited").success());
    let _ = living.inside.wait();
}

#[test]
fn without_root_it_says_so_and_has_an_exit_code_for_it() {
    // As root, give it up; as somebody else, that is what we are.
    let root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout == b"0\n");
    let mut command = match root {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "65534", "--clear-groups", LAB]);
            command
        }
        false => Command::new(LAB),
    };
    let output = command.arg("ping").output().expect("it runs");
    assert_eq!(output.status.code(), Some(77));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("needs root") && told.lines().count() == 1,
        "{told}"
    );
}
