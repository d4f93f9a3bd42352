//! The parameters of a model: told by flags, by a file, measured, or as they are usual; and who said which.

use super::file;
use crate::Invalid;
use crate::command::failure::{Code, Failure};
use crate::report::{Assumption, Report};
use clap::Args;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use toml::{Table, Value};

/// Parameters from several sources: the first that tells one is believed.
pub(super) struct Given {
    layers: Vec<Layer>,
    assumed: Vec<Assumption>,
    untold: Vec<Untold>,
    asked: BTreeSet<&'static str>,
    remarks: Vec<String>,
}

/// What one source tells.
struct Layer {
    source: String,
    told: Table,
    /// No person chose its numbers: texts round them.
    is_measured: bool,
}

/// What nobody told.
struct Untold {
    flag: String,
    /// If it is as old as that.
    year: Option<u32>,
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
    /// Why that. A year tells that it is of then, and the answer warns of it.
    pub(super) why: &'a str,
}

impl Given {
    /// What flags tell, and a file's table of the model's name. `O` are all flags of the question, those that no file
    /// can tell among them.
    pub(super) fn new<O, T>(flags: &T, file: Option<&Path>, model: &str) -> Result<Self, Failure>
    where
        O: Args,
        T: Serialize + Args,
    {
        let mut given = Given {
            layers: Vec::new(),
            assumed: Vec::new(),
            untold: Vec::new(),
            asked: BTreeSet::new(),
            remarks: Vec::new(),
        };
        given.layers.push(Layer {
            source: "told".to_owned(),
            told: table("told", flags)?,
            is_measured: false,
        });
        if let Some(path) = file {
            given.layers.push(Layer {
                source: path.display().to_string(),
                told: file::read::<O, T>(path, model)?,
                is_measured: false,
            });
        }
        Ok(given)
    }

    /// Adds what a node measured: it is believed where the sources before it are silent.
    pub(super) fn add_measured(
        &mut self,
        node: &str,
        parameters: &impl Serialize,
    ) -> Result<(), Failure> {
        let source = format!("measured at {node}");
        self.layers.push(Layer {
            told: table(&source, parameters)?,
            source,
            is_measured: true,
        });
        Ok(())
    }

    /// A number.
    pub(super) fn number(&mut self, usual: &Usual<'_, f64>) -> f64 {
        let told = self.told_number(usual.key);
        let (value, source) = told.unwrap_or_else(|| (usual.value, self.untold(usual)));
        let number = match self.is_measured(usual.key) {
            true => three_digits(value),
            false => numeral(value),
        };
        let shown = match usual.unit {
            "" => number,
            unit => format!("{number} {unit}"),
        };
        self.assume(usual, |name| {
            Assumption::rounded(name, shown, value, &source)
        });
        value
    }

    /// The same, said in a row: key, words, unit, value, why.
    pub(super) fn number_or(
        &mut self,
        key: &'static str,
        words: &str,
        unit: &str,
        value: f64,
        why: &str,
    ) -> f64 {
        self.number(&Usual {
            key,
            words,
            unit,
            value,
            why,
        })
    }

    /// A word.
    pub(super) fn word(&mut self, usual: &Usual<'_, &str>) -> String {
        let told = self.told_word(usual.key);
        let (value, source) = told.unwrap_or_else(|| (usual.value.to_owned(), self.untold(usual)));
        self.assume(usual, |name| Assumption::new(name, &*value, &source));
        value
    }

    /// The word that somebody tells, and who.
    pub(super) fn told_word(&self, key: &str) -> Option<(String, String)> {
        let (value, layer) = self.find(key)?;
        Some((value.as_str()?.to_owned(), layer.source.clone()))
    }

    /// The number that somebody tells, and who.
    pub(super) fn told_number(&self, key: &str) -> Option<(f64, String)> {
        let (value, layer) = self.find(key)?;
        Some((value.as_float()?, layer.source.clone()))
    }

    /// Notes that nobody tells it, and says why it is what it is.
    fn untold<T>(&mut self, usual: &Usual<'_, T>) -> String {
        self.untold.push(Untold {
            flag: flag(usual.key),
            year: year(usual.why),
        });
        format!("default: {}", usual.why)
    }

    fn assume<T>(&mut self, usual: &Usual<'_, T>, assumption: impl FnOnce(&str) -> Assumption) {
        self.asked.insert(usual.key);
        let name = format!("{} ({})", usual.words, flag(usual.key));
        self.assumed.push(assumption(&name));
    }

    /// Something to say of what was told, though it can be.
    pub(super) fn remark(&mut self, remark: String) {
        self.remarks.push(remark);
    }

    /// Whether anybody tells it.
    pub(super) fn is_told(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    fn is_measured(&self, key: &str) -> bool {
        self.find(key).is_some_and(|(_, layer)| layer.is_measured)
    }

    fn find(&self, key: &str) -> Option<(&Value, &Layer)> {
        self.layers
            .iter()
            .find_map(|layer| Some((layer.told.get(key)?, layer)))
    }

    /// Tells in a report what was asked for, in that order, and in its answer what nobody told.
    pub(super) fn tell(self, report: &mut Report) {
        let warnings = [self.unused(), self.defaults()].into_iter().flatten();
        for warning in self.remarks.iter().cloned().chain(warnings) {
            report.answer.push(' ');
            report.answer.push_str(&warning);
        }
        report.assumptions.extend(self.assumed);
    }

    /// What was told and not asked for: whoever told it expects something else.
    fn unused(&self) -> Option<String> {
        let told = self.layers.iter().flat_map(|layer| layer.told.keys());
        let unused = told.filter(|key| !self.asked.contains(key.as_str()));
        let unused: BTreeSet<String> = unused.map(|key| flag(key)).collect();
        let unused: Vec<&str> = unused.iter().map(String::as_str).collect();
        let (last, others) = unused.split_last()?;
        Some(match others.is_empty() {
            true => format!("{last} was told and says nothing here."),
            false => format!(
                "{} and {last} were told and say nothing here.",
                others.join(", ")
            ),
        })
    }

    /// That it rests on defaults, and on which old ones.
    fn defaults(&self) -> Option<String> {
        let all = self.assumed.len();
        let count = match self.untold.len() {
            0 => return None,
            count if count == all => format!("All {count} parameters are defaults"),
            1 => format!("One of the {all} parameters is a default"),
            count => format!("{count} of the {all} parameters are defaults"),
        };
        let mut years: Vec<u32> = self.untold.iter().filter_map(|own| own.year).collect();
        years.sort_unstable();
        years.dedup();
        let old: Vec<String> = years.into_iter().map(|year| self.dated(year)).collect();
        let old = match old.is_empty() {
            true => String::new(),
            false => format!("; {}: give your own", old.join(", ")),
        };
        Some(format!("{count} (see Assumed){old}."))
    }

    fn dated(&self, year: u32) -> String {
        let old = self.untold.iter().filter(|own| own.year == Some(year));
        let mut flags: Vec<&str> = old.map(|own| &*own.flag).collect();
        match (flags.pop(), flags.is_empty()) {
            (Some(last), false) => format!("{} and {last} are of {year}", flags.join(", ")),
            (last, _) => format!("{} is of {year}", last.unwrap_or_default()),
        }
    }
}

/// Parameters as a source tells them.
fn table(source: &str, parameters: &impl Serialize) -> Result<Table, Failure> {
    // Not as JSON, where a number that is none is silence.
    Table::try_from(parameters)
        .map_err(|error| Failure::new(format!("parameters of {source}: {error}"), ""))
}

/// As it is written on the command line.
fn flag(key: &str) -> String {
    format!("--{}", key.replace('_', "-"))
}

/// The year that a text names, of last century or early in this.
fn year(text: &str) -> Option<u32> {
    let numbers = text.split(|letter: char| !letter.is_ascii_digit());
    let mut years = numbers.filter_map(|number| number.parse().ok());
    years.find(|year| (1950..2010).contains(year))
}

/// A number for people: six digits at most say more than they know.
pub(super) fn numeral(value: f64) -> String {
    let size = value.abs();
    if !(1e-4..1e15).contains(&size) && size > 0.0 {
        return format!("{value:e}");
    }
    let whole = size.max(1.0).log10().floor() as usize;
    // Nothing has no sign.
    let text = format!("{:.*}", 5usize.saturating_sub(whole), value + 0.0);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A number that was measured: more than three digits would be of one moment only.
pub(super) fn three_digits(value: f64) -> String {
    // Through text: it is the nearest number that is written so.
    numeral(format!("{value:.2e}").parse().unwrap_or(value))
}

/// A parameter that cannot be, as its flag.
pub(super) fn refused(invalid: &Invalid) -> Failure {
    Failure::new(
        format!("{} {}", flag(invalid.parameter()), invalid.why()),
        "--help tells what each parameter means",
    )
    .with(Code::Usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::shown::Shown;

    #[derive(Args, Serialize, Default)]
    struct Flags {
        #[arg(long)]
        members: Option<f64>,
        #[arg(long)]
        round_trip_ms: Option<f64>,
        #[arg(long)]
        system: Option<String>,
    }

    #[derive(Args)]
    struct Asked {
        #[command(flatten)]
        _flags: Flags,
        #[command(flatten)]
        _shown: Shown,
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
        let mut given =
            Given::new::<Asked, _>(&flags, Some(file.path()), "site").expect("it is read");
        assert_eq!(given.number(&MEMBERS), 5.0);
        let far = Usual {
            key: "round_trip_ms",
            unit: "ms",
            ..MEMBERS
        };
        assert_eq!(given.number(&far), 80.0);
        let mut silent =
            Given::new::<Asked, _>(&Flags::default(), None, "site").expect("nothing is read");
        assert_eq!(silent.number(&MEMBERS), 3.0);
        assert_eq!(silent.assumed[0].source, "default: a small site");
        assert_eq!(given.assumed[0].name, "members (--members)");
        assert_eq!(given.assumed[1].value, "80 ms");
    }

    #[test]
    fn an_answer_tells_what_it_rests_on_that_nobody_told() {
        let answer = |flags: &Flags, whys: [&'static str; 2]| {
            let mut given = Given::new::<Asked, _>(flags, None, "site").expect("nothing is read");
            for (key, why) in ["members", "round_trip_ms"].into_iter().zip(whys) {
                given.number(&Usual {
                    key,
                    why,
                    ..MEMBERS
                });
            }
            let mut report = Report {
                answer: "Yes.".into(),
                ..Report::default()
            };
            given.tell(&mut report);
            assert_eq!(report.assumptions.len(), 2);
            report.answer
        };
        let silent = Flags::default();
        let old = "Yes. All 2 parameters are defaults (see Assumed); --members and --round-trip-ms are of 1995: give your own.";
        assert_eq!(answer(&silent, ["1995: a thesis", "of 1995"]), old);
        let old = "Yes. All 2 parameters are defaults (see Assumed); --round-trip-ms is of 1995, --members is of 1998: give your own.";
        assert_eq!(answer(&silent, ["1998", "1995"]), old);
        let one = Flags {
            members: Some(5.0),
            ..Flags::default()
        };
        let now = "Yes. One of the 2 parameters is a default (see Assumed).";
        assert_eq!(answer(&one, ["1995", "measured"]), now);
        let both = Flags {
            round_trip_ms: Some(5.0),
            ..one
        };
        assert_eq!(answer(&both, ["1995", "1995"]), "Yes.");
        let more = Flags {
            system: Some("thorp".into()),
            ..both
        };
        let unused = "Yes. --system was told and says nothing here.";
        assert_eq!(answer(&more, ["1995", "1995"]), unused);
    }

    #[test]
    fn numbers_are_told_in_few_digits() {
        let told = [-0.0, 0.163_029_999_99, 40.0, 2.5, 123_456.789, 3.2e9, 1e300].map(numeral);
        let wanted = ["0", "0.16303", "40", "2.5", "123457", "3200000000", "1e300"];
        assert_eq!(told, wanted);
    }

    #[test]
    fn edge_16_what_was_measured_is_told_in_three_digits() {
        let told = [-0.0, 0.13434, 40.5, 1234.0].map(three_digits);
        assert_eq!(told, ["0", "0.134", "40.5", "1230"]);
    }

    #[test]
    fn a_wrong_file_is_told_with_its_line_and_what_would_be_right() {
        for (text, told) in [
            ("[web]\n", ": has no [site]\n  -> write a table [site] with"),
            (
                "[sites]\n",
                ": has no [site]: is [sites] meant?\n  -> write [site]",
            ),
            (
                "members = 5\n",
                ": it has to stand above the parameters\n  -> write [site]",
            ),
            (
                "[[site]]\nmembers = 5\n",
                "line 1: site has to be one table\n  -> write [site]",
            ),
            (
                "[site]\n\nmembres = 5\n",
                "line 3: there is no membres: is members meant?\n  -> write members = 5",
            ),
            (
                "[site]\nround-trip-ms = 5\n",
                "line 2: there is no round-trip-ms: is round_trip_ms meant?\n  -> write round_trip_ms = 5",
            ),
            (
                "[site]\ncolour = 5\n",
                "line 2: there is no colour\n  -> `thorp plan site --help` lists",
            ),
            (
                "[site]\nhtml = \"x\"\n",
                "line 2: html cannot be told by a file, only by its flag\n  -> give --html on the command line",
            ),
            (
                "[site]\nmembers = \"many\"\n",
                "line 2: members: a number is needed, \"many\" is text\n  -> write members = 5, with your number",
            ),
            (
                "[site]\nmembers = '7'\n",
                "a number is needed, '7' is text: leave the quotes out\n  -> write members = 7\n",
            ),
            (
                "[site]\nmembers = true\n",
                "true is neither a number nor text\n  -> write members = 5, with",
            ),
            (
                "[site]\nmembers = [\n5]\n",
                "members: a number is needed, [… is a list\n  -> write members = 5, with",
            ),
            (
                "[site]\nsystem = { a = 1 }\n",
                "a word in quotes or a number is needed, { a = 1 } is a table\n  -> write system = \"…\"",
            ),
            (
                "# mine\nsite = [",
                "line 2: this is no TOML: site = [\n  -> write lines like",
            ),
            (
                "[site]\nsystem = thorp\n",
                "line 2: this is no TOML: system = thorp\n  -> write lines like members = 5, or system = \"thorp\"",
            ),
        ] {
            let file = written(text);
            let read = Given::new::<Asked, _>(&Flags::default(), Some(file.path()), "site");
            let why = read.err().expect("refused").to_string() + "\n";
            assert!(why.contains(told), "{why}");
        }
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), [0xff, 0xfe, 0]).expect("written");
        let directory = tempfile::tempdir().expect("a directory");
        for (path, told) in [
            (file.path(), ": is no text\n  -> name a TOML file"),
            (directory.path(), ": is a directory\n  -> name a TOML file"),
        ] {
            let read = Given::new::<Asked, _>(&Flags::default(), Some(path), "site");
            let why = read.err().expect("refused").to_string();
            assert!(why.contains(told), "{why}");
        }
    }

    #[test]
    fn numbers_in_files_are_read_as_they_may_be_written() {
        let file = written("[site]\nmembers = 1_000\nround_trip_ms = 0x10\nsystem = 2_000\n");
        let mut given = Given::new::<Asked, _>(&Flags::default(), Some(file.path()), "site")
            .expect("it is read");
        assert_eq!(given.number(&MEMBERS), 1000.0);
        let far = Usual {
            key: "round_trip_ms",
            ..MEMBERS
        };
        assert_eq!(given.number(&far), 16.0);
        let system = Usual {
            key: "system",
            words: "whose costs",
            unit: "",
            value: "thorp",
            why: "what is planned",
        };
        assert_eq!(given.word(&system), "2000");
        let file = written("[site]\nmembers = 99999999999999999999\nround_trip_ms = inf\n");
        let mut large = Given::new::<Asked, _>(&Flags::default(), Some(file.path()), "site")
            .expect("it is read");
        assert_eq!(large.number(&MEMBERS), 1e20);
        assert_eq!(large.number(&far), f64::INFINITY);
    }
}
