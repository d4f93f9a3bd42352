//! Which of the sites below brings the requests of which member (rule R2). To the home all of them
//! come by one edge, so this node has to tell them apart.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::{DELEGATIONS_OF_A_NAME_MAX, REGISTRATIONS_MAX};
use thorp_model::planted::Bug;
use thorp_model::{
    CallId, CallRequest, CallResponse, HomeId, MemberId, NameId, NotDelegated, Up, message, planted,
};

/// The sites that each member below has named to a home.
///
/// This node checks no signature. It believes a delegation when the home has taken it, so no site
/// puts a name in here. No name has more than [`DELEGATIONS_OF_A_NAME_MAX`] entries of `taken`, which
/// has at most [`REGISTRATIONS_MAX`]. A member whose entry is gone signs anew. Each entry of `asked`
/// is a call that is under way.
#[derive(Debug, Default)]
pub(super) struct Delegations {
    asked: BTreeMap<(HomeId, CallId), Vec<NameId>>,
    taken: BTreeMap<(HomeId, MemberId), Vec<NameId>>,
}

impl Delegations {
    /// How many are known.
    pub(super) fn len(&self) -> usize {
        self.taken.len()
    }

    /// Judges what a site below brings.
    pub(super) fn judge(&self, site: NameId, message: &Up) -> Result<(), NotDelegated> {
        let Some(member) = message.member() else {
            return Ok(());
        };
        let home = message.home();
        if let Some((call, _)) = registration(message) {
            // Two answers under one number could not be told apart.
            let is_under_way = self.asked.contains_key(&(home, call));
            return if is_under_way {
                Err(NotDelegated::Old)
            } else {
                Ok(())
            };
        }
        if !message.is_own(member) {
            return Err(NotDelegated::OtherSite);
        }
        match self.taken.get(&(home, member)) {
            _ if planted::is(Bug::SitesBelowNotChecked) => Ok(()),
            Some(sites) if sites.contains(&site) => Ok(()),
            Some(_) => Err(NotDelegated::OtherSite),
            None => Err(NotDelegated::Missing),
        }
    }

    /// A request goes up. A delegation counts when the home has answered.
    pub(super) fn passed(&mut self, home: HomeId, call: CallId, request: &CallRequest) {
        if let CallRequest::Register(Some(delegation)) = request {
            let sites = delegation.text.sites.clone();
            self.asked.insert((home, call), sites);
        }
    }

    /// A home has answered a call.
    pub(super) fn answered(&mut self, result: &message::CallResult) {
        let (home, call) = (result.home, result.call);
        let Some(sites) = self.asked.remove(&(home, call)) else {
            return;
        };
        if !matches!(result.result, Ok(CallResponse::Registered(_))) {
            return;
        }
        let of_name = |random| (home, MemberId::new(call.member.name(), random));
        let own = || self.taken.range(of_name(u64::MIN)..=of_name(u64::MAX));
        let yields = if own().count() >= DELEGATIONS_OF_A_NAME_MAX {
            own().next()
        } else if self.taken.len() >= REGISTRATIONS_MAX {
            self.taken.first_key_value()
        } else {
            None
        };
        let yields = yields.map(|(key, _)| *key);
        if let Some(key) = yields.filter(|_| !self.taken.contains_key(&(home, call.member))) {
            self.taken.remove(&key);
        }
        self.taken.insert((home, call.member), sites);
    }

    /// The stream of a home ends or begins: every member below signs anew.
    pub(super) fn forget_home(&mut self, home: HomeId) {
        self.asked.retain(|(of, _), _| *of != home);
        self.taken.retain(|(of, _), _| *of != home);
    }
}

/// The call that brings a delegation.
fn registration(message: &Up) -> Option<(CallId, &CallRequest)> {
    match message {
        Up::Call(call) => match &call.request {
            request @ CallRequest::Register(Some(_)) => Some((call.call, request)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{
        CallError, CommitId, DELEGATION_VERSION, Delegation, DelegationNo, DelegationText, Millis,
        Proof, Registration,
    };

    const HOME: HomeId = HomeId(1);
    const OFFICE: NameId = NameId(8);
    const EVIL: NameId = NameId(9);

    fn anna(random: u64) -> MemberId {
        MemberId::new(NameId(1), random)
    }

    fn registering(member: MemberId, site: NameId) -> (CallId, CallRequest) {
        let text = DelegationText {
            version: DELEGATION_VERSION,
            home: HOME,
            member,
            number: DelegationNo(1),
            ends: Millis(0),
            sites: Vec::from([NameId(7), site]),
        };
        let proof = Proof::none();
        let request = CallRequest::Register(Some(Delegation { text, proof }));
        (CallId { member, number: 1 }, request)
    }

    fn answer(call: CallId, is_taken: bool) -> message::CallResult {
        let result = match is_taken {
            true => Ok(CallResponse::Registered(Registration(1))),
            false => Err(CallError::NotDelegated(NotDelegated::NotProven)),
        };
        message::CallResult {
            home: HOME,
            call,
            result,
        }
    }

    fn settled(member: MemberId) -> Up {
        Up::Settled(message::Settled {
            home: HOME,
            commit: CommitId {
                member,
                sequence: 1,
            },
            registration: Registration(1),
        })
    }

    #[test]
    fn a_site_brings_what_the_home_has_heard_that_it_may() {
        let mut known = Delegations::default();
        let request = settled(anna(1));
        assert_eq!(known.judge(OFFICE, &request), Err(NotDelegated::Missing));
        let (call, asked) = registering(anna(1), OFFICE);
        known.passed(HOME, call, &asked);
        assert_eq!(known.judge(OFFICE, &request), Err(NotDelegated::Missing));
        known.answered(&answer(call, true));
        assert_eq!(known.judge(OFFICE, &request), Ok(()));
        assert_eq!(known.judge(EVIL, &request), Err(NotDelegated::OtherSite));
        known.forget_home(HOME);
        assert_eq!(known.judge(OFFICE, &request), Err(NotDelegated::Missing));
    }

    #[test]
    fn what_the_home_refuses_and_what_comes_twice_counts_for_nothing() {
        let mut known = Delegations::default();
        let (call, asked) = registering(anna(1), EVIL);
        known.passed(HOME, call, &asked);
        let again = Up::Call(message::Call {
            call,
            home: HOME,
            request: registering(anna(1), OFFICE).1,
        });
        assert_eq!(known.judge(OFFICE, &again), Err(NotDelegated::Old));
        known.answered(&answer(call, false));
        known.answered(&answer(call, true));
        assert_eq!(known.len(), 0);
        assert_eq!(known.judge(OFFICE, &again), Ok(()));
    }

    #[test]
    fn a_name_has_only_so_many() {
        let mut known = Delegations::default();
        let (call, asked) = registering(MemberId::new(NameId(0), 1), OFFICE);
        known.passed(HOME, call, &asked);
        known.answered(&answer(call, true));
        for random in 0..2 * DELEGATIONS_OF_A_NAME_MAX as u64 {
            let (call, asked) = registering(anna(random), OFFICE);
            known.passed(HOME, call, &asked);
            known.answered(&answer(call, true));
        }
        assert_eq!(known.len(), DELEGATIONS_OF_A_NAME_MAX + 1);
    }
}
