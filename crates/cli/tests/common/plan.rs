//! What tests of all questions of `thorp plan` have in common.

use super::Said;
use std::fs;
use std::path::Path;

pub(crate) fn assert_refused(said: &Said, what: &str) {
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains(what), "{what:?} in {}", said.err);
    assert!(said.out.is_empty(), "{}", said.out);
}

/// What two members recorded: both read the same pages over and over, a little out of step, and each has memory for half of them.
pub(crate) fn recorded(dir: &Path) -> [String; 2] {
    ["anna", "ben"].map(|name| {
        let offset = if name == "anna" { 0 } else { 20 };
        let rows = (0..400).map(|at| {
            format!(
                "{},{name},read,7/{},8192\n",
                at * 1000 + offset,
                (at + offset) % 40
            )
        });
        let path = dir.join(format!("{name}.csv"));
        let text = format!(
            "time_us,client,op,object,size\n{}",
            rows.collect::<String>()
        );
        fs::write(&path, text).expect("written");
        path.display().to_string()
    })
}
