//! A parent's addresses, and which of them is dialed when (rule 13).

use super::parent_choice::{Answered, Caller, Refused};
use crate::Address;

/// A parent's addresses: the first one is preferred, then the next. The one where an edge was lost comes last of all. So
/// whoever has lost a site is not held up by asking there again, all who have lost it turn to the same other one, and nobody
/// leaves a parent that is there, only because another one is preferred.
pub(super) struct Routes {
    addresses: Vec<Address>,
    lost: Option<usize>,
    /// Edges lost in a row that did not stand.
    in_vain: usize,
}

impl Routes {
    pub(super) fn new(addresses: Vec<Address>) -> Self {
        Self {
            addresses,
            lost: None,
            in_vain: 0,
        }
    }

    /// Their places, in the order in which they are dialed.
    fn order(&self) -> Vec<usize> {
        let all = 0..self.addresses.len();
        let others = all.filter(|route| Some(*route) != self.lost);
        others.chain(self.lost).collect()
    }

    /// An edge by this route is lost. Tells whether to dial at once: there are others, and not each of them was of no use
    /// since the last wait.
    pub(super) fn lost(&mut self, route: usize, stood: bool) -> bool {
        self.lost = Some(route);
        self.in_vain = match stood {
            true => 0,
            false => self.in_vain.saturating_add(1),
        };
        let all_in_vain = self.in_vain > 0 && self.in_vain.is_multiple_of(self.addresses.len());
        self.addresses.len() > 1 && !all_in_vain
    }

    /// Edges lost in a row that did not stand.
    pub(super) fn in_vain(&self) -> usize {
        self.in_vain
    }

    /// The first that answers.
    pub(super) async fn dial(&self, caller: &Caller) -> Result<Answered, Refused> {
        let order = self.order();
        let addresses = order.iter().filter_map(|route| self.addresses.get(*route));
        let addresses: Vec<Address> = addresses.cloned().collect();
        let answered = caller.first(&addresses).await?;
        let place = order.get(answered.place).copied().unwrap_or_default();
        Ok(Answered { place, ..answered })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(count: u16) -> Routes {
        let address = |port| Address::Tcp {
            host: "h".to_owned(),
            port,
        };
        Routes::new((0..count).map(address).collect())
    }

    #[test]
    fn the_route_that_was_lost_comes_last() {
        let mut routes = routes(3);
        assert_eq!(routes.order(), [0, 1, 2]);
        assert!(routes.lost(0, true));
        assert_eq!(routes.order(), [1, 2, 0]);
        assert!(routes.lost(1, true));
        assert_eq!(routes.order(), [0, 2, 1]);
    }

    #[test]
    fn others_are_tried_at_once_and_in_vain_only_once_each() {
        let mut three = routes(3);
        assert!(three.lost(0, true));
        let tries = [1, 0, 2, 1].map(|route| three.lost(route, false));
        assert_eq!(tries, [true, true, false, true]);
        assert!(three.lost(1, true));
        let mut one = routes(1);
        assert!(!one.lost(0, true) && !one.lost(0, false));
    }
}
