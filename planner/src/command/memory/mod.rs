//! `thorp plan memory`: how many memory servers serve how many active machines.

mod answer;
mod kinds;
mod limits;
mod mix;
mod question;
mod simulated;
mod tables;

use crate::Invalid;
use crate::command::failure::Failure;
use crate::command::given::{Given, refused};
use crate::command::shown::Shown;
use crate::report::Report;
use clap::Args;
use kinds::Kinds;
use question::Question;
use serde::Serialize;

/// What `thorp plan memory` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    #[command(flatten)]
    parameters: Parameters,
    /// Cross-check the answer by a simulation, with confidence intervals
    #[arg(long)]
    simulate: bool,
    #[command(flatten)]
    shown: Shown,
}

const HELP: &str = "\
Examples:
  thorp plan memory --machines 24 --servers 3
  thorp plan memory --machines 60 --servers 2 --service-us 20 --disk-ms 0.1
  thorp plan memory --machines 18 --servers 11 --hottest-share 0.75 --simulate
  thorp plan memory --machines 40 --servers 2 --local-servers 4 --local-share 0.2
  thorp plan memory --mix 16:5,8:1
  thorp plan memory --mix 16:5,8:1 --routing 0.5,0.25,0.25/0,0.5,0.5

In a file, --routing can be a matrix: routing = [[0.5, 0.25, 0.25], [0, 0.5, 0.5]].";

#[derive(Args, Debug, Default, Serialize)]
struct Parameters {
    /// Active machines: those that page to the memory of others
    #[arg(long, value_name = "N")]
    machines: Option<f64>,
    /// Memory servers that do nothing else
    #[arg(long, value_name = "N")]
    servers: Option<f64>,
    /// Time from a page's arrival until a machine wants the next
    #[arg(long, value_name = "MS")]
    think_ms: Option<f64>,
    /// Instead of it: pages a second that a machine would want if it never waited
    #[arg(long, value_name = "N", conflicts_with = "think_ms")]
    requests_per_second: Option<f64>,
    /// Instead of both: machines of several kinds, how many of each, and the time from a page until the next (16:5,8:1: 16 machines with 5 ms, 8 with 1 ms)
    #[arg(long, value_name = "N:MS,…", conflicts_with_all = ["machines", "think_ms", "requests_per_second"])]
    mix: Option<String>,
    /// How likely a request goes to each server, memory servers before local ones: a row that sums to 1 for each kind of machines, or one for all
    #[arg(long, value_name = "P,…/P,…", conflicts_with_all = ["hottest_share", "local_share"])]
    routing: Option<String>,
    /// Time that a server takes to send a page
    #[arg(long, value_name = "US")]
    service_us: Option<f64>,
    /// Time that it takes to store one
    #[arg(long, value_name = "US")]
    putpage_us: Option<f64>,
    /// Pages sent to the servers for each that is fetched
    #[arg(long, value_name = "N")]
    putpages_per_getpage: Option<f64>,
    /// The part of what the servers are asked that goes to one of them (0.75: three of four requests)
    #[arg(long, value_name = "PART")]
    hottest_share: Option<f64>,
    /// Servers that have work of their own
    #[arg(long, value_name = "N")]
    local_servers: Option<f64>,
    /// The part of all requests that goes to these
    #[arg(long, value_name = "PART")]
    local_share: Option<f64>,
    /// The part of its time that such a server may lose
    #[arg(long, value_name = "PART")]
    local_busy_max: Option<f64>,
    /// Time for a page from a machine's own disk
    #[arg(long, value_name = "MS")]
    disk_ms: Option<f64>,
    /// How much longer work may take because requests wait (0.05: 5 %)
    #[arg(long, value_name = "PART")]
    slowdown_max: Option<f64>,
}

/// Answers.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let mut given = Given::new::<Options, _>(&options.parameters, options.shown.file(), "memory")?;
    let question = Question::of(&mut given).map_err(|invalid| refused(&invalid))?;
    let report = question.report(options.simulate);
    let mut report = report.map_err(|invalid| refused(&invalid))?;
    given.tell(&mut report);
    report.assumptions.extend(question::fixed());
    options.shown.show("How many memory servers", &report)
}

impl Question {
    fn report(&self, simulate: bool) -> Result<Report, Invalid> {
        let network = match &self.mix {
            Some(mix) => mix.network(&self.cluster)?,
            None => self.cluster.network()?,
        };
        let mut report = match &self.mix {
            Some(mix) => Kinds {
                question: self,
                network: &network,
                kinds: &mix.kinds,
                is_routed: mix.is_routed(),
            }
            .report()?,
            None => self.report_of_alike()?,
        };
        if simulate {
            let checked = self.simulated(&network)?;
            if let Some(disagrees) = checked.disagrees {
                report.answer = format!("{disagrees} {}", report.answer);
            }
            report.sections.push(checked.section);
        }
        Ok(report)
    }

    fn report_of_alike(&self) -> Result<Report, Invalid> {
        Ok(Report {
            answer: self.answer()?,
            sections: vec![self.now()?, self.by_servers()?, self.by_machines()?],
            assumptions: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests;
