//! What `thorp cp` and `thorp mv` have in common: the bytes of an object become those of another one.

use super::source::{Source, no_root};
use super::{say, say_json};
use crate::connect::Via;
use crate::failure::{Code, Failure};
use crate::names;
use crate::stream::Spool;
use clap::Args;
use thorp_client::{Error, Member, Reference, Result, Segment, Transaction};

/// From where to where.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The object: thorp://HOME/path#PAGE.SLOT.GENERATION, or thorp://HOME/path with --root
    #[arg(value_parser = names::segment_or_object)]
    source: String,
    /// thorp://HOME/path for a new object, or thorp://HOME/path#PAGE.SLOT.GENERATION to replace one
    #[arg(value_parser = names::segment_or_object)]
    dest: String,
    /// The object that the source segment's root of this name names
    #[arg(long, value_name = "NAME")]
    root: Option<String>,
    /// Make it the destination's root of this name, or replace the bytes of the one that is
    #[arg(long, value_name = "NAME")]
    as_root: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

/// What becomes of the source.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Afterwards {
    /// It stays.
    Stays,
    /// It is deleted, and the root that named it goes.
    Goes,
}

/// One transaction.
pub(super) fn run(arguments: &Arguments, afterwards: Afterwards) -> Result<(), Failure> {
    check(arguments)?;
    let member = arguments.via.join()?;
    let mut copying = Copying::new(&member, arguments, afterwards)?;
    let session = arguments.via.session_for(copying.spool.bytes(), &member);
    let made = member.transact_with(session, |tx| copying.run(tx));
    let made = made.map_err(|error| copying.failure(error))?;
    let [source, object] = [made.source, made.object].map(|at| member.format(&at));
    let (source, object) = (source?, object?);
    match arguments.json {
        true => say_json(&serde_json::json!({
            "object": object,
            "source": source,
            "bytes": made.bytes,
        })),
        false => say(&object),
    }
}

/// What is wrong with a call is found before it joins.
fn check(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { source, dest, .. } = arguments;
    Source::check(source, arguments.root.as_deref())?;
    let usage = |what: String, todo: &str| Err(Failure::new(what, todo).with(Code::Usage));
    if dest.contains('#') && arguments.as_root.is_some() {
        let todo = "leave out --as-root to replace the object, or what follows the # to replace what the root names";
        let what = format!("{dest} is an object already, and --as-root names one, too");
        return usage(what, todo);
    }
    if source.contains('#') && source.contains('+') {
        let todo = "leave out the + and what follows it: the whole object is read";
        return usage(format!("{source} leads into an object"), todo);
    }
    match source == dest && source.contains('#') {
        true => Err(same_object(source)),
        false => Ok(()),
    }
}

fn same_object(name: &str) -> Failure {
    let what = format!("source and destination are the same object: {name}");
    let todo = "name another object, or a segment for a new one";
    Failure::new(what, todo).with(Code::Usage)
}

/// Where the bytes go.
enum Destination {
    Object(Reference),
    New(Segment),
}

/// What a transaction has done.
struct Made {
    source: Reference,
    object: Reference,
    bytes: u64,
}

struct Copying<'a> {
    arguments: &'a Arguments,
    afterwards: Afterwards,
    source: Source,
    destination: Destination,
    spool: Spool,
    /// Why the last attempt ended the transaction itself.
    refused: Option<Failure>,
}

impl<'a> Copying<'a> {
    /// No segment is made for an object that is not there.
    fn new(
        member: &Member,
        arguments: &'a Arguments,
        afterwards: Afterwards,
    ) -> Result<Self, Failure> {
        let Arguments {
            source, dest, root, ..
        } = arguments;
        let source = Source::find(member, source, root.as_deref())?;
        let bytes = member.transact(|tx| match source.own_reference(tx)? {
            Some(reference) => Ok(Some(tx.size(&reference)?)),
            None => Ok(None),
        })?;
        let bytes = bytes.ok_or_else(|| arguments.no_root())?;
        let destination = match dest.contains('#') {
            true => Destination::Object(member.parse(dest)?),
            false => Destination::New(member.open_or_create(dest)?),
        };
        Ok(Copying {
            arguments,
            afterwards,
            source,
            destination,
            spool: Spool::of(bytes),
            refused: None,
        })
    }

    /// One attempt: all is read again.
    fn run(&mut self, tx: &mut Transaction) -> Result<Made> {
        self.refused = None;
        let Some(source) = self.source.own_reference(tx)? else {
            return Err(self.refuse(self.arguments.no_root()));
        };
        let there = self.there(tx)?;
        if there.is_some_and(|there| there == source) {
            return Err(self.refuse(same_object(&self.arguments.dest_name())));
        }
        self.spool.clear().map_err(Error::aborted_by)?;
        let bytes = tx.read_into(&source, &mut self.spool)?;
        let object = match there {
            Some(there) => {
                tx.write_from(&there, &mut self.spool)?;
                there
            }
            None => self.create(tx)?,
        };
        if self.afterwards == Afterwards::Goes {
            tx.delete(&source)?;
            if let Source::Root(segment, name) = &self.source {
                tx.set_root(segment, name, None)?;
            }
        }
        Ok(Made {
            source,
            object,
            bytes,
        })
    }

    /// The object that is replaced, if there is one.
    fn there(&self, tx: &mut Transaction) -> Result<Option<Reference>> {
        match (&self.destination, &self.arguments.as_root) {
            (Destination::Object(reference), _) => Ok(Some(*reference)),
            (Destination::New(segment), Some(name)) => tx.root(segment, name),
            (Destination::New(_), None) => Ok(None),
        }
    }

    fn create(&mut self, tx: &mut Transaction) -> Result<Reference> {
        let Destination::New(segment) = &self.destination else {
            return Err(Error::aborted("an object that is there is not made"));
        };
        let made = tx.create_from(segment, &mut self.spool)?;
        if let Some(name) = &self.arguments.as_root {
            tx.set_root(segment, name, Some(made))?;
        }
        Ok(made)
    }

    /// Ends the transaction, and tells a person this.
    fn refuse(&mut self, failure: Failure) -> Error {
        self.refused = Some(failure);
        Error::aborted("the call cannot be done")
    }

    /// What a person is told.
    fn failure(&mut self, error: Error) -> Failure {
        let own = self.refused.take().or_else(|| self.spool.failure());
        own.unwrap_or_else(|| error.into())
    }
}

impl Arguments {
    fn no_root(&self) -> Failure {
        no_root(&self.source, self.root.as_deref().unwrap_or_default())
    }

    fn dest_name(&self) -> String {
        match &self.as_root {
            Some(name) => format!("root {name} of {}", self.dest),
            None => self.dest.clone(),
        }
    }
}
