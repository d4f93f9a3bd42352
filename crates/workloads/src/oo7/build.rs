//! Making a module.
//!
//! Several transactions make it, each far below a commit's limit, and the last one sets the root: nobody sees a module
//! that is not whole. Every assembly and composite draws its numbers from a sequence of its own, so what is made depends
//! on the config alone, not on batches or on how often a transaction was run.

use std::ops::Range;

use thorp_client::{Error, Reference, Result};
use thorp_core::limits::{COMMIT_BYTES_MAX, STAGED_PER_MEMBER_MAX};

use super::layout::{self, Assembly, Atomic, Composite, Kind};
use super::module::write_lists;
use super::{Config, Module, ROOT};
use crate::objects::{Objects, Store, encoded};
use crate::random::Random;

/// Makes a module in a segment that has none.
///
/// # Errors
/// The config is [bad](super::BadConfig), the segment has a module, or those of the store. What was made until then stays
/// in the segment and is of no use: remove it.
pub fn build<S: Store>(store: &S, config: &Config) -> Result<Module> {
    config.check().map_err(Error::aborted_by)?;
    let plan = Plan::draw(config);
    let assemblies = store.transact(|objects| plan.make_assemblies(objects))?;
    let mut composites = Vec::new();
    let composites_max = config.composites_per_batch();
    for first in (0..config.composites).step_by(composites_max as usize) {
        let batch = first..config.composites.min(first.saturating_add(composites_max));
        composites.extend(
            store.transact(|objects| plan.make_composites(objects, batch.clone(), &assemblies))?,
        );
    }
    store.transact(|objects| plan.finish(objects, &assemblies, &composites))
}

/// Everything that is chosen before the first object is made.
struct Plan<'a> {
    config: &'a Config,
    /// For each base assembly the composites that it uses, by their places.
    uses: Vec<Vec<u32>>,
    /// For each composite the base assemblies that use it, by their places; one that does so twice is there twice.
    users: Vec<Vec<u32>>,
}

/// References of the assemblies, by their places in the tree: the topmost first, those below place n at
/// n * fan-out + 1 and after. So complex assemblies come before base assemblies.
struct Assemblies(Vec<Reference>);

impl<'a> Plan<'a> {
    fn draw(config: &'a Config) -> Self {
        let mut random = Random::of(config.seed, Draws::USES);
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
        Plan {
            config,
            uses,
            users,
        }
    }

    /// Complex assemblies as they stay; base assemblies as room for what cannot be known yet.
    fn make_assemblies<O: Objects>(&self, objects: &mut O) -> Result<Assemblies> {
        refuse_a_second(objects)?;
        let complexes = self.config.complexes() as usize;
        let bases = self.config.bases() as usize;
        let complex_size = Assembly::size(self.config.fan_out as usize);
        let base_size = Assembly::size(self.config.composites_per_base as usize);
        let sizes = [(complexes, complex_size), (bases, base_size)];
        let sizes = sizes
            .into_iter()
            .flat_map(|(count, size)| std::iter::repeat_n(size, count));
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
        let mut random = Random::of(self.config.seed, Draws::ASSEMBLIES + place as u64);
        let fan_out = self.config.fan_out as usize;
        let above = place.saturating_sub(1) / fan_out;
        let level = std::iter::successors(Some(place), |place| {
            place.checked_sub(1).map(|before| before / fan_out)
        });
        Assembly {
            kind,
            level: u8::try_from(level.count()).unwrap_or(u8::MAX),
            id: place as u32 + 1,
            date: random.date(1000),
            type_no: random.type_no(),
            above: assemblies.0[above],
            below,
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
    ) -> Result<Vec<Reference>> {
        let made: Result<Vec<Graph>> = batch
            .map(|composite| self.make_graph(objects, composite))
            .collect();
        let made = made?;
        for graph in &made {
            let document = layout::document(graph.id, &graph.composite, self.config.document_bytes);
            let document = objects.create(document)?;
            let bytes = self.composite(graph, document, assemblies);
            objects.write(&graph.composite, bytes)?;
        }
        Ok(made.iter().map(|graph| graph.composite).collect())
    }

    fn composite(&self, graph: &Graph, document: Reference, assemblies: &Assemblies) -> Vec<u8> {
        let mut random = Random::of(self.config.seed, Draws::COMPOSITES + u64::from(graph.id));
        let users = self.users[graph.id as usize - 1].iter();
        let bases = &assemblies.0[self.config.complexes() as usize..];
        let users: Vec<Reference> = users.map(|&base| bases[base as usize]).collect();
        let is_new = graph.id.is_multiple_of(10);
        Composite {
            id: graph.id,
            date: random.date(if is_new { 2000 } else { 0 }),
            type_no: random.type_no(),
            document,
            parts: &graph.parts,
            users: &users,
        }
        .encode()
    }

    /// A composite, as room for what cannot be known yet, and its parts and connections as they stay.
    fn make_graph<O: Objects>(&self, objects: &mut O, place: u32) -> Result<Graph> {
        let id = place + 1;
        let wiring = Wiring::draw(self.config, id);
        let users = self.users[place as usize].len();
        let size = Composite::size(wiring.ends.len(), users);
        let composite = objects.create(vec![0; size])?;
        let parts: Result<Vec<Reference>> = (0..wiring.ends.len())
            .map(|part| {
                let size = Atomic::size(wiring.ends[part].len(), wiring.incoming[part] as usize);
                objects.create_near(&composite, vec![0; size])
            })
            .collect();
        let graph = Graph {
            id,
            composite,
            parts: parts?,
        };
        let (outgoing, incoming) = self.make_connections(objects, &graph, &wiring)?;
        for part in 0..graph.parts.len() {
            let bytes = self.atomic(&graph, part, &outgoing[part], &incoming[part]);
            objects.write(&graph.parts[part], bytes)?;
        }
        Ok(graph)
    }

    /// The connections of a composite, and for each part those that leave and those that reach it.
    fn make_connections<O: Objects>(
        &self,
        objects: &mut O,
        graph: &Graph,
        wiring: &Wiring,
    ) -> Result<(Connections, Connections)> {
        let mut random = Random::of(self.config.seed, Draws::CONNECTIONS + u64::from(graph.id));
        let mut outgoing = vec![Vec::new(); graph.parts.len()];
        let mut incoming = outgoing.clone();
        for (from, ends) in wiring.ends.iter().enumerate() {
            for &to in ends {
                let (type_no, length) = (random.type_no(), random.below(LENGTHS));
                let bytes =
                    layout::connection(type_no, length, &graph.parts[from], &graph.parts[to]);
                let connection = objects.create_near(&graph.composite, bytes)?;
                outgoing[from].push(connection);
                incoming[to].push(connection);
            }
        }
        Ok((outgoing, incoming))
    }

    fn atomic(
        &self,
        graph: &Graph,
        part: usize,
        outgoing: &[Reference],
        incoming: &[Reference],
    ) -> Vec<u8> {
        let id = (graph.id - 1) * self.config.atomics_per_composite + part as u32 + 1;
        let mut random = Random::of(self.config.seed, Draws::ATOMICS + u64::from(id));
        Atomic {
            id,
            x: random.below(LENGTHS),
            y: random.below(LENGTHS),
            date: random.date(1000),
            document_id: 1 + random.below(self.config.composites),
            type_no: random.type_no(),
            composite: graph.composite,
            outgoing,
            incoming,
        }
        .encode()
    }

    /// Base assemblies as they stay, the manual, the module; and the root that shows it.
    fn finish<O: Objects>(
        &self,
        objects: &mut O,
        assemblies: &Assemblies,
        composites: &[Reference],
    ) -> Result<Module> {
        refuse_a_second(objects)?;
        let complexes = self.config.complexes() as usize;
        for (base, uses) in self.uses.iter().enumerate() {
            let place = complexes + base;
            let below: Vec<Reference> = uses
                .iter()
                .map(|&composite| composites[composite as usize])
                .collect();
            let bytes = self.assembly(Kind::Base, place, assemblies, &below);
            objects.write(&assemblies.0[place], bytes)?;
        }
        let mut random = Random::of(self.config.seed, Draws::MODULE);
        let module = Module {
            config: *self.config,
            id: MODULE_ID,
            date: random.date(1000),
            manual: objects.create(layout::manual(MODULE_ID, self.config.manual_bytes))?,
            design: assemblies.0[0],
            composite_lists: write_lists(objects, composites)?,
            base_lists: write_lists(objects, &assemblies.0[complexes..])?,
        };
        let root = objects.create(encoded(&module)?)?;
        objects.set_root(ROOT, &root)?;
        Ok(module)
    }
}

/// For each atomic part of a composite, some connections.
type Connections = Vec<Vec<Reference>>;

/// A composite whose parts are made.
struct Graph {
    id: u32,
    composite: Reference,
    parts: Vec<Reference>,
}

/// Which part of a composite is connected to which.
struct Wiring {
    /// For each part, where its connections lead.
    ends: Vec<Vec<usize>>,
    /// For each part, how many lead to it.
    incoming: Vec<u32>,
}

impl Wiring {
    /// A ring, so that every part is reached from the root, and the other connections at random.
    fn draw(config: &Config, composite: u32) -> Self {
        let mut random = Random::of(config.seed, Draws::WIRING + u64::from(composite));
        let parts = config.atomics_per_composite;
        let mut incoming = vec![0; parts as usize];
        let ends = (0..parts)
            .map(|part| {
                let end = |number| {
                    let end = if number == 0 {
                        (part + 1) % parts
                    } else {
                        random.below(parts)
                    };
                    incoming[end as usize] += 1;
                    end as usize
                };
                (0..config.connections_per_atomic).map(end).collect()
            })
            .collect();
        Wiring { ends, incoming }
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

impl Random {
    /// A build date of the thousand that begins so.
    fn date(&mut self, from: u32) -> u32 {
        from + self.below(1000)
    }

    fn type_no(&mut self) -> u32 {
        self.below(TYPES)
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

/// Which sequence of numbers belongs to what; ids are added.
struct Draws;

impl Draws {
    const MODULE: u64 = 1 << 32;
    const USES: u64 = 2 << 32;
    const ASSEMBLIES: u64 = 3 << 32;
    const COMPOSITES: u64 = 4 << 32;
    const WIRING: u64 = 5 << 32;
    const CONNECTIONS: u64 = 6 << 32;
    const ATOMICS: u64 = 7 << 32;
}

const MODULE_ID: u32 = 1;
const TYPES: u32 = 10;
/// x, y and lengths are below.
const LENGTHS: u32 = 100_000;
/// Bytes of objects made by one transaction: with what the protocol adds, far below its limit.
const BATCH_BYTES: usize = COMMIT_BYTES_MAX / 4;
/// What an object costs besides its bytes.
const SLOT_BYTES: usize = 32;
