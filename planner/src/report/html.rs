//! A report as one file that needs no other.

use super::{Report, Section, Table, svg, text};
use std::fmt::Write;

/// The report as a page with its charts in it.
pub fn html(title: &str, report: &Report) -> String {
    let title = escape(title);
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head><body><main>\n<h1>{title}</h1>\n<p class=\"answer\">{}</p>\n",
        escape(&report.answer)
    );
    for shown in &report.sections {
        page += &section(shown);
    }
    if !report.assumptions.is_empty() {
        page += "<h2>Assumed</h2>\n";
        page += &table(&text::assumptions(report));
    }
    page + "</main></body></html>\n"
}

fn section(section: &Section) -> String {
    let mut part = String::new();
    if !section.heading.is_empty() {
        let _ = writeln!(part, "<h2>{}</h2>", escape(&section.heading));
    }
    for words in &section.words {
        let _ = writeln!(part, "<p>{}</p>", escape(words));
    }
    for chart in &section.charts {
        part += &svg(chart);
    }
    section
        .tables
        .iter()
        .for_each(|shown| part += &table(shown));
    part
}

fn table(table: &Table) -> String {
    let mut part = String::from("<table>");
    if !table.title.is_empty() {
        let _ = write!(part, "<caption>{}</caption>", escape(&table.title));
    }
    let row = |part: &mut String, cells: &[String], tag: &str| {
        *part += "<tr>";
        for (column, cell) in cells.iter().enumerate() {
            let class = if table.is_numbers(column) {
                " class=\"n\""
            } else {
                ""
            };
            let _ = write!(part, "<{tag}{class}>{}</{tag}>", escape(cell));
        }
        *part += "</tr>\n";
    };
    row(&mut part, &table.columns, "th");
    table
        .rows
        .iter()
        .for_each(|cells| row(&mut part, cells, "td"));
    part + "</table>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff}main{max-width:60rem;margin:2rem auto;padding:0 1rem}\
.answer{font-size:1.25rem;font-weight:600}table{border-collapse:collapse;margin:1rem 0}caption{text-align:left;font-weight:600;padding-bottom:.3rem}\
td,th{border-bottom:1px solid #ddd;padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top}.n{text-align:right}svg{max-width:100%;height:auto}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_was_told_becomes_markup() {
        let page = html("Ten <members>", &super::super::example());
        assert!(page.contains("Ten &lt;members&gt;") && page.contains("a &lt; b &amp; c|d"));
        assert!(page.contains("<svg") && page.contains("Yes: ten members save 86 %."));
    }
}
