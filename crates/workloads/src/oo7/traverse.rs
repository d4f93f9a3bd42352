//! OO7's traversals: depth first over the tree of assemblies, each composite visited once for each reference to it.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use thorp_client::{Reference, Result};

use super::Module;
use super::layout::{Kind, MANUAL_TEXT_AT, View, XY_AT};
use crate::objects::Objects;

/// Which traversal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traversal {
    /// Visits the whole graph of atomic parts of each composite.
    T1,
    /// As T1, and swaps x and y of each composite's root part.
    T2a,
    /// As T1, and swaps x and y of every part.
    T2b,
    /// As T1, and swaps x and y of every part four times.
    T2c,
    /// Visits only each composite's root part.
    T6,
    /// Counts one character in the manual.
    T8,
    /// Compares the manual's first character with its last.
    T9,
}

/// What a traversal has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// What the config alone decides: [`Config::expected`](super::Config::expected).
    pub counts: Counts,
    /// What [`Traversal::T8`] counted; for [`Traversal::T9`], 1 if the characters are equal.
    pub characters: u64,
    /// A sum over x and y of the parts as they were met. The module alternates between two states from T2b to T2b, so
    /// any other sum than theirs would show that a traversal has seen a part of another one.
    pub checksum: u64,
}

/// How much of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Visits to atomic parts.
    pub atomic_visits: u64,
    /// Swaps of x and y.
    pub swaps: u64,
}

impl Traversal {
    /// Whether it changes anything.
    #[must_use]
    pub fn writes(self) -> bool {
        self.swaps_on(true) > 0
    }

    /// Swaps on a part, which is a composite's root or not.
    fn swaps_on(self, is_root: bool) -> u32 {
        match self {
            Traversal::T2a => u32::from(is_root),
            Traversal::T2b => 1,
            Traversal::T2c => 4,
            _ => 0,
        }
    }
}

/// Traverses the module, inside a transaction.
///
/// # Errors
/// Those of the store, or [`Damaged`](crate::objects::Damaged).
pub fn traverse<O: Objects>(
    objects: &mut O,
    module: &Module,
    traversal: Traversal,
) -> Result<Done> {
    traverse_from(objects, module, traversal, 0)
}

/// As [`traverse`], with the assemblies below each other one in another order for each `start`: members that begin at
/// the same moment, as people do, then do not all ask for the same page at the same time. What is counted is the same.
///
/// # Errors
/// As [`traverse`].
pub fn traverse_from<O: Objects>(
    objects: &mut O,
    module: &Module,
    traversal: Traversal,
    start: u32,
) -> Result<Done> {
    match traversal {
        Traversal::T8 => count_in_manual(objects, module),
        Traversal::T9 => compare_ends_of_manual(objects, module),
        _ => Walk::new(objects, traversal).design(module, start),
    }
}

/// Turns what is below an assembly, by a number that follows from the start and the assembly.
fn turn(below: &mut [Reference], assembly: &Reference, start: u32) {
    let mut hasher = PlaceHasher::default();
    hasher.write_u64(place(assembly) ^ u64::from(start) << 48);
    let by = match (start, below.len() as u64) {
        (0, _) | (_, 0) => 0,
        (_, count) => hasher.finish() % count,
    };
    below.rotate_left(by as usize);
}

/// A traversal of parts under way. Its lists are kept from composite to composite, so that a warm traversal allocates
/// nothing.
struct Walk<'a, O> {
    objects: &'a mut O,
    traversal: Traversal,
    done: Done,
    /// Parts to visit, the next one last.
    waiting: Vec<Reference>,
    connections: Vec<Reference>,
    seen: HashSet<u64, BuildHasherDefault<PlaceHasher>>,
}

impl<'a, O: Objects> Walk<'a, O> {
    fn new(objects: &'a mut O, traversal: Traversal) -> Self {
        Walk {
            objects,
            traversal,
            done: Done::default(),
            waiting: Vec::new(),
            connections: Vec::new(),
            seen: HashSet::default(),
        }
    }

    fn design(mut self, module: &Module, start: u32) -> Result<Done> {
        let mut waiting = vec![module.design];
        let mut below = Vec::new();
        while let Some(assembly) = waiting.pop() {
            below.clear();
            let (kind, view) = View::assembly(self.objects.read(&assembly)?)?;
            view.below(&mut below)?;
            if kind == Kind::Complex {
                turn(&mut below, &assembly, start);
                waiting.extend(below.iter().rev());
                continue;
            }
            for composite in &below {
                self.composite(composite)?;
            }
        }
        Ok(self.done)
    }

    fn composite(&mut self, composite: &Reference) -> Result<()> {
        let root = View::of(self.objects.read(composite)?, Kind::Composite)?.root_part()?;
        if self.traversal == Traversal::T6 {
            let xy = View::of(self.objects.read(&root)?, Kind::Atomic)?.xy()?;
            self.visited(xy);
            return Ok(());
        }
        self.seen.clear();
        self.waiting.clear();
        self.waiting.push(root);
        let mut swaps = self.traversal.swaps_on(true);
        while let Some(part) = self.waiting.pop() {
            if self.seen.insert(place(&part)) {
                self.part(&part, swaps)?;
                swaps = self.traversal.swaps_on(false);
            }
        }
        Ok(())
    }

    /// Visits a part and puts what it is connected to next in the line.
    fn part(&mut self, part: &Reference, swaps: u32) -> Result<()> {
        self.connections.clear();
        let view = View::of(self.objects.read(part)?, Kind::Atomic)?;
        view.outgoing(&mut self.connections)?;
        let xy = view.xy()?;
        self.visited(xy);
        for _ in 0..swaps {
            self.swap(part)?;
        }
        for connection in self.connections.iter().rev() {
            let view = View::of(self.objects.read(connection)?, Kind::Connection)?;
            self.waiting.push(view.to()?);
        }
        Ok(())
    }

    fn visited(&mut self, xy: [u8; 8]) {
        self.done.counts.atomic_visits += 1;
        self.done.checksum = self.done.checksum.wrapping_add(u64::from_le_bytes(xy));
    }

    fn swap(&mut self, part: &Reference) -> Result<()> {
        let mut xy = View::of(self.objects.read(part)?, Kind::Atomic)?.xy()?;
        xy.rotate_left(4);
        self.objects.patch(part, XY_AT as u64, &xy)?;
        self.done.counts.swaps += 1;
        Ok(())
    }
}

fn count_in_manual<O: Objects>(objects: &mut O, module: &Module) -> Result<Done> {
    let manual = objects.read(&module.manual)?;
    View::of(manual, Kind::Manual)?;
    let text = manual.iter().skip(MANUAL_TEXT_AT as usize);
    Ok(Done {
        characters: text.filter(|&&character| character == COUNTED).count() as u64,
        ..Done::default()
    })
}

/// Reads only the ends: of a large object just two pages have to come.
fn compare_ends_of_manual<O: Objects>(objects: &mut O, module: &Module) -> Result<Done> {
    let last = objects.size(&module.manual)?.saturating_sub(1);
    let ends = [MANUAL_TEXT_AT, last].map(|at| objects.read_at(&module.manual, at, 1));
    let [first, last] = ends;
    Ok(Done {
        characters: u64::from(first? == last?),
        ..Done::default()
    })
}

/// An object's place as one number. The parts of a composite are of one segment.
fn place(reference: &Reference) -> u64 {
    let object = reference.object;
    u64::from(object.page.page.0) << 16 | u64::from(object.slot.0)
}

/// A hash for [`place`]s: one multiplication. Nobody hostile chooses the places.
#[derive(Default)]
struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The table takes its bits from both ends, so the high half is folded down.
        let product = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }
}

/// What [`Traversal::T8`] counts.
const COUNTED: u8 = b'I';
