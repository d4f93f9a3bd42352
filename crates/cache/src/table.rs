//! A concurrent map that is read without locks: papaya's, or a plain one in
//! the model checker, which cannot look into papaya.

#[cfg(not(feature = "loom"))]
mod real {
    use crate::table::PageHash;
    use std::hash::Hash;

    pub(crate) struct Table<K, V>(papaya::HashMap<K, V, PageHash>);

    impl<K: Hash + Ord + Clone, V> Table<K, V> {
        pub(crate) fn new() -> Self {
            Table(papaya::HashMap::with_hasher(PageHash))
        }

        pub(crate) fn with<R>(&self, key: &K, look: impl FnOnce(&V) -> R) -> Option<R> {
            self.0.pin().get(key).map(look)
        }

        /// Inserts; tells of the value replaced.
        pub(crate) fn insert<R>(&self, key: K, value: V, old: impl FnOnce(&V) -> R) -> Option<R> {
            self.0.pin().insert(key, value).map(old)
        }

        /// Removes; tells of the value removed.
        pub(crate) fn remove<R>(&self, key: &K, old: impl FnOnce(&V) -> R) -> Option<R> {
            self.0.pin().remove(key).map(old)
        }
    }
}

#[cfg(feature = "loom")]
mod real {
    use loom::sync::Mutex;
    use std::collections::BTreeMap;
    use std::sync::PoisonError;

    pub(crate) struct Table<K, V>(Mutex<BTreeMap<K, V>>);

    impl<K: Ord + Clone, V> Table<K, V> {
        pub(crate) fn new() -> Self {
            Table(Mutex::new(BTreeMap::new()))
        }

        pub(crate) fn with<R>(&self, key: &K, look: impl FnOnce(&V) -> R) -> Option<R> {
            self.lock().get(key).map(look)
        }

        pub(crate) fn insert<R>(&self, key: K, value: V, old: impl FnOnce(&V) -> R) -> Option<R> {
            self.lock().insert(key, value).as_ref().map(old)
        }

        pub(crate) fn remove<R>(&self, key: &K, old: impl FnOnce(&V) -> R) -> Option<R> {
            self.lock().remove(key).as_ref().map(old)
        }

        fn lock(&self) -> loom::sync::MutexGuard<'_, BTreeMap<K, V>> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

pub(crate) use real::Table;
use std::hash::{BuildHasher, Hasher};

/// Hashes page keys, which are numbers given out by homes: one multiplication.
#[derive(Clone, Copy, Default)]
pub(crate) struct PageHash;

/// The state of [`PageHash`].
#[derive(Clone, Copy)]
pub(crate) struct PageHasher(u64);

impl BuildHasher for PageHash {
    type Hasher = PageHasher;

    fn build_hasher(&self) -> PageHasher {
        PageHasher(0x243f_6a88_85a3_08d3)
    }
}

impl Hasher for PageHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        // Both halves of the product, so that low and high bits depend on all.
        let product = u128::from(self.0 ^ n) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
