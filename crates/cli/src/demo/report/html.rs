//! The report: one file that needs no other.

use super::chart::{self, Bar, Part};
use crate::demo::figures::{Building, Figures, Person, Phase, Run, Spent};
use crate::failure::Failure;
use crate::text::bytes;
use plotters::style::RGBColor;
use std::fmt::Write;

/// The page.
pub(super) fn render(figures: &Figures) -> Result<String, Failure> {
    let mut page = String::new();
    page.push_str(HEAD);
    page.push_str(&summary(figures));
    if let Some(building) = &figures.building {
        page.push_str(&part_one(building)?);
    }
    if !figures.runs.is_empty() {
        page.push_str(&part_two(figures)?);
    }
    page.push_str("</main></body></html>\n");
    Ok(page)
}

fn summary(figures: &Figures) -> String {
    let verdict = match figures.is_good() {
        true => "<p class=\"good\">All checks hold.</p>",
        false => "<p class=\"wrong\">Some checks do not hold.</p>",
    };
    let rows = figures.checks.iter().map(|check| {
        let (class, word) = if check.good {
            ("good", "ok")
        } else {
            ("wrong", "WRONG")
        };
        vec![
            format!("<span class=\"{class}\">{word}</span>"),
            escape(&check.name),
            escape(&check.detail),
        ]
    });
    format!(
        "<h1>Thorp: a village on one machine</h1>\n<p>Version {}, {} processors, {} ms round trip between sites and home, {:.0} s in all.</p>\n{verdict}\n{}",
        escape(&figures.version),
        figures.processors,
        figures.round_trip_ms,
        figures.elapsed_s,
        table(&["", "check", "figures"], rows, 3)
    )
}

fn part_one(building: &Building) -> Result<String, Failure> {
    let mut part = format!(
        "<h2>Two sites at work on one building</h2>\n<p>{}: {} entities, {}. Imported in {:.1} s, one object for each entity; exported in {:.1} s. While they worked, {} in {} messages crossed the sites' wide-area links.</p>\n",
        escape(&building.model),
        building.entities,
        bytes(building.file_bytes),
        building.import_s,
        building.export_s,
        bytes(building.wide_area.bytes),
        building.wide_area.messages
    );
    part.push_str("<h3>The first walk through the building, by member</h3>\n");
    part.push_str("<p>All members at the same time, with nothing cached, but for the first one, which has just imported it.</p>\n");
    let bars: Vec<Bar> = building
        .people
        .iter()
        .map(|p| bar(&p.name, &p.walk))
        .collect();
    part.push_str(&times(&bars)?);
    part.push_str(&table(
        &[
            "member",
            "site",
            "walked",
            "walk s",
            "pages from home",
            "from peers",
            "edits",
            "median edit ms",
            "repeats",
            "changes heard",
        ],
        building.people.iter().map(person),
        2,
    ));
    part.push_str("<h3>What the foreign reader says of the export</h3>\n<pre>");
    part.push_str(&escape(&building.reader.join("\n")));
    part.push_str("</pre>\n");
    Ok(part)
}

fn person(person: &Person) -> Vec<String> {
    vec![
        escape(&person.name),
        escape(&person.site),
        person.walked.to_string(),
        format!("{:.2}", person.walk.elapsed),
        format!("{:.0}", person.walk.home_pages),
        format!("{:.0}", person.walk.peer_pages),
        person.edits.to_string(),
        format!("{:.1}", person.edit_median_ms),
        format!("{:.0}", person.edit.conflicts),
        person.changes_heard.to_string(),
    ]
}

fn part_two(figures: &Figures) -> Result<String, Failure> {
    let mut part = String::from("<h2>OO7 small: Thorp beside direct connections</h2>\n");
    part.push_str("<p>The same members, the same data, the same link: once by a site that they share, once each by itself. Times are those of the average member.</p>\n");
    for phase in Phase::ALL {
        let runs: Vec<&Run> = figures
            .runs
            .iter()
            .filter(|run| run.phase == phase)
            .collect();
        if !runs.is_empty() {
            let _ = write!(
                part,
                "<h3>{}: {}</h3>\n<div class=\"pair\">",
                phase.name(),
                phase.words()
            );
            part.push_str(&charts(&runs)?);
            part.push_str("</div>\n");
        }
    }
    part.push_str(&table(
        &[
            "phase",
            "members",
            "way",
            "time s",
            "slowest s",
            "compute",
            "commit",
            "home fetch",
            "peer fetch",
            "home pages",
            "peer pages",
            "messages",
            "bytes",
        ],
        Phase::ALL.iter().flat_map(|phase| {
            figures
                .runs
                .iter()
                .filter(move |run| run.phase == *phase)
                .map(row)
        }),
        1,
    ));
    part.push_str("<p>Messages and bytes are all that crossed the wide-area link, both ways, without what TLS adds. The site keeps no pages itself here: a page that a neighbour has comes from the neighbour.</p>\n");
    Ok(part)
}

fn charts(runs: &[&Run]) -> Result<String, Failure> {
    let name = |run: &Run| format!("{} {}", run.members, run.way.name());
    let bars: Vec<Bar> = runs.iter().map(|run| bar(&name(run), &run.mean)).collect();
    let mut both = times(&bars)?;
    let parts = [Part {
        name: "over the wide-area link",
        colour: BROWN,
    }];
    let loads: Vec<Bar> = runs
        .iter()
        .map(|run| Bar {
            name: name(run),
            parts: vec![run.wide_area.bytes as f64 / MIB],
        })
        .collect();
    both.push_str(&figure(&parts, &chart::stacked("MiB", &parts, &loads)?));
    Ok(both)
}

fn row(run: &Run) -> Vec<String> {
    let seconds = |value: f64| format!("{value:.3}");
    vec![
        run.phase.name().to_owned(),
        run.members.to_string(),
        run.way.name().to_owned(),
        seconds(run.mean.elapsed),
        seconds(run.slowest_s),
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

fn bar(name: &str, spent: &Spent) -> Bar {
    Bar {
        name: name.to_owned(),
        parts: vec![
            spent.compute(),
            spent.commit + spent.room,
            spent.home_fetch,
            spent.peer_fetch,
        ],
    }
}

fn times(bars: &[Bar]) -> Result<String, Failure> {
    let parts = [
        Part {
            name: "compute",
            colour: BLUE,
        },
        Part {
            name: "commit",
            colour: YELLOW,
        },
        Part {
            name: "home fetch",
            colour: RED,
        },
        Part {
            name: "peer fetch",
            colour: GREEN,
        },
    ];
    Ok(figure(&parts, &chart::stacked("seconds", &parts, bars)?))
}

fn figure(parts: &[Part], svg: &str) -> String {
    let key = |part: &Part| {
        let RGBColor(red, green, blue) = part.colour;
        format!(
            "<span class=\"key\"><i style=\"background:rgb({red},{green},{blue})\"></i>{}</span>",
            part.name
        )
    };
    let keys: String = parts.iter().map(key).collect();
    format!("<figure>{svg}<figcaption>{keys}</figcaption></figure>\n")
}

/// A table; the first `words` columns are words, the others numbers. Cells are HTML.
fn table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>, words: usize) -> String {
    let class = |at: usize| if at < words { "" } else { " class=\"n\"" };
    let mut text = String::from("<table><tr>");
    for (at, head) in heads.iter().enumerate() {
        let _ = write!(text, "<th{}>{head}</th>", class(at));
    }
    text.push_str("</tr>\n");
    for row in rows {
        text.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let _ = write!(text, "<td{}>{cell}</td>", class(at));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</table>\n");
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

const MIB: f64 = (1 << 20) as f64;
// Told apart also by those who do not see red and green as different: they differ in brightness.
const BLUE: RGBColor = RGBColor(78, 121, 167);
const YELLOW: RGBColor = RGBColor(237, 201, 72);
const RED: RGBColor = RGBColor(176, 58, 46);
const GREEN: RGBColor = RGBColor(118, 183, 120);
const BROWN: RGBColor = RGBColor(134, 105, 84);

const HEAD: &str = r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Thorp: demo</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fafaf8; margin: 0; }
main { max-width: 1180px; margin: 0 auto; padding: 1.5rem; }
h1 { font-weight: 600; } h2 { margin-top: 2.2rem; border-bottom: 1px solid #ccc; } h3 { margin-bottom: .3rem; }
table { border-collapse: collapse; margin: .8rem 0; font-size: 13.5px; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #e2e2de; text-align: left; vertical-align: top; }
th.n, td.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
figure { margin: 0; background: #fff; border: 1px solid #e2e2de; border-radius: 6px; padding: .4rem; max-width: 580px; }
figure svg { width: 100%; height: auto; }
figcaption { text-align: center; font-size: 13px; }
.key { margin: 0 .6rem; white-space: nowrap; } .key i { display: inline-block; width: .8em; height: .8em; margin-right: .35em; border-radius: 2px; }
.pair { display: flex; flex-wrap: wrap; gap: 1rem; }
.good { color: #2c6e31; font-weight: 600; } .wrong { color: #a32a1e; font-weight: 600; }
pre { background: #fff; border: 1px solid #e2e2de; border-radius: 6px; padding: .6rem; overflow-x: auto; }
</style></head><body><main>
"#;
