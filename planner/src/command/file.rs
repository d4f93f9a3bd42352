//! Parameters told by a TOML file: a table of the question's name, with the flags as keys.

use super::nearest::nearest;
use crate::command::failure::{Code, Failure};
use clap::{Args, Command};
use std::any::TypeId;
use std::io;
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// What a file's table of the question's name says of the parameters `T`. The question has the flags `O`.
pub(super) fn read<O: Args, T: Args>(path: &Path, question: &str) -> Result<Table, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    let asked = Asked {
        question,
        parameters: T::augment_args(Command::new("parameters")),
        flags: O::augment_args(Command::new("flags")),
    };
    asked.table(&text).map_err(|wrong| {
        let place = match wrong.at {
            Some(at) => format!("{}, line {}", path.display(), line(&text, at)),
            None => path.display().to_string(),
        };
        Failure::new(format!("{place}: {}", wrong.what), wrong.todo).with(Code::Usage)
    })
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let what = match error.kind() {
        io::ErrorKind::InvalidData => "is no text",
        io::ErrorKind::IsADirectory => "is a directory",
        _ => return Failure::file(path, error),
    };
    let todo = "name a TOML file with parameters in it";
    Failure::new(format!("{}: {what}", path.display()), todo)
}

/// What is wrong in a file, what would be right, and at which byte.
struct Wrong {
    what: String,
    todo: String,
    at: Option<usize>,
}

/// A question, as its file is read.
struct Asked<'a> {
    question: &'a str,
    /// The flags that are keys of a file, too.
    parameters: Command,
    /// All flags of the question.
    flags: Command,
}

impl Asked<'_> {
    fn table(&self, text: &str) -> Result<Table, Wrong> {
        let question = self.question;
        let file = DeTable::parse(text).map_err(|error| no_toml(text, error.span()))?;
        let file = file.get_ref();
        let told = file.get(question).ok_or_else(|| self.without(file))?;
        let DeValue::Table(table) = told.get_ref() else {
            return Err(Wrong {
                what: format!("{question} has to be one table"),
                todo: format!("write [{question}] once, and the parameters below it"),
                at: Some(told.span().start),
            });
        };
        let mut parameters = Table::new();
        for (key, value) in table {
            let at = Some(key.span().start);
            let name = key.get_ref();
            let is_number = self
                .is_number(name)
                .map_err(|unknown| unknown.wrong(question, &written(text, value), at))?;
            let told = match is_number {
                true => number(text, value),
                false => word(text, value),
            };
            let told = told.map_err(|why| Wrong {
                what: format!("{name}: {why}"),
                todo: example(name, is_number, value.get_ref()),
                at,
            })?;
            parameters.insert(name.to_string(), told);
        }
        Ok(parameters)
    }

    /// There is no table of that name.
    fn without(&self, file: &DeTable<'_>) -> Wrong {
        let question = self.question;
        let (hint, todo) = match nearest(question, file.keys().map(|key| &**key.get_ref())) {
            Some(other) => (
                format!(": is [{other}] meant?"),
                format!("write [{question}]"),
            ),
            None if file
                .keys()
                .any(|key| is_flag(&self.parameters, key.get_ref())) =>
            {
                (
                    ": it has to stand above the parameters".to_owned(),
                    format!("write [{question}] above them"),
                )
            }
            None => (
                String::new(),
                format!(
                    "write a table [{question}] with the flags as keys, _ for -: `thorp plan {question} --help` lists them"
                ),
            ),
        };
        Wrong {
            what: format!("has no [{question}]{hint}"),
            todo,
            at: None,
        }
    }

    /// Whether this parameter is a number. The others are words.
    fn is_number(&self, key: &str) -> Result<bool, Unknown> {
        let mut parameters = self.parameters.get_arguments();
        if let Some(flag) = parameters.find(|flag| flag.get_id() == key) {
            return Ok(flag.get_value_parser().type_id() == TypeId::of::<f64>());
        }
        let plain = key.replace('-', "_");
        if is_flag(&self.flags, &plain) && !is_flag(&self.parameters, &plain) {
            return Err(Unknown::Flag(key.to_owned()));
        }
        let known = self
            .parameters
            .get_arguments()
            .map(|flag| flag.get_id().as_str());
        Err(Unknown::Nobody {
            key: key.to_owned(),
            meant: nearest(&plain, known).map(str::to_owned),
        })
    }
}

/// The reader's own words are about its grammar; the line is what people know.
fn no_toml(text: &str, span: Option<Range<usize>>) -> Wrong {
    let at = span.map(|span| span.start);
    let shown = at.and_then(|at| text.lines().nth(line(text, at) - 1));
    Wrong {
        what: format!("this is no TOML: {}", shown.unwrap_or_default().trim()),
        todo: "write lines like members = 5, or system = \"thorp\": words stand in quotes, numbers do not".to_owned(),
        at,
    }
}

/// How a parameter would be written.
fn example(key: &str, is_number: bool, value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(word) if is_number && word.parse::<f64>().is_ok() => {
            format!("write {key} = {word}")
        }
        _ if is_number => format!("write {key} = 5, with your number"),
        _ => format!("write {key} = \"…\""),
    }
}

/// A key that is no parameter.
enum Unknown {
    /// It is told by its flag alone.
    Flag(String),
    Nobody {
        key: String,
        meant: Option<String>,
    },
}

impl Unknown {
    fn wrong(self, question: &str, value: &str, at: Option<usize>) -> Wrong {
        let (what, todo) = match self {
            Unknown::Flag(key) => (
                format!("{key} cannot be told by a file, only by its flag"),
                format!("give --{} on the command line", key.replace('_', "-")),
            ),
            Unknown::Nobody {
                key,
                meant: Some(meant),
            } => (
                format!("there is no {key}: is {meant} meant?"),
                format!("write {meant} = {value}"),
            ),
            Unknown::Nobody { key, meant: None } => (
                format!("there is no {key}"),
                format!(
                    "`thorp plan {question} --help` lists the flags that are keys here, _ for -"
                ),
            ),
        };
        Wrong { what, todo, at }
    }
}

fn is_flag(command: &Command, key: &str) -> bool {
    command.get_arguments().any(|flag| flag.get_id() == key)
}

fn number(text: &str, value: &Spanned<DeValue<'_>>) -> Result<Value, String> {
    let told = match value.get_ref() {
        DeValue::Float(number) => number.as_str().parse().ok(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
            .ok()
            .map(|number| number as f64),
        _ => None,
    };
    let hint = match value.get_ref() {
        DeValue::String(word) if word.parse::<f64>().is_ok() => ": leave the quotes out",
        _ => "",
    };
    told.map(Value::Float)
        .ok_or_else(|| format!("a number is needed, {}{hint}", what_it_is(text, value)))
}

/// A number is the word that is written so: `client_pages = 2000`. A list is what flags tell with commas, and a matrix what
/// they tell with strokes between its rows: `routing = [[0.5, 0.5], [0, 1]]`.
fn word(text: &str, value: &Spanned<DeValue<'_>>) -> Result<Value, String> {
    listed(text, value, &["/", ","])
        .map(Value::String)
        .ok_or_else(|| {
            let what = what_it_is(text, value);
            format!("a word in quotes or a number is needed, {what}")
        })
}

/// A word, or a list of lists with these between their members: of a list that is flat, the last.
fn listed(text: &str, value: &Spanned<DeValue<'_>>, between: &[&str]) -> Option<String> {
    match value.get_ref() {
        DeValue::String(word) => Some(word.to_string()),
        DeValue::Integer(_) | DeValue::Float(_) => Some(written(text, value).replace('_', "")),
        DeValue::Array(members) => {
            let is_list =
                |member: &Spanned<DeValue<'_>>| matches!(member.get_ref(), DeValue::Array(_));
            let lists = members.iter().filter(|member| is_list(member)).count();
            let between = match lists {
                0 => between.last().map(std::slice::from_ref)?,
                all if all == members.len() => between,
                _ => return None,
            };
            let (first, rest) = between.split_first()?;
            let words = members.iter().map(|member| listed(text, member, rest));
            Some(words.collect::<Option<Vec<_>>>()?.join(first))
        }
        _ => None,
    }
}

fn what_it_is(text: &str, value: &Spanned<DeValue<'_>>) -> String {
    let kind = match value.get_ref() {
        DeValue::String(_) => "is text",
        DeValue::Integer(_) | DeValue::Float(_) => "is too large a number",
        DeValue::Boolean(_) => "is neither a number nor text",
        DeValue::Datetime(_) => "is a date or a time",
        DeValue::Array(_) => "is a list",
        DeValue::Table(_) => "is a table",
    };
    format!("{} {kind}", written(text, value))
}

/// As it stands in the file, or how it begins.
fn written(text: &str, value: &Spanned<DeValue<'_>>) -> String {
    let all = text.get(value.span()).unwrap_or_default();
    let begin: String = all.chars().take_while(|&c| c != '\n').take(40).collect();
    match begin.len() < all.len() {
        true => begin + "…",
        false => begin,
    }
}

fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count()
}
