//! `thorp plan site`: what a site saves.

mod answer;
mod question;
mod said;
mod tables;

use crate::command::failure::Failure;
use crate::command::given::{Given, refused};
use crate::command::measured::{Measured, measured};
use crate::command::print::note;
use crate::command::shown::Shown;
use clap::Args;
use question::{Parameters, Question};

/// What `thorp plan site` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    #[command(flatten)]
    parameters: Parameters,
    /// Take members, distance and sharing from a running site: its --http address
    #[arg(long, value_name = "URL")]
    from_metrics: Option<String>,
    #[command(flatten)]
    shown: Shown,
}

const HELP: &str = "\
Examples:
  thorp plan site --members 5 --round-trip-ms 40
  thorp plan site --members 12 --round-trip-ms 15 --pages 20000 --html plan.html
  thorp plan site --from-metrics http://localhost:7431";

/// Answers.
pub(super) fn run<E: From<Failure>>(
    options: &Options,
    status_of: impl FnOnce(&str) -> Result<String, E>,
) -> Result<(), E> {
    let mut given = Given::new::<Options, _>(&options.parameters, options.shown.file(), "site")?;
    if let Some(node) = &options.from_metrics {
        let told = given.told_number("members").map(|(members, _)| members);
        let measured = measured(node, &status_of(node)?)?;
        for missing in measured.missing() {
            // Assumptions tell it, too.
            let _ = note(&format!("{node} does not tell {missing}"));
        }
        let measured = parameters(&measured, told);
        given.add_measured(node, &measured)?;
    }
    let question = Question::of(&mut given)?;
    let mut report = question.report().map_err(|invalid| refused(&invalid))?;
    given.tell(&mut report);
    options.shown.show("What a site saves", &report)?;
    Ok(())
}

/// What was measured of a site, or of one with as many members as were told.
fn parameters(measured: &Measured, members_told: Option<f64>) -> Parameters {
    let members = members_told.or(measured.members);
    let shared = measured.requests_per_fetch.zip(members);
    Parameters {
        members,
        round_trip_ms: measured.round_trip_ms,
        sharing: shared.map(|(requests, members)| requests.min(members)),
        ..Parameters::default()
    }
}

#[cfg(test)]
mod tests;
