//! `thorp inspect`: what is in a segment, or in one object.

use super::{say, say_json};
use crate::connect::Via;
use crate::failure::Failure;
use crate::names;
use crate::text::{self, Side, Table};
use clap::Args;
use std::collections::BTreeMap;
use thorp_client::{Member, Reference};

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
}

/// One consistent state: all is read in one transaction.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let member = options.via.join()?;
    if options.url.contains('#') {
        object(&member, options)
    } else {
        segment(&member, options)
    }
}

fn object(member: &Member, options: &Options) -> Result<(), Failure> {
    let reference = member.parse(&options.url)?;
    let (len, start) = member.transact(|tx| {
        let len = tx.size(&reference)?;
        let rest = len.saturating_sub(reference.offset);
        let wanted = usize::try_from(rest)
            .unwrap_or(usize::MAX)
            .min(options.bytes);
        Ok((len, tx.read_at(&reference, 0, wanted)?))
    })?;
    let name = member.format(&reference)?;
    if options.json {
        let value = serde_json::json!({
            "reference": name,
            "bytes": len,
            "text": text::is_text(&start).then(|| String::from_utf8_lossy(&start)),
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

fn segment(member: &Member, options: &Options) -> Result<(), Failure> {
    let segment = member.open(&options.url)?;
    let contents = member.transact(|tx| {
        let mut contents = Contents {
            roots: tx.roots(&segment)?,
            pages: BTreeMap::new(),
            objects: Vec::new(),
        };
        tx.scan(&segment, |reference, bytes| {
            let page = contents
                .pages
                .entry(reference.object.page.page.0)
                .or_default();
            page.0 += 1;
            page.1 += bytes.len() as u64;
            if options.objects {
                contents.objects.push((reference, bytes.len() as u64));
            }
            Ok(())
        })?;
        Ok(contents)
    })?;
    if options.json {
        return say_json(&as_json(member, &segment.name(), &contents)?);
    }
    print(member, &segment.name(), &contents)
}

impl Contents {
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
    }))
}

const HELP: &str = "\
Of a segment: its pages, objects, bytes and roots. Of an object: its size and its beginning.

Examples:
  thorp inspect thorp://dev/notes --objects
  thorp inspect 'thorp://dev/notes#1.0.1'";
