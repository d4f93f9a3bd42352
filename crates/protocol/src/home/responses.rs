//! How a home responds to one child.

use crate::edge::downstream::Beginning;
use alloc::string::String;
use alloc::vec::Vec;
use thorp_model::{CallError, CallId, CallResponse, CommitId, Down, Epoch, HomeId, Stamp, message};

/// This home's vote (rule 10).
pub(super) fn vote(home: HomeId, commit: CommitId, stamp: Stamp) -> Down {
    Down::Voted(message::Voted {
        home,
        commit,
        stamp,
    })
}

/// The result of a call.
pub(super) fn call_result(
    home: HomeId,
    call: CallId,
    result: Result<CallResponse, CallError>,
) -> Down {
    Down::CallResult(message::CallResult { home, call, result })
}

/// The beginning of a stream for another home: it learns whose this is, and nothing follows.
pub(super) fn begin_for_home(home: HomeId, beginning: Beginning<'_>) -> Down {
    let (position, watermark) = beginning.at;
    Down::Begin(message::Begin {
        home,
        name: String::from(beginning.name),
        epoch: Epoch(0),
        position,
        watermark,
        silent_ms: 0,
        // It gets no pages, and gives none.
        readers: Vec::new(),
        sites: Vec::new(),
        receipt: beginning.receipt,
        verdict: beginning.verdict,
    })
}
