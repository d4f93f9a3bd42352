//! `thorp demo`: a village on this machine, at work, and checked.

mod building;
mod checks;
mod consistency;
mod figures;
pub(crate) mod member;
mod oo7;
mod process;
mod progress;
mod reader;
mod report;
mod rights;
pub(crate) mod village;
mod wire;
mod work;

use crate::commands::{say, say_json};
use crate::failure::{Code, Failure};
use crate::text;
use building::Job;
use checks::Checks;
use clap::Args;
pub(crate) use figures::Link;
use figures::{Check, Figures};
use process::Interrupted;
use progress::Progress;
use reader::Reader;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
pub(crate) use village::READY;
use village::Village;

/// What `thorp demo` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// A real IFC model to work on; without it a building is made up
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Where report, figures, exports and logs go
    #[arg(long, value_name = "DIR", default_value = "demo-out")]
    out: PathBuf,
    /// Round trip between sites and home, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 40, value_parser = clap::value_parser!(u64).range(0..=2000))]
    rtt_ms: u64,
    /// Fewer edits, and OO7 with 5 members only; with --consistency shorter phases
    #[arg(long)]
    quick: bool,
    /// A Python that has ifcopenshell (default: .venv/bin/python, else python3)
    #[arg(long, value_name = "FILE", env = "THORP_PYTHON")]
    python: Option<PathBuf>,
    /// Show rights instead: who is refused what, and by whom
    #[arg(long, conflicts_with_all = ["model", "quick"])]
    rights: bool,
    /// Show consistency instead: a site that is cut off goes on sharing, and hard reads elsewhere wait for its lease
    #[arg(long, conflicts_with_all = ["model", "rights"])]
    consistency: bool,
    /// Keep the home's directory and the sockets, and tell where they are
    #[arg(long)]
    keep: bool,
    /// Print JSON at the end: what was measured, and what had to hold
    #[arg(long)]
    json: bool,
}

/// Runs the demo: progress to standard error, results to standard output.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let interrupted = Interrupted::default();
    listen_for_signals(&interrupted)?;
    let out = prepare(&options.out)?;
    let logs = out.join("logs");
    if options.rights {
        let checks = in_own_directory(options.keep, |dir| {
            let mut checks = Checks::new(!options.json);
            rights::run(dir, &logs, &interrupted, &mut checks)?;
            Ok(checks.all)
        })?;
        if options.json {
            let good = figures::all_good(&checks);
            say_json(&serde_json::json!({"good": good, "checks": checks}))?;
        }
        return verdict(&checks, None, (&logs, options.json));
    }
    if options.consistency {
        return show_consistency(options, &logs, &interrupted);
    }
    let reader = Reader::find(options.python.as_deref(), &logs, &interrupted)?;
    let floors = if options.quick { 3 } else { 6 };
    let original = building::original(options.model.as_deref(), floors, &out)?;
    let job = Job {
        original: &original,
        name: name_of(options.model.as_deref()),
        members_per_site: 3,
        edits: if options.quick { 10 } else { 30 },
        out: &out,
    };
    let figures = in_own_directory(options.keep, |dir| {
        let village = Village::new(dir, &logs, options.rtt_ms, &interrupted)?;
        work(options, &job, &village, &reader)
    })?;
    let page = report::write(&figures, &out)?;
    match options.json {
        true => say_json(&report::as_json(&figures, &page))?,
        false => {
            say(&format!("\n{}\n", report::as_table(&figures)))?;
            say(&format!("Report: {}", page.display()))?;
        }
    }
    let elapsed = Some(figures.elapsed_s);
    verdict(&figures.checks, elapsed, (&logs, options.json))
}

fn show_consistency(
    options: &Options,
    logs: &Path,
    interrupted: &Interrupted,
) -> Result<(), Failure> {
    let settings = consistency::Settings {
        round_trip_ms: options.rtt_ms,
        quick: options.quick,
    };
    let started = Instant::now();
    let (found, checks) = in_own_directory(options.keep, |dir| {
        let mut checks = Checks::new(!options.json);
        let found = consistency::run((dir, logs), settings, interrupted, &mut checks)?;
        Ok((found, checks.all))
    })?;
    let elapsed_s = started.elapsed().as_secs_f64();
    if options.json {
        say_json(&serde_json::json!({
            "good": figures::all_good(&checks),
            "version": env!("CARGO_PKG_VERSION"),
            "round_trip_ms": options.rtt_ms,
            "lease_ms": found.lease_ms,
            "elapsed_s": elapsed_s,
            "phases": found.phases,
            "checks": checks,
        }))?;
    }
    verdict(&checks, Some(elapsed_s), (logs, options.json))
}

/// Runs a village in a directory of its own, which goes in the end.
fn in_own_directory<T>(
    keep: bool,
    work: impl FnOnce(&Path) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let dir = tempfile::Builder::new()
        .prefix("thorp-")
        .tempdir()
        .map_err(|error| Failure::file(&std::env::temp_dir(), &error))?;
    let result = work(dir.path());
    if keep {
        let kept = dir.keep();
        let _ = text::note(&format!("kept: {}", kept.display()));
    }
    result
}

fn work(
    options: &Options,
    job: &Job<'_>,
    village: &Village,
    reader: &Reader,
) -> Result<Figures, Failure> {
    let groups: &[usize] = if options.quick { &[5] } else { &[3, 5] };
    let mut progress = Progress::new(1 + building::STEPS + oo7::steps(groups));
    let mut figures = Figures {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        processors: std::thread::available_parallelism().map_or(0, usize::from),
        round_trip_ms: options.rtt_ms,
        ..Figures::default()
    };
    progress.step("the home starts");
    let mut far: Vec<String> = building::SITES.map(ToOwned::to_owned).to_vec();
    far.extend(oo7::far(groups));
    let home = village.home(&far)?;
    building::run(village, &home, job, reader, &mut figures, &mut progress)?;
    oo7::run(village, &home, groups, &mut figures, &mut progress)?;
    home.stop()?;
    figures.elapsed_s = progress.elapsed_s();
    Ok(figures)
}

fn name_of(model: Option<&Path>) -> String {
    match model.and_then(Path::file_name) {
        Some(name) => name.to_string_lossy().into_owned(),
        None => "a building made up".to_owned(),
    }
}

/// The last line, or the failure. A program has the checks already.
fn verdict(
    checks: &[Check],
    elapsed_s: Option<f64>,
    (logs, json): (&Path, bool),
) -> Result<(), Failure> {
    if figures::all_good(checks) {
        let took = elapsed_s.map_or_else(String::new, |s| format!(" ({s:.0} s)"));
        return match json {
            true => Ok(()),
            false => say(&format!("All checks hold{took}.")),
        };
    }
    let wrong = checks.iter().filter(|check| !check.good).count();
    let what = format!("{wrong} of {} checks do not hold", checks.len());
    let todo = format!(
        "they are marked WRONG above; logs are in {}",
        logs.display()
    );
    Err(Failure::new(what, todo).with(Code::Wrong))
}

/// An absolute path, since members get it too; what an earlier run has left there is replaced.
fn prepare(out: &Path) -> Result<PathBuf, Failure> {
    let logs = out.join("logs");
    match fs::remove_dir_all(&logs) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Failure::file(&logs, &error));
        }
        _ => {}
    }
    fs::create_dir_all(&logs).map_err(|error| Failure::file(&logs, &error))?;
    out.canonicalize()
        .map_err(|error| Failure::file(out, &error))
}

/// The first signal ends the demo in order: every wait asks. The second ends it at once, and the children with it.
fn listen_for_signals(interrupted: &Interrupted) -> Result<(), Failure> {
    let interrupted = interrupted.clone();
    crate::commands::signals::on_each(move || {
        if interrupted.ask().is_err() {
            std::process::exit(130);
        }
        let _ = text::note("\nstopping");
        interrupted.set();
    })
}

const HELP: &str = "\
Starts a home, two sites and members as processes of their own, with a wide-area link played \
between them. Members of both sites edit one building model together; then OO7 runs with a site \
and without. Exit code 3 if any check fails.

Examples:
  thorp demo --rights                  # some seconds
  thorp demo --consistency             # half a minute
  thorp demo --quick --json            # needs a Python that has ifcopenshell";
