//! Tree maps over memory: what they hold is compared with the standard library's map.

use super::node::Node;
use super::*;
use crate::runtime::block_on;
use crate::{ErrorKind, HomeId, ObjectId, PageId, Reference, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use thorp_model::{Generation, Slot, Xoshiro256};

/// Objects in memory, and which of them were read and written.
#[derive(Default)]
struct Memory {
    objects: BTreeMap<Reference, Vec<u8>>,
    made: u32,
    read: BTreeSet<Reference>,
    written: BTreeSet<Reference>,
    /// So many more times something may be read or made, then no page comes.
    patience: Option<u32>,
}

impl Memory {
    fn create(&mut self, bytes: Vec<u8>) -> Reference {
        self.made += 1;
        let reference = Reference {
            home: HomeId(1),
            object: ObjectId {
                page: PageId::new(1, self.made),
                slot: Slot(0),
            },
            generation: Generation(1),
            offset: 0,
        };
        self.objects.insert(reference, bytes);
        self.written.insert(reference);
        reference
    }

    fn wait(&mut self) -> Result<()> {
        match &mut self.patience {
            Some(0) => Err(crate::Error::new(
                ErrorKind::HomeUnreachable,
                "no page comes",
            )),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn map<K, V>(&mut self) -> TreeMap<K, V>
    where
        K: Ord + Clone + serde::Serialize + serde::de::DeserializeOwned + Send + Sync + 'static,
        V: serde::Serialize + serde::de::DeserializeOwned + Send + Sync + 'static,
    {
        TreeMap::at(self.create(TreeMap::<K, V>::empty().unwrap()))
    }
}

impl Access for Memory {
    async fn read(&mut self, reference: &Reference) -> Result<&[u8]> {
        self.wait()?;
        self.read.insert(*reference);
        let found = self.objects.get(reference);
        Ok(found.expect("it is there"))
    }

    fn write(&mut self, reference: &Reference, bytes: Vec<u8>) -> Result<()> {
        self.written.insert(*reference);
        let old = self.objects.insert(*reference, bytes);
        assert!(old.is_some(), "what is written is there");
        Ok(())
    }

    async fn create_near(&mut self, near: &Reference, bytes: Vec<u8>) -> Result<Reference> {
        self.wait()?;
        assert!(self.objects.contains_key(near));
        Ok(self.create(bytes))
    }

    fn delete(&mut self, reference: &Reference) -> Result<()> {
        assert!(self.objects.remove(reference).is_some());
        Ok(())
    }
}

/// Keys in order and within what the nodes above say, leaves at one depth, no object that is not a node; how high it
/// is.
fn check<V>(memory: &mut Memory, map: TreeMap<u64, V>) -> usize
where
    V: serde::Serialize + serde::de::DeserializeOwned,
{
    let mut depths = BTreeSet::new();
    let mut nodes = 0;
    let mut waiting = vec![(map.reference(), 0, (Bound::Unbounded, Bound::Unbounded))];
    while let Some((at, depth, within)) = waiting.pop() {
        nodes += 1;
        let node: Node<u64, V> = block_on(Node::read(memory, &at, 0)).unwrap();
        match node {
            Node::Leaf(entries) => {
                depths.insert(depth);
                assert!(entries.is_sorted_by(|one, next| one.0 < next.0));
                let range: (Bound<u64>, Bound<u64>) = within;
                assert!(entries.iter().all(|(key, _)| {
                    use std::ops::RangeBounds;
                    range.contains(key)
                }));
            }
            Node::Inner(inner) => {
                assert!(inner.keys.is_sorted());
                let from = inner.keys.iter().map(|key| Bound::Included(*key));
                let to = inner.keys.iter().map(|key| Bound::Excluded(*key));
                let from = std::iter::once(within.0).chain(from);
                let to = to.chain([within.1]);
                for ((below, from), to) in inner.below.iter().zip(from).zip(to) {
                    waiting.push((*below, depth + 1, (from, to)));
                }
            }
        }
    }
    assert_eq!(depths.len(), 1, "{depths:?}");
    assert_eq!(nodes, memory.objects.len());
    depths.pop_first().unwrap()
}

#[test]
fn it_holds_what_a_map_in_memory_holds() {
    for (seed, keys, rounds) in [(1, 50, 1_500), (2, 5_000, 5_000), (3, 1 << 40, 2_000)] {
        let (mut memory, mut dice) = (Memory::default(), Xoshiro256::new(seed));
        let map: TreeMap<u64, u64> = memory.map();
        let mut model = BTreeMap::new();
        for round in 0..rounds {
            let key = dice.below(keys);
            // First more is put in, then more is taken out.
            let puts_in = dice.below(10) < if round < rounds / 2 { 7 } else { 3 };
            let (found, expected) = match puts_in {
                true => (
                    map.insert(&mut memory, key, round).unwrap(),
                    model.insert(key, round),
                ),
                false => (map.remove(&mut memory, &key).unwrap(), model.remove(&key)),
            };
            assert_eq!(found, expected, "seed {seed}, round {round}");
            if round % 500 == 0 {
                check(&mut memory, map);
            }
        }
        let all: Vec<(u64, u64)> = model.clone().into_iter().collect();
        assert_eq!(map.range(&mut memory, ..).unwrap(), all);
        assert_eq!(map.len(&mut memory).unwrap(), model.len() as u64);
        assert_eq!(
            map.first(&mut memory).unwrap(),
            model.first_key_value().map(|(k, v)| (*k, *v))
        );
        assert_eq!(
            map.last(&mut memory).unwrap(),
            model.last_key_value().map(|(k, v)| (*k, *v))
        );
        for _ in 0..100 {
            let (one, other) = (dice.below(keys), dice.below(keys));
            let (from, to) = (one.min(other), one.max(other));
            let expected: Vec<(u64, u64)> = model.range(from..to).map(|(k, v)| (*k, *v)).collect();
            assert_eq!(map.range(&mut memory, from..to).unwrap(), expected);
            let mut down = Vec::new();
            map.scan_down(&mut memory, from..to, |key, value| {
                down.push((key, value));
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
            down.reverse();
            assert_eq!(down, expected);
            assert_eq!(
                map.get(&mut memory, &one).unwrap(),
                model.get(&one).copied()
            );
        }
        // An empty one is a single leaf again.
        for key in model.keys() {
            assert!(map.remove(&mut memory, key).unwrap().is_some());
        }
        assert_eq!(check(&mut memory, map), 0);
        assert!(map.is_empty(&mut memory).unwrap());
        assert_eq!(memory.objects.len(), 1);
    }
}

#[test]
fn a_large_map_is_low_and_one_filled_in_order_is_full() {
    let mut memory = Memory::default();
    let map: TreeMap<u64, u64> = memory.map();
    for key in 0..20_000 {
        map.insert(&mut memory, key, key).unwrap();
    }
    assert!(check(&mut memory, map) <= 3);
    let bytes: usize = memory.objects.values().map(Vec::len).sum();
    assert!(bytes / memory.objects.len() > NODE_BYTES_MAX / 10 * 8);
    memory.read.clear();
    assert_eq!(map.get(&mut memory, &7_777).unwrap(), Some(7_777));
    assert!(memory.read.len() <= 4, "{}", memory.read.len());
    memory.read.clear();
    assert_eq!(map.range(&mut memory, 100..110).unwrap().len(), 10);
    assert!(memory.read.len() <= 5, "{}", memory.read.len());
    map.clear(&mut memory).unwrap();
    assert_eq!(memory.objects.len(), 1);
    assert!(map.is_empty(&mut memory).unwrap());
}

#[test]
fn who_changes_a_leaf_writes_nothing_else() {
    let mut memory = Memory::default();
    let map: TreeMap<u64, u64> = memory.map();
    for key in 0..5_000 {
        map.insert(&mut memory, 2 * key, 0).unwrap();
    }
    let mut dice = Xoshiro256::new(7);
    let alone = (0..1_000).filter(|_| {
        let key = 2 * dice.below(5_000) + 1;
        memory.written.clear();
        map.insert(&mut memory, key, 1).unwrap();
        let written = memory.written.len();
        map.remove(&mut memory, &key).unwrap();
        written == 1
    });
    // The others split one.
    assert!(alone.count() > 900);
}

#[test]
fn who_gives_up_on_the_way_has_changed_nothing() {
    let mut memory = Memory::default();
    let map: TreeMap<u64, Vec<u8>> = memory.map();
    let value = vec![7; 100];
    for key in 0..1_500 {
        let key = key * 7_919 % 1_500;
        for patience in 0.. {
            let kept = memory.objects.clone();
            memory.patience = Some(patience);
            let inserted = map.insert(&mut memory, key, value.clone());
            memory.patience = None;
            if inserted.is_ok() {
                break;
            }
            // Nodes may have been made, which nobody knows yet.
            assert!(kept.iter().all(|(at, bytes)| memory.objects[at] == *bytes));
            memory.objects = kept;
        }
    }
    assert_eq!(check(&mut memory, map), 2);
    let mut most = 0;
    for key in 0..1_500 {
        for patience in 0.. {
            let kept = memory.objects.clone();
            memory.patience = Some(patience);
            let removed = map.remove(&mut memory, &key);
            memory.patience = None;
            most = most.max(patience);
            match removed {
                Ok(old) => {
                    assert_eq!(old.as_ref(), Some(&value));
                    break;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::HomeUnreachable),
            }
            assert_eq!(memory.objects, kept);
        }
    }
    // Three nodes down, and a neighbour on each level below the root.
    assert!(most >= 5, "{most}");
    assert_eq!(check(&mut memory, map), 0);
}

#[test]
fn a_removal_seldom_looks_at_a_neighbour() {
    let mut memory = Memory::default();
    let map: TreeMap<u64, Vec<u8>> = memory.map();
    for key in 0..4_000 {
        map.insert(&mut memory, key, vec![7; 40]).unwrap();
    }
    let height = check(&mut memory, map);
    let (mut dice, mut removed, mut more) = (Xoshiro256::new(3), 0, 0);
    while removed < 3_600 {
        memory.read.clear();
        if map
            .remove(&mut memory, &dice.below(4_000))
            .unwrap()
            .is_some()
        {
            removed += 1;
            more += usize::from(memory.read.len() > height + 1);
        }
    }
    // Of the leaves each is looked at from a quarter of its size on, whenever it has halved.
    assert!((1..removed / 20).contains(&more), "{more} of {removed}");
}

#[test]
fn keys_and_values_have_limits_and_may_be_of_any_length_below() {
    let mut memory = Memory::default();
    let map: TreeMap<String, Vec<u8>> = memory.map();
    let too_long = "k".repeat(KEY_BYTES_MAX);
    let error = map.insert(&mut memory, too_long, Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let too_much = vec![0; VALUE_BYTES_MAX];
    let error = map.insert(&mut memory, "k".into(), too_much).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let (mut dice, mut model) = (Xoshiro256::new(5), BTreeMap::new());
    for _ in 0..400 {
        let key = "k".repeat(dice.below(1_000) as usize) + &dice.below(1_000).to_string();
        let value = vec![7; dice.below(4_000) as usize];
        assert_eq!(
            map.insert(&mut memory, key.clone(), value.clone()).unwrap(),
            model.insert(key, value)
        );
    }
    // Nothing has to be staged as a large object.
    let largest = memory.objects.values().map(Vec::len).max().unwrap();
    assert!(
        largest <= thorp_model::limits::INLINE_VALUE_BYTES_MAX,
        "{largest}"
    );
    let all: Vec<_> = model.clone().into_iter().collect();
    assert_eq!(map.range(&mut memory, ..).unwrap(), all);
    for key in model.keys() {
        assert!(map.remove(&mut memory, key).unwrap().is_some());
    }
    assert_eq!(memory.objects.len(), 1);
}

#[test]
fn what_is_no_map_is_told() {
    let mut memory = Memory::default();
    let no_node = memory.create(vec![0xff; 20]);
    let map: TreeMap<u64, u64> = TreeMap::at(no_node);
    let error = map.get(&mut memory, &1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DataDamaged);
    // A circle.
    let circle = memory.create(Vec::new());
    let node = Node::<u64, u64>::Inner(super::node::Inner {
        keys: Vec::new(),
        below: vec![circle],
    });
    memory.objects.insert(circle, node.bytes().unwrap());
    let map: TreeMap<u64, u64> = TreeMap::at(circle);
    for error in [
        map.get(&mut memory, &1).unwrap_err(),
        map.len(&mut memory).unwrap_err(),
        map.clear(&mut memory).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::DataDamaged);
    }
}
