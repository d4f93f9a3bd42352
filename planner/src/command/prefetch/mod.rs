//! `thorp plan prefetch`: what it saves to fetch pages before they are needed.

mod answer;

use crate::Invalid;
use crate::command::failure::{Code, Failure};
use crate::command::given::{Given, Usual, refused};
use crate::command::print::note;
use crate::command::shown::Shown;
use crate::command::traces::{ReadingOptions, about, read, warning};
use crate::prefetch::{
    Comparison, Hierarchy, Hinting, Job, Pattern, Policy, REFERENCES_MAX, limit_us, simulate,
};
use crate::report::{Assumption, Report, Section, Series, Style, Table};
use crate::trace::Trace;
use answer::{POLICIES, Told, answer, chart, policies_section, section, took};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// What `thorp plan prefetch` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
// How a trace is read says nothing without one.
#[command(
    mut_arg("format", |arg| arg.requires("trace")),
    mut_arg("columns", |arg| arg.requires("trace")),
    mut_arg("requests", |arg| arg.requires("trace"))
)]
pub(crate) struct Options {
    /// What was read, in order, instead of a pattern; several files are put together by time if all of them have times, else one after the other
    trace: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingOptions,
    #[command(flatten)]
    parameters: Parameters,
    #[command(flatten)]
    shown: Shown,
}

const HELP: &str = "\
One process reads pages: from its node's memory, from the memory of servers, from disks. What it will read is told ahead (hinted), in whole or in part; a trace is hinted in hindsight.

Examples:
  thorp plan prefetch
  thorp plan prefetch --pattern random --rounds 1 --server-disks 8
  thorp plan prefetch w106.oracleGeneral.zst --local-pages 20000
  thorp plan prefetch --hinted 0.7 --wrong 0.1 --html plan.html";

#[derive(Args, Debug, Default, Serialize)]
struct Parameters {
    /// What is read: hotcold, random, reverse or sequential
    #[arg(long, value_name = "NAME")]
    pattern: Option<String>,
    /// How often the same is read
    #[arg(long, value_name = "N")]
    rounds: Option<f64>,
    /// Pages in the memory of the process's node
    #[arg(long, value_name = "N")]
    local_pages: Option<f64>,
    /// Pages in the memory of servers
    #[arg(long, value_name = "N")]
    global_pages: Option<f64>,
    /// Disks of servers; 0: only the node's own reads
    #[arg(long, value_name = "N")]
    server_disks: Option<f64>,
    /// What the process computes between two pages
    #[arg(long, value_name = "US")]
    compute_us: Option<f64>,
    /// A page from a server's memory
    #[arg(long, value_name = "US")]
    global_fetch_us: Option<f64>,
    /// A page from disk
    #[arg(long, value_name = "US")]
    disk_fetch_us: Option<f64>,
    /// What issuing a prefetch costs the process while it computes
    #[arg(long, value_name = "US")]
    issue_us: Option<f64>,
    /// The part of what is read that is told ahead, 0 to 1
    #[arg(long, value_name = "PART")]
    hinted: Option<f64>,
    /// The part of the hints that are wrong, 0 to 1: each names a page that is never read
    #[arg(long, value_name = "PART")]
    wrong: Option<f64>,
    /// Another seed draws other pages and hints
    #[arg(long, value_name = "N")]
    seed: Option<f64>,
}

/// Answers.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let mut given =
        Given::new::<Options, _>(&options.parameters, options.shown.file(), "prefetch")?;
    let question = Question::of(&mut given, options)?;
    let mut report = question.report().map_err(|invalid| refused(&invalid))?;
    report.answer.insert_str(0, &question.warning);
    report.assumptions = question.about;
    given.tell(&mut report);
    report.assumptions.extend(question.in_vain);
    options.shown.show("What prefetching saves", &report)
}

struct Question {
    hierarchy: Hierarchy,
    pages: Vec<u32>,
    hinting: Hinting,
    is_recorded: bool,
    /// What a trace tells of itself.
    about: Vec<Assumption>,
    /// What is to be known before the answer; mostly nothing.
    warning: String,
    /// What was told and changes nothing.
    in_vain: Vec<Assumption>,
}

impl Question {
    fn of(given: &mut Given, options: &Options) -> Result<Self, Failure> {
        let seed = Counts(given).count(("seed", "seed of what is drawn", "", 1999, "any"))?;
        let (pages, about, warning, is_drawn) = match options.trace.is_empty() {
            true => {
                let pattern = pattern(given, seed)?;
                let pages = pattern.pages().map_err(|invalid| refused(&invalid))?;
                (pages, Vec::new(), None, pattern.is_drawn())
            }
            false => {
                let trace = recorded(given, options)?;
                let (about, warning) = (about(&trace), warning(&trace));
                (trace.pages, about, warning, false)
            }
        };
        let is_recorded = !options.trace.is_empty();
        let hierarchy = hierarchy(given, is_recorded.then(|| footprint(&pages)))?;
        let mut part = |key, words, value, why| given.number_or(key, words, "", value, why);
        let hinting = Hinting {
            hinted: part(
                "hinted",
                "part of what is read that is told ahead",
                1.0,
                "all",
            ),
            wrong: part(
                "wrong",
                "part of the hints that are wrong: each names a page that is never read",
                0.0,
                "none",
            ),
            seed,
        };
        Ok(Question {
            hierarchy,
            in_vain: in_vain(given, &hinting, is_drawn),
            pages,
            hinting,
            is_recorded,
            about,
            warning: warning.unwrap_or_default(),
        })
    }

    fn job(&self) -> Job<'_> {
        Job {
            hinting: self.hinting,
            ..Job::hinted(&self.pages)
        }
    }

    fn report(&self) -> Result<Report, Invalid> {
        self.announce();
        let comparison = self.comparison()?;
        let told = Told {
            hinting: self.hinting,
            is_recorded: self.is_recorded,
            without_servers_disks_us: self.without_servers_disks_us()?,
        };
        let mut sections = vec![policies_section(&comparison)];
        if self.pages.len() <= SWEPT_MAX {
            sections.push(self.by_memory()?);
            sections.push(self.by_disks()?);
        } else {
            sections.push(Section {
                words: vec![format!(
                    "Of more than {SWEPT_MAX} requests it is not tried what other memories and disks would do: --requests {SWEPT_MAX} takes the first ones."
                )],
                ..Section::default()
            });
        }
        Ok(Report {
            answer: answer(&comparison, &told),
            sections,
            assumptions: Vec::new(),
        })
    }

    fn comparison(&self) -> Result<Comparison, Invalid> {
        let mut outcomes = Vec::new();
        for (at, (policy, _)) in POLICIES.iter().enumerate() {
            let of = POLICIES.len();
            self.progress(&format!("policy {} of {of}: {}", at + 1, policy.name));
            let outcome = simulate(&self.hierarchy, &[self.job()], policy)?;
            outcomes.push((*policy, outcome[0]));
        }
        self.progress("what no schedule is below");
        let limit_us = limit_us(&self.hierarchy, &self.job())?;
        Ok(Comparison { limit_us, outcomes })
    }

    /// What prefetching takes, at best, if servers have memory and no disks; `None` if they have none anyhow.
    fn without_servers_disks_us(&self) -> Result<Option<u64>, Invalid> {
        if self.hierarchy.server_disks == 0 {
            return Ok(None);
        }
        let hierarchy = Hierarchy {
            server_disks: 0,
            ..self.hierarchy
        };
        let mut least_us = u64::MAX;
        for policy in WITHOUT_DISKS {
            self.progress(&format!("without servers' disks: {}", policy.name));
            let outcome = simulate(&hierarchy, &[self.job()], &policy)?;
            least_us = least_us.min(outcome[0].elapsed_us);
        }
        Ok(Some(least_us))
    }

    /// Tells who waits long how much there is to do.
    fn announce(&self) {
        let mut runs = POLICIES.len();
        if self.hierarchy.server_disks > 0 {
            runs += WITHOUT_DISKS.len();
        }
        let also = match self.pages.len() <= SWEPT_MAX {
            true => ", and then other memories and disks",
            false => "",
        };
        self.progress(&format!(
            "{} policies: {} requests in {runs} runs{also}",
            POLICIES.len(),
            self.pages.len() * runs,
        ));
    }

    /// Tells who waits long what for.
    fn progress(&self, what: &str) {
        if self.pages.len() >= LONG {
            // Whether anybody reads it does not matter.
            let _ = note(&format!("{} requests, {what}", self.pages.len()));
        }
    }

    fn by_memory(&self) -> Result<Section, Invalid> {
        let distinct = footprint(&self.pages);
        let given = self.hierarchy.global_pages;
        let sizes = [0, distinct / 4, distinct / 2, distinct, given];
        let at = |global_pages| Hierarchy {
            global_pages,
            ..self.hierarchy
        };
        let (table, curves) = self.sweep("pages in servers' memory", sizes, at)?;
        Ok(section(
            "By memory of servers",
            table,
            chart(
                "prefetch-by-memory",
                "Time by memory of servers",
                "pages in servers' memory",
                curves,
            ),
        ))
    }

    fn by_disks(&self) -> Result<Section, Invalid> {
        let counts = [0, 1, 2, 4, 8, self.hierarchy.server_disks];
        let at = |server_disks| Hierarchy {
            server_disks,
            ..self.hierarchy
        };
        let (table, curves) = self.sweep("disks of servers", counts, at)?;
        Ok(section(
            "By disks of servers",
            table,
            chart(
                "prefetch-by-disks",
                "Time by disks of servers",
                "disks of servers",
                curves,
            ),
        ))
    }

    fn sweep<const N: usize>(
        &self,
        what: &str,
        mut values: [u32; N],
        at: impl Fn(u32) -> Hierarchy,
    ) -> Result<(Table, Vec<Series>), Invalid> {
        values.sort_unstable();
        let mut steps = values.to_vec();
        steps.dedup();
        let names = [
            "without prefetching, s",
            "with it, s",
            "no schedule below, s",
        ];
        let mut table = Table::new("", &[what, names[0], names[1], names[2]]);
        let mut curves = names.map(|name| Series::line(name, Vec::new()));
        curves[2].style = Style::Thin;
        for value in steps {
            self.progress(&format!("{what}: {value}"));
            let hierarchy = at(value);
            let elapsed = |policy| {
                let outcomes = simulate(&hierarchy, &[self.job()], &policy)?;
                Ok::<u64, Invalid>(outcomes[0].elapsed_us)
            };
            let times = [
                elapsed(Policy::DEMAND_LRU)?,
                elapsed(Policy::HYBRID_PAST)?,
                limit_us(&hierarchy, &self.job())?,
            ];
            let mut row = vec![value.to_string().into()];
            row.extend(times.map(took));
            table.cells(row);
            for (curve, time_us) in curves.iter_mut().zip(times) {
                curve.points.push((f64::from(value), time_us as f64 / 1e6));
            }
        }
        Ok((table, curves.to_vec()))
    }
}

/// The policies of [`POLICIES`] that servers' disks work for.
const WITHOUT_DISKS: [Policy; 2] = [Policy::HYBRID, Policy::HYBRID_PAST];

/// More would take a minute.
const SWEPT_MAX: usize = 300_000;

/// So many take seconds.
const LONG: usize = 100_000;

fn footprint(pages: &[u32]) -> u32 {
    pages.iter().max().map_or(0, |&last| last + 1)
}

fn recorded(given: &Given, options: &Options) -> Result<Trace, Failure> {
    let refused = |what: String, todo: &str| Err(Failure::new(what, todo).with(Code::Usage));
    for flag in ["pattern", "rounds"] {
        if given.is_told(flag) {
            let what = format!("--{flag} is for patterns, and a trace is given");
            return refused(what, "leave one of them out");
        }
    }
    read(
        &options.trace,
        &options.reading,
        Some(REFERENCES_MAX as usize),
    )
}

/// What was told, but changes nothing beside what else was.
fn in_vain(given: &Given, hinting: &Hinting, is_pattern_drawn: bool) -> Vec<Assumption> {
    let is_wrong_drawn = hinting.hinted > 0.0 && hinting.wrong > 0.0;
    let is_part_drawn = hinting.hinted > 0.0 && hinting.hinted < 1.0;
    let is_drawn = is_pattern_drawn || is_wrong_drawn || is_part_drawn;
    let reasons = [
        ("wrong", hinting.hinted > 0.0, "nothing is told ahead"),
        ("seed", is_drawn, "nothing is drawn"),
    ];
    reasons
        .into_iter()
        .filter(|(key, counts, _)| !counts && given.is_told(key))
        .map(|(key, _, why)| Assumption::new("without effect", format!("--{key}"), why))
        .collect()
}

fn pattern(given: &mut Given, seed: u64) -> Result<Pattern, Failure> {
    let name = given.word(&Usual {
        key: "pattern",
        words: "what is read",
        unit: "",
        value: "hotcold",
        why: "two thirds of the reads go to a fifth of the pages (Voelker's thesis, 4.4.3)",
    });
    let rounds = Counts(given).count(("rounds", "how often", "", 3, "its cyclic variant"))?;
    let all = Pattern::of_thesis(u32::try_from(rounds).unwrap_or(u32::MAX));
    let named = all.iter().find(|(known, _)| *known == name);
    let Some((_, pattern)) = named else {
        let known = all.map(|(known, _)| known).join(", ");
        let what = format!("--pattern is one of {known}, not {name}");
        return Err(Failure::new(what, "--help tells what each parameter means").with(Code::Usage));
    };
    Ok(Pattern { seed, ..*pattern })
}

/// Memories are parts of all pages if a trace tells how many there are.
fn hierarchy(given: &mut Given, footprint: Option<u32>) -> Result<Hierarchy, Failure> {
    let usual = Hierarchy::of_thesis(4);
    let mut counts = Counts(given);
    let thesis = "32 MB of 8 KB pages in each of five nodes, as of 1998 (the thesis, 4.4.3)";
    let (local, global, memory) = match footprint {
        Some(pages) => (
            (pages / 8).max(1),
            pages / 4,
            "an eighth of all pages here, a quarter there",
        ),
        None => (usual.local_pages, usual.global_pages, thesis),
    };
    let hierarchy = Hierarchy {
        local_pages: counts.small((
            "local_pages",
            "pages in the memory of the node",
            "",
            local.into(),
            memory,
        ))?,
        global_pages: counts.small((
            "global_pages",
            "pages in the memory of servers",
            "",
            global.into(),
            memory,
        ))?,
        server_disks: counts.small((
            "server_disks",
            "disks of servers, beside the node's own",
            "",
            usual.server_disks.into(),
            "one in each (the thesis, 4.4.3)",
        ))?,
        ..times(&mut counts, usual)?
    };
    hierarchy
        .check()
        .map_err(|invalid| impossible(given, &hierarchy, &invalid))?;
    Ok(hierarchy)
}

/// What is refused; of two times that do not fit together, with the one that nobody told.
fn impossible(given: &Given, hierarchy: &Hierarchy, invalid: &Invalid) -> Failure {
    let refusal = refused(invalid);
    if hierarchy.global_fetch_us <= hierarchy.disk_fetch_us {
        return refusal;
    }
    let untold = [
        (
            "global_fetch_us",
            "--global-fetch-us",
            hierarchy.global_fetch_us,
        ),
        ("disk_fetch_us", "--disk-fetch-us", hierarchy.disk_fetch_us),
    ];
    match untold.into_iter().find(|(key, ..)| !given.is_told(key)) {
        None => refusal,
        Some((_, flag, time_us)) => {
            let what = format!(
                "--global-fetch-us {} is above --disk-fetch-us {}: nobody would fetch from there",
                hierarchy.global_fetch_us, hierarchy.disk_fetch_us
            );
            let todo = format!("{flag} is {time_us} by default: tell it, too");
            Failure::new(what, &todo).with(Code::Usage)
        }
    }
}

fn times(counts: &mut Counts<'_>, usual: Hierarchy) -> Result<Hierarchy, Failure> {
    let mut time = |key, words, usual_us, why| counts.count((key, words, "µs", usual_us, why));
    Ok(Hierarchy {
        compute_us: time(
            "compute_us",
            "computing between two pages",
            usual.compute_us,
            "the thesis, 4.4.3",
        )?,
        global_fetch_us: time(
            "global_fetch_us",
            "a page from a server's memory",
            usual.global_fetch_us,
            "1.28 Gb/s of 1998 (the thesis, 4.4.1)",
        )?,
        disk_fetch_us: time(
            "disk_fetch_us",
            "a page from disk",
            usual.disk_fetch_us,
            "a disk of 1998 (the thesis, 4.4.1)",
        )?,
        issue_us: time(
            "issue_us",
            "issuing a prefetch while computing",
            usual.issue_us,
            "another processor does it",
        )?,
        ..usual
    })
}

/// Parameters that are whole numbers.
struct Counts<'a>(&'a mut Given);

type Count<'a> = (&'static str, &'a str, &'static str, u64, &'a str);

impl Counts<'_> {
    fn count(&mut self, (key, words, unit, value, why): Count<'_>) -> Result<u64, Failure> {
        let told = self.0.number(&Usual {
            key,
            words,
            unit,
            value: value as f64,
            why,
        });
        if (0.0..=EXACT_MAX).contains(&told) && told.fract() == 0.0 {
            return Ok(told as u64);
        }
        let told = match told.abs() {
            size if size > EXACT_MAX => format!("{told:e}"),
            _ => told.to_string(),
        };
        let why = format!("must be a whole number from 0 to {EXACT_MAX:e}, not {told}");
        Err(refused(&Invalid::new(key, why)))
    }

    fn small(&mut self, count: Count<'_>) -> Result<u32, Failure> {
        let key = count.0;
        let told = self.count(count)?;
        u32::try_from(told).map_err(|_| {
            let why = format!("must be at most {}, not {told}", u32::MAX);
            refused(&Invalid::new(key, why))
        })
    }
}

/// Up to there every whole number is one of the floating point numbers that flags are read as.
const EXACT_MAX: f64 = 9e15;
