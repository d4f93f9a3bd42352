//! A report for a terminal.

use super::{Report, Section, Table};

/// The report as text, without its charts.
pub fn text(report: &Report) -> String {
    let mut parts = vec![report.answer.clone()];
    parts.extend(report.sections.iter().flat_map(section));
    if !report.assumptions.is_empty() {
        parts.push(format!("Assumed:\n{}", set(&assumptions(report))));
    }
    parts.join("\n\n") + "\n"
}

fn section(section: &Section) -> Vec<String> {
    let heading = (!section.heading.is_empty()).then(|| section.heading.to_uppercase());
    let tables = section.tables.iter().map(|table| match &*table.title {
        "" => set(table),
        title => format!("{title}\n{}", set(table)),
    });
    let words = section.words.iter().cloned();
    heading.into_iter().chain(words).chain(tables).collect()
}

/// The assumptions as a table.
pub(super) fn assumptions(report: &Report) -> Table {
    let mut table = Table::new("", &["parameter", "value", "source"]);
    for told in &report.assumptions {
        table.row(vec![
            told.name.clone(),
            told.value.clone(),
            told.source.clone(),
        ]);
    }
    table
}

fn set(table: &Table) -> String {
    let width = |column: usize, head: &String| {
        let cells = table.rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(head.chars().count())
    };
    let heads = table.columns.iter().enumerate();
    let widths: Vec<(usize, bool)> = heads
        .map(|(column, head)| (width(column, head), table.is_numbers(column)))
        .collect();
    let rule = widths.iter().map(|(width, _)| "-".repeat(*width)).collect();
    let rows = [&table.columns, &rule].into_iter().chain(&table.rows);
    let lines: Vec<String> = rows.map(|row| line(row, &widths)).collect();
    lines.join("\n")
}

fn line(row: &[String], widths: &[(usize, bool)]) -> String {
    let cells = row.iter().zip(widths).map(|(cell, &(width, is_number))| {
        let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
        match is_number {
            true => pad + cell,
            false => cell.clone() + &pad,
        }
    });
    let cells: Vec<String> = cells.collect();
    cells.join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_comes_first_and_columns_line_up() {
        let text = text(&super::super::example());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Yes: ten members save 86 %.");
        let at = lines.iter().position(|line| *line == "By members");
        let at = at.expect("the table");
        assert_eq!(lines[at + 1], "members  saved  why");
        assert_eq!(lines[at + 3], "      1    0 %  alone");
        assert!(
            lines[lines.len() - 1].starts_with("round trip  40 ms"),
            "{text}"
        );
    }
}
