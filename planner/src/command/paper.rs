//! `thorp plan paper`: what the models make of the papers' own parameters.

use super::shown::{make_directory, pictures, write};
use crate::command::failure::Failure;
use crate::command::print::note;
use crate::command::print::say;
use crate::report::{Report, Section, markdown};
use clap::Args;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// What `thorp plan paper` is told.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Where planning.md goes, and its charts in charts/planning; without it the text is printed
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Where traces/ is, for what is replayed; what is missing there is left out
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
}

/// Computes everything.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    // What cannot be read or written later is told before anything is computed.
    if let Some(data) = &options.data {
        fs::read_dir(data).map_err(|error| Failure::file(data, &error))?;
    }
    if let Some(directory) = &options.out {
        make_directory(&directory.join(CHARTS))?;
    }
    let mut report = Report {
        answer: HEAD.to_owned(),
        ..Report::default()
    };
    for (name, sections) in PARTS {
        // Whether anybody reads how far it is does not matter.
        let _ = note(name);
        report.sections.extend(sections());
    }
    // Nor here.
    let _ = note("replayed traces (thesis, sections 2.1, 3.4.3 and 3.6)");
    let data = options.data.as_deref();
    report.sections.extend(crate::replay::paper(data));
    report
        .sections
        .extend(crate::prefetch::paper_of_traces(data));
    warn_of_what_is_left_out(&report);
    let Some(directory) = &options.out else {
        return say(markdown(&report, CHARTS).trim_end());
    };
    pictures(&report, &directory.join(CHARTS))?;
    let path = directory.join("planning.md");
    write(&path, &markdown(&report, CHARTS))?;
    say(&format!(
        "{} and {}",
        path.display(),
        directory.join(CHARTS).display()
    ))
}

/// Parts that lack the same are told together.
fn warn_of_what_is_left_out(report: &Report) {
    let mut left_out: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for section in &report.sections {
        if let Some(why) = section.why_left_out() {
            left_out.entry(why).or_default().push(&section.heading);
        }
    }
    for (why, headings) in left_out {
        let headings = headings.join("; ");
        // The page says it, too.
        let _ = note(&format!(
            "warning: left out: {headings}\n  {why}\n  -> name a directory with --data in which traces/ holds them"
        ));
    }
}

const HEAD: &str = "# Planning\n\nWhat the models behind `thorp plan` make of the parameters of the papers that they come from, beside what these say. `make planning` writes this page anew.";

const CHARTS: &str = "charts/planning";

type Part = (&'static str, fn() -> Vec<Section>);

const PARTS: &[Part] = &[
    ("sites (BuddyCache, section 6)", crate::site::paper),
    ("web caches (thesis, chapter 5)", crate::web::paper),
    ("memory servers (thesis, chapter 3)", crate::memory::paper),
    ("prefetching (thesis, chapter 4)", crate::prefetch::paper),
];
