//! What a home says of the transactions over several homes that it remembers (rule R9).

use crate::home::Outbox;
use crate::home::log::Log;
use crate::home::log::queue::OnDurable;
use crate::home::operators::Asker;
use crate::home::tables::Tables;
use crate::home::two_phase::inquiry::Inquiry;
use crate::home::two_phase::passed_questions::{Asked, PassedQuestions};
use crate::home::two_phase::settlement::Settlement;
use crate::home::two_phase::votes::State;
use alloc::vec::Vec;
use thorp_model::limits::JOINTS_LISTED_MAX;
use thorp_model::{
    CallError, CallResponse, CommitId, HomeId, Joint, JointAnswer, JointPart, JointQuestion,
    MemberId, Note, OtherHome, Right, Stamp, message,
};

const NOT_REACHED: CallResponse = CallResponse::Joint(JointAnswer::NotReached);

/// Answers questions about transactions over several homes, and passes them on.
#[derive(Debug)]
pub(in crate::home) struct Remembered<'a> {
    pub(in crate::home) inquiry: &'a Inquiry,
    pub(in crate::home) passed: &'a mut PassedQuestions,
    pub(in crate::home) log: &'a mut Log,
    pub(in crate::home) tables: &'a mut Tables,
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(in crate::home) enum Questioner {
    /// A child, for whoever it is.
    Child(Asker),
    /// Another home.
    Home {
        /// This home is configured for it.
        is_configured: bool,
    },
}

impl Remembered<'_> {
    /// The answer to a question. None: it was passed on to the home that it is for.
    pub(in crate::home) fn asked(
        &mut self,
        node: MemberId,
        (asked, by): (Asked, Questioner),
        (at, question): (HomeId, JointQuestion),
        outbox: &mut Outbox,
    ) -> Option<Result<CallResponse, CallError>> {
        let judged = self.check(by);
        if at == self.log.home() || judged.is_err() {
            let answer = judged.and_then(|()| self.answer(question));
            return Some(answer.map(CallResponse::Joint));
        }
        if matches!(by, Questioner::Home { .. }) {
            return Some(Err(CallError::Invalid));
        }
        let Some(edge) = self.inquiry.way_to(at) else {
            outbox.note(Note::OtherHomeWanted);
            return Some(Ok(NOT_REACHED));
        };
        let passed = self
            .passed
            .pass(node, (at, edge), (asked, question), outbox);
        passed.err().map(Err)
    }

    /// An operator on an edge of its own asks, or a home that this one is configured for.
    fn check(&mut self, by: Questioner) -> Result<(), CallError> {
        let asker = match by {
            Questioner::Child(asker) => asker,
            Questioner::Home {
                is_configured: true,
            } => return Ok(()),
            Questioner::Home { .. } => {
                let right = Right::Admin;
                return Err(CallError::NoRight { right });
            }
        };
        let mut settlement = Settlement {
            inquiry: self.inquiry,
            log: self.log,
            tables: self.tables,
        };
        settlement.check(asker)
    }

    fn answer(&self, question: JointQuestion) -> Result<JointAnswer, CallError> {
        match question {
            JointQuestion::Homes => Ok(self.homes()),
            JointQuestion::List { after, with } => Ok(self.list(after, with)),
            JointQuestion::Of(joints) if joints.len() <= JOINTS_LISTED_MAX => {
                let parts = joints.into_iter();
                let parts = parts.map(|(stamp, commit)| self.part(stamp, commit));
                Ok(JointAnswer::Of(parts.collect()))
            }
            JointQuestion::Of(_) => Err(CallError::Invalid),
        }
    }

    fn homes(&self) -> JointAnswer {
        let configured = self.inquiry.configured();
        let mut homes = self.tables.joints.homes();
        homes.extend(configured.all_heard());
        homes.remove(&self.log.home());
        let homes = homes.into_iter().map(|home| OtherHome {
            home,
            name: configured.name(home),
        });
        JointAnswer::Homes {
            homes: homes.collect(),
            unheard: configured.unheard().map(Into::into).collect(),
        }
    }

    fn list(&self, after: Option<(Stamp, CommitId)>, with: Option<HomeId>) -> JointAnswer {
        let joints = &self.tables.joints;
        let mut those = joints
            .after(after)
            .filter(|(_, joint)| with.is_none_or(|home| joint.homes.contains(&home)));
        let page = those.by_ref().take(JOINTS_LISTED_MAX);
        let page = page.map(|(commit, joint)| Joint {
            stamp: joint.stamp,
            commit,
            name: self.tables.audit.name(commit.member.name()),
            homes: joint.homes.clone(),
        });
        let page: Vec<Joint> = page.collect();
        JointAnswer::List {
            joints: page,
            more: those.next().is_some(),
            since: joints.since(),
        }
    }

    fn part(&self, stamp: Stamp, commit: CommitId) -> JointPart {
        let (joints, tables) = (&self.tables.joints, &*self.tables);
        let vote = tables.votes.get(commit).map(|vote| &vote.state);
        match vote {
            _ if joints.has(commit) || tables.outcomes.committed(commit).is_some() => {
                JointPart::Kept
            }
            Some(State::InDoubt | State::Decided(_)) => JointPart::InDoubt,
            _ if joints.may_be_forgotten(stamp, commit) => JointPart::Forgotten,
            _ => JointPart::Lost,
        }
    }

    /// Another home answers a question that was passed on.
    pub(in crate::home) fn answered(&mut self, asked: Asked, answer: message::CallResult) {
        let result = match answer.result {
            Ok(CallResponse::Joint(said)) if is_bounded(&said) => Ok(CallResponse::Joint(said)),
            Err(CallError::Busy) => Err(CallError::Busy),
            _ => Ok(NOT_REACHED),
        };
        self.say(asked, result);
    }

    /// The way to the home that was asked is gone.
    pub(in crate::home) fn lost(&mut self, asked: Asked) {
        self.say(asked, Ok(NOT_REACHED));
    }

    fn say(&mut self, asked: Asked, result: Result<CallResponse, CallError>) {
        let Asked { edge, call } = asked;
        self.log.after_all(OnDurable::Answer(edge, call, result));
    }
}

/// Whether another home's answer is as long as it may be.
fn is_bounded(answer: &JointAnswer) -> bool {
    let len = match answer {
        JointAnswer::Homes { homes, unheard } => homes.len() + unheard.len(),
        JointAnswer::List { joints, .. } => joints.len(),
        JointAnswer::Of(parts) => parts.len(),
        JointAnswer::NotReached => 0,
    };
    len <= JOINTS_LISTED_MAX
}
