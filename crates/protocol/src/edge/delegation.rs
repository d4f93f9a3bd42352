//! What is answered to a request that a site may not bring (rule R2).

use thorp_model::{CallError, Down, HomeId, NotDelegated, Outcome, Refusal, Up, message};

/// The answer to a request that is dropped, and of which nothing is recorded (trap R34). What has no
/// answer has none here: the homes find out by themselves that all of them know an outcome.
pub(crate) fn not_delegated(home: HomeId, request: &Up, why: NotDelegated) -> Option<Down> {
    let refused =
        |commit| Down::outcome(home, commit, Outcome::Refused(Refusal::NotDelegated(why)));
    match request {
        Up::Commit(request) => Some(refused(request.id)),
        Up::Save(save) => Some(refused(save.request.id)),
        Up::Decide(decide) => Some(refused(decide.commit)),
        Up::Call(call) => Some(Down::CallResult(message::CallResult {
            home,
            call: call.call,
            result: Err(CallError::NotDelegated(why)),
        })),
        _ => None,
    }
}
