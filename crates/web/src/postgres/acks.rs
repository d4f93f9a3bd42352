//! In which order the keeper acknowledges. A commit that changes something is looked at first: was it visible before?

use pgwire_replication::Lsn;

/// The ends of commits that are not acknowledged yet.
///
/// Invariant: an acknowledgement is about all commits before it. So a commit is acknowledged only when all before it were looked at.
#[derive(Debug, Default)]
pub(super) struct Acks {
    /// The last commit that is being looked at.
    looked_for: Option<Lsn>,
    /// The last commit behind it that needs no look.
    behind: Option<Lsn>,
}

impl Acks {
    /// Somebody looks at the commit that ends here.
    pub(super) fn looks(&mut self, end: Lsn) {
        self.looked_for = Some(end);
        self.behind = None;
    }

    /// The commit that ends here needs no look. What can be acknowledged now.
    pub(super) fn passes(&mut self, end: Lsn) -> Option<Lsn> {
        if self.looked_for.is_none() {
            return Some(end);
        }
        self.behind = Some(end);
        None
    }

    /// All commits up to here were looked at. What can be acknowledged now.
    pub(super) fn looked(&mut self, end: Lsn) -> Lsn {
        if self.looked_for != Some(end) {
            return end;
        }
        self.looked_for = None;
        self.behind.take().unwrap_or(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_no_look_waits_for_what_does() {
        let lsn = Lsn::from_u64;
        let mut acks = Acks::default();
        assert_eq!(acks.passes(lsn(1)), Some(lsn(1)));
        acks.looks(lsn(2));
        assert_eq!(acks.passes(lsn(3)), None);
        acks.looks(lsn(4));
        assert_eq!(acks.passes(lsn(5)), None);
        assert_eq!(acks.looked(lsn(2)), lsn(2));
        assert_eq!(acks.looked(lsn(4)), lsn(5));
        assert_eq!(acks.passes(lsn(6)), Some(lsn(6)));
    }
}
