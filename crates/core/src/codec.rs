//! Messages as bytes: `postcard`, checked on the way in.

use crate::limits::FRAME_BYTES_MAX;
use crate::message::Message;
use alloc::vec::Vec;
use core::fmt;

/// The version of everything on the wire. Nodes of different versions refuse
/// each other with a clear error.
pub const PROTOCOL_VERSION: u16 = 5;

/// Why bytes are not a message, or a message not a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CodecError {
    /// Longer than a frame may be.
    TooLarge {
        /// How long, in bytes.
        bytes: usize,
    },
    /// Not a message of this protocol version.
    Malformed,
    /// A message, and then more.
    Trailing {
        /// How much more, in bytes.
        bytes: usize,
    },
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodecError::TooLarge { bytes } => {
                write!(f, "a message of {bytes} bytes, more than {FRAME_BYTES_MAX}")
            }
            CodecError::Malformed => write!(f, "bytes that are no message"),
            CodecError::Trailing { bytes } => write!(f, "{bytes} bytes after a message"),
        }
    }
}

impl core::error::Error for CodecError {}

/// Encodes a message.
pub fn encode(message: &Message) -> Result<Vec<u8>, CodecError> {
    let bytes = postcard::to_allocvec(message).map_err(|_| CodecError::Malformed)?;
    if bytes.len() > FRAME_BYTES_MAX {
        return Err(CodecError::TooLarge { bytes: bytes.len() });
    }
    Ok(bytes)
}

/// Decodes a message: all of the bytes, and nothing but a message.
pub fn decode(bytes: &[u8]) -> Result<Message, CodecError> {
    if bytes.len() > FRAME_BYTES_MAX {
        return Err(CodecError::TooLarge { bytes: bytes.len() });
    }
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(CodecError::Trailing { bytes: rest.len() }),
        Err(_) => Err(CodecError::Malformed),
    }
}
