//! `thorp load`: a file becomes a segment.

use super::{say, say_json};
use crate::connect::Via;
use crate::dump::{self, Checked, Line, Lines, Source, Target, Value, bytes_of};
use crate::failure::Failure;
use crate::names;
use crate::progress::Progress;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use thorp_client::{
    Error, Generation, Member, ObjectId, PageId, PageNo, Ref, Reference, Segment, Slot, Transaction,
};

/// The root of the state of a load that has not ended.
pub(crate) const UNFINISHED: &str = ".load";

/// What `thorp load` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP, allow_missing_positional = true)]
pub(crate) struct Options {
    /// A file that `thorp dump` has written; standard input if none is given, or -
    #[arg(value_parser = names::file)]
    file: Option<PathBuf>,
    /// thorp://HOME/path, which is made
    #[arg(value_parser = names::segment, required = true)]
    segment: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

/// How far a load has come. It is kept in the segment, and written with what is loaded: so it is always true.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
struct State {
    /// The file: its bytes and their checksum.
    file: (u64, u32),
    /// Objects that were made.
    made: u64,
    /// Objects whose references are right, of those that refer to later ones.
    mended: u64,
    /// Where the objects are, some of them each.
    places: Vec<Ref<Vec<Reference>>>,
}

impl State {
    /// Whether it is of the same file as another one, which has so many objects.
    fn is_of(&self, other: &State, objects: u64) -> bool {
        self.file == other.file && self.made <= objects
    }
}

/// A dump that is loaded into a segment.
struct Loading<'a> {
    source: &'a Source,
    dump: Checked,
    segment: Segment,
    state_at: Ref<State>,
    state: State,
    /// Where the objects are that were made.
    made: Vec<Reference>,
}

/// Checks the whole file first: of one with a broken line nothing is loaded.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let file = options.file.as_deref().unwrap_or(Path::new("-"));
    let source = Source::of(file)?;
    let checked = dump::check(&source)?;
    let member = options.via.join_for_long()?;
    let mut loading = Loading::begin(&member, &options.segment, (&source, checked))?;
    loading
        .run(&member)
        .map_err(|failure| loading.interrupted(failure))?;
    match options.json {
        true => say_json(&serde_json::json!({
            "segment": options.segment,
            "objects": checked.objects,
        })),
        false => say(&format!(
            "{} objects are in {}",
            checked.objects, options.segment
        )),
    }
}

impl<'a> Loading<'a> {
    /// Makes the segment, or goes on in one that was loaded from the same file.
    fn begin(
        member: &Member,
        name: &str,
        (source, dump): (&'a Source, Checked),
    ) -> Result<Loading<'a>, Failure> {
        let segment = member.open_or_create(name)?;
        let fresh = State {
            file: (dump.bytes, dump.sum),
            made: 0,
            mended: 0,
            places: Vec::new(),
        };
        let begun = member.transact(|tx| begin(tx, &segment, (&fresh, dump.objects)))?;
        let Some((state_at, state, made)) = begun else {
            let what = format!("{name} has objects or roots already");
            let todo = "load into a new segment, or remove this one first: `thorp rm SEGMENT`";
            return Err(Failure::new(what, todo));
        };
        if !state.is_of(&fresh, dump.objects) {
            let what = format!("{name} was begun to be loaded from another file");
            let todo = "go on with that one, or remove the segment first: `thorp rm SEGMENT`";
            return Err(Failure::new(what, todo));
        }
        Ok(Loading {
            source,
            dump,
            segment,
            state_at,
            state,
            made,
        })
    }

    fn run(&mut self, member: &Member) -> Result<(), Failure> {
        self.make(member)?;
        let roots = self.mend(member)?;
        self.end(member, &roots)
    }

    /// Makes the objects, some with each transaction.
    fn make(&mut self, member: &Member) -> Result<(), Failure> {
        let mut lines = Lines::open(self.source)?;
        let mut progress = Progress::of("objects");
        let mut batch = Batch::default();
        while let Some(line) = lines.next()? {
            if let Line::Object(id, value) = line
                && id > self.state.made
            {
                batch.push(id, value);
            }
            if batch.is_full() {
                self.make_batch(member, &batch)?;
                batch = Batch::default();
                progress.tell(self.state.made, self.dump.objects);
            }
        }
        match batch.objects.is_empty() {
            true => Ok(()),
            false => self.make_batch(member, &batch),
        }
    }

    fn make_batch(&mut self, member: &Member, batch: &Batch) -> Result<(), Failure> {
        let (state, places) = self.step(member, |tx, loading, state| {
            let mut places = Vec::new();
            for (_, value) in &batch.objects {
                // Those after it are not there yet.
                let bytes = loading.bytes(value, &loading.made)?;
                places.push(tx.create(&loading.segment, bytes)?);
            }
            let made = [&loading.made[..], &places].concat();
            for ((id, value), at) in batch.objects.iter().zip(&places) {
                if value
                    .refers_to()
                    .any(|to| to > loading.state.made && to <= made.len() as u64)
                {
                    tx.write(at, loading.bytes(value, &made)?)?;
                }
                state.made = *id;
            }
            state
                .places
                .push(tx.create_typed(&loading.segment, &places)?);
            Ok(places)
        })?;
        self.state = state;
        self.made.extend(places);
        Ok(())
    }

    /// Writes the objects anew that refer to objects of a later transaction. Returns the roots.
    fn mend(&mut self, member: &Member) -> Result<Vec<(String, Target)>, Failure> {
        let mut lines = Lines::open(self.source)?;
        let (mut batch, mut roots) = (Batch::default(), Vec::new());
        while let Some(line) = lines.next()? {
            match line {
                Line::Object(id, value)
                    if id > self.state.mended && value.refers_to().any(|to| to > id) =>
                {
                    batch.push(id, value);
                }
                Line::Root(name, target) => roots.push((name, target)),
                _ => {}
            }
            if batch.is_full() {
                self.mend_batch(member, &std::mem::take(&mut batch))?;
            }
        }
        self.mend_batch(member, &batch)?;
        Ok(roots)
    }

    fn mend_batch(&mut self, member: &Member, batch: &Batch) -> Result<(), Failure> {
        let Some((last, _)) = batch.objects.last() else {
            return Ok(());
        };
        let (state, ()) = self.step(member, |tx, loading, state| {
            for (id, value) in &batch.objects {
                let at = loading.made[(*id - 1) as usize];
                tx.write(&at, loading.bytes(value, &loading.made)?)?;
            }
            state.mended = *last;
            Ok(())
        })?;
        self.state = state;
        Ok(())
    }

    /// Sets the roots, and takes the state away.
    fn end(&mut self, member: &Member, roots: &[(String, Target)]) -> Result<(), Failure> {
        let mut named = Vec::new();
        for (name, target) in roots {
            let reference = match target {
                Target::Id(id) => self.made[(*id - 1) as usize],
                Target::Name(name) => member.parse(name)?,
            };
            named.push((name, reference));
        }
        self.step(member, |tx, loading, _| {
            for (name, reference) in &named {
                tx.set_root(&loading.segment, name, Some(*reference))?;
            }
            for places in &loading.state.places {
                tx.delete(&places.reference())?;
            }
            tx.set_root(&loading.segment, UNFINISHED, None)
        })?;
        Ok(member.transact(|tx| tx.delete(&self.state_at.reference()))?)
    }

    /// One transaction, which writes the state, too. One of which nobody knows whether it was done ends the command: the next
    /// one finds out from the state.
    fn step<T>(
        &self,
        member: &Member,
        mut work: impl FnMut(&mut Transaction, &Self, &mut State) -> Result<T, Error>,
    ) -> Result<(State, T), Failure> {
        Ok(member.transact(|tx| {
            let mut state = tx.get(&self.state_at)?;
            if state != self.state {
                return Err(Error::aborted(
                    "another `thorp load` loads it at the same time",
                ));
            }
            let done = work(tx, self, &mut state)?;
            tx.put(&self.state_at, &state)?;
            Ok((state, done))
        })?)
    }

    /// The bytes of an object, as far as it is known where the others are.
    fn bytes(&self, value: &Value, made: &[Reference]) -> Result<Vec<u8>, Error> {
        let at = |id: u64| {
            let known = made.get((id - 1) as usize).copied();
            known.unwrap_or_else(|| self.not_yet())
        };
        match value {
            Value::Text(text) => Ok(text.clone().into_bytes()),
            Value::Pieces(pieces) => bytes_of(pieces, at).map_err(Error::aborted),
        }
    }

    /// As long as most references will be.
    fn not_yet(&self) -> Reference {
        Reference {
            home: self.segment.home(),
            object: ObjectId {
                page: PageId {
                    segment: self.segment.id(),
                    page: PageNo(1 << 14),
                },
                slot: Slot(0),
            },
            generation: Generation(1),
            offset: 0,
        }
    }

    fn interrupted(&self, failure: Failure) -> Failure {
        let (made, all) = (self.state.made, self.dump.objects);
        failure.or(format!(
            "{made} of {all} objects are there: the same command goes on from there"
        ))
    }
}

type Begun = (Ref<State>, State, Vec<Reference>);

/// The state of a load that was interrupted, or a new one. None: somebody else's objects are there.
fn begin(
    tx: &mut Transaction,
    segment: &Segment,
    (fresh, objects): (&State, u64),
) -> Result<Option<Begun>, Error> {
    if let Some(at) = tx.root(segment, UNFINISHED)? {
        return go_on(tx, segment, at, (fresh, objects)).map(Some);
    }
    let mut is_empty = tx.roots(segment)?.is_empty();
    tx.scan_references(segment, |_| {
        is_empty = false;
        Ok(())
    })?;
    if !is_empty {
        return Ok(None);
    }
    let at = tx.create_typed(segment, fresh)?;
    tx.set_root(segment, UNFINISHED, Some(at.reference()))?;
    Ok(Some((at, fresh.clone(), Vec::new())))
}

/// A load that was interrupted. Whoever may write in the segment may have written its state: what it names has to be of
/// the segment, so that a load changes no object that is elsewhere.
fn go_on(
    tx: &mut Transaction,
    segment: &Segment,
    at: Reference,
    (fresh, objects): (&State, u64),
) -> Result<Begun, Error> {
    let damaged = || {
        let name = segment.name();
        Error::aborted(format!("the state of the load of {name} is damaged"))
    };
    let is_own = |at: &Reference| {
        let page = at.object.page;
        let is_here = at.home == segment.home() && page.segment == segment.id();
        is_here && page.page > PageNo(0) && page.page.is_of_objects() && at.offset == 0
    };
    if !is_own(&at) || tx.size(&at)? > STATE_BYTES_MAX {
        return Err(damaged());
    }
    let at: Ref<State> = Ref::new(at);
    let state = tx.get(&at)?;
    if !state.is_of(fresh, objects) {
        // The caller says whose it is.
        return Ok((at, state, Vec::new()));
    }
    let mut made = Vec::new();
    let mut seen = HashSet::from([at.reference()]);
    for places in &state.places {
        let list = places.reference();
        if !is_own(&list) || !seen.insert(list) || tx.size(&list)? > STATE_BYTES_MAX {
            return Err(damaged());
        }
        made.extend(tx.get(places)?);
        if made.len() as u64 > state.made {
            break;
        }
    }
    let are_own = made.iter().all(|made| is_own(made) && seen.insert(*made));
    if made.len() as u64 != state.made || state.mended > state.made || !are_own {
        return Err(damaged());
    }
    Ok((at, state, made))
}

/// Bytes of a state, and of a list of places in it. A load writes far smaller ones.
const STATE_BYTES_MAX: u64 = 4 << 20;

/// Objects for one transaction.
#[derive(Default)]
struct Batch {
    objects: Vec<(u64, Value)>,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, id: u64, value: Value) {
        self.bytes += match &value {
            Value::Text(text) => text.len(),
            Value::Pieces(pieces) => pieces.iter().map(dump::Piece::bytes).sum(),
        };
        self.objects.push((id, value));
    }

    fn is_full(&self) -> bool {
        self.objects.len() >= BATCH_OBJECTS_MAX || self.bytes >= BATCH_BYTES_MAX
    }
}

/// Objects of one transaction, and their bytes.
const BATCH_OBJECTS_MAX: usize = 500;
const BATCH_BYTES_MAX: usize = 256 << 10;

const HELP: &str = "\
Makes a segment of a file that `thorp dump` has written, with all its objects, roots, and references between them. The \
segment must be new or empty. A load that was interrupted leaves a part, and the same command goes on with it.

Examples:
  thorp load notes.jsonl thorp://dev/notes-again
  thorp dump thorp://dev/notes | thorp load thorp://dev/notes-copy";
