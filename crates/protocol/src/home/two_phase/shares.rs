//! What the members of each name have of a home's votes (rule R7).

use alloc::collections::BTreeMap;
use thorp_model::NameId;
use thorp_model::limits::VOTES_MAX;

/// A share of the table of votes, or the whole of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    /// Votes that are kept: in doubt, or not yet heard of by every home.
    pub(super) votes: usize,
    /// Bytes of those that hold locks.
    pub(super) open_bytes: usize,
}

/// The shares by name.
///
/// A name is there if, and only if, votes are kept for it.
#[derive(Debug, Default)]
pub(super) struct Shares(BTreeMap<NameId, Share>);

impl Shares {
    /// Whether there is space for one more vote of a name, of so many bytes. No name has more of
    /// the table than it leaves free: so there is always space for a member of another name. One
    /// vote alone may be larger than all may be together.
    pub(super) fn has_space(
        &self,
        name: NameId,
        bytes: usize,
        total: Share,
        open_bytes_max: usize,
    ) -> bool {
        let own = self.0.get(&name).copied().unwrap_or_default();
        let has_place = own.votes < VOTES_MAX.saturating_sub(total.votes);
        let free = open_bytes_max.saturating_sub(total.open_bytes);
        has_place && (own.open_bytes + bytes <= free || total.open_bytes == 0)
    }

    /// A vote is kept. It holds locks for so many bytes.
    pub(super) fn begin(&mut self, name: NameId, open_bytes: usize) {
        let share = self.0.entry(name).or_default();
        share.votes += 1;
        share.open_bytes += open_bytes;
    }

    /// A vote of so many bytes has ended.
    pub(super) fn unlock(&mut self, name: NameId, bytes: usize) {
        if let Some(share) = self.0.get_mut(&name) {
            share.open_bytes -= bytes;
        }
    }

    /// A vote that has ended is kept no longer.
    pub(super) fn forget(&mut self, name: NameId) {
        if let Some(share) = self.0.get_mut(&name) {
            share.votes -= 1;
            if share.votes == 0 {
                self.0.remove(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Votes as often as there is space.
    fn flood(shares: &mut Shares, name: NameId, bytes: usize, open_bytes_max: usize) -> usize {
        let mut taken = 0;
        loop {
            let all = shares.0.values();
            let total = all.fold(Share::default(), |sum, share| Share {
                votes: sum.votes + share.votes,
                open_bytes: sum.open_bytes + share.open_bytes,
            });
            if !shares.has_space(name, bytes, total, open_bytes_max) {
                return taken;
            }
            shares.begin(name, bytes);
            taken += 1;
        }
    }

    #[test]
    fn a_name_has_no_more_votes_than_it_leaves_free() {
        let mut shares = Shares::default();
        let taken = [7, 8, 9].map(|name| flood(&mut shares, NameId(name), 0, usize::MAX));
        assert_eq!(taken, [VOTES_MAX / 2, VOTES_MAX / 4, VOTES_MAX / 8]);
    }

    #[test]
    fn a_name_has_no_more_bytes_than_it_leaves_free() {
        let mut shares = Shares::default();
        let taken = [7, 8, 9].map(|name| flood(&mut shares, NameId(name), 10, 80));
        assert_eq!(taken, [4, 2, 1]);
    }

    #[test]
    fn what_has_ended_and_is_forgotten_is_given_back() {
        let (mut shares, name) = (Shares::default(), NameId(7));
        assert_eq!(
            flood(&mut shares, name, 100, 80),
            1,
            "one alone may be larger"
        );
        shares.unlock(name, 100);
        assert_eq!(flood(&mut shares, name, 10, 20), 1);
        shares.unlock(name, 10);
        shares.forget(name);
        shares.forget(name);
        assert!(shares.0.is_empty());
    }
}
