//! Names as people write them: `thorp://HOME/path` and `thorp://HOME/path#PAGE.SLOT.GENERATION[+OFFSET]`.

use crate::{Error, ErrorKind, Result};
use thorp_model::{Generation, ObjectId, PageId, PageNo, Reference, SegmentId, Slot};

/// A segment's name, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentName<'a> {
    pub(crate) home: &'a str,
    pub(crate) path: &'a str,
}

/// What follows the `#`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spot {
    page: PageNo,
    slot: Slot,
    generation: Generation,
    offset: u64,
}

const SCHEME: &str = "thorp://";

impl<'a> SegmentName<'a> {
    /// A home and a path that is not empty.
    pub(crate) fn parse(text: &'a str) -> Result<Self> {
        let name = Self::parse_prefix(text)?;
        if name.path.is_empty() {
            return Err(wrong(text, "the segment's path is missing"));
        }
        Ok(name)
    }

    /// A home and the beginning of a path.
    pub(crate) fn parse_prefix(text: &'a str) -> Result<Self> {
        let rest = text.strip_prefix(SCHEME);
        let rest = rest.ok_or_else(|| wrong(text, "it does not begin with thorp://"))?;
        let (home, path) = rest.split_once('/').unwrap_or((rest, ""));
        if home.is_empty() {
            return Err(wrong(text, "the home is missing"));
        }
        if path.contains('#') {
            return Err(wrong(text, "it names an object, not a segment"));
        }
        Ok(SegmentName { home, path })
    }

    pub(crate) fn format(home: &str, path: &str) -> String {
        format!("{SCHEME}{home}/{path}")
    }
}

/// Whether this is the name of a segment: `thorp://HOME/path`. Nothing is asked of anybody.
///
/// # Errors
///
/// [`BadName`](ErrorKind::BadName).
pub fn check_segment_name(text: &str) -> Result<()> {
    SegmentName::parse(text).map(drop)
}

/// Whether this is the name of an object: `thorp://HOME/path#PAGE.SLOT.GENERATION`, perhaps with `+OFFSET`.
///
/// # Errors
///
/// [`BadName`](ErrorKind::BadName).
pub fn check_object_name(text: &str) -> Result<()> {
    Spot::parse(text).map(drop)
}

/// Whether names of segments may begin so: `thorp://HOME/beginning-of-path`.
///
/// # Errors
///
/// [`BadName`](ErrorKind::BadName).
pub fn check_prefix(text: &str) -> Result<()> {
    SegmentName::parse_prefix(text).map(drop)
}

impl Spot {
    /// Takes a reference's text apart.
    pub(crate) fn parse(text: &str) -> Result<(SegmentName<'_>, Spot)> {
        let (segment, spot) = text
            .rsplit_once('#')
            .ok_or_else(|| wrong(text, "it names no object: #PAGE.SLOT.GENERATION is missing"))?;
        let name = SegmentName::parse(segment)?;
        let spot = Self::parse_spot(spot);
        let spot =
            spot.ok_or_else(|| wrong(text, "what follows # is not PAGE.SLOT.GENERATION[+OFFSET]"))?;
        Ok((name, spot))
    }

    fn parse_spot(text: &str) -> Option<Spot> {
        let (object, offset) = match text.split_once('+') {
            Some((object, offset)) => (object, number(offset)?),
            None => (text, 0),
        };
        let mut parts = object.split('.');
        let spot = Spot {
            page: PageNo(number(parts.next()?)?.try_into().ok()?),
            slot: Slot::try_from(u16::try_from(number(parts.next()?)?).ok()?).ok()?,
            generation: Generation(number(parts.next()?)?.try_into().ok()?),
            offset,
        };
        parts.next().is_none().then_some(spot)
    }

    /// The reference in a segment.
    pub(crate) fn reference(self, home: thorp_model::HomeId, segment: SegmentId) -> Reference {
        Reference {
            home,
            object: ObjectId {
                page: PageId {
                    segment,
                    page: self.page,
                },
                slot: self.slot,
            },
            generation: self.generation,
            offset: self.offset,
        }
    }

    /// A reference as text.
    pub(crate) fn format(segment: &str, reference: &Reference) -> String {
        let (page, slot) = (reference.object.page.page, reference.object.slot);
        let text = format!("{segment}#{page}.{slot}.{}", reference.generation);
        match reference.offset {
            0 => text,
            offset => format!("{text}+{offset}"),
        }
    }
}

/// Digits and nothing else: `parse` alone would take a plus sign.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn wrong(text: &str, why: &str) -> Error {
    Error::new(ErrorKind::BadName, format!("{text:?} is not a name: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::HomeId;

    #[test]
    fn names_are_taken_apart() {
        let name = SegmentName::parse("thorp://alps/shop/orders").unwrap();
        assert_eq!((name.home, name.path), ("alps", "shop/orders"));
        assert_eq!(SegmentName::parse_prefix("thorp://alps").unwrap().path, "");
        for wrong in [
            "",
            "alps/x",
            "thorp://",
            "thorp:///x",
            "thorp://alps",
            "thorp://alps/",
            "thorp://a/x#1.2.3",
        ] {
            assert!(SegmentName::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn references_come_back_from_their_text() {
        for (text, offset) in [
            ("thorp://alps/a b/c#7.12.3", 0),
            ("thorp://alps/x#0.239.1+99", 99),
        ] {
            let (name, spot) = Spot::parse(text).unwrap();
            let reference = spot.reference(HomeId(1), SegmentId(2));
            assert_eq!(reference.offset, offset);
            let segment = SegmentName::format(name.home, name.path);
            assert_eq!(Spot::format(&segment, &reference), text);
        }
        for wrong in [
            "#1.2",
            "#1.2.3.4",
            "#1.240.1",
            "#+1.2.3",
            "#1.2.3+",
            "#4294967296.1.1",
            "#1.2.x",
            "",
        ] {
            assert!(
                Spot::parse(&format!("thorp://alps/x{wrong}")).is_err(),
                "{wrong}"
            );
        }
    }
}
