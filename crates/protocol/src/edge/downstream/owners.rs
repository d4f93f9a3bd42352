//! Which name each child belongs to, so that the processes of a name share their entries (rules R7 and 15).

use crate::edge::directory::{ChildNo, Directory};
use alloc::collections::{BTreeMap, BTreeSet};
use thorp_model::{NameId, NodeKind};

/// Whose entries are counted together: a member may carry a site of its name.
type Owner = (NameId, NodeKind);

/// The names of children, also of those that have gone: they are still entered for pages until the directory is swept.
///
/// Invariant: each number belongs to at most one name, the last one that it was given to. A number in `of_name` is there
/// in `by_no`, too. There are no more numbers than there have been children at a time.
#[derive(Debug, Default)]
pub(super) struct Owners {
    by_no: BTreeMap<u16, Owner>,
    of_name: BTreeMap<Owner, BTreeSet<u16>>,
}

impl Owners {
    /// A child of a name has got a number.
    pub(super) fn give(&mut self, no: ChildNo, name: Owner) {
        if let Some(before) = self.by_no.insert(no.0, name)
            && let Some(numbers) = self.of_name.get_mut(&before)
        {
            numbers.remove(&no.0);
            if numbers.is_empty() {
                self.of_name.remove(&before);
            }
        }
        self.of_name.entry(name).or_default().insert(no.0);
    }

    /// For how many pages all children of a name are entered, each counted for itself.
    pub(super) fn held(&self, name: Owner, directory: &Directory) -> usize {
        self.numbers(name)
            .map(|no| directory.held(ChildNo(no)))
            .sum()
    }

    /// The numbers of a name's children, and of those that have gone.
    pub(super) fn numbers(&self, name: Owner) -> impl Iterator<Item = u16> {
        self.of_name.get(&name).into_iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::directory::Holder;
    use thorp_model::{EntryNo, PageId};

    fn enter(directory: &mut Directory, child: u16, pages: u32) {
        for page in 0..pages {
            let holder = Holder {
                child: ChildNo(child),
                complete: true,
                updates: 0,
                entry: EntryNo(1),
            };
            directory.enter(PageId::new(1, page), holder);
        }
    }

    #[test]
    fn a_name_has_what_its_children_hold_until_their_numbers_are_given_again() {
        let [anna, ben] = ["anna", "ben"].map(|name| (NameId::of(name), NodeKind::Member));
        let (mut owners, mut directory) = (Owners::default(), Directory::default());
        owners.give(ChildNo(0), anna);
        owners.give(ChildNo(1), anna);
        enter(&mut directory, 0, 3);
        enter(&mut directory, 1, 2);
        assert_eq!(owners.held(anna, &directory), 5);
        assert_eq!(owners.held(ben, &directory), 0);
        owners.give(ChildNo(1), ben);
        assert_eq!(owners.held(anna, &directory), 3);
        assert_eq!(owners.held(ben, &directory), 2);
        owners.give(ChildNo(0), ben);
        assert!(!owners.of_name.contains_key(&anna));
    }
}
