//! Ids of others (rules R1 and R2).

use super::attack::{Attack, Target, ToParent};
use super::eyes::{Eyes, nothing};
use crate::made_up::MADE_UP_NAMES;
use thorp_model::{
    CallId, CallRequest, CommitId, Decision, MemberId, NameId, Proof, Registration, Stamp, Up,
    Xoshiro256, message,
};

/// Speaks for honest members and for made-up ones.
#[derive(Default)]
pub(crate) struct Impostor;

/// Requests of one strike.
const REQUESTS: u64 = 20;

impl Attack for Impostor {
    fn name(&self) -> &'static str {
        "attack: forged ids"
    }

    fn strike(&mut self, at: Target, eyes: &Eyes, prng: &mut Xoshiro256, outbox: &mut ToParent) {
        for _ in 0..REQUESTS {
            let member = impersonated(eyes, prng);
            let request = request(member, at, eyes, prng);
            outbox.up(at.edge, request);
        }
    }
}

/// A member that it is not. A made-up one has a made-up name.
fn impersonated(eyes: &Eyes, prng: &mut Xoshiro256) -> MemberId {
    let honest = prng.pick(&eyes.honest).map(|(member, _)| *member);
    honest.filter(|_| prng.percent(70)).unwrap_or_else(|| {
        let name = NameId(prng.below(MADE_UP_NAMES));
        MemberId::new(name, prng.bits())
    })
}

fn request(member: MemberId, at: Target, eyes: &Eyes, prng: &mut Xoshiro256) -> Up {
    let home = at.home;
    let registration = Registration(prng.below(12));
    // Early numbers are used, and later ones are going to be.
    let sequence = prng.range(1, 400);
    let commit = CommitId { member, sequence };
    let call = CallId {
        member,
        number: sequence,
    };
    let request = match prng.below(6) {
        0 => return Up::Commit(nothing(commit, registration, home)),
        1 => {
            let decision = match prng.percent(50) {
                true => Decision::Abort,
                false => Decision::Commit(Stamp {
                    clock: prng.bits(),
                    home,
                }),
            };
            return Up::Decide(message::Decide {
                home,
                commit,
                registration,
                decision,
            });
        }
        2 => {
            return Up::Settled(message::Settled {
                home,
                commit,
                registration,
            });
        }
        3 => CallRequest::Outcome {
            commit,
            registration,
        },
        4 => CallRequest::Unstage {
            registration,
            token: prng.below(9) << 32,
        },
        _ => CallRequest::Register(forged(member, at, eyes, prng)),
    };
    Up::Call(message::Call {
        call,
        home,
        request,
    })
}

/// A delegation of another member: without a proof, with its own signature, or none.
fn forged(
    member: MemberId,
    at: Target,
    eyes: &Eyes,
    prng: &mut Xoshiro256,
) -> Option<thorp_model::Delegation> {
    let mut delegation = eyes.delegation(at.now, at.home, Vec::from([eyes.member.name()]));
    delegation.text.member = member;
    match prng.below(3) {
        0 => delegation.proof = Proof::none(),
        1 => delegation.proof = eyes.signer.sign(&delegation.text),
        _ => return None,
    }
    Some(delegation)
}
