//! `thorp ifc`: building models.

use super::{say, say_json};
use crate::connect::Via;
use crate::destination::Destination;
use crate::failure::Failure;
use crate::names;
use crate::progress::Progress;
use crate::text;
use clap::{Args, Subcommand};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use thorp_client::Member;
use thorp_workloads::ifc::store::{self, Building, StoreError};
use thorp_workloads::objects::MemberStore;
use thorp_workloads::step::{self, StepFile};

/// What `thorp ifc` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    #[command(subcommand)]
    job: Job,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

#[derive(Subcommand, Debug)]
enum Job {
    /// Import a file into a segment that has no building
    #[command(after_help = IMPORT_HELP)]
    Import {
        /// The IFC file; standard input if it is -
        #[arg(value_parser = names::file)]
        file: PathBuf,
        /// thorp://HOME/path
        #[arg(value_parser = names::segment)]
        segment: String,
    },
    /// Write a building to a file, as it is at one moment
    #[command(after_help = EXPORT_HELP)]
    Export {
        /// thorp://HOME/path
        #[arg(value_parser = names::segment)]
        segment: String,
        /// The IFC file; a regular file that exists is replaced, anything else is written into; standard output if it is -
        #[arg(value_parser = names::file)]
        file: PathBuf,
    },
}

/// Imports or exports.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    match &options.job {
        Job::Import { file, segment } => {
            let mut progress = Progress::of("entities");
            // Before joining: a malformed file is told without a village.
            let model = read_file(file)?;
            let member = options.via.join_for_long()?;
            let store = building_store(&member, member.open_or_create(segment)?);
            let tell = |made, all| progress.tell(made, all);
            let building = store::import_and_tell(&store, &model, tell)?;
            drop(progress);
            let entities = building.imported();
            match options.json {
                true => say_json(&serde_json::json!({"segment": segment, "entities": entities})),
                false => say(&format!("{entities} entities imported into {segment}")),
            }
        }
        Job::Export { segment, file } => {
            let member = options.via.join_for_long()?;
            let store = building_store(&member, member.open(segment)?);
            let model = Building::open(&store)?.export(&store)?;
            write_file(&model, file)?;
            let entities = model.entities.len();
            let document = serde_json::json!({
                "segment": segment,
                "entities": entities,
                "file": file.display().to_string(),
            });
            let told = format!("{entities} entities exported to {}", file.display());
            // Standard output has the model.
            match (is_standard(file), options.json) {
                (true, _) => text::note(&told).map_err(|error| Failure::file(file, &error)),
                (false, true) => say_json(&document),
                (false, false) => say(&told),
            }
        }
    }
}

fn building_store(member: &Member, segment: thorp_client::Segment) -> MemberStore {
    MemberStore::new(member.clone(), segment, member.session())
}

/// Reads a model; what is wrong with it is told with its line.
pub(crate) fn read_file(file: &Path) -> Result<StepFile, Failure> {
    let read = match is_standard(file) {
        false => fs::read(file),
        true => {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes).map(|_| bytes)
        }
    };
    let bytes = read.map_err(|error| Failure::file(file, &error))?;
    step::parse(&bytes).map_err(|error| {
        let what = format!("{}: {error}", file.display());
        Failure::new(what, "give a STEP file (ISO 10303-21) of an IFC model")
    })
}

fn is_standard(file: &Path) -> bool {
    file == Path::new("-")
}

/// Writes a model.
pub(crate) fn write_file(model: &StepFile, file: &Path) -> Result<(), Failure> {
    match Destination::of(file) {
        Destination::Standard => write_to(model, file, io::stdout().lock()),
        Destination::Stream(name) => {
            let failed = |error: io::Error| Failure::file(&name, &error);
            let out = OpenOptions::new().write(true).open(&name).map_err(failed)?;
            write_to(model, &name, out)
        }
        Destination::Regular { place, part } => {
            let failed = |error: io::Error| Failure::file(&place, &error);
            write_to(model, &place, File::create(&part).map_err(failed)?)?;
            fs::rename(&part, &place).map_err(failed)
        }
    }
}

fn write_to(model: &StepFile, file: &Path, out: impl Write) -> Result<(), Failure> {
    let mut out = BufWriter::new(out);
    step::write(model, &mut out)
        .map_err(|error| Failure::new(format!("{}: {error}", file.display()), ""))?;
    out.flush().map_err(|error| Failure::file(file, &error))
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Store(error) => error.into(),
            StoreError::ModelExists => Failure::new(
                error.to_string(),
                "import into another segment, or remove this one first: `thorp rm SEGMENT`",
            ),
            other => Failure::new(other.to_string(), "look at it with `thorp inspect`"),
        }
    }
}

const HELP: &str = "\
Building models in IFC (STEP files, ISO 10303-21): one object for each entity.

Examples:
  thorp ifc import house.ifc thorp://dev/house
  thorp ifc export thorp://dev/house copy.ifc";

const IMPORT_HELP: &str = "\
Examples:
  thorp ifc import house.ifc thorp://dev/house";

const EXPORT_HELP: &str = "\
Examples:
  thorp ifc export thorp://dev/house copy.ifc
  thorp ifc export thorp://dev/house - | wc -l";
