//! Raw samples, one line of JSON each, and what they come to.

use crate::Outcome;
use serde_json::{Map, Value};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// The samples of an experiment, in memory and in a file that is whole after each of them.
pub struct Samples {
    file: File,
    all: Vec<Map<String, Value>>,
}

impl Samples {
    /// Keeps them in `NAME.jsonl` in this directory, which it makes.
    pub fn keep_in(directory: &Path, name: &str) -> Outcome<Self> {
        fs::create_dir_all(directory).map_err(|why| format!("{}: {why}", directory.display()))?;
        let path = directory.join(format!("{name}.jsonl"));
        let file = File::create(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        Ok(Samples {
            file,
            all: Vec::new(),
        })
    }

    /// Adds one: what it is of, and what was answered.
    pub fn add(&mut self, of: &[(&str, Value)], answer: &Value) -> Outcome<()> {
        let mut sample: Map<String, Value> = of
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        if let Value::Object(answer) = answer {
            sample.extend(answer.clone());
        }
        writeln!(self.file, "{}", Value::Object(sample.clone()))?;
        self.all.push(sample);
        Ok(())
    }

    /// All numbers of lists of this name, of all samples that are of this.
    pub fn listed(&self, of: &[(&str, Value)], name: &str) -> Vec<f64> {
        let lists = self
            .those(of)
            .filter_map(|sample| sample.get(name)?.as_array());
        lists.flatten().filter_map(Value::as_f64).collect()
    }

    /// All samples that are of this.
    pub(crate) fn those(&self, of: &[(&str, Value)]) -> impl Iterator<Item = &Map<String, Value>> {
        let is_one = move |sample: &&Map<String, Value>| {
            of.iter()
                .all(|(name, value)| sample.get(*name) == Some(value))
        };
        self.all.iter().filter(is_one)
    }

    /// The median over runs of the mean over members of a figure: of all samples that are of this.
    pub fn median_of_means(&self, of: &[(&str, Value)], figure: &str) -> Option<f64> {
        let mut runs: Vec<(u64, Vec<f64>)> = Vec::new();
        for sample in self.those(of) {
            let run = sample.get("run").and_then(Value::as_u64)?;
            let value = sample.get(figure).and_then(Value::as_f64)?;
            match runs.iter_mut().find(|(known, _)| *known == run) {
                Some((_, values)) => values.push(value),
                None => runs.push((run, vec![value])),
            }
        }
        let means = runs
            .iter()
            .map(|(_, values)| values.iter().sum::<f64>() / values.len() as f64);
        median(means.collect())
    }
}

/// The middle one, or the mean of the two in the middle.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn of_runs_the_median_of_members_the_mean() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut samples = Samples::keep_in(dir.path(), "test").expect("it can be written");
        for (run, values) in [(0, [1.0, 3.0]), (1, [10.0, 30.0]), (2, [4.0, 4.0])] {
            for value in values {
                let of = [("case", json!("a")), ("run", json!(run))];
                samples.add(&of, &json!({"s": value})).expect("written");
            }
        }
        let of = [("case", json!("a"))];
        assert_eq!(samples.median_of_means(&of, "s"), Some(4.0));
        assert_eq!(samples.median_of_means(&[("case", json!("b"))], "s"), None);
        let kept = fs::read_to_string(dir.path().join("test.jsonl")).expect("a file");
        assert_eq!(kept.lines().count(), 6);
    }

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}
