//! What a proxy and the keeper of requests send each other: lines of JSON over a socket of the machine.

use super::shown::ShownUpdates;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A request leaves at most so many milliseconds after the begin of its update. An older acknowledgement is worth nothing.
pub(super) const FORWARDED_WITHIN_MS: u64 = 5_000;

/// A line has at most so many bytes.
const LINE_BYTES_MAX: u64 = 256 << 10;

/// The keys of one update have at most so many bytes. Those of a larger one count as unknown (rule W9), so that each fits into a line.
pub const KEY_BYTES_OF_UPDATE_MAX: usize = 32 << 10;

/// What a proxy sends. Updates have numbers of the proxy's own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToKeeper {
    /// Which proxy this is: a random number of its life, and its process. All its open updates follow, and then [`ToKeeper::Listed`].
    Hello {
        /// A random number of the proxy's life.
        life: u64,
        /// Its process.
        process: u32,
    },
    /// All that is open has been said.
    Listed,
    /// An update is about to be forwarded, or is open already. Without keys it may change anything.
    Begin {
        /// The proxy's number of the update.
        update: u64,
        /// What it changes. None: anything.
        keys: Option<Vec<String>>,
    },
    /// The update is visible, or it never will be.
    End {
        /// The proxy's number of the update.
        update: u64,
    },
    /// Nobody will learn when the update ends: it is over when the longest life of a request has passed.
    Linger {
        /// The proxy's number of the update.
        update: u64,
    },
    /// The update lingers as one of many, which count as one: something may be changing until the longest life of a request has passed. A
    /// list says it without an update.
    Fold {
        /// The proxy's number of the update.
        update: Option<u64>,
    },
    /// A person asks what is open. The keeper answers with [`ToProxy::Shown`].
    Show,
    /// A person knows that an update is over: the keeper's number of it. The keeper answers with [`ToProxy::ByHand`].
    EndByHand {
        /// The keeper's number of the update.
        id: u64,
    },
}

/// What the keeper sends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToProxy {
    /// The keeper has taken the list.
    Welcome {
        /// The longest time that the origin may work on one request, in milliseconds.
        life_ms: u64,
    },
    /// The words of the update are odd, in the table of this generation.
    Begun {
        /// The proxy's number of the update.
        update: u64,
        /// That of the table.
        generation: u64,
    },
    /// Too many updates are open: this one must not be forwarded.
    Refused {
        /// The proxy's number of the update.
        update: u64,
    },
    /// An update that nobody could follow has ended, by time or by hand.
    Over {
        /// The proxy's number of the update.
        update: u64,
    },
    /// What is open.
    Shown(ShownUpdates),
    /// What became of an update that a person has ended.
    ByHand(ByHand),
}

/// What became of an update that a person has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ByHand {
    /// It is over.
    Ended,
    /// Its proxy follows it, so it is open still.
    Followed,
    /// No such update is open.
    NotOpen,
}

/// Where the keeper of a table listens: beside the file with its address.
pub(super) fn socket_of(table: &Path) -> PathBuf {
    beside(table, ".socket")
}

/// A file beside a table's.
pub(super) fn beside(table: &Path, ending: &str) -> PathBuf {
    let mut name = table.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Reads one message. None: the other side has ended.
pub(super) async fn read<T: DeserializeOwned>(
    from: &mut (impl AsyncBufRead + Unpin),
) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    let read = from
        .take(LINE_BYTES_MAX)
        .read_until(b'\n', &mut line)
        .await?;
    match (read, line.last()) {
        (0, _) => Ok(None),
        (_, Some(b'\n')) => Ok(Some(serde_json::from_slice(&line)?)),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a message is cut, or too long",
        )),
    }
}

/// Writes one message.
pub(super) async fn write(
    to: &mut (impl AsyncWrite + Unpin),
    message: &impl Serialize,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_message_is_a_line_and_no_line_is_without_an_end() {
        let keys = Some(vec!["\u{1}".repeat(KEY_BYTES_OF_UPDATE_MAX)]);
        let message = ToKeeper::Begin { update: 7, keys };
        let mut bytes = Vec::new();
        write(&mut bytes, &message).await.expect("a line");
        let mut from = &bytes[..];
        assert_eq!(read(&mut from).await.expect("a line"), Some(message));
        assert_eq!(read::<ToKeeper>(&mut from).await.expect("an end"), None);
        let endless = vec![b' '; 1 << 20];
        assert!(read::<ToKeeper>(&mut &endless[..]).await.is_err());
        assert!(read::<ToKeeper>(&mut &b"{\"listed\""[..]).await.is_err());
        assert!(read::<ToKeeper>(&mut &b"garbage\n"[..]).await.is_err());
    }
}
