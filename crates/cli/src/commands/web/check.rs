//! `thorp web check`: whether a database and a recipe are as a keeper needs them.

use super::source::{recipe, refused, runtime, source};
use crate::commands::{say, say_json};
use crate::failure::{Code, Failure};
use crate::text;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use thorp_web::{Finding, Severity, check};

/// What `thorp web check` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The database, as the keeper's --postgres: its role is checked, too
    #[arg(
        long,
        value_name = "URL",
        env = "THORP_POSTGRES",
        hide_env_values = true
    )]
    postgres: String,
    /// A file, or the name of a recipe that comes with Thorp (mediawiki, wagtail)
    #[arg(long, value_name = "FILE")]
    recipe: PathBuf,
    /// The --name of the keeper
    #[arg(long, value_name = "NAME", default_value = "thorp")]
    name: String,
    /// Tell it in JSON
    #[arg(long)]
    json: bool,
}

/// Says what it has found. Fails if there is a problem.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let source = source(&options.postgres, &options.name)?;
    let recipe = recipe(&options.recipe)?;
    let found = runtime()?.block_on(check(&source, &recipe));
    let found = found.map_err(refused)?;
    let is_problem = |finding: &&Finding| finding.severity == Severity::Problem;
    let problems = found.iter().filter(is_problem).count();
    match options.json {
        true => say_json(&document(&found, problems))?,
        false => found.iter().try_for_each(|finding| say(&told(finding)))?,
    }
    if problems == 0 {
        return Ok(());
    }
    let what = format!("{problems} of {} checks do not hold", found.len());
    Err(Failure::new(
        what,
        "mend these first: answers may be stale, or none are kept",
    )
    .with(Code::Wrong))
}

fn told(finding: &Finding) -> String {
    let check = finding.check;
    // They name what others have named.
    let (found, advice) = (text::name(&finding.found), text::name(&finding.advice));
    let line = format!("{} {check}: {found}", word(finding.severity));
    match advice.is_empty() {
        true => line,
        false => format!("{line}\n  -> {advice}"),
    }
}

fn document(found: &[Finding], problems: usize) -> Value {
    let finding = |finding: &Finding| {
        json!({
            "check": finding.check,
            "result": word(finding.severity),
            "found": finding.found,
            "advice": finding.advice,
        })
    };
    let checks: Vec<Value> = found.iter().map(finding).collect();
    json!({ "good": problems == 0, "problems": problems, "checks": checks })
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Good => "ok",
        Severity::Warning => "warning",
        Severity::Problem => "problem",
    }
}

const HELP: &str = "\
It compares the recipe with the tables of the database, and looks for what could make answers stale, \
end them too often, or hold commits up. It changes nothing. The exit code is 3 if there is a problem; \
warnings alone give 0.

Examples:
  thorp web check --postgres postgresql:///shop --recipe shop.toml";
