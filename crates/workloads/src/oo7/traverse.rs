//! OO7's traversals: depth first over the tree of assemblies, each composite visited once for each reference to it.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use thorp_client::{Reference, Result};

use super::Module;
use super::draws::Draws;
use super::index::Part;
use super::layout::{DATE_AT, Kind, MANUAL_TEXT_AT, View, XY_AT};
use crate::objects::{Damaged, Indexed, Objects};

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
    /// As T2a, with the build date, which is indexed, in place of x and y: an even one becomes the odd one after it, and back.
    T3a,
    /// As T2b, with the build date.
    T3b,
    /// As T2c, with the build date.
    T3c,
    /// Visits only each composite's root part.
    T6,
    /// From a random atomic part, found by its id, up to the topmost assembly: every assembly by way of which it is used.
    T7,
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
    /// Changes of build dates.
    pub dates: u64,
    /// Assemblies visited on the way up.
    pub assemblies: u64,
}

impl Traversal {
    /// Whether it changes anything.
    #[must_use]
    pub fn writes(self) -> bool {
        self.changes_on(true) > 0
    }

    /// Changes on a part, which is a composite's root or not.
    fn changes_on(self, is_root: bool) -> u32 {
        match self {
            Traversal::T2a | Traversal::T3a => u32::from(is_root),
            Traversal::T2b | Traversal::T3b => 1,
            Traversal::T2c | Traversal::T3c => 4,
            _ => 0,
        }
    }

    fn changes_dates(self) -> bool {
        matches!(self, Traversal::T3a | Traversal::T3b | Traversal::T3c)
    }
}

/// Which composites a base assembly's visitor goes on to, in a multi-user run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// Those of the module itself.
    #[default]
    Own,
    /// Those of the module that several share.
    Shared,
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

/// As [`traverse`], to the composites of one scope; T7 to T9 know of no other than their own.
///
/// # Errors
/// As [`traverse`].
pub fn traverse_scope<O: Objects>(
    objects: &mut O,
    module: &Module,
    traversal: Traversal,
    scope: Scope,
) -> Result<Done> {
    match scope {
        Scope::Own => traverse(objects, module, traversal),
        Scope::Shared => {
            let mut walk = Walk::new(objects, module, traversal);
            walk.scope = scope;
            walk.design(0)
        }
    }
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
        Traversal::T7 => go_up(objects, module, start),
        _ => Walk::new(objects, module, traversal).design(start),
    }
}

/// As [`Traversal::T2b`], but of one composite only x and y are swapped: what BuddyCache's writers do (section 6.2).
///
/// # Errors
/// As [`traverse`]; also if there is no such composite.
pub fn traverse_changing_one<O: Objects>(
    objects: &mut O,
    module: &Module,
    composite: u32,
) -> Result<Done> {
    let composites = module.indexes.composites;
    let only = composites.get(&mut Indexed(objects), &composite)?;
    let mut walk = Walk::new(objects, module, Traversal::T2b);
    walk.only = Some(only.ok_or(Damaged("there is no such composite of OO7"))?);
    walk.design(0)
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
    module: &'a Module,
    traversal: Traversal,
    scope: Scope,
    /// Changes are made here and nowhere else.
    only: Option<Reference>,
    done: Done,
    /// Parts to visit, the next one last.
    waiting: Vec<Reference>,
    connections: Vec<Reference>,
    seen: HashSet<u64, BuildHasherDefault<PlaceHasher>>,
}

impl<'a, O: Objects> Walk<'a, O> {
    fn new(objects: &'a mut O, module: &'a Module, traversal: Traversal) -> Self {
        Walk {
            objects,
            module,
            traversal,
            scope: Scope::default(),
            only: None,
            done: Done::default(),
            waiting: Vec::new(),
            connections: Vec::new(),
            seen: HashSet::default(),
        }
    }

    fn design(mut self, start: u32) -> Result<Done> {
        let mut waiting = vec![self.module.design];
        let mut below = Vec::new();
        while let Some(assembly) = waiting.pop() {
            below.clear();
            let (kind, view) = View::assembly(self.objects.read(&assembly)?)?;
            match (kind, self.scope) {
                (Kind::Base, Scope::Shared) => view.shared(&mut below)?,
                _ => view.below(&mut below)?,
            }
            if kind == Kind::Complex {
                turn(&mut below, &assembly, start);
            }
            // All of it will be visited: the first now, the others meanwhile come nearer.
            self.objects.prefetch(&below);
            if kind == Kind::Complex {
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
        let is_changed = self.only.is_none_or(|only| only == *composite);
        let changes_on = |is_root| match is_changed {
            true => self.traversal.changes_on(is_root),
            false => 0,
        };
        let (mut changes, others) = (changes_on(true), changes_on(false));
        while let Some(part) = self.waiting.pop() {
            if self.seen.insert(place(&part)) {
                self.part(&part, changes)?;
                changes = others;
            }
        }
        Ok(())
    }

    /// Visits a part and puts what it is connected to next in the line.
    fn part(&mut self, part: &Reference, changes: u32) -> Result<()> {
        self.connections.clear();
        let view = View::of(self.objects.read(part)?, Kind::Atomic)?;
        view.outgoing(&mut self.connections)?;
        let xy = view.xy()?;
        self.visited(xy);
        for _ in 0..changes {
            match self.traversal.changes_dates() {
                true => self.redate(part)?,
                false => self.swap(part)?,
            }
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

    fn redate(&mut self, part: &Reference) -> Result<()> {
        let view = View::of(self.objects.read(part)?, Kind::Atomic)?;
        let (id, old) = (view.atomic_id()?, view.atomic_date()?);
        let date = old ^ 1;
        self.objects
            .patch(part, DATE_AT as u64, &date.to_le_bytes())?;
        let part = Part {
            id,
            date,
            at: *part,
        };
        self.module.indexes.redate(self.objects, old, &part)?;
        self.done.counts.dates += 1;
        Ok(())
    }
}

/// As often as there are ways up: an assembly is visited once for each.
fn go_up<O: Objects>(objects: &mut O, module: &Module, seed: u32) -> Result<Done> {
    let parts = module.config.composites * module.config.atomics_per_composite;
    let id = 1 + Draws::new(u64::from(seed)).below(parts);
    let part = module.indexes.atomics.get(&mut Indexed(objects), &id)?;
    let part = part.ok_or(Damaged("an atomic part of OO7 is not indexed"))?;
    let composite = View::of(objects.read(&part)?, Kind::Atomic)?.composite()?;
    let mut waiting = Vec::new();
    View::of(objects.read(&composite)?, Kind::Composite)?.users(&mut waiting)?;
    objects.prefetch(&waiting);
    let mut done = Done::default();
    done.counts.atomic_visits = 1;
    while let Some(assembly) = waiting.pop() {
        done.counts.assemblies += 1;
        let (_, view) = View::assembly(objects.read(&assembly)?)?;
        // The topmost names itself.
        waiting.extend(Some(view.above()?).filter(|above| *above != assembly));
    }
    Ok(done)
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
