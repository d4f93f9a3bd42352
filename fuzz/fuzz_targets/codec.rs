//! Bytes off the wire: they are a message, and then the same again when encoded
//! and decoded, or they are refused. Every image in a message can be read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thorp_model::codec::{decode, encode};
use thorp_model::{Down, FetchResult, Message, PeerImage, Up, message};

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = decode(bytes) else {
        return;
    };
    let again = encode(&message).expect("what was decoded can be encoded");
    assert_eq!(decode(&again).as_ref(), Ok(&message));
    if let Some(image) = image(&message) {
        assert!(image.iter().count() <= usize::from(image.slots()));
    }
    let _ = format!("{message:?}");
});

fn image(message: &Message) -> Option<&thorp_model::Image> {
    match message {
        Message::Down(Down::Image(message::FetchResponse {
            result: FetchResult::Image(image),
            ..
        })) => Some(image),
        Message::Down(Down::Peer(PeerImage { image, .. }))
        | Message::Up(Up::Peer(PeerImage { image, .. })) => image.as_ref(),
        _ => None,
    }
}
