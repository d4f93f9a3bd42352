//! OO7 and buildings in a village: a home, two sites, four members.

mod common;
#[path = "common/village.rs"]
mod village;

use std::collections::BTreeSet;
use std::thread;
use std::time::Instant;

use common::{real_model_bytes, written};
use thorp_client::{Reference, Session};
use thorp_workloads::ifc::store::{Building, Desk, import};
use thorp_workloads::ifc::{
    EditRecord, IfcError, Kind, MemoryModel, Plan, Tag, add_property, generate, name_of,
    property_sets, rename, shift, walk,
};
use thorp_workloads::objects::{MemberStore, Store};
use thorp_workloads::oo7::{Config, Mix, Module, Scope, Traversal, Turn, build, build_sharing};
use thorp_workloads::step::{EntityId, StepFile, parse};
use village::Village;

/// Two members at each of two sites.
fn four(village: &Village, segment: &str) -> Vec<MemberStore> {
    let sites = [village.site(), village.site()];
    let names = ["anna", "ben", "clara", "dan"];
    let places = sites.iter().flat_map(|site| [site, site]);
    places
        .zip(names)
        .map(|(site, name)| village.at(site, name, segment))
        .collect()
}

/// A tenth of the small module, with small documents.
fn tenth() -> Config {
    Config {
        composites: 50,
        levels: 4,
        document_bytes: 200,
        ..Config::small()
    }
}

#[test]
fn traversals_count_in_a_village() {
    let village = Village::new();
    let config = tenth();
    let module = build(&village.at_home("builder", "oo7"), &config).expect("built");
    let member = village.at(&village.site(), "anna", "oo7");
    assert_eq!(Module::open(&member).expect("open"), Some(module.clone()));
    for traversal in [
        Traversal::T1,
        Traversal::T2a,
        Traversal::T2b,
        Traversal::T2c,
        Traversal::T6,
    ] {
        let turn = Turn::run(&member, &module, traversal).expect("traversed");
        assert_eq!(
            turn.done.counts,
            config.expected(traversal),
            "{traversal:?}"
        );
    }
    let warm = Turn::run(&member, &module, Traversal::T1).expect("traversed");
    assert_eq!(warm.stats.fetches, 0, "all of it is in the cache");
    assert_eq!(warm.stats.free_commits, 1, "nobody was asked");
    let ends = Turn::run(&member, &module, Traversal::T9).expect("read");
    assert_eq!(ends.done.counts.atomic_visits, 0);
    let counted = Turn::run(&member, &module, Traversal::T8).expect("read");
    assert_eq!(counted.done.characters, 100_000_u64.div_ceil(38));
}

/// The objects of one composite lie side by side, and those of the next one after them: who visits some of them at random
/// soon visits all.
#[test]
fn a_cold_traversal_waits_seldom() {
    let village = Village::new();
    let config = Config {
        composites: 150,
        levels: 5,
        ..tenth()
    };
    let module = build(&village.at_home("builder", "oo7"), &config).expect("built");
    let misses = |member: &MemberStore| {
        let turn = Turn::run(member, &module, Traversal::T1).expect("traversed");
        assert_eq!(turn.done.counts, config.expected(Traversal::T1));
        println!("{:?}", turn.stats);
        turn.stats.misses
    };
    let page_by_page = misses(&village.page_by_page("anna", "oo7"));
    let ahead = misses(&village.at_home("bert", "oo7"));
    assert!(
        ahead * 3 < page_by_page,
        "{ahead} waits, page by page {page_by_page}"
    );
}

/// T2b takes the module from one of two states to the other. So every traversal must have seen one of the two, and the
/// last state tells whether the number of swaps was even.
#[test]
fn a_mix_of_four_members_is_serializable() {
    let village = Village::new();
    let config = Config::tiny();
    let builder = village.at_home("builder", "oo7");
    let module = build(&builder, &config).expect("built");
    let checksum = |traversal| {
        let turn = Turn::run(&builder, &module, traversal).expect("traversed");
        turn.done.checksum
    };
    // What each traversal meets in either state.
    let states = [(); 2].map(|()| (checksum(Traversal::T1), checksum(Traversal::T2b)));
    assert_ne!(states[0].0, states[1].0);
    let members = four(&village, "oo7");
    let worker = |member: &MemberStore, seed| {
        let mut mix = Mix::new(50, seed);
        let turns = (0..8).map(|_| mix.turn(member, &module).expect("committed"));
        turns.collect::<Vec<Turn>>()
    };
    let turns: Vec<Turn> = thread::scope(|scope| {
        let start = |(member, seed)| scope.spawn(move || worker(member, seed));
        let workers: Vec<_> = members.iter().zip(0..).map(start).collect();
        let done = workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"));
        done.flatten().collect()
    });
    for turn in &turns {
        assert_eq!(turn.done.counts, config.expected(turn.traversal));
        let met = match turn.traversal {
            Traversal::T1 => states.map(|(met, _)| met),
            _ => states.map(|(_, met)| met),
        };
        assert!(met.contains(&turn.done.checksum), "{turn:?}");
    }
    let writes = turns.iter().filter(|turn| turn.traversal.writes()).count();
    assert!(writes > 0);
    for member in members.iter().map(strict) {
        let turn = Turn::run(&member, &module, Traversal::T1).expect("traversed");
        assert_eq!(turn.done.checksum, states[writes % 2].0);
    }
}

/// Two members have modules of their own in segments of their own; the base assemblies of both also use composites of a
/// third one, in its segment. What one changes there, the other sees; what it changes in its own, nobody.
#[test]
fn a_mix_goes_to_its_own_module_or_to_the_shared_one() {
    let village = Village::new();
    let config = Config::tiny();
    let shared = village.at_home("builder", "shared");
    let module = build(&shared, &config).expect("built");
    let composites = shared.transact(|objects| module.composites(objects));
    let composites = composites.expect("listed");
    let site = village.site();
    let [(anna, annas), (ben, bens)] = ["anna", "ben"].map(|name| {
        let store = village.at(&site, name, name);
        let module = build_sharing(&store, &config, &composites).expect("built");
        (store, module)
    });
    let turn = |store, module, writing, shared, scope| {
        let mut mix = Mix::new(writing, 1).sharing(shared);
        let turn = mix.turn(&strict(store), module).expect("committed");
        assert_eq!(turn.scope, scope);
        assert_eq!(turn.done.counts, config.expected(turn.traversal));
        turn.done.checksum
    };
    let own = |store, module| turn(store, module, 0, 0, Scope::Own);
    let common = |store, module| turn(store, module, 0, 100, Scope::Shared);
    let before = common(&ben, &bens);
    assert_eq!(before, common(&anna, &annas), "both draw the same ones");
    let bens_own = own(&ben, &bens);
    turn(&anna, &annas, 100, 100, Scope::Shared);
    let swapped = common(&ben, &bens);
    assert_ne!(swapped, before, "a neighbour has changed what both use");
    turn(&anna, &annas, 100, 0, Scope::Own);
    assert_eq!(common(&ben, &bens), swapped);
    turn(&ben, &bens, 100, 100, Scope::Shared);
    assert_eq!(common(&anna, &annas), before, "swapped twice");
    assert_eq!(own(&ben, &bens), bens_own, "nobody was here");
    // Of many turns some go here, some there.
    let mut mix = Mix::new(0, 1).sharing(50);
    let scopes = (0..16).map(|_| mix.turn(&anna, &annas).expect("committed").scope);
    let common = scopes.filter(|scope| *scope == Scope::Shared).count();
    assert!((1..16).contains(&common), "{common} of 16");
}

/// The whole small module, with the numbers of the papers. What it prints is how long it took.
#[test]
fn the_small_module_is_traversed_in_a_village() {
    let village = Village::new();
    let config = Config::small();
    let begun = Instant::now();
    let module = build(&village.at_home("builder", "oo7"), &config).expect("built");
    eprintln!("built in {:?}", begun.elapsed());
    let site = village.site();
    let [anna, ben] = ["anna", "ben"].map(|name| village.at(&site, name, "oo7"));
    let run = |member: &MemberStore, words: &str, traversal| {
        let turn = Turn::run(member, &module, traversal).expect("traversed");
        assert_eq!(turn.done.counts, config.expected(traversal));
        let (computing, fetching, committing) =
            (turn.computing(), turn.fetching(), turn.committing());
        eprintln!(
            "{words}: {:?} = {computing:?} computing + {fetching:?} fetching + {committing:?} committing; \
             {} fetches, {} misses, {} attempts",
            turn.total, turn.stats.fetches, turn.stats.misses, turn.attempts
        );
        turn
    };
    let cold = run(&anna, "T1, nothing cached", Traversal::T1);
    assert_eq!(cold.done.counts.atomic_visits, 43_740);
    run(&anna, "T1, all cached", Traversal::T1);
    run(&anna, "T1, all cached", Traversal::T1);
    run(&ben, "T1, all at a neighbour", Traversal::T1);
    let swapped = run(&anna, "T2b, all cached", Traversal::T2b);
    assert_eq!(swapped.done.counts.swaps, 43_740);
    run(&anna, "T1, after its own T2b", Traversal::T1);
    run(&ben, "T1, after a neighbour's T2b", Traversal::T1);
}

/// The same member, which now always asks the home whether what it read is the newest.
fn strict(store: &MemberStore) -> MemberStore {
    let session = Session::new().attempts_max(1_000).strict(true);
    MemberStore::new(store.member().clone(), store.segment().clone(), session)
}

/// What a member edits: each element it meets is renamed; every second one of its own is moved and noted on.
struct Errand<'a> {
    store: &'a MemberStore,
    building: Building,
    desk: Desk,
    number: usize,
}

impl Errand<'_> {
    fn tag(&self, kind: char, number: usize) -> Tag {
        format!("{kind}-{}-{number}", self.number)
            .parse()
            .expect("a good tag")
    }

    /// The building's elements with property sets, below the storeys.
    fn elements(&self) -> Vec<Reference> {
        let relations = self.building.relations();
        let nodes = self
            .building
            .read(self.store, |model| walk(model, relations));
        let nodes = nodes.expect("a project").into_iter();
        let elements = nodes
            .filter(|node| node.depth >= 3 && relations.properties.contains_key(&node.reference));
        elements.map(|node| node.reference).collect()
    }

    /// Renames elements that others rename too, and does the rest to elements of its own.
    fn run(&self, edits: usize) -> Vec<EditRecord> {
        let relations = self.building.relations();
        let elements = self.elements();
        let mut records = Vec::new();
        for number in 0..edits {
            let shared = &elements[number % 3];
            let tag = self.tag('r', number);
            let edit = self
                .desk
                .edit(self.store, |model| rename(model, shared, &tag));
            records.push(edit.expect("renamed").record);
            let own = &elements[(3 + 4 * number + self.number) % elements.len()];
            let tag = self.tag('m', number);
            let moved = self.desk.edit(self.store, |model| {
                shift(model, relations, own, [1., 2., 3.], &tag)
            });
            // What stands in a storey by no more than its name has nothing to move.
            records.extend(moved.ok().map(|edit| edit.record));
            let tag = self.tag('p', number);
            let noted = self.desk.edit(self.store, |model| {
                let sets = property_sets(model, relations, own)?;
                let set = sets.first().ok_or(IfcError::NoSingleProject)?;
                add_property(model, &set.reference, "5 °C", &tag)
            });
            records.extend(noted.ok().map(|edit| edit.record));
        }
        records
    }
}

/// Four members edit at once; each commited edit is in the export, once, and nothing else has changed.
fn edit_together(file: &StepFile, edits: usize) {
    let village = Village::new();
    import(&village.at_home("importer", "house"), file).expect("imported");
    let members = four(&village, "house");
    let records: Vec<EditRecord> = thread::scope(|scope| {
        let workers: Vec<_> = members
            .iter()
            .enumerate()
            .map(|(number, store)| {
                scope.spawn(move || {
                    let building = Building::open(store).expect("it was imported");
                    let desk = building.take_desk(store).expect("a desk");
                    let errand = Errand {
                        store,
                        building,
                        desk,
                        number,
                    };
                    errand.run(edits)
                })
            })
            .collect();
        let done = workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"));
        done.flatten().collect()
    });
    assert!(records.len() >= 4 * edits);
    let exports: Vec<StepFile> = members
        .iter()
        .map(strict)
        .map(|store| {
            let building = Building::open(&store).expect("it was imported");
            building.export(&store).expect("whole")
        })
        .collect();
    let (newest, others) = exports.split_first().expect("four");
    assert!(others.iter().all(|export| export == newest));
    check(file, newest, &records);
}

fn check(file: &StepFile, export: &StepFile, records: &[EditRecord]) {
    let reread = parse(&written(export)).expect("a valid file");
    assert!(reread == *export);
    let text = String::from_utf8(written(export)).expect("ASCII");
    for record in records {
        if !matches!(record.kind, Kind::Move { .. }) {
            let found = text.matches(&record.tag.bracketed()).count();
            assert_eq!(found, 1, "{record:?}");
        }
    }
    let touched: BTreeSet<EntityId> = records
        .iter()
        .flat_map(|record| record.rewritten.clone())
        .collect();
    let created: Vec<EntityId> = records
        .iter()
        .flat_map(|record| record.created.clone())
        .collect();
    assert_eq!(export.entities.len(), file.entities.len() + created.len());
    for (before, after) in file.entities.iter().zip(&export.entities) {
        assert!(
            before == after || touched.contains(&before.id),
            "{} changed by itself",
            before.id
        );
    }
    let mut model = MemoryModel::new(export.clone());
    let relations = model.relations();
    let named = walk(&mut model, &relations).expect("a project");
    assert!(
        named
            .iter()
            .any(|node| name_of(&node.entity.body).is_some_and(|name| name.contains("[r-3-0]")))
    );
}

#[test]
fn a_house_is_edited_by_four_at_two_sites() {
    let plan = Plan {
        floors: 2,
        rooms_per_floor: 6,
        ..Plan::default()
    };
    edit_together(&generate(&plan), 8);
}

#[test]
fn a_real_model_is_edited_by_four_at_two_sites() {
    let Some(bytes) = real_model_bytes() else {
        return;
    };
    edit_together(&parse(&bytes).expect("a good file"), 8);
}
