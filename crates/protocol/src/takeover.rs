//! Which parent a member turns to when it has lost its own (rule 13): a pure
//! function of who answers. No consensus runs at a site: members that see
//! different things turn to different redirectors, and each of these is a site
//! of its own to the homes, which is safe.
//!
//! Neighbours have a rank, which is their place in a list that all members of
//! the site are told: the ids of processes are new with each start, and would
//! make whoever starts anew the site.

/// Whom a member turns to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// A dedicated site, by its place in the configuration.
    Site(usize),
    /// The redirector that the neighbour of this rank carries in its process.
    Neighbour(usize),
    /// It carries a redirector itself.
    Itself,
}

/// Chooses: the first dedicated site that answers, in the order of the
/// configuration; else the first that answers of the neighbours before it in
/// rank, of whom `before` tells. A member answers itself in any case, so nobody
/// looks further than that; and what it turns to never turns to it, for a
/// redirector that a member carries has homes above, and nobody else.
///
/// A driver that calls its parents in this order, and goes on at the first
/// answer, chooses the same.
pub fn next(sites: &[bool], before: &[bool]) -> Next {
    let first = |answers: &[bool]| answers.iter().position(|answers| *answers);
    let site = first(sites).map(Next::Site);
    let neighbour = || first(before).map(Next::Neighbour);
    site.or_else(neighbour).unwrap_or(Next::Itself)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dedicated_sites_come_first_in_their_order() {
        assert_eq!(next(&[true, true], &[true]), Next::Site(0));
        assert_eq!(next(&[false, true], &[true]), Next::Site(1));
        assert_eq!(next(&[false, false], &[true]), Next::Neighbour(0));
    }

    #[test]
    fn then_the_first_in_rank_that_answers() {
        assert_eq!(next(&[], &[]), Next::Itself);
        assert_eq!(next(&[], &[true, true]), Next::Neighbour(0));
        assert_eq!(next(&[], &[false, true]), Next::Neighbour(1));
        assert_eq!(next(&[], &[false, false]), Next::Itself);
    }

    #[test]
    fn a_split_makes_two_sites() {
        // Of four, the first two and the last two answer each other.
        let turns = [
            next(&[], &[]),
            next(&[], &[true]),
            next(&[], &[false, false]),
            next(&[], &[false, false, true]),
        ];
        let (itself, first, third) = (Next::Itself, Next::Neighbour(0), Next::Neighbour(2));
        assert_eq!(turns, [itself, first, itself, third]);
    }
}
