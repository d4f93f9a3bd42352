//! The bytes of OO7's objects.
//!
//! Every field lies at a fixed place, numbers little-endian, so that a traversal takes what it needs straight from the
//! page and a swap of x and y is a patch of eight bytes. Lists of references end an object.
//!
//! ```text
//! reference    0 home u32 | 4 segment u32 | 8 page u32 | 12 slot u16 | 14 generation u32              18 bytes
//! atomic part  0 kind | 2 out u16 | 4 in u16 | 8 x u32 | 12 y u32 | 16 id u32 | 20 date u32 | 24 document id u32
//!              | 28 type [10] | 38 composite | 56 connections out, connections in                    164 bytes, usually
//! connection   0 kind | 2 type [10] | 12 length u32 | 16 from | 34 to                                 52 bytes
//! composite    0 kind | 2 parts u16 | 4 users u16 | 8 id u32 | 12 date u32 | 16 type [10] | 26 root part
//!              | 44 document | 62 parts, base assemblies that use it                                 about 500 bytes
//! document     0 kind | 4 id u32 | 8 composite | 26 title [40] | 66 text
//! manual       0 kind | 4 id u32 | 8 title [40] | 48 text
//! assembly     0 kind | 1 level | 2 below u16 | 4 shared u16 | 8 id u32 | 12 date u32 | 16 type [10] | 26 above
//!              | 44 below, shared composites                                                         98 bytes
//! ```

use thorp_client::{HomeId, ObjectId, PageId, Reference, Result};
use thorp_model::{Generation, Slot};

use crate::objects::Damaged;

/// Bytes of a reference.
pub(super) const REFERENCE_BYTES: usize = 18;
/// Where an atomic part's x and y lie, side by side.
pub(super) const XY_AT: usize = 8;
/// Where the manual's text begins.
pub(super) const MANUAL_TEXT_AT: u64 = 48;
/// Where an atomic part's build date lies.
pub(super) const DATE_AT: usize = 20;

/// What an object is: its first byte, so that a wrong reference is found out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Atomic = 1,
    Connection,
    Composite,
    Document,
    Manual,
    Complex,
    Base,
}

/// An object's bytes while they are read.
#[derive(Clone, Copy)]
pub(super) struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// The bytes of an object that must be of that kind.
    #[inline]
    pub(super) fn of(bytes: &'a [u8], kind: Kind) -> Result<Self> {
        if bytes.first() == Some(&(kind as u8)) {
            Ok(View(bytes))
        } else {
            Err(Damaged("an object of OO7 is not of the kind it should be").into())
        }
    }

    /// An assembly of either kind.
    pub(super) fn assembly(bytes: &'a [u8]) -> Result<(Kind, Self)> {
        let kind = match bytes.first() {
            Some(&kind) if kind == Kind::Complex as u8 => Kind::Complex,
            Some(&kind) if kind == Kind::Base as u8 => Kind::Base,
            _ => return Err(Damaged("an object of OO7 is no assembly").into()),
        };
        Ok((kind, View(bytes)))
    }

    #[inline]
    fn bytes<const N: usize>(self, at: usize) -> Result<[u8; N]> {
        let end = at + N;
        match self.0.get(at..end).map(<[u8; N]>::try_from) {
            Some(Ok(bytes)) => Ok(bytes),
            _ => Err(TOO_SHORT.into()),
        }
    }

    #[inline]
    fn u16(self, at: usize) -> Result<u16> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    fn u32(self, at: usize) -> Result<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    #[inline]
    fn reference(self, at: usize) -> Result<Reference> {
        decode(&self.bytes(at)?)
    }

    /// Adds `count` references from `at` on to `into`.
    #[inline]
    fn references(self, at: usize, count: u16, into: &mut Vec<Reference>) -> Result<()> {
        for place in 0..usize::from(count) {
            into.push(self.reference(at + place * REFERENCE_BYTES)?);
        }
        Ok(())
    }

    /// An atomic part's x and y.
    #[inline]
    pub(super) fn xy(self) -> Result<[u8; 8]> {
        self.bytes(XY_AT)
    }

    /// An atomic part's build date.
    pub(super) fn atomic_date(self) -> Result<u32> {
        self.u32(DATE_AT)
    }

    /// The composite that an atomic part is of.
    pub(super) fn composite(self) -> Result<Reference> {
        self.reference(38)
    }

    /// The assembly above another one; the topmost names itself.
    pub(super) fn above(self) -> Result<Reference> {
        self.reference(26)
    }

    /// An atomic part's number.
    pub(super) fn atomic_id(self) -> Result<u32> {
        self.u32(16)
    }

    /// The number of the document that an atomic part names.
    pub(super) fn document_id(self) -> Result<u32> {
        self.u32(24)
    }

    /// An atomic part's connections outward.
    #[inline]
    pub(super) fn outgoing(self, into: &mut Vec<Reference>) -> Result<()> {
        self.references(56, self.u16(2)?, into)
    }

    /// The part that a connection leads to.
    #[inline]
    pub(super) fn to(self) -> Result<Reference> {
        self.reference(34)
    }

    /// The build date of a composite or an assembly.
    pub(super) fn date(self) -> Result<u32> {
        self.u32(12)
    }

    /// A composite's root part.
    pub(super) fn root_part(self) -> Result<Reference> {
        self.reference(26)
    }

    /// A composite's document.
    pub(super) fn document(self) -> Result<Reference> {
        self.reference(44)
    }

    /// A composite's parts.
    pub(super) fn parts(self, into: &mut Vec<Reference>) -> Result<()> {
        self.references(62, self.u16(2)?, into)
    }

    /// The base assemblies that use a composite.
    pub(super) fn users(self, into: &mut Vec<Reference>) -> Result<()> {
        let parts = usize::from(self.u16(2)?);
        self.references(62 + parts * REFERENCE_BYTES, self.u16(4)?, into)
    }

    /// A document's number.
    pub(super) fn number_of_document(self) -> Result<u32> {
        self.u32(4)
    }

    /// The composite that a document is of.
    pub(super) fn documented(self) -> Result<Reference> {
        self.reference(8)
    }

    /// What is directly below an assembly in its own module: assemblies or composites.
    pub(super) fn below(self, into: &mut Vec<Reference>) -> Result<()> {
        self.references(44, self.u16(2)?, into)
    }

    /// The composites of the shared module that a base assembly uses.
    pub(super) fn shared(self, into: &mut Vec<Reference>) -> Result<()> {
        let own = usize::from(self.u16(2)?);
        self.references(44 + own * REFERENCE_BYTES, self.u16(4)?, into)
    }

    /// The same base assembly with other composites of its own.
    pub(super) fn with_below(self, below: &[Reference]) -> Result<Vec<u8>> {
        let mut shared = Vec::new();
        self.shared(&mut shared)?;
        let mut bytes = self.0.get(..44).ok_or(TOO_SHORT)?.to_vec();
        bytes[2..4].copy_from_slice(&count(below.len()).to_le_bytes());
        Ok(Draft(bytes).references(below).references(&shared).0)
    }
}

fn count(of: usize) -> u16 {
    u16::try_from(of).unwrap_or(u16::MAX)
}

fn decode(bytes: &[u8; REFERENCE_BYTES]) -> Result<Reference> {
    let u32 =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let slot = Slot::try_from(u16::from_le_bytes([bytes[12], bytes[13]]));
    Ok(Reference {
        home: HomeId(u32(0)),
        object: ObjectId {
            page: PageId::new(u32(4), u32(8)),
            slot: slot.map_err(|_| Damaged("a reference of OO7 names no slot"))?,
        },
        generation: Generation(u32(14)),
        offset: 0,
    })
}

/// An object's bytes while they are made.
struct Draft(Vec<u8>);

impl Draft {
    fn new(kind: Kind, bytes: usize) -> Self {
        let mut draft = Vec::with_capacity(bytes);
        draft.push(kind as u8);
        Draft(draft)
    }

    fn to(mut self, at: usize) -> Self {
        debug_assert!(self.0.len() <= at);
        self.0.resize(at, 0);
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u32(self, number: u32) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    /// A count; [`super::Config::check`] keeps counts far below the limit.
    fn count(self, of: usize) -> Self {
        self.bytes(&count(of).to_le_bytes())
    }

    fn reference(self, reference: &Reference) -> Self {
        let ObjectId { page, slot } = reference.object;
        self.u32(reference.home.0)
            .u32(page.segment.0)
            .u32(page.page.0)
            .bytes(&slot.0.to_le_bytes())
            .u32(reference.generation.0)
    }

    fn references(self, references: &[Reference]) -> Self {
        references
            .iter()
            .fold(self, |draft, reference| draft.reference(reference))
    }

    fn type_name(self, of: u32) -> Self {
        self.bytes(format!("type{:06}", of % 1_000_000).as_bytes())
    }

    fn text(self, title: &str, sentence: &str, bytes: u32) -> Vec<u8> {
        let end = self.0.len() + TITLE_BYTES;
        let title = &title.as_bytes()[..title.len().min(TITLE_BYTES)];
        let mut draft = self.bytes(title).to(end).0;
        draft.extend(sentence.bytes().cycle().take(bytes as usize));
        draft
    }
}

/// An atomic part.
pub(super) struct Atomic<'a> {
    pub(super) id: u32,
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) date: u32,
    pub(super) document_id: u32,
    pub(super) type_no: u32,
    pub(super) composite: Reference,
    pub(super) outgoing: &'a [Reference],
    pub(super) incoming: &'a [Reference],
}

impl Atomic<'_> {
    /// How many bytes a part with so many connections has: known before it can be written.
    pub(super) fn size(outgoing: usize, incoming: usize) -> usize {
        56 + (outgoing + incoming) * REFERENCE_BYTES
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let bytes = Self::size(self.outgoing.len(), self.incoming.len());
        Draft::new(Kind::Atomic, bytes)
            .to(2)
            .count(self.outgoing.len())
            .count(self.incoming.len())
            .to(XY_AT)
            .u32(self.x)
            .u32(self.y)
            .u32(self.id)
            .u32(self.date)
            .u32(self.document_id)
            .type_name(self.type_no)
            .reference(&self.composite)
            .references(self.outgoing)
            .references(self.incoming)
            .0
    }
}

/// A connection from one atomic part to another.
pub(super) fn connection(type_no: u32, length: u32, from: &Reference, to: &Reference) -> Vec<u8> {
    Draft::new(Kind::Connection, 52)
        .to(2)
        .type_name(type_no)
        .u32(length)
        .reference(from)
        .reference(to)
        .0
}

/// A composite part.
pub(super) struct Composite<'a> {
    pub(super) id: u32,
    pub(super) date: u32,
    pub(super) type_no: u32,
    pub(super) document: Reference,
    /// The first is the root.
    pub(super) parts: &'a [Reference],
    pub(super) users: &'a [Reference],
}

impl Composite<'_> {
    pub(super) fn size(parts: usize, users: usize) -> usize {
        62 + (parts + users) * REFERENCE_BYTES
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let root = &self.parts[..self.parts.len().min(1)];
        Draft::new(
            Kind::Composite,
            Self::size(self.parts.len(), self.users.len()),
        )
        .to(2)
        .count(self.parts.len())
        .count(self.users.len())
        .to(8)
        .u32(self.id)
        .u32(self.date)
        .type_name(self.type_no)
        .references(root)
        .reference(&self.document)
        .references(self.parts)
        .references(self.users)
        .0
    }
}

/// The document of a composite.
pub(super) fn document(id: u32, composite: &Reference, text_bytes: u32) -> Vec<u8> {
    let sentence = format!("I am the documentation for composite part #{id:08}. ");
    Draft::new(Kind::Document, 66 + text_bytes as usize)
        .to(4)
        .u32(id)
        .reference(composite)
        .text(&title(id), &sentence, text_bytes)
}

/// The manual of a module.
pub(super) fn manual(id: u32, text_bytes: u32) -> Vec<u8> {
    let sentence = format!("I am the manual for module #{id:08}. ");
    Draft::new(Kind::Manual, 48 + text_bytes as usize)
        .to(4)
        .u32(id)
        .text(&format!("Module {id:08}"), &sentence, text_bytes)
}

/// An assembly of either kind.
pub(super) struct Assembly<'a> {
    pub(super) kind: Kind,
    pub(super) level: u8,
    pub(super) id: u32,
    pub(super) date: u32,
    pub(super) type_no: u32,
    /// The assembly above; the topmost names itself.
    pub(super) above: Reference,
    /// Assemblies, or composites.
    pub(super) below: &'a [Reference],
    /// Composites of the shared module.
    pub(super) shared: &'a [Reference],
}

impl Assembly<'_> {
    pub(super) fn size(below: usize) -> usize {
        44 + below * REFERENCE_BYTES
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        Draft::new(self.kind, Self::size(self.below.len()))
            .bytes(&[self.level])
            .count(self.below.len())
            .count(self.shared.len())
            .to(8)
            .u32(self.id)
            .u32(self.date)
            .type_name(self.type_no)
            .reference(&self.above)
            .references(self.below)
            .references(self.shared)
            .0
    }
}

/// The title of a composite's document.
pub(super) fn title(id: u32) -> String {
    format!("Composite Part {id:08}")
}

const TITLE_BYTES: usize = 40;
const TOO_SHORT: Damaged = Damaged("an object of OO7 is too short");

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(page: u32, slot: u16) -> Reference {
        Reference {
            home: HomeId(0xdead_beef),
            object: ObjectId {
                page: PageId::new(7, page),
                slot: Slot(slot),
            },
            generation: Generation(3),
            offset: 0,
        }
    }

    #[test]
    fn an_atomic_part_lies_where_the_drawing_says() {
        let (outgoing, incoming) = ([reference(1, 2), reference(3, 239)], [reference(5, 6)]);
        let bytes = Atomic {
            id: 11,
            x: 12,
            y: 13,
            date: 14,
            document_id: 15,
            type_no: 9,
            composite: reference(9, 9),
            outgoing: &outgoing,
            incoming: &incoming,
        }
        .encode();
        assert_eq!(bytes.len(), Atomic::size(2, 1));
        let view = View::of(&bytes, Kind::Atomic).unwrap();
        assert_eq!(view.xy().unwrap(), [12, 0, 0, 0, 13, 0, 0, 0]);
        assert_eq!(view.u32(16).unwrap(), 11);
        assert_eq!(&bytes[28..38], b"type000009");
        assert_eq!(view.reference(38).unwrap(), reference(9, 9));
        let mut out = Vec::new();
        view.outgoing(&mut out).unwrap();
        assert_eq!(out, outgoing);
        assert_eq!(view.reference(56 + 36).unwrap(), incoming[0]);
        assert!(View::of(&bytes, Kind::Connection).is_err());
    }

    #[test]
    fn the_others_are_as_long_as_drawn() {
        let (a, b) = (reference(1, 1), reference(2, 2));
        let bytes = connection(3, 77, &a, &b);
        assert_eq!(bytes.len(), 52);
        assert_eq!(View::of(&bytes, Kind::Connection).unwrap().to().unwrap(), b);
        assert_eq!(document(1, &a, 2_000).len(), 2_066);
        let manual = manual(1, 100);
        assert_eq!(&manual[MANUAL_TEXT_AT as usize..][..8], b"I am the");
        let composite = Composite {
            id: 1,
            date: 2,
            type_no: 3,
            document: b,
            parts: &[a, b],
            users: &[b],
        };
        let bytes = composite.encode();
        assert_eq!(bytes.len(), Composite::size(2, 1));
        assert_eq!(
            View::of(&bytes, Kind::Composite)
                .unwrap()
                .root_part()
                .unwrap(),
            a
        );
    }

    #[test]
    fn what_is_cut_short_is_damage_not_a_panic() {
        let whole = Assembly {
            kind: Kind::Base,
            level: 7,
            id: 1,
            date: 2,
            type_no: 3,
            above: reference(3, 3),
            below: &[reference(1, 1)],
            shared: &[reference(2, 2)],
        }
        .encode();
        let mut into = Vec::new();
        let view = View::of(&whole, Kind::Base).unwrap();
        view.shared(&mut into).unwrap();
        assert_eq!(into, [reference(2, 2)]);
        for end in 0..whole.len() {
            let cut = &whole[..end];
            let shared = View::of(cut, Kind::Base).and_then(|view| view.shared(&mut into));
            assert!(shared.is_err());
        }
        let no_slot = [0xff; REFERENCE_BYTES];
        assert!(decode(&no_slot).is_err());
    }
}
