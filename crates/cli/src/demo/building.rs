//! Part 1: two sites at work on one building.

use super::figures::{Building, Figures, Link, Person};
use super::progress::Progress;
use super::reader::Reader;
use super::village::{HOME, Node, Village, Worker, together};
use super::wire::{Done, Order};
use crate::commands::ifc::{read_file, write_file};
use crate::failure::Failure;
use crate::text;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use thorp_workloads::ifc::{self, EditRecord, Plan, Tag};

/// How many steps [`run`] takes.
pub(super) const STEPS: usize = 5;

/// What to work on, and how much.
pub(super) struct Job<'a> {
    /// The model's file.
    pub(super) original: &'a Path,
    /// What it is called.
    pub(super) name: String,
    /// Members at each of the two sites.
    pub(super) members_per_site: usize,
    /// Edits of each member.
    pub(super) edits: u32,
    /// Where files go.
    pub(super) out: &'a Path,
}

/// Imports, works, exports, and lets the foreign reader look at it.
pub(super) fn run(
    village: &Village,
    home: &Node,
    job: &Job<'_>,
    reader: &Reader,
    figures: &mut Figures,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let mut building = Building {
        model: job.name.clone(),
        file_bytes: fs::metadata(job.original).map_or(0, |data| data.len()),
        ..Building::default()
    };
    progress.step("two sites start, with members");
    let sites = [village.site(SITES[0], home)?, village.site(SITES[1], home)?];
    let mut workers = people(village, &sites, job)?;
    progress.step(&format!("{} is imported", building.model));
    let order = Order::Import {
        file: job.original.to_owned(),
        segment: segment(),
    };
    let imported = together(&mut workers[..1], &[order], progress)?;
    for done in &imported {
        building.entities = done.count;
        building.import_s = done.spent.elapsed;
    }
    let edits = work(&mut workers, home, job, &mut building, progress)?;
    let exports = export(&mut workers, job, &mut building, progress)?;
    check(
        reader,
        &exports,
        &edits,
        job,
        &mut building,
        figures,
        progress,
    )?;
    figures.building = Some(building);
    workers.into_iter().try_for_each(Worker::stop)?;
    sites.into_iter().try_for_each(Node::stop)
}

/// The model's file: the one given, or one that is made. Before anything is started, so that a file that is no model is
/// told at once.
pub(super) fn original(model: Option<&Path>, floors: u32, out: &Path) -> Result<PathBuf, Failure> {
    if let Some(file) = model {
        read_file(file)?;
        return Ok(file.to_owned());
    }
    let file = out.join("original.ifc");
    let plan = Plan {
        floors,
        ..Plan::default()
    };
    write_file(&ifc::generate(&plan), &file)?;
    Ok(file)
}

/// Members of the first site, then those of the second.
fn people(village: &Village, sites: &[Node; 2], job: &Job<'_>) -> Result<Vec<Worker>, Failure> {
    let mut workers = Vec::new();
    for (site, name) in sites.iter().zip(SITES) {
        let names: Vec<String> = (1..=job.members_per_site)
            .map(|at| format!("{name}-{at}"))
            .collect();
        workers.extend(village.workers(&names, site, false)?);
    }
    Ok(workers)
}

fn work(
    workers: &mut [Worker],
    home: &Node,
    job: &Job<'_>,
    building: &mut Building,
    progress: &mut Progress,
) -> Result<Vec<EditRecord>, Failure> {
    let people = workers.len();
    progress.step(&format!(
        "{people} members walk through it and edit it, {} edits each",
        job.edits
    ));
    let name = |number: usize| {
        let site = SITES[number / job.members_per_site.max(1)];
        (
            site,
            format!("{site}-{}", number % job.members_per_site.max(1) + 1),
        )
    };
    let order = |number| Order::WalkAndEdit {
        segment: segment(),
        who: name(number).1,
        number,
        edits: job.edits,
    };
    let orders: Vec<Order> = (0..people).map(order).collect();
    let before: Link = home.links_below()?;
    let done = together(workers, &orders, progress)?;
    building.wide_area = home.links_below()?.since(before);
    let mut edits = Vec::new();
    for (number, done) in done.into_iter().enumerate() {
        let (site, name) = name(number);
        building.people.push(person(name, site, &done));
        edits.extend(done.edits);
    }
    Ok(edits)
}

fn person(name: String, site: &str, done: &Done) -> Person {
    Person {
        name,
        site: site.to_owned(),
        walked: done.count,
        edits: done.edits.len() as u64,
        changes_heard: done.heard,
        walk: done.walk,
        edit: done.spent,
        edit_median_ms: median(&done.edit_ms),
    }
}

/// Both sites export, each to its own file.
fn export(
    workers: &mut [Worker],
    job: &Job<'_>,
    building: &mut Building,
    progress: &mut Progress,
) -> Result<[PathBuf; 2], Failure> {
    progress.step("it is exported at both sites");
    let files = SITES.map(|site| job.out.join(format!("export-{site}.ifc")));
    let last = workers.len().saturating_sub(1);
    for (worker, file) in [0, last].into_iter().zip(&files) {
        let order = Order::Export {
            segment: segment(),
            file: file.clone(),
        };
        let done = together(&mut workers[worker..=worker], &[order], progress)?;
        building.export_s = done
            .iter()
            .map(|done| done.spent.elapsed)
            .fold(0., f64::max);
    }
    Ok(files)
}

#[allow(
    clippy::too_many_arguments,
    reason = "all of them are what is checked or where it is told"
)]
fn check(
    reader: &Reader,
    exports: &[PathBuf; 2],
    edits: &[EditRecord],
    job: &Job<'_>,
    building: &mut Building,
    figures: &mut Figures,
    progress: &mut Progress,
) -> Result<(), Failure> {
    progress.step("ifcopenshell reads the export");
    let file = job.out.join("edits.json");
    let json = serde_json::to_vec_pretty(edits)
        .map_err(|error| Failure::new(format!("the edits cannot be written: {error}"), ""))?;
    fs::write(&file, json).map_err(|error| Failure::file(&file, &error))?;
    let verdict = reader.check(job.original, &exports[0], &file)?;
    let summary = verdict.summary();
    building.reader = verdict.words;
    let wanted = building.people.len() * job.edits as usize;
    let tags: BTreeSet<&Tag> = edits.iter().map(|edit| &edit.tag).collect();
    let good = edits.len() == wanted && tags.len() == wanted;
    figures.check(
        "every member made all its edits",
        good,
        format!("{} of {wanted}", edits.len()),
    );
    figures.check(
        "ifcopenshell accepts the export: untouched entities unchanged, every edit exactly once",
        verdict.good,
        summary,
    );
    let same = same(&exports[0], &exports[1])?;
    let sizes = fs::metadata(&exports[0]).map_or(0, |data| data.len());
    figures.check("both sites export the same file", same, text::bytes(sizes));
    Ok(())
}

fn same(one: &Path, other: &Path) -> Result<bool, Failure> {
    let read = |file: &Path| fs::read(file).map_err(|error| Failure::file(file, &error));
    Ok(read(one)? == read(other)?)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.)
}

fn segment() -> String {
    format!("thorp://{HOME}/demo/building")
}

pub(super) const SITES: [&str; 2] = ["office", "yard"];
