//! The lines of a shell: what a person types at a terminal, or plain lines.

use crate::failure::Failure;
use rustyline::Editor;
use rustyline::config::Config;
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

pub(super) struct Input {
    kind: Kind,
    number: u64,
}

enum Kind {
    /// Of a person, with editing and a history of this session.
    Terminal(Box<Editor<(), MemHistory>>),
    Plain,
}

impl Input {
    /// Standard input.
    pub(super) fn standard() -> Result<Self, Failure> {
        let kind = match io::stdin().is_terminal() && io::stdout().is_terminal() {
            true => Kind::Terminal(Box::new(editor().map_err(|error| failed(&error))?)),
            false => Kind::Plain,
        };
        Ok(Input { kind, number: 0 })
    }

    /// Whether a person types.
    pub(super) fn is_person(&self) -> bool {
        matches!(self.kind, Kind::Terminal(_))
    }

    /// The number of the last line, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The next line; None at the end. A person sees the prompt.
    pub(super) fn next(&mut self, prompt: &str) -> Result<Option<String>, Failure> {
        self.number += 1;
        let Kind::Terminal(editor) = &mut self.kind else {
            let mut line = String::new();
            let read = io::stdin().lock().read_line(&mut line);
            let read = read.map_err(|error| Failure::file(Path::new("standard input"), &error))?;
            return Ok((read > 0).then_some(line));
        };
        go_to_new_line(editor)
            .map_err(|error| Failure::file(Path::new("standard output"), &error))?;
        loop {
            match editor.readline(prompt) {
                Ok(line) => return Ok(Some(line)),
                // Ctrl-C drops a line, and Ctrl-D ends the shell.
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(None),
                Err(error) => return Err(failed(&error)),
            }
        }
    }
}

/// The prompt takes a line of its own. An object's bytes may have left half a line there: as many spaces as the terminal
/// has columns end such a line, and stay within a line that was empty.
fn go_to_new_line(editor: &mut Editor<(), MemHistory>) -> io::Result<()> {
    let Some((columns, _)) = editor.dimensions() else {
        return Ok(());
    };
    let mut out = io::stdout().lock();
    write!(out, "{:1$}\r", "", usize::from(columns))?;
    out.flush()
}

fn editor() -> Result<Editor<(), MemHistory>, ReadlineError> {
    let config = Config::builder().auto_add_history(true).build();
    let history = MemHistory::with_config(&config);
    Editor::with_history(config, history)
}

fn failed(error: &ReadlineError) -> Failure {
    Failure::new(
        format!("the terminal: {error}"),
        "give the commands in a file: `thorp shell < FILE`",
    )
}
