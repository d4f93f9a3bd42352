//! How an answer is shown: text, JSON, a page, pictures.

use crate::command::failure::Failure;
use crate::command::print::note;
use crate::command::print::{say, say_json};
use crate::report::{Report, html, svg, text};
use clap::Args;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// What all questions are told beside their parameters.
#[derive(Args, Debug)]
pub(super) struct Shown {
    /// Read parameters from a TOML file: a table of the question's name, with the flags as keys, _ for -; a flag is believed before it
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print the answer, tables and points of all curves as JSON; a cell has its text and, if that is a number, its value and unit, times in s, sizes in bytes, parts in %: jq '.sections[0].tables[0].rows[][1].value'
    #[arg(long)]
    json: bool,
    /// Write the answer with its charts as one page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write each chart as a picture
    #[arg(long, value_name = "DIRECTORY")]
    svg: Option<PathBuf>,
}

impl Shown {
    /// Where parameters are read from.
    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Shows it.
    pub(super) fn show(&self, title: &str, report: &Report) -> Result<(), Failure> {
        if let Some(path) = &self.html {
            write(path, &html(title, report))?;
        }
        if let Some(directory) = &self.svg {
            pictures(report, directory)?;
        }
        if self.json {
            return say_json(report);
        }
        say(text(report).trim_end())?;
        let is_drawn = self.html.is_some() || self.svg.is_some();
        if !is_drawn
            && report
                .sections
                .iter()
                .any(|section| !section.charts.is_empty())
        {
            // Whether anybody reads the hint does not matter.
            let _ = note("\n--html FILE shows this with charts.");
        }
        Ok(())
    }
}

/// Writes each chart of a report under its name.
pub(super) fn pictures(report: &Report, directory: &Path) -> Result<(), Failure> {
    make_directory(directory)?;
    for chart in report.sections.iter().flat_map(|section| &section.charts) {
        write(&directory.join(format!("{}.svg", chart.name)), &svg(chart))?;
    }
    Ok(())
}

/// Makes a directory, unless it is there.
pub(super) fn make_directory(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::new(
            format!("{} is a file", directory.display()),
            "name a directory, or one that can be made",
        ),
        _ => Failure::file(directory, &error),
    })
}

/// Writes a file.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    match (error.kind(), parent) {
        (ErrorKind::IsADirectory, _) => Failure::new(
            format!("{} is a directory", path.display()),
            "name a file in it",
        ),
        (ErrorKind::NotFound, Some(parent)) if !parent.exists() => Failure::new(
            format!(
                "{}: there is no directory {}",
                path.display(),
                parent.display()
            ),
            "make it first, or name another",
        ),
        _ => Failure::file(path, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_cannot_be_written_is_told_what_is_in_its_way() {
        let dir = tempfile::tempdir().expect("a directory");
        let told = |path: &Path| write(path, "x").expect_err("refused").to_string();
        let directory = told(dir.path());
        assert!(
            directory.contains("is a directory\n  -> name a file in it"),
            "{directory}"
        );
        let missing = told(&dir.path().join("none/x.html"));
        assert!(missing.contains("there is no directory"), "{missing}");
        assert!(write(&dir.path().join("x.html"), "x").is_ok());
    }
}
