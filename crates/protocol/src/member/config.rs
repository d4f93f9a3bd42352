//! What a member gets when it starts.

use crate::edge::liveness::AliveLimits;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use thorp_model::limits::{
    KEPT_CHANGES_MAX, PENDING_WRITES_COMMIT_BYTES_MAX, REPORT_PAGES_MAX, SEND_WINDOW_BYTES_MAX,
};
use thorp_model::records::{ConflictRecord, UpdateRecord};
use thorp_model::{LeftRecord, MemberId, NoSigner, Signer, Verifier};

/// What a member gets when it starts.
#[derive(Clone, Debug)]
pub struct MemberConfig {
    /// This process start: 128 random bits.
    pub id: MemberId,
    /// Its name, for people.
    pub name: String,
    /// Bytes of its own commits kept until they are delivered.
    pub kept_bytes_max: usize,
    /// Messages kept for a page that is on its way (rule 9).
    pub kept_changes_max: usize,
    /// Whether a home may answer beside its stream (rule 9): where its images travel by sockets of their own.
    pub images_beside: bool,
    /// Bytes of commits that it has on their way up one edge, and of values
    /// that are being staged.
    pub upward_bytes_max: usize,
    /// Pages in one piece of a report to a new parent (rule 13).
    pub report_pages_max: usize,
    /// When a parent is silent; none waits for ever.
    pub alive: Option<AliveLimits>,
    /// What is in its log, if it has one (rule C6).
    pub log: Option<Vec<UpdateRecord>>,
    /// What has left its log although no step of its own said so, for people (rule C7).
    pub left: LeftRecord,
    /// Whether a routine of the program decides what becomes of updates that are refused (rule C6).
    pub has_routine: bool,
    /// What the log notes for that routine.
    pub conflicts: Vec<ConflictRecord>,
    /// Signs with the key of the certificate of the member (rule R2).
    pub signer: Arc<dyn Signer>,
    /// Checks what neighbours have signed: its log keeps their updates, too (rule C6). None: it keeps its own alone.
    pub verifier: Option<Arc<dyn Verifier>>,
}

impl MemberConfig {
    /// The usual limits, and no key: such a member cannot go through a site.
    pub fn new(id: MemberId, name: String) -> Self {
        MemberConfig {
            id,
            name,
            kept_bytes_max: PENDING_WRITES_COMMIT_BYTES_MAX,
            kept_changes_max: KEPT_CHANGES_MAX,
            images_beside: false,
            upward_bytes_max: SEND_WINDOW_BYTES_MAX,
            report_pages_max: REPORT_PAGES_MAX,
            alive: Some(AliveLimits::default()),
            log: None,
            left: LeftRecord::default(),
            has_routine: false,
            conflicts: Vec::new(),
            signer: Arc::new(NoSigner),
            verifier: None,
        }
    }
}
