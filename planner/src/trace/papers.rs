//! The traces that the papers' figures are computed from, in `traces/` of a directory of data.

use super::{Reading, Trace};
use std::path::Path;

/// Each under the name that figures use; or, of all that are missing, why.
pub(crate) fn of_papers(
    data: Option<&Path>,
    requests_most: Option<usize>,
) -> Result<Vec<(&'static str, Trace)>, String> {
    let data = data.ok_or("no directory with traces was named")?;
    let reading = Reading {
        requests_most,
        ..Reading::default()
    };
    let mut traces = Vec::new();
    let mut missing = Vec::new();
    for (name, file) in TRACES {
        match reading.file(&data.join("traces").join(file)) {
            Ok(trace) => traces.push((name, trace)),
            Err(error) => missing.push(error.to_string()),
        }
    }
    match missing.is_empty() {
        true => Ok(traces),
        false => Err(missing.join("; ")),
    }
}

const TRACES: [(&str, &str); 3] = [
    ("cloudPhysics", "cloudPhysicsIO.oracleGeneral.bin"),
    ("orm-busy", "orm-busy.trace.xz"),
    ("multi3", "multi3.trace.gz"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_missing_is_told_at_once() {
        let why = of_papers(Some(Path::new("/nowhere")), None).expect_err("none is there");
        for (_, file) in TRACES {
            assert!(why.contains(&format!("/nowhere/traces/{file}: ")), "{why}");
        }
        let why = of_papers(None, None).expect_err("nobody tells where");
        assert!(why.contains("no directory"), "{why}");
    }
}
