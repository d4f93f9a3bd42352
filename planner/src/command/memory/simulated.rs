//! The answer, checked by simulation.

use super::answer::{time, took};
use super::kinds::name;
use super::mix::Alike;
use super::question::Question;
use crate::Invalid;
use crate::command::print::note;
use crate::memory::Network;
use crate::memory::simulate::{Estimate, Experiment, Putpages, Service};
use crate::report::{Cell, Section, Table};
use std::time::{Duration, Instant};

impl Question {
    pub(super) fn simulated(&self, network: &Network) -> Result<Checked, Invalid> {
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
        let mut farthest = None;
        for (words, putpages, service) in CASES {
            let experiment = Experiment {
                putpages,
                service,
                ..usual
            };
            let mut progress = Progress::new(words, usual.runs);
            let seen = experiment.run(network, |run| progress.tell(run))?;
            let (model_s, all) = (solution.response_s(), seen.response_of_all_s);
            table.cells(compared(words, model_s, all));
            farthest = farther(farthest, words, model_s, all);
            for (number, kind) in self.several_kinds().iter().enumerate() {
                let model_s = solution.classes[number].response_s;
                let of = format!("{words}: {}", name(kind));
                table.cells(compared(&of, model_s, seen.response_s[number]));
            }
        }
        let Experiment { runs, getpages, .. } = usual;
        let section = Section {
            words: vec![format!(
                "{runs} independent runs of about {getpages} pages each; ± is half of the {:.0} % confidence interval.",
                usual.confidence * 100.0
            )],
            tables: vec![table],
            ..Section::default()
        };
        Ok(Checked {
            section,
            disagrees: farthest.map(|(words, off)| disagrees(words, off)),
        })
    }
}

/// What a simulation says of the model.
pub(super) struct Checked {
    pub(super) section: Section,
    /// To be said before all else.
    pub(super) disagrees: Option<String>,
}

/// What is simulated, and how far the model is from it.
type Off = (&'static str, f64);

/// The one that the model is farthest from; none where all intervals have it.
fn farther(so_far: Option<Off>, words: &'static str, model_s: f64, seen: Estimate) -> Option<Off> {
    let off = seen.off(model_s);
    let is_farther = so_far.is_none_or(|(_, before)| off.abs() > before.abs());
    match !seen.covers(model_s) && is_farther {
        true => Some((words, off)),
        false => so_far,
    }
}

fn disagrees(words: &str, off: f64) -> String {
    let (more, means) = match off > 0.0 {
        true => (
            "more",
            "what follows is on the safe side, and fewer servers may be enough",
        ),
        false => (
            "less",
            "what follows is too hopeful, and more servers may be needed",
        ),
    };
    format!(
        "The simulation does not agree with the model, which says that a page takes {:.1} % {more} than is seen where it is farthest off ({words}): {means}.",
        off.abs() * 100.0
    )
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

fn compared(words: &str, model_s: f64, seen: Estimate) -> Vec<Cell> {
    let off = seen.off(model_s);
    let says = match seen.covers(model_s) {
        true => "the same, within the interval".into(),
        false => Cell::part(format!("{:+.1} %", off * 100.0), off),
    };
    vec![
        words.into(),
        took(model_s),
        format!("{} ± {}", time(seen.mean), time(seen.half_width)).into(),
        says,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_case_that_is_farthest_off_is_told_with_what_it_means() {
        let seen = Estimate {
            mean: 1.0,
            half_width: 0.1,
        };
        assert_eq!(farther(None, "a", 1.05, seen), None);
        let off = farther(None, "a", 1.2, seen);
        let off = farther(off, "b", 0.5, seen);
        let (words, off) = farther(off, "c", 1.3, seen).expect("far off");
        assert_eq!(words, "b");
        assert!(disagrees(words, off).contains("50.0 % less"));
        assert!(disagrees(words, off).contains("more servers may be needed"));
        assert!(disagrees("c", 0.23).contains("fewer servers may be enough"));
    }
}
