//! The answer, checked by simulation.

use super::answer::time;
use super::kinds::name;
use super::mix::Alike;
use super::question::Question;
use crate::text::note;
use std::time::{Duration, Instant};
use thorp_plan::Invalid;
use thorp_plan::memory::Network;
use thorp_plan::memory::simulate::{Estimate, Experiment, Putpages, Service};
use thorp_plan::report::{Section, Table};

impl Question {
    pub(super) fn simulated(&self, network: &Network) -> Result<Section, Invalid> {
        if network.machines() > MACHINES_MAX {
            let key = match self.mix {
                Some(_) => "mix",
                None => "machines",
            };
            let why = format!("cannot be above {MACHINES_MAX} with --simulate, or it takes hours");
            return Err(Invalid::new(key, why));
        }
        if self.cluster.putpages_per_getpage > PUTPAGES_MAX {
            let why = format!("cannot be above {PUTPAGES_MAX} with --simulate, or it takes hours");
            return Err(Invalid::new("putpages_per_getpage", why));
        }
        let solution = network.solve_quickly()?;
        let usual = Experiment::default();
        let mut table = Table::new(
            "Simulated: time for a page",
            &["what is simulated", "model", "simulated", "the model says"],
        );
        for (words, putpages, service) in CASES {
            let experiment = Experiment {
                putpages,
                service,
                ..usual
            };
            let mut progress = Progress::new(words, usual.runs);
            let seen = experiment.run(network, |run| progress.tell(run))?;
            table.row(compared(
                words,
                solution.response_s(),
                seen.response_of_all_s,
            ));
            for (number, kind) in self.several_kinds().iter().enumerate() {
                let model_s = solution.classes[number].response_s;
                let of = format!("{words}: {}", name(kind));
                table.row(compared(&of, model_s, seen.response_s[number]));
            }
        }
        let Experiment { runs, getpages, .. } = usual;
        Ok(Section {
            words: vec![format!(
                "{runs} independent runs of about {getpages} pages each; ± is half of the {:.0} % confidence interval.",
                usual.confidence * 100.0
            )],
            tables: vec![table],
            ..Section::default()
        })
    }
}

impl Question {
    /// None if all machines are alike.
    fn several_kinds(&self) -> &[Alike] {
        match &self.mix {
            Some(mix) if mix.kinds.len() > 1 => &mix.kinds,
            _ => &[],
        }
    }
}

fn compared(words: &str, model_s: f64, seen: Estimate) -> Vec<String> {
    let off = match seen.covers(model_s) {
        true => "the same, within the interval".to_owned(),
        false => format!("{:+.1} %", seen.off(model_s) * 100.0),
    };
    vec![
        words.into(),
        time(model_s),
        format!("{} ± {}", time(seen.mean), time(seen.half_width)),
        off,
    ]
}

const CASES: [(&str, Putpages, Service); 3] = [
    (
        "what the model assumes",
        Putpages::Independent,
        Service::Exponential,
    ),
    (
        "putpages leave with getpages",
        Putpages::WithGetpages,
        Service::Exponential,
    ),
    (
        "and every page takes the same to serve",
        Putpages::WithGetpages,
        Service::Fixed,
    ),
];

const MACHINES_MAX: u32 = 10_000;

const PUTPAGES_MAX: f64 = 100.0;

/// Tells how far a simulation is, if it takes long.
struct Progress {
    words: &'static str,
    runs: u32,
    told: Instant,
}

impl Progress {
    fn new(words: &'static str, runs: u32) -> Self {
        Progress {
            words,
            runs,
            told: Instant::now(),
        }
    }

    fn tell(&mut self, run: u32) {
        if self.told.elapsed() < EVERY || run == self.runs {
            return;
        }
        self.told = Instant::now();
        // Whether anybody reads how far it is does not matter.
        let _ = note(&format!("{}: {run} of {} runs", self.words, self.runs));
    }
}

const EVERY: Duration = Duration::from_secs(2);
