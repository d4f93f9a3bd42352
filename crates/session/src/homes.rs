//! The homes of a transaction.

use thorp_model::HomeId;
use thorp_model::limits::PARTICIPANTS_MAX;

/// The homes of which a transaction reads or writes something: ascending, each
/// once, and at most [`PARTICIPANTS_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Homes {
    /// The one entered last: most of what follows is of the same one.
    last: Option<HomeId>,
    all: Vec<HomeId>,
}

impl Homes {
    /// Takes a home in. False: there are as many as may be.
    #[inline]
    pub(crate) fn enter(&mut self, home: HomeId) -> bool {
        self.last == Some(home) || self.enter_other(home)
    }

    fn enter_other(&mut self, home: HomeId) -> bool {
        if let Err(at) = self.all.binary_search(&home) {
            if self.all.len() >= PARTICIPANTS_MAX {
                return false;
            }
            self.all.insert(at, home);
        }
        self.last = Some(home);
        true
    }

    pub(crate) fn all(&self) -> &[HomeId] {
        &self.all
    }

    pub(crate) fn clear(&mut self) {
        self.last = None;
        self.all.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_once_ascending_and_no_more_than_may_be() {
        let mut homes = Homes::default();
        assert!(
            [3, 1, 3, 2, 2, 1]
                .map(HomeId)
                .iter()
                .all(|h| homes.enter(*h))
        );
        assert_eq!(homes.all(), [1, 2, 3].map(HomeId));
        let more = (10..).map(HomeId).take_while(|home| homes.enter(*home));
        assert_eq!(more.count() + 3, PARTICIPANTS_MAX);
        assert!(homes.enter(HomeId(2)), "it is in already");
        homes.clear();
        assert!(homes.all().is_empty() && homes.enter(HomeId(2)));
    }
}
