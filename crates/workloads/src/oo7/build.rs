//! Making a module.
//!
//! Several transactions make it, each far below a commit's limit, and the last one sets the root: nobody sees a module
//! that is not whole. Every assembly and composite draws its numbers from a sequence of its own, so what is made depends
//! on the config alone, not on batches or on how often a transaction was run.

use std::ops::Range;

use thorp_client::{Error, Reference, Result};
use thorp_model::limits::{COMMIT_BYTES_MAX, STAGED_PER_MEMBER_MAX};

use super::draws::{Draws, Sequence};
use super::graph::Graph;
use super::index::Part;
use super::layout::{self, Assembly, Atomic, Composite, Kind};
use super::{Config, Indexes, Module, ROOT};
use crate::objects::{Objects, Store, encoded};

/// Makes a module in a segment that has none.
///
/// # Errors
/// The config is [bad](super::BadConfig), the segment has a module, or those of the store. What was made until then stays
/// in the segment and is of no use: remove it.
pub fn build<S: Store>(store: &S, config: &Config) -> Result<Module> {
    build_sharing(store, config, &[])
}

/// As [`build`], where each base assembly also uses as many composites of a module that several share, drawn from those
/// given. That one's composites do not know of it: they would change with every private module that is made.
///
/// # Errors
/// As [`build`].
pub fn build_sharing<S: Store>(store: &S, config: &Config, shared: &[Reference]) -> Result<Module> {
    config.check().map_err(Error::aborted_by)?;
    let plan = Plan::draw(config, shared);
    let assemblies = store.transact(|objects| plan.make_assemblies(objects))?;
    let mut made = Made::default();
    let composites_max = config.composites_per_batch();
    for first in (0..config.composites).step_by(composites_max as usize) {
        let batch = first..config.composites.min(first.saturating_add(composites_max));
        let batch =
            store.transact(|objects| plan.make_composites(objects, batch.clone(), &assemblies))?;
        made.composites.extend(batch.composites);
        made.parts.extend(batch.parts);
    }
    let complexes = config.complexes();
    let bases = &assemblies.0[complexes as usize..];
    let indexes = made.index(store, complexes + 1, bases)?;
    store.transact(|objects| plan.finish(objects, &assemblies, &made.composites, indexes))
}

/// Everything that is chosen before the first object is made.
struct Plan<'a> {
    config: &'a Config,
    /// For each base assembly the composites that it uses, by their places.
    uses: Vec<Vec<u32>>,
    /// For each composite the base assemblies that use it, by their places; one that does so twice is there twice.
    users: Vec<Vec<u32>>,
    /// For each base assembly the shared composites that it uses.
    shared: Vec<Vec<Reference>>,
}

/// References of the assemblies, by their places in the tree: the topmost first, those below place n at
/// n * fan-out + 1 and after. So complex assemblies come before base assemblies.
struct Assemblies(Vec<Reference>);

/// What was made and has to be indexed.
#[derive(Default)]
struct Made {
    /// With their documents, in the order of their ids.
    composites: Vec<(Reference, Reference)>,
    parts: Vec<Part>,
}

impl<'a> Plan<'a> {
    fn draw(config: &'a Config, shared: &[Reference]) -> Self {
        let mut random = Draws::of(config.seed, Sequence::USES);
        let mut users = vec![Vec::new(); config.composites as usize];
        let uses = (0..config.bases())
            .map(|base| {
                let draw = |_| {
                    let composite = random.below(config.composites);
                    users[composite as usize].push(base);
                    composite
                };
                (0..config.composites_per_base).map(draw).collect()
            })
            .collect();
        let mut random = Draws::of(config.seed, Sequence::SHARED);
        let per_base = if shared.is_empty() {
            0
        } else {
            config.composites_per_base
        };
        let mut one_shared = |_| shared[random.below(shared.len() as u32) as usize];
        let shared = (0..config.bases())
            .map(|_| (0..per_base).map(&mut one_shared).collect())
            .collect();
        Plan {
            config,
            uses,
            users,
            shared,
        }
    }

    /// Complex assemblies as they stay; base assemblies as room for what cannot be known yet.
    fn make_assemblies<O: Objects>(&self, objects: &mut O) -> Result<Assemblies> {
        refuse_a_second(objects)?;
        let complexes = self.config.complexes() as usize;
        let complex_size = Assembly::size(self.config.fan_out as usize);
        let base_size = |shared: &Vec<Reference>| {
            Assembly::size(self.config.composites_per_base as usize + shared.len())
        };
        let sizes = std::iter::repeat_n(complex_size, complexes);
        let sizes = sizes.chain(self.shared.iter().map(base_size));
        let made: Result<_> = sizes.map(|size| objects.create(vec![0; size])).collect();
        let assemblies = Assemblies(made?);
        for place in 0..complexes {
            let below = &assemblies.0[self.below(place)];
            let complex = self.assembly(Kind::Complex, place, &assemblies, below);
            objects.write(&assemblies.0[place], complex)?;
        }
        Ok(assemblies)
    }

    /// The places of the assemblies below a complex one.
    fn below(&self, place: usize) -> Range<usize> {
        let fan_out = self.config.fan_out as usize;
        let first = place * fan_out + 1;
        first..first + fan_out
    }

    fn assembly(
        &self,
        kind: Kind,
        place: usize,
        assemblies: &Assemblies,
        below: &[Reference],
    ) -> Vec<u8> {
        let mut random = Draws::of(self.config.seed, Sequence::ASSEMBLIES + place as u64);
        let fan_out = self.config.fan_out as usize;
        let above = place.saturating_sub(1) / fan_out;
        let level = std::iter::successors(Some(place), |place| {
            place.checked_sub(1).map(|before| before / fan_out)
        });
        let base = place.checked_sub(self.config.complexes() as usize);
        let shared = base.map_or(&[][..], |base| &self.shared[base]);
        Assembly {
            kind,
            level: u8::try_from(level.count()).unwrap_or(u8::MAX),
            id: place as u32 + 1,
            date: random.date(1000),
            type_no: random.type_no(),
            above: assemblies.0[above],
            below,
            shared,
        }
        .encode()
    }

    /// Some composites, each with its graph of parts; then their documents, which no traversal of parts wants on the
    /// same pages.
    fn make_composites<O: Objects>(
        &self,
        objects: &mut O,
        batch: Range<u32>,
        assemblies: &Assemblies,
    ) -> Result<Made> {
        let make = |place: u32| {
            let users = self.users[place as usize].len();
            Graph::make(objects, self.config, place + 1, users)
        };
        let graphs: Result<Vec<Graph>> = batch.map(make).collect();
        let bases = &assemblies.0[self.config.complexes() as usize..];
        let mut made = Made::default();
        for graph in &graphs? {
            let users = self.users[graph.id as usize - 1].iter();
            let users: Vec<Reference> = users.map(|&base| bases[base as usize]).collect();
            let document = graph.finish(objects, self.config, &users)?;
            made.composites.push((graph.composite, document));
            made.parts.extend(graph.parts(self.config));
        }
        Ok(made)
    }

    /// Base assemblies as they stay, the manual, the module; and the root that shows it.
    fn finish<O: Objects>(
        &self,
        objects: &mut O,
        assemblies: &Assemblies,
        composites: &[(Reference, Reference)],
        indexes: Indexes,
    ) -> Result<Module> {
        refuse_a_second(objects)?;
        let complexes = self.config.complexes() as usize;
        for (base, uses) in self.uses.iter().enumerate() {
            let place = complexes + base;
            let below: Vec<Reference> = uses
                .iter()
                .map(|&composite| composites[composite as usize].0)
                .collect();
            let bytes = self.assembly(Kind::Base, place, assemblies, &below);
            objects.write(&assemblies.0[place], bytes)?;
        }
        let mut random = Draws::of(self.config.seed, Sequence::MODULE);
        let module = Module {
            config: *self.config,
            id: MODULE_ID,
            date: random.date(1000),
            manual: objects.create(layout::manual(MODULE_ID, self.config.manual_bytes))?,
            design: assemblies.0[0],
            indexes,
        };
        let root = objects.create(encoded(&module)?)?;
        objects.set_root(ROOT, &root)?;
        Ok(module)
    }
}

impl Made {
    /// Fills the indexes, each in the order of its keys: so its nodes are full, and lie side by side.
    fn index<S: Store>(
        &mut self,
        store: &S,
        first_base: u32,
        bases: &[Reference],
    ) -> Result<Indexes> {
        let indexes = store.transact(|objects| {
            let indexes = Indexes::create(objects)?;
            indexes.add_bases(objects, first_base, bases)?;
            Ok(indexes)
        })?;
        for (first, some) in (1..)
            .step_by(ENTRIES_MAX)
            .zip(self.composites.chunks(ENTRIES_MAX))
        {
            store.transact(|objects| {
                (first..)
                    .zip(some)
                    .try_for_each(|(id, (composite, document))| {
                        indexes.add_composite(objects, id, *composite, *document)
                    })
            })?;
        }
        for some in self.parts.chunks(ENTRIES_MAX) {
            store.transact(|objects| {
                let mut parts = some.iter();
                parts.try_for_each(|part| indexes.add_part(objects, part))
            })?;
        }
        self.parts.sort_unstable_by_key(|part| (part.date, part.id));
        for some in self.parts.chunks(ENTRIES_MAX) {
            store.transact(|objects| {
                let mut parts = some.iter();
                parts.try_for_each(|part| indexes.add_date(objects, part))
            })?;
        }
        Ok(indexes)
    }
}

impl Config {
    /// How many composites one transaction makes.
    fn composites_per_batch(&self) -> u32 {
        let connections = self.connections_per_atomic as usize;
        let part =
            Atomic::size(connections, connections) + connections * (52 + SLOT_BYTES) + SLOT_BYTES;
        let parts = self.atomics_per_composite as usize * part;
        let bytes = Composite::size(self.atomics_per_composite as usize, 0)
            + parts
            + self.document_bytes as usize;
        let fitting = (BATCH_BYTES / bytes).min(STAGED_PER_MEMBER_MAX / 2);
        u32::try_from(fitting).unwrap_or(1).max(1)
    }
}

fn refuse_a_second<O: Objects>(objects: &mut O) -> Result<()> {
    match objects.root(ROOT)? {
        None => Ok(()),
        Some(_) => Err(Error::aborted(
            "the segment has an OO7 module: remove it first",
        )),
    }
}

const MODULE_ID: u32 = 1;
/// Bytes of objects made by one transaction: with what the protocol adds, far below its limit.
const BATCH_BYTES: usize = COMMIT_BYTES_MAX / 4;
/// What an object costs besides its bytes.
const SLOT_BYTES: usize = 32;
/// Entries of an index that one transaction makes.
const ENTRIES_MAX: usize = 10_000;
