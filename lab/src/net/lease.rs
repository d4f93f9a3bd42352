//! What a lab leaves behind is removed, however it ends.
//!
//! Everything a lab makes bears its id, `thorp-lab-PID-N`. While it lives it holds a lock that the kernel takes from the dead.
//! A guardian, a shell beside it, waits for the end of a pipe: when the lab ends, in order or by `kill -9`, it kills what runs
//! in the lab's namespaces and deletes them. Had the guardian been killed, too, the next lab (or `thorp-lab clean`) does it.

use super::namespace::DIRECTORY;
use crate::Outcome;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "thorp-lab-";
const LOCKS: &str = "/run/thorp-lab";
/// Whoever begins or sweeps holds it, so that nobody takes a lab that has only begun for a dead one.
const DOOR: &str = "door.lock";

/// Ends what lab `$1` left: it may fork while it is killed, so it is asked again until nobody is left.
const END: &str = r#"
for path in "$2/$1-"*; do
    [ -e "$path" ] || continue
    name=${path##*/}
    for round in 1 2 3 4 5 6 7 8 9 10; do
        left=$(ip netns pids "$name") || break
        [ -n "$left" ] || break
        kill -9 $left 2>/dev/null
        sleep 0.01
    done
    ip netns delete "$name"
done
rm -f "$3/$1.lock"
"#;

/// A lab's right to be there.
pub(super) struct Lease {
    id: String,
    guardian: Child,
    _lock: File,
}

impl Lease {
    /// Begins a lab. What dead ones left is removed first.
    pub(super) fn take() -> Outcome<Self> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let id = format!("{PREFIX}{}-{serial}", std::process::id());
        let _door = door()?;
        sweep_dead()?;
        let lock = File::create(lock_path(&id))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let guardian = guardian(&id)?;
        Ok(Lease {
            id,
            guardian,
            _lock: lock,
        })
    }

    /// A namespace's name.
    pub(super) fn name(&self, spoke: &str) -> String {
        format!("{}-{spoke}", self.id)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Its pipe ends here, and it does its work.
        drop(self.guardian.stdin.take());
        let _ = self.guardian.wait();
    }
}

/// Removes what labs have left that were killed together with their guardians; gives their ids.
pub fn sweep() -> Outcome<Vec<String>> {
    let _door = door()?;
    sweep_dead()
}

fn sweep_dead() -> Outcome<Vec<String>> {
    let mut swept = Vec::new();
    for id in left_ids()? {
        if lives(&id)? {
            continue;
        }
        let status = shell(END, &id).status()?;
        if !status.success() {
            return Err(format!("{id}: what it left could not be removed ({status})").into());
        }
        swept.push(id);
    }
    Ok(swept)
}

/// Every lab of which there is something.
fn left_ids() -> io::Result<BTreeSet<String>> {
    let mut ids = BTreeSet::new();
    for directory in [DIRECTORY, LOCKS] {
        let entries = match fs::read_dir(directory) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            ids.extend(entry?.file_name().to_str().and_then(id_of));
        }
    }
    Ok(ids)
}

/// The id in the name of a namespace or of a lock.
fn id_of(name: &str) -> Option<String> {
    let rest = name.strip_prefix(PREFIX)?;
    let mut parts = rest.splitn(2, '-');
    let (pid, rest) = (parts.next()?, parts.next()?);
    let serial = rest.split(['-', '.']).next()?;
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (number(pid) && number(serial)).then(|| format!("{PREFIX}{pid}-{serial}"))
}

fn lives(id: &str) -> Outcome<bool> {
    match File::open(lock_path(id)) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(false),
        lock => match flock(lock?, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(false),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
            Err(why) => Err(why.into()),
        },
    }
}

fn lock_path(id: &str) -> PathBuf {
    Path::new(LOCKS).join(format!("{id}.lock"))
}

fn door() -> Outcome<File> {
    let opened = fs::create_dir_all(LOCKS).and_then(|()| File::create(Path::new(LOCKS).join(DOOR)));
    let door = opened.map_err(|why| format!("{LOCKS}: {why}"))?;
    flock(&door, FlockOperation::LockExclusive)?;
    Ok(door)
}

/// Deaf to what ends the lab: it has work to do then. Its errors are told where the lab's are.
fn guardian(id: &str) -> Outcome<Child> {
    let script = format!("trap '' HUP INT TERM; while read -r _; do :; done; {END}");
    let spawned = shell(&script, id)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn();
    Ok(spawned.map_err(|why| format!("no guardian: sh does not run: {why}"))?)
}

fn shell(script: &str, id: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, "thorp-lab-guardian", id, DIRECTORY, LOCKS]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_labs_id_is_found_in_what_it_makes_and_nowhere_else() {
        let id = Some("thorp-lab-123-4".to_owned());
        for name in [
            "thorp-lab-123-4-home",
            "thorp-lab-123-4-site-a",
            "thorp-lab-123-4.lock",
            "thorp-lab-123-4",
        ] {
            assert_eq!(id_of(name), id, "{name}");
        }
        for name in [
            "door.lock",
            "thorp-lab-",
            "thorp-lab-x-1-home",
            "thorp-lab-12",
            "thorp-lab-1--home",
            "other-1-2-home",
        ] {
            assert_eq!(id_of(name), None, "{name}");
        }
    }
}
