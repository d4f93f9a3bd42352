//! What a redirector asks for, or names to its children, before anybody waits
//! for it: invalidated pages that are wanted again, and likely successors.

pub(in crate::redirector) mod hints;
pub(in crate::redirector) mod history;
pub(in crate::redirector) mod refetch;
pub(in crate::redirector) mod successors;
