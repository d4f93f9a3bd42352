//! The table at the end of the demo.

use crate::demo::figures::{Building, Figures, Person, Phase, Run};
use crate::text::{Side, Table, bytes};

/// All of it, for a terminal.
pub(crate) fn render(figures: &Figures) -> String {
    let mut parts = Vec::new();
    if let Some(building) = &figures.building {
        parts.push(about(building));
        parts.push(people(&building.people));
    }
    if !figures.runs.is_empty() {
        parts.push(format!(
            "OO7 small, {} ms round trip to the home; times of the average member in seconds",
            figures.round_trip_ms
        ));
        parts.push(runs(&figures.runs));
    }
    parts.push(checks(figures));
    parts.join("\n\n")
}

fn about(building: &Building) -> String {
    format!(
        "Building: {}, {} entities, {}; import {:.1} s, export {:.1} s; over both sites' links while they worked: {} in {} messages",
        building.model,
        building.entities,
        bytes(building.file_bytes),
        building.import_s,
        building.export_s,
        bytes(building.wide_area.bytes),
        building.wide_area.messages
    )
}

fn people(people: &[Person]) -> String {
    let mut table = Table::new(&[
        ("member", Side::Left),
        ("site", Side::Left),
        ("walked", Side::Right),
        ("walk s", Side::Right),
        ("from home", Side::Right),
        ("from peers", Side::Right),
        ("edits", Side::Right),
        ("median ms", Side::Right),
        ("repeats", Side::Right),
        ("heard", Side::Right),
    ]);
    for person in people {
        table.row(vec![
            person.name.clone(),
            person.site.clone(),
            person.walked.to_string(),
            format!("{:.2}", person.walk.elapsed),
            format!("{:.0}", person.walk.home_pages),
            format!("{:.0}", person.walk.peer_pages),
            person.edits.to_string(),
            format!("{:.1}", person.edit_median_ms),
            format!("{:.0}", person.edit.conflicts),
            person.changes_heard.to_string(),
        ]);
    }
    table.render()
}

fn runs(runs: &[Run]) -> String {
    let mut table = Table::new(&[
        ("phase", Side::Left),
        ("members", Side::Right),
        ("way", Side::Left),
        ("time", Side::Right),
        ("compute", Side::Right),
        ("commit", Side::Right),
        ("home fetch", Side::Right),
        ("peer fetch", Side::Right),
        ("home pages", Side::Right),
        ("peer pages", Side::Right),
        ("messages", Side::Right),
        ("bytes", Side::Right),
    ]);
    for phase in Phase::ALL {
        for run in runs.iter().filter(|run| run.phase == phase) {
            table.row(row(run));
        }
    }
    format!(
        "{}\n(messages and bytes: all that crossed the wide-area link)",
        table.render()
    )
}

fn row(run: &Run) -> Vec<String> {
    let seconds = |value: f64| format!("{value:.3}");
    vec![
        run.phase.name().to_owned(),
        run.members.to_string(),
        run.way.name().to_owned(),
        seconds(run.mean.elapsed),
        seconds(run.mean.compute()),
        seconds(run.mean.commit + run.mean.room),
        seconds(run.mean.home_fetch),
        seconds(run.mean.peer_fetch),
        format!("{:.0}", run.mean.home_pages),
        format!("{:.0}", run.mean.peer_pages),
        run.wide_area.messages.to_string(),
        bytes(run.wide_area.bytes),
    ]
}

fn checks(figures: &Figures) -> String {
    let line = |check: &crate::demo::figures::Check| {
        let verdict = if check.good { "ok   " } else { "WRONG" };
        format!("{verdict}  {}: {}", check.name, check.detail)
    };
    let lines: Vec<String> = figures.checks.iter().map(line).collect();
    lines.join("\n")
}
