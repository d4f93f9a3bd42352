//! ZODB with ZEO: Python's object database, whose clients cache objects and are told what has changed.

use super::{Installed, Order, Peer};
use crate::Outcome;
use std::fs;
use std::path::Path;
use std::process::Command;

/// See [`Peer`].
#[derive(Clone, Copy, Debug)]
pub struct Zeo;

/// What is installed, in exactly these versions.
const REQUIREMENTS: &str = include_str!("../../peers/zeo/requirements.txt");
/// What runs in it.
const SCRIPTS: [(&str, &str); 3] = [
    ("oo7.py", include_str!("../../peers/zeo/oo7.py")),
    ("server.py", include_str!("../../peers/zeo/server.py")),
    ("worker.py", include_str!("../../peers/zeo/worker.py")),
];
/// Tells whether what is required is there.
const LOOK: &str = "import sys, importlib.metadata as m\n\
    wanted = [line.split('==') for line in sys.argv[1].split()]\n\
    sys.exit(any(m.version(name) != version for name, version in wanted))";

impl Peer for Zeo {
    fn name(&self) -> &'static str {
        "zeo"
    }

    fn words(&self) -> &'static str {
        "ZODB with ZEO"
    }

    fn manners(&self) -> &'static [&'static str] {
        &["told ahead", "object by object"]
    }

    fn install(&self, directory: &Path, show: &mut dyn FnMut(&str)) -> Outcome<Installed> {
        fs::create_dir_all(directory)?;
        // Programs run elsewhere than where this one does.
        let directory = directory.canonicalize()?;
        for (name, text) in SCRIPTS {
            fs::write(directory.join(name), text)?;
        }
        let venv = directory.join(".venv");
        let python = venv.join("bin/python");
        if !run(Command::new(&python).args(["-c", LOOK, REQUIREMENTS])).is_ok_and(|()| true) {
            show("installing ZODB and ZEO (once)");
            let listed = directory.join("requirements.txt");
            fs::write(&listed, REQUIREMENTS)?;
            let install = [
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "-r",
            ];
            run(Command::new("python3").args(["-m", "venv"]).arg(&venv))
                .and_then(|()| run(Command::new(&python).args(install).arg(&listed)))
                .map_err(|why| {
                    let wanted = REQUIREMENTS.trim().replace('\n', " and ");
                    format!(
                        "{wanted} could not be installed: {why}\n  -> python3 with venv and pip, and a package index, are needed; or make {} yourself",
                        venv.display()
                    )
                })?;
        }
        Ok(Installed {
            program: python,
            scripts: directory,
        })
    }

    fn server(&self, installed: &Installed, data: &Path, address: &str) -> Order {
        let file = data.join("data.fs").display().to_string();
        order(
            installed,
            "server.py",
            &["--address", address, "--file", &file],
        )
    }

    fn client(&self, installed: &Installed, manner: &str, address: &str) -> Order {
        let mut arguments = vec!["--server", address];
        if manner == self.manners()[0] {
            arguments.push("--prefetch");
        }
        order(installed, "worker.py", &arguments)
    }
}

fn order(installed: &Installed, script: &str, arguments: &[&str]) -> Order {
    let script = installed.scripts.join(script).display().to_string();
    let arguments = arguments.iter().map(|argument| (*argument).to_owned());
    Order {
        program: installed.program.clone(),
        arguments: std::iter::once(script).chain(arguments).collect(),
    }
}

/// Runs it to its end; an error is the last that it said.
fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().display().to_string();
    let done = command
        .output()
        .map_err(|why| format!("{program}: {why}"))?;
    if done.status.success() {
        return Ok(());
    }
    let said = [done.stderr, done.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    Err(last.unwrap_or("it says nothing").trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_pinned() {
        assert!(REQUIREMENTS.lines().all(|line| line.contains("==")));
    }

    #[test]
    fn only_the_first_manner_is_told_ahead() {
        let installed = Installed {
            program: "python".into(),
            scripts: "/lab".into(),
        };
        let told = |manner| Zeo.client(&installed, manner, "10.77.0.1:7402").arguments;
        let [ahead, singly] = [0, 1].map(|manner| told(Zeo.manners()[manner]));
        assert_eq!(ahead[..3], ["/lab/worker.py", "--server", "10.77.0.1:7402"]);
        assert!(
            ahead.contains(&"--prefetch".to_owned()) && !singly.contains(&"--prefetch".to_owned())
        );
    }
}
