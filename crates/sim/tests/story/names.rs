//! Names that people read for ids that machines count: pages P, Q, S, T with
//! slots x, y, z, u, v, w. Where there are several homes, H2 has segment s2 with
//! its pages, H3 has s3: what H1 has, needs no such name.

use std::collections::BTreeSet;
use thorp_model::{
    Generation, HomeId, ObjectId, PageId, PageNo, Place, RIGHTS_SLOT, SegmentId, Slot, Stamp,
};

const PAGES: [&str; 4] = ["P", "Q", "S", "T"];
const SLOTS: [&str; 6] = ["x", "y", "z", "u", "v", "w"];

/// A segment: `s` is the one that every village has.
pub(crate) fn segment(id: SegmentId) -> String {
    match id.0 {
        1 => String::from("s"),
        other => format!("s{other}"),
    }
}

/// The id of a segment's name.
pub(crate) fn segment_id(name: &str) -> Option<SegmentId> {
    match name.strip_prefix('s')? {
        "" => Some(SegmentId(1)),
        number => Some(SegmentId(number.parse().ok()?)),
    }
}

/// The id of a home's name: `H` is `H1`.
pub(crate) fn home_id(name: &str) -> Option<HomeId> {
    match name.strip_prefix('H')? {
        "" => Some(HomeId(1)),
        number => Some(HomeId(number.parse().ok()?)),
    }
}

/// What is said of any home but the first: whose it is.
pub(crate) fn of_home(home: HomeId) -> String {
    match home.0 {
        1 => String::new(),
        number => format!("H{number} "),
    }
}

/// The homes of a village.
#[derive(Clone, Default)]
pub(crate) struct Homes(pub(crate) BTreeSet<HomeId>);

impl Homes {
    /// Where a segment is: each home but the first has the one of its own number.
    pub(crate) fn of(&self, segment: SegmentId) -> HomeId {
        let home = self.0.get(&HomeId(segment.0)).copied();
        home.unwrap_or(super::node::HOME)
    }

    /// Where a page is.
    pub(crate) fn place(&self, page: PageId) -> Place {
        let home = self.of(page.segment);
        Place { home, page }
    }
}

/// A page.
pub(crate) fn page(page: PageId) -> String {
    let number = page.page.0;
    let name = if page.page.is_overflow() {
        format!("over{}", number - PageNo::OVERFLOW_FIRST.0)
    } else if page.page.is_system() {
        format!("sys{}", number - PageNo::SYSTEM_FIRST.0)
    } else if number == 0 {
        String::from("first")
    } else {
        let named = PAGES.get(number as usize - 1);
        named.map_or_else(|| format!("p{number}"), ToString::to_string)
    };
    match page.segment.0 {
        1 => name,
        _ => format!("{}:{name}", segment(page.segment)),
    }
}

/// The id of a page's name.
pub(crate) fn page_id(name: &str) -> Option<PageId> {
    let (segment, name) = match name.split_once(':') {
        Some((segment, name)) => (segment_id(segment)?, name),
        None => (SegmentId(1), name),
    };
    let number = if let Some(at) = PAGES.iter().position(|known| *known == name) {
        at as u32 + 1
    } else if name == "first" {
        0
    } else if let Some(number) = name.strip_prefix("over") {
        PageNo::OVERFLOW_FIRST.0 + number.parse::<u32>().ok()?
    } else if let Some(number) = name.strip_prefix("sys") {
        PageNo::SYSTEM_FIRST.0 + number.parse::<u32>().ok()?
    } else {
        name.strip_prefix('p')?.parse().ok()?
    };
    Some(PageId::new(segment.0, number))
}

/// A slot of a page.
pub(crate) fn slot(page: PageId, slot: Slot) -> String {
    match (page.page, slot.0) {
        (PageNo(0), 0) => String::from("extent"),
        (PageNo(0), number) if number == RIGHTS_SLOT.0 => String::from("rights"),
        (page, 0) if page.is_overflow() => String::from("chunk"),
        (_, number) => match SLOTS.get(usize::from(number)) {
            Some(name) => String::from(*name),
            None => format!("o{number}"),
        },
    }
}

/// An object.
pub(crate) fn object(object: ObjectId) -> String {
    let slot = slot(object.page, object.slot);
    format!("{}.{slot}", page(object.page))
}

/// The object and generation of `P.x` or `P.x.2`; the generation is 1 if it is not told.
pub(crate) fn object_id(name: &str) -> Option<(ObjectId, Generation)> {
    let mut parts = name.split('.');
    let page = page_id(parts.next()?)?;
    let slot = slot_id(parts.next()?)?;
    let generation = match parts.next() {
        Some(number) => Generation(number.parse().ok()?),
        None => Generation(1),
    };
    Some((ObjectId { page, slot }, generation))
}

fn slot_id(name: &str) -> Option<Slot> {
    match name {
        "extent" | "chunk" => return Some(Slot(0)),
        "rights" => return Some(RIGHTS_SLOT),
        _ => {}
    }
    match SLOTS.iter().position(|known| *known == name) {
        Some(at) => Some(Slot(at as u16)),
        None => Some(Slot(name.strip_prefix('o')?.parse().ok()?)),
    }
}

/// A slot's name with its generation, if that is not the first.
pub(crate) fn of_generation(name: String, generation: Generation) -> String {
    match generation.0 {
        1 => name,
        other => format!("{name}.{other}"),
    }
}

/// A value: text, or what long ones are made of.
pub(crate) fn value(bytes: &[u8]) -> String {
    let printable = |b: &u8| b.is_ascii_graphic() || *b == b' ';
    match bytes {
        [first, ..] if bytes.len() > 24 && bytes.iter().all(|b| b == first) => {
            format!("{}*{}", bytes.len(), char::from(*first))
        }
        _ if bytes.len() <= 24 && bytes.iter().all(printable) => {
            format!("\"{}\"", String::from_utf8_lossy(bytes))
        }
        _ => format!("{} bytes", bytes.len()),
    }
}

/// A value: a segment's first slot counts its pages, and another one of that page is a rights list.
pub(crate) fn value_of(page: PageId, slot: Slot, bytes: &[u8]) -> String {
    match (page.page, slot.0, <[u8; 4]>::try_from(bytes)) {
        (PageNo(0), 0, Ok(bytes)) => u32::from_le_bytes(bytes).to_string(),
        (PageNo(0), number, _) if number == RIGHTS_SLOT.0 => {
            format!("\"{}\"", super::rights::text_of(bytes))
        }
        _ => value(bytes),
    }
}

/// The bytes of `text` or `5000*a`.
pub(crate) fn bytes_of(text: &str) -> Vec<u8> {
    if let Some((count, byte)) = text.split_once('*')
        && let (Ok(count), &[byte]) = (count.parse::<usize>(), byte.as_bytes())
    {
        return vec![byte; count];
    }
    text.as_bytes().to_vec()
}

/// A stamp: milliseconds and counter.
pub(crate) fn stamp(stamp: Stamp) -> String {
    clock(stamp.clock)
}

/// A clock's value.
pub(crate) fn clock(clock: u64) -> String {
    format!("@{}+{}", clock >> 16, clock & 0xffff)
}
