//! One line of a shell: a command whose names begin at the shell's place.

use super::usage;
use crate::connect::Via;
use crate::failure::Failure;
use crate::names;
use clap::{ArgMatches, Args, Command};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// A command in a shell. People do not call it.
#[derive(Args, Debug)]
pub(crate) struct Line {
    /// Where relative names begin
    #[arg(long)]
    place: Option<String>,
    /// The --timeout of a command that does not say it
    #[arg(long)]
    timeout: Option<String>,
    /// The --record-trace of a command that does not say it
    #[arg(long)]
    record_trace: Option<OsString>,
    /// Standard input is not for commands
    #[arg(long)]
    no_input: bool,
    /// The command
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl Line {
    /// What the program calls it.
    pub(super) const NAME: &str = "shell-line";

    /// The flags of a line that a shell runs.
    pub(super) fn flags(via: &Via, place: Option<&str>, has_input: bool) -> Vec<OsString> {
        let mut flags = vec!["--timeout".into(), via.timeout.to_string().into()];
        if let Some(place) = place {
            flags.extend(["--place".into(), place.into()]);
        }
        if let Some(file) = &via.record_trace {
            flags.extend(["--record-trace".into(), file.into()]);
        }
        if !has_input {
            flags.push("--no-input".into());
        }
        flags
    }

    /// Parses the command by the program's own definition.
    pub(crate) fn parse(&self, program: Command) -> Result<ArgMatches, clap::Error> {
        if let Some(place) = &self.place {
            names::begin_at(place);
        }
        let program = self.with_defaults(program).before_help(BUILT_IN);
        let program = NOT_HERE.iter().fold(program, |program, (name, _)| {
            program.mut_subcommand(name, |command| command.hide(true))
        });
        let words = std::iter::once(OsStr::new("thorp"));
        program.try_get_matches_from(words.chain(self.words.iter().map(OsString::as_os_str)))
    }

    /// Lines of a script are no input of its commands.
    pub(crate) fn check_input(&self, matches: &ArgMatches) -> Result<(), Failure> {
        let mut path = Vec::new();
        let mut leaf = matches;
        while let Some((name, matches)) = leaf.subcommand() {
            path.push(name);
            leaf = matches;
        }
        let is_given = |id: &str| leaf.try_contains_id(id).unwrap_or(false);
        let file = leaf.try_get_raw("file").ok().flatten();
        let is_dash = file.is_some_and(|mut file| file.any(|file| file == "-"));
        let reads = match path.as_slice() {
            ["put"] => is_dash || !is_given("file") && !is_given("text"),
            ["load"] | ["ifc", "import"] => is_dash,
            _ => false,
        };
        match self.no_input && reads {
            false => Ok(()),
            true => Err(usage(
                format!(
                    "{} has no standard input in a script of the shell",
                    path.join(" ")
                ),
                "name a file, or of put a --text",
            )),
        }
    }

    /// A command and those below it get what the shell knows.
    fn with_defaults(&self, command: Command) -> Command {
        let names = command
            .get_subcommands()
            .map(|sub| sub.get_name().to_owned());
        let names: Vec<String> = names.collect();
        let command = names.iter().fold(command, |command, name| {
            command.mut_subcommand(name, |sub| self.with_defaults(sub))
        });
        let place = self.place.as_deref().zip(last_name(&command));
        let defaults = [
            place.map(|(place, id)| (id.to_owned(), place.into())),
            self.timeout
                .as_ref()
                .map(|timeout| ("timeout".into(), timeout.into())),
            self.record_trace
                .as_ref()
                .map(|file| ("record_trace".into(), file.clone())),
        ];
        let defaults: BTreeMap<String, OsString> = defaults.into_iter().flatten().collect();
        // The order of arguments stays.
        command.mut_args(|arg| match defaults.get(arg.get_id().as_str()) {
            // A process has one line, so what is leaked is little.
            Some(value) => arg.required(false).default_value(&*value.clone().leak()),
            None => arg,
        })
    }
}

/// The name of a segment after which a command needs none: it is one, it is that of a place to look at or to add to, and
/// nothing that has to be there follows.
fn last_name(command: &Command) -> Option<&str> {
    let mut places = command.get_positionals();
    let first = places.next()?;
    let id = first.get_id().as_str();
    let is_last = places.all(|place| !place.is_required_set());
    (is_last && ["url", "segment", "prefix"].contains(&id)).then_some(id)
}

/// A command that a shell runs, by its first word.
pub(super) fn check(first: &str) -> Result<(), Failure> {
    if first.starts_with('-') {
        let what = format!("a line begins with a command, and {first} is none");
        return Err(usage(what, "`help` lists the commands"));
    }
    match NOT_HERE.iter().find(|(name, _)| *name == first) {
        None => Ok(()),
        Some((_, why)) => Err(usage(
            format!("{first} does not run in the shell of Thorp: {why}"),
            "leave this shell with `exit` first, or use another terminal",
        )),
    }
}

/// Commands that make no sense in a shell, and why.
const NOT_HERE: [(&str, &str); 7] = [
    ("dev", "it runs a village of its own"),
    ("demo", "it runs a village of its own"),
    ("home", "it runs a server"),
    ("site", "it runs a server"),
    ("shell", "one is enough"),
    (Line::NAME, "one is enough"),
    ("demo-member", "it is a part of the demo"),
];

const BUILT_IN: &str = "\
In this shell:
  cd thorp://HOME/path  relative names begin there: #1.0.1 is an object of it, x is thorp://HOME/path/x
  cd                    they begin nowhere
  pwd                   print where they begin
  help [COMMAND]        print this, or the help of a command
  exit                  end the shell, as Ctrl-D does";
