//! Transactions over several homes that lost a part, because one of the homes went back in time (rule R9).

use super::Member;
use super::doubts::{call, other_answer};
use crate::due::due_after;
use crate::{CommitId, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use thorp_model::limits::JOINTS_LISTED_MAX;
use thorp_model::{
    CallRequest, CallResponse, HomeId, Joint, JointAnswer, JointPart, JointQuestion, OtherHome,
    Stamp,
};

/// How often a home is asked that is not reached: the home that passes the question on calls it meanwhile.
const TRIES: u32 = 10;
const BETWEEN_TRIES: Duration = Duration::from_millis(300);

/// What was found out about the transactions over several homes of one home.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LostParts {
    /// Transactions that have committed at a home, and have no part at another one: by their stamps.
    pub lost: Vec<LostPart>,
    /// How many transactions were compared.
    pub compared: usize,
    /// How many have a part that some home may have forgotten by now: nobody can say whether it was there.
    pub forgotten: usize,
    /// How many have a part in doubt at some home: `doubts` lists them there.
    pub in_doubt: usize,
    /// The other homes that were asked, and the home itself: how far back what they remember reaches.
    pub asked: Vec<AskedHome>,
    /// The names or ids of homes that could not be asked.
    pub not_reached: Vec<String>,
}

/// A transaction that lost a part.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LostPart {
    /// The commit.
    pub commit: CommitId,
    /// The name of the member, if a home knows it.
    pub member: Option<String>,
    /// The stamp of the transaction.
    pub stamp: Stamp,
    /// The homes that have their part.
    pub at: Vec<String>,
    /// The homes that do not have it.
    pub lost_at: Vec<String>,
}

/// A home that was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AskedHome {
    /// Its name, or its id.
    pub home: String,
    /// The home remembers all its transactions above this stamp. None: all since it was founded.
    pub since: Option<Stamp>,
}

/// A part of a transaction at a home.
type Parts = BTreeMap<HomeId, JointPart>;

/// Asks a home and the others of its transactions over several homes.
pub(super) struct Inquirer<'a> {
    member: &'a Member,
    home: HomeId,
    names: BTreeMap<HomeId, String>,
    joints: BTreeMap<CommitId, (Joint, Parts)>,
    asked: Vec<AskedHome>,
    not_reached: BTreeSet<String>,
}

impl<'a> Inquirer<'a> {
    pub(super) fn new(member: &'a Member, (name, home): (&str, HomeId)) -> Self {
        Inquirer {
            member,
            home,
            names: BTreeMap::from([(home, name.to_owned())]),
            joints: BTreeMap::new(),
            asked: Vec::new(),
            not_reached: BTreeSet::new(),
        }
    }

    /// Compares what the homes remember. Each lists its transactions first, and says only then what it has of those that
    /// others have listed. So one that commits meanwhile is lost nowhere.
    pub(super) async fn run(mut self) -> Result<LostParts> {
        let others = self.others().await?;
        self.list(self.home, None).await?;
        let mut reached = Vec::from([self.home]);
        for other in others {
            match self.list(other, Some(self.home)).await? {
                true => reached.push(other),
                false => drop(self.not_reached.insert(self.name(other))),
            }
        }
        for home in reached {
            if !self.ask_for_parts(home).await? {
                self.not_reached.insert(self.name(home));
            }
        }
        Ok(self.found())
    }

    async fn others(&mut self) -> Result<Vec<HomeId>> {
        match self.ask(self.home, JointQuestion::Homes).await? {
            Some(JointAnswer::Homes { homes, unheard }) => {
                self.not_reached.extend(unheard);
                for OtherHome { home, name } in &homes {
                    let name = name.clone().unwrap_or_else(|| format!("home id {home}"));
                    self.names.insert(*home, name);
                }
                Ok(homes.iter().map(|other| other.home).collect())
            }
            _ => Err(other_answer()),
        }
    }

    /// Lists what a home remembers, page by page. False if it is not reached.
    async fn list(&mut self, home: HomeId, with: Option<HomeId>) -> Result<bool> {
        let mut after = None;
        loop {
            let question = JointQuestion::List { after, with };
            let Some(answer) = self.ask(home, question).await? else {
                return Ok(false);
            };
            let JointAnswer::List {
                joints,
                more,
                since,
            } = answer
            else {
                return Err(other_answer());
            };
            if after.is_none() {
                let since = (since != Stamp::default()).then_some(since);
                let home = self.name(home);
                self.asked.push(AskedHome { home, since });
            }
            let last = joints.last().map(|joint| (joint.stamp, joint.commit));
            for joint in joints {
                self.learn(home, joint);
            }
            // A home that lists nothing new has no end.
            if !more || last <= after {
                return Ok(true);
            }
            after = last;
        }
    }

    fn learn(&mut self, home: HomeId, joint: Joint) {
        let known = self.joints.entry(joint.commit);
        let (known, parts) = known.or_insert_with(|| (joint.clone(), Parts::new()));
        known.name = known.name.take().or(joint.name);
        parts.insert(home, JointPart::Kept);
    }

    /// Asks a home for its parts of transactions that it has not listed. False if it is not reached.
    async fn ask_for_parts(&mut self, home: HomeId) -> Result<bool> {
        let missing = self
            .joints
            .values()
            .filter(|(joint, parts)| joint.homes.contains(&home) && !parts.contains_key(&home));
        let missing = missing.map(|(joint, _)| (joint.stamp, joint.commit));
        let missing: Vec<(Stamp, CommitId)> = missing.collect();
        for batch in missing.chunks(JOINTS_LISTED_MAX) {
            let question = JointQuestion::Of(batch.to_vec());
            let parts = match self.ask(home, question).await? {
                Some(JointAnswer::Of(parts)) if parts.len() == batch.len() => parts,
                Some(_) => return Err(other_answer()),
                None => return Ok(false),
            };
            for ((_, commit), part) in batch.iter().zip(parts) {
                if let Some((_, known)) = self.joints.get_mut(commit) {
                    known.insert(home, part);
                }
            }
        }
        Ok(true)
    }

    /// The answer of a home. None if it is not reached: the home that was joined calls it, so it is asked again for a
    /// while.
    async fn ask(&self, at: HomeId, question: JointQuestion) -> Result<Option<JointAnswer>> {
        for _ in 0..TRIES {
            let question = question.clone();
            match call(self.member, self.home, CallRequest::Joint { at, question }).await? {
                CallResponse::Joint(JointAnswer::NotReached) => {
                    let requests = &self.member.shared().requests;
                    requests.sleep_until(due_after(BETWEEN_TRIES)).await?;
                }
                CallResponse::Joint(answer) => return Ok(Some(answer)),
                _ => return Err(other_answer()),
            }
        }
        Ok(None)
    }

    fn name(&self, home: HomeId) -> String {
        let name = self.names.get(&home).cloned();
        name.unwrap_or_else(|| format!("home id {home}"))
    }

    fn found(self) -> LostParts {
        let has = |part| {
            let joints = self.joints.values();
            joints.filter(move |(_, parts)| parts.values().any(|has| *has == part))
        };
        let lost = has(JointPart::Lost).map(|(joint, parts)| LostPart {
            commit: joint.commit,
            member: joint.name.clone(),
            stamp: joint.stamp,
            at: self.names_of(parts, JointPart::Kept),
            lost_at: self.names_of(parts, JointPart::Lost),
        });
        let mut lost: Vec<LostPart> = lost.collect();
        lost.sort_by_key(|lost| (lost.stamp, lost.commit));
        LostParts {
            lost,
            compared: self.joints.len(),
            forgotten: has(JointPart::Forgotten).count(),
            in_doubt: has(JointPart::InDoubt).count(),
            not_reached: self.not_reached.iter().cloned().collect(),
            asked: self.asked.clone(),
        }
    }

    fn names_of(&self, parts: &Parts, wanted: JointPart) -> Vec<String> {
        let those = parts.iter().filter(|(_, part)| **part == wanted);
        those.map(|(home, _)| self.name(*home)).collect()
    }
}
