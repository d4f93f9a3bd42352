//! Which parent a member turns to when it has lost its own (rule 13): a pure
//! function of what it knows. No consensus runs at a site: members that know
//! different things turn to different redirectors, and each of these is a site
//! of its own to the homes, which is safe.

use crate::ids::MemberId;
use alloc::collections::{BTreeMap, BTreeSet};

/// Whom a member turns to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// A dedicated site, by its place in the configuration.
    Site(usize),
    /// The redirector that this neighbour carries in its process.
    Neighbour(MemberId),
    /// It carries a redirector itself.
    Itself,
}

/// What each member of a group says whom it sees, itself included.
pub type Views = BTreeMap<MemberId, BTreeSet<MemberId>>;

/// Chooses: the first dedicated site that is not known to be out of reach, in
/// the order of the configuration; else of those that see each other the member
/// with the lowest id, which carries the redirector.
pub fn next(own: MemberId, in_reach: &[bool], views: &Views) -> Next {
    if let Some(site) = in_reach.iter().position(|in_reach| *in_reach) {
        return Next::Site(site);
    }
    let sees = |one: &MemberId, other: &MemberId| {
        let view = views.get(one);
        view.is_some_and(|view| view.contains(other))
    };
    let mut lower = views.keys().take_while(|member| **member < own);
    match lower.find(|member| sees(&own, member) && sees(member, &own)) {
        Some(member) => Next::Neighbour(*member),
        None => Next::Itself,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn views(all: &[(u128, &[u128])]) -> Views {
        let set = |seen: &[u128]| seen.iter().copied().map(MemberId).collect();
        let views = all.iter().map(|(one, seen)| (MemberId(*one), set(seen)));
        views.collect()
    }

    #[test]
    fn dedicated_sites_come_first_in_their_order() {
        let all = views(&[(1, &[1, 2]), (2, &[1, 2])]);
        assert_eq!(next(MemberId(2), &[true, true], &all), Next::Site(0));
        assert_eq!(next(MemberId(2), &[false, true], &all), Next::Site(1));
        assert_eq!(
            next(MemberId(2), &[false, false], &all),
            Next::Neighbour(MemberId(1))
        );
    }

    #[test]
    fn then_the_lowest_of_those_that_see_each_other() {
        // 1 hears nobody; 2 and 3 hear 1, which is of no use.
        let all = views(&[(1, &[1]), (2, &[1, 2, 3]), (3, &[1, 2, 3])]);
        assert_eq!(next(MemberId(1), &[], &all), Next::Itself);
        assert_eq!(next(MemberId(2), &[], &all), Next::Itself);
        assert_eq!(next(MemberId(3), &[], &all), Next::Neighbour(MemberId(2)));
        assert_eq!(next(MemberId(9), &[], &Views::new()), Next::Itself);
    }

    #[test]
    fn a_split_makes_two_sites() {
        let here = views(&[(1, &[1, 2]), (2, &[1, 2])]);
        let there = views(&[(3, &[3, 4]), (4, &[3, 4])]);
        assert_eq!(next(MemberId(2), &[], &here), Next::Neighbour(MemberId(1)));
        assert_eq!(next(MemberId(4), &[], &there), Next::Neighbour(MemberId(3)));
    }
}
