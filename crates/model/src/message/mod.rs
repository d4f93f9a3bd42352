//! What travels on an edge: [`Up`] from child to parent, [`Down`] from parent
//! to child. The protocol is the same at every depth.
//!
//! Each message is a struct inside its variant: [`Up::Fetch`] carries a [`Fetch`]. Their names are short, so other
//! crates write `message::Fetch`.

mod call;
mod commit;
mod down;
mod joint;
mod keep;
mod reads;
mod up;

pub use call::{
    CallError, CallId, CallRequest, CallResponse, Doubt, DoubtHome, Ruling, SegmentInfo,
};
pub use commit::{
    CommitRequest, Decision, InvalidCommit, Outcome, PageWrites, Part, Participant, Refusal,
};
pub use down::{
    Begin, CallResult, Committed, Down, End, FetchRefusal, FetchResponse, FetchResult, Get,
    Heartbeat, Hint, Joined, Judged, Recall, Redirect, Refused, Resynchronised, Saved, SeenWanted,
    Step, Tell, Unwatched, Voted, Withheld,
};
pub use joint::{Joint, JointAnswer, JointPart, JointQuestion, OtherHome};
pub use keep::{InCustody, Keep, Kept, NotKept};
pub use up::{
    Ack, Call, Decide, Denied, Evict, Fetch, GiveBack, Heads, Judge, Report, Reported, Save, Seen,
    Settled, Told, Up, Watch,
};

use crate::limits::{HOME_NAME_BYTES_MAX, HOME_NAMES_MAX};
use crate::{Attempt, Claim, EntryNo, Epoch, HomeId, Image, MemberId, PageId, Position};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A message on an edge.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Message {
    /// To the parent.
    Up(Up),
    /// To the child.
    Down(Down),
    /// To either: I am there (rule 13).
    Alive,
    /// To the parent: what the child holds of each home. It comes first on an edge, and answers each
    /// [`Down::End`] (rule R9). At most [`crate::limits::CLAIMS_MAX`]; of a home that it does not name, the child
    /// holds nothing.
    Claims(Vec<(HomeId, Claim)>),
    /// To the child: which homes the parent is to reach. It follows on the streams that begin when the child has claimed,
    /// and comes again when there is more to tell (rule 1).
    Homes(HomeNames),
}

/// The homes that a site is to reach, whether or not it does.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HomeNames {
    /// Their names, at most [`crate::limits::HOME_NAMES_MAX`].
    pub names: Vec<String>,
    /// Whether there are no others.
    pub is_all: bool,
}

impl HomeNames {
    /// What a node keeps of the names that another one has told: no more than there may be, and only names that a
    /// certificate may have. They end in memory, in messages to others, and on terminals.
    #[must_use]
    pub fn checked(mut self) -> Self {
        let told = self.names.len();
        self.names.retain(|name| is_name(name));
        self.names.truncate(HOME_NAMES_MAX);
        self.is_all &= self.names.len() == told;
        self
    }
}

/// Whether a certificate may have this name (rule R1).
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    (1..=HOME_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn names_that_no_certificate_has_are_not_kept() {
        let good = [String::from("alps"), String::from("alps.north-1")];
        let names = |bad: &str| HomeNames {
            names: vec![good[0].clone(), String::from(bad), good[1].clone()],
            is_all: true,
        };
        let long = "a".repeat(HOME_NAME_BYTES_MAX + 1);
        for bad in ["", "a b", "\u{1b}[31m", "a\n", &long] {
            let kept = names(bad).checked();
            assert_eq!(
                (&kept.names[..], kept.is_all),
                (&good[..], false),
                "{bad:?}"
            );
        }
        assert!(names("dale").checked().is_all);
        let many = HomeNames {
            names: vec![good[0].clone(); HOME_NAMES_MAX + 1],
            is_all: true,
        };
        let kept = many.checked();
        assert_eq!((kept.names.len(), kept.is_all), (HOME_NAMES_MAX, false));
    }
}

/// A helper's answer: an image with the label that brings it under the
/// requester's stream (rule 9).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PeerImage {
    /// The home of the page.
    pub home: HomeId,
    /// The page of the image.
    pub page: PageId,
    /// The member that asked.
    pub requester: MemberId,
    /// The requester's epoch.
    pub epoch: Epoch,
    /// The requester's try.
    pub attempt: Attempt,
    /// The requester's entry number.
    pub entry: EntryNo,
    /// The image is as of here.
    pub position: Position,
    /// The image, or that the helper has no complete one.
    pub image: Option<Image>,
}
