//! A report of made-up figures.

use super::*;
use crate::demo::figures::{Building, Link, Person, Phase, Run, Spent, Way};

fn run(way: Way, members: usize, phase: Phase) -> Run {
    let direct = way == Way::Direct;
    Run {
        way,
        members,
        phase,
        mean: Spent {
            elapsed: if direct { 21.5 } else { 6.25 },
            commit: 0.04,
            home_fetch: if direct { 21. } else { 4.5 },
            peer_fetch: if direct { 0. } else { 1.25 },
            ..Spent::default()
        },
        slowest_s: 22.,
        visited: vec![43_740; members],
        wide_area: Link {
            messages: 4000,
            bytes: if direct { 20 << 20 } else { 4 << 20 },
        },
    }
}

fn made_up() -> Figures {
    let mut figures = Figures {
        version: "0.0.0".to_owned(),
        round_trip_ms: 40,
        ..Figures::default()
    };
    for members in [3, 5] {
        for phase in Phase::ALL {
            figures.runs.push(run(Way::Direct, members, phase));
            figures.runs.push(run(Way::Thorp, members, phase));
        }
    }
    figures.building = Some(Building {
        model: "<made up>".to_owned(),
        people: vec![Person {
            name: "anna".to_owned(),
            walk: figures.runs[0].mean,
            ..Person::default()
        }],
        ..Building::default()
    });
    figures.check("edits exactly once", true, "120 of 120");
    figures
}

#[test]
fn the_page_needs_nothing_else_and_escapes_names() {
    let dir = tempfile::tempdir().unwrap();
    let page = write(&made_up(), dir.path()).unwrap();
    let html = fs::read_to_string(page).unwrap();
    // One for the building, two for each phase.
    assert_eq!(html.matches("<svg").count(), 1 + 2 * Phase::ALL.len());
    assert!(!html.contains("<script") && !html.contains("<made up>"));
    assert!(html.contains("&lt;made up&gt;") && html.contains("All checks hold"));
    let raw = fs::read(dir.path().join("figures.json")).unwrap();
    let again: Figures = serde_json::from_slice(&raw).unwrap();
    assert_eq!(again.runs.len(), 16);
}

#[test]
fn the_table_has_a_line_for_each_run() {
    let mut figures = made_up();
    let table = as_table(&figures);
    assert_eq!(
        table.lines().filter(|line| line.contains("direct")).count(),
        8,
        "{table}"
    );
    assert!(
        table.contains("ok     edits exactly once: 120 of 120"),
        "{table}"
    );
    figures.check("never", false, "as expected");
    assert!(!figures.is_good() && as_table(&figures).contains("WRONG  never"));
    // Nothing measured yet is no reason to fail.
    assert!(as_table(&Figures::default()).is_empty());
}
