//! A person looks at the open updates of a keeper on this machine, and ends those that nobody follows.

use super::shown::ShownUpdates;
use super::wire::{self, ByHand, ToKeeper, ToProxy, socket_of};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::BufReader;
use tokio::net::UnixStream;

/// How long the keeper may take to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Why a keeper has said nothing.
#[derive(Debug)]
#[non_exhaustive]
pub enum HandError {
    /// There is no keeper at this socket, or it is another user's.
    NotReached(PathBuf, io::Error),
    /// It does not answer, or sends what no keeper sends.
    NoAnswer,
}

impl fmt::Display for HandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandError::NotReached(path, error) => {
                write!(f, "no keeper answers at {}: {error}", path.display())
            }
            HandError::NoAnswer => f.write_str("the keeper does not answer"),
        }
    }
}

impl std::error::Error for HandError {}

/// The open updates at the keeper of a table.
///
/// # Errors
///
/// See [`HandError`].
pub async fn open_updates(table: &Path) -> Result<ShownUpdates, HandError> {
    match ask(table, ToKeeper::Show).await? {
        ToProxy::Shown(shown) => Ok(shown),
        _ => Err(HandError::NoAnswer),
    }
}

/// Ends an update at the keeper of a table, by the keeper's number. The caller knows that it is visible, or never will be.
///
/// # Errors
///
/// See [`HandError`].
pub async fn end_by_hand(table: &Path, id: u64) -> Result<ByHand, HandError> {
    match ask(table, ToKeeper::EndByHand { id }).await? {
        ToProxy::ByHand(became) => Ok(became),
        _ => Err(HandError::NoAnswer),
    }
}

async fn ask(table: &Path, question: ToKeeper) -> Result<ToProxy, HandError> {
    let path = socket_of(table);
    let asks = async {
        let stream = UnixStream::connect(&path).await?;
        let (reads, mut writes) = stream.into_split();
        wire::write(&mut writes, &question).await?;
        wire::read(&mut BufReader::new(reads)).await
    };
    match tokio::time::timeout(ANSWERS_WITHIN, asks).await {
        Ok(Ok(Some(answer))) => Ok(answer),
        Ok(Err(error)) if error.kind() != io::ErrorKind::InvalidData => {
            Err(HandError::NotReached(path, error))
        }
        _ => Err(HandError::NoAnswer),
    }
}
