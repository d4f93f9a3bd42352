//! `thorp plan`: the planner answers; this command gives it the status of nodes, and its failures an exit code.

use crate::failure::{Code, Failure};
use crate::http;
use crate::text;
use std::time::Duration;

pub(crate) use thorp_plan::Options;

/// Answers a question.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    thorp_plan::be_quiet(text::is_quiet());
    thorp_plan::run(options, |node| http::get(node, "/status", ANSWER_WITHIN))
}

const ANSWER_WITHIN: Duration = Duration::from_secs(5);

impl From<thorp_plan::Failure> for Failure {
    fn from(failure: thorp_plan::Failure) -> Self {
        let code = match failure.code() {
            thorp_plan::Code::Failed => Code::Failed,
            thorp_plan::Code::Usage => Code::Usage,
        };
        Failure::new(failure.what(), failure.todo()).with(code)
    }
}
