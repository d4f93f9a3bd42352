//! `thorp inspect`: what is in a segment, or in one object.

use super::reading::{self, Reading};
use super::{consistency, say, say_json};
use crate::connect::Via;
use crate::failure::Failure;
use crate::names;
use crate::text::{self, Side, Table};
use clap::Args;
use std::collections::BTreeMap;
use thorp_client::{Consistency, ErrorKind, Member, Reference, Segment, Visit};

/// What `thorp inspect` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// thorp://HOME/path or thorp://HOME/path#PAGE.SLOT.GENERATION
    #[arg(value_parser = names::segment_or_object)]
    url: String,
    /// Of a segment: also a line for each object
    #[arg(long)]
    objects: bool,
    /// Of an object: how many bytes to show
    #[arg(long, value_name = "N", default_value_t = 512)]
    bytes: usize,
    /// What it may read: a preset or options, as `thorp consistency` lists them. It only reads, so mode=wr counts as mode=rd
    /// [default: serializable]
    #[arg(long, value_name = "VALUE", value_parser = consistency::parse)]
    consistency: Option<Consistency>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

/// What is told of a segment.
struct Contents {
    roots: Vec<(String, Reference)>,
    /// Objects and bytes of each page.
    pages: BTreeMap<u32, (u64, u64)>,
    objects: Vec<(Reference, u64)>,
    /// Homes that did not answer, of a visit.
    left_out: Vec<String>,
}

/// What is told of an object.
struct Beginning {
    bytes: u64,
    start: Vec<u8>,
    /// Homes that did not answer, of a visit.
    left_out: Vec<String>,
}

/// One consistent state: all is read in one transaction, or by one visit.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let reading = Reading::of(options.consistency)?;
    let member = options.via.join()?;
    if options.url.contains('#') {
        object(&member, options, reading)
    } else {
        segment(&member, options, reading)
    }
}

fn object(member: &Member, options: &Options, reading: Reading) -> Result<(), Failure> {
    let reference = member.parse(&options.url)?;
    let name = member.format(&reference)?;
    let Beginning {
        bytes: len,
        start,
        left_out,
    } = match reading.is_visit() {
        true => Beginning::of_visit(member, &reference, (options.bytes, reading))?,
        false => Beginning::of(member, &reference, (options.bytes, reading))?,
    };
    if options.json {
        let value = serde_json::json!({
            "reference": name,
            "bytes": len,
            "text": text::is_text(&start).then(|| String::from_utf8_lossy(&start)),
            "left_out": left_out,
        });
        return say_json(&value);
    }
    say(&format!("{name}: {len} bytes"))?;
    if text::is_text(&start) {
        say(&String::from_utf8_lossy(&start))?;
    } else if !start.is_empty() {
        say(&text::hexdump(&start, reference.offset))?;
    }
    let shown = reference.offset + start.len() as u64;
    if shown < len {
        say(&format!(
            "... {} more bytes (--bytes N shows more)",
            len - shown
        ))?;
    }
    Ok(())
}

fn segment(member: &Member, options: &Options, reading: Reading) -> Result<(), Failure> {
    let segment = member.open(&options.url)?;
    let contents = match reading.open(member, &segment)? {
        Some(visit) => Contents::of_visit(member, &segment, visit, (options.objects, reading))?,
        None => Contents::of(member, &segment, (options.objects, reading))?,
    };
    if options.json {
        return say_json(&as_json(member, &segment.name(), &contents)?);
    }
    print(member, &segment.name(), &contents)
}

impl Beginning {
    fn of(
        member: &Member,
        reference: &Reference,
        (bytes, reading): (usize, Reading),
    ) -> Result<Self, Failure> {
        let session = reading.session(member.session());
        let (all, start) = member.transact_with(session, |tx| {
            let all = tx.size(reference)?;
            let rest = all.saturating_sub(reference.offset);
            let wanted = usize::try_from(rest).unwrap_or(usize::MAX).min(bytes);
            Ok((all, tx.read_at(reference, 0, wanted)?))
        })?;
        Ok(Beginning {
            bytes: all,
            start,
            left_out: Vec::new(),
        })
    }

    /// A visit reads an object as a whole: updates over it may be of any part.
    fn of_visit(
        member: &Member,
        reference: &Reference,
        (bytes, reading): (usize, Reading),
    ) -> Result<Self, Failure> {
        let name = member.format(reference)?;
        let segment = member.open(name.split('#').next().unwrap_or(&name))?;
        let Some(mut visit) = reading.open(member, &segment)? else {
            return Beginning::of(member, reference, (bytes, reading));
        };
        let mut start = visit.read(reference)?;
        let all = reference.offset + start.len() as u64;
        start.truncate(bytes);
        let left_out = reading::left_out(&visit);
        Ok(Beginning {
            bytes: all,
            start,
            left_out,
        })
    }
}

impl Contents {
    fn of(
        member: &Member,
        segment: &Segment,
        (objects, reading): (bool, Reading),
    ) -> Result<Self, Failure> {
        let session = reading.session(member.session());
        Ok(member.transact_with(session, |tx| {
            let mut contents = Contents::with(tx.roots(segment)?);
            tx.scan(segment, |reference, bytes| {
                contents.add(reference, bytes.len() as u64, objects);
                Ok(())
            })?;
            Ok(contents)
        })?)
    }

    /// Which objects there are, a transaction tells when the visit has opened; what they hold, the visit. One that has gone
    /// meanwhile, also by an update that its home has not executed, is left out.
    fn of_visit(
        member: &Member,
        segment: &Segment,
        mut visit: Visit,
        (objects, reading): (bool, Reading),
    ) -> Result<Self, Failure> {
        let session = reading.session(member.session());
        let (roots, references) = member.transact_with(session, |tx| {
            let mut references = Vec::new();
            tx.scan_references(segment, |reference| {
                references.push(reference);
                Ok(())
            })?;
            Ok((tx.roots(segment)?, references))
        })?;
        let mut contents = Contents::with(roots);
        for reference in references {
            match visit.read(&reference) {
                Ok(bytes) => contents.add(reference, bytes.len() as u64, objects),
                Err(error) if error.kind() == ErrorKind::Gone => {}
                Err(error) => return Err(error.into()),
            }
        }
        contents.left_out = reading::left_out(&visit);
        Ok(contents)
    }

    fn with(roots: Vec<(String, Reference)>) -> Self {
        Contents {
            roots,
            pages: BTreeMap::new(),
            objects: Vec::new(),
            left_out: Vec::new(),
        }
    }

    fn add(&mut self, reference: Reference, bytes: u64, is_listed: bool) {
        let page = self.pages.entry(reference.object.page.page.0).or_default();
        page.0 += 1;
        page.1 += bytes;
        if is_listed {
            self.objects.push((reference, bytes));
        }
    }

    fn totals(&self) -> (u64, u64) {
        let add = |sum: (u64, u64), page: &(u64, u64)| (sum.0 + page.0, sum.1 + page.1);
        self.pages.values().fold((0, 0), add)
    }
}

fn print(member: &Member, name: &str, contents: &Contents) -> Result<(), Failure> {
    let (objects, bytes) = contents.totals();
    say(&format!(
        "{name}: {}, {} in {}",
        text::count(objects, "object"),
        text::bytes(bytes),
        text::count(contents.pages.len() as u64, "page")
    ))?;
    for (root, reference) in &contents.roots {
        let object = names::of_root(member, reference)?;
        let object = object.as_deref().unwrap_or(names::NO_SEGMENT);
        say(&format!("root {} = {object}", text::name(root)))?;
    }
    if contents.objects.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&[("object", Side::Left), ("bytes", Side::Right)]);
    for (reference, len) in &contents.objects {
        table.row(vec![member.format(reference)?, len.to_string()]);
    }
    say(&table.render())
}

fn as_json(member: &Member, name: &str, contents: &Contents) -> Result<serde_json::Value, Failure> {
    let (objects, bytes) = contents.totals();
    let mut roots = serde_json::Map::new();
    for (root, reference) in &contents.roots {
        roots.insert(root.clone(), names::of_root(member, reference)?.into());
    }
    let mut each = Vec::new();
    for (reference, len) in &contents.objects {
        each.push(serde_json::json!({"reference": member.format(reference)?, "bytes": len}));
    }
    Ok(serde_json::json!({
        "segment": name,
        "objects": objects,
        "bytes": bytes,
        "pages": contents.pages.len(),
        "roots": roots,
        "each": each,
        "left_out": contents.left_out,
    }))
}

const HELP: &str = "\
Of a segment: its pages, objects, bytes and roots. Of an object: its size and its beginning.
With --consistency a visit reads the objects, also with updates that their home has not executed yet
(failures=optimistic). Roots, and which objects there are, are as their home has them.

Examples:
  thorp inspect thorp://dev/notes --objects
  thorp inspect thorp://dev/notes --consistency close-to-open
  thorp inspect 'thorp://dev/notes#1.0.1'";
