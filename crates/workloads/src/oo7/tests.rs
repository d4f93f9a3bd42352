//! What the indexes find is what is there.

use std::collections::{BTreeMap, BTreeSet};

use super::index::all;
use super::layout::{Kind, View};
use super::*;
use crate::objects::{Indexed, MemoryObjects, MemoryStore, Objects, Store};
use thorp_client::{Reference, Result};

fn config() -> Config {
    Config {
        composites: 20,
        levels: 3,
        ..Config::small()
    }
}

fn built() -> (MemoryStore, Module) {
    let store = MemoryStore::new();
    let module = build(&store, &config()).expect("memory has room");
    (store, module)
}

/// An atomic part, as it is found by way of its composite.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Seen {
    id: u32,
    date: u32,
    at: Reference,
}

fn parts(objects: &mut MemoryObjects<'_>, module: &Module) -> Result<BTreeSet<Seen>> {
    let mut parts = Vec::new();
    for composite in module.composites(objects)? {
        View::of(objects.read(&composite)?, Kind::Composite)?.parts(&mut parts)?;
    }
    let seen = parts.into_iter().map(|at| {
        let view = View::of(objects.read(&at)?, Kind::Atomic)?;
        Ok(Seen {
            id: view.atomic_id()?,
            date: view.atomic_date()?,
            at,
        })
    });
    seen.collect()
}

/// The indexes have what is there, and nothing else.
fn check(store: &MemoryStore, module: &Module) {
    let work = |objects: &mut MemoryObjects<'_>| {
        let parts = parts(objects, module)?;
        let indexes = &module.indexes;
        let by_id = indexes.atomics.range(&mut Indexed(objects), ..)?;
        let expected: BTreeMap<u32, Reference> = parts.iter().map(|p| (p.id, p.at)).collect();
        assert_eq!(by_id, expected.into_iter().collect::<Vec<_>>());
        let by_date = indexes.dates.range(&mut Indexed(objects), ..)?;
        let expected: BTreeMap<_, Reference> =
            parts.iter().map(|p| ((p.date, p.id), p.at)).collect();
        assert_eq!(by_date, expected.into_iter().collect::<Vec<_>>());
        let composites = module.composites(objects)?;
        let documents = all(objects, indexes.documents)?;
        let mut titled: Vec<Reference> = Vec::new();
        for (_, document) in indexes.titles.range(&mut Indexed(objects), ..)? {
            titled.push(document);
        }
        assert_eq!(titled, documents);
        let mut documented = Vec::new();
        for document in &documents {
            let view = View::of(objects.read(document)?, Kind::Document)?;
            documented.push(view.documented()?);
        }
        assert_eq!(documented, composites);
        Ok(())
    };
    store.transact(work).expect("memory");
}

fn answer(store: &MemoryStore, module: &Module, asked: Query) -> u64 {
    let found = store.transact(|objects| query(objects, module, asked, 7));
    found.expect("the module is whole")
}

#[test]
fn queries_find_what_a_look_at_everything_finds() {
    let (store, module) = built();
    check(&store, &module);
    let all = store.transact(|objects| parts(objects, &module));
    let all = all.expect("memory");
    let newer = |date| all.iter().filter(|part| part.date >= date).count() as u64;
    assert_eq!(answer(&store, &module, Query::Q1), 10);
    assert_eq!(answer(&store, &module, Query::Q2), newer(1990));
    assert_eq!(answer(&store, &module, Query::Q3), newer(1900));
    assert!(newer(1990) > 0 && newer(1900) > newer(1990));
    assert_eq!(answer(&store, &module, Query::Q7), 400);
    assert_eq!(answer(&store, &module, Query::Q8), 400);
    // A composite is used by 27 / 20 base assemblies on average.
    let users = answer(&store, &module, Query::Q4);
    assert!((80..300).contains(&users), "{users}");
    let older = store.transact(|objects| {
        let mut older = 0;
        for base in module.bases(objects)? {
            let view = View::of(objects.read(&base)?, Kind::Base)?;
            let (date, mut used) = (view.date()?, Vec::new());
            view.below(&mut used)?;
            for composite in used {
                if View::of(objects.read(&composite)?, Kind::Composite)?.date()? > date {
                    older += 1;
                    break;
                }
            }
        }
        Ok(older)
    });
    let older = older.expect("memory");
    assert!(older > 0);
    assert_eq!(answer(&store, &module, Query::Q5), older);
    // Whoever is above one of them is one, too: composites that are newer than any assembly are newer than all above.
    let any = answer(&store, &module, Query::Q6);
    assert!(any > older && any <= older + u64::from(config().complexes()));
}

#[test]
fn dates_that_change_are_found_where_they_are() {
    let (store, module) = built();
    let before = store.transact(|objects| parts(objects, &module));
    let before = before.expect("memory");
    let run = |traversal| {
        let done = store.transact(|objects| traverse(objects, &module, traversal));
        assert_eq!(done.expect("whole").counts, config().expected(traversal));
        check(&store, &module);
        store
            .transact(|objects| parts(objects, &module))
            .expect("memory")
    };
    assert_ne!(run(Traversal::T3a), before);
    run(Traversal::T3a);
    assert_ne!(run(Traversal::T3b), before);
    assert_eq!(run(Traversal::T3b), before);
    assert_eq!(run(Traversal::T3c), before);
}

#[test]
fn what_is_inserted_is_used_and_found_and_goes_again() {
    let (store, module) = built();
    let visits = || {
        let done = store.transact(|objects| traverse(objects, &module, Traversal::T1));
        done.expect("whole").counts.atomic_visits
    };
    let (objects, before) = (store.size().0, visits());
    for round in 0..3 {
        let ids = store.transact(|objects| insert(objects, &module, round));
        assert_eq!(ids.expect("memory"), [21, 22, 23, 24, 25]);
        check(&store, &module);
        assert_eq!(visits(), before + 10 * 20);
        assert_eq!(answer(&store, &module, Query::Q7), 500);
        let more = store.transact(|objects| insert(objects, &module, round));
        assert_eq!(more.expect("memory"), [26, 27, 28, 29, 30]);
        let gone = store.transact(|objects| remove(objects, &module));
        assert_eq!(gone.expect("memory"), [26, 27, 28, 29, 30]);
        let gone = store.transact(|objects| remove(objects, &module));
        assert_eq!(gone.expect("memory"), [21, 22, 23, 24, 25]);
        check(&store, &module);
        assert_eq!(visits(), before);
    }
    // What the module was built with stays.
    let gone = store.transact(|objects| remove(objects, &module));
    assert_eq!(gone.expect("memory"), []);
    // But for nodes of indexes that were split nothing is left.
    assert!(store.size().0 < objects + 20);
}

#[test]
fn the_way_up_visits_every_level_for_each_use() {
    let (store, module) = built();
    for seed in 0..20 {
        let done = store.transact(|objects| traverse_from(objects, &module, Traversal::T7, seed));
        let counts = done.expect("whole").counts;
        assert_eq!(counts.atomic_visits, 1);
        assert_eq!(counts.assemblies % 3, 0);
    }
}

#[test]
fn a_module_of_ones_own_uses_one_that_all_share() {
    let store = MemoryStore::new();
    let shared = build(&store, &config()).expect("memory has room");
    let composites = store
        .transact(|objects| shared.composites(objects))
        .expect("memory");
    // References lead from one store to the other only in a village; here one is as good as the other.
    let own = MemoryStore::new();
    let module = build_sharing(&own, &config(), &composites).expect("memory has room");
    let uses = own.transact(|objects| {
        let mut shared = Vec::new();
        for base in module.bases(objects)? {
            View::of(objects.read(&base)?, Kind::Base)?.shared(&mut shared)?;
        }
        Ok(shared)
    });
    let uses = uses.expect("memory");
    assert_eq!(uses.len(), 27);
    assert!(uses.iter().all(|used| composites.contains(used)));
    let kinds: BTreeSet<&Reference> = uses.iter().collect();
    assert!(kinds.len() > 12, "{}", kinds.len());
    let done = own.transact(|objects| traverse(objects, &module, Traversal::T1));
    assert_eq!(
        done.expect("whole").counts,
        config().expected(Traversal::T1)
    );
}

#[test]
fn of_one_composite_all_parts_are_changed_and_of_others_none() {
    let (store, module) = built();
    let changed = |id| {
        let done = store.transact(|objects| traverse_changing_one(objects, &module, id));
        done.map(|done| done.counts)
    };
    let users = |id| {
        let found = store.transact(|objects| {
            let composite = module.indexes.composites.get(&mut Indexed(objects), &id)?;
            let mut users = Vec::new();
            let composite = composite.expect("it is there");
            View::of(objects.read(&composite)?, Kind::Composite)?.users(&mut users)?;
            Ok(users.len() as u64)
        });
        found.expect("memory")
    };
    for id in 1..=20 {
        let counts = changed(id).expect("it is there");
        assert_eq!(counts.swaps, 20 * users(id));
        assert_eq!(
            counts.atomic_visits,
            config().expected(Traversal::T1).atomic_visits
        );
    }
    assert!(changed(21).is_err());
}
