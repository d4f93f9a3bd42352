//! Who writes what, who reads it, and where.
//!
//! ```text
//!                    home: hanna writes, nora reads
//!          40 ms   /                                \   40 ms
//!   site a: anna writes,                      site b: ben and lena read
//!           nils writes by a log
//! ```
//!
//! Each object has one writer, in a thread of its own, and holds the number of its last change.

use thorp_bench::Result;
use thorp_bench::village::HOME;
use thorp_client::Consistency;

/// A segment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Place {
    /// Written by commits: readers get read leases.
    Commits,
    /// The same. Nobody reads here with a tighter hard bound than five changes, or that would be everybody's.
    Counted,
    /// Written by logs: readers ask the home, and that asks the logs.
    Logs,
    /// Written by commits all the time, and by logs in bursts: leases to read and to write take turns.
    Mixed,
}

/// How a writer changes its object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// It reads and writes, in a transaction.
    Transaction,
    /// It writes in a visit that waits for the home.
    Visit,
    /// Its log takes it.
    Log,
    /// The same, and nobody waits long for a lease: so some updates are answered without one.
    HastyLog,
}

/// A process that writes, and the objects that it makes.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) name: &'static str,
    pub(crate) at: &'static str,
    pub(crate) writes: &'static [(Place, Way)],
}

/// A process that reads.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) name: &'static str,
    pub(crate) at: &'static str,
    pub(crate) classes: &'static [Class],
}

/// Visits of one kind, one after the other, in a thread of its own.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) consistency: &'static str,
    pub(crate) places: &'static [Place],
}

/// An object, by its writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Object {
    pub(crate) number: usize,
    pub(crate) place: Place,
    pub(crate) way: Way,
}

impl Place {
    pub(crate) const ALL: [Place; 4] = [Place::Commits, Place::Counted, Place::Logs, Place::Mixed];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Place::Commits => "commits",
            Place::Counted => "counted",
            Place::Logs => "logs",
            Place::Mixed => "mixed",
        }
    }

    /// Its segment.
    pub(crate) fn segment(self) -> String {
        format!("thorp://{HOME}/{}", self.name())
    }
}

impl Way {
    pub(crate) fn is_log(self) -> bool {
        matches!(self, Way::Log | Way::HastyLog)
    }
}

impl Class {
    pub(crate) fn consistency(&self) -> Result<Consistency> {
        let text = format!("bounded,{},mode=rd", self.consistency);
        Ok(text.parse()?)
    }

    /// Its objects, in the order in which they are read.
    pub(crate) fn objects(&self) -> Vec<Object> {
        let places = self.places.iter();
        places
            .flat_map(|place| objects().filter(|object| object.place == *place))
            .collect()
    }
}

impl Object {
    /// The root of its segment that refers to it.
    pub(crate) fn root(self) -> String {
        self.number.to_string()
    }
}

/// All objects. A writer's are next to each other.
pub(crate) fn objects() -> impl Iterator<Item = Object> {
    let all = WRITERS.iter().flat_map(|writer| writer.writes);
    all.enumerate().map(|(number, (place, way))| Object {
        number,
        place: *place,
        way: *way,
    })
}

/// The objects of one writer.
pub(crate) fn objects_of(name: &str) -> Vec<Object> {
    let before = WRITERS.iter().take_while(|writer| writer.name != name);
    let first: usize = before.map(|writer| writer.writes.len()).sum();
    let writer = WRITERS.iter().find(|writer| writer.name == name);
    let count = writer.map_or(0, |writer| writer.writes.len());
    objects().skip(first).take(count).collect()
}

pub(crate) const SITE_A: &str = "a";
pub(crate) const SITE_B: &str = "b";

pub(crate) const WRITERS: [Writer; 3] = [
    Writer {
        name: "anna",
        at: SITE_A,
        writes: &[
            (Place::Commits, Way::Visit),
            (Place::Commits, Way::Visit),
            (Place::Commits, Way::Transaction),
            (Place::Counted, Way::Visit),
            (Place::Counted, Way::Transaction),
            (Place::Mixed, Way::Visit),
        ],
    },
    Writer {
        name: "nils",
        at: SITE_A,
        writes: &[
            (Place::Logs, Way::Log),
            (Place::Logs, Way::Log),
            (Place::Logs, Way::Log),
            (Place::Logs, Way::Log),
            (Place::Mixed, Way::Log),
            (Place::Mixed, Way::HastyLog),
        ],
    },
    Writer {
        name: "hanna",
        at: HOME,
        writes: &[
            (Place::Commits, Way::Transaction),
            (Place::Commits, Way::Visit),
            (Place::Counted, Way::Transaction),
            (Place::Counted, Way::Visit),
            (Place::Mixed, Way::Transaction),
        ],
    },
];

const COMMITS: &[Place] = &[Place::Commits];
const COUNTED: &[Place] = &[Place::Counted];
const LOGS: &[Place] = &[Place::Logs];
const MIXED: &[Place] = &[Place::Mixed];
const SEVERAL: &[Place] = &[Place::Commits, Place::Logs, Place::Mixed];

pub(crate) const READERS: [Reader; 3] = [
    Reader {
        name: "ben",
        at: SITE_B,
        classes: &[
            class("time=0ms,hard", COMMITS),
            class("mods=0,hard", COMMITS),
            class("time=100ms,hard", COMMITS),
            class("time=50ms,mods=3,hard", COMMITS),
            class("time=0ms,hard,isolation=access", COMMITS),
            class("time=0ms,hard", MIXED),
            class("time=100ms,hard", MIXED),
            class("time=100ms,hard", SEVERAL),
        ],
    },
    Reader {
        name: "lena",
        at: SITE_B,
        classes: &[
            class("mods=5,hard", COUNTED),
            class("time=0ms,hard", LOGS),
            class("time=100ms,hard", LOGS),
            class("mods=5,hard", LOGS),
            class("time=200ms,mods=5,hard", LOGS),
            class("time=100ms,hard,isolation=access", LOGS),
            class("time=100ms", COMMITS),
            class("time=100ms", LOGS),
            class("mods=5", COMMITS),
            class("mods=5", LOGS),
        ],
    },
    Reader {
        name: "nora",
        at: HOME,
        classes: &[
            class("mods=5,hard", COUNTED),
            class("time=0ms,hard", LOGS),
            class("time=100ms,hard", LOGS),
            class("time=0ms,hard", MIXED),
        ],
    },
];

const fn class(consistency: &'static str, places: &'static [Place]) -> Class {
    Class {
        consistency,
        places,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_a_consistency_that_visits_take() {
        for class in READERS.iter().flat_map(|reader| reader.classes) {
            let consistency = class.consistency().expect(class.consistency);
            thorp_client::Visit::check(&consistency).expect(class.consistency);
            assert!(!class.objects().is_empty(), "{class:?}");
        }
    }

    #[test]
    fn the_counted_segment_is_read_with_no_tighter_hard_bound() {
        let classes = READERS.iter().flat_map(|reader| reader.classes);
        for class in classes.filter(|class| class.places.contains(&Place::Counted)) {
            assert_eq!(class.consistency, "mods=5,hard");
        }
    }

    #[test]
    fn each_object_has_one_writer() {
        let of_writers = WRITERS.iter().flat_map(|writer| objects_of(writer.name));
        assert_eq!(
            of_writers.collect::<Vec<_>>(),
            objects().collect::<Vec<_>>()
        );
    }
}
