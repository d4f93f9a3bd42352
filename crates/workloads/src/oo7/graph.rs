//! Making a composite: its graph of atomic parts and connections, and its document.
//!
//! Every composite draws its numbers from sequences of its own, so what is made depends on the config and its id alone.

use thorp_client::{Reference, Result};

use super::Config;
use super::draws::{Draws, Sequence};
use super::index::Part;
use super::layout::{self, Atomic, Composite};
use crate::objects::Objects;

/// A composite whose parts are made. It is room for what cannot be known before its document is.
pub(super) struct Graph {
    pub(super) id: u32,
    pub(super) composite: Reference,
    parts: Vec<Reference>,
}

/// For each atomic part of a composite, some connections.
type Connections = Vec<Vec<Reference>>;

impl Graph {
    /// The parts and connections of a composite that so many base assemblies use, as they stay.
    pub(super) fn make<O: Objects>(
        objects: &mut O,
        config: &Config,
        id: u32,
        users: usize,
    ) -> Result<Graph> {
        let wiring = Wiring::draw(config, id);
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
        let (outgoing, incoming) = graph.connect(objects, config, &wiring)?;
        for part in 0..graph.parts.len() {
            let bytes = graph.atomic(config, part, &outgoing[part], &incoming[part]);
            objects.write(&graph.parts[part], bytes)?;
        }
        Ok(graph)
    }

    /// The connections of a composite, and for each part those that leave and those that reach it.
    fn connect<O: Objects>(
        &self,
        objects: &mut O,
        config: &Config,
        wiring: &Wiring,
    ) -> Result<(Connections, Connections)> {
        let mut random = Draws::of(config.seed, Sequence::CONNECTIONS + u64::from(self.id));
        let mut outgoing = vec![Vec::new(); self.parts.len()];
        let mut incoming = outgoing.clone();
        for (from, ends) in wiring.ends.iter().enumerate() {
            for &to in ends {
                let (type_no, length) = (random.type_no(), random.below(LENGTHS));
                let bytes = layout::connection(type_no, length, &self.parts[from], &self.parts[to]);
                let connection = objects.create_near(&self.composite, bytes)?;
                outgoing[from].push(connection);
                incoming[to].push(connection);
            }
        }
        Ok((outgoing, incoming))
    }

    fn atomic(
        &self,
        config: &Config,
        part: usize,
        outgoing: &[Reference],
        incoming: &[Reference],
    ) -> Vec<u8> {
        let id = self.id_of(config, part);
        let mut random = Draws::of(config.seed, Sequence::ATOMICS + u64::from(id));
        let date = random.date(1000);
        Atomic {
            id,
            x: random.below(LENGTHS),
            y: random.below(LENGTHS),
            date,
            document_id: 1 + random.below(config.composites),
            type_no: random.type_no(),
            composite: self.composite,
            outgoing,
            incoming,
        }
        .encode()
    }

    fn id_of(&self, config: &Config, part: usize) -> u32 {
        (self.id - 1) * config.atomics_per_composite + part as u32 + 1
    }

    /// Its parts, for the indexes.
    pub(super) fn parts<'a>(&'a self, config: &'a Config) -> impl Iterator<Item = Part> + 'a {
        self.parts.iter().enumerate().map(|(place, at)| {
            let id = self.id_of(config, place);
            // The first that the part draws.
            let date = Draws::of(config.seed, Sequence::ATOMICS + u64::from(id)).date(1000);
            Part { id, date, at: *at }
        })
    }

    /// Makes the document, and the composite as it stays, used by those base assemblies.
    pub(super) fn finish<O: Objects>(
        &self,
        objects: &mut O,
        config: &Config,
        users: &[Reference],
    ) -> Result<Reference> {
        let text = layout::document(self.id, &self.composite, config.document_bytes);
        let document = objects.create(text)?;
        let mut random = Draws::of(config.seed, Sequence::COMPOSITES + u64::from(self.id));
        let is_new = self.id.is_multiple_of(10);
        let composite = Composite {
            id: self.id,
            date: random.date(if is_new { 2000 } else { 0 }),
            type_no: random.type_no(),
            document,
            parts: &self.parts,
            users,
        };
        objects.write(&self.composite, composite.encode())?;
        Ok(document)
    }
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
        let mut random = Draws::of(config.seed, Sequence::WIRING + u64::from(composite));
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

/// x, y and lengths are below.
const LENGTHS: u32 = 100_000;
