//! `thorp dump`: a segment becomes a file.

use super::load::UNFINISHED;
use super::{say, say_json};
use crate::connect::Via;
use crate::destination::Destination;
use crate::dump::{Ids, Line, Target, pieces_of};
use crate::failure::Failure;
use crate::names;
use crate::progress::Progress;
use clap::Args;
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use thorp_client::{Error, Member, Segment, Transaction};

/// What `thorp dump` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// thorp://HOME/path
    #[arg(value_parser = names::segment)]
    segment: String,
    /// The file; a regular file that exists is replaced, anything else is written into; standard output if none is given,
    /// or -
    #[arg(value_parser = names::file, default_value = "-", hide_default_value = true)]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

/// One consistent state: all is read in one transaction.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let member = options.via.join_for_long()?;
    let segment = member.open(&options.segment)?;
    if segment.root(UNFINISHED)?.is_some() {
        let what = format!("{} is being loaded", options.segment);
        let todo = "run that `thorp load` again until it has ended, or remove the segment";
        return Err(Failure::new(what, todo));
    }
    let objects = match Destination::of(&options.file) {
        Destination::Standard => {
            dump_into(&member, &segment, &options.file, &mut io::stdout().lock())?;
            return Ok(());
        }
        Destination::Stream(name) => {
            let out = OpenOptions::new().write(true).open(&name);
            let mut out = out.map_err(|error| Failure::file(&name, &error))?;
            dump_into(&member, &segment, &name, &mut out)?
        }
        Destination::Regular { place, part } => {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                // What it holds may be for nobody else, and it follows no link that somebody has put there.
                .mode(0o600)
                .custom_flags(OFlags::NOFOLLOW.bits() as i32)
                .open(&part);
            let file = file.map_err(|error| Failure::file(&part, &error))?;
            let objects = dump(&member, &segment, &file, &part)?;
            fs::rename(&part, &place).map_err(|error| Failure::file(&place, &error))?;
            objects
        }
    };
    let file = options.file.display().to_string();
    match options.json {
        true => say_json(&serde_json::json!({
            "segment": options.segment,
            "file": file,
            "objects": objects,
        })),
        false => say(&format!(
            "{objects} objects of {} are in {file}",
            options.segment
        )),
    }
}

/// Writes a segment into what cannot be written again when others change something meanwhile.
fn dump_into(
    member: &Member,
    segment: &Segment,
    name: &Path,
    out: &mut impl Write,
) -> Result<u64, Failure> {
    let failed = |error: io::Error| Failure::file(name, &error);
    let mut whole = tempfile::tempfile().map_err(failed)?;
    let objects = dump(member, segment, &whole, name)?;
    whole
        .rewind()
        .and_then(|()| io::copy(&mut whole, out))
        .map_err(failed)?;
    Ok(objects)
}

/// Writes a segment into a file, from its beginning. Returns how many objects it has.
fn dump(member: &Member, segment: &Segment, file: &File, path: &Path) -> Result<u64, Failure> {
    let mut failed = None;
    // What others change meanwhile is read again, from the beginning.
    let dumped = member.transact(|tx| {
        let mut out = match Continued::of(file) {
            Ok(continued) => BufWriter::new(continued),
            Err(error) => return Err(stop(&mut failed, error)),
        };
        let objects = write(tx, segment, &mut out, &mut failed)?;
        let ended = out.into_inner().map_err(|error| error.into_error());
        let ended = ended.and_then(Continued::end);
        ended.map_err(|error| stop(&mut failed, error))?;
        Ok(objects)
    });
    match failed {
        Some(error) => Err(Failure::file(path, &error)),
        None => Ok(dumped?),
    }
}

/// Ends a transaction because of a file.
fn stop(failed: &mut Option<io::Error>, error: io::Error) -> Error {
    let words = error.to_string();
    *failed = Some(error);
    Error::aborted(words)
}

fn write(
    tx: &mut Transaction,
    segment: &Segment,
    out: &mut impl Write,
    failed: &mut Option<io::Error>,
) -> Result<u64, Error> {
    let mut line = |line: &Line| {
        let written = line.print().map_err(io::Error::from);
        let written = written.and_then(|text| writeln!(out, "{text}"));
        written.map_err(|error| stop(failed, error))
    };
    let mut ids = Ids::of(segment.home(), segment.id()).map_err(Error::aborted_by)?;
    tx.scan_references(segment, |reference| {
        ids.add(reference);
        Ok(())
    })?;
    line(&Line::Head)?;
    let mut progress = Progress::of("objects");
    let mut id = 0;
    tx.scan(segment, |_, bytes| {
        id += 1;
        progress.tell(id, ids.len());
        line(&Line::object(id, bytes, pieces_of(bytes, &ids)))
    })?;
    for (name, reference) in tx.roots(segment)? {
        let target = match ids.get(&reference) {
            Some(id) if reference.offset == 0 => Target::Id(id),
            _ => match names::of_root(segment.member(), &reference)? {
                Some(name) => Target::Name(name),
                // What it names is gone, with its segment.
                None => continue,
            },
        };
        line(&Line::Root(name, target))?;
    }
    line(&Line::End(ids.len()))?;
    Ok(ids.len())
}

/// A file of which an interrupted dump has written the beginning. As far as that is still so, it is not written again.
struct Continued<'a> {
    file: &'a File,
    there: Option<BufReader<&'a File>>,
    /// Bytes that are right.
    good: u64,
}

impl<'a> Continued<'a> {
    fn of(mut file: &'a File) -> io::Result<Self> {
        file.rewind()?;
        Ok(Continued {
            file,
            there: Some(BufReader::new(file)),
            good: 0,
        })
    }

    /// What is left of an older dump goes.
    fn end(self) -> io::Result<()> {
        self.file.set_len(self.good)?;
        self.file.sync_all()
    }

    fn is_there(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let Some(there) = &mut self.there else {
            return Ok(false);
        };
        let mut old = vec![0; bytes.len()];
        match there.read_exact(&mut old) {
            Ok(()) => Ok(old == bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Write for Continued<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_there(bytes)? {
            if self.there.take().is_some() {
                self.file.set_len(self.good)?;
                self.file.seek(io::SeekFrom::Start(self.good))?;
            }
            self.file.write_all(bytes)?;
        }
        self.good += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const HELP: &str = "\
Writes all objects and roots of a segment as lines of JSON, which `thorp load` reads. References between the objects are \
kept. A dump that was interrupted leaves FILE.part; the same command goes on with it.

Examples:
  thorp dump thorp://dev/notes notes.jsonl
  thorp dump thorp://dev/notes | wc -l";

#[cfg(test)]
mod tests {
    use super::*;

    fn dumped_over(there: &str, wanted: &str) -> String {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(there.as_bytes()).unwrap();
        let mut out = Continued::of(&file).unwrap();
        for line in wanted.split_inclusive('\n') {
            out.write_all(line.as_bytes()).unwrap();
        }
        out.end().unwrap();
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_file_is_continued_from_where_it_is_still_right() {
        let wanted = "one\ntwo\nthree\n";
        for there in [
            "",
            "one\n",
            "one\ntw",
            "one\n2\nthree\n",
            "one\ntwo\nthree\nfour\n",
        ] {
            assert_eq!(dumped_over(there, wanted), wanted, "{there:?}");
        }
    }
}
