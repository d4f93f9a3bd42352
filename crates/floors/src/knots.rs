//! The lists of today's knots: places that break a promise, each with a reason. The lists can only shrink: a knot that
//! is no longer needed is a complaint.

use crate::complaint::Complaint;
use std::cell::Cell;

/// The file with the lists.
pub(crate) const FILE: &str = "crates/floors/knots.txt";

/// What kind of promise a knot breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A file implements a type that another one declares: `Type in FILE`.
    Type,
    /// A file is part of an import circle.
    Circle,
    /// A module of a crate is public, or is re-exported as a whole.
    Public,
}

/// One line of the file.
struct Knot {
    line: usize,
    kind: Kind,
    krate: String,
    what: String,
    needed: Cell<bool>,
}

/// All knots of the list. A check marks those that it needed.
#[derive(Default)]
pub(crate) struct Knots(Vec<Knot>);

impl Knots {
    /// Reads lines `kind | crate | what | reason`.
    ///
    /// # Errors
    ///
    /// A line that is none of these, stands twice or has no reason.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut knots = Self::default();
        for (index, text) in text.lines().enumerate() {
            let line = index + 1;
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let knot = Knot::parse(line, text)
                .ok_or_else(|| format!("{FILE}:{line}: no knot: kind | crate | what | reason"))?;
            if knots.find(knot.kind, &knot.krate, &knot.what).is_some() {
                return Err(format!("{FILE}:{line}: this knot stands here twice"));
            }
            knots.0.push(knot);
        }
        Ok(knots)
    }

    /// Whether a place may break its promise. It is needed then.
    pub(crate) fn excuse(&self, kind: Kind, krate: &str, what: &str) -> bool {
        let knot = self.find(kind, krate, what);
        if let Some(knot) = knot {
            knot.needed.set(true);
        }
        knot.is_some()
    }

    /// How many of one kind there are.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.of(kind).count()
    }

    /// Complaints about knots that no place has needed since the lists were read.
    pub(crate) fn not_needed(&self, kind: Kind) -> impl Iterator<Item = Complaint> {
        let knots = self.of(kind).filter(|knot| !knot.needed.get());
        knots.map(|knot| {
            let wrong = format!("`{}` of {} is a knot no more", knot.what, knot.krate);
            Complaint::new((FILE, knot.line), wrong, "remove this line")
        })
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = &Knot> {
        self.0.iter().filter(move |knot| knot.kind == kind)
    }

    fn find(&self, kind: Kind, krate: &str, what: &str) -> Option<&Knot> {
        self.of(kind)
            .find(|knot| knot.krate == krate && knot.what == what)
    }
}

impl Knot {
    fn parse(line: usize, text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('|').map(str::trim).collect();
        let [kind, krate, what, reason] = parts[..] else {
            return None;
        };
        let kind = match kind {
            "type" => Kind::Type,
            "circle" => Kind::Circle,
            "public" => Kind::Public,
            _ => return None,
        };
        let full = [krate, what, reason].iter().all(|part| !part.is_empty());
        full.then(|| Self {
            line,
            kind,
            krate: krate.to_owned(),
            what: what.to_owned(),
            needed: Cell::new(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knot_excuses_one_place_and_has_to_be_needed() {
        let knots = Knots::parse("# types\ntype | core | Home | large\n").expect("a list");
        assert_eq!(knots.not_needed(Kind::Type).count(), 1);
        assert_eq!(knots.not_needed(Kind::Circle).count(), 0);
        assert!(!knots.excuse(Kind::Type, "core", "Member"));
        assert!(!knots.excuse(Kind::Circle, "core", "Home"));
        assert!(knots.excuse(Kind::Type, "core", "Home"));
        assert_eq!(knots.not_needed(Kind::Type).count(), 0);
    }

    #[test]
    fn a_knot_has_a_reason_and_stands_once() {
        assert!(Knots::parse("type | core | Home |").is_err());
        assert!(Knots::parse("type | core | Home").is_err());
        assert!(Knots::parse("room | core | Home | large").is_err());
        assert!(Knots::parse("type | core | Home | a\ntype | core | Home | b").is_err());
    }
}
