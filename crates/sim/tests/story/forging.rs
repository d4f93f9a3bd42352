//! What a lying helper makes of its answer while that is under way (rule R6), and claims that are made up (rule R9).

use super::names::{self, Homes};
use super::node::HOME;
use super::updates;
use super::village::Letter;
use thorp_model::message::Save;
use thorp_model::{
    Author, Authorship, Claim, CommitId, CommitRequest, Down, Draft, HomeId, Image, ImageEdit,
    Incarnation, LifeId, LogId, Mark, MemberId, Message, PageWrites, PeerImage, Point, Position,
    Principal, Proof, Receipt, ReceiptKey, Registration, Stamp, Up, Update, UpdateId,
};
use thorp_protocol::Request;
use thorp_sim::Authority;

/// Alters a helper's answer: `P.x=evil` gives an object another value, `P stamped 99` gives the page another highest
/// stamp, `P labelled 9` claims that it is as of that position. An update on its way writes something else: `S.x append=z`.
pub(crate) fn falsify(letter: &mut Letter, what: &[&str]) {
    let peer = match &mut letter.1 {
        Message::Up(Up::Peer(peer)) => peer,
        Message::Up(Up::Save(save)) => {
            save.request.part.writes = writes(what);
            return;
        }
        Message::Up(Up::Keep(keep)) | Message::Down(Down::Keep(keep)) => {
            keep.writes = writes(what);
            return;
        }
        _ => panic!("no helper's answer, and no update"),
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

/// A claim that nobody has proven: as of so far in a life that never was.
pub(crate) fn made_up(far: u64) -> Vec<(HomeId, Claim)> {
    let point = Point {
        life: LifeId {
            counter: 1,
            random: 99,
        },
        mark: Mark(far),
        position: Position(far),
        clock: 0,
    };
    let key = ReceiptKey::new([9; 32]);
    let receipt = Receipt::new(HOME, Incarnation::default(), point, &key);
    let claim = Claim {
        receipt,
        position: Position(far),
        clock: 0,
    };
    Vec::from([(HOME, claim)])
}

/// What an update writes: `S.x append=b`.
fn writes(what: &[&str]) -> Vec<PageWrites> {
    match updates::request(&Homes::default(), "updates", &what.join(" ")) {
        Request::Update { writes, .. } => writes,
        _ => panic!("an update"),
    }
}

/// An update that the log of this member keeps for another one, which has not signed it.
pub(crate) fn for_another(save: Save, (log, name): (Principal, &str), author: MemberId) -> Save {
    let by = Author {
        member: author,
        sequence: 1,
    };
    let proof = Proof::none();
    let mut save = Save {
        author: Some(Authorship { by, proof }),
        ..save
    };
    save.custody = Authority::default().signer(name, log).sign(&save.text());
    save
}

/// An update of a log, sent as this commit.
pub(crate) fn saving(
    (id, registration): (CommitId, Registration),
    (log, number): (LogId, u64),
    (target, op): (&str, &str),
) -> Save {
    let writes = writes(&[target, op]);
    let segment = writes[0].page.segment;
    let update = Update {
        home: HOME,
        id: UpdateId {
            log,
            segment,
            number,
        },
        writes,
    };
    let request = CommitRequest {
        id,
        registration,
        part: update.part(),
        with: Vec::new(),
        depends_on: Vec::new(),
        after: Stamp::default(),
    };
    Save {
        request,
        update: update.id,
        confirmed: 0,
        custody: Proof::none(),
        author: None,
    }
}

fn alter(peer: &mut PeerImage, change: impl FnOnce(&Image) -> Image) {
    let image = peer.image.as_ref().expect("an image");
    peer.image = Some(change(image));
}
