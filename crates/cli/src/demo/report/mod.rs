//! The figures as a table, as a page with charts, and raw.

mod chart;
mod html;
mod table;

use super::figures::Figures;
use crate::failure::Failure;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use table::render as as_table;

/// Writes `figures.json` and `report.html`; gives the latter's path.
pub(crate) fn write(figures: &Figures, out: &Path) -> Result<PathBuf, Failure> {
    let raw = out.join("figures.json");
    let json = serde_json::to_vec_pretty(figures)
        .map_err(|error| Failure::new(format!("the figures cannot be written: {error}"), ""))?;
    fs::write(&raw, json).map_err(|error| Failure::file(&raw, &error))?;
    let page = out.join("report.html");
    fs::write(&page, html::render(figures)?).map_err(|error| Failure::file(&page, &error))?;
    Ok(page)
}

/// The figures for a program, with whether all of them are as they should be, and the path of the page.
pub(crate) fn as_json(figures: &Figures, page: &Path) -> impl Serialize {
    #[derive(Serialize)]
    struct Document {
        good: bool,
        report: String,
        #[serde(flatten)]
        figures: Figures,
    }
    Document {
        good: figures.is_good(),
        report: page.display().to_string(),
        figures: figures.clone(),
    }
}

#[cfg(test)]
mod tests;
