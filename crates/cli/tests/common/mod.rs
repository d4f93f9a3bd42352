//! The `thorp` command of this package, and what several tests of it need.

#![allow(dead_code, reason = "not every test file uses everything")]
#![allow(
    clippy::unwrap_used,
    reason = "a process that cannot be run fails the test"
)]

pub(crate) mod commands;
pub(crate) mod database;
pub(crate) mod dev_village;
pub(crate) mod kills;
pub(crate) mod metrics;
pub(crate) mod one_site;
pub(crate) mod scene;
pub(crate) mod schema;
pub(crate) mod shop;
pub(crate) mod terminal;
pub(crate) mod two_homes;
pub(crate) mod votes;

use thorp_testing::{Said, Thorp, report_skipped};

/// The binary that was built for these tests.
pub(crate) fn thorp() -> Thorp {
    Thorp::at(env!("CARGO_BIN_EXE_thorp"))
}

/// Runs `thorp doubt` at a home or a site.
pub(crate) fn doubt(via: &str, identity: &str, command: &[&str]) -> Said {
    let at = ["--via", via, "--identity", identity];
    thorp().run(&[&["doubt"], command, &at].concat())
}

/// Reports that the running test skips. CI with the test data has everything that a test needs: there it fails.
pub(crate) fn skip(needs: &str) {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!(in_ci && is_set("THORP_TEST_DATA")), "needs {needs}");
    report_skipped(env!("CARGO_CRATE_NAME"), needs);
}

/// A building model of one entity.
pub(crate) const MODEL: &str = "ISO-10303-21;
HEADER;
FILE_DESCRIPTION((''),'2;1');
FILE_NAME('','',(''),(''),'','','');
FILE_SCHEMA(('IFC4'));
ENDSEC;
DATA;
#1=IFCPERSON($,'Anna',$,$,$,$,$,$);
ENDSEC;
END-ISO-10303-21;
";
