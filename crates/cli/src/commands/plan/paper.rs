//! `thorp plan paper`: what the models make of the papers' own parameters.

use super::shown::{pictures, write};
use crate::commands::say;
use crate::failure::Failure;
use crate::text::note;
use clap::Args;
use std::path::PathBuf;
use thorp_plan::report::{Report, Section, markdown};

/// What `thorp plan paper` is told.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Where planning.md goes, and its charts in charts/planning; without it the text is printed
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Where traces/ is, for what is replayed: without it, that part says that it is missing
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
}

/// Computes everything.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
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
    report.sections.extend(thorp_plan::replay::paper(data));
    report
        .sections
        .extend(thorp_plan::prefetch::paper_of_traces(data));
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

const HEAD: &str = "# Planning\n\nWhat the models behind `thorp plan` make of the parameters of the papers that they come from, beside what these say. `make planning` writes this page anew.";

const CHARTS: &str = "charts/planning";

type Part = (&'static str, fn() -> Vec<Section>);

const PARTS: &[Part] = &[
    ("sites (BuddyCache, section 6)", thorp_plan::site::paper),
    ("web caches (thesis, chapter 5)", thorp_plan::web::paper),
    (
        "memory servers (thesis, chapter 3)",
        thorp_plan::memory::paper,
    ),
    (
        "prefetching (thesis, chapter 4)",
        thorp_plan::prefetch::paper,
    ),
];
