//! The commands of the program, as its help lists them.

use super::thorp;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;

/// A command and its help.
#[derive(Clone)]
pub(crate) struct Listed {
    /// As `rights grant`.
    pub(crate) command: String,
    pub(crate) help: String,
    /// It does nothing but its own commands.
    pub(crate) is_group: bool,
}

/// All that `thorp --help` lists, and what these list.
pub(crate) fn all() -> Vec<Listed> {
    let mut all = Vec::new();
    add(&[], &mut all);
    all
}

fn add(words: &[&str], all: &mut Vec<Listed>) {
    let said = thorp().run(&[words, &["--help"]].concat());
    assert_eq!(said.code, 0, "{words:?}: {}", said.err);
    let names = names(&said.out);
    if !words.is_empty() {
        all.push(Listed {
            command: words.join(" "),
            help: said.out.clone(),
            is_group: usage(&said.out).is_some_and(|usage| usage.contains("<COMMAND>")),
        });
    }
    for name in names {
        add(&[words, &[name]].concat(), all);
    }
}

/// How it is called: the first way, if there are several.
fn usage(help: &str) -> Option<&str> {
    help.lines().find(|line| line.starts_with("Usage:"))
}

/// The names under *Commands*.
fn names(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let name = |line: &'_ str| -> Option<usize> {
        let is_name = line.starts_with("  ") && !line.starts_with("   ");
        is_name.then(|| line[2..].find(' ').map_or(line.len(), |end| end + 2))
    };
    lines
        .filter_map(|line| name(line).map(|end| &line[2..end]))
        .filter(|name| *name != "help")
        .collect()
}

/// The lines under *Examples*.
pub(crate) fn examples(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let example = |line: &str| {
        let example = line.strip_prefix("  ");
        example
            .unwrap_or_else(|| panic!("an example is too long for a line of help: {line}"))
            .to_owned()
    };
    lines.map(example).collect()
}

/// Does it for each command, some of them at the same time.
pub(crate) fn for_each_at_once(all: Vec<Listed>, what: impl Fn(Listed) + Sync) {
    let all = Mutex::new(VecDeque::from(all));
    let next = || all.lock().unwrap().pop_front();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(listed) = next() {
                    what(listed);
                }
            });
        }
    });
}

const AT_ONCE: usize = 3;
