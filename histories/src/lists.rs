//! Which objects are in use: a list that is long enough is followed by another one.

/// The homes, by their names.
pub(crate) const HOMES: [&str; 2] = ["alps", "dale"];
/// Keys that are used at a time, every other one of the same home.
pub(crate) const SLOTS: usize = 24;
/// Lists end at about this length.
const LIST_LEN_MAX: usize = 24;

/// The key of each slot that a session uses. Sessions move on when they see that a list is long.
pub(crate) struct Lists {
    generations: [usize; SLOTS],
    /// The last generation: there are no more keys.
    last: usize,
}

impl Lists {
    /// Of so many keys.
    pub(crate) fn new(keys: usize) -> Self {
        Lists {
            generations: [0; SLOTS],
            last: (keys / SLOTS).saturating_sub(1),
        }
    }

    pub(crate) fn key(&self, slot: usize) -> usize {
        self.generations[slot] * SLOTS + slot
    }

    /// A key was seen to hold so many values.
    pub(crate) fn note_length(&mut self, key: usize, len: usize) {
        let (slot, generation) = (key % SLOTS, key / SLOTS);
        if len >= LIST_LEN_MAX && self.generations[slot] == generation && generation < self.last {
            self.generations[slot] += 1;
        }
    }
}

/// The segment of a slot's keys.
pub(crate) fn segment(slot: usize) -> String {
    format!("thorp://{}/keys-{slot}", HOMES[slot % HOMES.len()])
}

/// A list, as it is stored.
pub(crate) fn decode(bytes: &[u8]) -> Vec<i64> {
    let chunks = bytes.chunks_exact(8).map(|chunk| chunk.try_into());
    let chunks = chunks.filter_map(std::result::Result::ok);
    chunks.map(i64::from_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_followed_by_the_next_one_of_its_slot() {
        let mut lists = Lists::new(2 * SLOTS);
        assert_eq!(lists.key(3), 3);
        lists.note_length(3, LIST_LEN_MAX - 1);
        assert_eq!(lists.key(3), 3);
        lists.note_length(3, LIST_LEN_MAX);
        assert_eq!(lists.key(3), SLOTS + 3);
        lists.note_length(3, LIST_LEN_MAX);
        assert_eq!(lists.key(3), SLOTS + 3, "it has moved on already");
        lists.note_length(SLOTS + 3, LIST_LEN_MAX);
        assert_eq!(lists.key(3), SLOTS + 3, "there is no other one");
    }
}
