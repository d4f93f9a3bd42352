//! What one child may have at its redirector (rule 15).

use super::{DECIDED_MAX, Redirector, RedirectorConfig};
use crate::door::{Core, Direction, Effect, Input, Out};
use crate::ids::{
    CommitId, EdgeId, Epoch, HomeId, MemberId, Millis, NodeKind, Now, Peer, Position, Registration,
    Stamp,
};
use crate::message::{Decision, Down, Message, Up};
use crate::note::Note;
use alloc::string::String;
use alloc::vec::Vec;

const HOME: HomeId = HomeId(1);
const ABOVE: EdgeId = EdgeId(1);
const CHILD: EdgeId = EdgeId(2);

fn tell(redirector: &mut Redirector, input: Input) -> Vec<Effect> {
    let mut out = Out::new();
    let now = Now {
        mono: Millis(0),
        wall: Millis(0),
    };
    redirector.handle(now, input, &mut out);
    out.effects
}

fn connected(edge: EdgeId, direction: Direction, kind: NodeKind) -> Input {
    let peer = Peer {
        kind,
        node: MemberId(u128::from(edge.0)),
        name: String::from("p"),
    };
    Input::Connected {
        edge,
        direction,
        peer,
    }
}

/// With a home above and a member below.
fn redirector() -> Redirector {
    let mut redirector = Redirector::new(RedirectorConfig::new(MemberId(9), String::from("r")));
    let begin = Message::Down(Down::Begin {
        home: HOME,
        name: String::from("h"),
        epoch: Epoch(1),
        position: Position(1),
        watermark: Stamp::default(),
        silent_ms: 0,
    });
    for input in [
        connected(ABOVE, Direction::Up, NodeKind::Home),
        Input::Received {
            edge: ABOVE,
            message: begin,
        },
        connected(CHILD, Direction::Down, NodeKind::Member),
    ] {
        tell(&mut redirector, input);
    }
    redirector
}

fn decide(sequence: u64) -> Input {
    let message = Message::Up(Up::Decide {
        home: HOME,
        commit: CommitId {
            member: MemberId(2),
            sequence,
        },
        registration: Registration(1),
        decision: Decision::Abort,
    });
    Input::Received {
        edge: CHILD,
        message,
    }
}

#[test]
fn what_a_child_decides_is_bounded() {
    let mut redirector = redirector();
    let mut limited = 0;
    for sequence in 0..2 * DECIDED_MAX as u64 {
        let effects = tell(&mut redirector, decide(sequence));
        limited += effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Note(Note::ChildLimited)))
            .count();
    }
    assert_eq!(limited, DECIDED_MAX);
    let sizes = redirector.sizes();
    assert!(sizes.contains(&("commits", DECIDED_MAX)), "{sizes:?}");
    // What is known is passed on as ever.
    let again = tell(&mut redirector, decide(0));
    assert!(
        again
            .iter()
            .any(|effect| matches!(effect, Effect::Send(edge, _) if *edge == ABOVE))
    );
}
