//! The protocol as TLA+ models (`spec/*.tla`), checked for small villages.
//!
//! A model has a `.cfg` beside it with its sizes and all guards on: what Thorp
//! does. A [`Run`] checks it as it is, or with constants changed: other sizes, or
//! a guard switched off, and then an invariant must break.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tla_checker::ast::Spec;
use tla_checker::checker::{CheckResult, CheckStats, Counterexample, check, format_value};
use tla_checker::config::parse_constant_value;
use tla_checker::load::{Prepared, prepare_from_path};

/// One check of one model.
#[derive(Clone, Debug)]
pub struct Run {
    model: String,
    changed: Vec<(String, String)>,
    only: Option<String>,
}

/// What a check came to.
#[derive(Debug)]
pub struct Report {
    /// States explored.
    pub states: usize,
    /// Seconds it took.
    pub seconds: f64,
    /// Each action that fired, and how often.
    pub fired: Vec<(String, usize)>,
    /// The first invariant that broke, with the shortest way there.
    pub broken: Option<Broken>,
}

/// A broken invariant.
#[derive(Debug)]
pub struct Broken {
    /// Its name.
    pub invariant: String,
    /// The steps of the counterexample.
    pub steps: usize,
    /// The counterexample: each action, and what it changed.
    pub text: String,
}

impl Report {
    /// One line of a table.
    #[must_use]
    pub fn line(&self, run: &Run) -> String {
        let came_to = match &self.broken {
            None => "holds".to_string(),
            Some(broken) => format!("{} breaks in {} steps", broken.invariant, broken.steps),
        };
        let (states, seconds) = (self.states, self.seconds);
        format!(
            "{states:>8} states {seconds:>6.1} s  {}: {came_to}",
            run.title()
        )
    }
}

impl Run {
    /// A model (a file name without its ending) as its `.cfg` says.
    #[must_use]
    pub fn of(model: &str) -> Self {
        Self {
            model: model.to_string(),
            changed: Vec::new(),
            only: None,
        }
    }

    /// With a constant changed.
    #[must_use]
    pub fn with(mut self, constant: &str, value: &str) -> Self {
        self.changed.push((constant.to_string(), value.to_string()));
        self
    }

    /// With one invariant instead of all.
    #[must_use]
    pub fn only(mut self, invariant: &str) -> Self {
        self.only = Some(invariant.to_string());
        self
    }

    /// The model and what was changed, for people.
    #[must_use]
    pub fn title(&self) -> String {
        let changed = self.changed.iter();
        let changed = changed.map(|(constant, value)| format!(" {constant}={value}"));
        format!("{}{}", self.model, changed.collect::<String>())
    }

    /// Checks it. What is wrong with the model itself is an error.
    ///
    /// # Errors
    /// If the model does not load or cannot be evaluated, or is larger than the
    /// checker's limit.
    pub fn check(&self) -> Result<Report, String> {
        let mut prepared = self.prepare()?;
        prepared.checker_config.max_states = STATES_MAX;
        prepared.checker_config.max_depth = DEPTH_MAX;
        let result = check(&prepared.spec, &prepared.domains, &prepared.checker_config);
        match result {
            CheckResult::Ok(stats) => Ok(report(&stats, None)),
            CheckResult::InvariantViolation(found, stats) => {
                let broken = broken(&prepared.spec, &found);
                Ok(report(&stats, Some(broken)))
            }
            other => Err(format!("{}: {}", self.title(), trouble(&other))),
        }
    }

    fn prepare(&self) -> Result<Prepared, String> {
        let wrong = |what: &dyn std::fmt::Display| format!("{}: {what}", self.title());
        let mut constants = Vec::new();
        for (name, value) in &self.changed {
            let value = parse_constant_value(value).ok_or_else(|| wrong(&"no such value"))?;
            constants.push((Arc::from(name.as_str()), value));
        }
        let file = directory().join(&self.model);
        let (model, sizes) = (file.with_extension("tla"), file.with_extension("cfg"));
        let mut prepared =
            prepare_from_path(&model, Some(&sizes), &constants).map_err(|error| wrong(&error))?;
        for (name, _) in &constants {
            if !prepared.spec.constants.contains(name) {
                return Err(wrong(&format!("no constant {name}")));
            }
        }
        if let Some(only) = &self.only {
            keep_only(&mut prepared.spec, only).map_err(|error| wrong(&error))?;
        }
        if prepared.spec.invariants.is_empty() {
            return Err(wrong(&"no invariants"));
        }
        Ok(prepared)
    }
}

/// The models' directory.
#[must_use]
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// The actions that a model's `Next` names, one to a line.
///
/// # Errors
/// If the model cannot be read.
pub fn actions(model: &str) -> Result<Vec<String>, String> {
    let path = directory().join(model).with_extension("tla");
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let next = text.lines().skip_while(|line| *line != "Next ==").skip(1);
    let lines = next.take_while(|line| line.trim_start().starts_with("\\/"));
    Ok(lines.filter_map(last_name).collect())
}

/// `\/ \E m \in Members : Fetch(m)` names `Fetch`.
fn last_name(line: &str) -> Option<String> {
    let action = line.rsplit([':', '/']).next()?.trim();
    let name = action.split('(').next()?.trim();
    (!name.is_empty()).then(|| name.to_string())
}

fn keep_only(spec: &mut Spec, only: &str) -> Result<(), String> {
    let named = |name: &Option<Arc<str>>| name.as_deref() == Some(only);
    let index = spec.invariant_names.iter().position(named);
    let index = index.ok_or_else(|| format!("no invariant {only}"))?;
    spec.invariants = vec![spec.invariants.swap_remove(index)];
    spec.invariant_names = vec![spec.invariant_names.swap_remove(index)];
    Ok(())
}

fn report(stats: &CheckStats, broken: Option<Broken>) -> Report {
    let name = |name: &Option<Arc<str>>| name.as_deref().unwrap_or("?").to_string();
    let fired = stats.transitions_by_action.iter();
    Report {
        states: stats.states_explored,
        seconds: stats.elapsed_secs,
        fired: fired
            .map(|(action, times)| (name(action), *times))
            .collect(),
        broken,
    }
}

fn broken(spec: &Spec, found: &Counterexample) -> Broken {
    let name = spec.invariant_names.get(found.violated_invariant);
    let name = name.and_then(|name| name.as_deref()).unwrap_or("?");
    Broken {
        invariant: name.to_string(),
        steps: found.trace.len().saturating_sub(1),
        text: story(spec, found),
    }
}

/// A counterexample as a story: each action, and below it what it changed.
fn story(spec: &Spec, found: &Counterexample) -> String {
    let mut text = String::new();
    for (index, pair) in found.trace.windows(2).enumerate() {
        let [before, after] = pair else { continue };
        let action = found
            .actions
            .get(index + 1)
            .and_then(|name| name.as_deref());
        text.push_str(&format!("{:>2}  {}\n", index + 1, action.unwrap_or("?")));
        for (variable, values) in spec
            .vars
            .iter()
            .zip(before.values.iter().zip(&after.values))
        {
            if values.0 != values.1 {
                text.push_str(&format!("      {variable} = {}\n", format_value(values.1)));
            }
        }
    }
    text
}

fn trouble(result: &CheckResult) -> String {
    match result {
        CheckResult::MaxStatesExceeded(_) => format!("more than {STATES_MAX} states"),
        CheckResult::MaxDepthExceeded(_) => format!("longer than {DEPTH_MAX} steps"),
        other => format!("{other:.2000?}"),
    }
}

/// A model that outgrows this is a mistake, not a longer wait.
const STATES_MAX: usize = 5_000_000;

/// Far longer than any behaviour of the models, all of which end.
const DEPTH_MAX: usize = 400;
