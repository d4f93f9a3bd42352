//! Opening a store that is there: what its files lack, and the history with which it goes on (rule R9).

use crate::dir::Locked;
use crate::error::OpenError;
use crate::history::{Evidence, History, Opening, Reopening};
use crate::journal::{self, Verdict};
use crate::manifest;
use crate::origin::Origin;
use std::path::Path;
use thorp_model::{HowOpened, ReceiptKey};

/// Cuts off what was never acknowledged, refuses what lacks something.
pub(crate) fn inspect_files(locked: &Locked, noted: u64) -> Result<(), OpenError> {
    let engine_dir = locked.engine_dir();
    let failed = |error| OpenError::io(&engine_dir, error);
    if !engine_dir.exists() {
        return Err(OpenError::damaged(
            locked.path(),
            "the engine's directory is missing",
        ));
    }
    manifest::inspect(&engine_dir)
        .map_err(failed)?
        .map_err(|detail| OpenError::damaged(locked.path(), detail))?;
    match journal::inspect(&engine_dir, noted).map_err(failed)? {
        Verdict::Whole => Ok(()),
        Verdict::CutShort { file, at } => journal::cut(&file, at).map_err(failed),
        Verdict::Lost(detail) => Err(OpenError::damaged(locked.path(), detail)),
    }
}

/// The history with which a store goes on.
pub(crate) fn opened_history(
    dir: &Path,
    known: Option<&History>,
    evidence: &Evidence,
    opening: Opening,
) -> Result<History, OpenError> {
    let mut history = match known {
        Some(known) => known.clone(),
        None => History::new(fresh_key(dir)?),
    };
    match opening {
        Opening::Prove => history.prove(evidence),
        Opening::Moved => history.moved(evidence),
        Opening::Confirmed { .. }
            if history.closed().is_none() && history.unproven(evidence).is_none() =>
        {
            let dir = dir.to_path_buf();
            return Err(OpenError::NotClosed { dir });
        }
        Opening::Restored { apart } | Opening::Confirmed { apart } => {
            let how = match opening {
                Opening::Confirmed { .. } => HowOpened::Confirmed,
                _ => HowOpened::Restored,
            };
            let reopening = Reopening { apart, by: None };
            history = reopened(dir, history, (how, reopening))?;
        }
    }
    settled(dir, history)
}

/// Whether an opening begins a new incarnation.
pub(crate) fn is_reopened(opening: Opening) -> bool {
    matches!(
        opening,
        Opening::Restored { .. } | Opening::Confirmed { .. }
    )
}

pub(crate) fn reopened(
    dir: &Path,
    mut history: History,
    (how, reopening): (HowOpened, Reopening),
) -> Result<History, OpenError> {
    let key = reopening.apart.then(|| fresh_key(dir)).transpose()?;
    if !history.reopen(key, (how, reopening.by)) {
        let dir = dir.to_path_buf();
        return Err(OpenError::NoIncarnations { dir });
    }
    Ok(history)
}

/// An open history remembers where its store is.
pub(crate) fn settled(dir: &Path, mut history: History) -> Result<History, OpenError> {
    if history.closed().is_none() {
        history.origin = Origin::of_or_made(dir).map_err(|error| OpenError::io(dir, error))?;
    }
    Ok(history)
}

pub(crate) fn fresh_key(dir: &Path) -> Result<ReceiptKey, OpenError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|error| OpenError::io(dir, std::io::Error::other(error)))?;
    Ok(ReceiptKey::new(random))
}
