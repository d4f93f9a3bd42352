//! OO7's module comes out as the benchmark wants it, and the traversals count what they must.

use std::collections::BTreeSet;

use thorp_client::{Error, ErrorKind};
use thorp_workloads::objects::{MemoryStore, Objects, Store};
use thorp_workloads::oo7::{Config, Done, Mix, Module, ROOT, Traversal, Turn, build, traverse};

/// A tenth of the small module: 50 composites, 27 base assemblies.
fn tenth() -> Config {
    Config {
        composites: 50,
        levels: 4,
        ..Config::small()
    }
}

fn built(config: &Config) -> (MemoryStore, Module) {
    let store = MemoryStore::new();
    let module = build(&store, config).expect("memory has room");
    (store, module)
}

fn done(store: &MemoryStore, module: &Module, traversal: Traversal) -> Done {
    store
        .transact(|objects| traverse(objects, module, traversal))
        .expect("the module is whole")
}

#[test]
fn traversals_count_what_they_must() {
    for config in [Config::tiny(), tenth()] {
        let (store, module) = built(&config);
        for traversal in [
            Traversal::T1,
            Traversal::T2a,
            Traversal::T2b,
            Traversal::T2c,
            Traversal::T3a,
            Traversal::T3b,
            Traversal::T3c,
            Traversal::T6,
        ] {
            let expected = config.expected(traversal);
            assert_eq!(
                done(&store, &module, traversal).counts,
                expected,
                "{traversal:?}"
            );
            assert_eq!(traversal.writes(), expected.swaps + expected.dates > 0);
        }
    }
}

/// The whole small module: the numbers of the papers.
#[test]
fn the_small_module_is_oo7s() {
    let (store, module) = built(&Config::small());
    let (objects, bytes) = store.size();
    // 729 + 364 assemblies, 500 composites with document, 10,000 parts, 30,000 connections, manual, module.
    let nodes = objects - (1_093 + 1_000 + 40_000 + 2);
    // Two entries for each part, three for each composite, one for each base assembly.
    assert!((150..400).contains(&nodes), "{nodes} nodes of indexes");
    assert!((4_700_000..5_700_000).contains(&bytes), "{bytes} bytes");
    let met = [Traversal::T1, Traversal::T2b, Traversal::T1].map(|traversal| {
        let done = done(&store, &module, traversal);
        assert_eq!(done.counts.atomic_visits, 43_740);
        assert_eq!(done.counts.swaps > 0, traversal == Traversal::T2b);
        done.checksum
    });
    // Those of another program in another language, which makes the same module: lab/peers/zeo.
    assert_eq!(
        met,
        [
            9_367_816_809_998_590_225,
            9_331_596_002_180_124_595,
            9_335_623_865_459_048_545
        ]
    );
    assert_eq!(
        done(&store, &module, Traversal::T6).counts.atomic_visits,
        2_187
    );
}

#[test]
fn the_manual_is_read() {
    let (store, module) = built(&Config::tiny());
    // The sentence is 38 characters long, and each has one I.
    let counted = done(&store, &module, Traversal::T8).characters;
    assert_eq!(counted, 10_000_u64.div_ceil(38));
    // The text breaks off in the middle of a sentence.
    assert_eq!(done(&store, &module, Traversal::T9).characters, 0);
}

/// Every object's bytes, by way of a traversal that cannot be fooled: page after page.
fn everything(store: &MemoryStore) -> Vec<Vec<u8>> {
    let begin = store
        .transact(|objects| Ok(objects.root(ROOT)?.expect("a module")))
        .expect("memory");
    let (count, _) = store.size();
    let mut all = Vec::new();
    store
        .transact(|objects| {
            let mut reference = begin;
            for page in 0.. {
                reference.object.page = thorp_client::PageId::new(1, page);
                for slot in 0..240_u16 {
                    reference.object.slot = slot.try_into().expect("a slot");
                    match objects.read(&reference) {
                        Ok(bytes) => all.push(bytes.to_vec()),
                        Err(_) => break,
                    }
                }
                if all.len() == count {
                    return Ok(());
                }
            }
            Ok(())
        })
        .expect("memory");
    all
}

#[test]
fn the_config_alone_decides() {
    let (one, _) = built(&Config::tiny());
    let (other, _) = built(&Config::tiny());
    assert!(everything(&one) == everything(&other));
    let seeded = Config {
        seed: 7,
        ..Config::tiny()
    };
    let (seeded, module) = built(&seeded);
    assert!(everything(&one) != everything(&seeded));
    assert_eq!(module.config.seed, 7);
}

#[test]
fn swapping_twice_is_not_swapping() {
    let (store, module) = built(&Config::tiny());
    let before = everything(&store);
    let sum = || done(&store, &module, Traversal::T1).checksum;
    let sum_before = sum();
    done(&store, &module, Traversal::T2c);
    assert!(everything(&store) == before);
    done(&store, &module, Traversal::T2b);
    assert!(everything(&store) != before);
    assert_ne!(sum(), sum_before);
    done(&store, &module, Traversal::T2b);
    assert!(everything(&store) == before);
    assert_eq!(sum(), sum_before);
}

#[test]
fn a_module_is_found_again_and_not_built_twice() {
    let (store, module) = built(&Config::tiny());
    assert_eq!(Module::open(&store).expect("memory"), Some(module));
    let refused: Error = build(&store, &Config::tiny()).expect_err("there is one");
    assert_eq!(refused.kind(), ErrorKind::Aborted);
    assert_eq!(Module::open(&MemoryStore::new()).expect("memory"), None);
}

#[test]
fn all_composites_and_bases_are_listed() {
    // More composites than one list object holds.
    let config = Config {
        composites: 300,
        atomics_per_composite: 2,
        ..tenth()
    };
    let (store, module) = built(&config);
    let listed =
        store.transact(|objects| Ok((module.composites(objects)?, module.bases(objects)?)));
    let (mut composites, bases) = listed.expect("memory");
    assert_eq!((composites.len(), bases.len()), (300, 27));
    composites.sort_unstable();
    composites.dedup();
    assert_eq!(composites.len(), 300);
}

#[test]
fn a_mix_follows_from_its_seed() {
    let (store, module) = built(&Config::tiny());
    let kinds = |percent, seed| {
        let mut mix = Mix::new(percent, seed);
        let turn = |_| -> Turn { mix.turn(&store, &module).expect("memory") };
        let turns = (0..20).map(turn);
        turns.map(|turn| turn.traversal).collect::<Vec<_>>()
    };
    assert_eq!(kinds(50, 1), kinds(50, 1));
    assert_ne!(kinds(50, 1), kinds(50, 2));
    assert_eq!(kinds(0, 1), [Traversal::T1; 20]);
    assert_eq!(kinds(100, 1), [Traversal::T2b; 20]);
}

#[test]
fn a_mix_that_changes_one_composite_changes_no_other() {
    let config = Config::tiny();
    let (store, module) = built(&config);
    let checksum = || {
        let turn = Turn::run(&store, &module, Traversal::T1).expect("memory");
        turn.done.checksum
    };
    let before = checksum();
    let mut mix = Mix::new(100, 1).changing_one();
    let mut changed = BTreeSet::new();
    for _ in 0..20 {
        let turn = mix.turn(&store, &module).expect("memory");
        assert_eq!(
            turn.done.counts.atomic_visits,
            config.expected(Traversal::T2b).atomic_visits,
            "it visits all"
        );
        let composite = turn.changed.expect("it says which");
        // It swaps once for each visit, and composites are visited unequally often.
        assert_eq!(turn.done.counts.swaps % 20, 0);
        assert!(turn.done.counts.swaps < config.expected(Traversal::T2b).swaps);
        // The same again takes it back.
        Turn::run_changing_one(&store, &module, composite).expect("memory");
        assert_eq!(checksum(), before);
        changed.insert(composite);
    }
    assert!(changed.len() > 3, "always the same: {changed:?}");
    assert!(
        changed
            .iter()
            .all(|&composite| composite <= config.composites)
    );
    let unheard_of = Turn::run_changing_one(&store, &module, config.composites + 1);
    assert!(unheard_of.is_err());
}
