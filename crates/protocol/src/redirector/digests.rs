//! What the home vouches for: the digests of pages that children hold (rule R6).

use alloc::collections::{BTreeMap, BTreeSet};
use thorp_model::limits::WRONG_HELPERS_MAX;
use thorp_model::planted::Bug;
use thorp_model::{Image, NameId, PageDigest, PageId, PeerImage, Position, planted};

/// What a redirector finds out about a helper's image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It is the page as the home has it.
    Right,
    /// It may be older than the page: neither right nor wrong.
    Old,
    /// It claims to be as new as what the home vouched for, and is another one.
    Wrong,
}

/// The digests of one home's pages, and since which position each is known to be right.
///
/// Invariant: a digest is here only as long as the redirector is entered above for its page. So it is right from that
/// position up to where the redirector stands.
#[derive(Debug, Default)]
pub(super) struct Digests(BTreeMap<PageId, (Position, PageDigest)>);

impl Digests {
    /// Takes the digest of a page at a position. An unknown one ends what was known, and one that is known says that the
    /// page has not changed.
    pub(super) fn set(&mut self, page: PageId, position: Position, digest: PageDigest) {
        if digest == PageDigest::UNKNOWN {
            return self.forget(page);
        }
        let known = self.0.entry(page).or_insert((position, digest));
        if known.1 != digest {
            *known = (position, digest);
        }
    }

    /// Takes an image that is right as of a position. One with holes says nothing. Its version does not say since when it is
    /// right: a page that has ended is empty, and of no version.
    pub(super) fn set_image(&mut self, page: PageId, as_of: Position, image: &Image) {
        if image.is_complete() {
            self.set(page, as_of, PageDigest::of(image));
        }
    }

    /// The digest of a page, if it is known.
    pub(super) fn get(&self, page: PageId) -> Option<PageDigest> {
        self.0.get(&page).map(|(_, digest)| *digest)
    }

    /// A page is not held here any more, or is no more.
    pub(super) fn forget(&mut self, page: PageId) {
        self.0.remove(&page);
    }

    /// The stream has ended: what changes is not heard here.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// How many digests are known.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether a request for a page may go to a helper: its answer can be judged.
    pub(super) fn can_judge(&self, page: PageId) -> bool {
        self.0.contains_key(&page) || planted::is(Bug::UnknownRedirected)
    }

    /// Judges a helper's image.
    pub(super) fn judge(&self, peer: &PeerImage, image: &Image) -> Verdict {
        if planted::is(Bug::HelpersBelieved) {
            return Verdict::Right;
        }
        match self.0.get(&peer.page) {
            Some((_, digest)) if *digest == PageDigest::of(image) => Verdict::Right,
            Some((since, _)) if peer.position >= *since => Verdict::Wrong,
            Some(_) if planted::is(Bug::OldImageIsWrong) => Verdict::Wrong,
            None if planted::is(Bug::UnknownRedirected) => Verdict::Right,
            // Where the digest has gone meanwhile, nobody can tell.
            Some(_) | None => Verdict::Old,
        }
    }
}

/// The names of nodes that sent wrong images: they are not asked again (rule R6).
///
/// Invariant: at most [`WRONG_HELPERS_MAX`] names. When it is full, nobody is asked to help any more.
#[derive(Debug, Default)]
pub(super) struct WrongHelpers(BTreeSet<NameId>);

impl WrongHelpers {
    /// A node of this name sent a wrong image.
    pub(super) fn add(&mut self, name: NameId) {
        if self.0.len() < WRONG_HELPERS_MAX {
            self.0.insert(name);
        }
    }

    /// Whether a node of this name may be asked to help.
    pub(super) fn may_help(&self, name: NameId) -> bool {
        let is_wrong = self.0.len() >= WRONG_HELPERS_MAX || self.0.contains(&name);
        !is_wrong || planted::is(Bug::WrongHelperAsked)
    }

    /// The names of nodes that are asked no more.
    pub(super) fn names(&self) -> impl Iterator<Item = NameId> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{Attempt, Draft, EntryNo, Epoch, Generation, HomeId, ImageEdit, MemberId};
    use thorp_model::{Slot, Stamp};

    const PAGE: PageId = PageId::new(1, 1);

    fn image(version: u64, value: u8) -> Image {
        let mut edit = ImageEdit::default();
        edit.set(Slot(1), Generation(1), Draft::Value(alloc::vec![value]));
        edit.finish(Position(version), Stamp::default())
    }

    fn verdict(digests: &Digests, position: u64, image: Image) -> Verdict {
        let peer = PeerImage {
            home: HomeId(1),
            page: PAGE,
            requester: MemberId(1),
            epoch: Epoch(1),
            attempt: Attempt(1),
            entry: EntryNo(1),
            position: Position(position),
            image: None,
        };
        digests.judge(&peer, &image)
    }

    #[test]
    fn an_image_is_judged_by_the_page_and_by_its_label() {
        let mut digests = Digests::default();
        assert!(!digests.can_judge(PAGE));
        digests.set(PAGE, Position(5), PageDigest::of(&image(5, 1)));
        assert!(digests.can_judge(PAGE));
        assert_eq!(verdict(&digests, 7, image(5, 1)), Verdict::Right);
        assert_eq!(verdict(&digests, 4, image(3, 1)), Verdict::Old);
        assert_eq!(verdict(&digests, 5, image(3, 1)), Verdict::Wrong);
        assert_eq!(verdict(&digests, 7, image(5, 2)), Verdict::Wrong);
        digests.set_image(PAGE, Position(9), &image(5, 1));
        assert_eq!(verdict(&digests, 6, image(5, 2)), Verdict::Wrong);
        digests.set(PAGE, Position(8), PageDigest::UNKNOWN);
        assert!(!digests.can_judge(PAGE));
        assert_eq!(verdict(&digests, 9, image(8, 1)), Verdict::Old);
    }

    #[test]
    fn a_page_that_has_ended_makes_nobody_wrong_who_has_not_heard_of_it() {
        let mut digests = Digests::default();
        digests.set_image(PAGE, Position(33), &Image::empty());
        assert_eq!(verdict(&digests, 32, image(0, 1)), Verdict::Old);
        assert_eq!(verdict(&digests, 33, image(0, 1)), Verdict::Wrong);
        assert_eq!(verdict(&digests, 32, Image::empty()), Verdict::Right);
    }

    #[test]
    fn when_too_many_are_wrong_nobody_helps() {
        let mut wrong = WrongHelpers::default();
        wrong.add(NameId(1));
        assert!(!wrong.may_help(NameId(1)) && wrong.may_help(NameId(2)));
        (2..=WRONG_HELPERS_MAX as u64).for_each(|name| wrong.add(NameId(name)));
        assert!(!wrong.may_help(NameId(u64::MAX)));
        wrong.add(NameId(u64::MAX));
        assert_eq!(wrong.names().count(), WRONG_HELPERS_MAX);
    }
}
