//! The commands of the program, as its help lists them.

use super::thorp;

/// A command and its help.
#[derive(Clone)]
pub(crate) struct Listed {
    /// As `rights grant`.
    pub(crate) command: String,
    pub(crate) help: String,
    /// It has commands of its own.
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
            is_group: !names.is_empty(),
        });
    }
    for name in names {
        add(&[words, &[name]].concat(), all);
    }
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
