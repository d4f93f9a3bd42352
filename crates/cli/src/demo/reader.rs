//! The foreign reader: `ifcopenshell`, run by `check_ifc.py`, which is part of this program.

use super::process::{Interrupted, Process};
use crate::failure::{Code, Failure};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A Python that has `ifcopenshell`, and the script.
#[derive(Debug)]
pub(super) struct Reader {
    python: PathBuf,
    script: PathBuf,
    log: PathBuf,
    interrupted: Interrupted,
}

/// What it said.
#[derive(Debug)]
pub(super) struct Verdict {
    /// Whether all is well.
    pub(super) good: bool,
    /// Its words.
    pub(super) words: Vec<String>,
}

impl Reader {
    /// Tries the Python before anything else is begun: to find out at the end that it cannot check would be a pity.
    pub(super) fn find(
        python: Option<&Path>,
        logs: &Path,
        interrupted: &Interrupted,
    ) -> Result<Self, Failure> {
        let python = python.map_or_else(guess, Path::to_owned);
        let script = logs.join("check_ifc.py");
        fs::write(&script, SCRIPT).map_err(|error| Failure::file(&script, &error))?;
        let reader = Reader {
            python,
            script,
            log: logs.join("check_ifc.log"),
            interrupted: interrupted.clone(),
        };
        let import = ["-c".to_owned(), "import ifcopenshell".to_owned()];
        let tried = reader
            .start(&import)
            .and_then(|run| run.finish(IMPORT_TIMEOUT));
        match tried {
            Ok((status, _)) if status.success() => Ok(reader),
            Err(failure) if interrupted.ask().is_err() => Err(failure),
            _ => Err(Failure::new(
                format!(
                    "{} has no ifcopenshell, which reads the export",
                    reader.python.display()
                ),
                "run `make demo`, which installs it into .venv, or name a Python that has it with --python",
            )),
        }
    }

    /// Compares an export with its original and the edits made in between.
    pub(super) fn check(
        &self,
        original: &Path,
        export: &Path,
        edits: &Path,
    ) -> Result<Verdict, Failure> {
        let files =
            [self.script.as_path(), original, export, edits].map(|file| file.display().to_string());
        let (status, words) = self.start(&files)?.finish(CHECK_TIMEOUT)?;
        match status.code() {
            Some(code @ (0 | 1)) => {
                let verdict = Verdict {
                    good: code == 0,
                    words,
                };
                if !verdict.good {
                    self.log(&verdict)?;
                }
                Ok(verdict)
            }
            _ => {
                let what = format!("the export could not be checked ({status})");
                let todo = format!("its log is {}", self.log.display());
                Err(Failure::new(what, todo).with(Code::Wrong))
            }
        }
    }

    /// Who looks into the log finds what is wrong there, too.
    fn log(&self, verdict: &Verdict) -> Result<(), Failure> {
        let failed = |error| Failure::file(&self.log, &error);
        let mut options = fs::OpenOptions::new();
        let mut log = options
            .create(true)
            .append(true)
            .open(&self.log)
            .map_err(failed)?;
        let lines = verdict.words.iter();
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        log.write_all(text.as_bytes()).map_err(failed)
    }

    fn start(&self, arguments: &[String]) -> Result<Process, Failure> {
        Process::start(
            "check_ifc",
            &self.python,
            arguments,
            &self.log,
            &self.interrupted,
        )
    }
}

impl Verdict {
    /// The first of its words, for a line of the terminal: all is well, or what is wrong.
    pub(super) fn summary(&self) -> String {
        match self.good {
            true => self.words.last().cloned().unwrap_or_default(),
            false => {
                let lines = self.words.iter().take(CAUSE_LINES_MAX);
                let lines: Vec<&str> = lines.map(|line| line.trim()).collect();
                lines.join(" | ")
            }
        }
    }
}

/// Of what is wrong, in the terminal. The log and the report have all.
const CAUSE_LINES_MAX: usize = 6;

/// What `make demo` makes, else the system's.
fn guess() -> PathBuf {
    let own = PathBuf::from(".venv/bin/python");
    if own.exists() {
        own
    } else {
        PathBuf::from("python3")
    }
}

const SCRIPT: &str = include_str!("../../../../scripts/check_ifc.py");
const IMPORT_TIMEOUT: Duration = Duration::from_secs(60);
const CHECK_TIMEOUT: Duration = Duration::from_secs(180);

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Edge 25: the terminal said FAILED, the log was empty, and only the report had the cause.
    #[test]
    fn edge_25_the_cause_is_in_the_terminal_and_in_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let python = dir.path().join("python");
        let script = "#!/bin/sh\n[ \"$1\" = -c ] && exit 0\necho 'WRONG: units (1)'\necho '    #7 is gone'\necho FAILED\nexit 1\n";
        fs::write(&python, script).unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o700)).unwrap();
        let reader = Reader::find(Some(&python), dir.path(), &Interrupted::default()).unwrap();
        let file = Path::new("x");
        let verdict = reader.check(file, file, file).unwrap();
        assert_eq!(
            (verdict.good, &*verdict.summary()),
            (false, "WRONG: units (1) | #7 is gone | FAILED")
        );
        let log = fs::read_to_string(dir.path().join("check_ifc.log")).unwrap();
        assert!(log.contains("#7 is gone"), "{log}");
    }
}
