//! A process that reads, and writes down when it began to and what it saw.

use crate::cast::{Class, Object, READERS};
use crate::clock::now_ns;
use crate::obey::{self, Shared};
use crate::record::{READS, Read, Recorder};
use std::path::Path;
use std::time::Duration;
use thorp_bench::Result;
use thorp_client::{Consistency, Error, ErrorKind, Member, Moment, Reference, Segment, Visit};

pub(crate) const ROLE: &str = "bounds-reader";

/// Visits of one class.
struct Work<'a> {
    member: &'a Member,
    shared: &'a Shared,
    number: usize,
    consistency: Consistency,
    segments: Vec<Segment>,
    references: Vec<Reference>,
}

/// Reads until it is told to end.
pub(crate) fn play(arguments: &[String]) -> Result<()> {
    let [dir, name] = arguments else {
        return Err("a reader is told where, and who".into());
    };
    let dir = Path::new(dir);
    let reader = READERS.iter().find(|reader| reader.name == name);
    let reader = reader.ok_or("there is no such reader")?;
    let member = obey::join(dir, (reader.name, reader.at), |config| config)?;
    let shared = Shared::default();
    let works = reader.classes.iter().enumerate();
    let works = works.map(|(number, class)| Work::new(&member, &shared, (number, class)));
    let works = works.collect::<Result<Vec<_>>>()?;
    let done = obey::work(&works, &shared, |work| {
        work.run(&file(dir, name, work.number))
    });
    drop(works);
    member.close();
    done
}

/// Where a reader writes down what it reads in a class.
pub(crate) fn file(dir: &Path, reader: &str, class: usize) -> std::path::PathBuf {
    dir.join(format!("{reader}-{class}.{READS}"))
}

impl<'a> Work<'a> {
    fn new(
        member: &'a Member,
        shared: &'a Shared,
        (number, class): (usize, &Class),
    ) -> Result<Self> {
        let segments = class.places.iter();
        let segments = segments.map(|place| member.open(&place.segment()));
        let segments: Vec<Segment> = segments.collect::<thorp_client::Result<_>>()?;
        let find = |object: Object| {
            let at = class.places.iter().position(|place| *place == object.place);
            let segment = at.and_then(|at| segments.get(at)).ok_or("no segment")?;
            let reference = segment.root(&object.root())?;
            reference.ok_or_else(|| "an object is not there".into())
        };
        let references = class
            .objects()
            .into_iter()
            .map(find)
            .collect::<Result<_>>()?;
        Ok(Work {
            member,
            shared,
            number,
            consistency: class.consistency()?,
            segments,
            references,
        })
    }

    fn run(&self, file: &Path) -> Result<()> {
        let mut recorder = Recorder::create(file)?;
        while !self.shared.is_over() {
            match self.consistency.isolation() {
                Moment::Access => self.accesses(&mut recorder)?,
                _ => {
                    let at_ns = now_ns();
                    let read = self.visit(at_ns);
                    self.note(at_ns, read, &mut recorder)?;
                }
            }
        }
        Ok(recorder.finish()?)
    }

    fn open(&self) -> thorp_client::Result<Visit> {
        let segments: Vec<&Segment> = self.segments.iter().collect();
        Visit::open(self.member, self.consistency, &segments)
    }

    /// Reads all objects in a visit.
    fn visit(&self, at_ns: u64) -> thorp_client::Result<Read> {
        let mut visit = self.open()?;
        let opened_ns = now_ns();
        let values = self.references.iter();
        let values = values.map(|reference| visit.read(reference).and_then(value_of).map(Some));
        let values = values.collect::<thorp_client::Result<_>>()?;
        visit.close()?;
        Ok(Read {
            at_ns,
            opened_ns,
            values,
        })
    }

    /// One visit, and each access looks anew.
    fn accesses(&self, recorder: &mut Recorder) -> Result<()> {
        let mut visit = match self.open() {
            Ok(visit) => visit,
            Err(error) => return self.note(now_ns(), Err(error), recorder),
        };
        let all = 0..self.references.len();
        for (which, _) in all.cycle().zip(0..ACCESSES) {
            if self.shared.is_over() {
                break;
            }
            let at_ns = now_ns();
            let value = visit.read(&self.references[which]).and_then(value_of);
            let read = value.map(|value| {
                let mut values = vec![None; self.references.len()];
                values[which] = Some(value);
                Read {
                    at_ns,
                    opened_ns: now_ns(),
                    values,
                }
            });
            self.note(at_ns, read, recorder)?;
        }
        Ok(())
    }

    /// A read that failed is one without values. Only what the world can do to it may be the reason.
    fn note(
        &self,
        at_ns: u64,
        read: thorp_client::Result<Read>,
        recorder: &mut Recorder,
    ) -> Result<()> {
        let read = match read {
            Ok(read) => {
                if self.consistency.is_hard() {
                    self.shared.count_hard_read();
                }
                read
            }
            Err(error) => match error.kind() {
                ErrorKind::Busy { .. } | ErrorKind::Conflict | ErrorKind::HomeUnreachable => Read {
                    at_ns,
                    opened_ns: now_ns(),
                    values: Vec::new(),
                },
                _ => return Err(format!("{}: {error}", self.consistency).into()),
            },
        };
        recorder.read(&read)?;
        self.shared.pause(PAUSE);
        Ok(())
    }
}

/// A writer's number.
fn value_of(bytes: Vec<u8>) -> thorp_client::Result<u64> {
    let damaged = |bytes: Vec<u8>| Error::aborted(format!("no writer has written {bytes:?}"));
    Ok(u64::from_le_bytes(bytes.try_into().map_err(damaged)?))
}

/// Between two reads: writers and other readers share the processors.
const PAUSE: Duration = Duration::from_micros(500);
/// Of one visit that looks at each access.
const ACCESSES: usize = 1_000;
