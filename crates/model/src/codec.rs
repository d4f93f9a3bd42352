//! Messages as bytes: `postcard`, checked on the way in.

use crate::image::Image;
use crate::limits::FRAME_BYTES_MAX;
use crate::message::{Down, FetchResponse, FetchResult, Message, PeerImage, Up};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use postcard::ser_flavors::Flavor;

/// The version of everything on the wire. Nodes of different versions refuse
/// each other with a clear error.
pub const PROTOCOL_VERSION: u16 = 17;

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

/// A message as bytes, in two parts that follow one another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoded {
    /// What only this message has.
    pub head: Vec<u8>,
    /// The page image at its end, if there is one: its holder's own bytes, which nobody has copied.
    pub tail: Option<Arc<[u8]>>,
}

/// Encodes a message as [`encode`] does, but for the page image at its end, which is shared and not copied.
pub fn encode_sharing(message: &Message) -> Result<Encoded, CodecError> {
    let Some(image) = image_at_end(message) else {
        let (head, tail) = (encode(message)?, None);
        return Ok(Encoded { head, tail });
    };
    let flavor = Head {
        bytes: Vec::with_capacity(IMAGE_MESSAGE_HEAD_BYTES),
        tail: image.bytes(),
        is_complete: false,
    };
    let head =
        postcard::serialize_with_flavor(message, flavor).map_err(|_| CodecError::Malformed)?;
    let bytes = head.len() + image.bytes().len();
    if bytes > FRAME_BYTES_MAX {
        return Err(CodecError::TooLarge { bytes });
    }
    let tail = Some(image.shared());
    Ok(Encoded { head, tail })
}

/// The image that is the last thing of a message's bytes.
fn image_at_end(message: &Message) -> Option<&Image> {
    match message {
        Message::Up(Up::Peer(PeerImage { image, .. }))
        | Message::Down(Down::Peer(PeerImage { image, .. })) => image.as_ref(),
        Message::Down(Down::Image(FetchResponse {
            result: FetchResult::Image(image),
            ..
        })) => Some(image),
        _ => None,
    }
}

/// Takes what stands before the tail. That the tail is the end is checked: fields have an order on the wire.
struct Head<'a> {
    bytes: Vec<u8>,
    tail: &'a [u8],
    is_complete: bool,
}

impl Flavor for Head<'_> {
    type Output = Vec<u8>;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.try_extend(&[byte])
    }

    fn try_extend(&mut self, more: &[u8]) -> postcard::Result<()> {
        if self.is_complete {
            return Err(postcard::Error::SerdeSerCustom);
        }
        self.is_complete = core::ptr::eq(more, self.tail);
        if !self.is_complete {
            self.bytes.extend_from_slice(more);
        }
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        match self.is_complete {
            true => Ok(self.bytes),
            false => Err(postcard::Error::SerdeSerCustom),
        }
    }
}

/// What stands before the image of a message at most, as numbers mostly are.
const IMAGE_MESSAGE_HEAD_BYTES: usize = 96;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Attempt, EntryNo, Epoch, HomeId, MemberId, PageId, Position, Stamp};

    fn peer(image: Option<Image>) -> PeerImage {
        PeerImage {
            home: HomeId(7),
            page: PageId::new(3, 4),
            requester: MemberId(u128::MAX),
            epoch: Epoch(u64::MAX),
            attempt: Attempt(u64::MAX),
            entry: EntryNo(u32::MAX),
            position: Position(u64::MAX),
            image,
        }
    }

    #[test]
    fn an_image_at_the_end_is_shared_and_the_bytes_are_the_same() {
        let image = Image::empty();
        let answer = Down::Image(FetchResponse {
            home: HomeId(7),
            page: PageId::new(3, 4),
            attempt: Attempt(1),
            entry: EntryNo(2),
            position: Position(3),
            watermark: Stamp::default(),
            result: FetchResult::Image(image.clone()),
        });
        for message in [
            Message::Up(Up::Peer(peer(Some(image.clone())))),
            Message::Down(Down::Peer(peer(Some(image.clone())))),
            Message::Down(answer),
        ] {
            let Encoded { head, tail } = encode_sharing(&message).expect("encoded");
            let tail = tail.expect("an image");
            assert!(core::ptr::eq(&*tail, image.bytes()), "{message:?}");
            assert!(head.capacity() <= IMAGE_MESSAGE_HEAD_BYTES);
            let whole = [&head, &*tail].concat();
            assert_eq!(encode(&message), Ok(whole.clone()));
            assert_eq!(decode(&whole), Ok(message));
        }
    }

    #[test]
    fn what_has_no_image_is_one_part() {
        for message in [Message::Alive, Message::Up(Up::Peer(peer(None)))] {
            let encoded = encode_sharing(&message).expect("encoded");
            assert_eq!(encoded.tail, None);
            assert_eq!(encode(&message), Ok(encoded.head));
        }
    }
}
