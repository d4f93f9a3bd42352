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

/// The same as a file: its prose is set in lines of at most [`LINE`] letters.
pub fn page(report: &Report, charts: &str) -> String {
    let mut page = String::new();
    for line in markdown(report, charts).lines() {
        // A row of a table and a picture are a line each.
        if line.starts_with(['|', '!']) {
            page.push_str(line);
        } else {
            page.push_str(&set_in_lines(line));
        }
        page.push('\n');
    }
    page
}

/// Letters of a line of prose.
const LINE: usize = 120;

fn set_in_lines(prose: &str) -> String {
    let mut text = String::new();
    let mut length = 0;
    for word in words(prose) {
        let letters = word.chars().count();
        if length > 0 {
            let is_full = length + 1 + letters > LINE;
            text.push(if is_full { '\n' } else { ' ' });
            length = if is_full { 0 } else { length + 1 };
        }
        text.push_str(word);
        length += letters;
    }
    text
}

/// The words of a line. One that would begin a list, a heading or a quotation if a line began with it belongs to the one
/// before.
fn words(prose: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut begin = 0;
    for (space, _) in prose.match_indices(' ') {
        let next = prose[space + 1..].split(' ').next().unwrap_or_default();
        if !is_mark(next) {
            words.push(&prose[begin..space]);
            begin = space + 1;
        }
    }
    words.push(&prose[begin..]);
    words
}

fn is_mark(word: &str) -> bool {
    let number = word.trim_end_matches(['.', ')']);
    let is_item = number.len() < word.len() && number.chars().all(|c| c.is_ascii_digit());
    is_item || word.starts_with(['-', '+', '*', '=', '#', '>', '|', '!', '~'])
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

    #[test]
    fn a_file_has_short_lines_and_the_same_words() {
        let mut report = super::super::example();
        let long =
            "One of 3. them - and it is a long one - costs (1 - H) more, +5 % or so. ".repeat(9);
        report.sections[0].words.push(long.trim().to_owned());
        let (text, file) = (markdown(&report, "charts"), page(&report, "charts"));
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&text), words(&file));
        assert!(file.lines().count() > text.lines().count());
        for line in file.lines().filter(|line| !line.starts_with('|')) {
            assert!(line.chars().count() <= LINE, "{line}");
            assert!(!line.starts_with(['-', '+', '3']), "{line}");
        }
    }
}
