//! `thorp shell`: a prompt that runs the other commands in one village.
//!
//! Each line is a process of its own, a [`Line`]: it ends by Ctrl-C without ending the shell, and its exit code is that
//! of the command (record 0022).

mod input;
mod line;

pub(crate) use line::Line;

use super::{say, signals};
use crate::connect::{Pinned, Via};
use crate::failure::{Code, Failure};
use crate::{names, text};
use clap::Args;
use input::Input;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What `thorp shell` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// Where relative names begin: thorp://HOME or thorp://HOME/path
    #[arg(value_parser = names::prefix)]
    place: Option<String>,
    /// Of commands that are no person's: go on after one that fails
    #[arg(long)]
    keep_going: bool,
    #[command(flatten)]
    via: Via,
}

/// Until `exit`, the end of the input, or a failure that nobody is there to see.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("this program is not found: {error}"), ""))?;
    let mut input = Input::standard()?;
    if input.is_person() {
        signals::outlive_interrupts()?;
    }
    let mut shell = Shell {
        program,
        village: options.via.pinned()?,
        via: &options.via,
        place: options.place.clone(),
        is_person: input.is_person(),
    };
    let mut failures = Failures::default();
    while let Some(line) = input.next(&shell.prompt())? {
        match shell.run(&line) {
            Ok(Next::Go) => {}
            Ok(Next::Exit) => break,
            Err(_) if shell.is_person => {}
            Err(failed) if options.keep_going => failures.add(failed),
            Err(failed) => return Err(failed.ends(&line, input.number())),
        }
    }
    failures.end()
}

/// What comes after a line.
enum Next {
    Go,
    Exit,
}

struct Shell<'a> {
    program: PathBuf,
    village: Pinned,
    via: &'a Via,
    /// Where relative names begin.
    place: Option<String>,
    is_person: bool,
}

impl Shell<'_> {
    fn prompt(&self) -> String {
        format!("{}> ", self.place.as_deref().unwrap_or("thorp"))
    }

    /// Runs a line. A failure has been told.
    fn run(&mut self, line: &str) -> Result<Next, Failed> {
        let words = match words_of(line) {
            Ok(words) => words,
            Err(failure) => return Err(Failed::tell(&failure, false)),
        };
        let is_json = wants_json(&words);
        self.run_words(&words)
            .map_err(|failure| Failed::tell(&failure, is_json))?
            .map_err(|code| Failed { code, is_json })
    }

    /// The inner result is that of a process, which has told its failure itself.
    fn run_words(&mut self, words: &[String]) -> Result<Result<Next, Code>, Failure> {
        let Some((first, rest)) = words.split_first() else {
            return Ok(Ok(Next::Go));
        };
        match (first.as_str(), rest) {
            ("exit", []) => return Ok(Ok(Next::Exit)),
            ("pwd", []) => self.tell_place()?,
            ("cd", []) => self.place = None,
            ("cd", [to]) => self.place = Some(self.place_at(to)?),
            ("exit" | "pwd" | "cd", _) => {
                let what = format!("{first} has too many words: {}", rest.join(" "));
                return Err(usage(what, "`help` lists what the shell takes"));
            }
            _ => {
                line::check(first)?;
                return self.start(words);
            }
        }
        Ok(Ok(Next::Go))
    }

    fn tell_place(&self) -> Result<(), Failure> {
        match &self.place {
            Some(place) => say(place),
            None => {
                // Nothing is the result; this is for whoever looks.
                let _ =
                    text::note("relative names begin nowhere: `cd thorp://HOME/path` says where");
                Ok(())
            }
        }
    }

    fn place_at(&self, to: &str) -> Result<String, Failure> {
        let place = match &self.place {
            Some(place) => names::from_place(place, to),
            None => to.to_owned(),
        };
        let place = names::prefix(place.trim_end_matches('/'));
        place.map_err(|said| {
            let (what, todo) = said.split_once("\n  -> ").unwrap_or((&said, ""));
            usage(what.to_owned(), todo)
        })
    }

    /// Runs a process to its end.
    fn start(&self, words: &[String]) -> Result<Result<Next, Code>, Failure> {
        let mut command = Command::new(&self.program);
        self.village.pass_on(&mut command);
        command.arg(Line::NAME);
        command.args(Line::flags(self.via, self.place.as_deref(), self.is_person));
        command.args(words.iter().map(OsString::from));
        if !self.is_person {
            // What follows is for the shell.
            command.stdin(Stdio::null());
        }
        let ended = command
            .status()
            .map_err(|error| Failure::new(format!("{} does not run: {error}", words[0]), ""))?;
        Ok(match ended.code() {
            Some(0) => Ok(Next::Go),
            Some(code) => Err(Code::of_process(code)),
            // By a signal, as Ctrl-C.
            None => Err(Code::Failed),
        })
    }
}

/// A line that failed, after a person was told why.
#[derive(Clone, Copy)]
struct Failed {
    code: Code,
    is_json: bool,
}

impl Failed {
    fn tell(failure: &Failure, is_json: bool) -> Self {
        failure.tell(is_json);
        let code = failure.code();
        Failed { code, is_json }
    }

    /// It ends the shell. Beside a document nothing else is printed.
    fn ends(self, line: &str, number: u64) -> Failure {
        if self.is_json {
            return Failure::told(self.code);
        }
        let what = format!("line {number} failed: {}", line.trim());
        Failure::new(what, "mend it, or go on after failures with --keep-going").with(self.code)
    }
}

/// Lines that failed, and were not the last.
#[derive(Default)]
struct Failures {
    count: u64,
    first: Option<Failed>,
}

impl Failures {
    fn add(&mut self, failed: Failed) {
        self.count += 1;
        self.first.get_or_insert(failed);
    }

    fn end(self) -> Result<(), Failure> {
        match self.first {
            None => Ok(()),
            Some(first) if first.is_json => Err(Failure::told(first.code)),
            Some(first) => {
                let what = format!("{} failed", text::count(self.count, "command"));
                let todo = "their errors are above; the exit code is that of the first one";
                Err(Failure::new(what, todo).with(first.code))
            }
        }
    }
}

/// The words of a line, as a POSIX shell splits them. A line that begins with # is a comment; elsewhere a # begins the
/// name of an object.
fn words_of(line: &str) -> Result<Vec<String>, Failure> {
    let line = line.trim();
    if line.starts_with('#') {
        return Ok(Vec::new());
    }
    if line.contains('\0') {
        return Err(usage("a line has a zero byte".to_owned(), "take it out"));
    }
    let words = shlex::split(&line.replace('#', "\0"));
    let words = words.ok_or_else(|| {
        let what = "a quote is not closed, or a backslash ends the line".to_owned();
        usage(what, "each line is a whole command: close the quote")
    })?;
    Ok(words.iter().map(|word| word.replace('\0', "#")).collect())
}

fn wants_json(words: &[String]) -> bool {
    let mut words = words.iter().take_while(|word| *word != "--");
    words.any(|word| word == "--json")
}

fn usage(what: String, todo: &str) -> Failure {
    Failure::new(what, todo).with(Code::Usage)
}

const HELP: &str = "\
Runs the other commands, one a line, all in the village that was the right one when the shell began. `cd` says where \
relative names begin, `pwd` prints that, `help` lists the commands, and `exit` or Ctrl-D ends the shell. After \
`cd thorp://dev/notes`, `ls` lists what begins so, `#1.0.1` is an object there, `.` the segment itself, `x` is \
thorp://dev/notes/x, and `/x` is thorp://dev/x. Of names that come last, that of the segment itself may be left out.

A line is split into words as a shell does it. Pipes and variables there are none. From a file or a pipe, the shell \
prints no prompt. It ends at the first command that fails, with its exit code.

Examples:
  thorp shell thorp://dev/notes < script
  printf 'cd thorp://dev/notes\\nget --root greeting\\n' | thorp shell
  echo 'put --text \"good evening\"' | thorp shell thorp://dev/notes --keep-going";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        let words = |line: &str| words_of(line).map_err(|failure| failure.to_string());
        let same = |line: &str, wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(words(line), Ok(wanted), "{line}");
        };
        same("get #1.0.1", &["get", "#1.0.1"]);
        same(
            "put --text 'a  b' \"c 'd'\" e\\ f",
            &["put", "--text", "a  b", "c 'd'", "e f"],
        );
        same("put --text ''", &["put", "--text", ""]);
        same("get a#1.0.1 '#2.0.1'", &["get", "a#1.0.1", "#2.0.1"]);
        same("  ", &[]);
        same("  # get x", &[]);
        for wrong in ["put 'a", "put \"a", "put a\\"] {
            assert!(words(wrong).is_err(), "{wrong}");
        }
    }
}
