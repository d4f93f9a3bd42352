//! What a lying helper makes of its answer while that is under way (rule R6).

use super::names;
use super::village::Letter;
use thorp_model::{Draft, Image, ImageEdit, Message, PeerImage, Position, Stamp, Up};

/// Alters a helper's answer: `P.x=evil` gives an object another value, `P stamped 99` gives the page another highest
/// stamp, `P labelled 9` claims that it is as of that position.
pub(crate) fn falsify(letter: &mut Letter, what: &[&str]) {
    let Message::Up(Up::Peer(peer)) = &mut letter.1 else {
        panic!("no helper's answer");
    };
    match what {
        [write] => {
            let (name, value) = write.split_once('=').expect("OBJECT=VALUE");
            let (object, generation) = names::object_id(name).expect("an object");
            let value = Draft::Value(value.as_bytes().to_vec());
            alter(peer, |image| {
                let mut edit = ImageEdit::of(image);
                edit.set(object.slot, generation, value);
                edit.finish(image.version(), image.stamp())
            });
        }
        [_, "stamped", clock] => {
            let clock = clock.parse().expect("a number");
            alter(peer, |image| {
                let stamp = Stamp {
                    clock,
                    ..image.stamp()
                };
                ImageEdit::of(image).finish(image.version(), stamp)
            });
        }
        [_, "labelled", position] => peer.position = Position(position.parse().expect("a number")),
        _ => panic!("falsify a->b OBJECT=VALUE, or PAGE stamped N, or PAGE labelled N"),
    }
}

fn alter(peer: &mut PeerImage, change: impl FnOnce(&Image) -> Image) {
    let image = peer.image.as_ref().expect("an image");
    peer.image = Some(change(image));
}
