//! The parameters of a model: told by flags, by a file, measured, or as they are usual; and who said which.

use crate::failure::{Code, Failure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use thorp_plan::Invalid;
use thorp_plan::report::Assumption;
use toml::{Table, Value};

/// Parameters from several sources: the first that tells one is believed.
pub(super) struct Given {
    layers: Vec<(String, Table)>,
    assumed: Vec<Assumption>,
}

/// A parameter, and what it is if nobody tells.
pub(super) struct Usual<'a, T> {
    /// As in the struct of flags and in a file: `round_trip_ms`.
    pub(super) key: &'static str,
    /// What it means.
    pub(super) words: &'a str,
    /// Its unit; empty for counts.
    pub(super) unit: &'a str,
    /// If nobody tells.
    pub(super) value: T,
    /// Why that.
    pub(super) why: &'a str,
}

impl Given {
    /// What flags tell, and a file's table of the model's name.
    pub(super) fn new<T>(flags: &T, file: Option<&Path>, model: &str) -> Result<Self, Failure>
    where
        T: Serialize + DeserializeOwned,
    {
        let mut given = Given {
            layers: Vec::new(),
            assumed: Vec::new(),
        };
        given.add("told", flags)?;
        if let Some(path) = file {
            given.add(&path.display().to_string(), &read::<T>(path, model)?)?;
        }
        Ok(given)
    }

    /// Adds a source that is believed where those before it are silent.
    pub(super) fn add(&mut self, source: &str, parameters: &impl Serialize) -> Result<(), Failure> {
        // Not as JSON, where a number that is none is silence.
        let told = Table::try_from(parameters)
            .map_err(|error| Failure::new(format!("parameters of {source}: {error}"), ""))?;
        self.layers.push((source.to_owned(), told));
        Ok(())
    }

    /// A number.
    pub(super) fn number(&mut self, usual: &Usual<'_, f64>) -> f64 {
        let told = self
            .find(usual.key)
            .and_then(|(value, source)| Some((value.as_float()?, source)));
        let (value, source) = told.unwrap_or((usual.value, format!("default: {}", usual.why)));
        let shown = match usual.unit {
            "" => numeral(value),
            unit => format!("{} {unit}", numeral(value)),
        };
        self.assumed
            .push(Assumption::new(usual.words, shown, &source));
        value
    }

    /// A word.
    pub(super) fn word(&mut self, usual: &Usual<'_, &str>) -> String {
        let told = self.find(usual.key).and_then(|(value, source)| {
            let value = value.as_str()?.to_owned();
            Some((value, source))
        });
        let (value, source) =
            told.unwrap_or((usual.value.to_owned(), format!("default: {}", usual.why)));
        self.assumed
            .push(Assumption::new(usual.words, value.clone(), &source));
        value
    }

    /// Whether anybody tells it.
    pub(super) fn is_told(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    fn find(&self, key: &str) -> Option<(&Value, String)> {
        self.layers
            .iter()
            .find_map(|(source, layer)| Some((layer.get(key)?, source.clone())))
    }

    /// What was asked for, in that order.
    pub(super) fn assumed(self) -> Vec<Assumption> {
        self.assumed
    }
}

fn read<T: DeserializeOwned>(path: &Path, model: &str) -> Result<T, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
    let wrong = |error: String| {
        let todo = format!(
            "write a table [{model}] with the flags as keys, _ for -: `thorp plan {model} --help` lists them"
        );
        Failure::new(format!("{}: {error}", path.display()), todo).with(Code::Usage)
    };
    let file: Table = text
        .parse()
        .map_err(|error: toml::de::Error| wrong(error.to_string()))?;
    let table = file
        .get(model)
        .ok_or_else(|| wrong(format!("has no [{model}]")))?;
    table
        .clone()
        .try_into()
        .map_err(|error: toml::de::Error| wrong(error.to_string()))
}

/// A number for people: six digits at most say more than they know.
pub(super) fn numeral(value: f64) -> String {
    let size = value.abs();
    if !(1e-4..1e15).contains(&size) && size > 0.0 {
        return format!("{value:e}");
    }
    let whole = size.max(1.0).log10().floor() as usize;
    let text = format!("{value:.*}", 5usize.saturating_sub(whole));
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A parameter that cannot be, as its flag.
pub(super) fn refused(invalid: &Invalid) -> Failure {
    let flag = invalid.parameter().replace('_', "-");
    Failure::new(
        format!("--{flag} {}", invalid.why()),
        "--help tells what each parameter means",
    )
    .with(Code::Usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Serialize, Deserialize, Default)]
    #[serde(default, deny_unknown_fields)]
    struct Flags {
        members: Option<f64>,
        round_trip_ms: Option<f64>,
    }

    const MEMBERS: Usual<'_, f64> = Usual {
        key: "members",
        words: "members",
        unit: "",
        value: 3.0,
        why: "a small site",
    };

    fn written(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        file
    }

    #[test]
    fn flags_are_believed_before_files_and_files_before_what_is_usual() {
        let file = written("[site]\nmembers = 7\nround_trip_ms = 80\n");
        let flags = Flags {
            members: Some(5.0),
            ..Flags::default()
        };
        let mut given = Given::new(&flags, Some(file.path()), "site").expect("it is read");
        assert_eq!(given.number(&MEMBERS), 5.0);
        let far = Usual {
            key: "round_trip_ms",
            unit: "ms",
            ..MEMBERS
        };
        assert_eq!(given.number(&far), 80.0);
        let mut silent = Given::new(&Flags::default(), None, "site").expect("nothing is read");
        assert_eq!(silent.number(&MEMBERS), 3.0);
        assert_eq!(silent.assumed()[0].source, "default: a small site");
        assert_eq!(given.assumed()[1].value, "80 ms");
    }

    #[test]
    fn numbers_are_told_in_few_digits() {
        let told = [0.0, 0.163_029_999_99, 40.0, 2.5, 123_456.789, 3.2e9, 1e300].map(numeral);
        let wanted = ["0", "0.16303", "40", "2.5", "123457", "3200000000", "1e300"];
        assert_eq!(told, wanted);
    }

    #[test]
    fn a_wrong_file_is_told_with_what_would_be_right() {
        for (text, told) in [
            ("[web]\n", "has no [site]"),
            ("[site]\nmembres = 5\n", "unknown field `membres`"),
            ("[site]\nmembers = \"many\"\n", "invalid type"),
            ("site = [", "TOML parse error"),
        ] {
            let file = written(text);
            let read = Given::new(&Flags::default(), Some(file.path()), "site");
            let why = read.err().expect("refused").to_string();
            assert!(why.contains(told) && why.contains("[site]"), "{why}");
        }
    }
}
