//! `thorp completions`: what a shell completes, and the pages for `man`.

use crate::failure::Failure;
use crate::text;
use clap::{Args, Command};
use clap_complete::Shell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What `thorp completions` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The shell
    shell: Shell,
}

/// What `thorp man` is told.
#[derive(Args, Debug)]
#[command(after_help = MAN_HELP)]
pub(crate) struct ManOptions {
    /// Where to put the pages; made if it is not there
    dir: PathBuf,
}

/// Prints the script for a shell that completes a command line.
pub(crate) fn run(options: &Options, line: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut offered(&line), NAME, &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if options.shell == Shell::Bash {
        script = with_contexts(&script);
    }
    match io::stdout().lock().write_all(script.as_bytes()) {
        // A reader that has seen enough is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("standard output: {error}"), ""))
        }
        _ => Ok(()),
    }
}

/// The command line without what is hidden: a shell offers that, too.
fn offered(line: &Command) -> Command {
    let commands = line
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .args(line.get_arguments().cloned())
        .subcommands(commands.cloned())
}

/// The names of contexts after `--context`, where clap offers files, and after `thorp context use` and `rm`.
fn with_contexts(script: &str) -> String {
    let (mut out, mut before) = (String::new(), "");
    for line in script.lines() {
        match before {
            "--context)" => out += &line.replace(FILES, CONTEXTS),
            "thorp__subcmd__context__subcmd__use)" | "thorp__subcmd__context__subcmd__rm)" => {
                out += &line.replace("opts=\"", "opts=\"$(_thorp_contexts) ");
            }
            _ => out += line,
        }
        out.push('\n');
        before = line.trim();
    }
    out + CONTEXTS_OF_USER
}

const FILES: &str = r#"COMPREPLY=($(compgen -f "${cur}"))"#;
const CONTEXTS: &str = r#"COMPREPLY=($(compgen -W "$(_thorp_contexts)" -- "${cur}"))"#;
/// As the client library finds them.
const CONTEXTS_OF_USER: &str = r#"
_thorp_contexts() {
    local dir="${THORP_CONFIG:-${XDG_CONFIG_HOME:-$HOME/.config}/thorp}"
    command ls "$dir/contexts" 2>/dev/null
}
"#;

/// Writes a page for each command.
pub(crate) fn write_man(options: &ManOptions, line: Command) -> Result<(), Failure> {
    let dir: &Path = &options.dir;
    let failed = |error: io::Error| Failure::file(dir, &error);
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(line, dir).map_err(failed)?;
    let read = format!("man -l {}/thorp.1", dir.display());
    text::line(&format!("pages are in {}: {read}", dir.display())).map_err(failed)
}

const NAME: &str = "thorp";

const HELP: &str = "\
Prints a script that makes the shell complete commands and flags.

Examples:
  thorp completions bash > ~/.local/share/bash-completion/completions/thorp
  thorp completions zsh > ~/.zfunc/_thorp
  thorp completions fish > ~/.config/fish/completions/thorp.fish";

const MAN_HELP: &str = "\
Writes a page in the form of man for each command.

Examples:
  thorp man ~/.local/share/man/man1";
