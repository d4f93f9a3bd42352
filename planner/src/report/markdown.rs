//! A report for the project's own pages.

use super::{Report, Section, Table, text};

/// The report as Markdown; its charts are shown from a directory, where [`super::svg`] of each has to be put under its name.
pub fn markdown(report: &Report, charts: &str) -> String {
    let mut parts = vec![report.answer.clone()];
    for section in &report.sections {
        parts.extend(set(section, charts));
    }
    if !report.assumptions.is_empty() {
        parts.push("Assumed:".to_owned());
        parts.push(table(&text::assumptions(report)));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n") + "\n"
}

fn set(section: &Section, charts: &str) -> Vec<String> {
    let mut parts = Vec::new();
    if !section.heading.is_empty() {
        parts.push(format!("## {}", section.heading));
    }
    parts.extend(section.words.iter().cloned());
    for shown in &section.tables {
        if !shown.title.is_empty() {
            parts.push(format!("**{}**", shown.title));
        }
        parts.push(table(shown));
    }
    let shown = section
        .charts
        .iter()
        .map(|chart| format!("![{}]({charts}/{}.svg)", chart.title, chart.name));
    parts.push(shown.collect::<Vec<_>>().join("\n"));
    parts
}

fn table(table: &Table) -> String {
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |", cells.join(" | "))
    };
    let side = |column| match table.is_numbers(column) {
        true => "---:",
        false => "---",
    };
    let sides: Vec<&str> = (0..table.columns.len()).map(side).collect();
    let mut lines = vec![row(&table.columns), format!("| {} |", sides.join(" | "))];
    lines.extend(table.rows.iter().map(|cells| row(cells)));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_charts_are_marked_down() {
        let page = markdown(&super::super::example(), "charts");
        assert!(page.contains("| members | saved | why |\n| ---: | ---: | --- |"));
        assert!(page.contains("a < b & c\\|d"), "{page}");
        assert!(page.contains("![Saved, by members](charts/by-members.svg)"));
    }
}
